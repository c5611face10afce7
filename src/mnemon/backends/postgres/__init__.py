"""PostgreSQL, through psycopg: for more than one machine."""

from mnemon.errors import InvalidSettings

try:
    import psycopg as psycopg
    import psycopg_pool as psycopg_pool
except ImportError as error:
    raise InvalidSettings(f"PostgreSQL needs a driver: pip install 'mnemon[postgres]' ({error})") from error
