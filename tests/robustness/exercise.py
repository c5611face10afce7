"""The whole public interface, used once with every parameter; and a means to see that it is whole."""

import atexit
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mnemon
from mnemon.encryption.masters import new_master_key
from mnemon.testing import FakeVectorMemory
from mnemon.testing.embedders import FakeEmbedder
from tests.robustness.children import settle

SERVICES: Mapping[str, type] = {
    "": mnemon.HybridMemoryService,
    "sessions": mnemon.SessionService,
    "state": mnemon.StateStore,
    "tasks": mnemon.TaskService,
    "working": mnemon.WorkingMemory,
    "episodes": mnemon.EpisodeService,
    "memories": mnemon.MemoryService,
    "consolidation": mnemon.ConsolidationService,
    "retention": mnemon.RetentionService,
    "keys": mnemon.KeyService,
    "vectors": mnemon.VectorService,
    "index": mnemon.IndexService,
    "agents": mnemon.AgentService,
    "documents": mnemon.DocumentService,
    "artifacts": mnemon.ArtifactService,
    "workspaces": mnemon.WorkspaceService,
    "consumer": mnemon.Consumer,
}
ENDLESS = {("consumer", "run")}  # tried where it can be ended
OWNERS = ("session_id", "app_name", "user_id", "project_id")  # what `**owner` stands for
SEALED = "user:sealed"
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
        "content_url": "memory://", "encrypted_namespaces": (SEALED,), "encryption_keys": (new_master_key("k1"),),
        "retention": [{"name": "short", "namespace": "user:alice:short", "max_age_days": 0}],
    }  # fmt: skip


def kept_folder() -> Path:
    """A new folder that is there until the process ends, so that calls with it can be made again."""
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


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
    await use_working(memory.working)
    await use_artifacts(memory.artifacts)
    await use_workspaces(memory.workspaces)
    await use_memories(memory.memories)
    await use_search(memory.memories)
    await use_recall(memory)
    await use_consolidation(memory)
    await use_episodes(memory)
    await use_keys(memory)
    await use_retention(memory)
    await use_vectors(memory.vectors)
    await use_agents(memory)
    await use_documents(memory.documents)
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


async def use_working(working: Any) -> None:
    by = {"actor": "bob", "task_id": "t1"}
    await settle(working.append("s1", ["one", "two", "three"], buffer="b", ttl=1000, **by))
    await settle(working.recent("s1", buffer="b", last=2, budget=5))
    await settle(working.buffers("s1"))
    batch = await settle(working.drain("s1", buffer="b", limit=1, lease=100, actor="bob"))
    await settle(working.acknowledge(batch, **by))
    await settle(working.release(await settle(working.drain("s1", buffer="b")), actor="bob"))
    await settle(working.set("s1", "p", 1, expected_version=0, ttl=1000, **by))
    await settle(working.set("s1", "p", 2, expected_version=1))
    await settle(working.set("s1", "q", 1))
    await settle(working.get("s1", "p"))
    page = await settle(working.scratchpads("s1", limit=1))
    await settle(working.scratchpads("s1", limit=1, cursor=page.next_cursor))
    await settle(working.delete("s1", "p", expected_version=2, **by))
    await settle(working.delete("s1", "q"))
    await settle(working.prune())
    await take(working.follow("s1", after=0), 1)


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


