"""Vectors that callers bring: each belongs to a memory, and is found whichever store is asked."""

from typing import Any

import numpy as np
import pytest

from mnemon.errors import (
    AccessDenied,
    DimensionMismatch,
    EmbedderUnavailable,
    InvalidIdentifier,
    InvalidInput,
    InvalidNamespace,
    InvalidSettings,
    MemoryNotFound,
)
from mnemon.model import EmbeddingModel, Principal, VectorDraft
from mnemon.testing import ManualClock
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.suite import refused
from tests.indexing.rig import Rig, rigged

SIZE = 4


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder(SIZE)


def axis(number: int, length: float = 1.0) -> list[float]:
    return [length if place == number else 0.0 for place in range(SIZE)]


async def found(rig: Rig, embedding: Any, **options: Any) -> list[str]:
    return [match.id for match in await rig.vectors.query(embedding, **options)]


# --------------------------------------------------------------------------------------------------------- storing


async def test_a_vector_is_a_memory_that_is_found_by_it(rig: Rig) -> None:
    stored = await rig.vectors.store("v1", axis(0, 5.0), {"kind": "logo"}, text="a red circle", actor="painter")
    await rig.vectors.store("v2", axis(1))

    matches = await rig.vectors.query([0.9, 0.1, 0, 0], top_k=5)
    assert [(match.id, match.namespace, match.version) for match in matches] == [
        ("v1", "app:vectors", 1), ("v2", "app:vectors", 1),
    ]  # fmt: skip
    assert matches.served_by == "first"
    assert matches[0].score == pytest.approx(0.9 / np.sqrt(0.82))
    assert (matches[0].value, matches[0].metadata, matches[0].memory_id) == (
        "a red circle",
        {"kind": "logo"},
        stored.id,
    )
    memory = await rig.memories.get_memory("app:vectors", "v1")
    assert memory == stored
    assert memory is not None
    assert (memory.value, memory.created_by) == ("a red circle", "painter")
    assert await rig.by_words("circle") == ["v1"]


async def test_the_vector_is_the_caller_s_and_stays_it(rig: Rig, embedder: FakeEmbedder) -> None:
    await rig.space()
    await rig.vectors.store("v1", axis(2), text="a red circle")
    await rig.work()

    assert embedder.texts == []
    assert (await rig.vectors.query(axis(2)))[0].score == pytest.approx(1.0)


FORMS = {
    "tuple": (3, 0, 4, 0),
    "float64": np.array([3, 0, 4, 0], np.float64),
    "int32": np.array([3, 0, 4, 0], np.int32),
    "large": np.array([1.5e38, 0, 2e38, 0], np.float32),
    "small": [3e-300, 0, 4e-300, 0],
}


@pytest.mark.parametrize("embedding", FORMS.values(), ids=FORMS)
async def test_numbers_come_in_many_forms(rig: Rig, embedding: Any) -> None:
    await rig.vectors.store("v1", embedding)
    assert (await rig.vectors.query([0.6, 0, 0.8, 0]))[0].score == pytest.approx(1.0)


async def test_to_store_it_again_changes_nothing_unless_it_is_another(rig: Rig) -> None:
    await rig.vectors.store("v1", axis(0), {"a": 1})
    assert (await rig.vectors.store("v1", axis(0, 2.0), {"a": 1})).version == 1
    assert (await rig.vectors.store("v1", axis(1), {"a": 1})).version == 2
    assert (await rig.vectors.store("v1", axis(1), {"a": 2})).version == 3
    await rig.work()

    [match] = await rig.vectors.query(axis(1))
    assert (match.id, match.version, match.score) == ("v1", 3, pytest.approx(1.0))


async def test_many_are_stored_together_or_not_at_all(rig: Rig) -> None:
    drafts = [VectorDraft(f"v{number}", axis(number % SIZE), {"n": number}) for number in range(250)]
    stored = await rig.vectors.store_many(drafts)
    assert [memory.key for memory in stored] == [draft.id for draft in drafts]
    assert len(await found(rig, axis(0), top_k=300)) == 250

    async with refused(rig.store, DimensionMismatch):
        await rig.vectors.store_many([VectorDraft("w1", axis(0)), VectorDraft("w2", [1.0])])
    async with refused(rig.store, InvalidInput, "same namespace and id"):
        await rig.vectors.store_many([VectorDraft("w1", axis(0)), VectorDraft("w1", axis(1))])
    assert await rig.vectors.store_many([]) == []


