"""The contract of the journal: the feed, the audit, and what follows it."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from mnemon.errors import InvalidCursor, InvalidInput, InvalidNamespace
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Change, Placement
from mnemon.ports import Raced, Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.consumers import ConsumerSuite
from mnemon.testing.crowds import Crowd
from mnemon.testing.faults import with_faults
from mnemon.testing.seals import SealSuite
from mnemon.testing.suite import journal_after, peek, plant, unchanged

_INSERT = (
    "INSERT INTO journal "
    "(at, actor, entity, entity_id, operation, version, namespace, user_id, session_id, task_id, payload) VALUES "
    "(:at, :actor, :entity, :id, :operation, 1, :namespace, 'alice', :session, :task, '{\"n\":1}')"
)


async def plant_change(store: Store, at: int, entity_id: str, **columns: Any) -> None:
    """A journal row that no service wrote."""
    row: dict[str, Any] = {
        "actor": None, "entity": "memory", "operation": "add", "namespace": None, "session": None, "task": None,
        **columns,
    }  # fmt: skip
    await plant(store, _INSERT, at=at, id=entity_id, **row)


async def collected(changes: AsyncIterator[Change]) -> list[Change]:
    return [change async for change in changes]


class JournalSuite(ConsumerSuite, SealSuite):
    """Any backend must pass; override the fixture `memory`."""

    # -- one row per change

    async def test_every_operation_writes_its_rows_in_its_own_transaction(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        sessions, state, tasks, memories = memory.sessions, memory.state, memory.tasks, memory.memories
        await sessions.create_session("s1", "helpdesk", "alice")
        await sessions.update_status("s1", "active")
        await sessions.update_metadata("s1", {"a": 1})
        await sessions.append_event("s1", {"id": "e1"}, {"user:a": 1})
        await sessions.set_state("s1", "temp:x", 1)
        await state.compare_and_set("x", 1, 0, session_id="s1")
        await state.update("x", lambda value: value, session_id="s1")
        await state.delete("x", session_id="s1")
        await tasks.create("job", task_id="t1", session_id="s1")
        await tasks.update("t1", "running")
        await tasks.delete("t1")
        await memories.add_memory("user:alice", "k", 1, placement=Placement("chat", 1))
        await memories.update_memory("user:alice", "k", 2)
        await memories.delete_memory("user:alice", "k")
        await memories.restore_memory("user:alice", "k")
        await memories.purge_memory("user:alice", "k")
        await sessions.terminate_session("s1")
        await sessions.delete_session("s1")

        assert await journal_after(store) == [
            ("session", "s1", "create", 1, "session:s1"),
            ("session", "s1", "status", 2, "session:s1"),
            ("session", "s1", "metadata", 3, "session:s1"),
            ("event", "e1", "append", 4, "session:s1"),
            ("state", "user:alice:helpdesk", "merge", None, "user:alice:helpdesk"),
            ("state", "temp:s1", "merge", None, "session:s1"),
            ("state", "session:s1", "set", 1, "session:s1"),
            ("state", "session:s1", "set", 2, "session:s1"),
            ("state", "session:s1", "delete", 3, "session:s1"),
            ("task", "t1", "create", 1, "session:s1"),
            ("task", "t1", "status", 2, "session:s1"),
            ("task", "t1", "delete", 3, "session:s1"),
            ("memory", "k", "add", 1, "user:alice"),
            ("memory", "k", "update", 2, "user:alice"),
            ("memory", "k", "delete", 3, "user:alice"),
            ("memory", "k", "restore", 4, "user:alice"),
            ("memory", "k", "purge", None, "user:alice"),
            ("session", "s1", "status", 9, "session:s1"),
            ("session", "s1", "delete", 10, "session:s1"),
        ]

    async def test_a_change_whose_entry_cannot_be_written_does_not_happen(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.memories.add_memory("user:alice", "k", 1)
        await memory.tasks.create("job", task_id="t1")
        broken, faults = with_faults(memory)
        calls: list[Callable[[], Any]] = [
            lambda: broken.sessions.create_session("s2", "helpdesk", "alice", initial_state={"a": 1}),
            lambda: broken.sessions.append_event("s1", {"n": 1}, {"user:a": 1}),
            lambda: broken.sessions.update_status("s1", "terminated"),
            lambda: broken.sessions.delete_session("s1"),
            lambda: broken.state.set("user:a", 1, session_id="s1"),
            lambda: broken.state.update("a", lambda _: 1, session_id="s1"),
            lambda: broken.tasks.update("t1", "running"),
            lambda: broken.memories.add_memory("user:alice", "k2", 1),
            lambda: broken.memories.update_memory("user:alice", "k", 2),
            lambda: broken.memories.purge_memory("user:alice", "k"),
        ]
        for call in calls:
            for statement in ("append", "append_returning"):
                faults.fail_statement(statement, ZeroDivisionError())
            async with unchanged(store):
                with pytest.raises(ZeroDivisionError):
                    await call()
            faults.heal()

    async def test_a_unit_of_work_that_ran_twice_is_recorded_once(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        raced, faults = with_faults(memory)
        faults.fail_statement("append", Raced(), times=3)

        await raced.memories.add_memory("user:alice", "k", 1)

        assert await journal_after(store) == [("memory", "k", "add", 1, "user:alice")]
        assert await peek(store, "SELECT COUNT(*) FROM memory_entries") == [(1,)]

    async def test_the_journal_never_holds_content(self, memory: HybridMemoryService, store: Store) -> None:
        hush = "hush-hush"
        await memory.sessions.create_session("s1", "helpdesk", "alice", initial_state={"a": hush}, metadata={"m": hush})
        await memory.sessions.append_event("s1", {"text": hush}, {"user:b": hush})
        await memory.state.update("a", lambda _: [hush], session_id="s1")
        await memory.tasks.create("job", task_id="t1", input=hush)
        await memory.tasks.update("t1", "failed", result=hush, error=hush)
        await memory.memories.add_memory("user:alice", "k", hush, metadata={"x": hush})
        await memory.memories.update_memory("user:alice", "k", [hush])

        assert hush not in str(await peek(store, "SELECT * FROM journal"))

    # -- the feed

    async def test_the_feed_shows_what_stands_in_the_journal_in_order(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        assert await memory.position() == 0
        assert await collected(memory.changes()) == []
        await plant_change(store, clock.now() + 5, "a", actor="bot", namespace="user:alice", session="s1", task="t1")
        await plant_change(store, clock.now(), "b")

        first, second = await collected(memory.changes())

        assert (first.entity, first.entity_id, first.operation, first.version) == ("memory", "a", "add", 1)
        assert (first.actor, first.namespace, first.user_id) == ("bot", "user:alice", "alice")
        assert (first.session_id, first.task_id, first.payload) == ("s1", "t1", {"n": 1})
        assert first.at == clock.moment + timedelta(microseconds=5)
        assert second.position > first.position > 0
        assert await memory.position() == second.position
        assert await collected(memory.changes(after=first.position)) == [second]
        assert await collected(memory.changes(after=second.position)) == []

    async def test_the_feed_can_be_narrowed(self, memory: HybridMemoryService) -> None:
        for session_id in ("s1", "s10"):
            await memory.sessions.create_session(session_id, "helpdesk", "alice")
        await memory.memories.add_memory("user:alice:x", "k", 1)
        await memory.memories.add_memory("user:alicex", "k", 1)
        await memory.tasks.create("job", task_id="t1", session_id="s1")

        async def seen(**wanted: Any) -> list[str]:
            return [change.entity_id for change in await collected(memory.changes(**wanted))]

        assert await seen(entity="session") == ["s1", "s10"]
        assert await seen(namespace="session:s1") == ["s1", "t1"]
        assert await seen(namespace="session") == ["s1", "s10", "t1"]
        assert await seen(namespace="user:alice") == ["k"]
        assert await seen(session_id="s1") == ["s1", "t1"]
        assert await seen(session_id="s1", entity="task") == ["t1"]
        assert len(await seen(namespace="")) == 5
        with pytest.raises(InvalidNamespace):
            memory.changes(namespace="users")

    async def test_the_feed_of_a_long_journal_is_whole(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.sessions.append_events("s1", [{} for _ in range(1200)])

        changes = await collected(memory.changes())

        assert len(changes) == 1201
        assert [change.position for change in changes] == sorted({change.position for change in changes})
        assert [change.payload["sequence"] for change in changes[1:]] == list(range(1, 1201))

    async def test_a_position_that_cannot_be_is_refused(self, memory: HybridMemoryService) -> None:
        strange: tuple[Any, ...] = (-1, True, "1", 1.5)
        for after in strange:
            with pytest.raises(InvalidInput, match="position"):
                await collected(memory.changes(after=after))

    async def test_a_follower_sees_what_was_there_and_what_comes(
        self, memory: HybridMemoryService, crowd: Crowd
    ) -> None:
        await memory.memories.add_memory("user:alice", "before", 1)

        async def change() -> None:
            await memory.memories.add_memory("user:bob", "other", 1)
            await memory.memories.add_memory("user:alice", "after", 1)

        seen: list[str] = []
        async with crowd.meanwhile(change):
            async for found in memory.changes(follow=True, namespace="user:alice"):
                seen.append(found.entity_id)
                if len(seen) == 2:
                    break

        assert seen == ["before", "after"]

    async def test_followers_of_racing_writers_skip_nothing(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        for number in range(8):
            await memory.sessions.create_session(f"s{number}", "helpdesk", "alice")
        start = await memory.position()

        def write(number: int) -> Callable[[], Any]:
            async def work() -> None:
                for turn in range(6):
                    delta = {"app:shared": number}
                    await memory.sessions.append_event(f"s{number}", {"id": f"{number}-{turn}"}, delta)

            return work

        async def follow() -> list[int]:
            seen: list[int] = []
            async for change in memory.changes(start, True):
                seen.append(change.position)
                if len(seen) == 96:
                    break
            return seen

        results = await crowd.gather([follow, *(write(number) for number in range(8) for _ in range(1)), follow])

        expected = [change.position for change in await collected(memory.changes(start))]
        assert results[0] == results[-1] == expected
        assert len(set(expected)) == 96

    # -- the audit

    async def test_the_audit_answers_who_did_what_to_what(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        start, second = clock.moment, timedelta(seconds=1)
        rows: list[dict[str, Any]] = [
            {"actor": "bot", "namespace": "user:a", "task": "t1"},
            {"actor": "eve", "namespace": "user:a:x", "session": "s1"},
            {"actor": "bot", "namespace": "user:ab", "entity": "state", "operation": "merge"},
            {"actor": None, "namespace": None, "entity": "task", "task": "t1"},
        ]
        for number, row in enumerate(rows):
            await plant_change(store, clock.now(), str(number), **row)
            clock.advance()

        async def found(**wanted: Any) -> str:
            return " ".join(change.entity_id for change in await memory.audit(**wanted))

        assert await found() == "3 2 1 0"
        assert await found(actor="bot") == "2 0"
        assert await found(actor="nobody") == ""
        assert await found(entity="memory") == "1 0"
        assert await found(entity_id="2") == "2"
        assert await found(operation="merge") == "2"
        assert await found(namespace="user:a") == "1 0"
        assert await found(namespace="user") == "2 1 0"
        assert await found(session_id="s1") == "1"
        assert await found(task_id="t1") == "3 0"
        assert await found(since=start + second) == "3 2 1"
        assert await found(until=start + second) == "0"
        assert await found(since=start + second, until=start + 3 * second) == "2 1"
        assert await found(since=start + second, actor="bot") == "2"
        assert await found(since=start, namespace="user:a", task_id="t1", actor="bot") == "0"

    async def test_pages_of_the_audit_are_stable(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        start = clock.moment
        for number in range(7):
            await plant_change(store, clock.now(), str(number), actor="bot")
            clock.advance(number % 2)  # some at the same moment: the position decides
        periods: list[dict[str, Any]] = [{}, {"since": start}, {"actor": "bot", "until": start + timedelta(days=1)}]
        for wanted in periods:
            seen: list[str] = []
            cursor: str | None = None
            for _ in range(10):
                page = await memory.audit(limit=2, cursor=cursor, **wanted)
                seen += [change.entity_id for change in page]
                cursor = page.next_cursor
                if cursor is None:
                    break
                clock.advance()
                await plant_change(store, clock.now(), "late", actor="bot")
            assert [number for number in seen if number != "late"] == list("6543210")
            assert "late" not in seen[2:] or wanted != periods[0]

    async def test_an_audit_that_has_no_meaning_is_refused(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        for key in ("a", "b"):
            await memory.memories.add_memory("user:alice", key, 1)
        plain = (await memory.audit(limit=1)).next_cursor
        period = (await memory.audit(limit=1, since=clock.moment)).next_cursor
        cases: list[tuple[type[Exception], dict[str, Any]]] = [
            (InvalidCursor, {"cursor": plain, "since": clock.moment}),
            (InvalidCursor, {"cursor": period}),
            (InvalidCursor, {"cursor": "nonsense"}),
            (InvalidInput, {"limit": 0}),
            (InvalidNamespace, {"namespace": "users"}),
        ]
        for error, wanted in cases:
            with pytest.raises(error):
                await memory.audit(**wanted)
