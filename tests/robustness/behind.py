"""The database behind the store's back: what a test plants and peeks at without asking Mnemon."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

TABLES = (
    "sessions", "events", "archived_events", "state", "tasks", "memory_entries", "memory_texts", "vector_spaces",
    "memory_vectors", "embedding_cache", "journal", "consumers", "seals",
)  # fmt: skip

Rows = list[tuple[Any, ...]]


class SqliteDatabase:
    """A file of SQLite."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.path = Path(url.removeprefix("sqlite:///"))

    def query(self, text: str) -> Rows:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(text).fetchall()

    def create_numbered(self, table: str) -> None:
        """A table of positions that numbers its rows as they come."""
        self.query(f"CREATE TABLE {table} (number INTEGER PRIMARY KEY AUTOINCREMENT, position INTEGER NOT NULL)")

    def check(self) -> None:
        assert self.query("PRAGMA integrity_check") == [("ok",)]
        assert self.query("PRAGMA foreign_key_check") == []


class PostgresDatabase:
    """A schema of PostgreSQL."""

    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self._options = f"-c search_path={schema}"

    def query(self, text: str) -> Rows:
        with psycopg.connect(self.url, autocommit=True, options=self._options) as connection:
            done = connection.execute(text)
            return done.fetchall() if done.description else []

    def create_numbered(self, table: str) -> None:
        self.query(f"CREATE TABLE {table} (number BIGSERIAL PRIMARY KEY, position BIGINT NOT NULL)")

    def check(self) -> None:
        """PostgreSQL looks after itself."""


Database = SqliteDatabase | PostgresDatabase


def contents(database: Database) -> dict[str, Rows]:
    """Every row of every table; without what comes by itself, which is seals and how far the indexer has come."""
    found = {table: sorted(database.query(f"SELECT * FROM {table}"), key=repr) for table in TABLES if table != "seals"}
    return found | {"consumers": [row for row in found["consumers"] if row[0] not in ("conversations", "embeddings")]}


HOLD_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@contextmanager
def write_lock(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process holds the file's write lock; it lets go at a line of its input, or at the end."""
    command = [sys.executable, "-c", HOLD_LOCK, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "locked\n"
            yield holder
        finally:
            holder.kill()