async def test_vectors_are_deleted_with_their_memories(rig: Rig) -> None:
    await rig.vectors.store("v1", axis(0))
    await rig.vectors.store("v1", axis(0), namespace="user:alice")
    await rig.work()
    await rig.vectors.delete("v1")
    assert [m.namespace for m in await rig.vectors.query(axis(0))] == ["user:alice"]
    await rig.work()
    assert [m.namespace for m in await rig.vectors.query(axis(0))] == ["user:alice"]
    with pytest.raises(MemoryNotFound):
        await rig.vectors.delete("v1")


BAD = {
    "short": ([1.0, 2.0, 3.0], DimensionMismatch, r"3 dimensions, and the database's are of fake 1 \(4 dimensions\)"),
    "long": ([1.0] * 5, DimensionMismatch, "5 dimensions"),
    "empty": ([], InvalidInput, "0 dimensions|numbers"),
    "nan": ([1.0, float("nan"), 0, 0], InvalidInput, "NaN or infinity"),
    "infinite": ([1.0, float("inf"), 0, 0], InvalidInput, "NaN or infinity"),
    "zero": ([0, 0, 0, 0], InvalidInput, "all zeros"),
    "text": ("1234", InvalidInput, "numbers, not str"),
    "texts": (["1", "2", "3", "4"], InvalidInput, "numbers, not list"),
    "matrix": ([[1.0, 0, 0, 0]], InvalidInput, "numbers"),
    "ragged": ([[1.0], [1.0, 2.0]], InvalidInput, "numbers"),
    "nothing": (None, InvalidInput, "numbers, not NoneType"),
    "truths": ([True, False, False, False], InvalidInput, "numbers"),
}


@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_vector_is_refused(rig: Rig, name: str) -> None:
    embedding, error, said = BAD[name]
    await rig.space()
    async with refused(rig.store, error, said):
        await rig.vectors.store("v1", embedding)
    with pytest.raises(error, match=said):
        await rig.vectors.query(embedding)


async def test_ids_and_namespaces_are_those_of_memories(rig: Rig) -> None:
    strange: Any = ["v1"]
    await rig.space()
    for bad in ("", "a\nb", strange, 5):
        async with refused(rig.store, InvalidIdentifier):
            await rig.vectors.store(bad, axis(0))
    for bad in ("nowhere", "", strange):
        async with refused(rig.store, InvalidNamespace):
            await rig.vectors.store("v1", axis(0), namespace=bad)
    with pytest.raises(InvalidNamespace):
        await rig.vectors.query(axis(0), namespaces=["nowhere"])


# ---------------------------------------------------------------------------------------------------------- finding


async def test_a_question_can_be_narrowed(rig: Rig) -> None:
    for number in range(12):
        await rig.vectors.store(
            f"v{number}", [1.0, number / 10, 0, 0], {"n": number, "even": number % 2 == 0},
            namespace=f"user:{'ab'[number % 3 == 0]}",
        )  # fmt: skip
    await rig.memories.add_memory("user:a", "note", "a note", memory_type="episodic")

    assert await found(rig, axis(0), top_k=2) == ["v0", "v1"]
    assert await found(rig, axis(0), filter={"n": {"gte": 4}, "even": True}, namespaces="user:a", top_k=3) == [
        "v4",
        "v8",
        "v10",
    ]
    assert await found(rig, axis(0), namespaces=["user:b", "user"], top_k=1) == ["v0"]
    assert await found(rig, axis(0), types=["episodic"]) == ["note"]
    assert await found(rig, axis(0), min_trust=1.0, top_k=1, text="anything") == ["v0"]
    with pytest.raises(InvalidInput, match="min_trust"):
        await rig.vectors.query(axis(0), min_trust=2)
    with pytest.raises(InvalidInput, match="limit"):
        await rig.vectors.query(axis(0), top_k=0)
    with pytest.raises(InvalidInput, match="at least one namespace"):
        await rig.vectors.query(axis(0), namespaces=[])


