"""Keys are rotated, and what is there is sealed anew, while everybody goes on; killed in between, it goes on later."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

import mnemon
from mnemon.encryption import TABLES
from mnemon.encryption.envelope import is_sealed, key_id_of
from mnemon.encryption.masters import new_master_key
from mnemon.keys.rows import OWNERS
from mnemon.model import Progress
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import journal_after, peek, plant

KEY, NEWER = new_master_key("k1"), new_master_key("k2")
ALICE, BOB, OPEN = "user:alice", "user:bob", "project:open"
SECRET = "zanzibar"
NOW = timedelta(0)
SETTINGS: dict[str, Any] = {"encryption_keys": (KEY,), "background": False, "embedder": "static"}
OLD = {"retention": [{"name": "attic", "namespace": f"{ALICE}:attic", "max_size": 0}]}


def opening(folder: Path, *encrypted: str, **settings: Any):
    return mnemon.open(f"sqlite:///{folder}/m.db", **{**SETTINGS, "encrypted_namespaces": encrypted, **settings})


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[mnemon.HybridMemoryService]:
    async with opening(tmp_path, "user", **OLD) as opened:
        yield opened


async def live(memory: mnemon.HybridMemoryService, said: str = SECRET) -> None:
    """Something in every service that seals."""
    await memory.sessions.create_session("s1", "chat", "alice", metadata={"about": said})
    await memory.sessions.append_event("s1", {"type": "message", "content": said}, {"user:mood": said, "step": said})
    await memory.tasks.create("look", task_id="t1", session_id="s1", input={"for": said})
    await memory.working.append("s1", [said])
    await memory.working.set("s1", "plan", said)
    await memory.artifacts.save("s1", "note.txt", said, metadata={"about": said})
    await memory.workspaces.create("w1", namespace=f"{ALICE}:work", metadata={"about": said})
    await memory.workspaces.write("w1", "a.txt", said, metadata={"about": said})
    await memory.workspaces.snapshot("w1", said)
    await memory.agents.create("a1", name="Ann", namespace=f"{ALICE}:agents", directives={"say": said})
    await memory.documents.add("d.md", namespace=f"{ALICE}:docs", content=f"# {said}\n\nMore of {said}.")
    await memory.store_episode([said], namespace=ALICE, title=said)
    for number in range(12):
        await memory.remember(f"{said} {number} {'x' * 400}", namespace=ALICE, key=f"k{number}", metadata={"a": said})
    await memory.memories.update_memory(ALICE, "k1", f"{said} again")
    await memory.memories.delete_memory(ALICE, "k2")
    await memory.remember(said, namespace=f"{ALICE}:attic", key="old")
    await memory.retention.apply(f"{ALICE}:attic")
    await memory.settled(20)


async def everything(memory: mnemon.HybridMemoryService) -> list[Any]:
    """What every service says."""
    agent = await memory.agents.get("a1")
    return [
        await memory.sessions.get_session("s1"),
        await memory.tasks.get("t1"),
        await memory.working.recent("s1"),
        await memory.working.get("s1", "plan"),
        await memory.artifacts.read("s1", "note.txt"),
        await memory.artifacts.get("s1", "note.txt"),
        await memory.workspaces.get("w1"),
        await memory.workspaces.read("w1", "a.txt"),
        await memory.workspaces.stat("w1", "a.txt"),
        [each.message for each in await memory.workspaces.log("w1")],
        agent and agent.directives,
        [(each.title, each.status) for each in await memory.documents.list(f"{ALICE}:docs")],
        list(await memory.episodes.list(namespace=ALICE)),
        [
            (each.value, each.metadata, each.version, each.is_deleted)
            for key in ("k0", "k1", "k2", "k7")
            for each in await memory.memories.get_memory_history(ALICE, key)
        ],
    ]


def where(folder: Path, word: str = SECRET) -> list[str]:
    """The files that have a word in their bytes."""
    return sorted(
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and word.encode() in file.read_bytes().lower()
    )


async def sealed_by(memory: mnemon.HybridMemoryService) -> set[str | None]:
    """The keys of all texts in all tables; None for one that is not sealed."""
    found: set[str | None] = set()
    for table in TABLES.values():
        left = " WHERE namespace <> ''" if table.name == "memory_entries" else ""  # without what was purged
        rows = await peek(parts_of(memory).store, f"SELECT {', '.join(table.sealed)} FROM {table.name}{left}")
        found |= {key_id_of(text) if is_sealed(text) else None for row in rows for text in row if text is not None}
    return found


def test_every_table_has_an_owner():
    assert OWNERS.keys() == TABLES.keys()


async def test_what_was_written_before_is_encrypted_and_gone_from_the_files(tmp_path: Path):
    async with opening(tmp_path, **OLD) as memory:
        await live(memory)
        before = await everything(memory)
    assert {"m.db"} < {Path(name).name for name in where(tmp_path)}
    async with opening(tmp_path, "user", **OLD) as memory:
        status = await memory.keys.status()
        [alice] = status.namespaces
        assert (alice.namespace, alice.keys, alice.plain > 20, alice.plain_contents) == (ALICE, (), True, 3)
        assert not status.is_settled
        seen: list[Progress] = []
        done = await memory.keys.reseal(grace=NOW, progress=seen.append, actor="eve")
        assert (done.rows, done.contents, done.kept_contents) == (alice.plain, alice.plain_contents, 0)
        assert (done.scrubbed, done.flaws) == (True, ())
        assert seen[-1].done == seen[-1].total >= done.rows + done.contents
        assert where(tmp_path) == []
        assert await everything(memory) == before
        status = await memory.keys.status()
        assert status.is_settled
        assert status.namespaces[0].rows == alice.plain
        assert (await memory.keys.reseal(grace=NOW)) == mnemon.Resealed(0, 0, 0, True)
        assert await peek(parts_of(memory).store, "SELECT COUNT(*) FROM embedding_cache") == [(0,)]
        assert "zanz" not in str(await peek(parts_of(memory).store, "SELECT words FROM memory_texts"))
        assert (await memory.artifacts.verify(grace=NOW)).flaws == ()
        [archive] = await memory.retention.archives(f"{ALICE}:attic")
        assert (await memory.retention.restore(archive.id)).memories == 1
    assert where(tmp_path) == []


async def test_a_new_key_seals_everything_and_the_old_one_can_go(memory: mnemon.HybridMemoryService, tmp_path: Path):
    await live(memory)
    before = await everything(memory)
    [old] = await sealed_by(memory)
    [new] = await memory.keys.rotate(ALICE, actor="eve")
    assert (new.namespace, new.retired_at) == (ALICE, None)
    assert await everything(memory) == before
    await memory.remember("more", namespace=ALICE, key="more")
    assert await sealed_by(memory) == {old, new.id}
    assert await memory.keys.drop(grace=NOW) == ()  # it is needed still
    [alice] = (await memory.keys.status()).namespaces
    assert [key.id for key in alice.keys] == [old, new.id]
    assert alice.outdated == alice.keys[0].rows + alice.keys[0].contents > 20

    done = await memory.keys.reseal(ALICE, grace=NOW)
    assert (done.contents, done.flaws) == (3, ())
    assert await sealed_by(memory) == {new.id}
    assert await everything(memory) == before
    assert await memory.keys.drop() == ()  # somebody may be about to use it
    [dropped] = await memory.keys.drop(grace=NOW, actor="eve")
    assert dropped.id == old
    operations = [row[2] for row in await journal_after(parts_of(memory).store) if row[0] == "data_key"]
    assert operations[:3] == ["create", "retire", "create"]
    assert operations[-1] == "drop"
    assert set(operations[3:-1]) == {"reseal"}
    async with opening(tmp_path, "user", **OLD) as other:  # which never had the old key
        assert await everything(other) == before
        [archive] = await other.retention.archives(f"{ALICE}:attic")
        assert (await other.retention.restore(archive.id)).memories == 1
        found = await other.memories.get_memory(f"{ALICE}:attic", "old")
        assert found is not None
        assert found.value == SECRET


async def test_an_archive_keeps_the_keys_that_its_lines_need(memory: mnemon.HybridMemoryService):
    await memory.remember(SECRET, namespace=f"{ALICE}:attic", key="old")
    await memory.keys.rotate()
    await memory.retention.apply(f"{ALICE}:attic")  # its line is under the old key, and all of it under the new one
    assert await memory.keys.drop(grace=NOW) == ()
    assert (await memory.keys.reseal(grace=NOW)).contents == 1
    assert len(await memory.keys.drop(grace=NOW)) == 1
    [archive] = await memory.retention.archives()
    assert (await memory.retention.restore(archive.id)).memories == 1


async def test_only_what_is_asked_for_is_touched(tmp_path: Path):
    async with opening(tmp_path) as memory:
        for namespace in (ALICE, BOB, OPEN):
            await memory.remember(SECRET, namespace=namespace, key="k")
    async with opening(tmp_path, "user") as memory:
        assert (await memory.keys.reseal(ALICE)).rows == 1
        rows = await peek(parts_of(memory).store, "SELECT namespace, value FROM memory_entries")
        assert {namespace: is_sealed(value) for namespace, value in rows} == {ALICE: True, BOB: False, OPEN: False}
        assert [each.namespace for each in (await memory.keys.status(BOB)).namespaces] == [BOB]
        assert (await memory.keys.rotate(BOB)) == ()
        await memory.keys.reseal()
        assert [each.plain for each in (await memory.keys.status()).namespaces] == [0, 0]
        assert len(await memory.keys.rotate()) == 2
    async with opening(tmp_path) as memory:  # it is no longer to be encrypted, and stays as it is, under current keys
        assert (await memory.keys.reseal()).rows == 2
        assert await memory.recall(SECRET, namespaces=OPEN)
        assert len(await memory.keys.drop(grace=NOW)) == 2


async def test_it_harms_nobody_who_writes_meanwhile(memory: mnemon.HybridMemoryService):
    for number in range(120):
        await memory.remember(f"{SECRET} {number}", namespace=ALICE, key=f"k{number % 60}")
    await memory.sessions.create_session("s1", "chat", "alice")
    over = asyncio.Event()

    async def write(writer: int) -> int:
        count = 0
        while not over.is_set():
            await memory.memories.update_memory(ALICE, f"k{count % 60}", {"writer": writer, "count": count})
            await memory.sessions.append_event("s1", {"type": "message", "content": SECRET}, {"count": count})
            if count % 5 == 0:
                await memory.artifacts.save("s1", f"a{writer}", f"{SECRET} {count}")
            count += 1
        return count

    async def rotate() -> None:
        for _ in range(3):
            await memory.keys.rotate()
            assert (await memory.keys.reseal()).flaws == ()
        over.set()

    *counts, _ = await asyncio.gather(write(1), write(2), rotate())
    assert min(counts) > 0
    await memory.keys.reseal(grace=NOW)
    assert len(await memory.keys.drop(grace=NOW)) == 3
    assert len(await sealed_by(memory)) == 1
    versions = sum([len(await memory.memories.get_memory_history(ALICE, f"k{number}")) for number in range(60)])
    assert versions == 120 + sum(counts)
    assert len(await memory.sessions.events("s1")) == sum(counts)
    assert [await memory.artifacts.read("s1", f"a{n}") for n in (1, 2)] == [
        f"{SECRET} {(count - 1) // 5 * 5}".encode() for count in counts
    ]
    assert (await memory.artifacts.verify(grace=NOW)).is_good


KILLED = """
import os, sys
import mnemon.sync
with mnemon.sync.open(sys.argv[1], encrypted_namespaces="user", encryption_keys=sys.argv[2], background=False,
                      embedder="none") as memory:
    memory.keys.reseal(progress=lambda progress: os.kill(os.getpid(), 9))
