"""Followers see every change in order, and are woken rather than finding out by looking now and then."""

import asyncio
import statistics
import threading
import time
from collections.abc import Iterable

import pytest

import mnemon
from mnemon import sync
from tests.robustness.behind import Database
from tests.robustness.children import FACES, PATIENCE, follow, started
from tests.robustness.conftest import Heartbeat

CHANGES = 60
APART = 0.012  # seconds between two changes
POLL = 1.0  # seconds after which a follower looks even if nobody woke it


def check_woken(delays: Iterable[float]) -> None:
    """Nearly all were seen far sooner than by polling; a busy machine may delay a few."""
    late = [delay for delay in delays if delay > POLL / 4]
    assert len(late) < CHANGES / 5
    assert statistics.median(delays) < POLL / 10


async def append_slowly(memory: mnemon.HybridMemoryService) -> dict[int, float]:
    """Append events one by one; when each was committed, by sequence."""
    committed: dict[int, float] = {}
    for number in range(CHANGES):
        event = await memory.sessions.append_event("shared", {"n": number})
        committed[event.sequence] = time.time()
        await asyncio.sleep(APART)
    return committed


async def test_a_follower_in_the_same_process_is_woken(database: Database) -> None:
    async with mnemon.open(database.url) as memory:
        seen: dict[int, float] = {}

        async def watch(after: int) -> None:
            async for change in memory.changes(after, True):
                seen[change.payload["sequence"]] = time.time()
                if len(seen) == CHANGES:
                    return

        following = asyncio.create_task(watch(await memory.position()))
        committed = await append_slowly(memory)
        await asyncio.wait_for(following, PATIENCE)
    assert list(seen) == list(committed)
    check_woken([seen[sequence] - committed[sequence] for sequence in committed])


@pytest.mark.parametrize("face", FACES)
async def test_a_follower_in_another_process_is_woken(database: Database, face: str) -> None:
    async with mnemon.open(database.url) as memory:
        after = await memory.position()
        with started(follow, database.url, after, CHANGES, face=face) as child:
            committed = await append_slowly(memory)
            said, _ = await asyncio.to_thread(child.communicate, timeout=PATIENCE)
    seen = [line.split() for line in said.splitlines()]
    assert [int(sequence) for sequence, _ in seen] == list(committed)
    check_woken([int(at) / 1e6 - committed[int(sequence)] for sequence, at in seen])


@pytest.mark.unmeasured
async def test_every_follower_sees_all_that_racing_writers_do(database: Database) -> None:
    # given two followers and a watcher of one key
    async with mnemon.open(database.url) as memory, mnemon.open(database.url) as other:
        after = await memory.position()
        last = 200

        async def collect(handle: mnemon.HybridMemoryService) -> list[mnemon.Change]:
            found: list[mnemon.Change] = []
            async for change in handle.changes(after, True, entity="event"):
                found.append(change)
                if len(found) == last:
                    break
            return found

        async def write(handle: mnemon.HybridMemoryService, who: int) -> None:
            for number in range(last // 4):
                await handle.sessions.append_event("shared", {"who": who, "n": number})

        following = [asyncio.create_task(collect(handle)) for handle in (memory, other, memory)]
        # when four writers race through two stores
        await asyncio.gather(*(write(handle, who) for who, handle in enumerate((memory, other, memory, other))))
        # then each follower has all of it, in the order of the journal, which is that of the log
        for found in await asyncio.wait_for(asyncio.gather(*following), PATIENCE):
            assert [change.payload["sequence"] for change in found] == list(range(1, last + 1))
            assert [change.position for change in found] == sorted(change.position for change in found)


async def test_a_watcher_of_state_is_woken(database: Database) -> None:
    async with mnemon.open(database.url) as memory, mnemon.open(database.url) as other:
        watching = memory.state.watch("user:mood", session_id="shared")
        first = asyncio.ensure_future(anext(watching))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        await other.state.set("user:mood", "bright", session_id="shared")
        entry = await asyncio.wait_for(first, PATIENCE)
        assert (entry.key, entry.value) == ("user:mood", "bright")
        assert time.monotonic() - began < POLL * 0.8


def test_a_blocking_follower_is_woken_from_another_thread(database: Database) -> None:
    with sync.open(database.url) as memory:
        after, seen = memory.position(), list[float]()

        def watch() -> None:
            for change in memory.changes(after, True):
                seen.append(time.time())
                if change.payload["sequence"] == CHANGES:
                    return

        following = threading.Thread(target=watch)
        following.start()
        committed = []
        for number in range(CHANGES):
            memory.sessions.append_event("shared", {"n": number})
            committed.append(time.time())
            time.sleep(APART)
        following.join(PATIENCE)
    check_woken([later - earlier for earlier, later in zip(committed, seen, strict=True)])


@pytest.mark.unmeasured
async def test_reading_a_long_journal_leaves_the_loop_to_others(url: str, heartbeat: Heartbeat) -> None:
    # given a journal with much in it
    async with mnemon.open(url) as memory:
        await memory.sessions.create_session("shared", "app", "alice")
        for _ in range(20):
            await memory.sessions.append_events("shared", [{"n": number} for number in range(1000)])
        # when a task reads all of it without ever waiting for anything else
        async with heartbeat:
            found = [change.position async for change in memory.changes()]
            assert (await memory.verify()).intact
            beats = heartbeat.beats
    # then the others had their turns meanwhile
    assert len(found) == 20_001
    assert beats > 3


async def test_an_idle_consumer_writes_nothing(database: Database) -> None:
    # given a consumer that has handled all there is, and a second worker for the same name
    async with mnemon.open(database.url) as memory:
        handled: list[int] = []

        async def handle(tx: object, changes: list[mnemon.Change]) -> None:
            handled.extend(change.position for change in changes)

        workers = [asyncio.create_task(memory.consumer("idle").run(handle)) for _ in range(2)]
        await asyncio.sleep(0.3)
        before = (await memory.consumer("idle").status()).updated_at
        # when nothing happens, then it writes nothing either: a commit would wake every follower
        await asyncio.sleep(0.3)
        assert (await memory.consumer("idle").status()).updated_at == before
        # and it is woken by the next change
        began = time.monotonic()
        await memory.sessions.append_event("shared", {"n": 1})
        while len(handled) < 2:
            await asyncio.sleep(0.005)
            assert time.monotonic() - began < POLL * 0.8
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
