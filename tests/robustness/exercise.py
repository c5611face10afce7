"""The whole public interface, used once with every parameter; and a means to see that it is whole."""

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import mnemon
from mnemon.testing import FakeVectorMemory
from mnemon.testing.embedders import FakeEmbedder
from tests.robustness.children import settle

SERVICES: Mapping[str, type] = {
    "": mnemon.HybridMemoryService,
    "sessions": mnemon.SessionService,
    "state": mnemon.StateStore,
    "tasks": mnemon.TaskService,
    "memories": mnemon.MemoryService,
    "vectors": mnemon.VectorService,
    "index": mnemon.IndexService,
    "consumer": mnemon.Consumer,
}
ENDLESS = {("consumer", "run")}  # tried where it can be ended
OWNERS = ("session_id", "app_name", "user_id", "project_id")  # what `**owner` stands for
PAST = datetime(2000, 1, 1, tzinfo=UTC)
FUTURE = datetime.now(UTC) + timedelta(days=1)
DIMENSION = 256  # of the static embedder, which takes the place of the one at the beginning


def shelf(space: mnemon.Space) -> FakeVectorMemory:
    """A vector store outside the database, of which there is no other."""
    return FakeVectorMemory(space)


def settings() -> dict[str, Any]:
    """What a memory has to be opened with, so that all there is can be used and nothing else happens meanwhile."""
    return {
        "max_events_kept": 10, "background": False, "embedder": FakeEmbedder(DIMENSION), "vector_stores": (shelf,),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a public method; `service` is "" for the memory itself."""

    service: str
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def on(self, memory: Any) -> Any:
        """The same call again, on another memory."""
        target = memory.consumer("again") if self.service == "consumer" else memory
        service = target if self.service in ("", "consumer") else getattr(target, self.service)
        return getattr(service, self.method)(*self.args, **self.kwargs)

    def parameters(self) -> set[str]:
        """The names of the parameters that were passed."""
        function = getattr(SERVICES[self.service], self.method)
        given = inspect.signature(function).bind(None, *self.args, **self.kwargs).arguments
        return {*given, *given.get("owner", ())} - {"self", "owner"}


class Recorder:
    """Stands before a memory or one of its services, and writes down every call."""

    def __init__(self, target: Any, calls: list[Call], service: str = "") -> None:
        self._target = target
        self._calls = calls
        self._service = service

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._target, name)
        if name in SERVICES and not self._service:
            recorder = Recorder(member, self._calls, name)
            return self._called(name, lambda *_, **__: recorder, member) if name == "consumer" else recorder
        return self._called(name, member, member)

    def _called(self, name: str, answer: Callable[..., Any], member: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._calls.append(Call(self._service, name, args, kwargs))
            if name == "consumer":
                return Recorder(member(*args, **kwargs), self._calls, name)
            found = answer(*args, **kwargs)
            return Recorder(found, self._calls) if name == "as_principal" else found

        return call


def public_parameters() -> set[tuple[str, str, str]]:
    """Every parameter of every public method, by service, method and name."""
    return {
        (service, method, parameter)
        for service, kind in SERVICES.items()
        for method, function in inspect.getmembers(kind, inspect.isfunction)
        if not method.startswith("_")
        for parameter in _names(function)
    }


def public_methods() -> set[tuple[str, str]]:
    """Every public method, by service and name."""
    return {
        (service, method)
        for service, kind in SERVICES.items()
        for method, _ in inspect.getmembers(kind, inspect.isfunction)
        if not method.startswith("_")
    }


def _names(function: Callable[..., Any]) -> Iterable[str]:
    for name in inspect.signature(function).parameters:
        yield from OWNERS if name == "owner" else () if name == "self" else (name,)


async def take(changes: Any, number: int) -> list[Any]:
    """The first of what either kind of iterator gives."""
    if isinstance(changes, AsyncIterator):
        found = [change async for change in _first(changes, number)]
        await changes.aclose()  # type: ignore[attr-defined]
        return found
    iterator: Iterator[Any] = changes
    return list(islice(iterator, number))


async def _first(changes: AsyncIterator[Any], number: int) -> AsyncIterator[Any]:
    taken = 0
    async for change in changes:
        yield change
        taken += 1
        if taken == number:
            return


async def exercise(memory: Any) -> None:
    """Call everything, on an empty database that was opened with `settings()`, through either face."""
    await use_sessions(memory.sessions)
    await use_state(memory.state)
    await use_tasks(memory.tasks)
    await use_memories(memory.memories)
    await use_search(memory.memories)
    await use_recall(memory)
    await use_vectors(memory.vectors)
    await use_journal(memory)
    await use_as_principal(memory)
    await use_index(memory)
    await end_sessions(memory.sessions)
    await settle(memory.settled())


async def use_sessions(sessions: Any) -> None:
    for number in range(3):
        await settle(
            sessions.create_session(
                f"s{number}", "app", "alice", "p1", {"user:name": "Alice"}, metadata={"n": number}, actor="bob"
            )
        )
    await settle(sessions.append_event("s0", {"n": 1}, {"x": 1, "user:y": 2, "app:z": 3, "project:w": 4, "temp:t": 5}))
    await settle(sessions.append_event("s0", {"n": 2}, event_id="e2", expected_version=2, actor="bob", task_id="t1"))
    await settle(sessions.append_event("s0", {"n": 2}, event_id="e2"))
    version = (await settle(sessions.get_session("s0"))).version
    batch = [{"n": 3}, mnemon.EventDraft({"n": 4}, {"x": 2}, "e4")]
    await settle(sessions.append_events("s0", batch, expected_version=version, actor="bob", task_id="t1"))
    await settle(sessions.append_events("s0", [{"n": n} for n in range(30)]))  # enough to have some archived
    await settle(sessions.get_session("s0", last=2))
    await settle(sessions.get_session("s0", after=2))
    await settle(sessions.events("s0", last=20, archived=True))
    await settle(sessions.events("s0", after=1, limit=20, archived=True))
    await settle(sessions.events("s0"))
    await settle(sessions.set_state("s0", "x", 1, actor="bob", task_id="t1"))
    await settle(sessions.get_state("s0", "x"))
    version = await settle(sessions.update_metadata("s0", {"a": 1}, actor="bob", task_id="t1"))
    version = await settle(sessions.update_metadata("s0", {"a": 2}, expected_version=version))
    await settle(sessions.update_status("s0", "paused", expected_version=version, actor="bob", task_id="t1"))
    await settle(sessions.update_status("s0", "active"))
    await list_sessions(sessions)


async def list_sessions(sessions: Any) -> None:
    await settle(sessions.list_active_sessions())
    await settle(sessions.list_active_sessions("alice", limit=5))
    for by in (
        {},
        {"app_name": "app"},
        {"user_id": "alice"},
        {"app_name": "app", "user_id": "alice"},
        {"project_id": "p1"},
        {"status": "created"},
        {"project_id": "p1", "status": "created"},
        {"user_id": "alice", "status": "created"},
    ):
        page = await settle(sessions.list_sessions(**by, limit=1))
        await settle(sessions.list_sessions(**by, limit=1, cursor=page.next_cursor))


async def end_sessions(sessions: Any) -> None:
    await settle(sessions.terminate_session("s1", actor="bob", task_id="t1"))
    await settle(sessions.update_status("s1", "archived"))
    await settle(sessions.delete_session("s0", actor="bob", task_id="t1"))


async def use_state(state: Any) -> None:
    user = {"app_name": "app", "user_id": "alice"}
    told = {"actor": "bob", "task_id": "t1"}
    for owner, key in (
        ({"session_id": "s1"}, "key"),
        ({"session_id": "s1"}, "user:key"),
        (user, "user:key2"),
        ({"app_name": "app"}, "app:key"),
        ({"project_id": "p1"}, "project:key"),
    ):
        version = await settle(state.set(key, 1, **told, **owner))
        version = await settle(state.compare_and_set(key, 2, version, **told, **owner))
        await settle(state.update(key, lambda value: value + 1, default=0, **told, **owner))
        await settle(state.merge({key: 4, f"{key}-b": 1}, **told, **owner))
        await settle(state.get(key, default=0, **owner))
        entry = await settle(state.entry(key, **owner))
        await settle(state.entries(key[:3] if ":" not in key else key[: key.index(":") + 1], **owner))
        await take(state.watch(key, after=0, **owner), 1)
        await settle(state.delete(key, expected_version=entry.version, **told, **owner))
        await settle(state.delete(key, **owner))
    await settle(state.compare_and_set("user:new", 1, 0, **user))


async def use_tasks(tasks: Any) -> None:
    await settle(tasks.create("plan", task_id="t1", session_id="s1", input={"a": 1}, actor="bob"))
    await settle(tasks.create("step", task_id="t2", session_id="s1", parent_id="t1"))
    await settle(tasks.create("alone"))
    await settle(tasks.update("t1", "running", expected_version=1, actor="bob"))
    await settle(tasks.update("t1", "failed", result=None, error="no"))
    await settle(tasks.get("t1"))
    for by in ({}, {"session_id": "s1"}, {"parent_id": "t1"}, {"status": "pending"}):
        page = await settle(tasks.list(**by, limit=1))
        await settle(tasks.list(**by, limit=1, cursor=page.next_cursor))
    await settle(tasks.delete("t2", actor="bob"))


async def use_memories(memories: Any) -> None:
    source = mnemon.Provenance("s1", "e1", "alice", 0.9, 0.7)
    for number in range(4):
        place = mnemon.Placement("thread", number, PAST, PAST, FUTURE)
        await settle(
            memories.add_memory(
                f"user:alice:n{number}", "k", {"n": number}, "semantic", "bob", "t1", {"n": number, "tags": ["a"]},
                provenance=source, placement=place,
            )
        )  # fmt: skip
    where = ("user:alice:n1", "k")
    await settle(
        memories.update_memory(
            *where, {"n": 5}, "bob", "t1", 1,
            metadata={"n": 5}, memory_type="episodic", provenance=source, placement=mnemon.Placement("thread", 9),
        )
    )  # fmt: skip
    await settle(memories.get_memory(*where))
    await settle(memories.get_memory(*where, version=1))
    await settle(memories.get_memory(*where, as_of=FUTURE))
    await settle(memories.get_memory_history(*where))
    await settle(memories.diff_memory(*where, 1, 2))
    await settle(memories.delete_memory(*where, "bob", "t1", expected_version=2))
    await settle(memories.restore_memory(*where, 1, "bob", "t1"))
    await settle(memories.delete_memory(*where))
    await settle(memories.restore_memory(*where))
    await settle(memories.delete_memory(*where))
    await settle(memories.add_memory(*where, {"n": 6}))
    await settle(memories.get_thread("thread", first=1, last=9, limit=5))
    await settle(memories.list_namespaces("user:alice", limit=5))
    await settle(memories.list_namespaces())
    await settle(memories.purge_memory("user:alice:n3", "k", "bob", "t1"))
    drafts = [mnemon.MemoryDraft("one", "user:alice:n8", "k"), mnemon.MemoryDraft("two", "user:alice:n8")]
    await settle(memories.put_memories(drafts, "bob", "t1"))
    await settle(memories.forget_memories("user:alice:n8", "k", erase=False, actor="bob", task_id="t1"))
    await settle(memories.forget_memories("user:alice:n8", erase=True))


async def use_search(memories: Any) -> None:
    narrowed: Sequence[dict[str, Any]] = (
        {},
        {"memory_type": "semantic"},
        {"created_by": "bob"},
        {"where": {"n": {"gte": 0}, "or": [{"tags": {"contains": "a"}}, {"not": {"n": {"in": [1, 2]}}}]}},
        {"updated_after": PAST, "updated_before": FUTURE},
        {"memory_type": "semantic", "created_by": "bob", "updated_after": PAST},
    )
    for prefix in ("", "user", "user:alice", "user:alice:n1"):
        for order in ("namespace", "recent"):
            for narrow in narrowed:
                page = await settle(memories.search_memories(prefix, limit=1, order=order, **narrow))
                cursor = page.next_cursor
                await settle(memories.search_memories(prefix, limit=1, order=order, cursor=cursor, **narrow))


async def use_recall(memory: Any) -> None:
    city = {
        "namespace": "user:alice:profile", "key": "city", "memory_type": "semantic", "thread": "talk", "position": 3,
        "occurred_at": PAST, "author": "Alice", "importance": 0.7, "trust": 0.9, "metadata": {"n": 1},
        "actor": "bob", "task_id": "t1",
    }  # fmt: skip
    for text in ("Alice lives in Bergen", "Alice lives in Oslo, says ERR-1042", "Alice lives in Oslo, says ERR-1042"):
        await settle(memory.remember(text, **city))
    told = [{"text": f"turn {number}", "thread": "talk", "position": number} for number in range(8)]
    await settle(memory.remember_many([*told, "Alice works"], namespace="user:alice:notes", actor="bob", task_id="t1"))
    await settle(memory.sessions.append_event("s2", {"role": "user", "text": "I moved to Oslo", "author": "Alice"}))
    await settle(memory.settled(timeout=60))
    where = {"n": {"gte": 0}, "or": [{"tags": {"contains": "a"}}, {"not": {"n": {"in": [5, 6]}}}]}
    for narrow in ({}, {"k": 3, "types": ["semantic"], "where": where, "min_trust": 0.5, "explain": True, "offset": 1}):
        for namespaces in ("user:alice", ["user:alice:profile", "session:s2"], ""):
            await settle(memory.recall("Where does Alice live?", namespaces=namespaces, **narrow))
            await settle(memory.recall("ERR-1042 in Oslo", namespaces=namespaces, as_of=FUTURE, **narrow))
    await settle(memory.context("Where does Alice live?", session_id="s2", budget=500))
    await settle(memory.context("Where does Alice live?", namespaces=["user:alice"]))
    await settle(memory.forget("user:alice:profile", "city", actor="bob", task_id="t1"))
    await settle(memory.forget("user:alice:notes", erase=True))


async def use_vectors(vectors: Any) -> None:
    one, other = ([float(number == place) for number in range(DIMENSION)] for place in (0, 1))
    await settle(
        vectors.store("v1", one, {"n": 1}, namespace="user:alice:v", text="the first", actor="bob", task_id="t1")
    )
    drafts = [mnemon.VectorDraft("v1", other, {"n": 2}, "user:alice:v"), mnemon.VectorDraft("v2", one)]
    await settle(vectors.store_many(drafts, actor="bob", task_id="t1"))
    await settle(vectors.query(one))
    narrow = {"namespaces": ["user:alice"], "types": ["semantic"], "min_trust": 0.5, "text": "the first"}
    await settle(vectors.query(one, 5, {"n": {"gte": 0}}, **narrow))
    await settle(vectors.describe())
    await settle(vectors.delete("v1", namespace="user:alice:v", actor="bob", task_id="t1"))


async def use_index(memory: Any) -> None:
    """Look after what finds memories, and change the embedder."""
    index, heard = memory.index, []
    await settle(index.settled(60))
    await settle(index.verify("shelf", mend=True))
    assert all(drift.is_none for drift in (await settle(index.verify())).values())
    await settle(index.rebuild("shelf", progress=heard.append))
    [first] = await settle(index.spaces())
    second = await settle(memory.reembed("static", progress=heard.append))
    assert await settle(index.reembed("static", progress=heard.append)) == second
    assert heard
    await settle(memory.recall("Where does Alice live?", namespaces="user:alice"))
    await settle(index.drop_space(first))
    assert await settle(index.spaces()) == (second,)


async def use_journal(memory: Any) -> None:
    position = await settle(memory.position())
    await take(memory.changes(), 5)
    await take(memory.changes(position - 3, True, entity="memory"), 1)
    await take(memory.changes(0, namespace="user:alice"), 5)
    await take(memory.changes(0, session_id="s0"), 5)
    for by in (
        {},
        {"actor": "bob"},
        {"entity": "event"},
        {"entity": "session", "entity_id": "s0"},
        {"operation": "append"},
        {"namespace": "user:alice"},
        {"session_id": "s0"},
        {"task_id": "t1"},
    ):
        for period in ({}, {"since": PAST, "until": FUTURE}):
            page = await settle(memory.audit(**by, **period, limit=1))
            await settle(memory.audit(**by, **period, limit=1, cursor=page.next_cursor))
    await use_consumer(memory)
    await settle(memory.seal())
    verified = await settle(memory.verify())
    await settle(memory.verify(verified.head))


async def use_consumer(memory: Any) -> None:
    consumer = memory.consumer("reader", lease=30, batch=10)
    assert await settle(consumer.process(ignore_in_transaction)) == 10
    assert await settle(consumer.deliver(ignore)) == 10
    assert await settle(consumer.prepare(prepare_nothing)) == 10
    await settle(consumer.has_work())
    await settle(consumer.has_reached(3))
    await settle(consumer.status())
    await settle(consumer.release())
    await settle(consumer.rewind(1))
    followed = memory.consumer("follower", entities=["memory", "space"])
    await settle(followed.process(ignore_in_transaction))
    await settle(followed.release())
    await settle(memory.consumers())


async def ignore_in_transaction(tx: Any, changes: Sequence[mnemon.Change]) -> None:
    pass


async def prepare_nothing(changes: Sequence[mnemon.Change]) -> Any:
    return lambda tx: ignore_in_transaction(tx, changes)


async def ignore(changes: Sequence[mnemon.Change]) -> None:
    pass


async def use_as_principal(memory: Any) -> None:
    """What a principal's grants add to the queries."""
    grants = {"user:alice": "admin", "session:s2": "write", "app:app": "write", "project:p1": "read"}
    scoped = memory.as_principal(mnemon.Principal("alice", grants))
    await settle(scoped.sessions.append_event("s2", {"n": 1}, {"user:a": 1}))
    await settle(scoped.sessions.get_session("s2"))
    await settle(scoped.sessions.update_metadata("s2", {"n": 1}))
    await list_sessions(scoped.sessions)
    await settle(scoped.state.set("key", 1, session_id="s2"))
    await settle(scoped.state.entries("user:", session_id="s2"))
    await settle(scoped.tasks.create("own", task_id="t9", session_id="s2"))
    await settle(scoped.tasks.get("t9"))
    await settle(scoped.tasks.update("t9", "running"))
    await settle(scoped.tasks.list(session_id="s2"))
    await settle(scoped.tasks.list())
    await settle(scoped.tasks.delete("t9"))
    await use_search(scoped.memories)
    await settle(scoped.memories.get_thread("thread"))
    await settle(scoped.memories.list_namespaces())
    await settle(scoped.recall("Where does Alice live?", namespaces=["", "session:s2"]))
    await settle(scoped.recall("Where does Alice live?", namespaces="", as_of=FUTURE))
    await settle(scoped.context("Where does Alice live?", session_id="s2"))
    await settle(scoped.vectors.query([1.0] * DIMENSION))
    await take(scoped.changes(), 5)
    await settle(scoped.audit())
    await settle(scoped.audit(since=PAST))
