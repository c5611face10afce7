"""A purge erases: no byte of what was said is left in the database's files."""

import random
import sqlite3
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mnemon import sync
from mnemon.testing.embedders import FakeEmbedder
from tests.robustness.behind import Database, PostgresDatabase, SqliteDatabase

SECRETS = 25
SIZES = (1, 8, 30, 90, 140, 1000)  # times the marker: from a few bytes to several pages
HIDDEN = "user:alice:hidden"
SECRET = b"NIGHTJAR"  # a word that no other test writes into the same server

# Another process has to look: closing the file in this one would release SQLite's locks on it.
SEARCH = """
import pathlib, sys
marks = [bytes.fromhex(mark) for mark in sys.stdin.read().split()]
for path in pathlib.Path(sys.argv[1]).rglob("*"):
    if path.is_file():
        content = path.read_bytes()
        for mark in marks:
            if mark in content or mark.lower() in content:
                print(mark.hex())
"""

Erase = Callable[[sync.BlockingMemory], object]


def found_in(folder: Path, marks: Iterable[bytes]) -> set[bytes]:
    """Those of the marks that some file below a folder holds, also in small letters, as words are kept."""
    given = " ".join(mark.hex() for mark in marks)
    command = [sys.executable, "-S", "-c", SEARCH, str(folder)]
    said = subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
    return {bytes.fromhex(mark) for mark in said.split()}


def secret(number: int, chance: random.Random) -> dict[str, str]:
    """A value in which every few bytes would give it away."""
    return {"text": f"NIGHTJAR-{number:03} " * chance.choice(SIZES)}


def keep_secrets(memory: sync.BlockingMemory, chance: random.Random) -> None:
    """Memories in all the states that they can be in."""
    for number in range(SECRETS):
        place = (HIDDEN, f"hidden-{number}")
        memory.memories.add_memory(*place, secret(number, chance))
        if number % 2:
            memory.memories.update_memory(*place, secret(number, chance))
        if number % 3 == 0:
            memory.memories.delete_memory(*place)
        if number % 6 == 0:
            memory.memories.restore_memory(*place)


def vectors_kept(database: Database) -> list[bytes]:
    """The beginnings of the secrets' vectors, as they are on the disk."""
    column = "embedding" if isinstance(database, SqliteDatabase) else "embedding::real[]"
    rows = database.query(
        f"SELECT {column} FROM memory_vectors JOIN memory_entries ON id = memory_id WHERE namespace = '{HIDDEN}'"
    )
    assert len(rows) >= SECRETS
    return list({row[0][:40] if isinstance(row[0], bytes) else struct.pack("<10f", *row[0][:10]) for row in rows})


def live_around(memory: sync.BlockingMemory, chance: random.Random, times: int) -> None:
    """A life of other memories between the secrets: added, changed and purged, so that rows move."""
    for _ in range(times):
        place = (f"user:{chance.choice(['alice', 'bob'])}", f"k{chance.randrange(60)}")
        value = "x" * chance.choice((5, 100, 900, 3000, 9000))
        current = memory.memories.get_memory(*place)
        if current is None:
            memory.memories.add_memory(*place, value)
        elif chance.random() < 0.6:
            memory.memories.update_memory(*place, value)
        else:
            memory.memories.purge_memory(*place)


def purge_each(memory: sync.BlockingMemory) -> None:
    receipts = [memory.memories.purge_memory(HIDDEN, f"hidden-{number}", "officer") for number in range(SECRETS)]
    assert all(receipt.scrubbed for receipt in receipts)
    purges = {change.position: change.entity_id for change in memory.changes() if change.operation == "purge"}
    assert [purges[receipt.position] for receipt in receipts] == [receipt.key for receipt in receipts]


def forget_all(memory: sync.BlockingMemory) -> None:
    assert memory.forget(HIDDEN, erase=True, actor="officer") == SECRETS


