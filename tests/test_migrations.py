"""Migrations: they make what `schema.sql` makes, keep what is there, and take away only what they made."""

import hashlib
import re
import sqlite3
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import mnemon
from mnemon import sync
from mnemon.backends import schema
from mnemon.backends.migrations import BASE, migrate
from mnemon.backends.postgres import opening as postgres_opening
from mnemon.backends.postgres.connection import Location as PostgresLocation
from mnemon.backends.schema import HEAD
from mnemon.backends.sqlite import opening as sqlite_opening
from mnemon.backends.sqlite.connection import Location as SqliteLocation
from mnemon.errors import MnemonError, SchemaMismatch, SchemaTooNew, SchemaTooOld
from mnemon.settings import Settings

Description = dict[tuple[str, ...], str]

PATIENCE = 60
INDEX_OF_A_SPACE = "idx_memory_vectors_space_"  # is made beside the schema, once there is a space
DIFFERENT = {"memory_vectors": {"number"}, "memory_texts": {"scope", "terms"}}
FULL_TEXT = re.compile("memory_(terms|vocabulary)")  # the index over words is a table in SQLite, and others below it


OLD_MEMORIES = (
    ("city", 1, False, False, '"Alice lives in the city of Bergen"'),
    ("city", 2, True, False, '"Alice lives in the city of Oslo"'),
    ("town", 1, False, False, '"Alice lives in the city of Rome"'),
    ("town", 2, True, True, '"Alice lives in the city of Rome"'),
)


class Database(ABC):
    """An empty database, and ways to look at it behind the program's back."""

    settings: Settings

    @abstractmethod
    def execute(self, statement: str) -> list[tuple[Any, ...]]: ...
    @abstractmethod
    def migrate(self, target: str = HEAD) -> None: ...
    @abstractmethod
    def describe(self) -> Description:
        """Everything that the schema consists of."""

    @abstractmethod
    def fingerprint(self) -> object:
        """Changes with the schema or the content."""

    @property
    def url(self) -> str:
        return self.settings.url

    @property
    def version(self) -> str:
        return self.execute("SELECT version_num FROM mnemon_schema")[0][0]

    def open(self, **settings: Any) -> sync.BlockingMemory:
        return sync.open(self.url, postgres_schema=self.settings.postgres_schema, seal_interval=None, **settings)

    def tables(self) -> set[str]:
        return {name for kind, name, *_ in self.describe() if kind == "table"}


class SqliteDatabase(Database):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = Settings(url=f"sqlite:///{path}")

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.path)
        try:
            with connection:
                return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def migrate(self, target: str = HEAD) -> None:
        sqlite_opening.migrate_location(SqliteLocation.parse(self.url), self.settings, target)

    def describe(self) -> Description:
        rows = self.execute("SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'")
        return {(kind, name): re.sub(r"\s*([(),])\s*|\s+", r"\1 ", sql) for kind, name, sql in rows}

    def fingerprint(self) -> object:
        return {
            file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in self.path.parent.glob("*.db*")
        }  # fmt: skip


# What makes up a schema: kind, name, definition. The schema's own name is left out.
CATALOG = """
WITH own AS (SELECT oid, relname, relkind FROM pg_class WHERE relnamespace = '"{0}"'::regnamespace)
SELECT CASE relkind WHEN 'r' THEN 'table' ELSE relkind::text END, relname, '' FROM own WHERE relkind <> 'i'
UNION ALL
SELECT 'column', relname || '.' || attname, concat_ws(' ',
    (SELECT count(*) FROM pg_attribute AS before WHERE before.attrelid = a.attrelid AND before.attnum < a.attnum
        AND before.attnum > 0 AND NOT before.attisdropped),
    format_type(atttypid, atttypmod), collname, attnotnull, attidentity, attstattarget, pg_get_expr(adbin, adrelid))
FROM own JOIN pg_attribute AS a ON a.attrelid = own.oid LEFT JOIN pg_collation AS c ON c.oid = attcollation
    LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE relkind = 'r' AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'constraint', relname || '.' || conname, pg_get_constraintdef(k.oid)
FROM own JOIN pg_constraint AS k ON k.conrelid = own.oid
UNION ALL
SELECT 'index', relname, pg_get_indexdef(oid) FROM own WHERE relkind = 'i'
UNION ALL
SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = '"{0}"'::regnamespace
UNION ALL
SELECT 'ownership', own.relname, refobjid::regclass::text || '.' || refobjsubid
FROM own JOIN pg_depend ON objid = own.oid AND classid = 'pg_class'::regclass AND deptype IN ('a', 'i')
WHERE relkind = 'S'
"""


