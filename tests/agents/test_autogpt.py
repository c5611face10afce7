"""Agents that come from AutoGPT's state files, whatever their shape."""

import json
from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import mnemon
from mnemon import AgentExists, HybridMemoryService, InvalidInput, WorkspaceExists
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import QUIET, journal_after, refused, unchanged
from tests.agents.samples import NAMED_ACTIONS, NEWEST, OLDEST, SETTINGS_YAML, save


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[HybridMemoryService]:
    async with mnemon.open(f"sqlite:///{tmp_path}/m.db", **QUIET) as memory:
        yield memory


async def test_the_newest_shape_becomes_an_agent_with_its_cycles(memory: HybridMemoryService, tmp_path: Path) -> None:
    agent = await memory.agents.import_autogpt(save(tmp_path / "x", NEWEST), actor="me")

    assert (agent.id, agent.namespace) == ("OrderGPT-1f2e3d4c", "app:agents:OrderGPT-1f2e3d4c")
    assert (agent.name, agent.role) == ("OrderGPT", "a clerk who counts orders")
    assert agent.directives == {
        **NEWEST["directives"], "goals": ["Count the orders", "Write a report"],
        "task": "Write report.md about orders.csv",
    }  # fmt: skip
    assert agent.config == NEWEST["config"]
    assert agent == await memory.agents.get(agent.id)
    stand = await memory.agents.resume(agent.id)
    episodes = NEWEST["history"]["episodes"]
    assert [cycle.proposal for cycle in stand.recent] == [episode["action"] for episode in episodes[:3]]
    assert [cycle.result for cycle in stand.recent] == [episode["result"] for episode in episodes[:3]]
    assert [cycle.status for cycle in stand.recent] == ["success", "error", "interrupted_by_human"]
    assert [cycle.summary for cycle in stand.recent] == ["Listed the workspace: orders.csv.", None, None]
    assert stand.pending is not None
    assert (stand.pending.number, stand.pending.proposal) == (4, episodes[3]["action"])
    await memory.agents.succeed(agent.id, 4, "a,b,c")  # it goes on here
    assert (await memory.agents.capture_proposal(agent.id, "next")).number == 5
    rows = await journal_after(parts_of(memory).store)
    assert rows[:3] == [
        ("agent", agent.id, "import", 1, agent.namespace),
        ("cycle", f"{agent.id}:1", "import", None, agent.namespace),
        ("cycle", f"{agent.id}:2", "import", None, agent.namespace),
    ]


async def test_what_was_imported_is_exported_again(memory: HybridMemoryService, tmp_path: Path) -> None:
    agent = await memory.agents.import_autogpt(save(tmp_path, NEWEST))
    exported = await memory.agents.export_autogpt(agent.id)
    assert exported == NEWEST
    again = await memory.agents.import_autogpt(json.loads(json.dumps(exported)), agent_id="twin")
    assert await memory.agents.export_autogpt("twin") == {**NEWEST, "agent_id": "twin"}
    assert (again.directives, again.config, again.metadata) == (agent.directives, agent.config, agent.metadata)


async def test_an_agent_that_never_was_autogpts_is_exported_too(memory: HybridMemoryService) -> None:
    await memory.agents.create("a1", name="Scout", role="r", directives=["be brief"], metadata={"mine": 1})
    await memory.agents.capture_proposal("a1", {"thoughts": 1})
    await memory.agents.fail("a1", 1, "no")
    await memory.agents.capture_proposal("a1", {"thoughts": 2})
    await memory.agents.rewind("a1", 1)
    assert await memory.agents.export_autogpt("a1") == {
        "agent_id": "a1",
        "ai_profile": {"ai_name": "Scout", "ai_role": "r", "ai_goals": []},
        "directives": {"directives": ["be brief"]},
        "task": "",
        "config": {},
        "history": {
            "episodes": [
                {
                    "action": {"thoughts": 1},
                    "result": {"status": "error", "reason": "no", "error": None},
                    "summary": None,
                }
            ],
            "cursor": 1,
            "pending_user_feedback": [],
        },
    }


async def test_an_action_may_be_a_call_with_a_reason(memory: HybridMemoryService, tmp_path: Path) -> None:
    agent = await memory.agents.import_autogpt(str(save(tmp_path, NAMED_ACTIONS)))
    stand = await memory.agents.resume(agent.id)
    assert stand.last is not None
    assert stand.pending is not None
    assert (stand.last.status, stand.pending.proposal["name"]) == ("success", "finish")
    [found] = await memory.agents.recall(agent.id, "map")
    assert found.text == "write_file(filename='map.txt', contents='N'): File written"


async def test_old_files_are_read_as_far_as_they_go(memory: HybridMemoryService, tmp_path: Path) -> None:
    agent = await memory.agents.import_autogpt(save(tmp_path / "an old agent", OLDEST))
    assert (agent.name, agent.role) == ("Old GPT", "an elder")
    assert agent.directives == {"goals": ["Remember"]}
    assert agent.metadata["autogpt"] == {"ai_profile": {"api_budget": 1.5}}
    cycles = await memory.agents.cycles(agent.id, include_undone=True)
    assert [cycle.result for cycle in cycles] == [
        {"status": "success", "outputs": "Nothing was found"},
        {"status": "success", "outputs": 3},
        None,  # it never ended, and others followed
        {"status": "error", "reason": "too late", "error": None},
        {"status": "success", "outputs": {"status": "did_something_else", "code": 7}},
    ]
    assert [cycle.number for cycle in cycles if cycle.undone_at] == [3]
    assert (await memory.agents.resume(agent.id)).pending is None
    assert (await memory.agents.capture_proposal(agent.id, "next")).number == 6
    assert cycles[1].proposal == {"thoughts": "I only thought"}


