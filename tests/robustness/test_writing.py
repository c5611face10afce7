"""Writes that must wait, fail or are given up: nobody else is harmed, and nothing is half-written."""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import mnemon
from mnemon import sync
from mnemon.ports import Transaction
from mnemon.sql import Query
from mnemon.testing.handles import parts_of
from tests.robustness.behind import Database, SqliteDatabase, contents, write_lock
from tests.robustness.conftest import Heartbeat


def check_journal_agrees(database: Database) -> None:
    """Every event has its journal entry, every entry its event, and the session has counted them."""
    events = database.query("SELECT sequence FROM events ORDER BY sequence")
    assert database.query("SELECT event_count FROM sessions WHERE id = 'shared'") == [(len(events),)]
    assert [row[0] for row in events] == list(range(1, len(events) + 1))
    assert database.query("SELECT COUNT(*) FROM journal WHERE entity = 'event'") == [(len(events),)]


# --------------------------------------------------------------------------------------------- a lock that is held


async def test_a_held_lock_is_busy_after_the_timeout_and_the_loop_goes_on(
    file: SqliteDatabase, heartbeat: Heartbeat
) -> None:
    before = contents(file)
    async with mnemon.open(file.url, busy_timeout=0.6) as memory:
        # given another process that holds the write lock, when we write
        with write_lock(file.path):
            async with heartbeat:
                began = time.monotonic()
                with pytest.raises(mnemon.StoreBusy, match="raise busy_timeout"):
                    await memory.sessions.append_event("shared", {"n": 1})
                waited = time.monotonic() - began
                # and reading meanwhile is not held up
                assert await memory.sessions.get_session("shared") is not None
        # then we are told after the timeout, and the event loop was free all the time
        assert 0.5 < waited < 5
        assert heartbeat.beats > 10
        assert heartbeat.longest_pause < 0.3
        assert contents(file) == before
        # and it works again once the lock is gone
        assert (await memory.sessions.append_event("shared", {"n": 2})).sequence == 1


def test_a_held_lock_is_busy_on_the_blocking_face(file: SqliteDatabase) -> None:
    with sync.open(file.url, busy_timeout=0.3) as memory:
        with write_lock(file.path), pytest.raises(mnemon.StoreBusy, match="raise busy_timeout"):
            memory.sessions.append_event("shared", {"n": 1})
        assert memory.sessions.append_event("shared", {"n": 2}).sequence == 1


async def test_a_write_that_waits_is_done_when_the_lock_is_let_go(file: SqliteDatabase) -> None:
    async with mnemon.open(file.url, busy_timeout=60) as memory:
        with write_lock(file.path) as holder:
            writes = [asyncio.create_task(memory.sessions.append_event("shared", {"n": n})) for n in range(50)]
            await asyncio.sleep(0.2)
            assert not any(write.done() for write in writes)
            holder.communicate("let go\n")
            events = await asyncio.gather(*writes)
    assert sorted(event.sequence for event in events) == list(range(1, 51))
    check_journal_agrees(file)


# ----------------------------------------------------------------------------------------------- groups and givers-up


async def test_one_that_fails_in_a_group_harms_no_other(database: Database) -> None:
    # given many writes at once, some of which fail, early or late in their transaction
    async with mnemon.open(database.url) as memory:
        await memory.sessions.append_event("shared", {"n": 0}, event_id="taken")
        writes = []
        for number in range(60):
            writes.append(memory.sessions.append_event("shared", {"n": number}))
            if number % 5 == 1:
                writes.append(memory.sessions.append_event("nobody", {"n": number}))
            if number % 5 == 2:
                batch = [{"n": "half"}, mnemon.EventDraft({"n": "other"}, id="taken")]
                writes.append(memory.sessions.append_events("shared", batch))
            if number % 5 == 3:
                writes.append(parts_of(memory).store.write(write_and_fail))
        # when they are done
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        # then each has its own error or its own event
        failed = [type(outcome) for outcome in outcomes if isinstance(outcome, Exception)]
        assert sorted(kind.__name__ for kind in failed) == (
            ["EventExists"] * 12 + ["SessionNotFound"] * 12 + ["ZeroDivisionError"] * 12
        )
        kept = [event.body["n"] for event in await memory.sessions.events("shared", after=1)]
        assert sorted(kept) == list(range(60))
        session = await memory.sessions.get_session("shared")
        assert session is not None
        assert session.metadata == {}
    check_journal_agrees(database)


async def write_and_fail(tx: Transaction) -> None:
    await tx.execute(Query("spoil", "UPDATE sessions SET metadata = '{\"half\": true}' WHERE id = 'shared'"), {})
    raise ZeroDivisionError


