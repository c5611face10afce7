"""A grant opens what it names and nothing else, through every public method there is.

Everything of Bob's has his name in it: whatever a handle of Alice's gives back must not.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mnemon import (
    AccessDenied,
    EventDraft,
    HybridMemoryService,
    IndexService,
    InvalidCursor,
    InvalidNamespace,
    InvalidStatus,
    MemoryDraft,
    MemoryService,
    NotFound,
    Placement,
    Principal,
    SessionExists,
    SessionService,
    StateStore,
    TaskExists,
    TaskService,
    VectorDraft,
    VectorService,
)
from mnemon.ports import Store
from mnemon.testing import ManualClock, TaskCrowd
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.handles import parts_of, with_settings
from mnemon.testing.suite import contents, plant
from tests.conformance.backends import opened, url_of
from tests.robustness.exercise import shelf

SECRET = "bob's secret"
REFUSED = (AccessDenied, NotFound, SessionExists, TaskExists, InvalidCursor)
LEVELS = ("none", "read", "write", "admin", "root")
BOB = {"app_name": "helpdesk", "user_id": "bob"}
VECTOR = [1.0] * 8

Call = Callable[[HybridMemoryService], Awaitable[Any]]


# -- the world: what Alice and Bob have


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest_asyncio.fixture(params=["sqlite-file", pytest.param("postgres", marks=pytest.mark.servers)])
async def memory(
    clock: ManualClock, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[HybridMemoryService]:
    finding = {"embedder": FakeEmbedder(8, is_quick=True), "vector_stores": (shelf,)}
    async with opened(request.param, url_of(request.param, tmp_path, request), clock, **finding) as memory:
        for user in ("alice", "bob"):
            clock.advance()
            await settle(memory, user, SECRET if user == "bob" else "hers")
        await settle_shared_state(memory)
        await plant(parts_of(memory).store, OLD_SPACE)
        await memory.settled()
        yield memory


OLD_SPACE = """
INSERT INTO vector_spaces (provider, model, version, dimension, status, created_at)
VALUES ('old', 'old', '1', 8, 'retired', 1)
"""


@pytest.fixture
def store(memory: HybridMemoryService) -> Store:
    return parts_of(memory).store


async def settle(memory: HybridMemoryService, user: str, said: str) -> None:
    """Give a user two sessions, events, state, tasks, memories and a part of a thread that both share."""
    for session_id in (f"{user}-session", f"{user}-spare"):
        await memory.sessions.create_session(
            session_id, "helpdesk", user, f"{user}-project", initial_state={"k": said, "temp:t": said},
            metadata={"m": said}, actor=user,
        )  # fmt: skip
        await memory.sessions.append_event(
            session_id, {"text": said}, {"user:k": said}, event_id=f"{user}-event", actor=user
        )
        for task in (f"{session_id}-task", f"{session_id}-task-2"):
            await memory.tasks.create(said, task_id=task, session_id=session_id, input=said, actor=user)
    for key in ("key", "gone", "spare"):
        await memory.memories.add_memory(
            f"user:{user}:notes", f"{user}-{key}", said, created_by=user, metadata={"m": said, "shared": 1},
            placement=Placement("thread", 1),
        )  # fmt: skip
        await memory.memories.update_memory(f"user:{user}:notes", f"{user}-{key}", [said], user)
    await memory.memories.delete_memory(f"user:{user}:notes", f"{user}-gone", user)
    await memory.memories.add_memory(f"session:{user}-session", f"{user}-key", said, created_by=user)


async def settle_shared_state(memory: HybridMemoryService) -> None:
    """What belongs to the app, and to each project."""
    await memory.state.set("app:k", "the app's", app_name="helpdesk")
    await memory.state.set("project:k", SECRET, project_id="bob-project")
    await memory.memories.add_memory("app:helpdesk", "app-key", "the app's")


def scoped(memory: HybridMemoryService, **grants: Any) -> HybridMemoryService:
    return memory.as_principal(
        Principal("alice", {prefix.replace("_", ":"): level for prefix, level in grants.items()})
    )


# -- every public method, what it needs, and how to call it


@dataclass(frozen=True)
class Method:
    """`own` works with `level` on `user:alice`; `foreign` must not reach what is not Alice's."""

    level: str
    own: Call
    foreign: list[Call] = field(default_factory=list[Call])


async def collect(iterator: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in iterator]


async def first(iterator: AsyncIterator[Any]) -> Any:
    return await anext(iterator)


async def cursor_of(memory: HybridMemoryService, place: str) -> Any:
    """A cursor that an all-seeing handle got among Bob's things."""
    everything = HybridMemoryService(parts_of(memory))
    if place == "memories":
        return (await everything.memories.search_memories("user:bob", limit=1)).next_cursor
    return (await everything.sessions.list_sessions(user_id="bob", limit=1)).next_cursor


