"""The contract of `AgentService`: agents, their cycles, where they stand after a crash, and what they remember."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from mnemon.agents.service import KINDS
from mnemon.errors import (
    AccessDenied,
    AgentExists,
    AgentNotFound,
    ConflictError,
    CycleNotFound,
    CyclePending,
    InvalidCursor,
    InvalidIdentifier,
    InvalidInput,
    InvalidNamespace,
    InvalidValue,
    MnemonError,
    SessionNotFound,
    WorkspaceNotFound,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Cycle, Principal
from mnemon.ports import Store
from mnemon.testing.agent_cycles import PROPOSAL, AgentCycleSuite, plant_agent, plant_cycle
from mnemon.testing.clock import ManualClock
from mnemon.testing.suite import journal_after, peek, refused, unchanged

DIRECTIVES = {"constraints": ["spend nothing"], "resources": [], "best_practices": ["look twice"]}


class AgentSuite(AgentCycleSuite):
    """Any backend must pass; `memory` has to be opened with the settings `RECALLING`."""

    # -- agents

    async def test_a_new_agent_is_as_it_was_told(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        agent = await memory.agents.create(
            "a1", name="Scout", role="finds\nthings", directives=DIRECTIVES, config={"model": "small"},
            metadata={"team": 3}, namespace="project:web:scout", actor="me",
        )  # fmt: skip

        assert (agent.id, agent.namespace, agent.name, agent.role) == (
            "a1",
            "project:web:scout",
            "Scout",
            "finds\nthings",
        )
        assert (agent.directives, agent.config, agent.metadata) == (DIRECTIVES, {"model": "small"}, {"team": 3})
        assert (agent.version, agent.cycle_count, agent.workspace_id) == (1, 0, None)
        assert agent.created_at == agent.updated_at == clock.moment
        assert await memory.agents.get("a1") == agent
        assert await peek(store, "SELECT name, namespace, version FROM agents") == [("Scout", "project:web:scout", 1)]
        assert await journal_after(store) == [("agent", "a1", "create", 1, "project:web:scout")]
        assert (await memory.audit(entity="agent")).items[0].actor == "me"

    async def test_an_agent_needs_only_a_name(self, memory: HybridMemoryService) -> None:
        agent = await memory.agents.create(name="Scout")
        assert agent.namespace == f"app:agents:{agent.id}"
        assert (agent.role, agent.directives, agent.config, agent.metadata) == ("", {}, {}, {})
        assert (await memory.agents.create(name="Scout", directives=["be brief"])).directives == ["be brief"]

    async def test_what_cannot_be_an_agent_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.agents.create("a1", name="Scout")
        strange: Any = 5

        async with refused(store, AgentExists, "a1"):
            await memory.agents.create("a1", name="Another")
        async with refused(store, WorkspaceNotFound, "nowhere"):
            await memory.agents.create("a2", name="Scout", workspace_id="nowhere")
        for bad in ("", "a:b", "x" * 257, strange):
            async with refused(store, InvalidIdentifier, "agent_id"):
                await memory.agents.create(bad, name="Scout")
        for bad in ("", "a\nb", "x" * 513, strange):
            async with refused(store, InvalidIdentifier, "name"):
                await memory.agents.create(name=bad)
        async with refused(store, InvalidNamespace):
            await memory.agents.create(name="Scout", namespace="nowhere")
        for bad in ("nul\0", "\ud800", strange):
            async with refused(store, InvalidValue, "role"):
                await memory.agents.create(name="Scout", role=bad)
        for what in ("directives", "config", "metadata"):
            given: dict[str, Any] = {what: {"x": b""}}
            async with refused(store, InvalidValue, what):
                await memory.agents.create(name="Scout", **given)
        async with refused(store, InvalidValue, "config"):
            await memory.agents.create(name="Scout", config=strange)

    async def test_reading_shows_what_stands_in_the_database(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await plant_agent(
            store, clock, "a1", role="r", directives="[1]", config='{"c":1}', metadata='{"m":2}', version=7
        )
        await plant_cycle(
            store, clock, "a1", 4, status="error", result='{"status":"error","reason":"no","error":null}',
            summary="it failed", artifacts='["x://1"]', snapshot=3, workspace_id="w", task_id="t",
        )  # fmt: skip

        agent, cycle = await memory.agents.get("a1"), await memory.agents.cycle("a1", 4)

        assert agent is not None
        assert cycle is not None
        assert (agent.role, agent.directives, agent.config, agent.metadata) == ("r", [1], {"c": 1}, {"m": 2})
        assert (agent.version, agent.cycle_count) == (7, 4)
        assert (cycle.number, cycle.status, cycle.summary, cycle.artifacts) == (4, "error", "it failed", ("x://1",))
        assert cycle.result == {"status": "error", "reason": "no", "error": None}
        assert (cycle.workspace_id, cycle.snapshot, cycle.task_id, cycle.session_id) == ("w", 3, "t", None)
        assert await memory.agents.get("a2") is None
        assert await memory.agents.cycle("a1", 5) is None

    async def test_only_what_is_given_is_changed(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        first = await memory.agents.create("a1", name="Scout", role="r", directives=DIRECTIVES, config={"a": 1})
        moved = clock.advance()

        second = await memory.agents.update("a1", name="Ranger", metadata={"m": 1}, expected_version=1, actor="me")

        assert second == replace(first, name="Ranger", metadata={"m": 1}, version=2, updated_at=moved)
        assert await memory.agents.get("a1") == second
        third = await memory.agents.update("a1", role="", directives="just one", config={})
        assert (third.role, third.directives, third.config, third.name) == ("", "just one", {}, "Ranger")
        assert [change.payload for change in await memory.audit(operation="update")] == [
            {"changed": ["config", "directives", "role"]},
            {"changed": ["metadata", "name"]},
        ]
        for stale in (0, 2, 4):
            async with refused(store, ConflictError, f"version 3, not {stale}"):
                await memory.agents.update("a1", name="Late", expected_version=stale)
        async with refused(store, WorkspaceNotFound, "nowhere"):
            await memory.agents.update("a1", workspace_id="nowhere")

    async def test_a_cycle_does_not_stand_in_the_way_of_a_change(self, memory: HybridMemoryService) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.capture_proposal("a1", PROPOSAL)
        assert (await memory.agents.update("a1", role="new", expected_version=1)).cycle_count == 1

    async def test_a_deleted_agent_leaves_its_memories(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.capture_proposal("a1", PROPOSAL)
        await memory.agents.record_memory("a1", "water is wet")

        await memory.agents.delete("a1", actor="me")

        assert await memory.agents.get("a1") is None
        assert await peek(store, "SELECT COUNT(*) FROM agent_cycles") == [(0,)]
        assert (await journal_after(store))[-1] == ("agent", "a1", "delete", 1, "app:agents:a1")
        assert len(await memory.memories.search_memories("app:agents:a1")) == 1

    async def test_agents_are_listed_by_namespace_page_by_page(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for place, name in (("app:b", "b1"), ("app:b:x", "b2"), ("app:b1", "b3"), ("user:al", "u1"), ("app:b", "b0")):
            await plant_agent(store, clock, name, namespace=place)

        async def listed(prefix: str = "", limit: int = 2) -> str:
            seen: list[str] = []
            cursor: str | None = None
            while True:
                page = await memory.agents.list(prefix, limit=limit, cursor=cursor)
                seen += [agent.id for agent in page]
                cursor = page.next_cursor
                if cursor is None:
                    return " ".join(seen)

        for limit in (1, 2, 50):
            assert await listed(limit=limit) == "b0 b1 b3 b2 u1"
            assert await listed("app:b", limit) == "b0 b1 b2"
        assert await listed("app") == "b0 b1 b3 b2"
        assert await listed("user:alice") == ""
        with pytest.raises(InvalidCursor):
            await memory.agents.list(cursor="nonsense")
        with pytest.raises(InvalidInput, match="limit"):
            await memory.agents.list(limit=0)

    # -- going on

    async def test_a_new_agent_stands_at_the_beginning(self, memory: HybridMemoryService) -> None:
        agent = await memory.agents.create("a1", name="Scout")
        stand = await memory.agents.resume("a1")
        assert (stand.agent, stand.last, stand.pending, stand.recent) == (agent, None, None, ())
        assert (stand.session_id, stand.workspace_id, stand.snapshot, stand.next_cycle) == (None, None, None, 1)

    async def test_an_agent_resumes_where_it_was(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.agents.create("a1", name="Scout")
        done: list[Cycle] = []
        for number in (1, 2, 3):
            await memory.agents.capture_proposal("a1", {"thoughts": number}, session_id="s1")
            done.append(await memory.agents.succeed("a1", number, number))

        stand = await memory.agents.resume("a1", recent=2)
        assert (stand.last, stand.pending, stand.recent) == (done[2], None, tuple(done[1:]))
        assert (stand.session_id, stand.next_cycle) == ("s1", 4)

        pending = await memory.agents.capture_proposal("a1", PROPOSAL, snapshot=7)
        stand = await memory.agents.resume("a1", recent=2)
        assert (stand.last, stand.pending, stand.recent) == (done[2], pending, tuple(done[1:]))
        assert (stand.session_id, stand.snapshot, stand.next_cycle) == (None, 7, 5)

    async def test_a_rewinding_undoes_and_erases_nothing(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.agents.create("a1", name="Scout")
        for number in range(1, 5):
            await memory.agents.capture_proposal("a1", {"thoughts": number})
            await memory.agents.succeed("a1", number, number)
        await memory.agents.capture_proposal("a1", PROPOSAL)
        before = await memory.agents.cycles("a1")
        at = clock.advance()

        stand = await memory.agents.rewind("a1", 2, actor="me")

        assert (stand.last, stand.pending, stand.next_cycle) == (before[1], None, 6)
        assert await memory.agents.cycles("a1") == before[:2]
        kept = await memory.agents.cycles("a1", include_undone=True)
        assert kept == [*before[:2], *(replace(each, undone_at=at) for each in before[2:])]
        assert not kept[-1].is_pending
        assert (await journal_after(store))[-1] == ("agent", "a1", "rewind", 1, "app:agents:a1")
        assert (await memory.audit(operation="rewind")).items[0].payload == {"to": 2, "undone": 3}

        assert (await memory.agents.capture_proposal("a1", PROPOSAL)).number == 6
        assert [each.number for each in await memory.agents.cycles("a1")] == [1, 2, 6]
        for gone in (3, 5):
            async with refused(store, ConflictError, "was undone"):
                await memory.agents.rewind("a1", gone)
        async with refused(store, ConflictError, "was undone: resume"):
            await memory.agents.succeed("a1", 5, "too late")
        async with refused(store, CycleNotFound, "no cycle 7"):
            await memory.agents.rewind("a1", 7)

    async def test_a_rewinding_goes_back_to_the_very_beginning_too(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.capture_proposal("a1", PROPOSAL)
        await memory.agents.rewind("a1", 1)
        assert (await memory.agents.resume("a1")).pending is not None
        stand = await memory.agents.rewind("a1", 0)
        assert (stand.last, stand.pending, stand.recent) == (None, None, ())
        async with unchanged(store):  # there is nothing left to undo
            assert await memory.agents.rewind("a1", 0) == stand

    # -- workspaces

    async def test_a_proposal_takes_a_snapshot_of_the_workspace(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w1")
        agent = await memory.agents.create("a1", name="Scout", workspace_id="w1")
        assert agent.workspace_id == "w1"
        for number in (1, 2):
            cycle = await memory.agents.capture_proposal("a1", PROPOSAL)
            assert (cycle.workspace_id, cycle.snapshot) == ("w1", number)
            await memory.workspaces.write("w1", f"{number}.txt", b"x")
            await memory.agents.succeed("a1", number)
        [second, first] = await memory.workspaces.log("w1")
        assert (first.message, second.files) == ("before cycle 1 of agent a1", 1)
        given = await memory.agents.capture_proposal("a1", PROPOSAL, snapshot=1)
        assert given.snapshot == 1
        assert len(await memory.workspaces.log("w1")) == 2
        with pytest.raises(CyclePending):
            await memory.agents.capture_proposal("a1", PROPOSAL)
        assert len(await memory.workspaces.log("w1")) == 2  # none is taken for what is refused
        stand = await memory.agents.resume("a1")
        assert (stand.workspace_id, stand.snapshot) == ("w1", 1)

    async def test_a_rewinding_may_restore_the_workspace(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.workspaces.create("w1")
        await memory.agents.create("a1", name="Scout", workspace_id="w1")
        for number in (1, 2, 3):
            await memory.agents.capture_proposal("a1", PROPOSAL)
            await memory.workspaces.write("w1", "page.txt", f"draft {number}")
            await memory.agents.succeed("a1", number)
        await memory.agents.capture_proposal("a1", PROPOSAL)
        await memory.workspaces.write("w1", "half.txt", "half of it")

        await memory.agents.rewind("a1", 3)
        assert await memory.workspaces.read("w1", "half.txt") == b"half of it"
        await memory.agents.capture_proposal("a1", PROPOSAL)
        for gone in (4, 9):
            async with refused(store, MnemonError):
                await memory.agents.rewind("a1", gone, restore_workspace=True)
        await memory.agents.rewind("a1", 1, restore_workspace=True)

        assert [file.path for file in await memory.workspaces.list_files("w1")] == ["page.txt"]
        assert await memory.workspaces.read("w1", "page.txt") == b"draft 1"
        await memory.agents.rewind("a1", 0, restore_workspace=True)
        assert len(await memory.workspaces.list_files("w1")) == 0
        history = await memory.workspaces.history("w1", "page.txt")
        assert len(history) == 4  # three drafts, and the first again: nothing was lost

    async def test_an_agent_outlives_its_workspace(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w1")
        await memory.agents.create("a1", name="Scout")
        assert (await memory.agents.update("a1", workspace_id="w1")).workspace_id == "w1"
        await memory.agents.capture_proposal("a1", PROPOSAL)
        await memory.workspaces.delete("w1")
        stand = await memory.agents.resume("a1")
        assert (stand.workspace_id, stand.snapshot) == (None, 1)
        await memory.agents.succeed("a1", 1)
        assert (await memory.agents.capture_proposal("a1", PROPOSAL)).snapshot is None

    # -- what agents remember

    async def test_an_insight_knows_where_it_comes_from(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.agents.create("a1", name="Scout")
        alone = await memory.agents.record_memory("a1", "before anything was done")
        await memory.agents.capture_proposal("a1", PROPOSAL, session_id="s1", task_id="t1")
        await memory.agents.succeed("a1", 1)
        await memory.agents.capture_proposal("a1", PROPOSAL)

        told = await memory.agents.record_memory(
            "a1", "the page has no figures", cycle=1, key="page", importance=0.9, trust=0.4, metadata={"url": "x"},
            actor="me",
        )  # fmt: skip

        assert (told.namespace, told.key, told.value) == ("app:agents:a1", "page", "the page has no figures")
        assert (told.created_by, told.task_id, told.memory_type) == ("me", "t1", "episodic")
        assert told.metadata == {"agent_id": "a1", "kind": "observation", "cycle": 1, "url": "x"}
        source, place = told.provenance, told.placement
        assert (source.session_id, source.author, source.importance, source.trust) == ("s1", "Scout", 0.9, 0.4)
        assert (place.thread, place.position) == ("agent:a1", 1)
        newest = await memory.agents.record_memory("a1", "still looking", namespace="project:web")
        assert (newest.placement.position, newest.namespace, newest.task_id) == (2, "project:web", None)
        assert (alone.placement.thread, alone.placement.position) == ("agent:a1", None)
        again = await memory.agents.record_memory(
            "a1", "the page has no figures", cycle=1, key="page", importance=0.9, trust=0.4, metadata={"url": "x"}
        )
        assert (again.id, again.version) == (told.id, 1)

    async def test_each_kind_of_insight_is_of_its_type(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.agents.create("a1", name="Scout")
        for kind, usual in KINDS.items():
            assert (await memory.agents.record_memory("a1", kind, kind=kind)).memory_type == usual
        chosen = await memory.agents.record_memory("a1", "x", kind="plan", memory_type="semantic")
        assert (chosen.memory_type, chosen.metadata["kind"]) == ("semantic", "plan")
        async with refused(store, InvalidInput, "observation, result, reflection, plan"):
            await memory.agents.record_memory("a1", "x", kind="dream")
        async with refused(store, CycleNotFound, "no cycle 9"):
            await memory.agents.record_memory("a1", "x", cycle=9)

    async def test_recall_brings_what_answers_and_what_was_done_last(self, memory: HybridMemoryService) -> None:
        await memory.agents.create("a1", name="Scout")
        for number in range(1, 5):
            await memory.agents.capture_proposal("a1", {"use_tool": {"name": "look", "arguments": {"n": number}}})
            await memory.agents.succeed("a1", number, f"saw {number}")
        await memory.agents.summarise("a1", 4, "Alice drinks green tea.")
        await memory.agents.record_memory("a1", "Alice drinks green tea.", kind="reflection")
        await memory.agents.record_memory("a1", "It rained in Bergen all week.")
        await memory.remember("Tea is grown in Assam.", namespace="app:agents:a2")

        found = await memory.agents.recall("a1", "the beverage she has for breakfast", k=1, recent=3)

        [hit, *cycles] = found
        assert hit.hit is not None
        assert (hit.text, hit.hit.memory.metadata["cycle"], hit.cycle) == ("Alice drinks green tea.", 4, None)
        assert [each.text for each in cycles] == ["look(n='2'): saw 2", "look(n='3'): saw 3"]  # the fourth is the hit
        assert [each.cycle.number for each in cycles if each.cycle] == [2, 3]
        wider = await memory.agents.recall("a1", "Where is tea grown?", k=3, recent=0, namespaces="app:agents:a2")
        assert wider[0].text == "Tea is grown in Assam."
        assert all(each.cycle is None for each in wider)

    async def test_a_rewinding_may_forget(self, memory: HybridMemoryService) -> None:
        await memory.agents.create("a1", name="Scout")
        for number in (1, 2, 3):
            await memory.agents.capture_proposal("a1", {"thoughts": number})
            await memory.agents.succeed("a1", number)
            await memory.agents.record_memory("a1", f"insight {number}", key=f"k{number}")
        await memory.agents.record_memory("a1", "elsewhere", key="k4", namespace="project:web")

        await memory.agents.rewind("a1", 2)
        assert len(await memory.memories.search_memories("app:agents:a1")) == 3
        await memory.agents.rewind("a1", 1, forget=True)

        assert [each.value for each in await memory.memories.search_memories("")] == ["insight 1", "elsewhere"]
        await memory.memories.restore_memory("app:agents:a1", "k3")  # nothing was erased

    # -- access

    async def test_a_principal_sees_and_changes_only_its_own(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.agents.create("mine", name="Mine", namespace="project:web:mine")
        await memory.agents.create("other", name="Other", namespace="project:webs")
        await memory.agents.capture_proposal("other", PROPOSAL)
        await memory.agents.record_memory("other", "a secret")
        web = memory.as_principal(Principal("web", {"project:web": "write"}))

        assert [agent.id for agent in await web.agents.list()] == ["mine"]
        assert await web.agents.get("other") is None
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: web.agents.resume("other"),
            lambda: web.agents.cycles("other"),
            lambda: web.agents.recall("other", "secret"),
            lambda: web.agents.capture_proposal("other", PROPOSAL),
            lambda: web.agents.succeed("other", 1),
            lambda: web.agents.rewind("other", 0),
            lambda: web.agents.update("other", name="x"),
            lambda: web.agents.delete("other"),
            lambda: web.agents.delete("mine"),  # which takes more than writing
        ]
        for call in calls:
            async with refused(store, AgentNotFound):
                await call()
        async with refused(store, AccessDenied, "no write grant"):
            await web.agents.create("new", name="x")
        async with refused(store, SessionNotFound):
            await web.agents.capture_proposal("mine", PROPOSAL, session_id="s1")
        async with refused(store, AccessDenied):
            await web.agents.record_memory("mine", "x", namespace="project:webs")
        async with refused(store, AccessDenied):
            await web.agents.recall("mine", "x", namespaces=["project:webs"])
        assert (await web.agents.capture_proposal("mine", PROPOSAL, actor="somebody else")).number == 1
        assert (await memory.audit(entity="cycle", entity_id="mine:1")).items[0].actor == "web"

    async def test_reading_is_not_writing(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.agents.create("a1", name="Scout")
        await memory.agents.capture_proposal("a1", PROPOSAL)
        reader = memory.as_principal(Principal("r", {"app:agents": "read"}))
        assert (await reader.agents.resume("a1")).pending is not None
        calls: Mapping[str, Callable[[], Awaitable[object]]] = {
            "result": lambda: reader.agents.succeed("a1", 1),
            "rewind": lambda: reader.agents.rewind("a1", 0),
            "update": lambda: reader.agents.update("a1", name="x"),
            "summary": lambda: reader.agents.summarise("a1", 1, "x"),
        }
        for call in calls.values():
            async with refused(store, AgentNotFound):
                await call()
        async with refused(store, AccessDenied):
            await reader.agents.record_memory("a1", "x")
