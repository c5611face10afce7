"""Retention from the command line: plan, apply, report, restore."""

import re
import sqlite3
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from mnemon.cli.retention import spread, told_size
from mnemon.model import GrowthSample
from tests.cli.conftest import Ask, Run

PLAIN = ("--set", "embedder=none")
STRICT = ("--set", 'retention=[{"name": "few", "namespace": "user:ann", "max_size": 30}]')


@pytest.fixture(autouse=True)
def _two(run: Run) -> None:
    for key, text in (("note-1", "Ann lives in Bergen."), ("note-2", "Ann now lives in Oslo.")):
        assert run("remember", text, "--namespace", "user:ann", "--key", key, *PLAIN).exit_code == 0


def test_what_is_too_much_goes_into_an_archive_and_comes_back(run: Run, ask: Ask) -> None:
    planned = run("retention", "plan", *STRICT)
    assert planned.exit_code == 0, planned.output
    assert "planned  few     size    1         user:ann/note-1" in planned.stdout
    assert planned.stdout.splitlines()[-1].startswith("2 memories: 1 planned, ")
    assert ask("retention", "apply", "--dry-run", *STRICT)["applied"] == 0

    refused = run("retention", "apply", *STRICT)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "user:ann/note-1" in refused.stderr
    assert "remove 1 memory, or old versions, with 24 bytes: there is no terminal" in refused.stderr
    done = ask("retention", "apply", "--yes", "--namespace", "user:ann", *STRICT)
    assert (done["applied"], len(done["archives"]), done["is_dry_run"]) == (1, 1, False)
    assert run("retention", "plan", *STRICT).stdout.startswith("1 memory: 0 planned")

    report = ask("retention", "report")
    [archive] = report["archives"]
    assert (archive["memories"], archive["policy"], report["is_alarming"]) == (1, "few", False)
    shown = run("retention", "report", *STRICT).stdout
    assert re.search(r"^\d+ bytes +1 +1 +0 +0 +few$", shown, re.MULTILINE)
    assert re.search(r"^\d{4}-\d\d-\d\d +\S+ [kM]B +#{40}$", shown, re.MULTILINE)
    assert "user:ann" in shown
    assert "policies last applied: never" in shown
    assert ask("retention", "report")["applied_at"] is None

    restored = run("retention", "restore", str(archive["id"]))
    assert restored.stdout == "1 memory and 1 version restored, 0 left out\n"
    again = run("retention", "restore", str(archive["id"]))
    assert "left out, as its place is taken: user:ann/note-1" in again.stderr
    assert run("retention", "discard", str(archive["id"])).exit_code == 2
    assert run("retention", "discard", str(archive["id"]), "--yes").stdout == f"discarded archive {archive['id']}\n"
    assert ask("retention", "report")["archives"] == []
    assert "Bergen" in run("recall", "Bergen", "--namespace", "user:ann").stdout


def test_what_cannot_be_is_refused(run: Run) -> None:
    assert run("retention", "restore", "7").exit_code == 1
    assert run("retention", "plan", "--namespace", "nowhere").exit_code == 2
    assert run("retention", "plan", "--set", 'retention=[{"name": "x", "days": 3}]').exit_code == 2


def test_what_is_alarming_is_told(run: Run, ask: Ask) -> None:
    assert run("retention", "apply").exit_code == 0  # there is nothing to ask about
    with sqlite3.connect("mnemon.db") as database:
        database.execute("UPDATE growth SET bytes = 1")
    database.close()
    alarmed = run("retention", "apply", "--set", "growth_alert=1000")
    assert "more than growth_alert allows" in alarmed.stderr
    shown = run("retention", "report", "--set", "growth_alert=1000")
    assert "it grows more quickly than growth_alert allows, which is 1.0 kB in a week" in shown.stderr
    assert re.search(r"policies last applied: \d{4}-", shown.stdout)
    assert ask("retention", "apply", "--yes")["growth"]["samples"]


def test_sizes_and_days_as_people_read_them() -> None:
    assert [told_size(size) for size in (0, 999, -1500, 2_500_000, 3 * 10**9, 4 * 10**12)] == [
        "0 bytes", "999 bytes", "-1.5 kB", "2.5 MB", "3.0 GB", "4.0 TB",
    ]  # fmt: skip
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    samples = [GrowthSample(begin + timedelta(days=day), day) for day in range(200)]
    few, many = spread(samples[:10]), spread(samples)
    assert [each.size for each in few] == list(range(10))
    assert len(many) == 14
    assert {second.size - first.size for first, second in pairwise(many[:-1])} == {7}