METHODS: dict[str, Method] = {
    # sessions
    "sessions.create_session": Method(
        "write",
        lambda m: m.sessions.create_session("alice-new", "helpdesk", "alice", initial_state={"user:new": 1}),
        [
            lambda m: m.sessions.create_session("x", "helpdesk", "bob"),
            lambda m: m.sessions.create_session("bob-session", "helpdesk", "alice"),
            lambda m: m.sessions.create_session("x", "helpdesk", "alice", initial_state={"app:k": "stolen"}),
            lambda m: m.sessions.create_session(
                "x", "helpdesk", "alice", "bob-project", initial_state={"project:k": "stolen"}
            ),
        ],
    ),
    "sessions.get_session": Method(
        "read",
        lambda m: m.sessions.get_session("alice-session"),
        [
            lambda m: m.sessions.get_session("bob-session"),
            lambda m: m.sessions.get_session("bob-session", last=1),
        ],
    ),
    "sessions.append_event": Method(
        "write",
        lambda m: m.sessions.append_event("alice-session", {"n": 1}, {"user:k": 1, "k": 1}),
        [
            lambda m: m.sessions.append_event("bob-session", {"n": 1}),
            lambda m: m.sessions.append_event(
                "bob-session", {"text": SECRET}, {"user:k": SECRET}, event_id="bob-event"
            ),
            lambda m: m.sessions.append_event("alice-session", {"n": 1}, {"app:k": "stolen"}),
            lambda m: m.sessions.append_event("alice-session", {"n": 1}, {"project:k": "stolen"}),
        ],
    ),
    "sessions.append_events": Method(
        "write",
        lambda m: m.sessions.append_events("alice-session", [{"n": 1}, {"n": 2}]),
        [
            lambda m: m.sessions.append_events("bob-session", [{"n": 1}, {"n": 2}]),
            lambda m: m.sessions.append_events("alice-session", [{"n": 1}, EventDraft({}, {"app:k": "stolen"})]),
        ],
    ),
    "sessions.events": Method(
        "read",
        lambda m: m.sessions.events("alice-session"),
        [
            lambda m: m.sessions.events("bob-session"),
            lambda m: m.sessions.events("bob-session", last=5),
            lambda m: m.sessions.events("bob-session", after=0, limit=5, archived=True),
        ],
    ),
    "sessions.update_status": Method(
        "write",
        lambda m: m.sessions.update_status("alice-session", "paused"),
        [
            lambda m: m.sessions.update_status("bob-session", "paused"),
            lambda m: m.sessions.update_status("bob-session", "active"),
        ],
    ),
    "sessions.update_metadata": Method(
        "write",
        lambda m: m.sessions.update_metadata("alice-session", {"m": 2}),
        [lambda m: m.sessions.update_metadata("bob-session", {"m": 2})],
    ),
    "sessions.terminate_session": Method(
        "write",
        lambda m: m.sessions.terminate_session("alice-spare"),
        [lambda m: m.sessions.terminate_session("bob-spare")],
    ),
    "sessions.delete_session": Method(
        "write",
        lambda m: m.sessions.delete_session("alice-spare"),
        [lambda m: m.sessions.delete_session("bob-spare")],
    ),
    "sessions.get_state": Method(
        "read",
        lambda m: m.sessions.get_state("alice-session", "k"),
        [lambda m, key=key: m.sessions.get_state("bob-session", key) for key in ("k", "temp:t", "user:k", "project:k")]
        + [lambda m, key=key: m.sessions.get_state("alice-session", key) for key in ("app:k", "project:k")],
    ),
    "sessions.set_state": Method(
        "write",
        lambda m: m.sessions.set_state("alice-session", "user:k", 1),
        [lambda m, key=key: m.sessions.set_state("bob-session", key, 1) for key in ("k", "user:k", "app:k")]
        + [lambda m, key=key: m.sessions.set_state("alice-session", key, 1) for key in ("app:k", "project:k")],
    ),
    "sessions.list_active_sessions": Method(
        "read",
        lambda m: m.sessions.list_active_sessions(),
        [
            lambda m: m.sessions.list_active_sessions(),
            lambda m: m.sessions.list_active_sessions("bob"),
        ],
    ),
    "sessions.list_sessions": Method(
        "read",
        lambda m: m.sessions.list_sessions(),
        [
            lambda m: m.sessions.list_sessions(),
            lambda m: m.sessions.list_sessions(user_id="bob"),
            lambda m: m.sessions.list_sessions(project_id="bob-project"),
            lambda m: m.sessions.list_sessions(app_name="helpdesk", status="active"),
            lambda m: list_sessions_from(m),
        ],
    ),
    # state
    "state.get": Method(
        "read",
        lambda m: m.state.get("user:k", session_id="alice-session"),
        [
            lambda m: m.state.get("k", session_id="bob-session"),
            lambda m: m.state.get("user:k", session_id="bob-session"),
            lambda m: m.state.get("user:k", **BOB),
            lambda m: m.state.get("app:k", app_name="helpdesk"),
            lambda m: m.state.get("project:k", project_id="bob-project"),
            lambda m: m.state.get("project:k", session_id="alice-session"),
        ],
    ),
    "state.entry": Method(
        "read",
        lambda m: m.state.entry("k", session_id="alice-session"),
        [lambda m: m.state.entry("temp:t", session_id="bob-session"), lambda m: m.state.entry("user:k", **BOB)],
    ),
    "state.set": Method(
        "write",
        lambda m: m.state.set("user:k", 1, app_name="helpdesk", user_id="alice"),
        [
            lambda m: m.state.set("k", 1, session_id="bob-session"),
            lambda m: m.state.set("user:k", 1, **BOB),
            lambda m: m.state.set("app:k", 1, session_id="alice-session"),
            lambda m: m.state.set("project:k", 1, project_id="bob-project"),
        ],
    ),
    "state.merge": Method(
        "write",
        lambda m: m.state.merge({"k": 1, "user:k": 2}, session_id="alice-session"),
        [
            lambda m: m.state.merge({"k": 1, "user:k": 2}, session_id="bob-session"),
            lambda m: m.state.merge({"k": 1, "app:k": 2}, session_id="alice-session"),
        ],
    ),
    "state.compare_and_set": Method(
        "write",
        lambda m: m.state.compare_and_set("new", 1, 0, session_id="alice-session"),
        [
            lambda m: m.state.compare_and_set("k", 1, 1, session_id="bob-session"),
            lambda m: m.state.compare_and_set("user:k", 1, 1, **BOB),
            lambda m: m.state.compare_and_set("user:unset", 1, 0, **BOB),
        ],
    ),
    "state.update": Method(
        "write",
        lambda m: m.state.update("k", lambda _: 1, session_id="alice-session"),
        [
            lambda m: m.state.update("k", lambda value: value, session_id="bob-session"),
            lambda m: m.state.update("user:k", lambda value: value, **BOB),
        ],
    ),
    "state.delete": Method(
        "write",
        lambda m: m.state.delete("k", session_id="alice-session"),
        [
            lambda m: m.state.delete("k", session_id="bob-session"),
            lambda m: m.state.delete("user:k", **BOB),
            lambda m: m.state.delete("user:k", expected_version=1, **BOB),
        ],
    ),
    "state.entries": Method(
        "read",
        lambda m: m.state.entries("user:", session_id="alice-session"),
        [
            lambda m: m.state.entries("", session_id="bob-session"),
            lambda m: m.state.entries("user:", **BOB),
            lambda m: m.state.entries("project:", project_id="bob-project"),
            lambda m: m.state.entries("app:", session_id="alice-session"),
        ],
    ),
    "state.watch": Method(
        "read",
        lambda m: first(m.state.watch("user:", after=0, session_id="alice-session")),
        [
            lambda m: first(m.state.watch("", after=0, session_id="bob-session")),
            lambda m: first(m.state.watch("user:", after=0, **BOB)),
            lambda m: first(m.state.watch("app:", after=0, app_name="helpdesk")),
        ],
    ),
    # tasks
    "tasks.create": Method(
        "write",
        lambda m: m.tasks.create("job", session_id="alice-session", parent_id="alice-session-task"),
        [
            lambda m: m.tasks.create("job", session_id="bob-session"),
            lambda m: m.tasks.create("job", session_id="alice-session", parent_id="bob-session-task"),
            lambda m: m.tasks.create("job", session_id="alice-session", task_id="bob-session-task"),
            lambda m: m.tasks.create("job"),
        ],
    ),
    "tasks.get": Method(
        "read", lambda m: m.tasks.get("alice-session-task"), [lambda m: m.tasks.get("bob-session-task")]
    ),
    "tasks.update": Method(
        "write",
        lambda m: m.tasks.update("alice-session-task", "running"),
        [lambda m: m.tasks.update("bob-session-task", "running")],
    ),
    "tasks.delete": Method(
        "write",
        lambda m: m.tasks.delete("alice-session-task-2"),
        [lambda m: m.tasks.delete("bob-session-task-2")],
    ),
    "tasks.list": Method(
        "read",
        lambda m: m.tasks.list(),
        [
            lambda m: m.tasks.list(),
            lambda m: m.tasks.list(session_id="bob-session"),
            lambda m: m.tasks.list(parent_id="bob-session-task"),
            lambda m: m.tasks.list(status="pending"),
        ],
    ),
    # memories
    "memories.add_memory": Method(
        "write",
        lambda m: m.memories.add_memory("user:alice:new", "k", 1),
        [
            lambda m: m.memories.add_memory("user:bob:notes", "x", 1),
            lambda m: m.memories.add_memory("user:bob:notes", "bob-gone", 1),
            lambda m: m.memories.add_memory("app:helpdesk", "x", 1),
            lambda m: m.memories.add_memory("user:alice2", "x", 1),
        ],
    ),
    "memories.get_memory": Method(
        "read",
        lambda m: m.memories.get_memory("user:alice:notes", "alice-key"),
        [
            lambda m: m.memories.get_memory("user:bob:notes", "bob-key"),
            lambda m: m.memories.get_memory("user:bob:notes", "bob-key", 1),
            lambda m: m.memories.get_memory("user:bob:notes", "bob-key", as_of=datetime(2040, 1, 1, tzinfo=UTC)),
            lambda m: m.memories.get_memory("session:bob-session", "bob-key"),
            lambda m: m.memories.get_memory("app:helpdesk", "app-key"),
        ],
    ),
    "memories.update_memory": Method(
        "write",
        lambda m: m.memories.update_memory("user:alice:notes", "alice-key", 1),
        [lambda m: m.memories.update_memory("user:bob:notes", "bob-key", 1)],
    ),
    "memories.delete_memory": Method(
        "write",
        lambda m: m.memories.delete_memory("user:alice:notes", "alice-key"),
        [lambda m: m.memories.delete_memory("user:bob:notes", "bob-key")],
    ),
    "memories.restore_memory": Method(
        "write",
        lambda m: m.memories.restore_memory("user:alice:notes", "alice-gone"),
        [
            lambda m: m.memories.restore_memory("user:bob:notes", "bob-gone"),
            lambda m: m.memories.restore_memory("user:bob:notes", "bob-key", 1),
        ],
    ),
    "memories.purge_memory": Method(
        "admin",
        lambda m: m.memories.purge_memory("user:alice:notes", "alice-spare"),
        [lambda m: m.memories.purge_memory("user:bob:notes", "bob-key")],
    ),
    "memories.search_memories": Method(
        "read",
        lambda m: m.memories.search_memories(),
        [
            lambda m: m.memories.search_memories(),
            lambda m: m.memories.search_memories("user"),
            lambda m: m.memories.search_memories("user:bob"),
            lambda m: m.memories.search_memories(created_by="bob"),
            lambda m: m.memories.search_memories(where={"shared": 1}),
            lambda m: m.memories.search_memories("user", order="recent"),
            lambda m: m.memories.search_memories("user", "semantic", order="recent", where={"m": SECRET}),
            lambda m: search_from(m),
        ],
    ),
    "memories.get_memory_history": Method(
        "read",
        lambda m: m.memories.get_memory_history("user:alice:notes", "alice-key"),
        [lambda m: m.memories.get_memory_history("user:bob:notes", "bob-key")],
    ),
    "memories.diff_memory": Method(
        "read",
        lambda m: m.memories.diff_memory("user:alice:notes", "alice-gone", 1, 2),
        [lambda m: m.memories.diff_memory("user:bob:notes", "bob-key", 1, 2)],
    ),
    "memories.get_thread": Method(
        "read",
        lambda m: m.memories.get_thread("thread"),
        [lambda m: m.memories.get_thread("thread"), lambda m: m.memories.get_thread("thread", first=1, last=1)],
    ),
    "memories.list_namespaces": Method(
        "read",
        lambda m: m.memories.list_namespaces(),
        [
            lambda m: m.memories.list_namespaces(),
            lambda m: m.memories.list_namespaces("user"),
            lambda m: m.memories.list_namespaces("user:bob"),
        ],
    ),
    "memories.put_memories": Method(
        "write",
        lambda m: m.memories.put_memories([MemoryDraft("x", "user:alice:new", "put")]),
        [
            lambda m: m.memories.put_memories([MemoryDraft("x", "user:bob:notes", "x")]),
            lambda m: m.memories.put_memories([MemoryDraft([SECRET], "user:bob:notes", "bob-key")]),
            lambda m: m.memories.put_memories([MemoryDraft(1, "user:alice:x"), MemoryDraft(1, "user:bob:notes")]),
        ],
    ),
    "memories.forget_memories": Method(
        "write",
        lambda m: m.memories.forget_memories("user:alice:new"),
        [
            lambda m: m.memories.forget_memories("user:bob"),
            lambda m: m.memories.forget_memories("user:bob:notes", "bob-key"),
            lambda m: m.memories.forget_memories("app:helpdesk", erase=True),
        ],
    ),
    # vectors
    "vectors.store": Method(
        "write",
        lambda m: m.vectors.store("v", VECTOR, namespace="user:alice:vectors"),
        [
            lambda m: m.vectors.store("v", VECTOR),
            lambda m: m.vectors.store("bob-key", VECTOR, namespace="user:bob:notes"),
        ],
    ),
    "vectors.store_many": Method(
        "write",
        lambda m: m.vectors.store_many([VectorDraft("w", VECTOR, namespace="user:alice:vectors")]),
        [
            lambda m: m.vectors.store_many(
                [VectorDraft("w", VECTOR, namespace=f"user:{user}:notes") for user in ("alice", "bob")]
            )
        ],
    ),
    "vectors.query": Method(
        "read",
        lambda m: m.vectors.query(VECTOR),
        [
            lambda m: m.vectors.query(VECTOR, 1000),
            lambda m: m.vectors.query(VECTOR, namespaces="user:bob"),
            lambda m: m.vectors.query(VECTOR, namespaces=["user:alice", "user:bob", "session", "app"]),
            lambda m: m.vectors.query(VECTOR, 1000, {"shared": 1}, min_trust=0.1, types=["semantic"]),
        ],
    ),
    "vectors.delete": Method(
        "write",
        lambda m: m.vectors.delete("v", namespace="user:alice:vectors"),
        [lambda m: m.vectors.delete("bob-key", namespace="user:bob:notes")],
    ),
    "vectors.describe": Method("root", lambda m: m.vectors.describe(), [lambda m: m.vectors.describe()]),
    # the indexes
    "index.settled": Method("none", lambda m: m.index.settled()),  # how long it takes, and nothing of what
    "index.spaces": Method("root", lambda m: m.index.spaces(), [lambda m: m.index.spaces()]),
    "index.verify": Method(
        "root", lambda m: m.index.verify(mend=True), [lambda m: m.index.verify(), lambda m: m.index.verify("shelf")]
    ),
    "index.rebuild": Method("root", lambda m: m.index.rebuild("shelf"), [lambda m: m.index.rebuild()]),
    "index.reembed": Method("root", lambda m: m.index.reembed("custom"), [lambda m: m.index.reembed("custom")]),
    "index.drop_space": Method("root", lambda m: drop_old_space(m), [lambda m: drop_old_space(m)]),
    # the handle itself
    "remember": Method(
        "write",
        lambda m: m.remember("a new thing", namespace="user:alice:new"),
        [
            lambda m: m.remember("x", namespace="user:bob:notes"),
            lambda m: m.remember([SECRET], namespace="user:bob:notes", key="bob-key"),
            lambda m: m.remember("x", namespace="session:bob-session"),
            lambda m: m.remember("x", namespace="app:helpdesk"),
        ],
    ),
    "remember_many": Method(
        "write",
        lambda m: m.remember_many(["one", "two"], namespace="user:alice:new"),
        [lambda m: m.remember_many(["one", MemoryDraft("two", "user:bob:notes")], namespace="user:alice:new")],
    ),
    "recall": Method(
        "read",
        lambda m: m.recall("hers", namespaces="user:alice"),
        [
            lambda m: m.recall("secret", namespaces=""),
            lambda m: m.recall("secret", namespaces="user", k=1000, explain=True),
            lambda m: m.recall("secret", namespaces="user:bob"),
            lambda m: m.recall("secret", namespaces=["user:alice", "user:bob:notes", "session", "app:helpdesk"]),
            lambda m: m.recall("what is in bob-key?", namespaces="user", where={"shared": 1}, min_trust=0.1),
            lambda m: m.recall("secret", namespaces="", as_of=datetime(2040, 1, 1, tzinfo=UTC)),
            lambda m: m.recall("secret", namespaces="", offset=2),
        ],
    ),
    "context": Method(
        "read",
        lambda m: m.context("hers", session_id="alice-session"),
        [
            lambda m: m.context("secret"),
            lambda m: m.context("secret", session_id="bob-session"),
            lambda m: m.context("secret", session_id="alice-session"),
            lambda m: m.context("secret", session_id="alice-session", namespaces=["user:bob"]),
            lambda m: m.context("secret", namespaces=["user", "session", "app"]),
        ],
    ),
    "forget": Method(
        "write",
        lambda m: m.forget("user:alice:new"),
        [
            lambda m: m.forget("user:bob"),
            lambda m: m.forget("user:bob:notes", "bob-key"),
            lambda m: m.forget("session:bob-session", erase=True),
            lambda m: m.forget("app:helpdesk", "app-key", erase=True),
        ],
    ),
    "settled": Method("none", lambda m: m.settled()),
    "reembed": Method("root", lambda m: m.reembed("custom"), [lambda m: m.reembed("custom")]),
    "changes": Method(
        "read",
        lambda m: collect(m.changes()),
        [
            lambda m: collect(m.changes()),
            lambda m: collect(m.changes(namespace="user:bob")),
            lambda m: collect(m.changes(namespace="session")),
            lambda m: collect(m.changes(session_id="bob-session")),
            lambda m: collect(m.changes(entity="state")),
        ],
    ),
    "audit": Method(
        "read",
        lambda m: m.audit(),
        [
            lambda m: m.audit(limit=1000),
            lambda m: m.audit(actor="bob"),
            lambda m: m.audit(entity="session", entity_id="bob-session"),
            lambda m: m.audit(namespace="user:bob"),
            lambda m: m.audit(session_id="bob-session"),
            lambda m: m.audit(task_id="bob-session-task"),
            lambda m: m.audit(since=datetime(2020, 1, 1, tzinfo=UTC), limit=1000),
        ],
    ),
    "position": Method("none", lambda m: m.position()),  # how much has changed, and nothing of what
    "close": Method("none", lambda m: m.close()),  # does nothing: the store is not the principal's
    "consumer": Method(
        "root", lambda m: awaited(lambda: m.consumer("x")), [lambda m: awaited(lambda: m.consumer("x"))]
    ),
    "consumers": Method("root", lambda m: m.consumers(), [lambda m: m.consumers()]),
    "seal": Method("root", lambda m: m.seal(), [lambda m: m.seal()]),
    "verify": Method("root", lambda m: m.verify(), [lambda m: m.verify()]),
}
NEVER = {"as_principal"}  # a handle that is bound to a principal cannot become another