"""


async def test_killed_in_the_middle_it_goes_on_when_it_is_called_again(tmp_path: Path):
    async with opening(tmp_path, embedder="none") as memory:
        await memory.sessions.create_session("s1", "chat", "alice")
        await memory.sessions.append_event("s1", {"type": "message", "content": SECRET})
        await memory.remember_many([{"text": f"{SECRET} {n}", "key": f"k{n}"} for n in range(520)], namespace=ALICE)
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, f"sqlite:///{tmp_path}/m.db", KEY)
    assert await asyncio.wait_for(killed.wait(), 60) == -signal.SIGKILL
    async with opening(tmp_path, "user", embedder="none") as memory:
        [alice] = (await memory.keys.status()).namespaces
        assert (alice.rows, alice.plain) == (500, 520 - 500 + 2)
        assert (await memory.keys.reseal()).rows == alice.plain
        assert (await memory.keys.status()).is_settled
        assert where(tmp_path) == []
        values = [each.value async for each in _memories(memory)]
        assert sorted(values) == sorted(f"{SECRET} {n}" for n in range(520))


async def _memories(memory: mnemon.HybridMemoryService) -> AsyncIterator[mnemon.Memory]:
    cursor = None
    while True:
        page = await memory.memories.search_memories(ALICE, limit=200, cursor=cursor)
        for each in page:
            yield each
        cursor = page.next_cursor
        if cursor is None:
            return


async def test_what_cannot_be_opened_is_told_and_the_rest_is_done(memory: mnemon.HybridMemoryService):
    store = parts_of(memory).store
    await memory.sessions.create_session("s1", "chat", "alice")
    await memory.artifacts.save("s1", "lost", SECRET)
    for key in ("a", "b", "c"):
        await memory.remember(SECRET, namespace=ALICE, key=key)
    await plant(store, "UPDATE memory_entries SET version = 7 WHERE key = 'b'")
    [(name,)] = await peek(store, "SELECT sha256 FROM artifacts")
    parts_of(memory).contents.store.delete(name, 0)
    [old] = await sealed_by(memory)
    await memory.keys.rotate()
    done = await memory.keys.reseal(grace=NOW)
    assert [(flaw.table, flaw.place) for flaw in done.flaws] == [("memory_entries", "2"), ("artifacts", "1")]
    assert "was changed after it was sealed" in done.flaws[0].reason
    assert old in await sealed_by(memory)
    assert await memory.keys.drop(grace=NOW) == ()
    assert (await memory.memories.get_memory(ALICE, "c")) is not None


async def test_a_new_master_key_takes_over(tmp_path: Path):
    async with opening(tmp_path, "user") as memory:
        for user in ("alice", "bob"):
            await memory.remember(SECRET, namespace=f"user:{user}", key="k")
    async with opening(tmp_path, "user", encryption_keys=(NEWER, KEY)) as memory:
        status = await memory.keys.status()
        assert (status.master_key, status.is_settled) == ("k2", False)
        assert (await memory.keys.rewrap(), await memory.keys.rewrap()) == (2, 0)
        assert (await memory.keys.status()).is_settled
    async with opening(tmp_path, "user", encryption_keys=(NEWER,)) as memory:
        assert (await memory.memories.get_memory(ALICE, "k")) is not None
    async with opening(tmp_path, "user") as memory:
        with pytest.raises(mnemon.KeyUnavailable, match="'k2' is needed"):
            await memory.keys.reseal()
        with pytest.raises(mnemon.KeyUnavailable):
            await memory.keys.rewrap()
        assert [key.master_key for each in (await memory.keys.status()).namespaces for key in each.keys] == ["k2"] * 2


async def test_without_a_master_key_there_is_only_the_status(tmp_path: Path):
    async with opening(tmp_path, encryption_keys=()) as memory:
        assert await memory.keys.status() == mnemon.KeyStatus(None, ())
        for call in (memory.keys.rewrap(), memory.keys.rotate(), memory.keys.reseal()):
            with pytest.raises(mnemon.InvalidSettings, match="no master key"):
                await call
        for grace in (timedelta(seconds=-1), 5):
            with pytest.raises(mnemon.InvalidInput):
                await memory.keys.drop(grace=grace)  # pyright: ignore[reportArgumentType]


async def test_old_contents_stay_while_they_may_be_in_use(memory: mnemon.HybridMemoryService):
    await memory.sessions.create_session("s1", "chat", "alice")
    await memory.artifacts.save("s1", "note", SECRET)
    await memory.artifacts.save("s1", "same", SECRET)
    await memory.keys.rotate()
    done = await memory.keys.reseal()
    assert (done.contents, done.kept_contents) == (2, 1)
    assert len(list(parts_of(memory).contents.store.listing())) == 2
    assert (await memory.artifacts.cleanup(grace=NOW)).contents == 1
    assert await memory.artifacts.read("s1", "same") == SECRET.encode()


@pytest.mark.servers
async def test_the_same_over_postgresql(postgres_server: str, tmp_path: Path):
    schema = "rotation"
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    chosen = {**SETTINGS, **OLD, "postgres_schema": schema, "content_url": f"file://{tmp_path}/kept"}
    async with mnemon.open(postgres_server, **chosen) as memory:
        await live(memory)
        before = await everything(memory)
    async with mnemon.open(postgres_server, encrypted_namespaces=("user",), **chosen) as memory:
        done = await memory.keys.reseal(grace=NOW)
        assert (done.contents, done.scrubbed, done.flaws) == (3, True, ())
        assert await everything(memory) == before
        [old] = await sealed_by(memory)

        async def write() -> None:
            for number in range(30):
                await memory.memories.update_memory(ALICE, f"k{3 + number % 4}", number)

        await memory.keys.rotate()
        await asyncio.gather(memory.keys.reseal(grace=NOW), write(), write())
        await memory.keys.reseal(grace=NOW)
        assert await everything(memory) == before
        assert [key.id for key in await memory.keys.drop(grace=NOW)] == [old]
        with psycopg.connect(postgres_server) as connection:
            dump = "\n".join(
                str(row) for table in TABLES for row in connection.execute(f"SELECT * FROM {schema}.{table}").fetchall()
            )
        assert SECRET not in dump
        assert where(tmp_path) == []