async def use_artifacts(artifacts: Any) -> None:
    told = {"actor": "bob", "task_id": "t1"}
    by: dict[str, Any] = {"content_type": "text/plain", "metadata": {"n": 1}, **told}
    await settle(artifacts.save("s1", "a/x.txt", data="text", **by))
    await settle(artifacts.save("s1", "a/x.txt", stream=[b"pieces"]))
    saved = await settle(artifacts.save("s1", "y", path=__file__))
    await settle(artifacts.get("s1", "y", version=1))
    await settle(artifacts.get("s1", "y"))
    await settle(artifacts.resolve(saved.url))
    page = await settle(artifacts.list("s1", prefix="a", limit=1))
    await settle(artifacts.list("s1", limit=1, cursor=page.next_cursor))
    await settle(artifacts.recent("s1", limit=2))
    page = await settle(artifacts.versions("s1", "a/x.txt", deleted=True, limit=1))
    await settle(artifacts.versions("s1", "a/x.txt", limit=1, cursor=page.next_cursor))
    await settle(artifacts.manifest("s1"))
    await settle(artifacts.read("s1", "y", version=1))
    stream = artifacts.open("s1", "y", version=1, offset=3)
    assert len(await settle(stream.read())) == saved.size - 3
    await settle(stream.close())
    await settle(artifacts.delete("s1", "a/x.txt", version=1, **told))
    await settle(artifacts.restore("s1", "a/x.txt", version=1, **told))
    await settle(artifacts.delete("s1", "y"))
    heard: list[Any] = []
    report = await settle(artifacts.verify(deep=True, grace=timedelta(0), progress=heard.append))
    assert (report.flaws, len(heard)) == ((), 3)
    await settle(artifacts.rebuild(session_id="s1"))
    await settle(artifacts.rebuild())
    for dry_run in (True, False):
        await settle(artifacts.cleanup(keep_deleted=timedelta(0), grace=timedelta(0), dry_run=dry_run, actor="bob"))


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
    await settle(memory.fetch_recent_context("s2", limit=20, budget=500))
    kept = {"namespace": "user:alice:v", "text": "a vector", "actor": "bob", "task_id": "t1"}
    await settle(memory.upsert_vector("v0", [1.0] * DIMENSION, {"n": 1}, **kept))
    await settle(memory.forget("user:alice:profile", "city", actor="bob", task_id="t1"))
    await settle(memory.forget("user:alice:notes", erase=True))


async def use_retention(memory: Any) -> None:
    by, here = {"actor": "bob", "task_id": "t1"}, "user:alice:short"
    for key in ("one", "two"):
        await settle(memory.remember("gone soon", namespace=f"{here}:{key}", key=key))
    await settle(memory.retention.plan(namespace_prefix=here))
    await settle(memory.retention.plan())
    await settle(memory.retention.apply(namespace_prefix=here, dry_run=False, **by))
    page = await settle(memory.retention.archives(namespace_prefix="user", limit=1))
    rest = await settle(memory.retention.archives(limit=10, cursor=page.next_cursor))
    for archive in (*page, *rest):
        await settle(memory.retention.restore(archive_id=archive.id, **by))
        await settle(memory.retention.discard(archive_id=archive.id, **by))
    await settle(memory.retention.apply_if_due(**by))
    await settle(memory.remember("gone too", namespace=f"{here}:gone", key="gone"))
    await settle(memory.remember("gone as well", namespace=f"{here}:gone", key="well"))
    await settle(memory.retention.apply(here))
    await settle(memory.forget(f"{here}:gone", "gone", erase=True))
    await settle(memory.forget(f"{here}:gone", erase=True))
    await settle(memory.retention.growth(record=True, actor="bob"))
    await settle(memory.retention.prune(**by))


async def use_keys(memory: Any) -> None:
    await settle(memory.remember("sealed", namespace=SEALED, key="sealed"))
    await settle(memory.workspaces.create("sealed", namespace=SEALED))
    await settle(memory.workspaces.clone("sealed", "sealed-copy"))
    await settle(memory.sessions.create_session("sealed", "helpdesk", "sealed", initial_state={"a": 1}))
    await settle(memory.sessions.append_event("sealed", {"text": "sealed"}, {"a": 2}))
    await settle(memory.state.set("a", 3, session_id="sealed"))
    await settle(memory.working.set("sealed", "pad", 1))
    await settle(memory.tasks.create("sealed", task_id="sealed", session_id="sealed"))
    await settle(memory.store_episode(["sealed"], session_id="sealed"))
    await settle(memory.remember("sealed", namespace="session:sealed", key="sealed"))
    await settle(memory.sessions.delete_session("sealed"))
    await settle(memory.tasks.update("sealed", "running"))
    await settle(memory.remember("sealed again", namespace="session:sealed", key="sealed"))
    await settle(memory.workspaces.write("sealed", "a", "text"))
    await settle(memory.keys.rewrap(actor="bob"))
    await settle(memory.keys.rotate(namespace="user", actor="bob"))
    seen: list[mnemon.Progress] = []
    moments = {"grace": timedelta(0), "actor": "bob"}
    await settle(memory.keys.reseal(namespace="user", progress=seen.append, **moments))
    await settle(memory.keys.status(namespace="user"))
    await settle(memory.keys.drop(namespace="user", **moments))


