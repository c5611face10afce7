"""Requests that cannot be met: each has an error of its own that says what to do, and changes nothing."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

import mnemon
from mnemon import sync
from tests.robustness.behind import Database, contents
from tests.robustness.exercise import ENDLESS, Call, Recorder, exercise, public_methods, settings, take

Request = Callable[[sync.BlockingMemory], Any]

UNKNOWN: dict[str, Request] = {
    "append_event": lambda m: m.sessions.append_event("nobody", {"n": 1}, {"user:x": 1}),
    "append_events": lambda m: m.sessions.append_events("nobody", [{"n": 1}]),
    "events": lambda m: m.sessions.events("nobody"),
    "update_status": lambda m: m.sessions.update_status("nobody", "paused"),
    "update_metadata": lambda m: m.sessions.update_metadata("nobody", {}),
    "terminate_session": lambda m: m.sessions.terminate_session("nobody"),
    "delete_session": lambda m: m.sessions.delete_session("nobody"),
    "get_state": lambda m: m.sessions.get_state("nobody", "x"),
    "set_state": lambda m: m.sessions.set_state("nobody", "user:x", 1),
    "state.merge": lambda m: m.state.merge({"x": 1, "user:y": 2}, session_id="nobody"),
    "state.update": lambda m: m.state.update("x", lambda _: 1, session_id="nobody"),
    "state.compare_and_set": lambda m: m.state.compare_and_set("x", 1, 0, session_id="nobody"),
    "state.delete": lambda m: m.state.delete("x", session_id="nobody"),
    "state.entries": lambda m: m.state.entries("x", session_id="nobody"),
    "state.watch": lambda m: next(m.state.watch("x", session_id="nobody")),
    "tasks.create": lambda m: m.tasks.create("step", session_id="nobody"),
    "context": lambda m: m.context("what happened?", session_id="nobody"),
}

TAKEN: dict[str, tuple[type[mnemon.IntegrityError], str, Request]] = {
    "session": (mnemon.SessionExists, "choose another", lambda m: m.sessions.create_session("shared", "app", "eve")),
    "session with state": (
        mnemon.SessionExists,
        "choose another",
        lambda m: m.sessions.create_session("shared", "app", "alice", initial_state={"user:x": 2}),
    ),
    "event": (
        mnemon.EventExists,
        "other content",
        lambda m: m.sessions.append_event("shared", {"n": 2}, {"user:x": 2}, event_id="e1"),
    ),
    "event of a batch": (
        mnemon.EventExists,
        "other content",
        lambda m: m.sessions.append_events("shared", [{"n": 9}, mnemon.EventDraft({"n": 2}, id="e1")]),
    ),
    "task": (mnemon.TaskExists, "choose another", lambda m: m.tasks.create("step", task_id="t1")),
    "memory": (mnemon.MemoryExists, "update_memory", lambda m: m.memories.add_memory("user:alice", "k", "new")),
}

TOO_LARGE: dict[str, tuple[type[mnemon.InvalidInput], str, Request]] = {
    "event": (
        mnemon.ValueTooLarge, "max_value_bytes", lambda m: m.sessions.append_event("shared", {"text": "x" * 200}),
    ),
    "delta": (
        mnemon.ValueTooLarge,
        "max_value_bytes",
        lambda m: m.sessions.append_event("shared", {"n": 1}, {"user:a": 1, "user:b": "x" * 200}),
    ),
    "batch": (
        mnemon.ValueTooLarge,
        "max_value_bytes",
        lambda m: m.sessions.append_events("shared", [{"n": 1}, {"text": "x" * 200}]),
    ),
    "state": (
        mnemon.ValueTooLarge, "max_value_bytes", lambda m: m.state.set("x", "x" * 200, session_id="shared"),
    ),
    "state of a function": (
        mnemon.ValueTooLarge,
        "max_value_bytes",
        lambda m: m.state.update("x", lambda _: "x" * 200, session_id="shared"),
    ),
    "state key": (
        mnemon.InvalidIdentifier, "at most 20", lambda m: m.state.set("k" * 21, 1, session_id="shared"),
    ),
    "memory": (
        mnemon.ValueTooLarge, "max_value_bytes", lambda m: m.memories.add_memory("user:alice", "new", "x" * 200),
    ),
    "new version": (
        mnemon.ValueTooLarge, "max_value_bytes", lambda m: m.memories.update_memory("user:alice", "k", "x" * 200),
    ),
    "metadata": (
        mnemon.ValueTooLarge,
        "max_value_bytes",
        lambda m: m.memories.add_memory("user:alice", "new", 1, metadata={"x": "x" * 200}),
    ),
    "memory key": (
        mnemon.InvalidIdentifier, "at most 20", lambda m: m.memories.add_memory("user:alice", "k" * 21, 1),
    ),
    "namespace": (
        mnemon.InvalidNamespace, "at most 40", lambda m: m.memories.add_memory(f"user:{'n' * 40}", "k", 1),
    ),
    "remembered": (
        mnemon.ValueTooLarge, "max_value_bytes", lambda m: m.remember("x" * 200, namespace="user:alice", key="new"),
    ),
    "one of many remembered": (
        mnemon.ValueTooLarge,
        "max_value_bytes",
        lambda m: m.remember_many([{"text": t * 99, "key": t} for t in ("a", "äöü")], namespace="user:alice"),
    ),
    "text of a vector": (
        mnemon.ValueTooLarge, "max_value_bytes", lambda m: m.vectors.store("v", [1.0] * 256, text="x" * 200),
    ),
    "namespace to recall from": (
        mnemon.InvalidNamespace, "at most 40", lambda m: m.recall("what?", namespaces=f"user:{'n' * 40}"),
    ),
    "question": (mnemon.InvalidInput, "at most 10000", lambda m: m.recall("x" * 10_001, namespaces="user:alice")),
    "task": (mnemon.ValueTooLarge, "max_value_bytes", lambda m: m.tasks.create("step", input="x" * 200)),
    "result": (
        mnemon.ValueTooLarge, "max_value_bytes", lambda m: m.tasks.update("t1", "completed", result="x" * 200),
    ),
}  # fmt: skip


@pytest.fixture
def furnished(database: Database) -> Database:
    """A database that has one of everything."""
    with sync.open(database.url) as memory:
        memory.sessions.append_event("shared", {"n": 1}, {"user:x": 1}, event_id="e1")
        memory.tasks.create("step", task_id="t1", session_id="shared")
        memory.memories.add_memory("user:alice", "k", "v")
    return database


def expect(database: Database, error: type[Exception], message: str, request: Request, **settings: Any) -> None:
    """The request must fail so, and leave every table as it was."""
    before = contents(database)
    with sync.open(database.url, **settings) as memory, pytest.raises(error, match=message):
        request(memory)
    assert contents(database) == before


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_session_is_said_to_be_unknown(database: Database, name: str) -> None:
    expect(database, mnemon.SessionNotFound, "create_session", UNKNOWN[name])


def test_an_unknown_session_is_no_session(database: Database) -> None:
    with sync.open(database.url) as memory:
        assert memory.sessions.get_session("nobody") is None


@pytest.mark.parametrize("name", TAKEN)
def test_a_taken_id_is_refused(furnished: Database, name: str) -> None:
    expect(furnished, *TAKEN[name])


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_is_too_large_is_refused(furnished: Database, name: str) -> None:
    limits = {"max_value_bytes": 100, "max_key_length": 20, "max_namespace_length": 40}
    expect(furnished, *TOO_LARGE[name], **limits)


@pytest.mark.parametrize("one", ["Alice lives in Oslo", {"text": "Alice lives in Oslo", "key": "city"}])
def test_one_memory_is_not_many(database: Database, one: Any) -> None:
    """Its letters, or the names of its arguments, would be remembered one by one."""
    expect(database, mnemon.InvalidInput, "use remember", lambda m: m.remember_many(one, namespace="user:alice"))


async def replay(call: Call, memory: Any) -> Any:
    """Make a call again and wait for what it gives, on either face."""
    answer = call.on(memory)
    if hasattr(answer, "__await__"):
        return await answer
    return await take(answer, 1) if call.method in ("changes", "watch", "follow", "open") else answer


async def test_a_closed_store_says_so_whatever_is_asked(url: str) -> None:
    # given calls that all work while the store is open
    calls: list[Call] = []
    async with mnemon.open(url, **settings()) as memory:
        await exercise(Recorder(memory, calls))
    asked = {(call.service, call.method): call for call in calls}
    assert asked.keys() == public_methods() - ENDLESS - {("", "close")}
    # when it is closed, then each says so
    await asyncio.sleep(1)  # for so long what is known of the vector spaces is believed
    quiet = {("", "as_principal"), ("", "consumer")}  # they only make a handle
    for name, call in asked.items():
        if name not in quiet:
            with pytest.raises(mnemon.StoreClosed, match="closed"):
                pytest.fail(f"{name}: {await replay(call, memory)}")
    # and closing again is no mistake
    await memory.close()


def test_a_closed_store_says_so_on_the_blocking_face(url: str) -> None:
    with sync.open(url) as memory:
        memory.sessions.create_session("s1", "app", "alice")
    for request in (
        lambda: memory.sessions.get_session("s1"),
        lambda: memory.sessions.append_event("s1", {}),
        lambda: memory.memories.search_memories(),
        lambda: memory.memories.add_memory("user:alice", "k", 1),
        lambda: memory.state.get("user:x", session_id="s1"),
        lambda: memory.tasks.list(),
        lambda: next(memory.changes(0, True)),
        lambda: memory.consumer("c").process(lambda tx, changes: None),  # type: ignore[arg-type,return-value]
        lambda: memory.verify(),
    ):
        with pytest.raises(mnemon.StoreClosed, match="closed"):
            request()
    memory.close()


async def test_a_follower_learns_at_once_that_the_store_was_closed(url: str) -> None:
    async with mnemon.open(url) as memory:
        await memory.sessions.create_session("s1", "app", "alice")
        changes = memory.changes(0, True)
        assert (await anext(changes)).entity_id == "s1"
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0.05)
        began = time.monotonic()
    with pytest.raises(mnemon.StoreClosed):
        await waiting
    assert time.monotonic() - began < 0.9
