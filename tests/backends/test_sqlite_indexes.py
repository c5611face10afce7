"""The indexes of a SQLite file: shared by processes, read only, in step, and without a trace of what was purged."""

import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mnemon import StoreUnavailable
from mnemon.backends.sqlite import opening
from mnemon.coroutines import InlineRunner, LoopRunner, complete
from mnemon.model import Space
from mnemon.ports import Transaction, Vector
from mnemon.settings import Settings
from mnemon.testing.planting import Garden, Seed
from mnemon.vectorindex import VectorIndex

DIMENSION = 32


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/m.db"


@contextmanager
def opened(url: str) -> Iterator[Garden]:
    """A file as one process has it open."""
    backend = opening.open_blocking(Settings(url=url))
    try:
        yield Garden(backend.store, backend.index(backend.store, InlineRunner()))
    finally:
        complete(backend.store.close())


def random_vectors(count: int, seed: int) -> Vector:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_what_another_process_writes_is_found(url: str) -> None:
    one, two, query = random_vectors(3, 0)
    with opened(url) as mine, opened(url) as other:
        space = complete(mine.space(DIMENSION))
        vectors = {space.id: one}
        first = complete(mine.plant("user:a", "k", "oslo", vectors=vectors))
        for garden in (mine, other):
            assert complete(garden.nearest(space, query)) == complete(garden.words("oslo")) == [first]
        # when the other changes it, and adds one
        second = complete(other.plant("user:a", "k", "bergen", vectors={space.id: two}))
        third = complete(other.plant("user:a", "k2", "oslo", vectors=vectors))
        # then both know
        for garden in (mine, other):
            assert sorted(complete(garden.nearest(space, query))) == [second, third]
            assert complete(garden.words("oslo")) == [third]
        # and when one is deleted and the other purged
        complete(mine.uproot("user:a", "k2"))
        complete(other.burn("user:a", "k"))
        for garden in (mine, other):
            assert complete(garden.nearest(space, query)) == complete(garden.words("bergen oslo")) == []


def test_a_file_can_be_searched_by_those_who_may_only_read_it(url: str) -> None:
    vectors = random_vectors(20, 1)
    with opened(url) as garden:
        space = complete(garden.space(DIMENSION))
        ids = [complete(garden.plant("user:a", str(n), f"w{n}", vectors={space.id: v})) for n, v in enumerate(vectors)]
    with opened(f"{url}?mode=ro") as reader:
        assert complete(reader.nearest(space, vectors[7], limit=1)) == complete(reader.words("w7")) == [ids[7]]
        complete(reader.indexes.vectors.prepare(space))
        with opened(url) as writer:
            later = complete(writer.plant("user:a", "later", "w7", vectors={space.id: vectors[7]}))
            assert complete(reader.nearest(space, vectors[7], limit=2)) == [ids[7], later]
            assert complete(reader.words("w7")) == [ids[7], later]


def test_the_index_keeps_up_with_any_number_of_changes(url: str) -> None:
    chance = random.Random(2)
    with opened(url) as writer, opened(url) as reader:
        space = complete(writer.space(DIMENSION))
        living: dict[tuple[str, str], tuple[int, Vector]] = {}
        for step, changes in enumerate((1, 40, 300, 700, 3, 150)):
            for vector in random_vectors(changes, step):
                place = (f"user:u{chance.randrange(5)}", f"k{chance.randrange(120)}")
                if place in living and chance.random() < 0.2:
                    complete(writer.uproot(*place))
                    del living[place]
                else:
                    living[place] = complete(writer.plant(*place, vectors={space.id: vector})), vector
            check(reader, space, living)
        check(writer, space, living)


