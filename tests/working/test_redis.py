"""The copy in Redis: what it holds, that it is read, and that nobody ever reads something old from it."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import redis

import mnemon
import mnemon.sync
from mnemon import HybridMemoryService, InvalidSettings
from mnemon.backends.rediscopy import RedisCopy
from mnemon.ports import CopyChange, CopyPlace
from mnemon.testing import QUIET, ManualClock
from mnemon.testing.working import values_of
from tests.servers import Server

ROOT = "mnemon:helpdesk:s1"


def settings_for(valkey: Server, **more: Any) -> dict[str, Any]:
    return {**QUIET, "working_store": "redis", "redis_url": valkey.url, **more}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest_asyncio.fixture
async def memory(tmp_path: Path, valkey: Server, clock: ManualClock) -> AsyncIterator[HybridMemoryService]:
    async with mnemon.open(f"sqlite:///{tmp_path}/m.db", clock=clock, **settings_for(valkey)) as memory:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        yield memory


async def test_what_it_holds_is_as_documented(memory: HybridMemoryService, client: "redis.Redis") -> None:
    await memory.working.append("s1", ["one"])
    await memory.working.set("s1", "plan", {"step": 1})
    assert client.keys() == [], "a copy is made when something is read"
    await memory.working.recent("s1")
    await memory.working.get("s1", "plan")
    await memory.working.append("s1", ["two"])
    wanted = ["buffer:conversation", "copies", "head:buffer:conversation", "head:pad:plan", "pad:plan"]
    assert sorted(client.keys()) == [f"{ROOT}:{name}" for name in wanted]
    assert [score for _, score in client.zrange(f"{ROOT}:buffer:conversation", 0, -1, withscores=True)] == [1, 2]
    assert all(3500 < client.ttl(key) <= 3600 for key in client.scan_iter())


async def test_a_copy_is_what_is_read(memory: HybridMemoryService, client: "redis.Redis") -> None:
    await memory.working.append("s1", ["one"])
    await memory.working.recent("s1")
    (text,) = client.zrange(f"{ROOT}:buffer:conversation", 0, -1)
    client.delete(f"{ROOT}:buffer:conversation")
    client.zadd(f"{ROOT}:buffer:conversation", {text.replace("one", "planted"): 1})
    assert values_of(await memory.working.recent("s1")) == ["planted"]


@pytest.mark.parametrize("lost", ["buffer:conversation", "head:buffer:conversation"])
async def test_what_redis_has_thrown_out_is_read_from_the_database(
    memory: HybridMemoryService, client: "redis.Redis", lost: str
) -> None:
    await memory.working.append("s1", ["one", "two"])
    await memory.working.recent("s1")
    client.delete(f"{ROOT}:{lost}")
    assert values_of(await memory.working.recent("s1")) == ["one", "two"]


async def test_a_long_buffer_is_copied_in_part(memory: HybridMemoryService, client: "redis.Redis") -> None:
    for start in (0, 400):
        await memory.working.append("s1", list(range(start, start + 400)))
        assert values_of(await memory.working.recent("s1", last=1)) == [start + 399]
    assert client.zcard(f"{ROOT}:buffer:conversation") == 500
    assert values_of(await memory.working.recent("s1", last=500)) == list(range(300, 800))
    assert values_of(await memory.working.recent("s1", last=700)) == list(range(100, 800))
    assert len(await memory.working.recent("s1", budget=100_000)) == 500
    batch = await memory.working.drain("s1", limit=500)
    assert batch is not None
    await memory.working.acknowledge(batch)
    for _ in range(2):
        assert values_of(await memory.working.recent("s1", last=400)) == list(range(500, 800))


async def test_a_deleted_sessions_copies_go(memory: HybridMemoryService, client: "redis.Redis") -> None:
    await memory.working.append("s1", ["SECRET"])
    await memory.working.recent("s1")
    await memory.sessions.delete_session("s1")
    await memory.settled()
    assert client.keys() == []


async def test_while_it_is_down_nothing_is_missing_and_nothing_old_is_read_afterwards(
    memory: HybridMemoryService, valkey: Server, clock: ManualClock, client: "redis.Redis"
) -> None:
    await memory.working.append("s1", ["one"])
    await memory.working.set("s1", "plan", 1)
    await memory.working.recent("s1")
    await memory.working.get("s1", "plan")
    with valkey.outage():
        await memory.working.append("s1", ["two"])
        await memory.working.set("s1", "plan", 2)
        assert values_of(await memory.working.recent("s1")) == ["one", "two"]
    clock.advance(60)
    for _ in range(3):
        assert values_of(await memory.working.recent("s1")) == ["one", "two"]
        pad = await memory.working.get("s1", "plan")
        assert pad is not None
        assert pad.value == 2
    await memory.working.append("s1", ["three"])
    assert values_of(await memory.working.recent("s1")) == ["one", "two", "three"]
    await memory.settled()
    await memory.working.recent("s1")
    assert client.zcard(f"{ROOT}:buffer:conversation") == 3, "it is used again"


async def test_what_came_back_from_the_disk_is_not_believed(
    memory: HybridMemoryService, valkey: Server, clock: ManualClock, client: "redis.Redis", tmp_path: Path
) -> None:
    """Given a copy on Redis' disk, when another process appends while Redis is down, then nobody reads the old one."""
    await memory.working.append("s1", ["one"])
    await memory.working.recent("s1")
    client.execute_command("BGREWRITEAOF")
    await asyncio.sleep(1.2)  # the log is written every second
    with valkey.outage():
        plain = {**QUIET, "working_store": "database"}
        async with mnemon.open(f"sqlite:///{tmp_path}/m.db", clock=clock, **plain) as other:
            await other.working.append("s1", ["two"])
    assert client.exists(f"{ROOT}:buffer:conversation"), "the test shows nothing unless it came back"
    for _ in range(3):
        assert values_of(await memory.working.recent("s1")) == ["one", "two"]
        clock.advance(60)


