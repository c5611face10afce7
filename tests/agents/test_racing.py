"""Several processes after the same agent's next cycle: one gets it, the others are told so, and none is lost."""

import subprocess
import sys
from pathlib import Path

import pytest

from mnemon import sync

ROOT = Path(__file__).parents[2]
RACERS, TURNS = 3, 60


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path}/agent.db"


def test_each_cycle_belongs_to_one_process(url: str) -> None:
    with sync.open(url, background=False) as memory:
        memory.agents.create("racer", name="Racer")
    command = [sys.executable, "-m", "tests.agents.racing", url]
    names = [f"p{number}" for number in range(RACERS)]
    children = [
        subprocess.Popen([*command, name, str(TURNS)], cwd=ROOT, stdout=subprocess.PIPE, text=True) for name in names
    ]
    said = {name: child.communicate(timeout=120)[0].split() for name, child in zip(names, children, strict=True)}
    assert [child.returncode for child in children] == [0] * RACERS

    with sync.open(url, background=False) as memory:
        cycles = memory.agents.cycles("racer", last=1000)
    assert [cycle.number for cycle in cycles] == list(range(1, TURNS + 1))
    for cycle in cycles:
        assert cycle.result == {"status": "success", "outputs": cycle.proposal["by"]}
    own = {name: [str(cycle.number) for cycle in cycles if cycle.proposal["by"] == name] for name in names}
    assert said == own
