"""What goes on in the background: sealing, and keeping SQLite's log short."""

import asyncio
import logging
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

import mnemon
from mnemon import sync
from mnemon.errors import StoreBusy
from mnemon.housekeeping import Housekeeper, seldom

PATIENCE = 30.0


class Chore:
    """Counts how often it was done, and fails when told to."""

    def __init__(self) -> None:
        self.times = 0
        self.done = threading.Semaphore(0)
        self.failing = False

    def __call__(self) -> None:
        self.times += 1
        self.done.release()
        if self.failing:
            raise StoreBusy("the file is locked")


def test_chores_are_done_at_intervals() -> None:
    chore = Chore()
    keeper = Housekeeper([chore], 0.01)
    keeper.start()
    for _ in range(3):
        assert chore.done.acquire(timeout=PATIENCE)
    keeper.stop()


def test_some_are_done_less_often() -> None:
    chore = Chore()
    rare = seldom(chore, 0.05)
    rare()
    assert chore.times == 0, "it has just begun"
    time.sleep(0.05)
    for _ in range(3):
        rare()
    assert chore.times == 1


def test_what_has_expired_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemon.assembly._PRUNING", 0.02)
    with sync.open(f"sqlite:///{tmp_path}/m.db", seal_interval=0.02) as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")
        memory.working.append("s1", ["goes"], ttl=0.01)
        memory.working.append("s1", ["stays"])
        memory.working.set("s1", "plan", "goes", ttl=0.01)
        deadline = time.monotonic() + PATIENCE
        with closing(sqlite3.connect(tmp_path / "m.db")) as file:
            query = "SELECT (SELECT COUNT(*) FROM working_items), (SELECT COUNT(value) FROM scratchpads)"
            while file.execute(query).fetchone() != (1, 0):
                assert time.monotonic() < deadline
                time.sleep(0.01)


def test_urgent_chores_are_done_when_asked_for() -> None:
    chore, urgent = Chore(), Chore()
    keeper = Housekeeper([chore], None, [urgent])
    keeper.start()
    keeper.poke()
    assert urgent.done.acquire(timeout=PATIENCE)
    assert chore.times == 0
    keeper.stop()


def test_all_are_done_a_last_time_at_the_end() -> None:
    chore, urgent = Chore(), Chore()
    keeper = Housekeeper([chore], None, [urgent])
    keeper.start()
    keeper.stop()
    assert (chore.times, urgent.times) == (1, 1)


def test_a_chore_that_fails_is_tried_again_and_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    failing, other = Chore(), Chore()
    failing.failing = True
    keeper = Housekeeper([failing, other], 0.01)
    with caplog.at_level(logging.WARNING, "mnemon.housekeeping"):
        keeper.start()
        for _ in range(3):
            assert other.done.acquire(timeout=PATIENCE)
        keeper.stop()
    assert failing.times == other.times
    assert "the file is locked" in caplog.text


# ------------------------------------------------------------------------------------------------------- in a store


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path}/memory.db"


async def test_the_journal_is_sealed_in_the_background(url: str) -> None:
    async with mnemon.open(url, seal_interval=0.05) as memory:
        await memory.sessions.create_session("s1", "app", "alice")
        deadline = time.monotonic() + PATIENCE
        while (found := await memory.verify()).unsealed:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
        assert (found.sealed, found.intact) == (1, True)


def test_what_is_left_is_sealed_on_closing(url: str) -> None:
    with sync.open(url) as memory:
        memory.sessions.create_session("s1", "app", "alice")
    with sync.open(url, seal_interval=None) as memory:
        assert memory.verify().unsealed == 0


def test_sealing_can_be_switched_off(url: str) -> None:
    with sync.open(url, seal_interval=None) as memory:
        memory.sessions.create_session("s1", "app", "alice")
    with sync.open(url, seal_interval=None) as memory:
        assert memory.verify().sealed == 0


def test_several_that_seal_at_once_make_one_chain(url: str) -> None:
    def work(number: int) -> None:
        with sync.open(url, seal_interval=0.001) as memory:
            memory.sessions.create_session(f"s{number}", "app", "alice")
            for turn in range(40):
                memory.sessions.append_event(f"s{number}", {"n": turn})

    with sync.open(url):
        pass
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with sync.open(url, seal_interval=None) as memory:
        found = memory.verify()
        assert (found.intact, found.sealed, found.unsealed) == (True, 164, 0)


def test_the_log_of_sqlite_does_not_grow_for_ever(tmp_path: Path) -> None:
    # given a store that is written all the time
    log, longest = tmp_path / "memory.db-wal", 0
    with sync.open(f"sqlite:///{tmp_path}/memory.db") as memory:
        memory.sessions.create_session("s1", "app", "alice")
        for number in range(4000):
            memory.sessions.append_event("s1", {"n": number, "text": "x" * 1000})
            if number % 100 == 0:
                longest = max(longest, log.stat().st_size)
    # then its log stays a fraction of what went through it, and is gone in the end
    assert longest < 40 * 1024 * 1024
    assert not log.exists()


def test_a_store_opened_for_reading_keeps_no_house(tmp_path: Path) -> None:
    with sync.open(f"sqlite:///{tmp_path}/memory.db") as memory:
        memory.sessions.create_session("s1", "app", "alice")
    before = {thread.name for thread in threading.enumerate()}
    with sync.open(f"sqlite:///{tmp_path}/memory.db?mode=ro"):
        assert {thread.name for thread in threading.enumerate()} == before
