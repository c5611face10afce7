"""Two copies of `mnemon worker`, killed at random moments: every item is consolidated exactly once."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from mnemon import EpisodeStatus, sync
from tests.robustness.behind import Database

SEED = 2030
KILLS = {"sqlite": 20, "postgresql": 5}
PORTION = {"sqlite": 20, "postgresql": 10}  # sessions that are filled before each kill
ITEMS = 25  # of each session
LEASE = 0.5
PATIENCE = 60.0
SETTINGS: dict[str, Any] = {"embedder": "none", "background": False, "seal_interval": None}


def fill(url: str, sessions: range) -> None:
    """Items that each have a number of their own; some state a fact, always the same one of their session."""
    with sync.open(url, **SETTINGS) as memory:
        for session in sessions:
            memory.sessions.create_session(f"s{session}", "app", f"user{session}")
            memory.working.append(f"s{session}", [item(session, number) for number in range(ITEMS)])


def item(session: int, number: int) -> dict[str, Any]:
    said = "I live in Oslo." if number % 10 == 0 else f"Parcel {number} went to street {number * 7 % 13}."
    return {"role": "user", "text": said, "number": session * ITEMS + number}


class Copy:
    """A worker, and the paper to which it writes what it does."""

    def __init__(self, url: str, paper: Path) -> None:
        options = ["--idle", "0", "--lease", str(LEASE), "--pause", "0.02"]
        quiet = [word for name in ("embedder=none", "background=false", "seal_interval=0") for word in ("--set", name)]
        command = [sys.executable, "-m", "mnemon", "worker", "--url", url, *options, *quiet]
        with paper.open("wb") as said:
            self._child = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        self._paper = paper

    @property
    def said(self) -> list[str]:
        assert self._child.poll() is None, self._paper.read_text()
        return self._paper.read_text().splitlines()

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal; the exit code, and all that it said."""
        self._child.send_signal(number)
        return self._child.wait(PATIENCE), self._paper.read_text()


@contextmanager
def copies(url: str, folder: Path, number: int) -> Iterator[tuple[list[Copy], Callable[[], Copy]]]:
    """Workers, and how to begin another; those that are in the list at the end are ended."""
    papers = (folder / f"worker-{place}.said" for place in range(1000))

    def begin() -> Copy:
        working.append(Copy(url, next(papers)))
        return working[-1]

    working: list[Copy] = []
    try:
        for _ in range(number):
            begin()
        yield working, begin
    finally:
        for copy in working:
            copy.end(signal.SIGKILL)


def wait_for(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return found


def kill_one(working: list[Copy], feed: Callable[[], None], chance: random.Random) -> None:
    """When all are ready, give them work, and kill one that is at it."""
    wait_for(lambda: all(copy.said for copy in working))
    before = {copy: len(copy.said) for copy in working}
    feed()
    victim = wait_for(lambda: next((copy for copy in working if len(copy.said) > before[copy]), None))
    time.sleep(chance.uniform(0, 0.1))
    working.remove(victim)
    code, said = victim.end(signal.SIGKILL)
    assert (code, "Traceback" in said) == (-signal.SIGKILL, False)


def finish(url: str) -> None:
    """Do what the killed ones have left, once their leases have run out."""
    with sync.open(url, **SETTINGS) as memory:

        def is_done() -> bool:
            memory.consolidation.flow(lease=LEASE)
            counts = memory.episodes.counts()
            return not counts[EpisodeStatus.PENDING] + counts[EpisodeStatus.WORKING]

        wait_for(is_done)
        time.sleep(LEASE)  # one may have been killed while it settled facts
        memory.consolidation.flow(lease=LEASE)
        assert memory.consolidation.flow().rounds == 0


def check(database: Database, sessions: int) -> None:
    bodies = [row[0] for row in database.query("SELECT body FROM episodes")]
    numbers = Counter(entry["value"]["number"] for body in bodies for entry in orjson.loads(body))
    assert numbers == Counter(range(sessions * ITEMS))  # each item is in exactly one episode
    assert database.query("SELECT COUNT(*) FROM working_items") == [(0,)]
    assert database.query("SELECT status, COUNT(*) FROM episodes GROUP BY status") == [("consolidated", sessions)]
    ids = [row[0] for row in database.query("SELECT id FROM episodes")]
    summaries = database.query("SELECT key, version FROM memory_entries WHERE namespace LIKE 'user:%:episodes'")
    assert Counter(summaries) == Counter((f"episode-{each}", 1) for each in ids)  # each has one, written once
    facts = database.query("SELECT namespace, version FROM memory_entries WHERE key LIKE 'fact-%'")
    assert Counter(facts) == Counter((f"user:user{number}:facts", 1) for number in range(sessions))
    assert database.query("SELECT COUNT(*) FROM memory_entries") == [(2 * sessions,)]
    told = database.query("SELECT entity_id, operation FROM journal WHERE entity = 'episode'")
    assert Counter(told) == Counter((str(each), operation) for each in ids for operation in ("store", "consolidate"))


def test_killed_workers_consolidate_every_item_exactly_once(database: Database, tmp_path: Path) -> None:
    kind, chance = database.url.partition(":")[0], random.Random(SEED)
    portion, kills = PORTION[kind], KILLS[kind]
    # given two workers
    with copies(database.url, tmp_path, 2) as (working, begin):
        # when one of them is killed while it works, and another is begun, again and again
        for kill in range(kills):
            sessions = range(kill * portion, (kill + 1) * portion)
            kill_one(working, lambda sessions=sessions: fill(database.url, sessions), chance)
            begin()
    finish(database.url)
    # then every item was consolidated exactly once, and some of them were begun by one that was killed
    check(database, kills * portion)
    [(cut_short,)] = database.query("SELECT COUNT(*) FROM episodes WHERE attempts > 1")
    assert cut_short
    database.check()


def test_a_signal_ends_a_worker_when_its_work_is_done(file: Database, tmp_path: Path) -> None:
    fill(file.url, range(30))
    with copies(file.url, tmp_path, 1) as (working, _):
        [worker] = working
        wait_for(lambda: len(worker.said) > 1)
        working.clear()
        code, said = worker.end(signal.SIGTERM)
    assert (code, "ending after this piece of work" in said, "Traceback" in said) == (0, True, False)
    assert file.query("SELECT COUNT(*) FROM episodes WHERE status = 'working'") == [(0,)]
    assert 0 < file.query("SELECT COUNT(*) FROM episodes WHERE status = 'consolidated'")[0][0] < 30