async def test_settings_of_0_4_are_an_agent_that_did_nothing_yet(memory: HybridMemoryService, tmp_path: Path) -> None:
    (tmp_path / "ai_settings.yaml").write_text(SETTINGS_YAML)
    agent = await memory.agents.import_autogpt(tmp_path, agent_id="ferry", namespace="project:ferries")
    assert (agent.id, agent.name, agent.role) == ("ferry", "FerryGPT", "compares ferries")
    assert (agent.namespace, agent.cycle_count) == ("project:ferries", 0)
    assert agent.directives == {"goals": ["Find the cheapest ferry"]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"ai_profile": "Scout"}, "ai_profile is no object"),
        ({"directives": 5}, "directives is no object"),
        ({"config": []}, "config is no object"),
        ({"history": "long"}, "history is no object"),
        ({"history": {"episodes": "many"}}, "episodes are no list"),
        ({"history": {"episodes": [NEWEST["history"]["episodes"][0], 5]}}, "episode 2 is no object"),
        ({"history": {"episodes": [{"action": [1]}]}}, "the action of episode 1 is no object"),
        ({"ai_profile": None, "history": None}, "neither a profile"),
    ],
)
async def test_what_is_broken_says_where(memory: HybridMemoryService, change: Any, complaint: str) -> None:
    async with refused(parts_of(memory).store, InvalidInput, complaint):
        await memory.agents.import_autogpt({**deepcopy(NEWEST), **change})


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("state.json", b"", "not JSON"),
        ("state.json", b"\xff\xfe{}", "not JSON"),
        ("state.json", b"[1, 2]", "no object"),
        ("state.json", b'{"some": "thing"}', "neither a profile"),
        ("ai_settings.yaml", b"ai_name: [", "not YAML"),
        ("ai_settings.yaml", b"just text", "no object"),
        ("other.txt", b"{}", "has no state file"),
    ],
)
async def test_what_is_no_state_file_is_refused(
    memory: HybridMemoryService, tmp_path: Path, name: str, content: bytes, complaint: str
) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / name).write_bytes(content)
    async with refused(parts_of(memory).store, InvalidInput, complaint):
        await memory.agents.import_autogpt(folder)
    async with refused(parts_of(memory).store, InvalidInput, "cannot be read"):
        await memory.agents.import_autogpt(tmp_path / "nowhere.json")


async def test_an_agent_is_imported_once(memory: HybridMemoryService, tmp_path: Path) -> None:
    file = save(tmp_path / "x", NEWEST)
    await memory.agents.import_autogpt(file)
    async with refused(parts_of(memory).store, AgentExists, "OrderGPT-1f2e3d4c"):
        await memory.agents.import_autogpt(file)


async def test_the_folder_that_it_worked_in_becomes_its_workspace(memory: HybridMemoryService, tmp_path: Path) -> None:
    folder = tmp_path / "OrderGPT-1f2e3d4c"
    save(folder, NEWEST)
    (folder / "workspace" / "notes").mkdir(parents=True)
    (folder / "workspace" / "orders.csv").write_text("1,2\n")
    (folder / "workspace" / "notes" / "a.md").write_text("# A\n")

    agent = await memory.agents.import_autogpt(folder)

    assert agent.workspace_id == agent.id
    found = await memory.workspaces.get(agent.id)
    assert found is not None
    assert found.namespace == agent.namespace
    files = await memory.workspaces.list_files(agent.id)
    assert [file.path for file in files] == ["notes/a.md", "orders.csv"]
    assert await memory.workspaces.read(agent.id, "orders.csv") == b"1,2\n"
    async with unchanged(parts_of(memory).store):
        with pytest.raises(AgentExists):
            await memory.agents.import_autogpt(folder)


async def test_an_import_that_was_cut_off_is_gone_on_with(memory: HybridMemoryService, tmp_path: Path) -> None:
    save(tmp_path / "x", NEWEST)
    (tmp_path / "x" / "workspace").mkdir()
    (tmp_path / "x" / "workspace" / "orders.csv").write_text("1,2\n")
    await memory.workspaces.create("half", namespace="app:agents:half")
    await memory.workspaces.write("half", "old.txt", b"left over")
    await memory.workspaces.create("other")

    agent = await memory.agents.import_autogpt(tmp_path / "x", agent_id="half")
    assert [file.path for file in await memory.workspaces.list_files("half")] == ["orders.csv"]
    assert agent.workspace_id == "half"
    with pytest.raises(WorkspaceExists, match="say which to use"):
        await memory.agents.import_autogpt(tmp_path / "x", agent_id="other")
    linked = await memory.agents.import_autogpt(tmp_path / "x", agent_id="other", workspace_id="other")
    assert linked.workspace_id == "other"
    assert len(await memory.workspaces.list_files("other")) == 0
