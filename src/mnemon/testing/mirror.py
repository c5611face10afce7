"""What every mirror of vectors promises: the conformance suite of `ports.VectorMirror`."""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from mnemon.errors import DimensionMismatch
from mnemon.filters import parse
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Space
from mnemon.ports import Scope, Transaction, Vector, VectorRow
from mnemon.sql import Query
from mnemon.testing.crowds import Crowd
from mnemon.testing.handles import parts_of
from mnemon.testing.planting import COLOURED, EVERYWHERE, FILTERS, Garden, Seed
from mnemon.testing.suite import Suite

_DIMENSION = 24
_CLOSE = 1e-5  # stores reckon with 32-bit floats

_COPY = Query(
    "copy",
    "INSERT INTO memory_vectors (memory_id, space_id, embedding) "
    "SELECT :target, space_id, embedding FROM memory_vectors WHERE space_id = :space_id AND memory_id = :source",
)


def towards(*weights: float) -> Vector:
    """A vector of length 1 whose first parts stand in this relation."""
    vector = np.zeros(_DIMENSION, np.float32)
    vector[: len(weights)] = weights
    return vector / np.float32(np.linalg.norm(vector))


def scattered(count: int, seed: int) -> Vector:
    """Vectors of length 1 that lie in a few heaps, as those of texts do."""
    chance = np.random.default_rng(seed)
    heaps = chance.normal(size=(12, _DIMENSION))
    vectors = heaps[chance.integers(0, 12, count)] + 0.7 * chance.normal(size=(count, _DIMENSION))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