async def awaited(call: Callable[[], Any]) -> Any:
    return call()


async def list_sessions_from(memory: HybridMemoryService) -> Any:
    return await memory.sessions.list_sessions(cursor=await cursor_of(memory, "sessions"))


async def drop_old_space(memory: HybridMemoryService) -> Any:
    everything = HybridMemoryService(parts_of(memory))
    return await memory.index.drop_space((await everything.index.spaces())[-1])


async def search_from(memory: HybridMemoryService) -> Any:
    return await memory.memories.search_memories("", cursor=await cursor_of(memory, "memories"))


def public_methods(memory: HybridMemoryService) -> set[str]:
    """Every public method of the handle and of each service that it holds."""
    found = {name for name in vars(HybridMemoryService) if not name.startswith("_")}
    for attribute, service in vars(memory).items():
        if not attribute.startswith("_"):
            methods = inspect.getmembers(type(service), inspect.isfunction)
            found |= {f"{attribute}.{name}" for name, _ in methods if not name.startswith("_")}
    return found


async def outcome(call: Call, memory: HybridMemoryService) -> Any:
    """What the call gave back; None if it was refused in a way that tells nothing."""
    try:
        return await call(memory)
    except REFUSED as error:
        return SECRET if SECRET in str(error) else None


def rows_of_bob(database: dict[str, list[Any]]) -> list[Any]:
    return [row for table in database.values() for row in table if "bob" in repr(row)]


