"""Spaces, records and questions for tests of vector stores."""

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from mnemon.facts import EVERY_FACT, AnyOf, FactFilter, Joined, Not, accepts, facts_of, filter_for
from mnemon.filters import parse
from mnemon.model import EmbeddingModel, Space, SpaceStatus
from mnemon.ports import Vector, VectorMemory, VectorQuery, VectorRecord

_DIMENSION = 16

ODD_TEXTS = (
    "", " ", "a", "A", "a ", " a", "a  b", "a b", "a.", "a,", "é", "e\u0301", "É", "ß", "ss", "日本語", "日本",
    "\U0001f600", "👩\u200d🚀", "a'b", 'a"b', "a\\b", "a\\", "a\nb", "a\tb", "a\n", "*", "a*", "?", "%", "_", "$and",
    "null", "true", "1", "1.0", "-1", "{}", "[]", "a:b", "in=user:alice", "type=semantic", "more", "\u2028", "\u00a0",
    "\ufeff", "x" * 119, "x" * 120, "x" * 121, "y" * 5000, "; DROP TABLE", "<b>", "&amp;", "a/b", "a|b", "ǅ",
)  # fmt: skip


def space_of(name: str, *, version: str = "1", dimension: int = _DIMENSION) -> Space:
    """A space of a model that embeds nothing."""
    model = EmbeddingModel(name, version, dimension)
    return Space(1, f"given:{name}", model, SpaceStatus.ACTIVE, datetime(2025, 1, 1, tzinfo=UTC))


def record_of(
    memory_id: int,
    embedding: Vector,
    *,
    namespace: str = "user:alice",
    key: str | None = None,
    memory_type: str = "semantic",
    metadata: Mapping[str, Any] | None = None,
    facts: Sequence[str] | None = None,
    trust: float = 0.5,
    words: Sequence[str] = ("some", "words"),
    about: Mapping[str, str | int] | None = None,
) -> VectorRecord:
    """A record as the indexer would write it; its id is made of the namespace and the key."""
    name = f"key {memory_id}" if key is None else key
    return VectorRecord(
        id=str(uuid5(NAMESPACE_URL, f"{namespace}\n{name}")),
        memory_id=memory_id,
        embedding=embedding,
        facts=tuple(facts_of(namespace, memory_type, metadata or {}) if facts is None else facts),
        trust=trust,
        words=tuple(words),
        about={"namespace": namespace, "key": name, "version": 1} if about is None else about,
    )


def some_records(count: int, *, around: "Vector | None" = None) -> list[VectorRecord]:
    """Records with random vectors, and memory ids from 0."""
    found = vectors(count, seed=0)
    if around is not None:
        found = lengthened(found * 0.1 + around)
    return [record_of(number, vector) for number, vector in enumerate(found)]


def vectors(count: int, *, seed: int, dimension: int = _DIMENSION) -> Vector:
    """Random directions, always the same for a seed."""
    return lengthened(np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32))


def lengthened(found: Vector) -> Vector:
    """The same directions with length 1."""
    return found / np.linalg.norm(found, axis=-1, keepdims=True)


def axis(number: int, dimension: int = _DIMENSION) -> Vector:
    """The direction in which only one number is not 0."""
    return np.eye(dimension, dtype=np.float32)[number]


def where(written: Mapping[str, Any]) -> FactFilter:
    """A metadata filter as a condition on facts."""
    return filter_for([""], (), parse(written))


def ids_found(store: VectorMemory, condition: FactFilter, *, min_trust: float = 0.0) -> set[int]:
    """Every memory that meets the condition; none may come twice."""
    found = [match.memory_id for match in store.query(VectorQuery(axis(0), 1000, condition, min_trust))]
    assert len(found) == len(set(found))
    return set(found)


def exact(records: Sequence[VectorRecord], question: Vector, condition: FactFilter, limit: int) -> set[int]:
    """The memories that an exact search finds."""
    matching = [record for record in records if accepts(condition, record.facts)]
    matching.sort(key=lambda record: -float(record.embedding @ question))
    return {record.memory_id for record in matching[:limit]}


def pages(store: VectorMemory, size: int) -> list[tuple[str, int]]:
    """Everything that the store lists, read in pages."""
    listed: list[tuple[str, int]] = []
    while page := store.listing(listed[-1][0] if listed else None, size):
        assert len(page) <= size
        listed += page
    return listed


def random_condition(chance: random.Random, facts: Sequence[str], depth: int) -> FactFilter:
    """Any condition on these facts."""
    kind = chance.randrange(3) if depth else 0
    if kind == 0:
        return AnyOf(tuple(chance.sample(facts, chance.randrange(4))))
    if kind == 1:
        return Not(random_condition(chance, facts, depth - 1))
    parts = tuple(random_condition(chance, facts, depth - 1) for _ in range(chance.randrange(4)))
    return Joined(chance.random() < 0.5, parts)


def every_call(store: VectorMemory) -> list[Callable[[], object]]:
    """Each method of a store, called with something."""
    return [
        lambda: store.store([record_of(1, axis(0))]),
        lambda: store.query(VectorQuery(axis(0), 1, EVERY_FACT)),
        lambda: store.delete([record_of(1, axis(0)).id]),
        lambda: store.listing(None, 1),
        store.describe,
        store.drop,
    ]
