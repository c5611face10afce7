"""The thread that keeps indexes in step: by itself, beside others, whatever fails, and until it is told to stop."""

import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mnemon.sync
from mnemon.clock import SystemClock
from mnemon.errors import StoreUnavailable
from mnemon.indexing.duties import Duty
from mnemon.indexing.worker import Worker
from mnemon.model import Space
from mnemon.ports import VectorMemory
from mnemon.testing import FaultyStore
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.suite import unchanged
from mnemon.testing.vector_fakes import FakeVectorMemory
from tests.indexing.rig import Rig, rigged

PATIENCE = 60.0
pause = time.sleep  # there is no event loop that could wait for something else


def eventually(happens: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline
        pause(0.01)


def indexers() -> int:
    return sum(thread.name == "mnemon-indexer" for thread in threading.enumerate())


# ------------------------------------------------------------------------------------------------ in an open memory


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:///{tmp_path}/memory.db"


@contextmanager
def opened(url: str, **settings: Any) -> Iterator[mnemon.sync.BlockingMemory]:
    options: dict[str, Any] = {"embedder": FakeEmbedder(), "seal_interval": None, **settings}
    with mnemon.sync.open(url, **options) as memory:
        yield memory


def keys(memory: mnemon.sync.BlockingMemory, prefix: str = "session:s1") -> list[str]:
    return [found.key for found in memory.memories.search_memories(prefix, limit=1000)]


def test_events_become_findable_by_themselves(url: str) -> None:
    with opened(url) as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")
        memory.sessions.append_event("s1", {"text": "I moved to Oslo"})
        eventually(lambda: keys(memory) == ["event-0000000001"])
        [hit] = memory.recall("Where is Oslo?", namespaces="session:s1")
        assert hit.memory.value == "I moved to Oslo"
    assert indexers() == 0


def test_a_store_that_comes_back_is_fed_by_itself(url: str) -> None:
    """Given a store that is down, when memories are written, then none of it fails; when it is back, it gets them."""
    fakes: dict[int, FakeVectorMemory] = {}

    def fake(space: Space) -> VectorMemory:
        return fakes.setdefault(space.id, FakeVectorMemory(space))

    with opened(url, vector_stores=[fake]) as memory:
        memory.memories.add_memory("user:alice", "a", "one")
        eventually(lambda: fakes and fakes[1].records)
        fakes[1].go_down()
        for number in range(20):
            memory.memories.add_memory("user:alice", f"k{number}", f"number {number}")
        pause(0.3)
        assert len(fakes[1].records) == 1
        fakes[1].heal()
        eventually(lambda: len(fakes[1].records) == 21)


def test_two_memories_on_one_database_do_everything_once(url: str) -> None:
    with opened(url) as first, opened(url) as second:
        assert indexers() == 2
        first.sessions.create_session("s1", "helpdesk", "alice")
        for number in range(100):
            (first, second)[number % 2].sessions.append_event("s1", {"text": f"number {number}"})
        eventually(lambda: len(keys(first)) == 100)
        changes = [change for change in first.changes() if change.entity == "memory"]
        assert len(changes) == 100
    assert indexers() == 0


def test_it_can_be_switched_off(url: str) -> None:
    with opened(url, background=False) as memory:
        assert indexers() == 0
        memory.sessions.create_session("s1", "helpdesk", "alice")
        memory.sessions.append_event("s1", {"text": "hello"})
        memory.settled()
        assert len(keys(memory)) == 1


def test_a_file_that_is_only_read_is_left_alone(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/memory.db", background=False) as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")
    with opened(f"sqlite:///{tmp_path}/memory.db?mode=ro") as memory:
        assert indexers() == 0


def test_closing_is_prompt_whatever_it_is_at(url: str) -> None:
    embedder = FakeEmbedder()
    with opened(url, embedder=embedder) as memory:
        memory.memories.add_memory("user:alice", "a", "one")
        embedder.fail(times=2**30)
        memory.memories.add_memory("user:alice", "b", "two")
        pause(0.5)  # it is in the middle of a pause before the next try
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert indexers() == 0


# ------------------------------------------------------------------------------------------------------- by itself


class Chore:
    """Something to do, as often as it is wanted, and with the errors that are wanted."""

    def __init__(self, name: str, *errors: Exception) -> None:
        self.name = name
        self.consumer = self
        self.outside = None
        self.errors = list(errors)
        self.left = 1
        self.tries: list[float] = []

    async def has_work(self) -> bool:
        return self.left > 0

    async def step(self) -> int:
        self.tries.append(time.monotonic())
        if self.errors:
            raise self.errors.pop(0)
        self.left -= 1
        return 1


@contextmanager
def working(store: Any, *chores: Any, delay: float = 0.0) -> Iterator[Worker]:
    async def duties() -> list[Duty]:
        return list(chores)

    worker = Worker(store, duties, delay)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()
        assert indexers() == 0


@pytest.fixture
async def rig(tmp_path: Path, embedder: FakeEmbedder) -> AsyncIterator[Rig]:
    """A blocking face, as the worker has."""
    async with rigged("sqlite-blocking", f"sqlite:///{tmp_path}/alone.db", embedder, clock=SystemClock()) as rig:
        yield rig


async def test_what_fails_is_tried_again_later_each_time_and_holds_up_nothing(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Chore("failing", *(StoreUnavailable("away") for _ in range(4)))
    other = Chore("other")
    with working(rig.store, failing, other):
        eventually(lambda: other.left == 0)
        assert len(failing.tries) < 4
        other.left = 1
        rig.store.wake()
        eventually(lambda: other.left == 0)
        eventually(lambda: failing.left == 0)

    pauses = [later - earlier for earlier, later in zip(failing.tries, failing.tries[1:], strict=False)]
    assert pauses[3] > 2 * pauses[0] > 0.05
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "failing failed and is tried again: away",
        "failing goes on",
    ]


async def test_an_error_that_nobody_thought_of_ends_nothing(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    chore = Chore("odd", ZeroDivisionError("a fault"))
    with working(rig.store, chore):
        eventually(lambda: chore.left == 0)
    [record] = [record for record in caplog.records if "odd failed" in record.getMessage()]
    assert record.exc_info is not None  # with where it happened, so that it can be mended


async def test_not_to_know_what_there_is_to_do_ends_nothing(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    chore = Chore("late")
    errors: list[Exception] = [StoreUnavailable("away"), ZeroDivisionError("a fault")]

    async def duties() -> list[Any]:
        if errors:
            raise errors.pop(0)
        return [chore]

    worker = Worker(rig.store, duties, 0.0)
    worker.start()
    try:
        eventually(lambda: chore.left == 0)
    finally:
        worker.stop()
    assert "the upkeep of indexes failed and is tried again: away" in caplog.text


async def test_a_wait_that_fails_is_only_a_wait(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemon.indexing.worker._PATIENCE", 0.05)
    faulty = FaultyStore(rig.store)
    faulty.fail("wait", StoreUnavailable("away"), times=2)
    chore = Chore("late")
    chore.left = 0
    with working(faulty, chore):
        eventually(lambda: faulty.calls["wait"] > 3)
        chore.left = 1
        rig.store.wake()
        eventually(lambda: chore.left == 0)


async def test_without_changes_nothing_is_written(rig: Rig) -> None:
    """Given a new database, when it is only opened, then its file is left as it is."""
    async with unchanged(rig.store):
        with working(rig.store, *(await rig.upkeep.duties())):
            pause(0.2)


async def test_a_burst_is_handled_together(rig: Rig) -> None:
    """Given a delay, when many events come within it, then they are one batch."""
    await rig.space()
    faulty = FaultyStore(rig.store)
    beside = rig.over(faulty)
    await rig.sessions.create_session("s1", "helpdesk", "alice")
    await rig.work()
    worker = Worker(faulty, beside.upkeep.duties, 0.5)
    worker.start()
    try:
        pause(0.1)
        for number in range(10):
            await rig.sessions.append_event("s1", {"text": f"number {number}"})
        deadline = time.monotonic() + PATIENCE
        while len(await rig.memories.search_memories("session:s1")) < 10:
            assert time.monotonic() < deadline
            pause(0.05)
        assert faulty.statements["take_lease"] <= 3  # once for the events, once for the memories, once for the store
    finally:
        worker.stop()


async def test_stopping_ends_a_pause_and_a_wait_at_once(rig: Rig) -> None:
    failing = Chore("failing", *(StoreUnavailable("away") for _ in range(99)))
    with working(rig.store, failing, delay=60):
        eventually(lambda: failing.tries)
        began = time.monotonic()
    assert time.monotonic() - began < 1
    idle = Chore("idle")
    idle.left = 0
    with working(rig.store, idle):
        pause(0.1)
        began = time.monotonic()
    assert time.monotonic() - began < 1


async def test_it_ends_with_the_store(rig: Rig) -> None:
    async def duties() -> list[Duty]:
        return await rig.upkeep.duties()

    worker = Worker(rig.store, duties, 0.0)
    worker.start()
    await rig.store.close()
    eventually(lambda: indexers() == 0)
    worker.stop()


async def test_it_makes_way_for_those_who_write(rig: Rig) -> None:
    """Given somebody who writes without a pause, when there is a lot to do, then most of the time is theirs."""

    class Slow(Chore):
        async def step(self) -> int:
            pause(0.02)
            return await super().step()

    slow = Slow("slow")
    slow.left = 10_000
    with working(rig.store, slow):
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            rig.store.wake()  # as a commit would
            pause(0.0005)
        while_busy = len(slow.tries)
        pause(1.5)
        while_idle = len(slow.tries) - while_busy
    assert while_idle > 1.5 * while_busy
