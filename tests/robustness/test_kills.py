"""Processes killed at random moments: what was acknowledged stays, and nothing is done twice."""

import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from mnemon import sync
from tests.robustness.behind import Database
from tests.robustness.children import (
    FACES,
    PATIENCE,
    consume_until_killed,
    end_all,
    note_handled,
    start,
    write_until_killed,
)

pytestmark = pytest.mark.unmeasured

SEED = 2024
KILLS = {"sqlite": 51, "postgresql": 12}  # of writers
WRITERS = 3  # at a time, with a consumer beside them
WORDY = 15  # acknowledgements of each, however slow the machine is


def kill_at_random(database: Database, folder: Path, kills: int) -> list[str]:
    """Start and kill writers and consumers, several at a time; every acknowledgement of the writers."""
    chance = random.Random(SEED)
    for group in range(kills // WRITERS):
        papers = [folder / f"{group}x{number}.said" for number in range(WRITERS + 1)]
        children = [start_one(database, paper, consuming=paper is papers[-1], chance=chance) for paper in papers]
        try:
            if group % 5:  # in every fifth group they may not even have opened the database
                wait_until_all_speak(papers, children)
            for child in chance.sample(children, len(children)):
                time.sleep(chance.uniform(0, 0.08))
                child.kill()
        finally:
            complaints = end_all(children)
        assert complaints == [""] * len(children)
        database.check()
    said = [line for paper in sorted(folder.glob("*.said")) for line in paper.read_text().splitlines()]
    return [line for line in said if not line.startswith("handling")]


def start_one(database: Database, paper: Path, *, consuming: bool, chance: random.Random) -> "subprocess.Popen[str]":
    program = consume_until_killed if consuming else write_until_killed
    with paper.open("w") as said:
        return start(program, database.url, paper.stem, face=FACES[chance.randrange(2)], out=said)


def wait_until_all_speak(papers: list[Path], children: "list[subprocess.Popen[str]]") -> None:
    """The writers have said enough, and the consumer, the last, anything."""
    enough = [*[WORDY] * WRITERS, 1]
    deadline = time.monotonic() + PATIENCE
    while any(paper.read_text().count("\n") < lines for paper, lines in zip(papers, enough, strict=True)):
        if any(child.poll() is not None for child in children):  # what it complains of is looked at later
            return
        assert time.monotonic() < deadline
        time.sleep(0.005)


def finish_consuming(memory: sync.BlockingMemory) -> None:
    """Handle what the killed consumers left, once the lease of the last of them has run out."""
    consumer = memory.consumer("killed")
    deadline = time.monotonic() + PATIENCE
    while consumer.status().position < memory.position():
        assert time.monotonic() < deadline
        consumer.process(note_handled)


def check_acknowledged(memory: sync.BlockingMemory, acknowledged: list[str]) -> None:
    """Every write that a child said was done is there, with the content that it had."""
    events = {event.id: event.body for event in memory.sessions.events("shared")}
    for line in acknowledged:
        kind, name, *rest = line.split()
        if kind == "event":
            assert events[name] == {"run": rest[0], "number": int(rest[1]), "text": f"event {rest[1]} of {rest[0]}"}
        else:
            found = memory.memories.get_memory("app:kills", name, version=int(rest[0]))
            assert found is not None
            assert found.value == {"number": int(rest[1])}


def check_journal_agrees(memory: sync.BlockingMemory, database: Database) -> None:
    """Each row has its journal entry and each entry its row; nothing was half-written."""
    changes = list(memory.changes())
    session = memory.sessions.get_session("shared")
    assert session is not None
    in_journal = [(c.entity_id, c.payload["sequence"]) for c in changes if c.entity == "event"]
    assert in_journal == [(event.id, event.sequence) for event in session.events]
    assert [event.sequence for event in session.events] == list(range(1, session.event_count + 1))
    versions = Counter((c.entity_id, c.version) for c in changes if c.entity == "memory" and c.operation != "embed")
    assert versions == Counter(database.query("SELECT key, version FROM memory_entries"))
    times_set = Counter(key for c in changes for key in c.payload.get("keys", ()))
    assert times_set == dict(database.query("SELECT key, version FROM state"))
    assert session.state["user:last"] == session.events[-1].state_delta["user:last"]  # type: ignore[index]


def check_recallable(memory: sync.BlockingMemory, database: Database) -> None:
    """Whatever the killed indexers left undone is made up for, and what they did is not done again."""
    memory.settled()
    session = memory.sessions.get_session("shared")
    assert session is not None
    remembered = memory.memories.get_thread("shared", limit=1000)
    assert [(found.placement.position, found.version, found.value) for found in remembered] == [
        (event.sequence, 1, event.body["text"]) for event in session.events
    ][:1000]
    live = database.query("SELECT id FROM memory_entries WHERE is_current = TRUE AND is_deleted = FALSE ORDER BY id")
    for table in ("memory_texts", "memory_vectors"):
        joined = f"{table} JOIN memory_entries ON id = memory_id WHERE is_current = TRUE AND is_deleted = FALSE"
        assert database.query(f"SELECT memory_id FROM {joined} ORDER BY memory_id") == live
    newest = session.events[-1].body
    hits = memory.recall(newest["text"], namespaces="session:shared", k=1)
    assert [hit.memory.value for hit in hits] == [newest["text"]]


def test_killed_writers_lose_nothing_and_killed_consumers_repeat_nothing(database: Database, tmp_path: Path) -> None:
    # given writers that say what was acknowledged, and consumers that note what they handle
    database.create_numbered("handled")
    kills = KILLS[database.url.partition(":")[0]]
    folder = tmp_path / "said"
    folder.mkdir()
    # when they are killed at random moments, again and again
    acknowledged = kill_at_random(database, folder, kills)
    assert len(acknowledged) > 10 * kills
    # then every acknowledged write is there, journal and tables agree, and the seals hold
    with sync.open(database.url, background=False) as memory:
        check_acknowledged(memory, acknowledged)
        check_journal_agrees(memory, database)
        # and everything can be recalled
        check_recallable(memory, database)
        memory.seal()
        assert memory.verify().intact
        # and every position was handled once, in order
        finish_consuming(memory)
        handled = [row[0] for row in database.query("SELECT position FROM handled ORDER BY number")]
        assert handled == [change.position for change in memory.changes()]
    database.check()