class VectorMirrorSuite(Suite):
    """Live memories are found by their vectors, in scope, as they stand now."""

    @pytest.fixture
    def garden(self, memory: HybridMemoryService) -> Garden:
        """Memories behind the service's back, with words and vectors of the test's own."""
        parts = parts_of(memory)
        return Garden(parts.store, parts.index(parts.store, parts.runner))

    async def plant_all(self, garden: Garden, space: Space, vectors: Vector, begin: int = 0) -> list[int]:
        """Many memories of ten users, every third of them episodic, every seventh doubtful."""
        seeds = [
            Seed(
                f"user:u{number % 10}", f"k{number}", vector, {"number": number, "rest": number % 50},
                "semantic" if number % 3 else "episodic", 1.0 if number % 7 else 0.2,
            )
            for number, vector in enumerate(vectors, begin)
        ]  # fmt: skip
        return await garden.sow(space, seeds)

    # -- finding

    async def test_the_nearest_come_first_with_their_cosines(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        near = await garden.plant("user:a", "near", vectors={space.id: towards(1, 0.1)})
        far = await garden.plant("user:a", "far", vectors={space.id: towards(0, 1)})
        opposite = await garden.plant("user:a", "opposite", vectors={space.id: towards(-1)})

        found = await garden.indexes.vectors.search(space, towards(1), EVERYWHERE, 10)
        assert [match.memory_id for match in found] == [near, far, opposite]
        assert [match.score for match in found] == pytest.approx([1 / np.sqrt(1.01), 0, -1], abs=_CLOSE)
        assert await garden.nearest(space, towards(0.1, 1), limit=1) == [far]

    async def test_where_nothing_is_nothing_is_found(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        assert await garden.nearest(space, towards(1)) == []
        await garden.plant("user:a", "k", vectors={space.id: towards(1)})
        await garden.plant("user:a", "without")
        assert await garden.nearest(space, towards(1), limit=0) == []
        assert await garden.indexes.vectors.search(space, towards(1), Scope(()), 10) == []
        assert await garden.nearest(space, towards(1), "user:b") == []
        assert len(await garden.nearest(space, towards(1))) == 1

    async def test_of_those_as_near_the_older_comes_first(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        ids = [await garden.plant("user:a", str(n), vectors={space.id: towards(1, 2, 3)}) for n in range(20)]
        assert await garden.nearest(space, towards(3, 2, 1)) == ids
        assert await garden.nearest(space, towards(3, 2, 1), limit=6) == ids[:6]

    async def test_a_vector_of_another_space_is_refused(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        await garden.plant("user:a", "k", vectors={space.id: towards(1)})
        wrong = np.ones(_DIMENSION + 1, np.float32)
        with pytest.raises(DimensionMismatch, match=f"model 1 .{_DIMENSION} dimensions"):
            await garden.nearest(space, wrong)
        with pytest.raises(DimensionMismatch):
            await garden.indexes.vectors.similarity(space, wrong, [1])

    async def test_spaces_do_not_mix(self, garden: Garden) -> None:
        small, other = await garden.space(_DIMENSION, "one"), await garden.space(3, "two")
        flat = np.array([0, 0, 1], np.float32)
        both = await garden.plant("user:a", "both", vectors={small.id: towards(1), other.id: flat})
        only = await garden.plant("user:a", "only", vectors={small.id: towards(0, 1)})

        assert await garden.nearest(small, towards(1)) == [both, only]
        assert await garden.nearest(other, flat) == [both]
        assert await garden.indexes.vectors.similarity(other, flat, [both, only]) == pytest.approx({both: 1})

    # -- scope

    async def test_a_prefix_means_whole_segments(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        places = ["app:x", "user:a", "user:al", "user:al-x", "user:al:x", "user:al:x:y", "user:alice", "user:alice:x"]
        ids = {await garden.plant(place, "k", vectors={space.id: towards(1)}): place for place in places}

        async def found(*prefixes: str) -> list[str]:
            return [ids[each] for each in await garden.nearest(space, towards(1), *prefixes)]

        assert await found("user:al") == ["user:al", "user:al:x", "user:al:x:y"]
        assert await found("user:alice") == ["user:alice", "user:alice:x"]
        assert await found("user:ali") == []
        assert await found("user") == places[1:]
        assert await found("app:x", "user:al:x") == ["app:x", "user:al:x", "user:al:x:y"]
        assert await found("") == places

    async def test_types_trust_and_filters_narrow_the_scope(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        ids: dict[int, str] = {}
        for key, about in COLOURED.items():
            kind = "episodic" if key == "blue" else "semantic"
            trust = 0.3 if key == "both" else 0.9
            vectors = {space.id: towards(1)}
            ids[await garden.plant("user:a", key, vectors=vectors, metadata=about, memory_type=kind, trust=trust)] = key

        async def found(**scope: Any) -> set[str]:
            return {ids[each] for each in await garden.nearest(space, towards(1), "user:a", **scope)}

        assert await found(types=("episodic",)) == {"blue"}
        assert await found(types=("episodic", "semantic")) == set(COLOURED)
        assert await found(types=("procedural",)) == set()
        assert await found(min_trust=0.3) == set(COLOURED)
        assert await found(min_trust=0.5) == set(COLOURED) - {"both"}
        for where, expected in FILTERS:
            assert await found(where=parse(where)) == expected, where

    async def test_what_few_memories_meet_is_found_however_far(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        ids = await self.plant_all(garden, space, scattered(700, 1))
        for number in (0, 333, 699):
            where = parse({"number": number})
            for vector in scattered(5, 2):
                assert await garden.nearest(space, vector, where=where, limit=10) == [ids[number]]
                assert await garden.nearest(space, vector, f"user:u{number % 10}", where=where, limit=3) == [
                    ids[number]
                ]
                assert await garden.nearest(space, vector, f"user:u{(number + 1) % 10}", where=where) == []

    async def test_the_answers_are_those_of_an_exact_search(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        vectors = scattered(2000, 3)
        ids = await self.plant_all(garden, space, vectors)
        scopes: list[tuple[Scope, Sequence[int]]] = [
            (EVERYWHERE, range(2000)),
            (Scope(("user:u3",)), range(3, 2000, 10)),
            (Scope(("user:u1", "user:u7")), [n for n in range(2000) if n % 10 in (1, 7)]),
            (Scope(("",), types=("episodic",)), range(0, 2000, 3)),
            (Scope(("",), min_trust=0.5), [n for n in range(2000) if n % 7]),
            (Scope(("user",), where=parse({"rest": 49})), range(49, 2000, 50)),
            (Scope(("user:u2",), ("semantic",), 0.5, parse({"number": {"gte": 1000}})),
             [n for n in range(1002, 2000, 10) if n % 3 and n % 7]),
        ]  # fmt: skip
        for question in scattered(20, 4):
            for scope, inside in scopes:
                nearest = sorted(inside, key=lambda n: -float(vectors[n] @ question))[:10]
                found = await garden.indexes.vectors.search(space, question, scope, 10)
                assert [match.memory_id for match in found] == [ids[n] for n in nearest], scope
                scores = [float(vectors[n] @ question) for n in nearest]
                assert [match.score for match in found] == pytest.approx(scores, abs=_CLOSE)

    # -- what has changed

    async def test_only_the_current_version_is_found(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        old = await garden.plant("user:a", "k", vectors={space.id: towards(1)})
        assert await garden.nearest(space, towards(1)) == [old]
        new = await garden.plant("user:a", "k", vectors={space.id: towards(0, 1)})
        assert await garden.nearest(space, towards(1)) == [new]

        await garden.plant("user:a", "k")  # which is not embedded yet
        assert await garden.nearest(space, towards(1)) == []
        assert await garden.indexes.vectors.similarity(space, towards(1), [old, new]) == pytest.approx({old: 1, new: 0})

    async def test_what_is_deleted_is_not_found_until_it_is_back(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        for _ in range(2):
            planted = await garden.plant("user:a", "k", vectors={space.id: towards(1)})
            assert await garden.nearest(space, towards(1)) == [planted]
            await garden.uproot("user:a", "k")
            assert await garden.nearest(space, towards(1)) == []

    async def test_what_is_purged_is_gone(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        kept = await garden.plant("user:a", "kept", vectors={space.id: towards(0, 1)})
        ids = [await garden.plant("user:a", "k", vectors={space.id: towards(1)}) for _ in range(3)]
        assert await garden.nearest(space, towards(1)) == [ids[-1], kept]
        await garden.burn("user:a", "k")

        assert await garden.nearest(space, towards(1)) == [kept]
        assert await garden.indexes.vectors.similarity(space, towards(1), ids) == {}
        assert list(await garden.indexes.vectors.vectors_of(space, [*ids, kept])) == [kept]

    async def test_what_was_rolled_back_is_not_found(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        kept = await garden.plant("user:a", "k", vectors={space.id: towards(0, 1)})

        async def unit(tx: Transaction) -> None:
            await garden.planting(tx, "user:a", "k", vectors={space.id: towards(1)})
            await garden.planting(tx, "user:a", "lost", vectors={space.id: towards(1)})
            raise RuntimeError("no")

        for _ in range(2):
            with pytest.raises(RuntimeError, match="no"):
                await garden.store.write(unit)
            assert await garden.nearest(space, towards(1)) == [kept]

    async def test_what_is_embedded_later_is_found_at_once(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        first = await garden.plant("user:a", "first", vectors={space.id: towards(1)})
        later = await garden.plant("user:a", "later")
        assert await garden.nearest(space, towards(1)) == [first]

        row = VectorRow(later, space.id, "user:a", towards(1, 0.1))
        for _ in range(2):
            await garden.store.write(lambda tx: garden.indexes.vectors.put(tx, [row]))
            assert await garden.nearest(space, towards(1)) == [first, later]
        [kept] = (await garden.indexes.vectors.vectors_of(space, [later])).values()
        assert np.array_equal(kept, row.embedding)

    async def test_copied_rows_are_found_at_once(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        source = await garden.plant("user:a", "source", vectors={space.id: towards(1)})
        target = await garden.plant("user:a", "target")
        assert await garden.nearest(space, towards(1)) == [source]
        params = {"source": source, "target": target, "space_id": space.id}
        await garden.store.write(lambda tx: tx.execute(_COPY, params))
        assert await garden.nearest(space, towards(1)) == [source, target]

    async def test_many_write_and_ask_at_once(self, garden: Garden, crowd: Crowd) -> None:
        space = await garden.space(_DIMENSION)
        await self.plant_all(garden, space, scattered(300, 5))
        final: dict[int, int] = {}

        async def write(number: int) -> None:
            for version, vector in enumerate(scattered(6, 100 + number)):
                planted = await garden.plant("user:new", f"k{number}", vectors={space.id: vector})
                found = await garden.nearest(space, vector, "user:new", limit=8)
                assert found[0] == planted, version
                final[number] = planted

        async def ask(seed: int) -> None:
            for vector in scattered(10, seed):
                assert len(await garden.nearest(space, vector, "user", limit=20)) == 20

        works = [*(partial(write, number) for number in range(6)), *(partial(ask, seed) for seed in range(4))]
        random.Random(0).shuffle(works)
        await crowd.gather(works)
        assert set(await garden.nearest(space, towards(1), "user:new")) == set(final.values())

    # -- what is asked by id

    async def test_vectors_come_back_as_they_were(self, garden: Garden) -> None:
        space = await garden.space(_DIMENSION)
        vectors = scattered(450, 6)
        ids = await self.plant_all(garden, space, vectors)
        found = await garden.indexes.vectors.vectors_of(space, [*ids, max(ids) + 1])
        assert set(found) == set(ids)
        assert all(np.array_equal(found[each], vector) for each, vector in zip(ids, vectors, strict=True))
        similar = await garden.indexes.vectors.similarity(space, vectors[0], [*ids, max(ids) + 1])
        assert similar == pytest.approx(dict(zip(ids, (vectors @ vectors[0]).tolist(), strict=True)), abs=_CLOSE)
        assert await garden.indexes.vectors.vectors_of(space, []) == {}
        assert await garden.indexes.vectors.similarity(space, vectors[0], []) == {}

    # -- preparing

    async def test_to_prepare_again_and_at_once_is_the_same(self, garden: Garden, crowd: Crowd) -> None:
        space = await garden.space(_DIMENSION)
        ids = await self.plant_all(garden, space, scattered(50, 7))
        await crowd.gather(partial(garden.indexes.vectors.prepare, space) for _ in range(5))
        assert sorted(await garden.nearest(space, towards(1))) == ids