async def use_consolidation(memory: Any) -> None:
    here = "user:alice:homes"
    by = {"types": ["semantic"], "actor": "bob", "task_id": "t1"}
    for choice in ("first", "second", "both", "merge"):
        for number, city in enumerate(("Bergen", "Oslo")):
            await settle(memory.remember(f"Alice lives in {city}.", namespace=f"{here}:{choice}", key=f"note-{number}"))
    await settle(memory.consolidate(here, strategy="review", dry_run=False, **by))
    page = await settle(memory.consolidation.reviews("open", namespace_prefix=here, limit=1))
    rest = await settle(memory.consolidation.reviews(limit=10, cursor=page.next_cursor))
    for review in (*page, *rest):
        choice = review.namespace.rpartition(":")[2]
        told = {"value": "Alice lives in Oslo."} if choice == "merge" else {}
        await settle(memory.consolidation.decide(review.id, choice, **told, actor="bob", task_id="t1"))
    await settle(memory.consolidation.reviews(None))
    strategy = {"consolidation_strategy": "merge"}
    await settle(memory.memories.consolidate_memories(here, dry_run=True, **strategy, **by))
    await settle(memory.consolidation.consolidate(here, strategy="latest_wins", dry_run=False, **by))
    await settle(memory.forget(here, erase=True))


async def use_episodes(memory: Any) -> None:
    by = {"actor": "bob", "task_id": "t1"}
    told: dict[str, Any] = {
        "kind": "negotiation", "namespace": "user:alice:talks", "session_id": "s2", "title": "The van",
        "participants": ["buyer", "seller"], "offers": [mnemon.Offer("buyer", {"price": 80})], "outcome": "agreed",
        "started_at": PAST, "ended_at": FUTURE, "metadata": {"n": 1}, **by,
    }  # fmt: skip
    first = await settle(memory.store_episode(["I live in Oslo."], **told))
    await settle(memory.episodes.store([{"role": "user", "text": "I live in Oslo."}], **told))
    await settle(memory.store_episode([{"role": "user", "text": "I live in Bergen."}], session_id="s2"))
    await settle(memory.episodes.get(first.id))
    for wanted in ({}, {"namespace": "user:alice"}, {"session_id": "s2"}, {"status": "pending", "kind": "negotiation"}):
        page = await settle(memory.episodes.list(**wanted, limit=1))
        await settle(memory.episodes.list(**wanted, cursor=page.next_cursor))
    await settle(memory.episodes.counts())
    await settle(memory.episodes.counts(namespace="user:alice"))
    await settle(memory.working.append("s2", ["one", "two"]))
    heard: list[Any] = []
    await settle(memory.consolidation.flow(idle=3600, lease=30, rounds=1, progress=heard.append))
    await settle(memory.consolidation.flow())
    assert heard
    await settle(memory.episodes.retry(namespace="user:alice", **by))
    with suppress(mnemon.InvalidTransition):
        await settle(memory.episodes.retry(episode_id=first.id))
    await settle(memory.episodes.delete(first.id, **by))
    await settle(memory.episodes.erase("user:alice:talks", **by))


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