# -- the tests


async def test_no_public_method_is_forgotten(memory: HybridMemoryService) -> None:
    assert public_methods(memory) == METHODS.keys() | NEVER
    assert {type(service) for name, service in vars(memory).items() if not name.startswith("_")} == {
        SessionService,
        StateStore,
        TaskService,
        MemoryService,
        VectorService,
        IndexService,
    }


async def test_a_grant_on_alice_reaches_nothing_of_bob_s(memory: HybridMemoryService, store: Store) -> None:
    alice = scoped(memory, user_alice="admin")
    before = await contents(store)
    seen: list[str] = []

    for name, method in METHODS.items():
        for number, call in enumerate(method.foreign):
            result = repr(await outcome(call, alice))
            if "bob" in result or "the app's" in result or await contents(store) != before:
                seen.append(f"{name}, attempt {number}: {result}")

    assert seen == []


@pytest.mark.parametrize("level", LEVELS)
async def test_each_level_opens_what_it_should_and_no_more(
    memory: HybridMemoryService, store: Store, level: str
) -> None:
    grants: Any = {"none": {}, "root": {"": "admin"}}.get(level, {"user:alice": level})
    alice = memory.as_principal(Principal("alice", grants))
    before = await contents(store)

    for name, method in sorted(METHODS.items(), key=lambda item: LEVELS.index(item[1].level)):
        if LEVELS.index(level) >= LEVELS.index(method.level):
            result = await method.own(alice)
            assert result or method.level != "read", name
        else:
            assert not await outcome(method.own, alice), name

    after = await contents(store)
    if level != "root":
        assert rows_of_bob(after) == rows_of_bob(before)
    if level in ("none", "read"):
        assert after == before


