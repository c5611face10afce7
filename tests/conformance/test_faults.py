"""The faults that users inject in their own tests: each happens as often as it was asked for, and no more."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

import mnemon
from mnemon.ports import Raced, Store
from mnemon.testing import ManualClock, Suite, with_faults
from mnemon.testing.suite import journal_after, peek, plant, refused, unchanged
from tests.conformance.backends import OverEveryBackend, opened, url_of


class TestFaultyStore(OverEveryBackend, Suite):
    @pytest.fixture(params=["sqlite-file", "sqlite-full", pytest.param("postgres", marks=pytest.mark.servers)])
    def backend(self, request: pytest.FixtureRequest) -> str:
        return request.param

    @pytest_asyncio.fixture
    async def memory(
        self, backend: str, clock: ManualClock, tmp_path: Path, request: pytest.FixtureRequest
    ) -> AsyncIterator[mnemon.HybridMemoryService]:
        async with opened(backend, url_of(backend, tmp_path, request), clock) as memory:
            await memory.sessions.create_session("s1", "helpdesk", "alice")
            yield memory

    async def test_without_faults_nothing_is_different(self, memory: mnemon.HybridMemoryService, store: Store) -> None:
        faulty, faults = with_faults(memory)

        event = await faulty.sessions.append_event("s1", {"n": 1}, {"a": 1})
        await faulty.memories.add_memory("user:alice", "k", 1)
        await faulty.memories.purge_memory("user:alice", "k")

        assert await faulty.sessions.events("s1") == await memory.sessions.events("s1") == [event]
        assert await faulty.state.entries("", session_id="s1") == await memory.state.entries("", session_id="s1")
        assert (faults.calls["write"], faults.calls["scrub"]) == (3, 1)
        assert faults.statements["insert_memory"] == 1

    async def test_a_call_fails_before_it_has_an_effect(self, memory: mnemon.HybridMemoryService, store: Store) -> None:
        faulty, faults = with_faults(memory)
        faults.fail("write", mnemon.StoreUnavailable("gone"), times=2, skip=1)
        await faulty.sessions.append_event("s1", {"n": 1})

        for _ in range(2):
            async with refused(store, mnemon.StoreUnavailable, "gone"):
                await faulty.sessions.append_event("s1", {"n": 2})
        assert (await faulty.sessions.append_event("s1", {"n": 2})).sequence == 2

    async def test_an_answer_that_got_lost_leaves_the_effect_and_a_retry_repeats_nothing(
        self, memory: mnemon.HybridMemoryService
    ) -> None:
        faulty, faults = with_faults(memory)
        faults.fail("write", mnemon.StoreUnavailable("gone"), after_effect=True)

        with pytest.raises(mnemon.StoreUnavailable):
            await faulty.sessions.append_event("s1", {"id": "e1"}, {"user:n": 1})
        again = await faulty.sessions.append_event("s1", {"id": "e1"}, {"user:n": 1})

        assert await memory.sessions.events("s1") == [again]
        entry = await memory.state.entry("user:n", session_id="s1")
        assert entry is not None
        assert entry.version == 1

    @pytest.mark.parametrize("statement", ["insert_event", "merge_entry", "append", "touch_session"])
    async def test_a_statement_that_fails_takes_its_whole_unit_with_it(
        self, memory: mnemon.HybridMemoryService, store: Store, statement: str
    ) -> None:
        faulty, faults = with_faults(memory)
        faults.fail_statement(statement, mnemon.StoreFull("no space"))

        async with refused(store, mnemon.StoreFull):
            await faulty.sessions.append_events("s1", [{"n": 1}, mnemon.EventDraft({"n": 2}, {"user:a": 1})])
        assert (await faulty.sessions.append_event("s1", {"n": 1})).sequence == 1

    async def test_a_failing_unit_harms_no_other_of_its_group(self, memory: mnemon.HybridMemoryService) -> None:
        for number in range(10):
            await memory.sessions.create_session(f"g{number}", "helpdesk", "alice")
        faulty, faults = with_faults(memory)
        faults.fail_statement("insert_event", ZeroDivisionError(), times=3)

        works = (faulty.sessions.append_event(f"g{number}", {"n": number}) for number in range(10))
        outcomes = await asyncio.gather(*works, return_exceptions=True)

        failed = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, ZeroDivisionError)]
        assert len(failed) == 3
        for number in range(10):
            assert len(await memory.sessions.events(f"g{number}")) == (number not in failed)

    async def test_a_race_is_run_again(self, memory: mnemon.HybridMemoryService, store: Store) -> None:
        faulty, faults = with_faults(memory)
        faults.fail_statement("append", Raced(), times=2)

        await faulty.sessions.append_event("s1", {"id": "e1"})

        assert (await journal_after(store))[1:] == [("event", "e1", "append", 2, "session:s1")]

    async def test_a_lost_row_of_any_kind_of_statement_is_no_row(
        self, memory: mnemon.HybridMemoryService, store: Store
    ) -> None:
        faulty, faults = with_faults(memory)
        for statement in ("list_entries", "insert_session", "insert_event"):
            faults.race(statement)

        session = await faulty.sessions.get_session("s1")
        assert session is not None
        assert session.state == {}
        async with refused(store, mnemon.SessionExists):
            await faulty.sessions.create_session("s2", "helpdesk", "alice")
        await faulty.sessions.append_event("s1", {"n": 1})
        assert await peek(store, "SELECT COUNT(*) FROM events") == [(0,)]

    async def test_reads_fail_and_stall_too(self, memory: mnemon.HybridMemoryService, store: Store) -> None:
        faulty, faults = with_faults(memory)
        faults.fail("read", TimeoutError())
        faults.fail("fetch", TimeoutError(), after_effect=True)
        faults.fail("wait", TimeoutError())
        faults.delay("read", 0.05, skip=1)

        async with unchanged(store):
            with pytest.raises(TimeoutError):
                await faulty.sessions.get_session("s1")
            with pytest.raises(TimeoutError):
                await faulty.memories.get_memory("user:alice", "k")
            with pytest.raises(TimeoutError):
                await anext(faulty.changes(await memory.position(), follow=True))
            began = time.monotonic()
            await faulty.sessions.get_session("s1")
        assert time.monotonic() - began > 0.04

    async def test_what_others_do_in_between_can_be_staged(self, memory: mnemon.HybridMemoryService) -> None:
        faulty, faults = with_faults(memory)

        async def meanwhile() -> None:
            await memory.sessions.terminate_session("s1")

        faults.interleave("write", meanwhile)

        with pytest.raises(mnemon.InvalidTransition, match="terminated"):
            await faulty.sessions.append_event("s1", {"n": 1})

    async def test_closing_a_faulty_handle_leaves_the_store_open(self, memory: mnemon.HybridMemoryService) -> None:
        faulty, faults = with_faults(memory)

        await faulty.close()
        assert await memory.sessions.get_session("s1") is not None

        await faults.close()
        with pytest.raises(mnemon.StoreClosed):
            await memory.sessions.get_session("s1")


async def test_a_unit_that_is_always_raced_ends_with_an_error(tmp_path: Path) -> None:
    """Given a memory whose newest version was marked as old behind our back, when it is changed, then it says so."""
    async with opened("sqlite-file", f"sqlite:///{tmp_path}/m.db", ManualClock()) as memory:
        await memory.memories.add_memory("user:alice", "k", 1)
        _, faults = with_faults(memory)
        await plant(faults, "UPDATE memory_entries SET is_current = FALSE")

        async with refused(faults, mnemon.StoreBusy, "raced"):
            await memory.memories.update_memory("user:alice", "k", 2)


def test_a_manual_clock_shows_what_it_was_set_to() -> None:
    clock = ManualClock()
    start = clock.moment
    assert start.tzinfo is not None
    assert clock.now() == clock.now()

    assert (clock.advance(1.5) - start).total_seconds() == 1.5
    assert (clock.advance(-2) - start).total_seconds() == -0.5
    clock.set(datetime(1999, 12, 31, 23, 59, 59, 999999, UTC))
    assert clock.now() == 946684799999999
    assert clock.moment == datetime(1999, 12, 31, 23, 59, 59, 999999, UTC)


def test_ids_of_manual_clocks_are_unique_and_sort_in_order() -> None:
    one, other = ManualClock(), ManualClock()
    ids = [clock.new_id() for clock in (one, other) * 3]
    one.advance()
    ids.append(one.new_id())

    assert ids == sorted(set(ids))