def check_gone(memory: sync.BlockingMemory) -> None:
    """Nothing that the library can be asked knows more than that there was something."""
    for number in range(SECRETS):
        assert memory.memories.get_memory(HIDDEN, f"hidden-{number}") is None
        assert memory.memories.get_memory_history(HIDDEN, f"hidden-{number}") == []
        for question in (f"NIGHTJAR-{number:03}", f"what is 'hidden-{number}'?"):
            assert all("NIGHTJAR" not in repr(hit) for hit in memory.recall(question, namespaces="", k=100))
    assert all("NIGHTJAR" not in repr(found) for found in memory.memories.search_memories(limit=1000))
    changes = list(memory.changes())
    assert all("NIGHTJAR" not in repr(change) for change in changes)
    purges = Counter(
        change.entity_id for change in changes if change.operation == "purge" and change.actor == "officer"
    )
    assert purges == Counter(f"hidden-{number}" for number in range(SECRETS))


@pytest.mark.parametrize(
    ("seed", "erase", "embedder"),
    [(0, purge_each, "static"), (1, purge_each, FakeEmbedder(64)), (2, forget_all, FakeEmbedder(64))],
    ids=["each", "each-cached", "all-cached"],
)
@pytest.mark.unmeasured
def test_a_purge_leaves_no_byte_in_the_files_of_sqlite(
    sqlite_url: str, tmp_path: Path, seed: int, erase: Erase, embedder: Any
) -> None:
    chance = random.Random(seed)
    with sync.open(sqlite_url, embedder=embedder) as memory, sync.open(sqlite_url, embedder=embedder) as reader:
        # given secrets in the midst of other memories
        live_around(memory, chance, 100)
        keep_secrets(memory, chance)
        live_around(memory, chance, 300)
        assert len(reader.recall("who knows NIGHTJAR-001?", namespaces=HIDDEN, k=100)) > 10
        vectors = vectors_kept(SqliteDatabase(sqlite_url))
        assert found_in(tmp_path, [SECRET, *vectors]) == {SECRET, *vectors}
        # when they are purged
        erase(memory)
        # then they are gone from the file and from everything beside it
        assert found_in(tmp_path, [SECRET, *vectors]) == set()
        check_gone(memory)
        check_gone(reader)
        assert memory.verify().intact


def data_directory(url: str) -> Path:
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        return Path(row[0])


@pytest.mark.parametrize("erase", [purge_each, forget_all])
@pytest.mark.unmeasured
def test_a_purge_leaves_no_byte_in_the_tables_of_postgres(
    postgres_url: str, postgres_schema: str, erase: Erase
) -> None:
    chance = random.Random(0)
    database = PostgresDatabase(postgres_url, postgres_schema)
    tables = data_directory(postgres_url) / "base"
    with sync.open(postgres_url, embedder=FakeEmbedder(64)) as memory:
        # given secrets in the midst of other memories, some large enough to be stored apart, written to disk
        live_around(memory, chance, 40)
        keep_secrets(memory, chance)
        memory.memories.add_memory("user:alice", "large", {"text": "NIGHTJAR" + random.Random(1).randbytes(9000).hex()})
        database.query("CHECKPOINT")
        vectors = vectors_kept(database)
        assert found_in(tables, [SECRET, *vectors]) == {SECRET, *vectors}
        # when they are purged
        memory.memories.purge_memory("user:alice", "large")
        erase(memory)
        # then they are gone from the tables' files
        database.query("CHECKPOINT")
        assert found_in(tables, [SECRET, *vectors]) == set()
        check_gone(memory)


def tell_secrets(memory: sync.BlockingMemory, database: Database, chance: random.Random) -> None:
    """Episodes in all the states that they can be in, also in an archive, between those of others."""
    for number in range(60):
        hers = number % 3 == 0
        told = secret(number, chance) if hers else {"text": "x" * chance.choice((5, 900, 9000))}
        where = "user:alice:talks" if hers else "user:bob"
        stored = memory.store_episode([told, {"at": number}], namespace=where, outcome=told if number % 2 else None)
        if not hers and number % 2:
            memory.episodes.delete(stored.id)
    done = "UPDATE episodes SET status = 'consolidated', consolidated_at = 1"
    database.query(f"{done} WHERE namespace = 'user:alice:talks' AND id % 2 = 0")
    memory.retention.apply()
    [archive, *_] = memory.retention.archives("user:alice")
    database.query(f"{done} WHERE namespace = 'user:alice:talks'")
    memory.retention.restore(archive.id)
    memory.remember("NIGHTJAR", namespace="user:alice")