async def test_matches_are_a_sequence(rig: Rig) -> None:
    await rig.vectors.store_many([VectorDraft("v1", axis(0)), VectorDraft("v2", axis(1))])
    matches = await rig.vectors.query(axis(0))
    assert len(matches) == 2
    assert [match.id for match in matches[:1]] == ["v1"]
    assert matches[-1].id == "v2"


async def test_grants_hold(rig: Rig) -> None:
    """Given a principal with some grants, when they store, ask and delete, then nothing else is touched."""
    await rig.vectors.store("v1", axis(0), namespace="user:alice")
    await rig.vectors.store("v2", axis(0), namespace="user:bob")
    await rig.work()
    alice = rig.vectors_of(Principal("alice", {"user:alice": "write", "app:shared": "read"}))

    assert [match.id for match in await alice.query(axis(0))] == ["v1"]
    assert [match.id for match in await alice.query(axis(0), namespaces=["user"])] == ["v1"]
    with pytest.raises(AccessDenied):
        await alice.query(axis(0), namespaces="user:bob")
    assert (await alice.store("v3", axis(1), namespace="user:alice", actor="bob")).created_by == "alice"
    async with refused(rig.store, AccessDenied):
        await alice.store("v3", axis(1), namespace="app:shared")
    async with refused(rig.store, AccessDenied):
        await alice.delete("v2", namespace="user:bob")
    with pytest.raises(AccessDenied):
        await alice.describe()


async def test_every_store_is_described(rig: Rig) -> None:
    await rig.vectors.store("v1", axis(0))
    await rig.work()
    await rig.vectors.store("v2", axis(0))

    first, mirror = await rig.vectors.describe()
    assert (first.name, first.vectors, first.dimension, first.lag, first.is_up) == ("first", 1, SIZE, 1, True)
    assert (mirror.name, mirror.vectors, mirror.lag, mirror.is_up) == ("mirror", 2, 0, True)
    rig.stores["first"].go_down()
    down, _ = await rig.vectors.describe()
    assert (down.name, down.is_up, down.lag, down.dimension) == ("first", False, 1, SIZE)


async def test_only_what_is_live_is_counted_and_no_embedder_is_needed(rig: Rig) -> None:
    assert await rig.vectors.describe() == []
    for key in ("a", "b", "c"):
        await rig.memories.add_memory("user:alice", key, f"text {key}")
    await rig.memories.update_memory("user:alice", "a", "another text")
    await rig.memories.delete_memory("user:alice", "b")
    await rig.memories.purge_memory("user:alice", "c")
    await rig.work()
    for embedder in ("fake", "none", "given:mine:7"):
        first, mirror = await rig.over(rig.store, embedder=embedder).vectors.describe()
        assert (first.vectors, mirror.vectors, mirror.dimension) == (1, 1, SIZE)


async def test_without_an_embedder_there_are_no_vectors(backend: str, url: str, options: dict[str, str]) -> None:
    async with rigged(backend, url, **options) as rig:
        with pytest.raises(InvalidSettings, match="switched off"):
            await rig.vectors.store("v1", axis(0))


async def test_as_long_as_the_dimension_is_not_known_nothing_is_stored(rig: Rig, embedder: FakeEmbedder) -> None:
    embedder.model = EmbeddingModel("fake", "1", 0)  # as of a remote embedder, which tells it when it answers
    embedder.fail(times=2**30)
    async with refused(rig.store, EmbedderUnavailable, "dimension"):
        await rig.vectors.store("v1", axis(0))


async def test_a_model_of_one_s_own_needs_no_embedder(
    backend: str, url: str, options: dict[str, str], clock: ManualClock
) -> None:
    """Given vectors of a model that Mnemon does not run, when texts come too, then they hold up nothing."""
    async with rigged(backend, url, clock=clock, embedder="given:mine:3", **options) as rig:
        await rig.vectors.store("v1", [1, 0, 0])
        await rig.memories.add_memory("user:alice", "note", "only a text")
        await rig.work()
        assert await found(rig, [1, 1, 0]) == ["v1"]
        assert await rig.position_of("embeddings") == await rig.journal.position()
