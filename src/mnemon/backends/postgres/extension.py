"""pgvector, the extension that gives PostgreSQL vectors: making it, finding it, or saying what to do."""

from typing import Any

import psycopg
from psycopg import errors as pg

from mnemon.backends.postgres.connection import Location
from mnemon.errors import StoreUnavailable

_OLDEST = (0, 8)  # iterative scans
_FIND = """
SELECT nspname, extversion FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
WHERE extname = 'vector'
"""
_MAKE = "CREATE EXTENSION vector SCHEMA public"
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('mnemon.vector', 0))"

_INSTALL = "install pgvector on the server (on Debian: apt-get install postgresql-16-pgvector, for your version)"
_CREATE = f"have its owner or a superuser run {_MAKE} in this database, once"
_UPDATE = "install a newer pgvector on the server and run ALTER EXTENSION vector UPDATE"


def create_extension(connection: "psycopg.Connection[Any]", location: Location) -> None:
    """Have pgvector in the database: in `public`, since it would go with whatever schema it is in. Idempotent."""
    try:
        with connection.transaction():
            connection.execute(_ALONE)
            if connection.execute(_FIND).fetchone() is None:
                connection.execute(_MAKE)
    except pg.UniqueViolation:
        pass  # another program has just made it
    except (pg.FeatureNotSupported, pg.UndefinedFile) as error:
        raise StoreUnavailable(f"{location} has no pgvector, which Mnemon needs: {_INSTALL}") from error
    except (pg.InsufficientPrivilege, pg.InvalidSchemaName, pg.ReadOnlySqlTransaction) as error:
        raise StoreUnavailable(
            f"{location} has no extension vector, and it cannot be made ({error}): {_CREATE}"
        ) from error


def with_extension(connection: "psycopg.Connection[Any]", location: Location) -> Location:
    """The location with pgvector in sight, in whichever schema it is."""
    found = connection.execute(_FIND).fetchone()
    if found is None:
        raise StoreUnavailable(f"{location} has no extension vector: {_CREATE}")
    schema, version = found
    if tuple(int(number) for number in version.split(".")[:2]) < _OLDEST:
        raise StoreUnavailable(f"{location} has pgvector {version}; Mnemon needs 0.8 or newer: {_UPDATE}")
    return location.seeing(schema)
