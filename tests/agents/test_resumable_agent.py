"""The example's agent, killed at every point and at random: it finishes, and does nothing twice."""

import os
import random
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "resumable_agent.py"
POINTS = ("proposed", "written", "saved", "remembered", "finished")
PATIENCE = 120.0  # seconds
SEED = 7
KILLS = 12  # at random, at the most: it may finish before


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("MNEMON_EMBEDDER", "none")
    monkeypatch.setenv("MNEMON_CONTENT_URL", f"file://{tmp_path}/contents")
    if request.param == "postgresql":
        yield request.getfixturevalue("postgres_url")
    else:
        yield f"sqlite:///{tmp_path}/agent.db"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def start(url: str, **environment: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(EXAMPLE), "work", url]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env={**os.environ, **environment}, stdout=pipe, stderr=pipe, text=True)


def run(url: str, **environment: str) -> tuple[int, str]:
    """The exit code of a run, and what it said."""
    with start(url, **environment) as child:
        said, complaint = child.communicate(timeout=PATIENCE)
    assert complaint == ""
    return child.returncode, said


def test_it_goes_on_wherever_it_was_killed(url: str, example: dict[str, Any]) -> None:
    last = example["CHAPTERS"] + 1
    for cycle in range(1, last + 1):
        for point in POINTS if url.startswith("sqlite") and cycle in (1, last) else POINTS[1:3]:
            code, said = run(url, KILL_AT=f"{cycle}:{point}")
            assert code == -signal.SIGKILL, said
            assert f"begins at cycle {cycle}" in said or cycle > 1
    code, said = run(url)
    assert (code, "has finished" in said) == (0, True)
    example["prove"](url)
    assert run(url) == (0, "  begins at cycle 6, with nothing pending\n  has finished, after cycle 5\n")
    example["prove"](url)


def test_it_goes_on_after_kills_at_random(url: str, example: dict[str, Any]) -> None:
    chance = random.Random(SEED)
    codes: list[int] = []
    for _ in range(KILLS):
        with start(url, PACE="0.03") as child:
            try:
                assert child.stdout is not None
                child.stdout.readline()  # it has begun, or ended
                time.sleep(chance.uniform(0, 0.3))
            finally:
                child.kill()
        codes.append(child.returncode)
        if child.returncode == 0:
            break
    assert codes.count(-signal.SIGKILL) >= 3
    code, said = run(url)
    assert (code, "has finished" in said) == (0, True)
    example["prove"](url)


def test_a_proof_fails_if_a_step_happened_twice(url: str, example: dict[str, Any]) -> None:
    assert run(url)[0] == 0
    with example["sync"].open(url) as memory:
        memory.artifacts.save(example["SESSION"], "report.md", "again", metadata={"cycle": 5})
    with pytest.raises((AssertionError, ValueError)):
        example["prove"](url)
