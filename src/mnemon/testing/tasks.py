"""The contract of `TaskService`: a unit of work's life, its result, its session and its parent."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mnemon.errors import (
    ConflictError,
    InvalidCursor,
    InvalidIdentifier,
    InvalidInput,
    InvalidStatus,
    InvalidTransition,
    InvalidValue,
    SessionNotFound,
    TaskExists,
    TaskNotFound,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import TaskStatus
from mnemon.ports import Store
from mnemon.tasks import TRANSITIONS
from mnemon.testing.clock import ManualClock
from mnemon.testing.suite import Suite, journal_after, peek, plant, refused


async def plant_task(store: Store, task_id: str, at: int, status: str = "pending", **columns: Any) -> None:
    values = {"id": task_id, "name": "job", "status": status, "created_at": at, "updated_at": at, **columns}
    marks = ", ".join(f":{name}" for name in values)
    await plant(store, f"INSERT INTO tasks ({', '.join(values)}) VALUES ({marks})", **values)


class TaskSuite(Suite):
    """Any backend must pass; override the fixture `memory`."""

    async def test_a_new_task_is_pending(self, memory: HybridMemoryService, store: Store, clock: ManualClock) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        parent = await memory.tasks.create("plan", session_id="s1")

        task = await memory.tasks.create(
            "fetch", task_id="t1", session_id="s1", parent_id=parent.id, input={"url": ["x"]}, actor="bot"
        )

        assert (task.id, task.session_id, task.parent_id, task.name) == ("t1", "s1", parent.id, "fetch")
        assert (task.status, task.input, task.result, task.error) == ("pending", {"url": ["x"]}, None, None)
        assert (task.version, task.created_at, task.updated_at) == (1, clock.moment, clock.moment)
        assert await memory.tasks.get("t1") == task
        assert await peek(store, "SELECT session_id, parent_id, status FROM tasks WHERE id = 't1'") == [
            ("s1", parent.id, "pending")
        ]
        assert (await journal_after(store))[-1] == ("task", "t1", "create", 1, "session:s1")
        [change] = (await memory.audit(task_id="t1")).items
        assert (change.actor, change.user_id, change.session_id) == ("bot", "alice", "s1")
        assert change.payload == {"parent_id": parent.id}

    async def test_a_task_needs_no_session(self, memory: HybridMemoryService, store: Store) -> None:
        task = await memory.tasks.create("sweep")

        assert await memory.tasks.get(task.id) == task
        assert await journal_after(store) == [("task", task.id, "create", 1, None)]

    async def test_what_a_task_names_must_exist(self, memory: HybridMemoryService, store: Store) -> None:
        async with refused(store, SessionNotFound, "nobody"):
            await memory.tasks.create("job", session_id="nobody")
        async with refused(store, TaskNotFound, "nothing"):
            await memory.tasks.create("job", parent_id="nothing")

    async def test_what_cannot_be_a_task_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.tasks.create("job", task_id="t1")
        strange: Any = 5

        async with refused(store, TaskExists, "t1"):
            await memory.tasks.create("job", task_id="t1", input=2)
        for bad in ("", "a:b", "x" * 257, strange):
            async with refused(store, InvalidIdentifier, "task_id"):
                await memory.tasks.create("job", task_id=bad)
        for bad in ("", "a\nb", "x" * 513, strange):
            async with refused(store, InvalidIdentifier, "name"):
                await memory.tasks.create(bad)
        async with refused(store, InvalidValue, "the task's input"):
            await memory.tasks.create("job", input={1, 2})
        async with refused(store, InvalidValue, "the task's result"):
            await memory.tasks.update("t1", "completed", result=b"")
        for bad in ("nul\0", "\ud800", strange):
            async with refused(store, InvalidValue, "the task's error"):
                await memory.tasks.update("t1", "failed", error=bad)

    async def test_reading_shows_what_stands_in_the_database(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await plant_task(store, "t1", clock.now(), "failed", input="[1]", result='{"a":2}', error="too slow", version=9)

        task = await memory.tasks.get("t1")

        assert task is not None
        assert (task.status, task.input, task.result, task.error) == ("failed", [1], {"a": 2}, "too slow")
        assert (task.version, task.session_id, task.created_at) == (9, None, clock.moment)
        assert await memory.tasks.get("t2") is None

    async def test_every_transition_is_as_documented(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for present in TaskStatus:
            for target in TaskStatus:
                task_id = f"{present}-{target}"
                await plant_task(store, task_id, clock.now(), str(present), version=3)
                if target in TRANSITIONS[present]:
                    moved = clock.advance()
                    task = await memory.tasks.update(task_id, target)
                    assert (task.status, task.version, task.updated_at) == (target, 4, moved)
                    assert await memory.tasks.get(task_id) == task
                else:
                    async with refused(store, InvalidTransition, f"is {present} and cannot become {target}"):
                        await memory.tasks.update(task_id, target)

    async def test_a_result_or_an_error_is_kept_and_recorded(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.tasks.create("job", task_id="t1", session_id="s1")

        await memory.tasks.update("t1", "running", actor="bot")
        failed = await memory.tasks.update("t1", "failed", error="too\nslow", expected_version=2)
        assert (failed.error, failed.result) == ("too\nslow", None)
        await memory.tasks.update("t1", "pending")
        done = await memory.tasks.update("t1", "completed", result={"rows": [1, 2]})

        assert (done.status, done.result, done.error, done.version) == ("completed", {"rows": [1, 2]}, None, 5)
        page = await memory.audit(task_id="t1", operation="status")
        assert [change.payload["to"] for change in page] == ["completed", "pending", "failed", "running"]
        assert {change.user_id for change in page} == {"alice"}
        assert (await journal_after(store))[-1] == ("task", "t1", "status", 5, "session:s1")

    async def test_a_stale_version_changes_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.tasks.create("job", task_id="t1")

        for stale in (0, 2):
            async with refused(store, ConflictError, f"version 1, not {stale}"):
                await memory.tasks.update("t1", "running", expected_version=stale)
        assert (await memory.tasks.update("t1", "running", expected_version=1)).version == 2

    async def test_an_unknown_task_is_not_found_by_any_method(self, memory: HybridMemoryService, store: Store) -> None:
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: memory.tasks.update("nothing", "running"),
            lambda: memory.tasks.delete("nothing"),
        ]
        for call in calls:
            async with refused(store, TaskNotFound, "nothing"):
                await call()
        async with refused(store, InvalidStatus, "pending, running"):
            await memory.tasks.update("nothing", "asleep")

    async def test_a_deleted_task_leaves_its_children(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.tasks.create("parent", task_id="p", session_id="s1")
        await memory.tasks.create("child", task_id="c", parent_id="p")

        await memory.tasks.delete("p", actor="bot")
        await memory.tasks.delete("c")

        assert await peek(store, "SELECT COUNT(*) FROM tasks") == [(0,)]
        assert (await journal_after(store))[-2:] == [
            ("task", "p", "delete", 2, "session:s1"),
            ("task", "c", "delete", 2, None),
        ]

    async def test_a_child_outlives_its_parent_and_a_task_its_session(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.tasks.create("parent", task_id="p", session_id="s1")
        await memory.tasks.create("child", task_id="c", session_id="s1", parent_id="p")

        await memory.tasks.delete("p")
        await memory.sessions.delete_session("s1")

        child = await memory.tasks.get("c")
        assert child is not None
        assert (child.parent_id, child.session_id, child.status) == (None, None, "pending")
        assert (await memory.tasks.update("c", "running")).status == "running"

    async def test_tasks_are_listed_oldest_first_by_what_they_have(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await plant_task(store, "t1", clock.now(), session_id="s1")
        clock.advance()
        await plant_task(store, "t0", clock.now(), "running", session_id="s1", parent_id="t1")
        clock.advance()
        await plant_task(store, "t2", clock.now(), "running")

        async def listed(**wanted: Any) -> str:
            return " ".join(task.id for task in await memory.tasks.list(**wanted))

        assert await listed() == "t1 t0 t2"
        assert await listed(session_id="s1") == "t1 t0"
        assert await listed(parent_id="t1") == "t0"
        assert await listed(status="running") == "t0 t2"
        assert await listed(status="running", session_id="s1") == "t0"
        assert await listed(session_id="nobody") == ""
        with pytest.raises(InvalidStatus):
            await listed(status="asleep")
        with pytest.raises(InvalidInput, match="limit"):
            await listed(limit=0)
        with pytest.raises(InvalidCursor):
            await listed(cursor="nonsense")

    async def test_pages_of_tasks_neither_repeat_nor_skip_while_tasks_come(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for number in range(5):  # all at the same moment: the id decides
            await plant_task(store, f"t{number}", clock.now())
        seen: list[str] = []
        cursor: str | None = None
        for turn in range(10):
            page = await memory.tasks.list(limit=2, cursor=cursor)
            seen += [task.id for task in page]
            cursor = page.next_cursor
            if cursor is None:
                break
            if turn < 2:
                clock.advance()
                await plant_task(store, f"late{turn}", clock.now())

        assert seen == ["t0", "t1", "t2", "t3", "t4", "late0", "late1"]
