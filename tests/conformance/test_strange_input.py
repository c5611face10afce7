"""Text and numbers that no database can carry are refused as bad input, wherever they are given."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemon import HybridMemoryService, MemoryDraft, MnemonError, Placement, StoreError
from mnemon.ports import Store
from mnemon.testing import Suite
from mnemon.testing.suite import contents
from tests.conformance.backends import OverEveryBackend

Call = Callable[[HybridMemoryService, Any], Awaitable[Any]]


async def collect(changes: Any) -> list[Any]:
    return [change async for change in changes]


TEXTS: dict[str, Call] = {
    "list_sessions user": lambda m, x: m.sessions.list_sessions(user_id=x),
    "list_sessions app": lambda m, x: m.sessions.list_sessions(app_name=x),
    "list_sessions cursor": lambda m, x: m.sessions.list_sessions(cursor=x),
    "list_active_sessions": lambda m, x: m.sessions.list_active_sessions(x),
    "get_session": lambda m, x: m.sessions.get_session(x),
    "events": lambda m, x: m.sessions.events(x),
    "append_event": lambda m, x: m.sessions.append_event(x, {}),
    "append_event id": lambda m, x: m.sessions.append_event("s1", {}, event_id=x),
    "append_event actor": lambda m, x: m.sessions.append_event("s1", {}, actor=x),
    "append_event task": lambda m, x: m.sessions.append_event("s1", {}, task_id=x),
    "create_session actor": lambda m, x: m.sessions.create_session("s2", "a", "u", actor=x),
    "state.entries": lambda m, x: m.state.entries(x, session_id="s1"),
    "state.get": lambda m, x: m.state.get(x, session_id="s1"),
    "state.set actor": lambda m, x: m.state.set("user:a", 1, session_id="s1", actor=x),
    "state owner": lambda m, x: m.state.get("app:a", app_name=x),
    "tasks.list": lambda m, x: m.tasks.list(session_id=x),
    "tasks.list parent": lambda m, x: m.tasks.list(parent_id=x),
    "tasks.get": lambda m, x: m.tasks.get(x),
    "tasks.create actor": lambda m, x: m.tasks.create("job", actor=x),
    "tasks.create parent": lambda m, x: m.tasks.create("job", parent_id=x),
    "tasks.update error": lambda m, x: m.tasks.update("t1", "failed", error=x),
    "search created_by": lambda m, x: m.memories.search_memories(created_by=x),
    "search where": lambda m, x: m.memories.search_memories(where={"a": x}),
    "search path": lambda m, x: m.memories.search_memories(where={x: 1}),
    "get_thread": lambda m, x: m.memories.get_thread(x),
    "get_memory": lambda m, x: m.memories.get_memory("user:a", x),
    "add_memory created_by": lambda m, x: m.memories.add_memory("user:a", "k", 1, created_by=x),
    "put_memories": lambda m, x: m.memories.put_memories([MemoryDraft(1, "user:a", x)]),
    "forget": lambda m, x: m.forget(f"user:{x}"),
    "forget key": lambda m, x: m.forget("user:a", x),
    "remember key": lambda m, x: m.remember("text", namespace="user:a", key=x),
    "remember author": lambda m, x: m.remember("text", namespace="user:a", author=x),
    "remember thread": lambda m, x: m.remember("text", namespace="user:a", thread=x),
    "remember actor": lambda m, x: m.remember_many(["text"], namespace="user:a", actor=x),
    "recall": lambda m, x: m.recall(x, namespaces="user:b"),
    "recall key": lambda m, x: m.recall(f"what is '{x}'?", namespaces="user:b"),
    "recall namespace": lambda m, x: m.recall("what?", namespaces=["user:b", f"user:{x}"]),
    "recall where": lambda m, x: m.recall("what?", namespaces="user:b", where={"a": x}),
    "recall past": lambda m, x: m.recall(x, namespaces="user:b", where={x: 1}, as_of=datetime.now(UTC)),
    "context session": lambda m, x: m.context("what?", session_id=x),
    "vectors.store": lambda m, x: m.vectors.store(x, [1.0]),
    "index.verify": lambda m, x: m.index.verify(x),
    "audit actor": lambda m, x: m.audit(actor=x),
    "audit id": lambda m, x: m.audit(entity_id=x),
    "audit task": lambda m, x: m.audit(task_id=x),
    "changes session": lambda m, x: collect(m.changes(session_id=x)),
    "changes entity": lambda m, x: collect(m.changes(entity=x)),
    "consumer": lambda m, x: m.consumer(x).rewind(),
    "verify": lambda m, x: m.verify(x),
}

NUMBERS: dict[str, Call] = {
    "get_memory": lambda m, x: m.memories.get_memory("user:a", "k", x),
    "restore_memory": lambda m, x: m.memories.restore_memory("user:a", "k", x),
    "update_memory": lambda m, x: m.memories.update_memory("user:a", "k", 1, expected_version=x),
    "get_thread first": lambda m, x: m.memories.get_thread("t", first=x),
    "get_thread last": lambda m, x: m.memories.get_thread("t", last=x),
    "position": lambda m, x: m.memories.add_memory("user:a", "new", 1, placement=Placement("t", x)),
    "remember position": lambda m, x: m.remember("text", namespace="user:a", thread="t", position=x),
    "recall k": lambda m, x: m.recall("what?", namespaces="user:a", k=x),
    "recall offset": lambda m, x: m.recall("what?", namespaces="user:a", offset=x),
    "recall where": lambda m, x: m.recall("what?", namespaces="user:a", where={"a": x}),
    "events last": lambda m, x: m.sessions.events("s1", last=x),
    "events after": lambda m, x: m.sessions.events("s1", after=x),
    "get_session": lambda m, x: m.sessions.get_session("s1", last=x),
    "append_event": lambda m, x: m.sessions.append_event("s1", {}, expected_version=x),
    "compare_and_set": lambda m, x: m.state.compare_and_set("user:a", 1, x, session_id="s1"),
    "delete": lambda m, x: m.state.delete("user:a", expected_version=x, session_id="s1"),
    "tasks.update": lambda m, x: m.tasks.update("t1", "running", expected_version=x),
    "changes": lambda m, x: collect(m.changes(x)),
    "rewind": lambda m, x: m.consumer("c").rewind(x),
    "limit": lambda m, x: m.audit(limit=x),
}


class TestStrangeInput(OverEveryBackend, Suite):
    """Refused, or nothing found; never an error of the driver's, and nothing is written."""

    async def attempt(self, memory: HybridMemoryService, store: Store, calls: dict[str, Call], given: Any) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.tasks.create("job", task_id="t1")
        await memory.memories.add_memory("user:a", "k", 1)
        before = await contents(store)
        for name, call in calls.items():
            try:
                found = await call(memory, given)
            except MnemonError as error:
                if isinstance(error, StoreError):
                    pytest.fail(f"{name}: {error!r}")
            else:
                nothing = not found or name == "verify" or name.startswith("get_session")
                assert nothing, name
        after = await contents(store)
        assert {**after, "consumers": []} == {**before, "consumers": []}

    @pytest.mark.parametrize("given", ["\ud800", "a\udfffb", "nul\0"], ids=["high", "low", "nul"])
    async def test_text(self, memory: HybridMemoryService, store: Store, given: str) -> None:
        await self.attempt(memory, store, TEXTS, given)

    @pytest.mark.parametrize("given", [2**63, 2**64, 10**30], ids=["63", "64", "99"])
    async def test_numbers(self, memory: HybridMemoryService, store: Store, given: int) -> None:
        await self.attempt(memory, store, NUMBERS, given)
