"""Agents from the command line."""

import json
from pathlib import Path

from mnemon import sync
from tests.agents.samples import NEWEST, save
from tests.cli.conftest import Ask, Run

AGENT = "OrderGPT-1f2e3d4c"


def test_an_agent_of_autogpts_comes_in_and_goes_out(run: Run, ask: Ask, folder: Path) -> None:
    save(folder / "agent", NEWEST)
    (folder / "agent" / "workspace").mkdir()
    (folder / "agent" / "workspace" / "orders.csv").write_text("1,2\n")

    done = run("agents", "import", "agent")
    assert (done.exit_code, done.stdout) == (0, f"{AGENT}  4 cycles\n")
    assert ask("agents", "export", AGENT) == NEWEST
    assert json.loads(run("agents", "export", AGENT).stdout) == NEWEST
    again = run("agents", "import", "agent")
    assert (again.exit_code, "exists already" in again.stderr) == (1, True)
    twin = ask("agents", "import", "agent/state.json", "--id", "twin", "-n", "project:a", "--workspace", AGENT)
    assert (twin["id"], twin["namespace"], twin["workspace_id"]) == ("twin", "project:a", AGENT)


def test_what_is_no_state_file_is_bad_input(run: Run, folder: Path) -> None:
    (folder / "notes.json").write_text('{"a": 1}')
    failed = run("agents", "import", "notes.json")
    assert (failed.exit_code, "not a state file of AutoGPT" in failed.stderr) == (2, True)


def test_agents_and_their_cycles_are_shown(run: Run, ask: Ask, folder: Path) -> None:
    run("agents", "import", str(save(folder / "agent", NEWEST)))
    run("agents", "import", str(save(folder / "agent", NEWEST)), "--id", "twin", "-n", "project:a")

    assert [each["id"] for each in ask("agents", "list")] == [AGENT, "twin"]
    assert [each["id"] for each in ask("agents", "list", "-n", "project")] == ["twin"]
    limited = run("agents", "list", "--limit", "1")
    assert limited.stdout.splitlines()[1].split() == [AGENT, "4", f"app:agents:{AGENT}", "OrderGPT"]
    assert "there are more" in limited.stderr
    assert "there are no agents" in run("agents", "list", "-n", "user:nobody").stderr

    assert ask("agents", "show", "twin")["directives"]["task"] == "Write report.md about orders.csv"
    shown = run("agents", "show", "twin").stdout
    assert "a clerk who counts orders" in shown
    assert "constraints: Only use the commands listed below" in shown
    missing = run("agents", "show", "nobody")
    assert (missing.exit_code, "no agent 'nobody'" in missing.stderr) == (1, True)

    told = run("agents", "cycles", AGENT).stdout.splitlines()
    assert told[1] == "1      success               Listed the workspace: orders.csv."
    assert "read_file(filename='a'), read_file(filename='b') -> failed, No such file: a" in told[2]
    assert "web_search(query='orders') -> interrupted, Stay with the file" in told[3]
    assert told[4] == "4      proposed              read_file(filename='orders.csv')"
    assert [each["number"] for each in ask("agents", "cycles", AGENT, "--last", "2", "--before", "4")] == [2, 3]
    assert ask("agents", "cycles", AGENT, "--session", "s1") == []
    assert "there are no cycles" in run("agents", "cycles", AGENT, "--session", "s1").stderr


def test_an_agent_is_resumed_and_taken_back(run: Run, ask: Ask) -> None:
    with sync.open("sqlite:///mnemon.db", embedder="none") as memory:
        memory.workspaces.create("w1")
        memory.agents.create("a1", name="Scout", workspace_id="w1")
        for number in (1, 2):
            memory.agents.capture_proposal("a1", {"thoughts": f"step {number}"})
            memory.workspaces.write("w1", "page", str(number))
            memory.agents.succeed("a1", number, number)
            memory.agents.record_memory("a1", f"insight {number}")
        memory.agents.capture_proposal("a1", {"thoughts": "step 3"})

    shown = run("agents", "resume", "a1")
    assert shown.stdout.splitlines()[-1] == "3      proposed  step 3"
    assert (
        "cycle 3 waits for its result; the next cycle is 4; the workspace before the last is snapshot 3" in shown.stderr
    )
    stand = ask("agents", "resume", "a1", "--recent", "1")
    assert (stand["pending"]["number"], stand["last"]["number"], stand["next_cycle"]) == (3, 2, 4)
    assert len(stand["recent"]) == 1

    back = ask("agents", "rewind", "a1", "1", "--workspace", "--forget")
    assert (back["pending"], back["last"]["number"], back["next_cycle"]) == (None, 1, 4)
    with sync.open("sqlite:///mnemon.db", embedder="none") as memory:
        assert memory.workspaces.read("w1", "page") == b"1"
        assert [each.value for each in memory.memories.search_memories("app:agents")] == ["insight 1"]
    told = run("agents", "cycles", "a1", "--undone").stdout.splitlines()
    assert [line.split()[1:3] for line in told[1:]] == [
        ["success", "step"],
        ["success,", "undone"],
        ["proposed,", "undone"],
    ]
    assert "nothing is pending" in run("agents", "rewind", "a1", "0").stderr
    failed = run("agents", "rewind", "a1", "2")
    assert (failed.exit_code, "was undone" in failed.stderr) == (1, True)