async def test_what_is_one_s_own_is_seen_whole(memory: HybridMemoryService) -> None:
    alice = scoped(memory, user_alice="read")

    session = await alice.sessions.get_session("alice-session")
    assert session is not None
    assert session.state == {"k": "hers", "temp:t": "hers", "user:k": "hers"}
    assert [event.body for event in session.events] == [{"text": "hers"}]
    assert [s.id for s in await alice.sessions.list_sessions()] == ["alice-spare", "alice-session"]
    assert len(await alice.tasks.list()) == 4
    assert [m.key for m in await alice.memories.search_memories()] == ["alice-key", "alice-spare"]
    assert len(await alice.memories.get_thread("thread")) == 2
    seen = {(c.entity, c.operation) for c in await collect(alice.changes())}
    assert seen >= {
        ("session", "create"),
        ("event", "append"),
        ("state", "merge"),
        ("task", "create"),
        ("memory", "add"),
    }


async def test_limits_count_only_what_may_be_seen(memory: HybridMemoryService) -> None:
    """Given Bob's things came later, when Alice asks for few, then she gets few of hers: nothing is cut afterwards."""
    alice = scoped(memory, user_alice="read")

    assert [s.id for s in await alice.sessions.list_sessions(limit=2)] == ["alice-spare", "alice-session"]
    assert len(await alice.sessions.list_active_sessions(limit=2)) == 2
    assert len(await alice.audit(limit=5)) == 5
    assert len(await alice.tasks.list(limit=4)) == 4
    assert len(await alice.memories.search_memories("user", limit=2, order="recent")) == 2
    assert len(await alice.memories.get_thread("thread", limit=2)) == 2
    assert len(await alice.memories.list_namespaces(limit=1)) == 1
    assert len(await alice.recall("secret", namespaces="", k=2)) == 2
    assert len(await alice.vectors.query(VECTOR, 2)) == 2
    page = await alice.audit(limit=3)
    pages = list(page)
    while page.next_cursor:
        page = await alice.audit(limit=3, cursor=page.next_cursor)
        pages += page
    assert pages[::-1] == await collect(alice.changes())