async def test_a_copy_that_missed_a_change_is_read_by_nobody(
    memory: HybridMemoryService, valkey: Server, clock: ManualClock, client: "redis.Redis", tmp_path: Path
) -> None:
    """Given a Redis that did not answer once, when a change was not sent to it, then no process reads its copy."""
    await memory.working.append("s1", ["one"])
    await memory.working.recent("s1")
    async with mnemon.open(f"sqlite:///{tmp_path}/m.db", clock=clock, **settings_for(valkey)) as other:
        assert values_of(await other.working.recent("s1")) == ["one"]
        client.client_pause(700)
        assert values_of(await memory.working.recent("s1")) == ["one"], "it waits no longer than it has to"
        await asyncio.sleep(0.5)
        await memory.working.append("s1", ["two"])
        assert client.zcard(f"{ROOT}:buffer:conversation") == 1, "the test shows nothing unless the copy is old"
        assert values_of(await other.working.recent("s1")) == ["one", "two"]
        assert client.zcard(f"{ROOT}:buffer:conversation") == 2, "who read it has made it anew"
    clock.advance(60)
    assert values_of(await memory.working.recent("s1")) == ["one", "two"]


async def test_what_a_cancelled_or_killed_writer_did_not_copy_is_read_all_the_same(
    memory: HybridMemoryService, client: "redis.Redis", tmp_path: Path, clock: ManualClock
) -> None:
    """Given a process that writes only to the database, when another reads, then it sees that at once."""
    await memory.working.append("s1", ["one"])
    await memory.working.set("s1", "plan", 1)
    await memory.working.recent("s1")
    await memory.working.get("s1", "plan")
    async with mnemon.open(f"sqlite:///{tmp_path}/m.db", clock=clock, **QUIET) as other:
        await other.working.append("s1", ["two"])
        await other.working.set("s1", "plan", 2)
    assert client.zcard(f"{ROOT}:buffer:conversation") == 1, "the test shows nothing unless the copy is old"
    assert values_of(await memory.working.recent("s1")) == ["one", "two"]
    pad = await memory.working.get("s1", "plan")
    assert pad is not None
    assert pad.value == 2


async def test_a_copy_full_of_what_has_expired_is_made_anew(
    memory: HybridMemoryService, client: "redis.Redis", clock: ManualClock
) -> None:
    await memory.working.append("s1", ["stays"])
    await memory.working.append("s1", ["goes"] * 20, ttl=10)
    assert len(await memory.working.recent("s1")) == 21
    clock.advance(10)
    assert values_of(await memory.working.recent("s1", last=5)) == ["stays"]
    assert client.zcard(f"{ROOT}:buffer:conversation") == 1


async def test_more_than_a_copy_holds_is_appended_at_once(memory: HybridMemoryService, client: "redis.Redis") -> None:
    await memory.working.recent("s1")
    await memory.working.append("s1", [-1])
    await memory.working.recent("s1")
    await memory.working.append("s1", range(800))
    for _ in range(2):
        assert values_of(await memory.working.recent("s1", last=500)) == list(range(300, 800))
    assert client.zcard(f"{ROOT}:buffer:conversation") == 500
    assert values_of(await memory.working.recent("s1", last=801)) == list(range(-1, 800))


async def listeners(client: "redis.Redis", number: int) -> None:
    """Wait until so many connections listen."""
    async with asyncio.timeout(5):
        while len(client.client_list(_type="pubsub")) < number:  # noqa: ASYNC110 - Redis has no event for it
            await asyncio.sleep(0.01)


