"""Sessions of encrypted users: their logs, state and tasks work as ever, and stand sealed in the database."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

import mnemon
from mnemon.encryption.envelope import DataKey, Place, is_sealed, key_id_of
from mnemon.encryption.masters import new_master_key
from mnemon.encryption.tables import TABLES
from mnemon.ports import Store
from mnemon.testing import with_faults
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import peek, plant
from mnemon.values import SEALED

KEY = new_master_key("k1")
S: dict[str, Any] = {"session_id": "s1"}


def opening(folder: Path, *namespaces: str, keys: tuple[str, ...] = (KEY,), **settings: Any):
    chosen = {"background": False, "embedder": "none", **settings}
    return mnemon.open(f"sqlite:///{folder}/m.db", encrypted_namespaces=namespaces, encryption_keys=keys, **chosen)


async def sealed_in(store: Store, table: str) -> dict[str, int]:
    """How many rows of a table have each of its columns sealed; those that have none are left out."""
    columns = TABLES[table].sealed
    rows = await peek(store, f"SELECT {', '.join(columns)} FROM {table}")
    counts = {name: sum(is_sealed(row[at] or "") for row in rows) for at, name in enumerate(columns)}
    return {name: count for name, count in counts.items() if count}


async def begin(memory: mnemon.HybridMemoryService, user: str = "alice", session: str = "s1") -> None:
    await memory.sessions.create_session(
        session, "desk", user, "web", {"a": 1, "user:b": 2, "app:c": 3, "temp:d": 4, "project:e": 5}, metadata={"m": 1}
    )
    await memory.sessions.append_event(session, {"text": "hello"}, {"a": 2, "user:f": 6}, event_id="e1")
    await memory.sessions.append_event(session, {"text": "there"})
    task = await memory.tasks.create("sum", task_id=f"t-{session}", session_id=session, input=[1])
    await memory.tasks.update(task.id, "running")
    await memory.tasks.update(task.id, "failed", result={"r": 1}, error="too late")


@pytest.mark.parametrize(
    ("chosen", "is_sealed_session", "sealed_state"),
    [
        ("user:alice", True, ["a", "temp:d", "user:b", "user:f"]),
        ("user:alice:desk", True, ["a", "temp:d", "user:b", "user:f"]),
        ("session:s1", True, ["a", "temp:d"]),
        ("app:desk", True, ["a", "app:c", "temp:d"]),
        ("project:web", True, ["a", "project:e", "temp:d"]),
        ("temp", False, ["temp:d"]),
        ("user:alice:other", False, []),
        ("user:bob", False, []),
    ],
)
async def test_what_is_chosen_decides_what_is_sealed(
    tmp_path: Path, chosen: str, is_sealed_session: bool, sealed_state: list[str]
):
    async with opening(tmp_path, chosen) as memory:
        await begin(memory)
        store = parts_of(memory).store
        rows = await peek(store, "SELECT key, value FROM state ORDER BY key")
        assert [key for key, value in rows if is_sealed(value)] == sealed_state
        expected = [
            {"body": 2, "state_delta": 1}, {"metadata": 1}, {"input": 1, "result": 1, "error": 1},
        ]  # fmt: skip
        found = [await sealed_in(store, table) for table in ("events", "sessions", "tasks")]
        assert found == (expected if is_sealed_session else [{}, {}, {}])
        session = await memory.sessions.get_session("s1")
        assert session is not None
        assert session.state == {"a": 2, "user:b": 2, "user:f": 6, "app:c": 3, "temp:d": 4, "project:e": 5}


async def test_it_reads_as_it_was_written(tmp_path: Path):
    async with opening(tmp_path, "user", max_events_kept=5) as memory:
        await begin(memory)
        await memory.sessions.append_events("s1", [{"n": number} for number in range(8)])
        await memory.sessions.update_metadata("s1", {"m": 2})
        same = await memory.sessions.append_event("s1", {"text": "hello"}, {"user:f": 6, "a": 2}, event_id="e1")
        assert same.sequence == 1  # it is archived by now
        with pytest.raises(mnemon.EventExists):
            await memory.sessions.append_event("s1", {"text": "other"}, {"a": 2, "user:f": 6}, event_id="e1")
        assert await sealed_in(parts_of(memory).store, "archived_events") == {"body": 5, "state_delta": 1}
    async with opening(tmp_path, "user") as memory:
        sessions = memory.sessions
        session = await sessions.get_session("s1")
        assert session is not None
        assert (session.metadata, session.events[-1].body) == ({"m": 2}, {"n": 7})
        events = await sessions.events("s1", archived=True)
        assert [event.body for event in events[:3]] == [{"text": "hello"}, {"text": "there"}, {"n": 0}]
        assert events[0].state_delta == {"a": 2, "user:f": 6}
        assert [event.body for event in await sessions.events("s1", last=2)] == [{"n": 6}, {"n": 7}]
        assert (await sessions.events("s1", last=7, archived=True))[0].body == {"n": 1}
        assert [each.metadata for each in (await sessions.list_sessions()).items] == [{"m": 2}]
        assert [each.metadata for each in await sessions.list_active_sessions("alice")] == [{"m": 2}]
        task = await memory.tasks.get("t-s1")
        assert task is not None
        assert (task.input, task.result, task.error) == ([1], {"r": 1}, "too late")
        assert (await memory.tasks.list(session_id="s1")).items == (task,)
        await sessions.append_event("s1", {"author": "user", "text": "zanzibar"})
        assert "zanzibar" in (await memory.context("where to?", session_id="s1")).text


async def test_state_is_merged_compared_and_updated(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        state = memory.state
        await begin(memory)
        assert await state.merge({"a": 10, "new": 1, "user:b": 3, "app:c": 4}, **S) == {
            "a": 3, "new": 1, "user:b": 2, "app:c": 2,
        }  # fmt: skip
        assert await state.compare_and_set("a", 11, 3, **S) == 4
        with pytest.raises(mnemon.ConflictError, match="is version 4"):
            await state.compare_and_set("a", 12, 3, **S)
        with pytest.raises(mnemon.ConflictError, match="is version 1"):
            await state.compare_and_set("new", 12, 0, **S)
        assert await state.compare_and_set("app:plain", 1, 0, **S) == 1
        assert await state.compare_and_set("app:plain", 2, 1, **S) == 2
        assert await state.update("a", lambda value: value + 1, **S) == 12
        assert await state.update("fresh", lambda value: [value], default=0, **S) == [0]
        assert await state.delete("a", **S)
        assert await state.get("a", **S) is None
        assert await state.compare_and_set("a", "again", 0, **S) == 7  # the version never goes back
        assert await state.set("a", "and again", **S) == 8
        entry = await state.entry("a", **S)
        assert entry is not None
        assert (entry.value, entry.version) == ("and again", 8)
        assert {each.key: each.value for each in await state.entries("user:", **S)} == {"user:b": 3, "user:f": 6}
        theirs: dict[str, Any] = {"app_name": "desk", "user_id": "alice"}
        assert await state.set("user:b", "alone", **theirs) == 3
        assert await state.get("user:b", **theirs) == "alone"
        assert await state.get("user:b", **S) == "alone"


async def test_what_is_watched_is_seen_opened(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        position = await memory.position()
        await memory.state.set("user:b", "secret", **S)
        await memory.state.delete("user:f", **S)
        seen: list[tuple[str, Any]] = []
        async for entry in memory.state.watch("user:", after=position, **S):
            seen.append((entry.key, entry.value))
            if len(seen) == 2:
                break
        assert seen == [("user:b", "secret"), ("user:f", None)]


async def test_who_was_overtaken_reads_again(tmp_path: Path):
    """Given another writer between look and write, then nothing is left that was sealed for a wrong version."""
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        raced, faults = with_faults(memory)
        faults.race("put_entry", times=2)
        assert await raced.state.set("new", "ours", **S) == 1
        assert faults.statements["put_entry"] == 3
        assert await memory.state.get("new", **S) == "ours"


@pytest.mark.servers
async def test_writers_that_come_together_seal_for_the_right_versions(postgres_server: str):
    schema = "encrypted_sessions"
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    async with mnemon.open(
        postgres_server, postgres_schema=schema, background=False, embedder="none",
        encrypted_namespaces=("user:alice",), encryption_keys=(KEY,),
    ) as memory:  # fmt: skip
        await begin(memory, session="s1")
        await begin(memory, session="s2")
        sessions, state, working = memory.sessions, memory.state, memory.working
        await asyncio.gather(
            *(sessions.append_event(f"s{n % 2 + 1}", {"n": n}, {"user:n": n, f"user:{n}": n}) for n in range(20)),
            *(state.update("user:sum", lambda v: v + 1, default=0, session_id=f"s{n % 2 + 1}") for n in range(20)),
            *(working.set("s1", "pad", n) for n in range(10)),
        )
        assert await state.get("user:sum", **S) == 20
        entry = await state.entry("user:n", **S)
        assert entry is not None
        assert entry.version == 20
        pad = await working.get("s1", "pad")
        assert pad is not None
        assert pad.version == 10
        session = await sessions.get_session("s1")
        assert session is not None
        assert len(session.events) == 12
        store = parts_of(memory).store
        assert await sealed_in(store, "events") == {"body": 24, "state_delta": 22}
        assert await peek(store, "SELECT COUNT(*) FROM data_keys") == [(1,)]
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")


async def test_a_text_that_was_moved_is_noticed(tmp_path: Path):
    """Given sealed texts, when one is put into another row or column, then reading says that it was."""
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        await begin(memory, session="s2")
        await memory.state.set("b", 1, session_id="s2")
        store = parts_of(memory).store
        other = "(SELECT {1} FROM {0} WHERE {2})"
        events = ("events", "body", "session_id = 's1' AND sequence = 2")
        session, reads = memory.sessions.get_session, memory.state.get
        moves: list[tuple[str, str, str, Callable[[], Awaitable[object]]]] = [
            ("events", "body", "session_id = 's1' AND sequence = 1", lambda: memory.sessions.events("s1")),
            ("events", "state_delta", "session_id = 's1' AND sequence = 1", lambda: memory.sessions.events("s1")),
            ("state", "value", "namespace = 'session:s1' AND key = 'a'", lambda: reads("a", **S)),
            ("sessions", "metadata", "id = 's1'", lambda: session("s1")),
            ("tasks", "input", "id = 't-s1'", lambda: memory.tasks.get("t-s1")),
            ("tasks", "result", "id = 't-s1'", lambda: memory.tasks.get("t-s1")),
            ("tasks", "error", "id = 't-s1'", lambda: memory.tasks.get("t-s1")),
        ]
        for table, column, where, read in moves:
            [(before,)] = await peek(store, f"SELECT {column} FROM {table} WHERE {where}")
            twin = where.replace("s1", "s2")
            for source in ((table, column, twin), events):
                await plant(store, f"UPDATE {table} SET {column} = {other.format(*source)} WHERE {where}")
                with pytest.raises(mnemon.TamperedValue):
                    await read()
            await plant(store, f"UPDATE {table} SET {column} = :before WHERE {where}", before=before)
            assert await read() is not None
        await plant(store, "UPDATE state SET version = 9 WHERE namespace = 'session:s1' AND key = 'a'")
        with pytest.raises(mnemon.TamperedValue, match="version 9"):
            await memory.state.get("a", **S)


async def test_without_the_key_it_is_told_what_is_missing(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        await memory.sessions.create_session("s9", "desk", "bob", metadata={"open": True})
    async with opening(tmp_path, keys=()) as memory:
        reads: list[Callable[[], Awaitable[object]]] = [
            lambda: memory.sessions.get_session("s1"),
            lambda: memory.sessions.events("s1"),
            lambda: memory.sessions.events("s1", archived=True),
            lambda: memory.sessions.list_sessions(),
            lambda: memory.sessions.append_event("s1", {"text": "hello"}, event_id="e1"),
            lambda: memory.state.get("a", **S),
            lambda: memory.state.entries("user:", **S),
            lambda: memory.state.update("a", lambda value: value, **S),
            lambda: memory.tasks.get("t-s1"),
            lambda: memory.context("hello", session_id="s1"),
            lambda: memory.settled(5),
        ]
        for read in reads:
            with pytest.raises(mnemon.KeyUnavailable, match="set encryption_keys"):
                await read()
        open_one = await memory.sessions.get_session("s9")
        assert open_one is not None
        assert open_one.metadata == {"open": True}


async def test_what_was_said_can_be_recalled_and_is_sealed(tmp_path: Path):
    """Given a session of an encrypted user, then its memories are sealed too, also when it is gone."""
    async with opening(tmp_path, "user:alice", remember_events=("user",)) as memory:
        await begin(memory)
        await begin(memory, "bob", "s2")
        await memory.settled(10)
        store = parts_of(memory).store
        rows = await peek(store, "SELECT namespace, value FROM memory_entries")
        assert sorted((namespace, is_sealed(value)) for namespace, value in rows) == [
            ("session:s1", True), ("session:s1", True), ("session:s2", False), ("session:s2", False),
        ]  # fmt: skip
        hits = await memory.recall("event-0000000001", namespaces="session:s1")
        assert "hello" in [hit.memory.value for hit in hits]
        assert [each.value for each in await memory.memories.get_thread("s1")] == ["hello", "there"]
        await memory.sessions.delete_session("s1")
    async with opening(tmp_path, "user:alice", remember_events=("user",)) as memory:
        await memory.settled(10)
        store = parts_of(memory).store
        rows = await peek(store, "SELECT value, is_deleted FROM memory_entries WHERE namespace = 'session:s1'")
        assert sorted(bool(gone) for _, gone in rows) == [False, False, True, True]
        assert all(is_sealed(value) for value, _ in rows)
        await memory.remember("later", namespace="session:s1:notes")
        await memory.remember("open", namespace="session:never:notes")
        rows = await peek(store, "SELECT namespace, value FROM memory_entries WHERE namespace LIKE '%:notes'")
        assert {namespace: is_sealed(value) for namespace, value in rows} == {
            "session:s1:notes": True, "session:never:notes": False,
        }  # fmt: skip
        assert await peek(store, "SELECT namespace FROM data_keys") == [("user:alice",)]


async def test_a_task_stays_sealed_when_its_session_is_gone(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        await memory.sessions.delete_session("s1")
        await memory.tasks.update("t-s1", "pending")
        task = await memory.tasks.update("t-s1", "completed", result="secret")
        assert (task.input, task.result) == ([1], "secret")
        assert await sealed_in(parts_of(memory).store, "tasks") == {"input": 1, "result": 1}
        free = await memory.tasks.create("free", input="open")
        assert (await memory.tasks.update(free.id, "completed", result=1)).input == "open"
        assert await sealed_in(parts_of(memory).store, "tasks") == {"input": 1, "result": 1}


async def test_everything_may_be_chosen_and_nothing_again(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await begin(memory)
    async with opening(tmp_path, "") as memory:
        assert await memory.state.merge({"a": "x", "user:b": "y"}, **S) == {"a": 3, "user:b": 2}
        await memory.sessions.append_event("s1", {"n": 1}, {"a": "z"})
        free = await memory.tasks.create("free", input="sealed, too")
        assert await sealed_in(parts_of(memory).store, "tasks") == {"input": 1, "result": 1}
    async with opening(tmp_path) as memory:
        assert await memory.state.merge({"a": "plain", "user:b": "plain"}, **S) == {"a": 5, "user:b": 3}
        session = await memory.sessions.get_session("s1")
        assert session is not None
        assert [event.body for event in session.events] == [{"text": "hello"}, {"text": "there"}, {"n": 1}]
        assert (session.state["a"], session.metadata) == ("plain", {"m": 1})
        assert (await memory.tasks.update(free.id, "completed")).input == "sealed, too"
        assert await sealed_in(parts_of(memory).store, "state") == {}


async def test_who_may_not_write_makes_no_key(tmp_path: Path):
    async with opening(tmp_path, "user") as memory:
        bob = memory.as_principal(mnemon.Principal("bob", {"user:bob": "write"}))
        with pytest.raises(mnemon.AccessDenied):
            await bob.state.set("user:x", 1, app_name="desk", user_id="alice")
        with pytest.raises(mnemon.AccessDenied):
            await bob.sessions.create_session("s1", "desk", "alice")
        assert await peek(parts_of(memory).store, "SELECT * FROM data_keys") == []


async def test_a_text_that_would_seem_sealed_is_refused(tmp_path: Path):
    place = Place("tasks", "error", "", "t", 1)
    assert DataKey("k", bytes(32)).seal("x", place).startswith(SEALED)
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        [(sealed,)] = await peek(parts_of(memory).store, "SELECT error FROM tasks")
        assert key_id_of(sealed)
        await memory.tasks.update("t-s1", "pending")
        with pytest.raises(mnemon.InvalidValue, match="as an encrypted text does"):
            await memory.tasks.update("t-s1", "failed", error=sealed)
        await memory.state.set("app:copy", sealed, **S)  # where JSON stands, anything may
        assert await memory.state.get("app:copy", **S) == sealed


def test_the_blocking_face_does_the_same(tmp_path: Path):
    chosen: dict[str, Any] = {"encrypted_namespaces": "user:alice", "encryption_keys": KEY}
    with mnemon.sync.open(f"sqlite:///{tmp_path}/m.db", background=False, embedder="none", **chosen) as memory:
        memory.sessions.create_session("s1", "desk", "alice", initial_state={"a": 1}, metadata={"m": 1})
        memory.sessions.append_event("s1", {"text": "zanzibar"}, {"user:a": "quixotic"})
        assert memory.state.compare_and_set("a", 2, 1, session_id="s1") == 2
        memory.working.append("s1", ["marzipan"])
        assert [item.value for item in memory.working.recent("s1")] == ["marzipan"]
        session = memory.sessions.get_session("s1")
        assert session.state == {"a": 2, "user:a": "quixotic"}
        assert session.events[0].body == {"text": "zanzibar"}
    for file in tmp_path.iterdir():
        content = file.read_bytes() if file.is_file() else b""
        assert not any(word in content for word in (b"zanzibar", b"quixotic", b"marzipan"))


async def test_every_way_to_write_a_memory_of_the_session_seals_it(tmp_path: Path):
    async with opening(tmp_path, "user:alice", embedder="static") as memory:
        await memory.sessions.create_session("s1", "desk", "alice")
    for step in ("add", "update", "delete", "restore", "put"):
        async with opening(tmp_path, "user:alice", embedder="static") as memory:  # which knows of no session yet
            memories = memory.memories
            if step == "add":
                await memories.add_memory("session:s1", "k", {"v": "zanzibar"}, metadata={"m": "quixotic"})
            elif step == "update":
                await memories.update_memory("session:s1", "k", {"v": "marzipan"})
            elif step == "delete":
                await memories.delete_memory("session:s1", "k")
            elif step == "restore":
                await memories.restore_memory("session:s1", "k", 1)
            else:
                await memory.remember("halcyon", namespace="session:s1:notes", key="k")
            store = parts_of(memory).store
            rows = await peek(store, "SELECT value, metadata FROM memory_entries")
            assert all(is_sealed(text) for row in rows for text in row)
            words = {text for (text,) in await peek(store, "SELECT words FROM memory_texts")}
            assert words <= {"", "=k"}
            assert await peek(store, "SELECT COUNT(*) FROM memory_vectors") == [(0,)]