async def test_a_principal_acts_in_its_own_name(memory: HybridMemoryService) -> None:
    alice = scoped(memory, user_alice="admin")
    start = await memory.position()

    await alice.sessions.append_event("alice-session", {"n": 1}, {"k": 1}, actor="bob")
    await alice.state.set("user:k", 1, session_id="alice-session", actor="bob")
    await alice.tasks.update("alice-session-task", "running", actor="bob")
    await alice.memories.add_memory("user:alice", "k", 1, created_by="bob")
    await alice.memories.update_memory("user:alice", "k", 2, updated_by="bob")
    await alice.memories.delete_memory("user:alice", "k", deleted_by="bob")
    receipt = await alice.memories.purge_memory("user:alice", "k", purged_by="bob")
    await alice.remember("x", namespace="user:alice:new", key="k", actor="bob")
    await alice.remember_many(["y", "z"], namespace="user:alice:new", actor="bob")
    await alice.vectors.store("v", VECTOR, namespace="user:alice:new", actor="bob")
    await alice.vectors.delete("v", namespace="user:alice:new", actor="bob")
    await alice.forget("user:alice:new", "k", actor="bob")
    await alice.forget("user:alice:new", erase=True, actor="bob")

    assert receipt.purged_by == "alice"
    assert {change.actor for change in await collect(memory.changes(start))} == {"alice"}


async def test_a_bound_handle_can_neither_become_another_nor_close_the_store(memory: HybridMemoryService) -> None:
    for grants in ({"user:alice": "admin"}, {"": "admin"}):
        alice = memory.as_principal(Principal("alice", grants))  # type: ignore[arg-type]
        with pytest.raises(AccessDenied, match="cannot become another"):
            alice.as_principal(Principal("bob", {"": "admin"}))
        async with alice:
            pass

    assert await memory.sessions.get_session("bob-session") is not None


async def test_grants_that_mean_nothing_are_refused(memory: HybridMemoryService) -> None:
    strange: Any = "owner"
    with pytest.raises(InvalidStatus, match="read, write, admin"):
        memory.as_principal(Principal("alice", {"user:alice": strange}))
    for prefix in ("users:alice", "user::a", "alice"):
        with pytest.raises(InvalidNamespace):
            memory.as_principal(Principal("alice", {prefix: "read"}))


