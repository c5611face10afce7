"""The benchmarks run, and every measure has numbers; how large they are is nobody's test."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
EMBEDDED = {
    "sessions": ["append_short", "append_medium", "append_long", "last_events", "whole_session", "append_concurrent",
                 "append_growth"],
    "memories": [*(f"{name}_{size}" for size in ("small", "large") for name in ("add", "get", "update", "search")),
                 "search_all"],
    "feed": ["feed_in_process", "feed_across"],
    "startup": ["import", "open_first", "open_again"],
}  # fmt: skip
POSTGRES = ["append", "last_events", "add", "get", "update", "search", "append_concurrent", "feed"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


@dataclass(frozen=True, slots=True)
class Run:
    """What a short run printed and left behind."""

    folder: Path
    printed: str
    measures: dict[str, dict[str, Any]]


def short_run(folder: Path, *suites: str) -> Run:
    path = folder / "results.json"
    done = run(*suites, "--quick", "--repeat", "1", "--folder", str(folder), "--json", str(path))
    assert done.returncode == 0, done.stderr
    measures = json.loads(path.read_text("utf-8"))["measures"]
    return Run(folder, done.stdout, {measure["id"]: measure for measure in measures})


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return short_run(tmp_path_factory.mktemp("benchmarks"), *EMBEDDED)


def assert_positive(measure: dict[str, Any]) -> None:
    figures = measure["figures"]
    assert {"async", "floor"} <= figures.keys()
    assert all(figures[name][what] > 0 for name in figures for what in ("cost_us", "p50_us", "operations_per_second"))
    assert measure["ratios"]["async"] > 0


def test_every_embedded_measure_has_numbers(embedded: Run) -> None:
    assert list(embedded.measures) == [name for names in EMBEDDED.values() for name in names]
    for measure in embedded.measures.values():
        assert_positive(measure)


def test_the_table_says_what_was_to_be_reached(embedded: Run) -> None:
    assert "import mnemon" in embedded.printed
    assert "≤ 150 ms" in embedded.printed
    assert str(embedded.folder / "results.json") in embedded.printed


def test_nothing_but_the_results_is_left_behind(embedded: Run) -> None:
    assert [path.name for path in embedded.folder.iterdir()] == ["results.json"]


@pytest.mark.servers
def test_every_measure_on_postgres_has_numbers(tmp_path: Path) -> None:
    found = short_run(tmp_path, "postgres").measures
    assert list(found) == [f"postgres_{name}" for name in POSTGRES]
    for measure in found.values():
        assert_positive(measure)


def test_a_profile_shows_functions_and_statements(tmp_path: Path) -> None:
    done = run("profile", "append", "--quick", "--folder", str(tmp_path))
    assert "INSERT INTO events" in done.stdout
    assert "append_event" in done.stdout


@pytest.mark.parametrize("arguments", [["unknown"], ["--repeat", "0"]])
def test_what_is_not_understood_is_refused(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage: python -m benchmarks" in done.stderr