class PostgresDatabase(Database):
    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.settings = Settings(url=url, postgres_schema=name)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, options=f"-c search_path={self.name}") as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def migrate(self, target: str = HEAD) -> None:
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {self.name}")
        postgres_opening.migrate_location(PostgresLocation.parse(self.settings), target)

    def describe(self) -> Description:
        rows = [row for row in self.execute(CATALOG.format(self.name)) if not row[1].startswith(INDEX_OF_A_SPACE)]
        return {(kind, name): text.replace(f"{self.name}.", "").replace(self.name, "") for kind, name, text in rows}

    def fingerprint(self) -> object:
        counted = {table: self.execute(f"SELECT count(*), max(xmin::text) FROM {table}") for table in self.tables()}
        return self.describe(), counted


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return SqliteDatabase(tmp_path / "mnemon.db")
    return PostgresDatabase(request.getfixturevalue("postgres_server"), request.getfixturevalue("postgres_schema"))


@pytest.fixture
def another(database: Database, tmp_path: Path) -> Iterator[Database]:
    """A second one of the same kind."""
    if isinstance(database, SqliteDatabase):
        yield SqliteDatabase(tmp_path / "another.db")
        return
    assert isinstance(database, PostgresDatabase)
    other = PostgresDatabase(database.url, f"{database.name}_x")
    yield other
    database.execute(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {other.name} CASCADE")


@pytest.fixture
def older(database: Database) -> Database:
    """A database as the first release left it, with something in it."""
    database.migrate("0001")
    database.execute(
        "INSERT INTO sessions (id, app_name, user_id, metadata, created_at, last_update_time) "
        """VALUES ('s1', 'app', 'alice', '{"kept": true}', 1, 1)"""
    )
    return database


def test_the_schema_file_makes_what_all_migrations_make(database: Database, another: Database) -> None:
    # given one database that is made from the schema file, and one by migrating from nothing
    database.open().close()
    another.migrate()
    # then there is no difference in a table, column, default, check, index or function
    made, migrated = database.describe(), another.describe()
    assert made == migrated
    assert {"sessions", "events", "state", "tasks", "journal", "memory_entries", "mnemon_schema"} <= database.tables()
    assert ("index", "idx_memory_thread") in made
    assert database.version == another.version == HEAD


@pytest.mark.servers
def test_both_databases_have_the_same_tables_columns_and_indexes(
    tmp_path: Path, postgres_server: str, postgres_schema: str
) -> None:
    sqlite, postgres = SqliteDatabase(tmp_path / "m.db"), PostgresDatabase(postgres_server, postgres_schema)
    for database in (sqlite, postgres):
        database.migrate()

    def columns(table: str) -> list[str]:
        found = sqlite.execute(f"SELECT name, 1 FROM pragma_table_xinfo('{table}')")
        return sorted(name for name, _ in found)

    described = postgres.describe()
    tables = {table for table in sqlite.tables() if not FULL_TEXT.match(table)}
    assert tables == postgres.tables()
    for table in tables:
        named = {
            name.removeprefix(f"{table}.")
            for kind, name in described
            if kind == "column" and name.startswith(f"{table}.")
        }
        assert set(columns(table)) ^ named == DIFFERENT.get(table, set())
    ours = {name for kind, name in sqlite.describe() if kind == "index"}
    theirs = {name for kind, name in described if kind == "index" and not re.search("_(pkey|key|pkc)$", name)}
    assert theirs - ours == {"idx_memory_texts_terms"}
    assert ours <= theirs
    assert len(ours) > 20


def test_opening_an_older_database_migrates_it_and_keeps_what_it_holds(older: Database, another: Database) -> None:
    another.migrate()
    # when a program that needs the newest schema opens it
    with older.open() as memory:
        # then what was there is there, and what is new can be used
        session = memory.sessions.get_session("s1")
        assert session is not None
        assert session.metadata == {"kept": True}
        memory.sessions.append_event("s1", {"n": 1})
        memory.memories.add_memory("user:alice", "city", "Oslo")
    assert older.version == HEAD
    assert older.describe() == another.describe()


def test_the_memories_of_an_older_database_can_be_found(database: Database) -> None:
    # given a database from before memories were indexed, with one that was changed and one that was deleted
    database.migrate("0002")
    for number, (key, version, current, deleted, value) in enumerate(OLD_MEMORIES, 1):
        database.execute(
            "INSERT INTO memory_entries (namespace, key, value, memory_type, version, is_current, is_deleted, "
            f"created_at, updated_at, valid_from) VALUES ('user:alice', '{key}', '{value}', 'semantic', {version}, "
            f"{current}, {deleted}, {number}, {number}, {number})"
        )
        database.execute(
            "INSERT INTO journal (at, entity, entity_id, operation, version, namespace) "
            f"VALUES ({number}, 'memory', '{key}', 'update', {version}, 'user:alice')"
        )
    with database.open() as memory:
        memory.settled()
        found = [hit.memory.value for hit in memory.recall("in which city does Alice live?", namespaces=["user"])]
    assert found == ["Alice lives in the city of Oslo"]


async def test_the_asynchronous_face_migrates_too(older: Database) -> None:
    async with mnemon.open(older.url, postgres_schema=older.settings.postgres_schema) as memory:
        assert await memory.memories.get_memory("user:alice", "city") is None
    assert older.version == HEAD


def test_an_older_database_is_left_alone_if_migrating_is_switched_off(older: Database) -> None:
    before = older.fingerprint()
    with pytest.raises(SchemaTooOld, match=r"schema 0001, this program needs \d+.*migrate=True"):
        older.open(migrate=False)
    assert older.fingerprint() == before


def test_a_newer_database_is_refused_and_not_touched(database: Database) -> None:
    # given a database of a program from the future
    database.open().close()
    database.execute("UPDATE mnemon_schema SET version_num = '9999'")
    before = database.fingerprint()
    # when this one opens it, then it says so, whatever the settings allow
    for allowed in (True, False):
        with pytest.raises(SchemaTooNew, match=r"9999.*upgrade the package"):
            database.open(migrate=allowed)
    # and even when told to migrate it, it does not know how
    with pytest.raises(SchemaMismatch, match="9999"):
        database.migrate()
    assert database.fingerprint() == before


def test_migrating_again_changes_nothing(database: Database) -> None:
    database.open().close()
    before = database.describe()
    database.migrate()
    database.migrate()
    assert database.describe() == before
    assert database.version == HEAD


def test_going_down_removes_only_what_going_up_made(database: Database) -> None:
    # given a full database in which somebody else keeps a table too
    with database.open() as memory:
        memory.sessions.create_session("s1", "app", "alice")
        memory.memories.add_memory("user:alice", "city", "Oslo")
    database.execute("CREATE TABLE foreigner (id INTEGER, note TEXT)")
    database.execute("INSERT INTO foreigner VALUES (1, 'mine')")
    everything = database.describe()
    # when it goes down by one revision, then what agents make and do is gone and nothing else
    database.migrate("0003")
    found = database.describe()
    gone = everything.keys() - found.keys()
    works = "artifacts|workspace|agent|document|reviews"
    flow = "working|scratch|episodes|memory_uses|archive|growth|data_keys"
    assert all(re.match(f"(idx_)?({works}|{flow})", name) for _, name in gone), gone
    # when it goes down by one more, then what finds memories is gone and nothing else
    database.migrate("0002")
    gone = found.keys() - database.describe().keys()
    assert all(re.match("(S|idx_)?(memory_(vectors|texts|terms|vocab)|vector_|embedding_)", n) for _, n in gone), gone
    assert {name for kind, name in gone if kind == "table"} >= {"memory_vectors", "memory_texts", "vector_spaces"}
    assert database.execute("SELECT key FROM memory_entries") == [("city",)]
    # when it goes down by one more, then the memories are gone and nothing else
    database.migrate("0001")
    gone = found.keys() - database.describe().keys()
    assert all(re.search("memory|vector|embedding", name) for _, name in gone), gone
    assert ("table", "memory_entries") in gone
    assert database.execute("SELECT id FROM sessions") == [("s1",)]
    # when it comes up again, then all is as it was, but for what was in the memories
    database.migrate()
    assert database.describe() == everything
    # when it goes all the way down, then only the other's table is left
    database.migrate(BASE)
    assert database.tables() == {"foreigner"}
    assert {name.split(".")[0] for kind, name in database.describe()} == {"foreigner"}
    assert database.execute("SELECT id, note FROM foreigner") == [(1, "mine")]


def test_what_went_all_the_way_down_can_be_made_anew(database: Database) -> None:
    database.open().close()
    before = database.describe()
    database.migrate(BASE)
    database.migrate(BASE)
    assert database.describe() == {}
    database.open().close()
    assert database.describe() == before


def test_a_migration_that_fails_leaves_nothing_behind(older: Database) -> None:
    # given a database in which the last step of the next revision cannot succeed
    older.execute("CREATE INDEX idx_memory_thread ON sessions (created_at)")
    before = older.describe()
    # when it is opened, then the error is one of ours
    with pytest.raises(MnemonError, match="idx_memory_thread"):
        older.open()
    # and the steps before are undone as well
    assert older.describe() == before
    assert older.version == "0001"
    # and once the obstacle is gone, it is migrated
    older.execute("DROP INDEX idx_memory_thread")
    older.open().close()
    assert older.version == HEAD


OPEN = """
import os, sys
import alembic, sqlalchemy
from mnemon import sync
from mnemon.backends import migrations

url, schema, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sync.open("sqlite://", embedder="none", background=False).close()  # so that all begin with what they import
beginning, begin = os.pipe()
children = []
for number in range(count):
    children.append(os.fork())
    if children[-1] == 0:
        os.close(begin)
        os.read(beginning, 1)  # until nobody can write
        with sync.open(url, postgres_schema=schema, seal_interval=None, embedder="none") as memory:
            memory.memories.add_memory("user:alice", str(number), "was here")
        os._exit(0)
os.close(begin)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


def open_together(database: Database, count: int = 5) -> None:
    """Processes that open the database at the same moment, and then write to it."""
    command = [sys.executable, "-c", OPEN, database.url, database.settings.postgres_schema, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")


def test_several_processes_may_migrate_at_once(older: Database) -> None:
    open_together(older)
    assert older.version == HEAD
    assert older.execute("SELECT version_num FROM mnemon_schema") == [(HEAD,)]
    assert sorted(older.execute("SELECT key FROM memory_entries")) == [(str(n),) for n in range(5)]
    assert older.execute("SELECT id FROM sessions") == [("s1",)]


def test_several_processes_may_create_it_at_once(database: Database) -> None:
    open_together(database)
    assert database.execute("SELECT version_num FROM mnemon_schema") == [(HEAD,)]
    assert sorted(database.execute("SELECT key FROM memory_entries")) == [(str(n),) for n in range(5)]


def test_a_database_with_the_newest_schema_is_opened_without_alembic(database: Database) -> None:
    database.open().close()
    script = (
        "import sys; from mnemon import sync; "
        "sync.open(sys.argv[1], postgres_schema=sys.argv[2]).close(); "
        "print({'alembic', 'sqlalchemy'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", script, database.url, database.settings.postgres_schema]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout == "set()\n"


def test_the_newest_revision_is_the_one_that_the_program_needs() -> None:
    folders = Path(schema.__file__).parent.glob("*/migrations/versions")
    newest = {folder.parts[-3]: max(file.name[:4] for file in folder.glob("*.py")) for folder in folders}
    assert newest == {"sqlite": HEAD, "postgres": HEAD}


def test_a_revision_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(tmp_path / "m.db", isolation_level=None)

    with pytest.raises(SchemaMismatch, match="0815"):
        migrate("sqlite", connect, "BEGIN IMMEDIATE", "0815")
