"""A PostgreSQL store when things go wrong: lost connections, refused statements, bad settings, closing."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from mnemon import sync
from mnemon.backends.postgres import database, opening
from mnemon.coroutines import complete
from mnemon.errors import (
    IntegrityError,
    InvalidSettings,
    InvalidValue,
    MnemonError,
    SchemaMismatch,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    ValueTooLarge,
)
from mnemon.ports import Backend, Raced, Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import Query

ADD = Query("add", "INSERT INTO consumers (name, updated_at) VALUES (:name, 0)")
ALL = Query("all", "SELECT name FROM consumers ORDER BY name")
ONE = Query("one", "SELECT 1")
PATIENCE = 30


class Server:
    """The server, as an administrator sees it; `url` names the sessions of one test."""

    def __init__(self, url: str, schema: str) -> None:
        self.url = f"{url}?application_name={schema}"
        self.schema = schema
        self.settings = Settings(url=self.url, postgres_schema=schema)
        self._url = url

    def execute(self, statement: str, **params: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self._url, autocommit=True, options=f"-c search_path={self.schema}") as connection:
            cursor = connection.execute(statement.encode(), params)
            return cursor.fetchall() if cursor.description else []

    def sessions(self) -> int:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %(name)s"
        return self.execute(query, name=self.schema)[0][0]

    def cut(self) -> int:
        """End every session of the store; how many there were."""
        query = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = %(name)s"
        return self.execute(query, name=self.schema)[0][0]


@pytest.fixture
def server(postgres_server: str, postgres_schema: str) -> Server:
    return Server(postgres_server, postgres_schema)


@pytest_asyncio.fixture(params=["async", "blocking"])
async def store(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """Both faces; the blocking one never suspends, so that a test may await it as well."""
    backend = await opening.open_async(server.settings) if request.param == "async" else _blocking(server.settings)
    yield backend.store
    await backend.store.close()


def _blocking(settings: Settings) -> Backend:
    return opening.open_blocking(settings)


async def names(store: Store) -> list[str]:
    return [name for (name,) in await store.fetch(ALL, {})]


def adding(name: str) -> Callable[[Transaction], Any]:
    return lambda tx: tx.execute(ADD, {"name": name})


# -- lost connections


async def test_connections_lost_while_idle_are_replaced_unnoticed(store: Store, server: Server) -> None:
    await store.write(adding("before"))
    for request in (
        lambda: store.write(adding("after")),
        lambda: store.read(lambda tx: tx.fetch_all(ALL, {})),
        lambda: store.fetch(ALL, {}),
        store.scrub,
    ):
        assert server.cut() >= 1
        await request()
    assert await names(store) == ["after", "before"]


async def test_a_connection_lost_in_mid_transaction_is_reported_and_nothing_kept(store: Store, server: Server) -> None:
    runs = 0

    async def unit(tx: Transaction) -> None:
        nonlocal runs
        runs += 1
        await tx.execute(ADD, {"name": "half"})
        server.cut()
        await tx.execute(ADD, {"name": "other half"})

    with pytest.raises(StoreUnavailable, match="check that the server runs"):
        await store.write(unit)
    assert runs == 1
    assert await names(store) == []
    await store.write(adding("next"))
    assert await names(store) == ["next"]


async def test_a_connection_lost_during_the_commit_leaves_it_open_what_became_of_it(
    store: Store, server: Server
) -> None:
    # given a server that ends the session in the middle of the commit
    server.execute(
        "CREATE FUNCTION die() RETURNS TRIGGER LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
    )
    server.execute(
        "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON consumers DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION die()"
    )
    with pytest.raises(StoreUnavailable, match="not known whether the write was kept"):
        await store.write(adding("x"))


async def test_a_task_that_is_cancelled_gives_its_connection_back(server: Server) -> None:
    backend = await opening.open_async(Settings(url=server.url, postgres_schema=server.schema, pool_size=1))
    nap = Query("nap", "SELECT pg_sleep(30)")

    async def unit(tx: Transaction) -> None:
        await tx.execute(ADD, {"name": "cancelled"})
        await tx.fetch_one(nap, {})

    for request in (lambda: backend.store.write(unit), lambda: backend.store.fetch(nap, {})):
        task = asyncio.create_task(request())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await names(backend.store) == []
    await backend.store.close()


# -- what the server refuses


@pytest.mark.parametrize(
    ("state", "error", "advice"),
    [
        ("23505", IntegrityError, ""),
        ("53100", StoreFull, "free some space"),
        ("25006", StoreReadOnly, "connect to the primary"),
        ("54000", ValueTooLarge, "shorter namespace or key"),
        ("XX001", StoreCorrupt, "restore it from a backup"),
        ("55P03", StoreBusy, "held a lock"),
        ("57014", StoreBusy, "statement_timeout"),
        ("42P01", SchemaMismatch, "changed or removed"),
        ("42501", StoreUnavailable, "the right to"),
        ("22003", InvalidValue, "cannot store"),
        ("53300", StoreUnavailable, "check that the server runs"),
        ("57P03", StoreUnavailable, "check that the server runs"),
        ("0A000", StoreError, "surprise"),
    ],
)
async def test_each_kind_of_failure_has_its_error(
    store: Store, state: str, error: type[MnemonError], advice: str
) -> None:
    fail = Query("fail", f"DO $$ BEGIN RAISE SQLSTATE '{state}' USING MESSAGE = 'surprise'; END $$")

    async def unit(tx: Transaction) -> None:
        await tx.execute(ADD, {"name": "x"})
        await tx.execute(fail, {})

    requests = (lambda: store.write(unit), lambda: store.read(lambda tx: tx.execute(fail, {})))
    for request in (*requests, lambda: store.fetch(fail, {})):
        with pytest.raises(error, match="surprise") as caught:
            await request()
        assert type(caught.value) is error
        assert advice in str(caught.value)
    assert await names(store) == []


@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_a_unit_that_the_server_gave_up_runs_again(store: Store, state: str) -> None:
    fail = Query("fail", f"DO $$ BEGIN RAISE SQLSTATE '{state}'; END $$")
    runs: list[int] = []

    async def unit(tx: Transaction) -> int:
        runs.append(1)
        await tx.execute(ADD, {"name": f"run {len(runs)}"})
        if len(runs) < 3:
            await tx.execute(fail, {})
        return len(runs)

    assert await store.write(unit) == 3
    assert await names(store) == ["run 3"]


async def test_a_unit_is_not_run_again_for_ever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PATIENCE", 0.05)

    async def unit(tx: Transaction) -> None:
        await tx.execute(ADD, {"name": "x"})
        raise Raced

    with pytest.raises(StoreBusy, match="other writers were quicker"):
        await store.write(unit)
    assert await names(store) == []


async def test_a_unit_that_ignores_a_failure_is_not_taken_for_written(store: Store) -> None:
    async def unit(tx: Transaction) -> None:
        await tx.execute(ADD, {"name": "x"})
        with pytest.raises(psycopg.IntegrityError):
            await tx.execute(ADD, {"name": "x"})

    with pytest.raises(StoreError, match="went on after a statement of it had failed"):
        await store.write(unit)
    assert await names(store) == []


async def test_a_read_cannot_write(store: Store) -> None:
    with pytest.raises(StoreReadOnly):
        await store.read(adding("x"))
    assert await names(store) == []


async def test_a_pool_that_is_used_up_says_how_to_enlarge_it(server: Server) -> None:
    tight = Settings(url=server.url, postgres_schema=server.schema, pool_size=1, connect_timeout=0.3)
    backend = await opening.open_async(tight)

    async def unit(tx: Transaction) -> None:
        await backend.store.fetch(ONE, {})

    with pytest.raises(StoreUnavailable, match="raise pool_size"):
        await backend.store.read(unit)
    assert await backend.store.fetch(ONE, {}) == [(1,)]
    await backend.store.close()


def test_a_key_that_no_index_can_hold_is_too_large(server: Server) -> None:
    with sync.open(server.url, postgres_schema=server.schema, seal_interval=None) as memory:
        segments = [
            "".join(chr(0x4E00 + (n * 7919) % 20000) for n in range(start, start + 250)) for start in (0, 250, 500)
        ]
        with pytest.raises(ValueTooLarge, match="shorter namespace or key"):
            memory.memories.add_memory(f"user:{':'.join(segments)}", segments[0] * 2, 1)
        assert memory.memories.search_memories().items == ()


def test_json_comes_back_byte_for_byte(server: Server) -> None:
    value = {"nul": "a\0b", "zero": -0.0, "big": 2**63, "tiny": 5e-324, "😀": ["é", "\u2028", None], "b": 1, "a": 2}
    with sync.open(server.url, postgres_schema=server.schema, seal_interval=None) as memory:
        memory.memories.add_memory("user:a", "k", value)
        found = memory.memories.get_memory("user:a", "k")
        assert found is not None
        assert list(found.value) == list(value)
        assert found.value == value


# -- opening


@pytest.mark.parametrize("name", ["", "a-b", "1a", 'a"b', "pg_mine", "a" * 64, "a b", "é"])
def test_a_schema_name_that_cannot_be_one_is_refused(postgres_server: str, name: str) -> None:
    with pytest.raises(InvalidSettings, match="postgres_schema"):
        opening.open_blocking(Settings(url=postgres_server, postgres_schema=name))


def test_a_schema_name_is_taken_as_it_is_written(server: Server) -> None:
    name = f"Mixed_{server.schema[-8:]}"
    try:
        with sync.open(server.url, postgres_schema=name, seal_interval=None) as memory:
            memory.sessions.create_session("s1", "app", "alice")
        assert server.execute(f'SELECT id FROM "{name}".sessions') == [("s1",)]
    finally:
        server.execute(f'SET client_min_messages = warning; DROP SCHEMA "{name}" CASCADE')


def test_a_url_that_cannot_be_read_is_refused_without_being_quoted() -> None:
    for url in ("postgresql://u:hush%ush@h/d", "postgresql://u:hush@h:port:/d?nonsense=1"):
        with pytest.raises(InvalidSettings, match="postgresql://user:password@host") as caught:
            opening.open_blocking(Settings(url=url))
        assert "hush" not in str(caught.value)


def test_a_database_that_does_not_exist_is_unavailable(postgres_server: str) -> None:
    url = postgres_server.replace("/postgres", "/nowhere")
    with pytest.raises(StoreUnavailable, match=r'"nowhere" does not exist.*check'):
        opening.open_blocking(Settings(url=url))


def test_a_schema_with_other_tables_is_refused_and_not_touched(server: Server) -> None:
    server.execute(f"CREATE SCHEMA {server.schema}; CREATE TABLE foreigner (id INTEGER)")
    with pytest.raises(SchemaMismatch, match="choose another postgres_schema"):
        opening.open_blocking(server.settings)
    query = "SELECT relname FROM pg_class WHERE relnamespace = %(name)s::regnamespace"
    assert server.execute(query, name=server.schema) == [("foreigner",)]


def test_a_server_that_is_too_old_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_OLDEST", 990000)
    with pytest.raises(StoreUnavailable, match="needs PostgreSQL 16 or newer"):
        opening.open_blocking(server.settings)
    assert server.execute("SELECT to_regnamespace(%(name)s)", name=server.schema) == [(None,)]


def test_a_database_that_cannot_hold_all_text_is_refused(server: Server) -> None:
    name = f"latin_{server.schema[-8:]}"
    server.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0")
    try:
        with pytest.raises(StoreUnavailable, match=r"LATIN1.*ENCODING 'UTF8'"):
            opening.open_blocking(Settings(url=server.url.replace("/postgres?", f"/{name}?")))
    finally:
        server.execute(f"DROP DATABASE {name}")


@pytest.fixture
def limited(server: Server) -> Iterator[str]:
    """The URL of a user who may create nothing by default."""
    role = f"role_{server.schema[-8:]}"
    server.execute(f"CREATE ROLE {role} LOGIN")
    yield server.url.replace("mnemon@", f"{role}@")
    server.execute(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {server.schema} CASCADE")
    server.execute(f"DROP ROLE {role}")


def test_a_user_without_rights_needs_only_a_schema_of_its_own(server: Server, limited: str) -> None:
    settings = Settings(url=limited, postgres_schema=server.schema)
    with pytest.raises(StoreUnavailable, match="the right to create and use the schema"):
        opening.open_blocking(settings)
    server.execute(f"CREATE SCHEMA {server.schema} AUTHORIZATION role_{server.schema[-8:]}")
    backend = opening.open_blocking(settings)
    complete(backend.store.write(adding("x")))
    complete(backend.store.close())


def test_a_session_that_is_read_only_by_default_can_read(server: Server) -> None:
    # given a database, and a URL with options of its own that forbid writing
    opened = opening.open_blocking(server.settings)
    complete(opened.store.write(adding("x")))
    complete(opened.store.close())
    url = f"{server.url}&options=-c%20default_transaction_read_only%3Don"
    backend = opening.open_blocking(Settings(url=url, postgres_schema=server.schema))
    # then it can be read, not written, and the housekeeper has nothing to do
    assert backend.read_only
    assert not opened.read_only
    assert complete(backend.store.fetch(ALL, {})) == [("x",)]
    with pytest.raises(StoreReadOnly, match="connect to the primary"):
        complete(backend.store.write(adding("y")))
    complete(backend.store.close())


def test_a_missing_driver_is_named() -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from mnemon import errors, sync\n"
        "try: sync.open('postgresql://h/d')\n"
        "except errors.InvalidSettings as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert "pip install 'mnemon[postgres]'" in done.stdout


# -- scrubbing


async def test_scrubbing_leaves_nothing_in_the_files_of_the_memories(store: Store, server: Server) -> None:
    # given a memory that was deleted
    add = (
        "INSERT INTO memory_entries (namespace, key, value, memory_type, created_at, updated_at, valid_from) "
        "VALUES ('user:a', 'k', '\"a secret\"', 'semantic', 0, 0, 0)"
    )
    await store.write(lambda tx: tx.execute(Query("add", add), {}))
    await store.write(lambda tx: tx.execute(Query("delete", "DELETE FROM memory_entries"), {}))

    def content() -> bytes:
        server.execute("CHECKPOINT")
        file = "pg_relation_filepath('memory_entries')"
        return bytes(server.execute(f"SELECT pg_read_binary_file({file})")[0][0])

    assert b"a secret" in content()
    # when the store is scrubbed, then its bytes are gone too
    assert await store.scrub()
    assert b"a secret" not in content()


# -- closing


async def test_closing_finishes_what_runs_and_leaves_nothing_open(server: Server) -> None:
    before = set(threading.enumerate())
    backend = await opening.open_async(server.settings)
    begun = asyncio.Event()

    async def slow(tx: Transaction) -> None:
        begun.set()
        await tx.execute(ADD, {"name": "slow"})
        await tx.fetch_one(Query("nap", "SELECT pg_sleep(0.3)"), {})

    # given a store that has used every part of it, with a write under way
    await backend.store.write(adding("first"))
    await backend.store.wait(backend.store.ticket(), 0.01)
    complete(backend.upkeep.fetch(ONE, {}))
    writing = asyncio.create_task(backend.store.write(slow))
    await begun.wait()
    # when it is closed, twice
    await backend.store.close()
    await backend.store.close()
    # then the write was finished first, and no thread and no session is left
    assert writing.done()
    await writing
    assert server.execute("SELECT name FROM consumers ORDER BY name") == [("first",), ("slow",)]
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert not {name for name in left if not name.startswith("asyncio_")}
    deadline = time.monotonic() + PATIENCE
    while server.sessions():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.close()
    for request in (
        lambda: store.write(adding("x")),
        lambda: store.read(lambda tx: tx.fetch_all(ALL, {})),
        lambda: store.fetch(ALL, {}),
        store.scrub,
    ):
        with pytest.raises(StoreClosed, match="closed"):
            await request()


def test_a_store_that_was_never_used_closes_too(server: Server) -> None:
    backend = opening.open_blocking(server.settings)
    complete(backend.store.close())
    with pytest.raises(StoreClosed):
        complete(backend.upkeep.fetch(ONE, {}))