async def test_names_that_begin_alike_are_not_the_same(memory: HybridMemoryService, clock: ManualClock) -> None:
    for user in ("al", "alice2", "1", "10"):
        clock.advance()
        await settle(memory, user, f"of {user}")

    for user in ("al", "1"):
        handle = memory.as_principal(Principal(user, {f"user:{user}": "admin"}))
        assert {s.user_id for s in await handle.sessions.list_sessions()} == {user}
        assert {m.namespace for m in await handle.memories.search_memories()} == {f"user:{user}:notes"}
        assert [n.namespace for n in await handle.memories.list_namespaces()] == [f"user:{user}:notes"]
        assert {c.actor for c in await collect(handle.changes())} == {user}
        assert {t.session_id for t in await handle.tasks.list()} == {f"{user}-session", f"{user}-spare"}
        assert {h.memory.namespace for h in await handle.recall("of", namespaces="", k=100)} == {f"user:{user}:notes"}
        assert {m.namespace for m in await handle.vectors.query(VECTOR, 100)} == {f"user:{user}:notes"}


async def test_several_grants_add_up(memory: HybridMemoryService, store: Store) -> None:
    deputy = memory.as_principal(
        Principal(
            "deputy",
            {"user:alice": "read", "user:bob:notes": "read", "session:bob-spare": "write", "app:helpdesk": "write"},
        )
    )

    assert {s.id for s in await deputy.sessions.list_sessions()} == {"alice-session", "alice-spare", "bob-spare"}
    found = {m.namespace for m in await deputy.memories.search_memories()}
    assert found == {"app:helpdesk", "user:alice:notes", "user:bob:notes"}
    assert {m.namespace for m in await deputy.memories.search_memories("user")} == {
        "user:alice:notes",
        "user:bob:notes",
    }
    assert {m.namespace for m in await deputy.memories.search_memories("user:bob")} == {"user:bob:notes"}
    for namespaces in ("", ["user", "app", "session"]):
        assert {h.memory.namespace for h in await deputy.recall("secret", namespaces=namespaces)} == found
        assert {m.namespace for m in await deputy.vectors.query(VECTOR, namespaces=namespaces)} == found
    page = await deputy.memories.search_memories(limit=2)
    pages = list(page)
    while page.next_cursor:
        page = await deputy.memories.search_memories(limit=2, cursor=page.next_cursor)
        pages += page
    assert pages == list(await deputy.memories.search_memories())
    assert await deputy.state.get("app:k", session_id="alice-session") == "the app's"
    assert await deputy.sessions.append_event("bob-spare", {"n": 1}, {"app:k": "new", "k": 1})
    for refused in (
        deputy.sessions.append_event("alice-session", {"n": 1}),
        deputy.sessions.append_event("bob-spare", {"n": 1}, {"user:k": 1}),
        deputy.sessions.get_state("bob-spare", "user:k"),
        deputy.memories.update_memory("user:bob:notes", "bob-key", 1),
        deputy.memories.add_memory("session:bob-session", "x", 1),
    ):
        with pytest.raises((AccessDenied, NotFound)):
            await refused


async def test_a_grant_below_a_user_opens_no_session(memory: HybridMemoryService) -> None:
    reader = scoped(memory, user_bob_notes="admin")

    assert {m.key for m in await reader.memories.search_memories()} == {"bob-key", "bob-spare"}
    assert list(await reader.sessions.list_sessions()) == []
    assert await reader.sessions.get_session("bob-session") is None
    assert list(await reader.tasks.list()) == []
    assert {change.entity for change in await collect(reader.changes())} == {"memory"}
    with pytest.raises(AccessDenied):
        await reader.state.get("user:k", **BOB)


async def test_a_grant_on_a_session_opens_that_session_and_its_own_state(memory: HybridMemoryService) -> None:
    guest = scoped(memory, **{"session_bob-session": "write"})

    session = await guest.sessions.get_session("bob-session")
    assert session is not None
    assert session.state == {"k": SECRET, "temp:t": SECRET}  # nothing of the user's, the app's or the project's
    assert [s.id for s in await guest.sessions.list_sessions()] == ["bob-session"]
    assert await guest.sessions.get_session("bob-spare") is None
    assert {t.session_id for t in await guest.tasks.list()} == {"bob-session"}
    assert [m.namespace for m in await guest.memories.search_memories()] == ["session:bob-session"]
    changes = await collect(guest.changes())
    assert {change.namespace for change in changes} == {"session:bob-session"}
    assert {change.entity for change in changes} == {"session", "event", "state", "task", "memory"}
    await guest.sessions.append_event("bob-session", {"n": 1}, {"k": 1, "temp:t": 2})
    for key in ("user:k", "app:k", "project:k"):
        with pytest.raises(AccessDenied):
            await guest.sessions.set_state("bob-session", key, 1)
        with pytest.raises(AccessDenied):
            await guest.state.entries(key, session_id="bob-session")


async def test_who_may_see_a_session_may_recall_what_was_said_in_it(memory: HybridMemoryService) -> None:
    # given conversations that are remembered
    await with_settings(memory, remember_events=("session",)).settled()

    # when alice, whose session it is, and a guest in bob's ask for what they need to know
    alice = scoped(memory, user_alice="read")
    guest = scoped(memory, **{"session_bob-session": "read"})
    hers = await alice.context("hers", session_id="alice-session", namespaces=None)
    told = await guest.context("secret", session_id="bob-session")

    # then both have the memories of the session's events, and nothing of anybody else's
    assert {item.name.partition("/")[0] for item in (*hers.items, *hers.dropped) if item.section == "memories"} == {
        "session:alice-session",
        "user:alice:notes",
    }
    assert {item.name.partition("/")[0] for item in (*told.items, *told.dropped) if item.section == "memories"} == {
        "session:bob-session"
    }
    # but only a grant on the session's own namespace opens it to recall
    with pytest.raises(AccessDenied):
        await alice.recall("hers", namespaces="session:alice-session")
    found = await guest.recall("secret", namespaces="session:bob-session")
    assert {hit.memory.key for hit in found} == {"bob-key", "event-0000000001"}