def check(garden: Garden, space: Space, living: dict[Any, tuple[int, Vector]]) -> None:
    """An index finds what is there, all of it and nothing else."""
    for query in random_vectors(3, 99):
        expected = sorted(living.values(), key=lambda each: -float(each[1] @ query))
        assert complete(garden.nearest(space, query, limit=500)) == [memory_id for memory_id, _ in expected]


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads that read vectors into an index."""
    threads: list[int] = []
    put = VectorIndex.put

    def noting(self: VectorIndex, *arguments: Any) -> None:
        threads.append(threading.get_ident())
        put(self, *arguments)

    monkeypatch.setattr(VectorIndex, "put", noting)
    return threads


def plant_all(garden: Garden, space: Space, vectors: Vector) -> list[int]:
    seeds = [Seed(f"user:u{n % 10}", f"k{n}", vector) for n, vector in enumerate(vectors)]
    return complete(garden.sow(space, seeds))


async def test_an_event_loop_does_not_wait_for_the_index_to_be_read(url: str, readings: list[int]) -> None:
    with opened(url) as garden:
        space = complete(garden.space(DIMENSION))
        ids = plant_all(garden, space, random_vectors(50, 3))
    backend = await opening.open_async(Settings(url=url))
    try:
        garden = Garden(backend.store, backend.index(backend.store, LoopRunner()))
        for query in random_vectors(3, 4):
            assert sorted(await garden.nearest(space, query)) == ids
        assert len(readings) == 1
        assert threading.get_ident() not in readings
    finally:
        await backend.store.close()


def test_a_small_scope_is_answered_without_reading_all_vectors(url: str, readings: list[int]) -> None:
    vectors = random_vectors(3000, 5)
    with opened(url) as garden:
        space = complete(garden.space(DIMENSION))
        ids = plant_all(garden, space, vectors)
    with opened(url) as garden:
        answers = []
        for turn in range(8):
            # given questions about a tenth of the memories
            [query] = random_vectors(1, 6)
            answers.append(complete(garden.nearest(space, query, "user:u3", limit=10)))
            assert complete(garden.indexes.vectors.similarity(space, query, ids[:1])).keys() == {ids[0]}
            # then the first are answered from the rows, and all alike
            assert bool(readings) == (turn > 5)
        expected = sorted(range(3, 3000, 10), key=lambda n: -float(vectors[n] @ query))[:10]
        assert answers == [[ids[n] for n in expected]] * 8
    with opened(url) as garden:
        # and a question about all of them is not
        assert len(complete(garden.nearest(space, query, limit=10))) == 10
        assert len(readings) == 2


# -- purging

# Another process has to look: closing the file in this one would release SQLite's locks on it.
SEARCH = """
import pathlib, sys
files = [path.read_bytes() for path in pathlib.Path(sys.argv[1]).iterdir()]
print(*(marker for marker in sys.stdin.read().split() if any(bytes.fromhex(marker) in file for file in files)))
"""


def left_in(folder: Path, *markers: bytes) -> list[bytes]:
    """Which of the markers are anywhere in the files of a folder."""
    command = [sys.executable, "-c", SEARCH, str(folder)]
    asked = " ".join(marker.hex() for marker in markers)
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    return [bytes.fromhex(marker) for marker in done.stdout.split()]


def live(garden: Garden, space: Space, chance: random.Random, times: int) -> None:
    """Memories that come, change and go, so that pages fill, empty and are merged."""
    for _ in range(times):
        place = (f"user:{chance.choice('ab')}", f"k{chance.randrange(50)}")
        words = " ".join(f"w{chance.randrange(3000)}" for _ in range(chance.choice((1, 10, 100, 1500))))
        fate = chance.random()
        if fate < 0.8:
            [vector] = random_vectors(1, chance.randrange(10**6))
            complete(garden.plant(*place, words, vectors={space.id: vector}))
        else:
            complete(garden.burn(*place))


@pytest.mark.parametrize("seed", range(3))
def test_a_purge_leaves_nothing_of_words_and_vectors(url: str, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    vectors = random_vectors(40, 1000 + seed)
    with opened(url) as garden:
        space = complete(garden.space(DIMENSION))
        live(garden, space, chance, 60)
        late: list[tuple[int, str]] = []
        for number, vector in enumerate(vectors):
            words = " ".join([f"classified{number:03}"] * chance.choice((1, 5, 60, 400)))
            if number % 3:
                complete(garden.plant("user:s", str(number), words, vectors={space.id: vector}))
            else:  # indexed later, in between the others
                late.append((complete(garden.plant("user:s", str(number))), words))
            if number % 4 == 0:
                complete(garden.plant("user:s", str(number), words, vectors={space.id: vector}))
        live(garden, space, chance, 60)

        async def index(tx: Transaction) -> None:
            for memory_id, words in late:
                await garden.indexes.words.put(tx, memory_id, "user:s", words.split(" "))

        complete(garden.store.write(index))
        secrets = [b"classified", *(vector[:8].tobytes() for vector in vectors)]
        assert len(left_in(tmp_path, *secrets)) > len(vectors) / 2
        # when they are purged
        for number in range(len(vectors)):
            complete(garden.burn("user:s", str(number)))
        # then no word and no vector is left in the file or beside it
        assert left_in(tmp_path, *secrets) == []
        assert complete(garden.words("classified000 classified039")) == []


def test_a_build_without_full_text_search_is_refused() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        opening.check_modules(connection, ("fts5",))
        with pytest.raises(StoreUnavailable, match=r"without FTS99.*another build of Python"):
            opening.check_modules(connection, ("fts99",))
