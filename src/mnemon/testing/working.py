"""The contract of `WorkingMemory`: what is acknowledged is there, in order, until it is drained or expires."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mnemon.access import Access
from mnemon.errors import (
    ConflictError,
    InvalidCursor,
    InvalidIdentifier,
    InvalidInput,
    InvalidTransition,
    InvalidValue,
    LeaseLost,
    SessionNotFound,
    ValueTooLarge,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import DrainedBatch, Principal, WorkingItem
from mnemon.ports import Store, Transaction
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import Suite, journal_after, last_position, peek, plant, refused, unchanged
from mnemon.working.desk import Desk


def values_of(items: "list[WorkingItem] | DrainedBatch | tuple[WorkingItem, ...] | None") -> list[Any]:
    return [item.value for item in items or ()]


class WorkingSuite(Suite):
    """Any backend must pass, with working memory in the database and with a copy of it elsewhere."""

    @pytest.fixture
    async def session(self, memory: HybridMemoryService) -> str:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        return "s1"

    @pytest.fixture
    def desk(self, memory: HybridMemoryService) -> Desk:
        parts = parts_of(memory)
        return Desk(parts.store, parts.clock, Access(), parts.mirror(parts.store, parts.runner))

    # -- buffers

    async def test_what_is_appended_is_there_in_order(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        items = await memory.working.append(session, ["one", {"role": "user"}, None], actor="bot")
        items += await memory.working.append(session, ["four"])

        assert [item.sequence for item in items] == [1, 2, 3, 4]
        assert values_of(items) == ["one", {"role": "user"}, None, "four"]
        assert (items[0].created_by, items[0].created_at, items[0].expires_at) == ("bot", clock.moment, None)
        assert items[0].tokens == 1
        for _ in range(2):  # from the database, and from a copy if there is one
            assert await memory.working.recent(session) == items
        assert await peek(store, "SELECT sequence, body FROM working_items ORDER BY sequence") == [
            (1, '"one"'), (2, '{"role":"user"}'), (3, "null"), (4, '"four"'),
        ]  # fmt: skip
        assert (await journal_after(store))[-2:] == [
            ("buffer", "conversation", "append", 3, "session:s1"),
            ("buffer", "conversation", "append", 4, "session:s1"),
        ]

    async def test_the_journal_has_nothing_of_what_was_said(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        await memory.working.append(session, ["SECRET"])
        await memory.working.set(session, "plan", "SECRET")
        assert not any("SECRET" in str(row) for row in await peek(store, "SELECT * FROM journal"))

    async def test_reading_shows_what_stands_in_the_database(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await plant(
            store,
            "INSERT INTO working_items (session_id, buffer, sequence, body, tokens, created_at) "
            "VALUES ('s1', 'mine', 7, '[1]', 3, :at)",
            at=clock.now(),
        )
        assert await memory.working.recent(session, buffer="mine") == [WorkingItem(7, [1], 3, None, clock.moment, None)]

    async def test_the_last_ones_are_asked_for_by_number(self, memory: HybridMemoryService, session: str) -> None:
        await memory.working.append(session, list(range(60)))
        for _ in range(2):
            assert values_of(await memory.working.recent(session, last=3)) == [57, 58, 59]
            assert values_of(await memory.working.recent(session)) == list(range(10, 60))
            assert values_of(await memory.working.recent(session, last=600)) == list(range(60))
        await memory.working.append(session, [60])
        assert values_of(await memory.working.recent(session, last=3)) == [58, 59, 60]

    async def test_the_last_ones_are_asked_for_by_their_length(self, memory: HybridMemoryService, session: str) -> None:
        await memory.working.append(session, ["one two three", "four five", "six"])
        whole = sum(item.tokens for item in await memory.working.recent(session))
        for _ in range(2):
            assert values_of(await memory.working.recent(session, budget=whole)) == [
                "one two three",
                "four five",
                "six",
            ]
            assert values_of(await memory.working.recent(session, budget=whole - 1)) == ["four five", "six"]
            assert values_of(await memory.working.recent(session, budget=whole, last=1)) == ["six"]
            assert values_of(await memory.working.recent(session, budget=0)) == []

    async def test_buffers_have_nothing_to_do_with_each_other(
        self, memory: HybridMemoryService, clock: ManualClock, session: str
    ) -> None:
        await memory.sessions.create_session("s2", "helpdesk", "alice")
        await memory.working.append(session, ["a"])
        await memory.working.append(session, ["b", "c"], buffer="steps")
        await memory.working.append("s2", ["d"])

        assert values_of(await memory.working.recent(session)) == ["a"]
        assert values_of(await memory.working.recent(session, buffer="steps")) == ["b", "c"]
        assert values_of(await memory.working.recent("s2")) == ["d"]
        assert await memory.working.recent(session, buffer="nothing") == []
        listed = await memory.working.buffers(session)
        assert [(each.name, each.items, each.tokens, each.last_sequence) for each in listed] == [
            ("conversation", 1, 1, 1), ("steps", 2, 2, 2),
        ]  # fmt: skip
        assert listed[0].updated_at == clock.moment

    async def test_what_has_expired_is_not_there(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["stays"])
        [brief] = await memory.working.append(session, ["goes"], ttl=10)
        assert brief.expires_at is not None
        assert len(await memory.working.recent(session)) == 2
        assert clock.advance(10) == brief.expires_at

        for _ in range(2):
            assert values_of(await memory.working.recent(session, last=1)) == ["stays"]
            assert values_of(await memory.working.recent(session)) == ["stays"]
        assert (await memory.working.buffers(session))[0].items == 1
        assert values_of(await memory.working.drain(session)) == ["stays"]
        assert await memory.working.prune() == 1
        assert await peek(store, "SELECT body FROM working_items") == [('"stays"',)]

    # -- draining

    async def test_a_batch_is_gone_when_it_is_acknowledged(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["one", "two", "three"])
        batch = await memory.working.drain(session, limit=2, lease=30)

        assert batch is not None
        assert values_of(batch) == ["one", "two"]
        assert (batch.session_id, batch.buffer, (batch.until - clock.moment).total_seconds()) == (
            session, "conversation", 30,
        )  # fmt: skip
        assert len(await memory.working.recent(session)) == 3
        await memory.working.acknowledge(batch, actor="bot")
        for _ in range(2):
            assert values_of(await memory.working.recent(session)) == ["three"]
        assert await peek(store, "SELECT body FROM working_items") == [('"three"',)]
        assert (await journal_after(store))[-1] == ("buffer", "conversation", "acknowledge", 3, "session:s1")
        [added] = await memory.working.append(session, ["four"])
        assert added.sequence == 4

    async def test_a_number_is_never_given_twice(self, memory: HybridMemoryService, session: str) -> None:
        await memory.working.append(session, ["one", "two"])
        batch = await memory.working.drain(session)
        assert batch is not None
        await memory.working.acknowledge(batch)
        assert await memory.working.recent(session) == []
        assert [item.sequence for item in await memory.working.append(session, ["three"])] == [3]
        assert values_of(await memory.working.recent(session)) == ["three"]

    async def test_what_is_handed_out_is_nobody_elses_until_the_lease_ends(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["one", "two"])
        lost = await memory.working.drain(session, limit=1, lease=30)
        other = await memory.working.drain(session)
        assert lost is not None
        assert values_of(other) == ["two"]
        async with unchanged(store):
            assert await memory.working.drain(session) is None
        clock.advance(30)
        again = await memory.working.drain(session)
        assert values_of(again) == ["one"]
        async with refused(store, LeaseLost, "nothing was removed"):
            await memory.working.acknowledge(lost)
        assert again is not None
        await memory.working.acknowledge(again)
        async with refused(store, LeaseLost):
            await memory.working.acknowledge(again)

    async def test_of_a_batch_in_part_anothers_nothing_is_removed(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["one", "two"])
        late = await memory.working.drain(session, lease=5)
        clock.advance(5)
        await memory.working.drain(session, limit=1)
        assert late is not None
        async with refused(store, LeaseLost, "2 items .* 1 of them"):
            await memory.working.acknowledge(late)

    async def test_a_late_worker_may_still_acknowledge_what_nobody_took(
        self, memory: HybridMemoryService, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["one"])
        batch = await memory.working.drain(session, lease=5)
        clock.advance(50)
        assert batch is not None
        await memory.working.acknowledge(batch)
        assert await memory.working.recent(session) == []

    async def test_a_batch_can_be_given_back(self, memory: HybridMemoryService, store: Store, session: str) -> None:
        await memory.working.append(session, ["one"])
        batch = await memory.working.drain(session)
        assert batch is not None
        await memory.working.release(batch, actor="bot")
        assert (await journal_after(store))[-1] == ("buffer", "conversation", "release", None, "session:s1")
        again = await memory.working.drain(session)
        assert values_of(again) == ["one"]
        async with unchanged(store):
            await memory.working.release(batch)

    async def test_what_is_taken_in_a_transaction_goes_with_it(
        self, memory: HybridMemoryService, store: Store, desk: Desk, session: str
    ) -> None:
        await memory.working.append(session, ["one", "two", "three"])
        await memory.working.drain(session, limit=1)
        assert len(await memory.working.recent(session)) == 3

        async def failing(tx: Transaction) -> None:
            await desk.take(tx, session, "conversation", 10)
            raise RuntimeError("rolled back")

        async with unchanged(store):
            with pytest.raises(RuntimeError, match="rolled back"):
                await store.write(failing)
        taken = await store.write(lambda tx: desk.take(tx, session, "conversation", 10))
        await desk.copy(taken.changes)
        assert values_of(taken.items) == ["two", "three"]
        assert values_of(await memory.working.recent(session)) == ["one"]
        assert not (await store.write(lambda tx: desk.take(tx, session, "none", 10))).items

    async def test_buffers_that_wait_are_found(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, desk: Desk, session: str
    ) -> None:
        await memory.sessions.create_session("s2", "helpdesk", "bob")
        await memory.working.append(session, ["one"])
        clock.advance(10)
        await memory.working.append("s2", ["two"], buffer="steps")
        assert [each[:2] for each in await desk.waiting()] == [(session, "conversation"), ("s2", "steps")]
        assert [each.session_id for each in await desk.waiting(idle=10)] == [session]
        batch = await memory.working.drain(session)
        assert [each.session_id for each in await desk.waiting()] == ["s2"]
        assert batch is not None
        await memory.working.acknowledge(batch)
        await memory.working.append(session, ["brief"], buffer="steps", ttl=5)
        clock.advance(5)
        assert await memory.working.prune() == 1
        assert await peek(store, "SELECT session_id FROM working_buffers WHERE has_items = TRUE") == [("s2",)]
        await memory.working.append(session, ["three"])
        assert [each.session_id for each in await desk.waiting()] == ["s2", session]

    async def test_many_at_once_lose_and_repeat_nothing(
        self, memory: HybridMemoryService, crowd: Crowd, session: str
    ) -> None:
        drained: list[Any] = []

        async def fill(name: int) -> None:
            for number in range(10):
                await memory.working.append(session, [f"{name}-{number}"])
                await memory.working.recent(session, last=2)

        async def empty() -> None:
            for _ in range(20):
                batch = await memory.working.drain(session, limit=3)
                if batch:
                    await memory.working.acknowledge(batch)
                    drained.extend(values_of(batch))

        await crowd.gather([lambda name=name: fill(name) for name in range(4)] + [empty, empty])
        left = values_of(await memory.working.recent(session, last=500))
        assert sorted(drained + left) == sorted(f"{name}-{number}" for name in range(4) for number in range(10))

    # -- scratchpads

    async def test_a_scratchpad_has_what_was_set(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        assert await memory.working.get(session, "plan") is None
        first = await memory.working.set(session, "plan", {"step": 1}, actor="bot")
        assert (first.name, first.value, first.version, first.updated_by) == ("plan", {"step": 1}, 1, "bot")
        assert (first.updated_at, first.expires_at) == (clock.moment, None)
        assert [await memory.working.get(session, "plan") for _ in range(2)] == [first, first]
        second = await memory.working.set(session, "plan", None)
        assert (second.value, second.version) == (None, 2)
        assert [await memory.working.get(session, "plan") for _ in range(2)] == [second, second]
        assert (await journal_after(store))[-2:] == [
            ("scratchpad", "plan", "set", 1, "session:s1"),
            ("scratchpad", "plan", "set", 2, "session:s1"),
        ]

    async def test_of_two_who_compare_and_set_one_is_told(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        await memory.working.set(session, "plan", 1, expected_version=0)
        async with refused(store, ConflictError, "version 1, not version 0"):
            await memory.working.set(session, "plan", 2, expected_version=0)
        await memory.working.set(session, "plan", 2, expected_version=1)
        async with refused(store, ConflictError, "version 2, not version 1"):
            await memory.working.set(session, "plan", 3, expected_version=1)
        async with refused(store, ConflictError, "not set, not version 1"):
            await memory.working.set(session, "other", 3, expected_version=1)
        async with refused(store, ConflictError, "version 2, not version 1"):
            await memory.working.delete(session, "plan", expected_version=1)

    async def test_many_who_compare_and_set_count_right(
        self, memory: HybridMemoryService, crowd: Crowd, session: str
    ) -> None:
        await memory.working.set(session, "count", 0)

        async def count() -> None:
            done = 0
            while done < 5:
                pad = await memory.working.get(session, "count")
                assert pad is not None
                try:
                    await memory.working.set(session, "count", pad.value + 1, expected_version=pad.version)
                    done += 1
                except ConflictError:
                    continue

        await crowd.gather([count] * 4)
        pad = await memory.working.get(session, "count")
        assert pad is not None
        assert (pad.value, pad.version) == (20, 21)

    async def test_a_deleted_scratchpad_is_gone_and_its_versions_go_on(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        await memory.working.set(session, "plan", "SECRET")
        await memory.working.get(session, "plan")
        assert await memory.working.delete(session, "plan")
        assert [await memory.working.get(session, "plan") for _ in range(2)] == [None, None]
        async with unchanged(store):
            assert not await memory.working.delete(session, "plan")
        assert "SECRET" not in str(await peek(store, "SELECT * FROM scratchpads"))
        assert (await memory.working.set(session, "plan", 2, expected_version=0)).version == 3

    async def test_a_scratchpad_expires(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.working.set(session, "plan", "SECRET", ttl=5)
        await memory.working.get(session, "plan")
        clock.advance(5)
        assert [await memory.working.get(session, "plan") for _ in range(2)] == [None, None]
        assert await memory.working.scratchpads(session) == await memory.working.scratchpads(session, limit=1)
        assert not await memory.working.delete(session, "plan")
        assert await memory.working.prune() == 1
        assert "SECRET" not in str(await peek(store, "SELECT * FROM scratchpads"))
        assert (await memory.working.set(session, "plan", 2, expected_version=0)).version == 2

    async def test_a_scratchpad_that_is_gone_for_a_week_leaves_nothing(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.working.set(session, "plan", 1, ttl=5)
        await memory.working.set(session, "list", 1)
        await memory.working.delete(session, "list")
        clock.advance(5)
        assert await memory.working.prune() == 1
        assert await memory.working.prune() == 0
        assert len(await peek(store, "SELECT name FROM scratchpads")) == 2
        clock.advance(7 * 24 * 3600)
        assert await memory.working.prune() == 0
        assert await peek(store, "SELECT name FROM scratchpads") == []
        assert (await memory.working.set(session, "plan", 2, expected_version=0)).version == 1
        assert await memory.working.get(session, "plan") == await memory.working.get(session, "plan")

    async def test_scratchpads_are_listed_by_name(self, memory: HybridMemoryService, session: str) -> None:
        for name in ("c", "a", "b"):
            await memory.working.set(session, name, name)
        await memory.working.delete(session, "b")
        page = await memory.working.scratchpads(session, limit=1)
        assert [pad.name for pad in page] == ["a"]
        page = await memory.working.scratchpads(session, cursor=page.next_cursor)
        assert ([pad.name for pad in page], page.next_cursor) == (["c"], None)
        with pytest.raises(InvalidCursor):
            await memory.working.scratchpads(session, cursor="nonsense")

    # -- sessions and access

    async def test_working_memory_goes_with_its_session(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["one"])
        await memory.working.set(session, "plan", 1)
        await memory.working.recent(session)
        await memory.working.get(session, "plan")
        await memory.sessions.delete_session(session)
        with pytest.raises(SessionNotFound):
            await memory.working.recent(session)
        clock.advance()
        await memory.sessions.create_session(session, "helpdesk", "alice")
        assert await memory.working.recent(session) == []
        assert await memory.working.get(session, "plan") is None
        assert [item.sequence for item in await memory.working.append(session, ["new"])] == [1]
        assert values_of(await memory.working.recent(session)) == ["new"]
        assert await peek(store, "SELECT COUNT(*) FROM working_items") == [(1,)]

    async def test_an_unknown_session_has_none(self, memory: HybridMemoryService, store: Store) -> None:
        batch = DrainedBatch("nobody", "conversation", "x", (), ManualClock().moment)
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: memory.working.append("nobody", ["x"]),
            lambda: memory.working.recent("nobody"),
            lambda: memory.working.buffers("nobody"),
            lambda: memory.working.drain("nobody"),
            lambda: memory.working.acknowledge(batch),
            lambda: memory.working.release(batch),
            lambda: memory.working.get("nobody", "x"),
            lambda: memory.working.set("nobody", "x", 1),
            lambda: memory.working.delete("nobody", "x"),
            lambda: memory.working.scratchpads("nobody"),
        ]
        for call in calls:
            async with refused(store, SessionNotFound, "nobody"):
                await call()

    async def test_a_session_that_is_over_can_only_be_read_and_drained(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        await memory.working.append(session, ["one"])
        await memory.working.set(session, "plan", 1)
        await memory.sessions.terminate_session(session)
        async with refused(store, InvalidTransition, "can only be drained"):
            await memory.working.append(session, ["two"])
        async with refused(store, InvalidTransition):
            await memory.working.set(session, "plan", 2)
        assert values_of(await memory.working.recent(session)) == ["one"]
        batch = await memory.working.drain(session)
        assert batch is not None
        await memory.working.acknowledge(batch)

    async def test_a_principal_has_the_working_memory_of_its_sessions(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        await memory.working.append(session, ["one"])
        await memory.working.recent(session)
        owner = memory.as_principal(Principal("alice-bot", {"user:alice": "write"})).working
        reader = memory.as_principal(Principal("reader", {"session:s1": "read"})).working
        stranger = memory.as_principal(Principal("stranger", {"user:bob": "admin"})).working

        [item] = await owner.append(session, ["two"], actor="somebody else")
        assert item.created_by == "alice-bot"
        assert values_of(await reader.recent(session)) == ["one", "two"]
        denied: list[Callable[[], Awaitable[object]]] = [
            lambda: reader.append(session, ["x"]),
            lambda: reader.drain(session),
            lambda: reader.set(session, "x", 1),
            lambda: stranger.recent(session),
            lambda: stranger.get(session, "x"),
            lambda: stranger.drain(session),
        ]
        for call in denied:
            async with refused(store, SessionNotFound):
                await call()
        async with refused(store, PermissionError):
            await owner.prune()

    async def test_what_cannot_be_used_is_refused(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        working, strange = memory.working, [1, "x"]
        bad: list[tuple[type[Exception], Callable[[], Awaitable[object]]]] = [
            (InvalidInput, lambda: working.append(session, "a text")),
            (InvalidValue, lambda: working.append(session, ["fine", b"bytes"])),
            (ValueTooLarge, lambda: working.append(session, ["x" * 1_048_577])),
            (InvalidIdentifier, lambda: working.append(session, ["x"], buffer="")),
            (InvalidIdentifier, lambda: working.append(session, ["x"], buffer="a\nb")),
            (InvalidInput, lambda: working.append(session, ["x"], ttl=0)),
            (InvalidInput, lambda: working.append(session, ["x"], ttl=float("nan"))),
            (InvalidInput, lambda: working.recent(session, last=0)),
            (InvalidInput, lambda: working.recent(session, budget=-1)),
            (InvalidInput, lambda: working.drain(session, limit=0)),
            (InvalidInput, lambda: working.drain(session, lease=-1)),
            (InvalidInput, lambda: working.drain(session, lease=float("inf"))),
            (InvalidIdentifier, lambda: working.set(session, "", 1)),
            (InvalidValue, lambda: working.set(session, "x", {1})),
            (InvalidIdentifier, lambda: working.get(session, "\0")),
            (InvalidIdentifier, lambda: working.append(strange, ["x"])),  # type: ignore[arg-type]
        ]
        for error, call in bad:
            async with refused(store, error):
                await call()
        async with unchanged(store):
            assert await working.append(session, []) == []

    async def test_changes_can_be_followed(self, memory: HybridMemoryService, store: Store, session: str) -> None:
        start = await last_position(store)
        await memory.sessions.create_session("s2", "helpdesk", "alice")
        await memory.working.append("s2", ["other"])
        await memory.working.append(session, ["one"])
        await memory.working.set(session, "plan", 1)
        seen: list[tuple[str, str, str]] = []
        async for change in memory.working.follow(session, after=start):
            seen.append((change.entity, change.entity_id, change.operation))
            if len(seen) == 2:
                break
        await asyncio.sleep(0)
        assert seen == [("buffer", "conversation", "append"), ("scratchpad", "plan", "set")]
