"""Consolidating from the command line: plans, strategies, and reviews that a person decides."""

import pytest

from tests.cli.conftest import Ask, Run

PLAIN = ("--set", "embedder=none")


@pytest.fixture(autouse=True)
def _two(run: Run) -> None:
    for key, text in (("note-1", "Ann lives in Bergen."), ("note-2", "Ann now lives in Oslo.")):
        assert run("remember", text, "--namespace", "user:ann", "--key", key, *PLAIN).exit_code == 0


def test_a_dry_run_shows_what_would_be_done(run: Run, ask: Ask) -> None:
    result = run("consolidate", "user:ann", "--strategy", "latest_wins", "--dry-run")
    assert result.exit_code == 0
    assert "planned  note-2  note-1    Ann now lives in Oslo." in result.stdout
    assert result.stdout.splitlines()[-1] == "2 memories, 1 finding: 1 planned, 0 for review (latest_wins)"
    planned = ask("consolidate", "user:ann", "--strategy", "latest_wins", "--dry-run")
    assert (planned["is_dry_run"], planned["applied"], planned["steps"][0]["kept"]["key"]) == (True, 0, "note-2")
    done = ask("consolidate", "user:ann", "--strategy", "latest_wins")
    assert (done["applied"], done["steps"][0]["status"], done["usage"]["calls"]) == (1, "applied", 0)
    assert "0 findings" in run("consolidate", "user:ann").stdout


def test_without_a_language_model_it_says_so(run: Run) -> None:
    result = run("consolidate", "user:ann", "--type", "semantic")
    assert "the language model did not decide about 1: no language model is configured" in result.stderr
    assert result.stdout.splitlines()[-1] == "2 memories, 1 finding: 1 applied, 0 skipped, 0 for review (latest_wins)"


def test_what_is_only_suspected_is_told(run: Run, ask: Ask) -> None:
    fees = ("Late returns cost 50 cents per day.", "The late fee is 50 cents a day.")
    for at, text in enumerate(fees, 1):
        assert run("remember", text, "--namespace", "app:library", "--key", f"fee-{at}").exit_code == 0
    result = run("consolidate", "app:library", "--strategy", "latest_wins", "--dry-run")
    told, counted = result.stdout.splitlines()
    assert told.startswith("suspected: app:library/fee-1 and app:library/fee-2, near_duplicate (0.")
    assert counted == "2 memories, 0 findings: 0 planned, 0 for review, 1 suspected (latest_wins)"
    [suspected] = ask("consolidate", "app:library", "--strategy", "latest_wins")["suspected"]
    assert (suspected["certainty"], suspected["second"]["key"]) == ("suspected", "fee-2")
    result = run("consolidate", "app:library", "--strategy", "review")
    assert "to be decided: app:library/fee-1 and app:library/fee-2, near_duplicate (suspected)" in result.stdout


def test_a_person_decides(run: Run, ask: Ask) -> None:
    result = run("consolidate", "user:ann", "--strategy", "review")
    assert "to be decided: user:ann/note-1 and user:ann/note-2, superseded" in result.stdout
    listed = run("reviews", "list")
    assert "first: note-1: Ann lives in Bergen." in listed.stdout
    assert "second: note-2: Ann now lives in Oslo." in listed.stdout
    [review] = ask("reviews", "list", "--namespace", "user:ann")["reviews"]
    identifier = str(review["id"])

    assert run("reviews", "decide", identifier, "second").stdout == f"review {identifier}: applied\n"

    [hit] = ask("recall", "Bergen", "--namespace", "user:ann")
    assert hit["memory"]["key"] == "note-2"
    assert "there are none" in run("reviews", "list").stderr
    assert ask("reviews", "list", "--status", "all")["reviews"][0]["choice"] == "second"
    again = run("reviews", "decide", identifier, "first")
    assert (again.exit_code, again.stderr) == (1, f"Error: review {identifier} is applied already\n")


def test_a_person_may_write_what_both_become(run: Run, ask: Ask) -> None:
    ask("consolidate", "user:ann", "--strategy", "review")
    [review] = ask("reviews", "list", "--limit", "1")["reviews"]
    identifier = str(review["id"])
    assert run("reviews", "decide", identifier, "merge").exit_code == 2
    assert run("reviews", "decide", identifier, "first", "text").exit_code == 2
    decided = ask("reviews", "decide", identifier, "merge", "Ann moved from Bergen to Oslo.")
    assert (decided["status"], decided["choice"]) == ("applied", "merge")
    [hit] = ask("recall", "Bergen", "--namespace", "user:ann")
    assert hit["memory"]["value"] == "Ann moved from Bergen to Oslo."


def test_what_cannot_be_is_refused(run: Run) -> None:
    assert run("consolidate", "user:ann", "--strategy", "newest").exit_code == 2
    assert run("consolidate", "nowhere").exit_code == 2
    assert run("reviews", "decide", "77", "first").exit_code == 1
    assert run("reviews", "list", "--status", "closed").exit_code == 2