def check_erased(memory: sync.BlockingMemory) -> None:
    assert memory.forget("user:alice", erase=True) == 21
    assert {each.namespace for each in memory.episodes.list(limit=100)} == {"user:bob"}
    assert list(memory.retention.archives()) == []
    assert all("NIGHTJAR" not in repr(change) for change in memory.changes())


def test_erased_episodes_leave_no_byte_in_the_files_of_sqlite(sqlite_url: str, tmp_path: Path) -> None:
    with sync.open(sqlite_url, background=False, embedder="none") as memory:
        tell_secrets(memory, SqliteDatabase(sqlite_url), random.Random(0))
        assert SECRET in found_in(tmp_path / "memory.files", [SECRET])
        check_erased(memory)
        assert found_in(tmp_path, [SECRET]) == set()


def test_erased_episodes_leave_no_byte_in_the_tables_of_postgres(
    postgres_url: str, postgres_schema: str, tmp_path: Path
) -> None:
    database = PostgresDatabase(postgres_url, postgres_schema)
    tables = data_directory(postgres_url) / "base"
    with sync.open(postgres_url, background=False, embedder="none", content_url=tmp_path.as_uri()) as memory:
        tell_secrets(memory, database, random.Random(0))
        database.query("CHECKPOINT")
        assert found_in(tables, [SECRET]) == found_in(tmp_path, [SECRET]) == {SECRET}
        check_erased(memory)
        database.query("CHECKPOINT")
        assert found_in(tables, [SECRET]) == found_in(tmp_path, [SECRET]) == set()


def purge_while_read(
    memory: sync.BlockingMemory, begin_reading: Callable[[], Any], end_reading: Callable[[], Any]
) -> None:
    """A receipt does not claim more than is true."""
    for name in ("first", "second"):
        memory.memories.add_memory("user:alice", name, "NIGHTJAR")
    # given somebody who still reads what was before the purge
    begin_reading()
    assert not memory.memories.purge_memory("user:alice", "first").scrubbed
    assert memory.memories.get_memory("user:alice", "first") is None
    # when they have ended, then the next purge takes what is left of this one too
    end_reading()
    assert memory.memories.purge_memory("user:alice", "second").scrubbed


def test_a_reader_of_sqlite_delays_the_scrubbing(sqlite_url: str, tmp_path: Path) -> None:
    with sync.open(sqlite_url, busy_timeout=0.2) as memory:
        reader = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
        with closing(reader):
            reader.execute("BEGIN")
            purge_while_read(
                memory,
                lambda: reader.execute("SELECT COUNT(*) FROM memory_entries").fetchone(),
                lambda: reader.execute("COMMIT"),
            )
        assert found_in(tmp_path, [SECRET]) == set()


@pytest.mark.parametrize("table", ["memory_entries", "sessions"])
def test_a_reader_of_postgres_delays_the_scrubbing(
    postgres_url: str, postgres_schema: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemon.backends.postgres.database._SCRUB_PATIENCE", 0.2)
    with sync.open(postgres_url) as memory, psycopg.connect(postgres_url, autocommit=True) as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        purge_while_read(
            memory,
            lambda: reader.execute(f"SELECT COUNT(*) FROM {postgres_schema}.{table}").fetchone(),
            lambda: reader.execute("COMMIT"),
        )
        PostgresDatabase(postgres_url, postgres_schema).query("CHECKPOINT")
    assert found_in(data_directory(postgres_url) / "base", [SECRET]) == set()
