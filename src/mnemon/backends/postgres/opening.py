"""Opening a PostgreSQL database: create its schema, migrate it, or refuse it untouched."""

import asyncio
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from mnemon.backends.migrations import migrate
from mnemon.backends.postgres.connection import Location, mapped_errors
from mnemon.backends.postgres.database import AsyncPostgres, BlockingPostgres
from mnemon.backends.postgres.engine import AsyncConnections, BlockingConnections
from mnemon.backends.postgres.extension import create_extension, with_extension
from mnemon.backends.postgres.follower import Followers
from mnemon.backends.postgres.vectors import Observed, PostgresVectors
from mnemon.backends.postgres.words import PostgresWords
from mnemon.backends.schema import VERSION_TABLE, bring_up_to_date, no_database
from mnemon.backends.wordsearch import TermCounts
from mnemon.errors import SchemaMismatch, StoreReadOnly, StoreUnavailable
from mnemon.ports import Backend, Indexes, Runner, Store
from mnemon.settings import Settings

_OLDEST = 160000  # IS JSON
_TABLES = (
    "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'p', 'v', 'm', 'f')"
)


async def open_async(settings: Settings) -> Backend:
    """The database for the event loop that is running."""
    location, read_only = await asyncio.to_thread(_prepare, settings)
    connections = AsyncConnections(location, settings.pool_size, settings.connect_timeout)
    await connections.open()
    followers = Followers(location)
    upkeep = _upkeep(location, followers, settings)
    return _backend(location, AsyncPostgres(location, connections, followers, upkeep), upkeep, read_only)


def open_blocking(settings: Settings) -> Backend:
    """The database for threads that may block."""
    location, read_only = _prepare(settings)
    connections = BlockingConnections(location, settings.pool_size, settings.connect_timeout)
    followers = Followers(location)
    upkeep = _upkeep(location, followers, settings)
    return _backend(location, BlockingPostgres(location, connections, followers, upkeep), upkeep, read_only)


def _backend(location: Location, store: Store, upkeep: Store, read_only: bool) -> Backend:
    counts, observed = TermCounts(), Observed()

    def index(store: Store, runner: Runner) -> Indexes:
        return Indexes(PostgresWords(store, counts), PostgresVectors(store, runner, location, observed))

    return Backend(store, upkeep, index, read_only=read_only)


def _upkeep(location: Location, followers: Followers, settings: Settings) -> BlockingPostgres:
    return BlockingPostgres(location, BlockingConnections(location, 1, settings.connect_timeout), followers)


def _prepare(settings: Settings) -> tuple[Location, bool]:
    """See to it that the schema is the one that this program works with; where it is, and whether it is read-only."""
    location = Location.parse(settings)
    with mapped_errors(location), location.connect() as connection:
        read_only = _check_server(connection, location)
        found = schema_version(connection, location)
        if found is None and not settings.create:
            raise no_database(location)
        if found is None:
            _create(location)
        else:
            bring_up_to_date(found, str(location), settings, lambda: migrate_location(location))
        return with_extension(connection, location), read_only


def _check_server(connection: "psycopg.Connection[TupleRow]", location: Location) -> bool:
    status = connection.info.parameter_status
    if connection.info.server_version < _OLDEST:
        raise StoreUnavailable(
            f"{location} is version {status('server_version')}; Mnemon needs PostgreSQL 16 or newer: upgrade the server"
        )
    if status("server_encoding") != "UTF8":
        raise StoreUnavailable(
            f"{location} has the encoding {status('server_encoding')}; Mnemon needs a database with ENCODING 'UTF8'"
        )
    if status("in_hot_standby") == "on":
        raise StoreReadOnly(f"{location} is a standby; connect to the primary (target_session_attrs=read-write)")
    return status("default_transaction_read_only") == "on"


def schema_version(connection: "psycopg.Connection[TupleRow]", location: Location) -> str | None:
    """The schema's version, or None if there is nothing in it; refuses one of another program."""
    tables = {name for (name,) in connection.execute(_TABLES, [f'"{location.schema}"'])}
    if VERSION_TABLE in tables:
        row = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}".encode()).fetchone()
        return row[0] if row else None
    if tables:
        raise SchemaMismatch(f"{location} holds the tables of another program; choose another postgres_schema")
    return None


def _create(location: Location) -> None:
    location = _extended(location)
    with location.connect() as connection, connection.transaction():
        connection.execute(_alone(location).encode())
        if schema_version(connection, location) is None:  # another process may have been quicker
            if connection.execute("SELECT to_regnamespace(%s)", [f'"{location.schema}"']).fetchone() == (None,):
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(location.schema)))
            connection.execute(Path(__file__).with_name("schema.sql").read_bytes())


def migrate_location(location: Location, target: str | None = None) -> None:
    """Bring the schema to a revision, by default the newest; one process at a time."""
    location = _extended(location)
    migrate("postgres", lambda: location.connect(autocommit=False), _alone(location), target)


def _extended(location: Location) -> Location:
    """The location with the extension that the tables need, which may be in any schema."""
    with location.connect() as connection:
        create_extension(connection, location)
        return with_extension(connection, location)


def _alone(location: Location) -> str:
    """Makes whoever creates or migrates the schema the only one until the transaction ends."""
    return f"SELECT pg_advisory_xact_lock(hashtextextended('mnemon.{location.schema}', 0))"
