"""Working memory from the command line: buffers and scratchpads."""

import json
from pathlib import Path

import pytest

from mnemon import sync
from tests.cli.conftest import Ask, Run


@pytest.fixture(autouse=True)
def _session(folder: Path) -> None:
    with sync.open(background=False) as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")


def test_a_buffer_is_filled_and_read(run: Run, ask: Ask, folder: Path) -> None:
    assert run("working", "append", "s1", "one", "two").stdout == "appended 2, the last is item 2\n"
    [added] = ask("working", "append", "s1", "--values", '{"text": "three\\u001b[2J"}', "--ttl", "60", "--actor", "bot")
    assert (added["sequence"], added["created_by"], added["value"]) == (3, "bot", {"text": "three\x1b[2J"})
    assert added["expires_at"]
    (folder / "steps.jsonl").write_text("1\n\n[2]\n")
    assert len(ask("working", "append", "s1", "--file", "steps.jsonl", "--values", "-b", "steps")) == 2
    assert run("working", "append", "s1", "-f", "-", input="\n").stdout == "nothing to append\n"

    shown = run("working", "recent", "s1", "--last", "2")
    assert [line.split(maxsplit=2)[0::2] for line in shown.stdout.splitlines()[1:]] == [
        ["2", "two"],
        ["3", "bot  three [2J"],
    ]
    assert [item["value"] for item in ask("working", "recent", "s1", "--budget", "1000", "-b", "steps")] == [1, [2]]
    listed = run("working", "buffers", "s1").stdout.splitlines()
    assert [line.split()[-1] for line in listed] == ["buffer", "conversation", "steps"]
    assert [each["items"] for each in ask("working", "buffers", "s1")] == [3, 2]


def test_a_scratchpad_is_set_and_deleted(run: Run, ask: Ask) -> None:
    assert run("working", "pads", "set", "s1", "plan", '{"step": 1}').stdout == "plan  version 1\n"
    assert json.loads(run("working", "pads", "get", "s1", "plan").stdout) == {"step": 1}
    options = ("--text", "--ttl", "60", "--expected-version", "1", "--actor", "bot")
    pad = ask("working", "pads", "set", "s1", "plan", "a text", *options)
    assert (pad["version"], pad["value"], pad["updated_by"]) == (2, "a text", "bot")
    late = run("working", "pads", "set", "s1", "plan", "3", "--expected-version", "1")
    assert (late.exit_code, "is version 2, not version 1" in late.stderr) == (1, True)
    run("working", "pads", "set", "s1", "other", "1")
    first = ask("working", "pads", "list", "s1", "--limit", "1")
    assert [each["name"] for each in first["scratchpads"]] == ["other"]
    shown = run("working", "pads", "list", "s1", "--cursor", first["next_cursor"]).stdout.splitlines()
    assert shown[1].split() == ["plan", "2", "bot", "a", "text"]
    assert "there are more: --cursor" in run("working", "pads", "list", "s1", "--limit", "1").stderr

    assert ask("working", "pads", "get", "s1", "plan")["version"] == 2
    assert run("working", "pads", "delete", "s1", "plan", "--expected-version", "2").stdout == "deleted\n"
    assert ask("working", "pads", "delete", "s1", "plan") == {"deleted": False}
    for command in ("get", "delete"):
        gone = run("working", "pads", command, "s1", "plan")
        assert (gone.exit_code, "has no scratchpad 'plan'" in gone.stderr) == (1, True)


def test_changes_are_followed(run: Run) -> None:
    run("working", "append", "s1", "one")
    run("working", "pads", "set", "s1", "plan", "1")
    shown = run("working", "follow", "s1", "--after", "0", "--count", "2").stdout.splitlines()
    assert [line.split(maxsplit=1)[1] for line in shown] == ["append buffer conversation", "set scratchpad plan"]
    told = run("working", "follow", "s1", "--after", "0", "--count", "2", "--json").stdout.splitlines()
    assert [json.loads(line)["operation"] for line in told] == ["append", "set"]


def test_what_cannot_be_is_refused(run: Run) -> None:
    assert run("working", "recent", "nobody").exit_code == 1
    assert run("working", "append", "s1").exit_code == 2
    assert run("working", "append", "s1", "one", "--file", "-").exit_code == 2
    assert "is not JSON" in run("working", "append", "s1", "{", "--values").stderr
    assert run("working", "pads", "set", "s1", "plan", "{").exit_code == 2
    assert run("working", "recent", "s1", "--last", "0").exit_code == 2
