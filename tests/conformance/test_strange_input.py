"""Text and numbers that no database can carry are refused as bad input, wherever they are given."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from mnemon import EpisodeEntry, HybridMemoryService, MemoryDraft, MnemonError, Placement, StoreError
from mnemon.encryption.masters import new_master_key
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
    "working.recent": lambda m, x: m.working.recent(x),
    "working.recent buffer": lambda m, x: m.working.recent("s1", buffer=x),
    "working.append": lambda m, x: m.working.append(x, ["text"]),
    "working.drain": lambda m, x: m.working.drain("s1", buffer=x),
    "working.get": lambda m, x: m.working.get("s1", x),
    "working.set": lambda m, x: m.working.set(x, "pad", 1),
    "working.delete": lambda m, x: m.working.delete("s1", x),
    "working.scratchpads": lambda m, x: m.working.scratchpads("s1", cursor=x),
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
    "fetch_recent_context": lambda m, x: m.fetch_recent_context(x),
    "upsert_vector": lambda m, x: m.upsert_vector(x, [1.0]),
    "consolidate": lambda m, x: m.consolidate(f"user:{x}"),
    "consolidate strategy": lambda m, x: m.consolidate("user:a", x),
    "consolidate type": lambda m, x: m.consolidate("user:a", types=x),
    "consolidate actor": lambda m, x: m.consolidate("user:a", actor=x),
    "consolidate task": lambda m, x: m.memories.consolidate_memories("user:a", task_id=x),
    "reviews": lambda m, x: m.consolidation.reviews(x),
    "store_episode": lambda m, x: m.store_episode(["text"], namespace=f"user:{x}"),
    "store_episode session": lambda m, x: m.store_episode(["text"], session_id=x),
    "store_episode kind": lambda m, x: m.store_episode(["text"], namespace="user:a", kind=x),
    "store_episode title": lambda m, x: m.store_episode(["text"], namespace="user:a", title=x),
    "store_episode author": lambda m, x: m.store_episode([EpisodeEntry(1, author=x)], namespace="user:a"),
    "store_episode participant": lambda m, x: m.store_episode(["text"], namespace="user:a", participants=[x]),
    "store_episode actor": lambda m, x: m.store_episode(["text"], namespace="user:a", actor=x),
    "store_episode task": lambda m, x: m.store_episode(["text"], namespace="user:a", task_id=x),
    "episodes.list": lambda m, x: m.episodes.list(namespace=f"user:{x}"),
    "episodes.list session": lambda m, x: m.episodes.list(session_id=x),
    "episodes.list status": lambda m, x: m.episodes.list(status=x),
    "episodes.list cursor": lambda m, x: m.episodes.list(cursor=x),
    "episodes.counts": lambda m, x: m.episodes.counts(f"user:{x}"),
    "episodes.retry": lambda m, x: m.episodes.retry(namespace=f"user:{x}"),
    "episodes.retry actor": lambda m, x: m.episodes.retry(actor=x),
    "episodes.erase": lambda m, x: m.episodes.erase(f"user:{x}"),
    "episodes.erase actor": lambda m, x: m.episodes.erase("user:nobody", actor=x),
    "forget erase": lambda m, x: m.forget(f"user:{x}", erase=True),
    "retention plan": lambda m, x: m.retention.plan(f"user:{x}"),
    "retention apply": lambda m, x: m.retention.apply(f"user:{x}"),
    "retention actor": lambda m, x: m.retention.apply("user:a", actor=x),
    "retention task": lambda m, x: m.retention.apply("user:a", task_id=x),
    "retention due": lambda m, x: m.retention.apply_if_due(actor=x, task_id=x),
    "archives": lambda m, x: m.retention.archives(f"user:{x}"),
    "keys.status": lambda m, x: m.keys.status(f"user:{x}"),
    "keys.rotate": lambda m, x: m.keys.rotate(f"user:{x}"),
    "keys.rotate actor": lambda m, x: m.keys.rotate("user:a", actor=x),
    "keys.rewrap actor": lambda m, x: m.keys.rewrap(actor=x),
    "keys.reseal": lambda m, x: m.keys.reseal(f"user:{x}"),
    "keys.reseal actor": lambda m, x: m.keys.reseal("user:a", actor=x),
    "keys.drop": lambda m, x: m.keys.drop(f"user:{x}"),
    "keys.drop actor": lambda m, x: m.keys.drop("user:a", actor=x),
    "archives cursor": lambda m, x: m.retention.archives(cursor=x),
    "reviews namespace": lambda m, x: m.consolidation.reviews(None, namespace_prefix=f"user:{x}"),
    "reviews cursor": lambda m, x: m.consolidation.reviews(cursor=x),
    "decide choice": lambda m, x: m.consolidation.decide(1, x),
    "decide value": lambda m, x: m.consolidation.decide(1, "merge", x),
    "vectors.store": lambda m, x: m.vectors.store(x, [1.0]),
    "index.verify": lambda m, x: m.index.verify(x),
    "agents.create": lambda m, x: m.agents.create(x, name="new"),
    "agents.create name": lambda m, x: m.agents.create(name=x),
    "agents.create role": lambda m, x: m.agents.create(name="new", role=x),
    "agents.create workspace": lambda m, x: m.agents.create(name="new", workspace_id=x),
    "agents.create metadata": lambda m, x: m.agents.create(name="new", metadata={"x": x}),
    "agents.get": lambda m, x: m.agents.get(x),
    "agents.list": lambda m, x: m.agents.list(f"user:{x}"),
    "agents.list cursor": lambda m, x: m.agents.list(cursor=x),
    "agents.update": lambda m, x: m.agents.update("a1", role=x),
    "agents.capture_proposal session": lambda m, x: m.agents.capture_proposal("a1", "x", session_id=x),
    "agents.capture_proposal task": lambda m, x: m.agents.capture_proposal("a1", "x", task_id=x),
    "agents.succeed summary": lambda m, x: m.agents.succeed("a1", 1, summary=x),
    "agents.summarise": lambda m, x: m.agents.summarise("a1", 1, x),
    "agents.record_memory": lambda m, x: m.agents.record_memory("a1", "x", key=x),
    "agents.record_memory kind": lambda m, x: m.agents.record_memory("a1", "x", kind=x),
    "agents.cycles": lambda m, x: m.agents.cycles("a1", session_id=x),
    "agents.recall": lambda m, x: m.agents.recall("a1", "what?", recent=0, namespaces=f"user:{x}"),
    "agents.import_autogpt": lambda m, x: m.agents.import_autogpt({"ai_name": x, "agent_id": x}),
    "agents.import_autogpt path": lambda m, x: m.agents.import_autogpt(x),
    "documents.add": lambda m, x: m.documents.add(x, namespace="user:a", content="text"),
    "documents.add file": lambda m, x: m.documents.add(x, namespace="user:a"),
    "documents.add title": lambda m, x: m.documents.add("a", namespace="user:a", content="text", title=x),
    "documents.add metadata": lambda m, x: m.documents.add("a", namespace="user:a", content="t", metadata={"x": x}),
    "documents.add actor": lambda m, x: m.documents.add("a", namespace="user:a", content="text", actor=x),
    "documents.add_folder": lambda m, x: m.documents.add_folder(x, namespace="user:a"),
    "documents.get": lambda m, x: m.documents.get("user:a", x),
    "documents.list": lambda m, x: m.documents.list(f"user:{x}"),
    "documents.list cursor": lambda m, x: m.documents.list(cursor=x),
    "documents.remove": lambda m, x: m.documents.remove("user:a", x),
    "documents.retry": lambda m, x: m.documents.retry(f"user:{x}"),
    "artifacts.save session": lambda m, x: m.artifacts.save(x, "a", b""),
    "artifacts.save name": lambda m, x: m.artifacts.save("s1", x, b""),
    "artifacts.save type": lambda m, x: m.artifacts.save("s1", "a", b"", content_type=x),
    "artifacts.save metadata": lambda m, x: m.artifacts.save("s1", "a", b"", metadata={"x": x}),
    "artifacts.save actor": lambda m, x: m.artifacts.save("s1", "a", b"", actor=x),
    "artifacts.save task": lambda m, x: m.artifacts.save("s1", "a", b"", task_id=x),
    "artifacts.get session": lambda m, x: m.artifacts.get(x, "kept"),
    "artifacts.get": lambda m, x: m.artifacts.get("s1", x),
    "artifacts.list": lambda m, x: m.artifacts.list(x),
    "artifacts.list prefix": lambda m, x: m.artifacts.list("s1", prefix=x),
    "artifacts.list cursor": lambda m, x: m.artifacts.list("s1", cursor=x),
    "artifacts.versions": lambda m, x: m.artifacts.versions("s1", x),
    "artifacts.resolve": lambda m, x: m.artifacts.resolve(f"mnemon://artifacts/s1/{x}"),
    "artifacts.open": lambda m, x: m.artifacts.open("s1", x).read(),
    "artifacts.delete": lambda m, x: m.artifacts.delete("s1", x),
    "artifacts.delete actor": lambda m, x: m.artifacts.delete("s1", "kept", actor=x),
    "artifacts.manifest": lambda m, x: m.artifacts.manifest(x),
    "artifacts.rebuild": lambda m, x: m.artifacts.rebuild(x),
    "workspaces.create": lambda m, x: m.workspaces.create(x),
    "workspaces.create namespace": lambda m, x: m.workspaces.create(namespace=f"user:{x}"),
    "workspaces.create metadata": lambda m, x: m.workspaces.create(metadata={"x": x}),
    "workspaces.create actor": lambda m, x: m.workspaces.create(actor=x),
    "workspaces.get": lambda m, x: m.workspaces.get(x),
    "workspaces.list": lambda m, x: m.workspaces.list(f"user:{x}"),
    "workspaces.list cursor": lambda m, x: m.workspaces.list(cursor=x),
    "workspaces.write path": lambda m, x: m.workspaces.write("w1", x, "text"),
    "workspaces.write metadata": lambda m, x: m.workspaces.write("w1", "a", "text", metadata={"x": x}),
    "workspaces.write task": lambda m, x: m.workspaces.write("w1", "a", "text", task_id=x),
    "workspaces.move": lambda m, x: m.workspaces.move("w1", "kept", x),
    "workspaces.list_files": lambda m, x: m.workspaces.list_files("w1", x),
    "workspaces.list_files cursor": lambda m, x: m.workspaces.list_files("w1", cursor=x),
    "workspaces.snapshot": lambda m, x: m.workspaces.snapshot("w1", x),
    "workspaces.import_folder": lambda m, x: m.workspaces.import_folder("w1", x),
    "workspaces.export_folder": lambda m, x: m.workspaces.export_folder("w1", x),
    "workspaces.clone": lambda m, x: m.workspaces.clone("w1", x),
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
    "reviews": lambda m, x: m.consolidation.reviews(limit=x),
    "flow idle": lambda m, x: m.consolidation.flow(x),
    "flow lease": lambda m, x: m.consolidation.flow(lease=x),
    "episodes.get": lambda m, x: m.episodes.get(x),
    "episodes.retry": lambda m, x: m.episodes.retry(x),
    "episodes.delete": lambda m, x: m.episodes.delete(x),
    "episodes.list": lambda m, x: m.episodes.list(limit=x),
    "archives": lambda m, x: m.retention.archives(limit=x),
    "restore archive": lambda m, x: m.retention.restore(x),
    "discard archive": lambda m, x: m.retention.discard(x),
    "decide": lambda m, x: m.consolidation.decide(x, "first"),
    "events last": lambda m, x: m.sessions.events("s1", last=x),
    "events after": lambda m, x: m.sessions.events("s1", after=x),
    "get_session": lambda m, x: m.sessions.get_session("s1", last=x),
    "append_event": lambda m, x: m.sessions.append_event("s1", {}, expected_version=x),
    "compare_and_set": lambda m, x: m.state.compare_and_set("user:a", 1, x, session_id="s1"),
    "delete": lambda m, x: m.state.delete("user:a", expected_version=x, session_id="s1"),
    "tasks.update": lambda m, x: m.tasks.update("t1", "running", expected_version=x),
    "fetch_recent_context": lambda m, x: m.fetch_recent_context("s1", limit=x),
    "working.recent": lambda m, x: m.working.recent("s1", last=x),
    "working.recent budget": lambda m, x: m.working.recent("s1", budget=x),
    "working.drain": lambda m, x: m.working.drain("s1", limit=x),
    "working.delete": lambda m, x: m.working.delete("s1", "pad", expected_version=x),
    "working.set": lambda m, x: m.working.set("s1", "pad", 1, expected_version=x),
    "agents.capture_proposal": lambda m, x: m.agents.capture_proposal("a1", "x", expected_cycle=x),
    "agents.capture_proposal snapshot": lambda m, x: m.agents.capture_proposal("a1", "x", snapshot=x),
    "agents.update": lambda m, x: m.agents.update("a1", name="x", expected_version=x),
    "agents.succeed": lambda m, x: m.agents.succeed("a1", x),
    "agents.cycle": lambda m, x: m.agents.cycle("a1", x),
    "agents.cycles last": lambda m, x: m.agents.cycles("a1", last=x),
    "agents.cycles before": lambda m, x: m.agents.cycles("a1", before=x),
    "agents.resume": lambda m, x: m.agents.resume("a1", recent=x),
    "agents.rewind": lambda m, x: m.agents.rewind("a1", x),
    "agents.recall": lambda m, x: m.agents.recall("a1", "what?", k=x),
    "documents.add": lambda m, x: m.documents.add("a", namespace="user:a", content="text", chunk_tokens=x),
    "documents.list": lambda m, x: m.documents.list(limit=x),
    "artifacts.get": lambda m, x: m.artifacts.get("s1", "kept", x),
    "artifacts.delete": lambda m, x: m.artifacts.delete("s1", "kept", x),
    "artifacts.list": lambda m, x: m.artifacts.list("s1", limit=x),
    "artifacts.recent": lambda m, x: m.artifacts.recent("s1", x),
    "artifacts.open": lambda m, x: m.artifacts.open("s1", "kept", offset=x).read(),
    "workspaces.write": lambda m, x: m.workspaces.write("w1", "kept", "x", expected_version=x),
    "workspaces.stat": lambda m, x: m.workspaces.stat("w1", "kept", version=x),
    "workspaces.read at": lambda m, x: m.workspaces.read("w1", "kept", at=x),
    "workspaces.get_snapshot": lambda m, x: m.workspaces.get_snapshot("w1", x),
    "workspaces.diff": lambda m, x: m.workspaces.diff("w1", x),
    "workspaces.restore": lambda m, x: m.workspaces.restore("w1", x),
    "workspaces.prune": lambda m, x: m.workspaces.prune("w1", keep=x),
    "workspaces.log": lambda m, x: m.workspaces.log("w1", limit=x),
    "changes": lambda m, x: collect(m.changes(x)),
    "rewind": lambda m, x: m.consumer("c").rewind(x),
    "limit": lambda m, x: m.audit(limit=x),
}


class TestStrangeInput(OverEveryBackend, Suite):
    """Refused, or nothing found; never an error of the driver's, and nothing is written."""

    settings: ClassVar[Mapping[str, Any]] = {"content_url": "memory://", "encryption_keys": (new_master_key("k1"),)}

    async def attempt(self, memory: HybridMemoryService, store: Store, calls: dict[str, Call], given: Any) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.tasks.create("job", task_id="t1")
        await memory.memories.add_memory("user:a", "k", 1)
        await memory.agents.create("a1", name="Scout")
        await memory.artifacts.save("s1", "kept", "text")
        await memory.workspaces.create("w1")
        await memory.workspaces.write("w1", "kept", "text")
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