async def test_a_grant_on_a_session_watches_its_temporary_state_too(memory: HybridMemoryService) -> None:
    guest = scoped(memory, **{"session_bob-session": "read"})
    start = await memory.position()
    await memory.state.set("temp:t", "new", session_id="bob-session")

    entry = await first(guest.state.watch("temp:", after=start, session_id="bob-session"))

    assert (entry.key, entry.value) == ("temp:t", "new")


@pytest.mark.parametrize("prefix", ["user", "user:"])
async def test_a_grant_on_a_root_opens_all_below_it(memory: HybridMemoryService, prefix: str) -> None:
    clerk = memory.as_principal(Principal("clerk", {prefix: "read"}))

    assert {s.user_id for s in await clerk.sessions.list_sessions()} == {"alice", "bob"}
    assert {m.namespace for m in await clerk.memories.search_memories()} == {"user:alice:notes", "user:bob:notes"}
    assert await clerk.state.get("user:k", **BOB) == SECRET
    assert len(await clerk.tasks.list()) == 8
    for refused in (
        clerk.memories.get_memory("app:helpdesk", "app-key"),
        clerk.memories.get_memory("session:bob-session", "bob-key"),
        clerk.state.get("app:k", app_name="helpdesk"),
        clerk.sessions.append_event("bob-session", {"n": 1}),
        clerk.consumers(),
    ):
        with pytest.raises((AccessDenied, NotFound)):
            await refused
    assert "app:helpdesk" not in {change.namespace for change in await collect(clerk.changes())}


async def test_a_grant_on_everything_opens_everything(memory: HybridMemoryService) -> None:
    root = memory.as_principal(Principal("root", {"": "admin"}))

    assert await collect(root.changes()) == await collect(memory.changes())
    assert await root.memories.search_memories() == await memory.memories.search_memories()
    assert await root.sessions.list_sessions() == await memory.sessions.list_sessions()
    assert await root.sessions.get_session("bob-session") == await memory.sessions.get_session("bob-session")
    assert (await root.tasks.create("sweep")).session_id is None
    assert (await root.verify()).intact


async def test_shared_state_needs_a_grant_of_its_own(memory: HybridMemoryService) -> None:
    alice = scoped(memory, user_alice="admin")
    member = scoped(memory, user_alice="admin", app_helpdesk="read", **{"project_alice-project": "write"})
    await memory.state.set("project:k", "theirs", project_id="alice-project")

    async def state(handle: HybridMemoryService) -> set[str]:
        session = await handle.sessions.get_session("alice-session")
        assert session is not None
        return set(session.state)

    assert await state(alice) == {"k", "temp:t", "user:k"}
    assert await state(member) == {"k", "temp:t", "user:k", "app:k", "project:k"}
    await member.sessions.append_event("alice-session", {}, {"project:k": "ours"})
    for handle, key in ((alice, "app:k"), (alice, "project:k"), (member, "app:k")):
        with pytest.raises(AccessDenied, match="no write grant"):
            await handle.sessions.set_state("alice-session", key, 1)
    namespaces = {change.namespace for change in await collect(alice.changes())}
    assert not {name for name in namespaces if name and name.startswith(("app:", "project:"))}
    namespaces = {change.namespace for change in await collect(member.changes())}
    assert {"app:helpdesk", "project:alice-project"} <= namespaces
    assert "project:bob-project" not in namespaces


async def test_a_follower_is_told_only_of_what_it_may_see(memory: HybridMemoryService) -> None:
    alice = scoped(memory, user_alice="read")
    start = await memory.position()

    async def change() -> None:
        await memory.sessions.append_event("bob-session", {"n": 1}, {"user:k": SECRET})
        await memory.memories.update_memory("user:bob:notes", "bob-key", SECRET)
        await memory.state.set("user:k", "news", app_name="helpdesk", user_id="alice")

    async with TaskCrowd().meanwhile(change):
        seen = await first(alice.changes(start, follow=True))
    assert (seen.entity, seen.namespace) == ("state", "user:alice:helpdesk")

    entry = await first(alice.state.watch("user:", after=start, session_id="alice-session"))
    assert entry.value == "news"


async def test_a_change_of_shared_state_does_not_say_in_whose_session(memory: HybridMemoryService) -> None:
    # given a session of bob's that changes the app's state
    after = await memory.position()
    await memory.sessions.append_event("bob-session", {"n": 1}, {"app:k": 2}, actor="bob")

    # when somebody reads the journal who may read the app's state, and nothing of bob's
    reader = memory.as_principal(Principal("eve", {"app:helpdesk": "read"}))
    seen = [change async for change in reader.changes(after)]
    audited = list(await reader.audit(namespace="app:helpdesk", limit=1))

    # then the change is there, and bob is not
    assert seen == audited
    [change] = seen
    assert (change.entity_id, change.payload) == ("app:helpdesk", {"keys": ["app:k"]})
    assert (change.actor, change.session_id, change.user_id) == (None, None, None)
    [whole] = await memory.audit(namespace="app:helpdesk", limit=1)
    assert (whole.actor, whole.session_id) == ("bob", "bob-session")
