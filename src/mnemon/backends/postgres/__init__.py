"""PostgreSQL, through psycopg: for more than one machine."""
