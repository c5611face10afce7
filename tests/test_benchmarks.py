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
    "recall": [name for size in (300, 1000)
               for name in (f"recall_{size}_namespace", f"recall_{size}_all", f"remember_{size}")],
    "feed": ["feed_in_process", "feed_across"],
    "startup": ["import", "open_first", "open_again"],
}  # fmt: skip
POSTGRES = ["append", "last_events", "add", "get", "update", "search", "append_concurrent", "feed"]


def run(*arguments: str, program: str = "benchmarks") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", program, *arguments]
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


def vector_run(folder: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    path = folder / "vectors.json"
    given = ["--quick", "--sizes", "1000", "--dimension", "64", "--texts", "400", "--json", str(path), *arguments]
    done = run(*given, "--folder", str(folder), program="benchmarks.vectors")
    assert done.returncode == 0, done.stderr
    return json.loads(path.read_text("utf-8")), done.stdout


def assert_exact_and_timed(found: dict[str, Any], drivers: dict[str, list[str]]) -> None:
    wanted = {
        f"{kind}_1000_{scope}_{driver}" for kind in found_kinds(found) for scope in ("all", "1%") for driver in drivers
    }
    assert {measure["id"] for measure in found["measures"]} == wanted
    for measure in found["measures"]:
        assert measure["recall_10"] >= 0.98
        assert all(measure[name] > 0 for name in ("p50_us", "p99_us", "numpy_p50_us", "ratio"))
        assert all(measure[name] > 0 for name in drivers[measure["driver"]])


def found_kinds(found: dict[str, Any]) -> set[str]:
    return {measure["data"] for measure in found["measures"]}


def test_vectors_are_measured_beside_numpy(tmp_path: Path) -> None:
    picture = tmp_path / "vectors.png"
    found, printed = vector_run(tmp_path, "--plot", str(picture))
    assert found_kinds(found) == {"sentences", "noise"}
    assert_exact_and_timed(found, {"embedded": ["insert_per_second", "disk_bytes"], "bare": []})
    assert found["text"]["ratios"].keys() == {"common", "mixed"}
    assert found["text"]["ratios"]["common"] > 0
    assert "≤ 2 ×, recall ≥ 0.99" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"vectors.json", "vectors.png"}


@pytest.mark.servers
def test_vectors_are_measured_on_every_server(tmp_path: Path) -> None:
    servers = ["pgvector", "qdrant", "weaviate", "chroma"]
    found, _ = vector_run(tmp_path, "--data", "sentences", "--drivers", *servers)
    assert_exact_and_timed(found, {name: ["insert_per_second", "disk_bytes"] for name in servers})


def test_a_size_with_too_few_in_a_namespace_is_refused() -> None:
    done = run("--sizes", "900", program="benchmarks.vectors")
    assert done.returncode == 2
    assert "at least 1000" in done.stderr


def test_nothing_is_missing_or_wrong_while_the_embedder_changes(tmp_path: Path) -> None:
    path = tmp_path / "reembed.json"
    done = run("--quick", "--folder", str(tmp_path), "--json", str(path), program="benchmarks.reembed")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(path.read_text("utf-8"))
    faults = [found[name] for name in ("missing", "wrong", "displaced", "unembedded")]
    assert faults == [0, 0, 0, 0], found["examples"]
    assert found["memories_per_second"] > 0
    assert found["written"]["add"] > 0
    assert found["meanings"] > 0
    assert all(found["recall"][phase]["count"] > 0 for phase in ("before", "during", "after"))
    assert [path.name for path in tmp_path.iterdir()] == ["reembed.json"]


def test_a_profile_shows_functions_and_statements(tmp_path: Path) -> None:
    done = run("profile", "append", "--quick", "--folder", str(tmp_path))
    assert "INSERT INTO events" in done.stdout
    assert "append_event" in done.stdout


@pytest.mark.parametrize("arguments", [["unknown"], ["--repeat", "0"]])
def test_what_is_not_understood_is_refused(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage: python -m benchmarks" in done.stderr


def test_documents_are_embedded_only_where_they_changed() -> None:
    done = run("docs", "--count", "30", "--share", "0.1", program="benchmarks.documents")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("only what changed was embedded\n")
    assert run("nowhere", program="benchmarks.documents").returncode == 2


def test_snapshots_are_measured_by_the_number_of_files(tmp_path: Path) -> None:
    path = tmp_path / "workspaces.json"
    done = run("--quick", "--folder", str(tmp_path), "--json", str(path), program="benchmarks.workspaces")
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text("utf-8"))
    assert found["surplus"] == 0
    for step in ("write", "snapshot", "diff", "restore"):
        assert all(each > 0 for each in found["microseconds"][step].values())
    assert found["transfers"]["seconds"].keys() >= {"import", "export", "plain copy", "copy, hashed and durable"}
    assert [each.name for each in tmp_path.iterdir()] == ["workspaces.json"]


def test_artifacts_are_measured_beside_plain_copies(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    told = ("--quick", "--rounds", "1", "--folder", str(tmp_path), "--json", str(path))
    done = run(*told, program="benchmarks.artifacts")
    assert done.returncode == 0, done.stderr
    for measure in json.loads(path.read_text("utf-8"))["measures"]:
        assert set(measure["ratios"]) == {"save / copy", "save / durable copy", "read / plain read"}
        assert all(value > 0 for value in (*measure["ratios"].values(), *measure["mb_per_second"].values()))
    assert list(tmp_path.iterdir()) == [path]