async def use_agents(memory: Any) -> None:
    agents = memory.agents
    about = {
        "name": "Scout", "role": "finds", "directives": ["be brief"], "config": {"a": 1}, "metadata": {"m": 1},
        "workspace_id": "agents-own", "actor": "bob",
    }  # fmt: skip
    await settle(memory.workspaces.create("agents-own"))
    await settle(agents.create("a1", namespace="user:alice:scout", **about))
    await settle(agents.update("a1", expected_version=1, **about))
    await settle(agents.get("a1"))
    page = await settle(agents.list("user:alice", limit=1))
    await settle(agents.list("user:alice", limit=1, cursor=page.next_cursor))
    await settle(agents.list())
    told = {"artifacts": ["mnemon://x"], "summary": "done", "actor": "bob"}
    results = (
        lambda n: agents.capture_result("a1", n, {"status": "success", "outputs": 1}, **told),
        lambda n: agents.succeed("a1", n, 1, **told),
        lambda n: agents.fail("a1", n, "no", {"code": 1}, **told),
        lambda n: agents.interrupt("a1", n, "stop", summary="stopped", actor="bob"),
    )
    for number, finish in enumerate(results, 1):
        own = {"snapshot": 1} if number == 2 else {}
        await settle(
            agents.capture_proposal(
                "a1", {"thoughts": "x"}, session_id="s1", task_id="t1", expected_cycle=number, actor="bob", **own
            )
        )
        await settle(finish(number))
    await settle(agents.summarise("a1", 1, "in short", actor="bob"))
    insight = {"kind": "plan", "key": "k", "memory_type": "semantic", "importance": 0.9, "trust": 0.8}
    await settle(
        agents.record_memory(
            "a1", "x", cycle=1, namespace="user:alice:scout", metadata={"n": 1}, actor="bob", **insight
        )
    )
    await settle(agents.record_memory("a1", "the newest"))
    await settle(agents.recall("a1", "x", 3, recent=2, namespaces=["user:alice"]))
    await settle(agents.cycle("a1", 1))
    for by in ({}, {"last": 2, "before": 4}, {"session_id": "s1"}, {"include_undone": True}):
        await settle(agents.cycles("a1", **by))
    await settle(agents.resume("a1", recent=2))
    await settle(agents.rewind("a1", 1, restore_workspace=True, forget=True, actor="bob"))
    state = await settle(agents.export_autogpt("a1"))
    await settle(
        agents.import_autogpt(state, agent_id="a2", namespace="user:alice", workspace_id="agents-own", actor="bob")
    )
    await settle(agents.delete("a2", actor="bob"))


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


async def use_documents(documents: Any) -> None:
    here = "user:alice:docs"
    by: dict[str, Any] = {"metadata": {"m": 1}, "chunk_tokens": 64, "actor": "bob", "task_id": "t1"}
    kind = {"title": "Given", "document_type": "markdown"}
    await settle(documents.add("given", namespace=here, content="# One\n\nText.\n", root=None, **kind, **by))
    await settle(documents.add("copy", namespace=here, content="# One\n\nText.\n"))
    folder = kept_folder()
    (folder / "a.md").write_text("# One\n")
    (folder / "b.md").write_bytes(b"\0")
    which = {"namespace": here, "root": folder, "patterns": ["*.md"], "ignore": ["x/"], "delete_missing": True}
    heard: list[Any] = []
    await settle(documents.add_folder(folder, **which, progress=heard.append, **by))
    (folder / "a.md").write_text("# Two\n")
    await settle(documents.check("user:alice", actor="bob", task_id="t1"))
    await settle(documents.retry("user:alice", stale=True, progress=heard.append, actor="bob", task_id="t1"))
    await take(documents.watch(folder, **which, **by), 1)
    assert heard
    await settle(documents.mark_stale(here, "given", actor="bob", task_id="t1"))
    await settle(documents.get(here, "given"))
    await settle(documents.chunks(here, "given"))
    for which in ({}, {"status": "synced"}, {"document_type": "markdown"}, {"recent": True}):
        page = await settle(documents.list("user:alice", limit=1, **which))
        await settle(documents.list(limit=1, cursor=page.next_cursor, **which))
    await settle(documents.remove(here, "copy", actor="bob", task_id="t1"))


