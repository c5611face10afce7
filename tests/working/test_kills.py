"""Redis killed and started again while processes write, read and drain, over each database."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from mnemon import sync
from tests.servers import Server
from tests.working.busy import PROCESSES, Board

ROOT = Path(__file__).parents[2]
KILLS = 3


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path}/m.db"


def test_nothing_acknowledged_is_lost_or_doubled_and_nothing_old_is_read(
    url: str, valkey: Server, client: "redis.Redis", tmp_path: Path
) -> None:
    with sync.open(url, background=False) as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")
    Board.make(tmp_path / "board")
    command = [sys.executable, "-m", "tests.working.busy", url, valkey.url, str(tmp_path / "board")]
    children = [
        subprocess.Popen(
            [*command, str(number)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(PROCESSES)
    ]  # fmt: skip
    wait_for_copies(client)
    for number in range(KILLS):
        valkey.kill()
        time.sleep(0.3)
        valkey.start()
        wait_for_copies(client)
        time.sleep(0.1 * number)
    said = [line.split() for child in children for line in child.communicate(timeout=60)[0].splitlines()]
    assert [child.returncode for child in children] == [0] * PROCESSES

    with sync.open(url, background=False) as memory:
        left = [item.value for item in memory.working.recent("s1", last=10_000)]
    appended = [value for what, value in said if what == "appended"]
    drained = [value for what, value in said if what == "drained"]
    assert len(drained) > 20
    assert sorted(drained + left) == sorted(appended)


def wait_for_copies(client: "redis.Redis") -> None:
    """Until every process uses Redis again: its pauses grow with each outage."""
    deadline = time.monotonic() + 20
    while len(client.keys("mnemon:helpdesk:s1:head:*")) < 2 * PROCESSES:
        assert time.monotonic() < deadline, "Redis is not used"
        time.sleep(0.02)
