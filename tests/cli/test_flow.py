"""Working memory into long-term memory from the command line: by hand, by a worker, and what failed."""

import json
import signal
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from mnemon import sync
from mnemon.cli import worker as module
from tests.cli.conftest import Ask, Run
from tests.cli.test_program import on_terminal

PLAIN = ("--set", "embedder=none")
QUIET: dict[str, Any] = {"embedder": "none", "background": False, "seal_interval": None}


@pytest.fixture(autouse=True)
def _said() -> None:
    with sync.open("sqlite:///mnemon.db", **QUIET) as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")
        memory.working.append("s1", [{"role": "user", "text": "I live in Bergen."}])


def test_by_hand_everything_that_waits_is_consolidated(run: Run, ask: Ask) -> None:
    result = run("consolidate", *PLAIN)
    assert (result.exit_code, result.stdout) == (
        0,
        "1 item drained, 1 episode made, 1 episode consolidated, 1 fact learnt\n",
    )
    assert run("consolidate", *PLAIN).stdout == "nothing waits\n"
    assert ask("consolidate", *PLAIN)["rounds"] == 0
    [hit] = ask("recall", "where does alice live?", "-n", "user:alice:facts", *PLAIN)
    assert hit["memory"]["value"] == "alice lives in Bergen."


def test_by_hand_a_terminal_shows_how_far_it_is() -> None:
    said, code = on_terminal("consolidate", *PLAIN)
    assert code == 0
    assert "consolidating [##############################] 100%  1 item drained" in said
    assert said.splitlines()[-1].endswith("1 episode consolidated, 1 fact learnt")


def test_by_hand_buffers_in_use_can_be_left_alone(ask: Ask) -> None:
    assert ask("consolidate", "--idle", "3600", *PLAIN)["drained"] == 0


@pytest.mark.parametrize(
    "options", [("--dry-run",), ("--strategy", "merge"), ("--type", "semantic"), ("user:alice", "--idle", "5")]
)
def test_options_of_the_one_are_not_for_the_other(run: Run, options: tuple[str, ...]) -> None:
    result = run("consolidate", *options, *PLAIN)
    assert (result.exit_code, "Usage:" in result.stderr) == (2, True)


def test_a_worker_ends_when_nothing_waits(run: Run) -> None:
    result = run("worker", "--once", "--idle", "0", *PLAIN)
    assert result.exit_code == 0
    [line] = result.stdout.splitlines()
    assert line.endswith("1 item drained, 1 episode made, 1 episode consolidated, 1 fact learnt")
    assert result.stderr == "at work\n"
    assert run("worker", "--once", "--idle", "0", *PLAIN).stdout == ""


def test_a_worker_says_it_in_json_and_waits_as_the_setting_says(run: Run) -> None:
    assert run("worker", "--once", *PLAIN, "--json").stdout == ""
    assert run("worker", "--once", *PLAIN, "--set", "consolidate_after=0").stdout == ""  # then it is 30 minutes
    result = run("worker", "--once", *PLAIN, "--set", "consolidate_after=0.001", "--json")
    told = json.loads(result.stdout)
    assert (told["drained"], told["facts"], told["usage"]["calls"]) == (1, 1, 0)


def test_a_worker_that_is_asked_nonsense_says_so(run: Run) -> None:
    result = run("worker", "--idle", "-5", *PLAIN)
    assert (result.exit_code, "idle is a number of seconds" in result.stderr) == (2, True)
    assert run("worker", "--once", "--url", "sqlite:///nowhere.db").exit_code == 3


def test_a_signal_ends_a_worker(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def tell(*_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(module, "tell", tell)
    before = signal.getsignal(signal.SIGTERM)
    result = run("worker", "--idle", "0", *PLAIN)
    assert (result.exit_code, "ending after this piece of work" in result.stderr) == (0, True)
    assert signal.getsignal(signal.SIGTERM) is before


def test_failed_episodes_are_seen_and_tried_again(run: Run, ask: Ask) -> None:
    assert "there are none" in run("episodes", "list").stderr
    run("consolidate", *PLAIN)
    [episode] = ask("episodes", "list", "--status", "consolidated")["episodes"]
    assert (episode["namespace"], episode["session_id"]) == ("user:alice", "s1")
    refused = run("episodes", "retry", str(episode["id"]))
    assert (refused.exit_code, "only a failed one" in refused.stderr) == (2, True)
    with sync.open("sqlite:///mnemon.db", **QUIET) as memory:
        memory.store_episode(["x"], namespace="user:bob", title="Too long")
        memory.store_episode(["y"], namespace="user:bob")
    for _ in range(5):  # it waits for longer each time, unless the clock is turned
        ask("consolidate", *PLAIN, "--set", "max_value_bytes=8")
        turn_the_clock()
    assert ask("episodes", "counts", "-n", "user:bob") == {"pending": 0, "working": 0, "consolidated": 0, "failed": 2}
    listed = run("episodes", "list", "--status", "failed", "--limit", "1")
    assert "failed  conversation  user:bob   y (1 entries)" in listed.stdout
    assert "5 attempts: ValueTooLarge: the memory's value is" in listed.stdout
    assert "there are more: --cursor" in listed.stderr
    assert "failed        2" in run("episodes", "counts").stdout
    assert ask("episodes", "retry", "--namespace", "user:bob") == {"retried": 2}
    assert run("episodes", "retry").stdout == "0 will be tried again\n"
    assert ask("consolidate", *PLAIN)["summaries"] == 2


def turn_the_clock() -> None:
    """Behind everybody's back."""
    with closing(sqlite3.connect("mnemon.db", isolation_level=None)) as connection:
        connection.execute("UPDATE episodes SET claimed_until = 0")