async def use_workspaces(workspaces: Any) -> None:
    by, heard = {"actor": "bob", "task_id": "t1"}, []
    await settle(workspaces.create("w", namespace="user:alice:w", metadata={"m": 1}, **by))
    await settle(workspaces.update_metadata("w", {"m": 2}, **by))
    noted = {"metadata": {"n": 1}, "is_executable": True, "expected_version": 0}
    file = await settle(workspaces.write("w", "src/a", "one", **noted, **by))
    await settle(workspaces.write_many("w", {"src/b": "two", "c": "three"}, **by))
    first = await settle(workspaces.snapshot("w", "first", **by))
    known = {"is_executable": False, "expected_version": file.version}
    file = await settle(workspaces.set_metadata("w", "src/a", {"n": 2}, **known, **by))
    await settle(workspaces.move("w", "src/a", "c", overwrite=True, **by))
    await settle(workspaces.move("w", "src", "lib", **by))
    for at in ({}, {"at": 1}, {"version": 1}):
        await settle(workspaces.stat("w", "src/a", **at))
    await settle(workspaces.read("w", "src/a", at=1))
    await settle(workspaces.read("w", "src/a", version=1))
    await take(workspaces.open("w", "src/a", at=1, version=1, offset=1), 1)
    for at in ({}, {"at": first}):
        page = await settle(workspaces.list_files("w", "", limit=1, **at))
        await settle(workspaces.list_files("w", "", limit=1, cursor=page.next_cursor, **at))
        await settle(workspaces.list_files("w", "src", **at))
        await settle(workspaces.clone("w", f"clone-{len(at)}", namespace="user:alice:v", metadata={}, **at, **by))
    await settle(workspaces.history("w", "c", limit=5))
    await settle(workspaces.get("w"))
    await settle(workspaces.get_snapshot("w", 1))
    await settle(workspaces.diff("w", 1, None, prefix="src", text=True))
    await settle(workspaces.restore("w", 1, prefix="src", **by))
    await settle(workspaces.snapshot("w"))
    page = await settle(workspaces.log("w", limit=1))
    await settle(workspaces.log("w", limit=1, cursor=page.next_cursor))
    page = await settle(workspaces.list("user:alice", limit=1))
    await settle(workspaces.list("user:alice", limit=1, cursor=page.next_cursor))
    await settle(workspaces.list())
    await settle(workspaces.remove("w", "c", expected_version=None, **by))
    folder, told = kept_folder(), {"prefix": "src", "progress": heard.append}
    await settle(workspaces.export_folder("w", folder, at=1, overwrite=True, **told))
    await settle(workspaces.import_folder("w", folder, ignore=["*.log"], mirror=True, **told, **by))
    assert heard
    await settle(workspaces.prune("w", keep=1, **by))
    await settle(workspaces.create("gone"))
    await settle(workspaces.delete("gone", **by))


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
    await settle(scoped.agents.list())
    await settle(scoped.agents.get("a1"))
    await settle(scoped.agents.capture_proposal("a1", {"thoughts": "own"}, session_id="s2", snapshot=1))
    await settle(scoped.agents.cycles("a1", session_id="s2"))
    await settle(scoped.agents.rewind("a1", 0))
    await use_search(scoped.memories)
    await settle(scoped.memories.get_thread("thread"))
    await settle(scoped.memories.list_namespaces())
    await settle(scoped.consolidate("user:alice", "merge"))
    await settle(scoped.consolidation.reviews())
    await settle(scoped.documents.list())
    await settle(scoped.documents.check())
    await settle(scoped.workspaces.list())
    await settle(scoped.workspaces.read("w", "src/a"))
    await settle(scoped.workspaces.write("w", "src/a", "mine"))
    await settle(scoped.recall("Where does Alice live?", namespaces=["", "session:s2"]))
    await settle(scoped.recall("Where does Alice live?", namespaces="", as_of=FUTURE))
    await settle(scoped.context("Where does Alice live?", session_id="s2"))
    await settle(scoped.fetch_recent_context("s2"))
    await settle(scoped.vectors.query([1.0] * DIMENSION))
    await take(scoped.changes(), 5)
    await settle(scoped.audit())
    await settle(scoped.audit(since=PAST))
