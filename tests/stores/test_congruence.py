"""The same vectors and the same filtered questions on every store, compared with exact search."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mnemon
from mnemon.backends.stores import load_store
from mnemon.facts import facts_of, filter_for
from mnemon.filters import parse
from mnemon.model import Match
from mnemon.namespaces import covers
from mnemon.ports import Scope, Vector, VectorMemory, VectorQuery, VectorRecord
from mnemon.testing.handles import parts_of
from mnemon.testing.planting import Garden, Seed
from mnemon.testing.vector_samples import lengthened, record_of, space_of
from tests.servers import Server
from tests.stores.servers import own_collections, url_of
from tests.test_filters import holds

pytestmark = pytest.mark.unmeasured

VECTORS, DIMENSION, CLUSTERS, QUESTIONS, LIMIT = 2000, 384, 40, 200, 10
LEAST_RECALL = 0.98

Search = Callable[["Question"], Awaitable[list[Match]]]


@dataclass(frozen=True, slots=True)
class Planted:
    """A memory; its number is its memory id in the stores outside the databases."""

    number: int
    vector: Vector
    namespace: str
    memory_type: str
    trust: float
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    vector: Vector
    prefixes: tuple[str, ...] = ("",)
    types: tuple[str, ...] = ()
    min_trust: float = 0.0
    where: dict[str, Any] | None = None

    def meets(self, memory: Planted) -> bool:
        """What it asks for, said without anything that is tested here."""
        return (
            any(covers(prefix, memory.namespace) for prefix in self.prefixes)
            and (not self.types or memory.memory_type in self.types)
            and memory.trust >= self.min_trust
            and (self.where is None or holds(self.where, memory.metadata))
        )


@cache
def memories() -> list[Planted]:
    chance = random.Random(20)
    numbers = np.random.default_rng(20)
    centres = numbers.standard_normal((CLUSTERS, DIMENSION))
    near = centres[numbers.integers(CLUSTERS, size=VECTORS)] + 0.6 * numbers.standard_normal((VECTORS, DIMENSION))
    return [
        Planted(
            number,
            vector,
            chance.choice([f"user:u{number % 25}", f"user:u{number % 25}:notes", "project:apollo", "project:apollo2"]),
            chance.choices(["semantic", "episodic", "procedural"], [6, 3, 1])[0],
            chance.choice([0.1, 0.3, 0.5, 0.8, 1.0]),
            {
                "colour": chance.choice(["red", "green", "blue", "Red", "red "]),
                "size": number % 50,
                "tags": chance.sample(["new", "hot", "old", "wet", "dry"], chance.randrange(4)),
                "author": {"name": f"author {chance.randrange(100)}", "active": chance.random() < 0.1},
                **({"rare": True} if number % 200 == 0 else {}),
            },
        )
        for number, vector in enumerate(lengthened(near.astype(np.float32)))
    ]


def filters(chance: random.Random) -> dict[str, Any]:
    """What a question asks besides nearness: from everything down to a handful of memories."""
    user, size, author = f"user:u{chance.randrange(25)}", chance.randrange(50), f"author {chance.randrange(100)}"
    return chance.choice(
        [
            {},
            {"prefixes": ("user",)},
            {"prefixes": (user,)},
            {"prefixes": (f"{user}:notes", "project:apollo")},
            {"prefixes": ("project:apollo",), "types": ("procedural",)},
            {"types": ("episodic", "procedural")},
            {"min_trust": 0.5},
            {"min_trust": 1.0, "where": {"colour": "red"}},
            {"where": {"colour": {"in": ["red ", "Red"]}}},
            {"where": {"colour": {"ne": "red"}}},
            {"where": {"size": size}},
            {"where": {"size": {"in": [size, size + 1.0, -3]}}},
            {"where": {"author.name": author}},
            {"where": {"author.active": True, "tags": {"ne": 5}}},
            {"where": {"rare": True}},
            {"where": {"not": {"rare": True}}},
            {"where": {"or": [{"colour": "green"}, {"author.active": True}]}},
            {"where": {"and": [{"colour": "blue"}, {"not": {"size": {"in": list(range(25))}}}]}},
            {"prefixes": ("user",), "types": ("semantic",), "min_trust": 0.3, "where": {"not": {"colour": "blue"}}},
            {"where": {"missing": 1}},
        ]
    )


@cache
def questions() -> list[Question]:
    chance = random.Random(21)
    numbers = np.random.default_rng(21)
    asked = [chance.choice(memories()).vector for _ in range(QUESTIONS)]
    near = lengthened((np.array(asked) + 0.03 * numbers.standard_normal((QUESTIONS, DIMENSION))).astype(np.float32))
    return [Question(vector, **filters(chance)) for vector in near]


@cache
def answers() -> list[dict[int, float]]:
    """What exact search finds for each question: numbers and cosines of the nearest that meet it."""
    matrix = np.array([memory.vector for memory in memories()])
    found: list[dict[int, float]] = []
    for question in questions():
        cosines = matrix @ question.vector
        meeting = [memory.number for memory in memories() if question.meets(memory)]
        best = sorted(meeting, key=lambda number: -cosines[number])[:LIMIT]
        found.append({number: float(cosines[number]) for number in best})
    return found


# -------------------------------------------------------------------------------------------- stores outside, mirrors


def record(memory: Planted) -> VectorRecord:
    facts = facts_of(memory.namespace, memory.memory_type, memory.metadata)
    return record_of(memory.number, memory.vector, namespace=memory.namespace, facts=facts, trust=memory.trust)


def searching(store: VectorMemory) -> Search:
    async def search(question: Question) -> list[Match]:
        where = filter_for(question.prefixes, question.types, parse(question.where) if question.where else None)
        return store.query(VectorQuery(question.vector, LIMIT, where, question.min_trust))

    return search


@pytest.fixture
def outside(request: pytest.FixtureRequest) -> Iterator[dict[str, Search]]:
    """The three vector stores, holding the memories."""
    found: dict[str, Search] = {}
    with ExitStack() as stack:
        for name in ("qdrant", "weaviate", "chroma"):
            server: Server = request.getfixturevalue(f"{name}_server")
            settings = stack.enter_context(own_collections(server))
            store = load_store(url_of(server), space_of("congruence", dimension=DIMENSION), settings)
            stack.callback(store.close)
            store.store([record(memory) for memory in memories()])
            found[name] = searching(store)
        yield found


@asynccontextmanager
async def mirrored(url: str) -> AsyncIterator[Search]:
    """A database's own vectors, holding the memories."""
    async with mnemon.open(url, seal_interval=None, background=False, embedder="none") as memory:
        parts = parts_of(memory)
        garden = Garden(parts.store, parts.index(parts.store, parts.runner))
        space = await garden.space(DIMENSION)
        seeds = [
            Seed(each.namespace, f"key {each.number}", each.vector, each.metadata, each.memory_type, each.trust)
            for each in memories()
        ]
        ids = await garden.sow(space, seeds)
        numbers = dict(zip(ids, (each.number for each in memories()), strict=True))

        async def search(question: Question) -> list[Match]:
            where = parse(question.where) if question.where else None
            scope = Scope(question.prefixes, question.types, question.min_trust, where)
            found = await garden.indexes.vectors.search(space, question.vector, scope, LIMIT)
            return [Match(numbers[match.memory_id], match.score) for match in found]

        yield search