def test_a_copy_is_read_only_where_the_database_stands(valkey: Server) -> None:
    place = CopyPlace("helpdesk", "s1", "buffer", "b", 5)
    copy = RedisCopy(valkey.url, 100)

    def found(position: int, at: CopyPlace = place, limit: int = 10) -> list[str] | None:
        read = copy.read(at, position, limit)
        return None if read is None else list(read.entries)

    try:
        copy.apply(CopyChange(place, 0, 1, [(1, "a")]))
        assert found(1) is None, "a change alone makes no copy"
        copy.fill(place, 1, [(1, "a")], True)
        assert found(1) == ["a"]
        assert found(2) is None, "the database is further"
        assert found(1, CopyPlace("helpdesk", "s1", "buffer", "b", 6)) is None, "another session"
        copy.apply(CopyChange(place, 1, 3, [(2, "b")], [1]))
        assert found(3) == ["b"]
        copy.apply(CopyChange(place, 1, 2, [(9, "z")]))
        copy.fill(place, 2, [(9, "z")], True)
        assert found(3) == ["b"], "it stands further already"
        copy.apply(CopyChange(place, 7, 8, [(3, "c")]))
        assert found(8) is None, "it had missed a change"
        copy.fill(place, 8, [(3, "c")], False)
        assert found(8) is None, "there are more than it has"
        assert found(8, limit=1) == ["c"]
        copy.drop_session("helpdesk", "s1")
        assert found(8, limit=1) is None
    finally:
        copy.close()


async def test_followers_in_other_processes_are_woken(
    memory: HybridMemoryService, valkey: Server, clock: ManualClock, client: "redis.Redis", tmp_path: Path
) -> None:
    feed = memory.working.follow("s1")
    waiting = asyncio.ensure_future(anext(feed))
    await listeners(client, 1)
    woken = asyncio.Event()
    loop = asyncio.get_running_loop()
    listener = RedisCopy(valkey.url, 100)
    listener.listen(lambda: loop.call_soon_threadsafe(woken.set))
    await listeners(client, 2)
    async with mnemon.open(f"sqlite:///{tmp_path}/m.db", clock=clock, **settings_for(valkey)) as other:
        await other.working.append("s1", ["one"])
    change = await asyncio.wait_for(waiting, 5)
    assert (change.entity, change.operation) == ("buffer", "append")
    await asyncio.wait_for(woken.wait(), 5)
    await asyncio.to_thread(listener.close)


async def test_killed_and_restarted_under_load_it_loses_nothing_and_shows_nothing_old(
    valkey: Server, tmp_path: Path
) -> None:
    """Two processes' worth of memories write and read; whoever reads sees at least what was acknowledged before."""
    settings = settings_for(valkey, background=True)
    acknowledged: list[str] = []
    drained: list[str] = []
    over = asyncio.Event()
    chance = random.Random(5)

    async def write(memory: HybridMemoryService, name: str) -> None:
        number = 0
        while not over.is_set():
            await memory.working.append("s1", [f"{name}-{number}"])
            acknowledged.append(f"{name}-{number}")
            await memory.working.set("s1", name, number)
            pad = await memory.working.get("s1", name)
            assert pad is not None
            assert pad.value == number
            newest = values_of(await memory.working.recent("s1", last=500))
            assert f"{name}-{number}" in {*newest, *drained}
            number += 1
            await asyncio.sleep(chance.random() / 100)

    async def drain(memory: HybridMemoryService) -> None:
        while not over.is_set():
            batch = await memory.working.drain("s1", limit=5)
            if batch:
                drained.extend(values_of(batch))
                await memory.working.acknowledge(batch)
            await asyncio.sleep(chance.random() / 50)

    async with AsyncExitStack() as stack:
        url = f"sqlite:///{tmp_path}/m.db"
        one = await stack.enter_async_context(mnemon.open(url, **settings))
        await one.sessions.create_session("s1", "helpdesk", "alice")
        two = await stack.enter_async_context(mnemon.open(url, **settings))
        work = [asyncio.ensure_future(each) for each in (write(one, "a"), write(two, "b"), drain(two))]
        try:
            for _ in range(3):
                await asyncio.sleep(0.4)
                await asyncio.to_thread(valkey.kill)
                await asyncio.sleep(0.2)
                await asyncio.to_thread(valkey.start)
            await asyncio.sleep(1)
        finally:
            over.set()
            await asyncio.gather(*work)
        while batch := await one.working.drain("s1", limit=500):
            await one.working.acknowledge(batch)
            drained.extend(values_of(batch))
    assert len(acknowledged) > 50
    assert sorted(drained) == sorted(acknowledged)


def test_the_blocking_face_reads_the_copy_too(valkey: Server, client: "redis.Redis") -> None:
    with mnemon.sync.open("sqlite://", **settings_for(valkey)) as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")
        memory.working.append("s1", ["one"])
        assert values_of(memory.working.recent("s1")) == ["one"]
        memory.working.append("s1", ["two"])
        assert client.zcard(f"{ROOT}:buffer:conversation") == 2
        assert values_of(memory.working.recent("s1")) == ["one", "two"]
    deadline = time.monotonic() + 5
    while len(client.client_list()) > 1:
        assert time.monotonic() < deadline, "a connection was left open"
        time.sleep(0.01)


def test_without_an_address_of_redis_it_says_so() -> None:
    with pytest.raises(InvalidSettings, match="working_store='redis' needs redis_url"):
        mnemon.sync.open("sqlite://", working_store="redis")
