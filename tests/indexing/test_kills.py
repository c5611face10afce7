"""Processes killed at random moments: everything is indexed once, and what was begun is finished by others."""

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import mnemon
import mnemon.sync
from mnemon.model import MemoryDraft
from mnemon.testing.embedders import FakeEmbedder
from tests.indexing.rig import rigged

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
pause = time.sleep


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database that processes can share."""
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:///{tmp_path}/memory.db"


def start(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.indexing.child", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill(child: "subprocess.Popen[str]") -> tuple[list[str], str]:
    """End a child as `kill -9` does; what it said and what it complained of."""
    child.kill()
    said, complaint = child.communicate()
    return said.splitlines(), complaint


def first_line(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline()


def test_killed_indexers_remember_every_event_once(url: str) -> None:
    """Given processes that append and index, two at a time, when they are killed at random moments, then the last one
    to open the database finds a memory for each event, each written once."""
    chance = random.Random(3)
    with mnemon.sync.open(url, embedder=FakeEmbedder(), background=False) as memory:
        memory.sessions.create_session("shared", "app", "alice")
    acknowledged = 0
    for turn in range(4):
        children = [start("converse", url, f"{turn}{name}") for name in "ab"]
        assert all(first_line(child) for child in children)
        pause(chance.uniform(0.1, 0.6))
        for child in children:
            said, complaint = kill(child)
            assert complaint == ""
            acknowledged += len(said) + 1

    with mnemon.sync.open(url, embedder=FakeEmbedder(), background=False) as memory:
        memory.settled(PATIENCE)
        events = memory.sessions.events("shared")
        assert len(events) >= acknowledged > 20
        found = [known for page in pages(memory) for known in page]
        assert {known.key: known.value for known in found} == {
            f"event-{event.sequence:010}": event.body["text"] for event in events
        }
        assert {known.version for known in found} == {1}
        written = [change for change in memory.changes() if change.entity == "memory" and change.operation != "embed"]
        assert len(written) == len(events)


def pages(memory: mnemon.sync.BlockingMemory) -> Any:
    page = memory.memories.search_memories("session:shared", limit=1000)
    yield page
    while page.next_cursor:
        page = memory.memories.search_memories("session:shared", limit=1000, cursor=page.next_cursor)
        yield page


async def test_a_change_of_the_model_that_is_killed_goes_on_where_it_was(
    url: str, request: pytest.FixtureRequest
) -> None:
    """Given memories, when the process that embeds them anew is killed again and again, then each goes on where the
    last one was, and in the end all have their vectors in the new space."""
    backend = "postgres" if url.startswith("postgres") else "sqlite-file"
    options = {"postgres_schema": request.getfixturevalue("postgres_schema")} if backend == "postgres" else {}
    count = 3000
    embedders = FakeEmbedder(), FakeEmbedder(48, name="other")
    async with rigged(backend, url, *embedders, clock=mnemon.SystemClock(), **options) as rig:
        for number in range(0, count, 100):
            drafts = [MemoryDraft(f"number {n}", "user:alice", f"k{n}") for n in range(number, number + 100)]
            await rig.memories.put_memories(drafts)
    chance = random.Random(5)
    left: list[int] = []
    for _ in range(3):
        child = start("reembed", url)
        done, total = 0, 0
        while not done:  # it may have to wait until nobody is thought to be at it
            done, total = map(int, first_line(child).split())
        left.append(total)
        pause(chance.uniform(0.0, 0.1))
        _, complaint = kill(child)
        assert complaint == ""
        assert done < total

    assert left == sorted(left, reverse=True)
    assert left[0] == count > left[-1]  # none begins at the beginning
    child = start("reembed", url)
    _, complaint = child.communicate(timeout=PATIENCE)
    assert (child.returncode, complaint) == (0, "")
    async with rigged(backend, url, *reversed(embedders), clock=mnemon.SystemClock(), **options) as rig:
        rows = await rig.peek(
            "SELECT model, status, COUNT(memory_id) FROM vector_spaces JOIN memory_vectors ON space_id = id "
            "GROUP BY model, status ORDER BY model"
        )
        assert [tuple(row) for row in rows] == [("fake", "retired", count), ("other", "active", count)]
        assert await rig.near("number 1234", 1) == ["k1234"]