async def test_a_write_that_is_cancelled_while_it_waits_is_whole_or_nothing(file: SqliteDatabase) -> None:
    async with mnemon.open(file.url, busy_timeout=60) as memory:
        # given writes that wait for a lock
        with write_lock(file.path) as holder:
            writes = [
                asyncio.create_task(memory.sessions.append_event("shared", {"n": n}, {f"k{n}": n, f"user:k{n}": n}))
                for n in range(30)
            ]
            await asyncio.sleep(0.1)
            # when some are given up
            for write in writes[::3]:
                write.cancel()
            outcomes = [asyncio.gather(*writes, return_exceptions=True)]
            await asyncio.sleep(0)
            holder.communicate("let go\n")
            [done] = [await outcome for outcome in outcomes]
        # then those are given up and the others are done
        assert [isinstance(outcome, asyncio.CancelledError) for outcome in done] == [n % 3 == 0 for n in range(30)]
        session = await memory.sessions.get_session("shared")
        assert session is not None
        written = {event.body["n"] for event in session.events}
        assert written >= {n for n in range(30) if n % 3}
        # and each of them wholly or not at all
        assert session.state == {key: n for n in written for key in (f"k{n}", f"user:k{n}")}
    check_journal_agrees(file)


async def test_cancelled_tasks_leave_a_store_that_works(url: str) -> None:
    async with mnemon.open(url) as memory:
        await memory.sessions.create_session("shared", "app", "alice")
        for turn in range(10):
            tasks = [asyncio.create_task(memory.sessions.append_event("shared", {"n": n})) for n in range(20)]
            await asyncio.sleep(0.0005 * turn)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        events = await memory.sessions.events("shared")
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        assert len(events) >= 100
        assert (await memory.sessions.append_event("shared", {"n": 0})).sequence == len(events) + 1


async def test_a_timeout_gives_up_waiting_and_not_the_store(file: SqliteDatabase) -> None:
    async with mnemon.open(file.url, busy_timeout=60) as memory:
        with write_lock(file.path) as holder:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(memory.sessions.append_event("shared", {"n": 1}), 0.1)
            holder.communicate("let go\n")
        await memory.sessions.append_event("shared", {"n": 2})
        assert 2 in {event.body["n"] for event in await memory.sessions.events("shared")}
    check_journal_agrees(file)


# ---------------------------------------------------------------------------------------------------- a full disk


async def fill(memory: mnemon.HybridMemoryService, together: int) -> int:
    """Append until the store is full; how many were acknowledged."""
    done = 0
    while True:
        writes = [memory.sessions.append_event("shared", {"n": n, "text": "x" * 5000}) for n in range(together)]
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        done += len(outcomes) - len(errors)
        for error in errors:
            assert isinstance(error, mnemon.StoreFull), repr(error)
            assert "free some space" in str(error)
        if errors:
            return done
        assert done < 20_000


@pytest.mark.parametrize("together", [1, 20])
async def test_a_full_database_keeps_what_it_has(file: SqliteDatabase, together: int) -> None:
    async with mnemon.open(file.url, seal_interval=None) as memory:
        # given a database that may not grow beyond a few pages
        with parts_of(memory).store._engine.connection() as connection:
            connection.execute("PRAGMA max_page_count = 300")
        # when it is full
        done = await fill(memory, together)
        # then what was acknowledged is there, and nothing else
        assert len(await memory.sessions.events("shared")) == done
        # and it goes on when there is room
        with parts_of(memory).store._engine.connection() as connection:
            connection.execute("PRAGMA max_page_count = 3000")
        assert (await memory.sessions.append_event("shared", {"n": 0})).sequence == done + 1
    check_journal_agrees(file)
    file.check()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounting.returncode:
        pytest.skip(f"no disk can be mounted here: {mounting.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("together", [1, 20])
async def test_a_full_disk_loses_nothing(small_disk: Path, together: int) -> None:
    # given a small disk, with something on it that can be removed
    ballast = small_disk / "ballast"
    ballast.write_bytes(os.urandom(1_000_000))
    file = SqliteDatabase(f"sqlite:///{small_disk}/memory.db")
    async with mnemon.open(file.url) as memory:
        await memory.sessions.create_session("shared", "app", "alice")
        # when the disk is full
        done = await fill(memory, together)
        # then one can still read, and what was acknowledged is there
        assert len(await memory.sessions.events("shared")) == done
        # and when there is room again, one can write
        ballast.unlink()
        assert (await memory.sessions.append_event("shared", {"n": 0})).sequence == done + 1
    check_journal_agrees(file)
    file.check()


async def test_a_full_disk_is_said_to_be_full_when_opening(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(os.urandom(os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize))
    with pytest.raises(mnemon.StoreFull, match="free some space"):
        await mnemon.open(f"sqlite:///{small_disk}/memory.db")
