"""Working memory and episodes of encrypted sessions, in the database and in its copies."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import redis

import mnemon
from mnemon.encryption.masters import new_master_key
from mnemon.episodes.claims import Claims
from mnemon.testing import with_faults
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import peek, plant
from tests.encryption.living import bytes_below
from tests.encryption.test_sessions import opening, sealed_in
from tests.servers import Server
from tests.working.conftest import durable_valkey, valkey  # noqa: F401 - fixtures

OTHER = new_master_key("k2")


async def begin(memory: mnemon.HybridMemoryService) -> None:
    await memory.sessions.create_session("s1", "desk", "alice")
    await memory.sessions.create_session("s2", "desk", "bob")


async def test_buffers_and_scratchpads_work_as_ever(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        working, store = memory.working, parts_of(memory).store
        for session in ("s1", "s2"):
            await working.append(session, ["one", {"two": 2}, None])
            assert [item.value for item in await working.recent(session, last=2)] == [{"two": 2}, None]
            batch = await working.drain(session, limit=2)
            assert batch is not None
            assert [item.value for item in batch.items] == ["one", {"two": 2}]
            await working.acknowledge(batch)
            assert (await working.set(session, "pad", "first")).version == 1
            assert (await working.set(session, "pad", "second", expected_version=1)).version == 2
            with pytest.raises(mnemon.ConflictError, match="is version 2"):
                await working.set(session, "pad", "third", expected_version=1)
            with pytest.raises(mnemon.ConflictError, match="is version 2"):
                await working.set(session, "pad", "third", expected_version=0)
            assert await working.delete(session, "pad")
            assert await working.get(session, "pad") is None
            assert (await working.set(session, "pad", [4], expected_version=0)).version == 4
            pad = await working.get(session, "pad")
            assert pad is not None
            assert (pad.value, pad.version) == ([4], 4)
            assert [each.value for each in (await working.scratchpads(session)).items] == [[4]]
        assert await sealed_in(store, "working_items") == {"body": 1}
        assert await sealed_in(store, "scratchpads") == {"value": 1}


async def test_who_was_overtaken_seals_again(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        raced, faults = with_faults(memory)
        faults.race("hold_pad")  # as if the scratchpad had come after the look
        await memory.working.set("s1", "pad", 1)
        assert (await raced.working.set("s1", "pad", 2)).version == 2
        pad = await memory.working.get("s1", "pad")
        assert pad is not None
        assert (pad.value, faults.statements["hold_pad"]) == (2, 2)


@pytest.mark.servers
async def test_the_copy_in_redis_is_sealed_and_read(tmp_path: Path, valkey: Server):  # noqa: F811
    settings = {"working_store": "redis", "redis_url": valkey.url}
    async with opening(tmp_path, "user:alice", **settings) as memory:
        await begin(memory)
        for session in ("s1", "s2"):
            await memory.working.append(session, ["zanzibar"])
            await memory.working.set(session, "pad", "quixotic")
            await memory.working.recent(session)  # fills the copies
            await memory.working.get(session, "pad")
            await memory.working.append(session, ["marzipan"])  # and changes one
        with redis.Redis.from_url(valkey.url) as client:
            for session, found in (("s1", False), ("s2", True)):
                items = b"".join(client.zrange(f"mnemon:desk:{session}:buffer:conversation", 0, -1))
                pads = b"".join(client.zrange(f"mnemon:desk:{session}:pad:pad", 0, -1))
                assert (b"zanzibar" in items, b"marzipan" in items, b"quixotic" in pads) == (found,) * 3
                assert items
                assert pads
        async with opening(tmp_path, keys=(), **settings) as other:
            with pytest.raises(mnemon.KeyUnavailable):
                await other.working.recent("s1")
        await plant(parts_of(memory).store, "UPDATE working_items SET body = '\"changed\"'")
        await plant(parts_of(memory).store, "UPDATE scratchpads SET value = '\"changed\"'")
        assert [item.value for item in await memory.working.recent("s1")] == ["zanzibar", "marzipan"]  # from the copy
        pad = await memory.working.get("s1", "pad")
        assert pad is not None
        assert pad.value == "quixotic"
        with redis.Redis.from_url(valkey.url) as client:
            key = "mnemon:desk:s1:pad:pad"
            [(text, score)] = client.zrange(key, 0, -1, withscores=True)
            row = json.loads(text)
            row[0] = "other"
            client.delete(key)
            client.zadd(key, {json.dumps(row): score})
        with pytest.raises(mnemon.TamperedValue):
            await memory.working.get("s1", "pad")


@pytest.mark.servers
async def test_a_copy_of_a_key_that_was_dropped_is_passed_over(tmp_path: Path, valkey: Server):  # noqa: F811
    settings = {"working_store": "redis", "redis_url": valkey.url}
    async with opening(tmp_path, "user:alice", **settings) as memory:
        await begin(memory)
        await memory.working.append("s1", ["zanzibar"])
        await memory.working.set("s1", "pad", "quixotic")
        await memory.working.recent("s1")
        await memory.working.get("s1", "pad")
        await memory.keys.rotate("user:alice")
        assert not (await memory.keys.reseal("user:alice")).flaws
        await plant(parts_of(memory).store, "DELETE FROM data_keys WHERE retired_at IS NOT NULL")
    async with opening(tmp_path, "user:alice", **settings) as memory:
        assert [item.value for item in await memory.working.recent("s1")] == ["zanzibar"]
        pad = await memory.working.get("s1", "pad")
        assert pad is not None
        assert pad.value == "quixotic"


async def test_items_and_episodes_that_were_moved_are_noticed(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        await memory.working.append("s1", ["one", "two"])
        await memory.working.set("s1", "pad", 1)
        await memory.working.set("s1", "other", 2)
        for text in ("first", "second"):
            await memory.store_episode([text], session_id="s1", title=text)
        store = parts_of(memory).store
        moves: list[tuple[str, str, str, str, Callable[[], Awaitable[object]]]] = [
            ("working_items", "body", "sequence = 1", "sequence = 2", lambda: memory.working.recent("s1")),
            ("scratchpads", "value", "name = 'pad'", "name = 'other'", lambda: memory.working.get("s1", "pad")),
            ("episodes", "body", "id = 1", "id = 2", lambda: memory.episodes.get(1)),
            ("episodes", "title", "id = 1", "id = 2", lambda: memory.episodes.list()),
        ]
        for table, column, where, twin, read in moves:
            await read()
            other = f"(SELECT {column} FROM {table} WHERE {twin})"
            [(before,)] = await peek(store, f"SELECT {column} FROM {table} WHERE {where}")
            await plant(store, f"UPDATE {table} SET {column} = {other} WHERE {where}")
            with pytest.raises(mnemon.TamperedValue):
                await read()
            if table == "episodes":
                await plant(store, f"UPDATE {table} SET {column} = :before WHERE {where}", before=before)
        with pytest.raises(mnemon.TamperedValue):
            await memory.working.drain("s1")
        assert await peek(store, "SELECT COUNT(*) FROM working_items WHERE claim IS NOT NULL") == [(0,)]


TALK = [{"author": "user", "text": "Hello there."}, {"author": "user", "text": "I live in Bergen."}]


async def test_what_flows_into_long_term_memory_stays_sealed(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        for session in ("s1", "s2"):
            await memory.working.append(session, TALK)
            said = {"author": "user", "text": "I work for Acme."}
            await memory.store_episode([said], session_id=session, title="a talk", metadata={"m": 1})
        report = await memory.consolidation.flow(idle=0.0)
        assert report.episodes == 2
        assert report.failed == 0
        store = parts_of(memory).store
        told = {"title": 2, "body": 2, "participants": 2, "offers": 2, "metadata": 2}
        assert await sealed_in(store, "episodes") == told
        rows = await peek(store, "SELECT namespace, key, value, author FROM memory_entries WHERE is_current")
        hers = [row for row in rows if row[0].startswith("user:alice")]
        his = [row for row in rows if row[0].startswith("user:bob")]
        assert len(hers) == len(his) > 2
        assert all(row[2].startswith('"\\u0073ealed') for row in hers)
        assert not any(row[2].startswith('"\\u0073ealed') for row in his)
        facts = [{row[1] for row in side if row[0].endswith(":facts")} for side in (hers, his)]
        assert not facts[0] & facts[1]  # the key of a fact does not tell which it is
        assert {row[3] for row in hers} == {None}
        found = await memory.memories.search_memories("user:alice:facts")
        assert any("Acme" in each.value for each in found.items)
        episodes = (await memory.episodes.list(namespace="user:alice")).items
        assert {each.title for each in episodes} == {"a talk", ""}
        assert TALK in [[entry.value for entry in each.entries] for each in episodes]


@pytest.mark.parametrize("chosen", ["session:s1", "app:desk"])
async def test_nothing_flows_where_it_could_be_read(tmp_path: Path, chosen: str):
    """Given a session that is encrypted and a user who is not, then what is made of it stays with the session."""
    async with opening(tmp_path, chosen) as memory:
        await memory.sessions.create_session("s1", "desk", "alice")
        await memory.working.append("s1", ["I live in Zanzibar."])
        stored = await memory.store_episode(["I work for Zanzibar Ltd."], session_id="s1")
        assert stored.namespace == "session:s1"
        with pytest.raises(mnemon.InvalidInput, match="is encrypted and 'user:alice' is not"):
            await memory.store_episode(["Zanzibar"], session_id="s1", namespace="user:alice")
        own = await memory.store_episode(["Zanzibar"], session_id="s1", namespace="session:s1")
        assert own.namespace == "session:s1"
        await memory.consolidation.flow(idle=0.0)
        store = parts_of(memory).store
        values = await peek(store, "SELECT value FROM memory_entries")
        assert values
        assert all(value.startswith('"\\u0073ealed') for (value,) in values)
    assert not any(b"anzibar" in content for content in bytes_below(tmp_path))


async def test_a_worker_without_the_key_leaves_it_to_others(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        hers = await memory.store_episode(["secret"], session_id="s1")
        his = await memory.store_episode(["open"], session_id="s2")
    async with opening(tmp_path, keys=()) as memory:
        assert (await memory.consolidation.flow(idle=0.0)).failed == 0
        theirs = await memory.episodes.get(his.id)
        assert theirs is not None
        assert theirs.status == "consolidated"
        with pytest.raises(mnemon.KeyUnavailable, match="set encryption_keys"):
            await memory.episodes.get(hers.id)
    async with opening(tmp_path, "user:alice", keys=(OTHER,)) as memory:
        await memory.consolidation.flow(idle=0.0)  # it cannot be opened, and says so with the episode
        rows = await peek(parts_of(memory).store, "SELECT status, attempts, error FROM episodes WHERE id = 1")
        assert rows[0][:2] == ("pending", 1)
    async with opening(tmp_path, "user:alice") as memory:
        failed = await memory.episodes.get(hers.id)
        assert failed is not None
        assert failed.error is not None
        assert failed.error == "KeyUnavailable"


async def test_an_error_is_sealed_as_its_episode_is(tmp_path: Path):
    async with opening(tmp_path, "user:alice") as memory:
        await begin(memory)
        for session in ("s1", "s2"):
            await memory.store_episode(["words"], session_id=session)
        parts = parts_of(memory)
        claims = Claims(parts.store, parts.clock, parts.sealing)
        for _ in range(2):
            claim = await claims.take(60.0)
            assert claim is not None
            await claims.fail(claim, "ValueError: the words")
        assert await sealed_in(parts.store, "episodes") == {
            "title": 1, "body": 1, "participants": 1, "offers": 1, "metadata": 1, "error": 1,
        }  # fmt: skip
        errors: list[Any] = [each.error for each in (await memory.episodes.list()).items]
        assert errors == ["ValueError: the words"] * 2
        assert await memory.episodes.retry() == 0
