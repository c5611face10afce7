"""The indexes of PostgreSQL: the extension that they need, the graph over many vectors, and what a purge leaves."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
import pytest

from mnemon import StoreUnavailable
from mnemon.backends.postgres import database, extension, hnsw, opening, vectors, words
from mnemon.backends.postgres.connection import Location
from mnemon.backends.wordsearch import TermCounts
from mnemon.coroutines import InlineRunner, complete
from mnemon.filters import parse
from mnemon.model import EmbeddingModel, Space
from mnemon.ports import Scope, Transaction, Vector
from mnemon.settings import Settings
from mnemon.sql import Query
from mnemon.testing.planting import EVERYWHERE, Garden, Seed

DIMENSION = 32


@contextmanager
def opened(settings: Settings) -> Iterator[Garden]:
    """A database as one process has it open."""
    backend = opening.open_blocking(settings)
    try:
        yield Garden(backend.store, backend.index(backend.store, InlineRunner()))
    finally:
        complete(backend.store.close())


@pytest.fixture
def settings(postgres_server: str, postgres_schema: str) -> Settings:
    return Settings(url=postgres_server, postgres_schema=postgres_schema)


@pytest.fixture
def garden(settings: Settings) -> Iterator[Garden]:
    with opened(settings) as garden:
        yield garden


def execute(settings: Settings, statement: str) -> list[tuple[Any, ...]]:
    options = f"-c search_path={settings.postgres_schema},public"
    with psycopg.connect(settings.url, autocommit=True, options=options) as connection:
        done = connection.execute(statement.encode())
        return done.fetchall() if done.description else []


def heaped_vectors(count: int, seed: int) -> Vector:
    """Vectors of length 1 that lie in heaps, as those of texts do."""
    chance = np.random.default_rng(seed)
    heaps = np.random.default_rng(0).normal(size=(40, DIMENSION))
    found = heaps[chance.integers(0, 40, count)] + 0.8 * chance.normal(size=(count, DIMENSION))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def plant_all(garden: Garden, space: Space, found: Vector) -> list[int]:
    seeds = [Seed(f"user:u{n % 10}", f"k{n}", vector, {"n": n % 20}) for n, vector in enumerate(found)]
    return complete(garden.sow(space, seeds))


# -- the extension


@pytest.fixture
def bare(postgres_server: str) -> Iterator[Settings]:
    """A database of its own without the extension, owned by a user who may not create it."""
    name = f"bare_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"CREATE DATABASE {name} OWNER {name}")
        yield Settings(url=postgres_server.replace("mnemon@", f"{name}@").replace("/postgres", f"/{name}"))
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(f"DROP ROLE {name}")


def as_administrator(settings: Settings) -> Settings:
    name = settings.url.rpartition("/")[2]
    return replace(settings, url=settings.url.replace(f"{name}@", "mnemon@"))


def test_without_the_extension_and_the_right_to_make_it_the_error_says_what_to_run(bare: Settings) -> None:
    with pytest.raises(StoreUnavailable, match="CREATE EXTENSION vector SCHEMA public"), opened(bare):
        pass
    assert execute(bare, "SELECT nspname FROM pg_namespace WHERE nspname = 'mnemon'") == []
    # when somebody has run that, then it opens
    execute(as_administrator(bare), "CREATE EXTENSION vector SCHEMA public")
    with opened(bare) as garden:
        assert complete(garden.words("anything")) == []


def test_a_server_without_pgvector_is_told_from_one_that_has_it(
    bare: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "_MAKE", "CREATE EXTENSION no_such_extension")
    with pytest.raises(StoreUnavailable, match="install pgvector on the server"), opened(bare):
        pass


def test_an_old_extension_is_refused(bare: Settings) -> None:
    administrator = as_administrator(bare)
    execute(administrator, "CREATE EXTENSION vector SCHEMA public")
    execute(administrator, "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    with pytest.raises(StoreUnavailable, match=r"pgvector 0\.7\.4.*ALTER EXTENSION vector UPDATE"), opened(bare):
        pass


@pytest.mark.parametrize("schema", ["extensions", 'Odd "name" \\ here'])
def test_the_extension_may_be_in_any_schema(bare: Settings, schema: str) -> None:
    administrator = as_administrator(bare)
    quoted = '"' + schema.replace('"', '""') + '"'
    execute(administrator, f"CREATE SCHEMA {quoted}")
    execute(administrator, f"CREATE EXTENSION vector SCHEMA {quoted}")
    execute(administrator, f"GRANT USAGE ON SCHEMA {quoted} TO PUBLIC")
    for _ in range(2):  # made, and opened again
        with opened(bare) as garden:
            space = complete(garden.space(DIMENSION, uuid4().hex))
            [vector] = heaped_vectors(1, 1)
            planted = complete(garden.plant("user:a", uuid4().hex, vectors={space.id: vector}))
            assert complete(garden.nearest(space, vector)) == [planted]


def test_the_extension_does_not_go_with_the_schema_that_needed_it_first(bare: Settings) -> None:
    administrator = as_administrator(bare)
    with opened(replace(administrator, postgres_schema="one")), opened(replace(administrator, postgres_schema="two")):
        execute(administrator, "SET client_min_messages = warning; DROP SCHEMA one CASCADE")
    with opened(replace(administrator, postgres_schema="two")) as garden:
        assert complete(garden.words("anything")) == []


# -- many vectors


@pytest.fixture
def unsorted(settings: Settings) -> Iterator[Garden]:
    """A server that does not sort if there is another way, though that would be the quickest with so few rows."""
    with opened(replace(settings, url=f"{settings.url}?options=-c%20enable_sort%3Doff")) as garden:
        yield garden


def test_a_large_scope_is_answered_by_the_index_and_almost_exactly(
    unsorted: Garden, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given more vectors than are looked at one by one
    monkeypatch.setattr(vectors, "_SMALL", 500)
    monkeypatch.setattr(vectors, "_DEARER", 0)
    garden = unsorted
    space = complete(garden.space(DIMENSION))
    found = heaped_vectors(4000, 2)
    ids = plant_all(garden, space, found)
    execute(settings, "ANALYZE")
    scopes = {
        EVERYWHERE: range(4000),
        Scope(("user:u1", "user:u2")): [n for n in range(4000) if n % 10 in (1, 2)],
        Scope(("",), where=parse({"n": {"lt": 3}})): [n for n in range(4000) if n % 20 < 3],
        Scope(("user:u3",)): range(3, 4000, 10),  # which is small
    }
    for scope, inside in scopes.items():
        hits = 0
        for question in heaped_vectors(25, 3):
            nearest = sorted(inside, key=lambda n: -float(found[n] @ question))[:10]
            answer = complete(garden.indexes.vectors.search(space, question, scope, 10))
            assert [match.score for match in answer] == sorted((match.score for match in answer), reverse=True)
            hits += len({match.memory_id for match in answer} & {ids[n] for n in nearest})
        assert hits / 250 >= (1 if len(inside) <= 500 else 0.98), scope
    deadline = time.monotonic() + 20
    while scans_of(settings, space) < 50:  # a connection tells of what it did about once a second
        complete(garden.store.fetch(Query("flush", "SELECT pg_stat_force_next_flush()"), {}))
        assert time.monotonic() < deadline
        time.sleep(0.1)


def scans_of(settings: Settings, space: Space) -> int:
    return execute(settings, f"SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = '{name(space)}'")[0][0]


def name(space: Space) -> str:
    return hnsw.index_name(space)


def test_what_the_index_cannot_find_is_looked_for_one_by_one(garden: Garden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_SMALL", 100)
    monkeypatch.setattr(vectors, "_DEARER", 0)
    space = complete(garden.space(DIMENSION))
    found = heaped_vectors(600, 4)
    ids = plant_all(garden, space, found)
    needle = complete(garden.plant("user:x", "needle", vectors={space.id: found[0]}, metadata={"needle": True}))
    where = parse({"needle": True})
    assert complete(garden.nearest(space, -found[0], where=where, limit=5)) == [needle]
    assert set(complete(garden.nearest(space, found[1], limit=700))) == {*ids, needle}


def test_an_index_that_was_interrupted_is_made_anew(garden: Garden, settings: Settings) -> None:
    space = complete(garden.space(DIMENSION))
    plant_all(garden, space, heaped_vectors(20, 5))
    execute(settings, f"UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = '{name(space)}'::regclass")
    with opened(settings) as another:
        complete(another.indexes.vectors.prepare(space))
    valid = f"SELECT indisvalid FROM pg_index WHERE indexrelid = '{name(space)}'::regclass"
    assert execute(settings, valid) == [(True,)]


def test_an_index_over_many_vectors_is_made_while_others_write(
    garden: Garden, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hnsw, "_FEW", 50)
    space = complete(garden.space(DIMENSION))
    found = heaped_vectors(400, 6)
    ids = plant_all(garden, space, found[:300])
    execute(settings, f"DROP INDEX {name(space)}")
    location = Location.parse(settings)
    makers = [threading.Thread(target=hnsw.make_index, args=(location, space)) for _ in range(4)]
    for maker in makers:
        maker.start()
    ids += [complete(garden.plant("user:late", str(n), vectors={space.id: v})) for n, v in enumerate(found[300:])]
    for maker in makers:
        maker.join(60)
    assert not any(maker.is_alive() for maker in makers)
    assert complete(garden.store.fetch(vectors._HAS_INDEX, {"name": name(space)})) == [(1,)]
    assert sorted(complete(garden.nearest(space, found[0], limit=500))) == ids


def test_who_may_not_make_an_index_is_answered_without(
    bare: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_SMALL", 5)
    monkeypatch.setattr(vectors, "_DEARER", 0)
    administrator, role = as_administrator(bare), bare.url.rpartition("/")[2]
    with opened(administrator) as garden:
        space = complete(garden.space(DIMENSION))
        found = heaped_vectors(20, 11)
        ids = plant_all(garden, space, found)
        execute(administrator, f"DROP INDEX mnemon.{name(space)}; GRANT USAGE ON SCHEMA mnemon TO {role}")
        execute(administrator, f"GRANT SELECT ON ALL TABLES IN SCHEMA mnemon TO {role}")
        with opened(bare) as reader:
            for _ in range(2):
                complete(reader.indexes.vectors.prepare(space))
            assert complete(reader.nearest(space, found[3], limit=1)) == [ids[3]]
    assert caplog.text.count("cannot be made, so large scopes take long") == 1


@pytest.mark.parametrize(("dimension", "kind"), [(2000, "vector(2000)"), (2001, "halfvec(2001)"), (4001, None)])
def test_spaces_of_many_dimensions(
    garden: Garden, dimension: int, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_SMALL", 5)
    monkeypatch.setattr(vectors, "_DEARER", 0)
    space = complete(garden.space(dimension))
    assert hnsw.index_type(replace(space, model=EmbeddingModel("m", "1", dimension))) == kind
    found = np.random.default_rng(7).normal(size=(12, dimension)).astype(np.float32)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    ids = plant_all(garden, space, found)
    for number in (0, 5, 11):
        assert complete(garden.nearest(space, found[number], limit=3))[0] == ids[number]


# -- words


def test_counts_of_common_words_are_estimated_once_there_are_many(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unit(tx: Transaction) -> None:
        for number in range(600):
            await garden.planting(tx, "user:a", str(number), f"all {'third' if number % 3 == 0 else 'x'} own{number}")

    complete(garden.store.write(unit))
    for constant, value in (("_MANY", 100), ("_MOST", 50), ("_SAMPLE", 300)):
        monkeypatch.setattr(words, constant, value)
    fresh = words.PostgresWords(garden.store, TermCounts())
    counted = complete(fresh.statistics(["all", "third", "own7", "none"])).frequencies
    assert counted["own7"] == 1
    assert counted["none"] == 0
    assert counted["all"] == pytest.approx(600, rel=0.1)
    assert counted["third"] == pytest.approx(200, rel=0.1)


# -- purging


def data_directory(settings: Settings) -> Path:
    return Path(execute(settings, "SHOW data_directory")[0][0])


def left_in(folder: Path, *markers: bytes) -> list[bytes]:
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return [marker for marker in markers if any(marker in file for file in files)]


def test_a_purge_leaves_nothing_of_words_and_vectors(garden: Garden, settings: Settings) -> None:
    chance = random.Random(0)
    tables = data_directory(settings) / "base"
    space = complete(garden.space(DIMENSION))
    found = heaped_vectors(30, 8)
    plant_all(garden, space, heaped_vectors(60, 9))
    for number, vector in enumerate(found):
        said = " ".join([f"classified{number:03}"] * chance.choice((1, 30, 400)))
        complete(garden.plant("user:s", str(number), said, vectors={space.id: vector}))
    secrets = [b"classified", *(vector[:8].tobytes() for vector in found)]
    execute(settings, "ANALYZE")
    execute(settings, "CHECKPOINT")
    assert len(left_in(tables, *secrets)) == len(secrets)
    for number in range(len(found)):
        complete(garden.burn("user:s", str(number)))
    execute(settings, "CHECKPOINT")
    assert left_in(tables, *secrets) == []


def test_many_vectors_are_taken_out_of_the_index_and_the_receipt_says_no_more(
    garden: Garden, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_MOST_VECTOR_BYTES", 0)
    space = complete(garden.space(DIMENSION))
    found = heaped_vectors(50, 10)
    ids = plant_all(garden, space, found)
    complete(garden.store.write(lambda tx: garden.indexes.vectors.erase(tx, ids[:10])))
    assert complete(garden.store.scrub()) is False
    assert complete(garden.indexes.vectors.vectors_of(space, ids)).keys() == set(ids[10:])
    execute(settings, "CHECKPOINT")
    [(path,)] = execute(settings, f"SELECT pg_relation_filepath('{name(space)}')")
    graph = (data_directory(settings) / path).read_bytes()
    assert [n for n, vector in enumerate(found) if vector[:8].tobytes() in graph] == list(range(10, 50))
