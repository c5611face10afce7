"""The vectors of memories as rows of PostgreSQL, searched with pgvector: exactly, or by an index of the space's own."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from mnemon.backends.postgres.connection import Location
from mnemon.backends.postgres.hnsw import index_name, index_type, make_index
from mnemon.backends.vectorsearch import check_dimension, rounded
from mnemon.model import Match, Space
from mnemon.ports import Row, Runner, Scope, Store, Transaction, Vector, VectorRow
from mnemon.scopes import live_in
from mnemon.sql import Fragment, Query, params_of

_PUT = Query(
    "put_vector",
    "INSERT INTO memory_vectors (space_id, memory_id, embedding) "
    "VALUES (:space_id, :memory_id, :embedding::vector) "
    "ON CONFLICT (space_id, memory_id) DO UPDATE SET embedding = excluded.embedding "
    "WHERE memory_vectors.embedding <> excluded.embedding",
)
_ERASE = Query(
    "erase_vectors", "DELETE FROM memory_vectors WHERE space_id IN (SELECT id FROM vector_spaces WHERE id > 0){where}"
)
_VECTORS_OF = Query(
    "vectors_of", "SELECT memory_id, vector_send(embedding) FROM memory_vectors WHERE space_id = :space_id{where}"
)
# Vectors have length 1, so that their cosine is their product, of which `<#>` is the negative.
_SIMILARITY = Query(
    "similarity",
    "SELECT memory_id, -(embedding <#> CAST(:vector AS vector)) FROM memory_vectors WHERE space_id = :space_id{where}",
)
_COUNT = Query(
    "count_in_scope",
    "SELECT COUNT(*) FROM (SELECT 1 FROM memory_entries WHERE memory_entries.id > 0{where} LIMIT :most) AS found",
)
_ESTIMATE = Query("estimate_vectors", "SELECT reltuples FROM pg_class WHERE oid = CAST('memory_vectors' AS regclass)")
_SAMPLE = Query(
    "sample_scope",
    "SELECT COUNT(*) FILTER (WHERE memory_entries.id > 0{where}), COUNT(*) "
    "FROM memory_entries TABLESAMPLE SYSTEM (CAST(:percent AS real))",
)
_EXACT = Query(
    "nearest_exactly",
    "SELECT memory_vectors.memory_id, -(memory_vectors.embedding <#> CAST(:vector AS vector)) AS cosine "
    "FROM memory_entries JOIN memory_vectors ON memory_vectors.memory_id = memory_entries.id "
    "WHERE memory_vectors.space_id = :space_id{where} ORDER BY cosine DESC, memory_vectors.memory_id LIMIT :limit",
)
# The id of the space and its dimension stand in the text, since the index is one for them alone. How thorough the
# search is, is set for this statement alone, before the index is looked into.
_INDEXED = Query(
    "nearest_by_index",
    """
    SELECT memory_vectors.memory_id, -(memory_vectors.embedding <#> CAST(:vector AS vector)) AS cosine
    FROM memory_vectors JOIN memory_entries ON memory_entries.id = memory_vectors.memory_id
    WHERE memory_vectors.space_id = {space} AND (
        SELECT set_config('hnsw.ef_search', :breadth, TRUE) || set_config('hnsw.max_scan_tuples', :most, TRUE)
    ) IS NOT NULL{where}
    ORDER BY CAST(memory_vectors.embedding AS {type}) <=> CAST(:vector AS {type}) LIMIT :limit
    """,
)
_HAS_INDEX = Query(
    "has_index", "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(:name) AND indisvalid AND indisready"
)

_SMALL = 10_000  # memories in scope: up to here looking at all of them is quicker than the index, and exact
_MOST_COUNTED = 50_000
# In between it depends on how many the index comes by until there are enough in scope: to find one takes it as long as
# to look at a dozen. To read what the metadata says, too, makes looking at one three times as dear.
_DEARER, _FILTERED = 18, 3
_SAMPLED = 3_000  # rows from which it is estimated how many meet a filter
_REMEMBERED = 5.0  # seconds for which the size of a scope is believed
_MOST_SIZES = 1000
_FEWEST_CANDIDATES, _MOST_CANDIDATES = 400, 1000  # that the graph's search keeps; pgvector allows no more
_FEWEST_VISITED = 20_000  # vectors that it looks at before it gives up


class _Size(NamedTuple):
    """About how many memories are in a scope, and how many vectors there are."""

    inside: int
    all: int

    def is_large(self, wide: int, scope: Scope) -> bool:
        """Whether the index finds so many sooner than looking at all does, and hardly misses one."""
        worth = self.inside * (1 if scope.where is None else _FILTERED)
        return worth > _SMALL and worth * worth > _DEARER * wide * self.all


class Observed:
    """What this process knows of the vectors: which spaces are prepared, and how large scopes were a moment ago."""

    def __init__(self) -> None:
        self.prepared: set[int] = set()
        self._sizes: dict[Scope, tuple[_Size, float]] = {}

    def size(self, scope: Scope) -> _Size | None:
        size, at = self._sizes.get(scope, (None, 0.0))
        return size if time.monotonic() - at < _REMEMBERED else None

    def measured(self, scope: Scope, size: _Size) -> None:
        if len(self._sizes) > _MOST_SIZES:
            self._sizes = {}
        self._sizes[scope] = size, time.monotonic()


class PostgresVectors:
    """Looks at every vector of a small scope, and asks the index of the space for a large one."""

    def __init__(self, store: Store, runner: Runner, location: Location, observed: Observed) -> None:
        self._store = store
        self._runner = runner
        self._location = location
        self._observed = observed

    async def prepare(self, space: Space) -> None:
        """Make the space's index without holding up writers; those who race for it wait for whoever is first."""
        if space.id in self._observed.prepared or not index_type(space):
            return
        if not await self._store.fetch(_HAS_INDEX, {"name": index_name(space)}):
            await self._runner.aside(lambda: make_index(self._location, space))
        self._observed.prepared.add(space.id)

    async def put(self, tx: Transaction, rows: Sequence[VectorRow]) -> None:
        await tx.execute_many(_PUT, [
            {"space_id": row.space_id, "memory_id": row.memory_id, "embedding": _written(row.embedding)} for row in rows
        ])  # fmt: skip

    async def erase(self, tx: Transaction, memory_ids: Sequence[int]) -> None:
        """Delete the vectors; `scrub` of the database then sees to their bytes."""
        these = _among(memory_ids)
        await tx.execute(_ERASE.where([these]), these.params)

    async def search(self, space: Space, vector: Vector, scope: Scope, limit: int) -> list[Match]:
        """The nearest in scope; of those as near, the oldest first."""
        check_dimension(space, vector)
        if limit < 1:
            return []
        rows: list[Row] = []
        wide = 12 * limit + 40  # the nearest may come after others: of so many, hardly one is missing
        if index_type(space) and (size := await self._size(scope)).is_large(wide, scope):
            rows = await self._by_index(space, vector, scope, wide, size)
        if len(rows) < wide:  # a small scope, or one of which the index finds too little
            rows = await self._exactly(space, vector, scope, limit)
        found = [Match(row[0], score) for row, score in zip(rows, rounded(row[1] for row in rows), strict=True)]
        return sorted(found, key=lambda match: (-match.score, match.memory_id))[:limit]

    async def _size(self, scope: Scope) -> _Size:
        size = self._observed.size(scope)
        if size is None:
            plain = replace(scope, where=None)
            size = await (self._count(scope) if scope == plain else self._sample(scope, await self._size(plain)))
            self._observed.measured(scope, size)
        return size

    async def _count(self, scope: Scope) -> _Size:
        """Beyond some ten thousand it is all that there is, as far as it matters."""
        conditions = live_in(scope, self._store.dialect)
        params = {"most": _MOST_COUNTED, **params_of(conditions)}
        [(inside,)] = await self._store.fetch(_COUNT.where(conditions), params)
        [(estimated,)] = await self._store.fetch(_ESTIMATE, {})
        total = max(inside, int(estimated))
        return _Size(inside if inside < _MOST_COUNTED else total, total)

    async def _sample(self, scope: Scope, plain: _Size) -> _Size:
        """What the metadata says would take long to ask all of a large scope."""
        if plain.inside <= _SMALL:
            return plain
        conditions = live_in(scope, self._store.dialect)
        params = {"percent": min(100.0, 100.0 * _SAMPLED / plain.all), **params_of(conditions)}
        [(found, seen)] = await self._store.fetch(_SAMPLE.where(conditions), params)
        return _Size(plain.all * found // max(seen, 1), plain.all)

    async def _exactly(self, space: Space, vector: Vector, scope: Scope, limit: int) -> list[Row]:
        conditions = live_in(scope, self._store.dialect)
        params = {"space_id": space.id, "vector": _written(vector), "limit": limit, **params_of(conditions)}
        return await self._store.fetch(_EXACT.where(conditions), params)

    async def _by_index(self, space: Space, vector: Vector, scope: Scope, limit: int, size: _Size) -> list[Row]:
        conditions = live_in(scope, self._store.dialect)
        query = _INDEXED.fill(space=str(space.id), type=index_type(space) or "").where(conditions)
        params = {
            "vector": _written(vector), "limit": limit,
            "breadth": str(min(max(_FEWEST_CANDIDATES, limit), _MOST_CANDIDATES)),
            "most": str(max(_FEWEST_VISITED, size.all // 5)), **params_of(conditions),
        }  # fmt: skip
        return await self._store.fetch(query, params)

    async def similarity(self, space: Space, vector: Vector, memory_ids: Sequence[int]) -> dict[int, float]:
        check_dimension(space, vector)
        these = _among(memory_ids)
        params = {"space_id": space.id, "vector": _written(vector), **these.params}
        return {row[0]: row[1] for row in await self._store.fetch(_SIMILARITY.where([these]), params)}

    async def vectors_of(self, space: Space, memory_ids: Sequence[int]) -> dict[int, Vector]:
        these = _among(memory_ids)
        rows = await self._store.fetch(_VECTORS_OF.where([these]), {"space_id": space.id, **these.params})
        return {row[0]: _read(row[1]) for row in rows}


def _among(memory_ids: Sequence[int]) -> Fragment:
    return Fragment("memory_id = ANY(CAST(:memory_ids AS bigint[]))", {"memory_ids": list(memory_ids)})


def _written(vector: Vector) -> str:
    """The vector as pgvector reads it, with as many digits as tell it from any other."""
    return orjson.dumps(vector.astype("f4", copy=False), option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _read(sent: bytes) -> Vector:
    """The vector as pgvector sends it: its dimension, two bytes for later, and floats with the highest byte first."""
    import numpy as np  # noqa: PLC0415 - loaded when something is searched, not when a database is opened

    return np.frombuffer(sent, ">f4", offset=4).astype(np.float32)
