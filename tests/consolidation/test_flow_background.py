"""The flow by itself: on a thread of an open memory, and a worker that nothing ends but being stopped."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemon import FlowReport, InvalidInput, StoreClosed, StoreUnavailable, sync
from mnemon.consolidation import worker as module
from mnemon.consolidation.worker import FlowWorker

PATIENCE = 30.0


def wait_for(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def consolidators() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "mnemon-consolidator"]


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemon.assembly._FLOW_DELAY", 0.01)
    monkeypatch.setattr("mnemon.assembly._FLOW_PAUSE", 0.01)


@pytest.mark.usefixtures("_quick")
def test_an_open_memory_consolidates_by_itself(tmp_path: Path) -> None:
    with sync.open(f"sqlite:///{tmp_path}/memory.db", embedder="none", consolidate_after=0.05) as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")
        memory.working.append("s1", [{"role": "user", "text": "I live in Bergen."}])
        [fact] = wait_for(lambda: memory.memories.search_memories("user:alice:facts"))
        assert fact.value == "alice lives in Bergen."
        memory.store_episode(["The end."], namespace="user:alice")
        wait_for(lambda: memory.episodes.counts()["consolidated"] == 2)  # type: ignore[index]
    assert consolidators() == []


@pytest.mark.parametrize("off", [{"background": False}, {"consolidate_after": 0}, {"consolidate_after": None}])
def test_it_can_be_switched_off(tmp_path: Path, off: dict[str, Any]) -> None:
    with sync.open(f"sqlite:///{tmp_path}/memory.db", embedder="none", **off):
        assert consolidators() == []
    with sync.open(f"sqlite:///{tmp_path}/memory.db", embedder="none"):
        assert len(consolidators()) == 1


def test_a_memory_that_is_closed_at_once_was_not_slowed(tmp_path: Path) -> None:
    sync.open(f"sqlite:///{tmp_path}/memory.db", embedder="none").close()
    begun = time.monotonic()
    sync.open(f"sqlite:///{tmp_path}/memory.db", embedder="none").close()
    assert time.monotonic() - begun < 0.9  # it would have waited for a second before its first look


def working(*turns: FlowReport | Exception, **options: Any) -> tuple[FlowWorker, list[FlowReport]]:
    """A worker whose turns come to this, and what it told; after the last it stops."""
    left, told = list(turns), list[FlowReport]()

    def turn() -> FlowReport:
        if not left:
            worker.stop()
            return FlowReport()
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    worker = FlowWorker(turn, 0.01, told=told.append, **options)
    return worker, told


def test_a_worker_goes_on_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.001)
    done = FlowReport(rounds=1, summaries=1)
    worker, told = working(StoreUnavailable("down"), ZeroDivisionError(), done, FlowReport(), done)
    worker.run()
    assert [report.summaries for report in told] == [1, 0, 1, 0]


def test_a_worker_ends_with_its_store_or_with_nonsense() -> None:
    worker, told = working(StoreClosed("closed"), FlowReport(rounds=1))
    worker.run()
    assert told == []
    with pytest.raises(InvalidInput):
        working(InvalidInput("nonsense"))[0].run()
    with pytest.raises(StoreUnavailable):
        working(StoreUnavailable("down"), patient=False)[0].run()


def test_closing_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    begun, release = threading.Event(), threading.Event()

    def turn() -> FlowReport:
        begun.set()
        release.wait(PATIENCE)
        return FlowReport()

    worker = FlowWorker(turn, 0.01)
    worker.start()
    assert begun.wait(PATIENCE)
    worker.stop()
    worker.join()
    assert len(consolidators()) == 1
    release.set()
    wait_for(lambda: not consolidators())
