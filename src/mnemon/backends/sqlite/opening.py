"""Opening a SQLite database: create it, migrate it, or refuse it untouched."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from mnemon.backends.migrations import migrate
from mnemon.backends.schema import VERSION_TABLE, bring_up_to_date, no_database
from mnemon.backends.sqlite.connection import Location, is_busy, mapped_errors
from mnemon.backends.sqlite.database import AsyncSqlite, BlockingSqlite
from mnemon.backends.sqlite.engine import Engine
from mnemon.backends.sqlite.follower import Lookout
from mnemon.backends.sqlite.vectors import SqliteVectors, VectorCache
from mnemon.backends.sqlite.words import SqliteWords
from mnemon.backends.wordsearch import TermCounts
from mnemon.errors import SchemaMismatch, StoreUnavailable
from mnemon.ports import Backend, Indexes, Runner, Store
from mnemon.settings import Settings


async def open_async(settings: Settings) -> Backend:
    """The database for an event loop; opening may wait for the disk, so a thread does it."""
    engine = await asyncio.to_thread(open_engine, settings)
    lookout = Lookout(engine)
    return _backend(engine, AsyncSqlite(engine, settings, lookout), lookout)


def open_blocking(settings: Settings) -> Backend:
    """The database for threads that may block."""
    engine = open_engine(settings)
    lookout = Lookout(engine)
    return _backend(engine, BlockingSqlite(engine, lookout), lookout)


def _backend(engine: Engine, store: Store, lookout: Lookout) -> Backend:
    def attach(poke: Callable[[], None]) -> None:
        engine.on_checkpoint = poke

    counts, vectors = TermCounts(), VectorCache(engine)

    def index(store: Store, runner: Runner) -> Indexes:
        return Indexes(SqliteWords(store, counts), SqliteVectors(store, runner, vectors))

    chores = (engine.checkpoint,)
    return Backend(store, BlockingSqlite(engine, lookout), index, chores, attach, read_only=engine.location.read_only)


def open_engine(settings: Settings) -> Engine:
    """The database that the URL names, with the schema that this program works with."""
    location = Location.parse(settings.url)
    if location.read_only and not (location.path and location.path.exists()):
        raise StoreUnavailable(f"{location} does not exist, so it cannot be opened with mode=ro")
    if not settings.create and location.path and not location.path.exists():
        raise no_database(location)
    if location.path and location.path.exists() and not os.access(location.path, os.W_OK):
        location = replace(location, read_only=True)
    engine = Engine(location, settings)
    try:
        with mapped_errors(location):
            _prepare(engine, settings)
    except BaseException:
        engine.close()
        raise
    return engine


def _prepare(engine: Engine, settings: Settings) -> None:
    with engine.connection() as connection:
        check_modules(connection)
        found = schema_version(connection, str(engine.location))
        if found:
            where = str(engine.location)
            bring_up_to_date(found, where, settings, lambda: migrate_location(engine.location, settings))
        if not engine.location.read_only:
            _use_write_ahead_log(connection, settings.busy_timeout)
    if not found:
        _create(engine)


def check_modules(connection: sqlite3.Connection, needed: Iterable[str] = ("fts5",)) -> None:
    """Refuse a SQLite that was built without something that Mnemon needs."""
    present = {name for (name,) in connection.execute("SELECT name FROM pragma_module_list")}
    for name in needed:
        if name not in present:
            raise StoreUnavailable(
                f"this Python's SQLite was built without {name.upper()}, which finds memories by their words: "
                "use another build of Python, as from python.org, conda or your distribution"
            )


def migrate_location(location: Location, settings: Settings, target: str | None = None) -> None:
    """Bring the schema to a revision, by default the newest; one process at a time."""
    connect = partial(location.connect, settings.synchronous, settings.busy_timeout)
    migrate("sqlite", connect, "BEGIN IMMEDIATE", target)


def schema_version(connection: sqlite3.Connection, where: str) -> str | None:
    """The schema's version, or None for an empty database; refuses one of another program."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if VERSION_TABLE in tables:
        row = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
        return row[0] if row else None
    if tables - {"sqlite_sequence"}:
        raise SchemaMismatch(f"{where} holds the tables of another program; choose another file")
    return None


def _create(engine: Engine) -> None:
    script = Path(__file__).with_name("schema.sql").read_text("utf-8")
    with engine.transaction() as connection:
        if schema_version(connection, str(engine.location)) is None:  # another process may have been quicker
            for statement in script.split(";\n"):
                connection.execute(statement)


def _use_write_ahead_log(connection: sqlite3.Connection, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
        time.sleep(0.005)