# -------------------------------------------------------------------------------------------------------- comparing


async def recall_of(search: Search) -> float:
    """The share of what exact search finds that is found too; whatever is found must be right in itself."""
    found, expected = 0, 0
    for question, right in zip(questions(), answers(), strict=True):
        matches = await search(question)
        assert len(matches) == len(right), question
        for match in matches:
            memory = memories()[match.memory_id]
            assert question.meets(memory), (question, memory)
            assert match.score == pytest.approx(float(memory.vector @ question.vector), abs=1e-4)
        found += len(right.keys() & {match.memory_id for match in matches})
        expected += len(right)
    return found / expected


async def test_every_store_finds_what_exact_search_finds(
    outside: dict[str, Search], postgres_url: str, tmp_path: Path
) -> None:
    recalls = {name: await recall_of(search) for name, search in outside.items()}
    for name, url in {"sqlite": f"sqlite:///{tmp_path}/mnemon.db", "postgres": postgres_url}.items():
        async with mirrored(url) as search:
            recalls[name] = await recall_of(search)
    print({name: round(recall, 4) for name, recall in recalls.items()})  # noqa: T201 - pytest -rP shows it
    assert all(recall >= LEAST_RECALL for recall in recalls.values()), recalls


def test_the_questions_range_from_everything_to_nothing() -> None:
    sizes = [sum(question.meets(memory) for memory in memories()) for question in questions()]
    assert len(sizes) == QUESTIONS
    assert max(sizes) == VECTORS
    assert min(sizes) == 0
    for low, high in ((1, 20), (20, 100), (100, 600), (600, VECTORS)):
        assert sum(low <= size < high for size in sizes) >= 10, (low, high)
