"""The vectors of memories as rows of SQLite, and an index of them in this process that keeps up with the rows.

What was added is known by the rows' numbers, and what was taken away by the journal; so other processes may write too.
To read all vectors takes a while. A program that asks only little, about small scopes, is answered from the rows.
"""

import json
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mnemon.backends.sqlite.engine import Engine
from mnemon.backends.vectorsearch import DIGITS, check_dimension
from mnemon.model import Match, Space
from mnemon.ports import Row, Runner, Scope, Store, Transaction, Vector, VectorRow
from mnemon.scopes import is_plain, live_in
from mnemon.sql import Fragment, Query, params_of

if TYPE_CHECKING:  # slow to import, and needed only once something is embedded
    import numpy as np
    import numpy.typing as npt

    from mnemon.vectorindex import VectorIndex

_PUT = Query(
    "put_vector",
    "INSERT INTO memory_vectors (space_id, memory_id, embedding) VALUES (:space_id, :memory_id, :embedding) "
    "ON CONFLICT (space_id, memory_id) DO UPDATE SET embedding = excluded.embedding",
)
_ERASE = Query(
    "erase_vectors",
    "UPDATE memory_vectors SET embedding = zeroblob(length(embedding)) "
    "WHERE space_id IN (SELECT id FROM vector_spaces WHERE id > 0){where}",
)
_VECTORS_OF = Query("vectors_of", "SELECT memory_id, embedding FROM memory_vectors WHERE space_id = :space_id{where}")
_LATEST = Query(
    "latest_vector",
    "SELECT (SELECT number FROM memory_vectors WHERE number > 0 ORDER BY number DESC LIMIT 1), "
    "(SELECT position FROM journal WHERE position > 0 ORDER BY position DESC LIMIT 1)",
)
_ADDED = Query(
    "added_vectors",
    "SELECT memory_vectors.number, memory_vectors.memory_id, memory_entries.namespace, memory_vectors.embedding "
    "FROM memory_vectors CROSS JOIN memory_entries ON memory_entries.id = memory_vectors.memory_id "
    "WHERE memory_vectors.number > :after AND +memory_vectors.space_id = :space_id "
    "AND memory_entries.is_current = TRUE AND memory_entries.is_deleted = FALSE "
    "ORDER BY memory_vectors.number LIMIT :limit",
)
# A version is retired by the next one. One that was purged has lost its place, but is known by that.
_RETIRED = Query(
    "retired_versions",
    "SELECT memory_entries.id FROM journal CROSS JOIN memory_entries "
    "ON memory_entries.namespace = journal.namespace AND memory_entries.key = journal.entity_id "
    "AND memory_entries.version = journal.version - 1 "
    "WHERE journal.entity = 'memory' AND journal.entity NOT IN ('event', 'state') AND journal.position > :after",
)
# One that was encrypted in place stays where it is, and has no vector any more.
_SEALED = Query(
    "sealed_versions",
    "SELECT memory_entries.id FROM journal CROSS JOIN memory_entries "
    "ON memory_entries.namespace = journal.namespace AND memory_entries.key = journal.entity_id "
    "AND memory_entries.version = journal.version "
    "WHERE journal.entity = 'memory' AND journal.entity NOT IN ('event', 'state') AND journal.position > :after "
    "AND journal.operation = 'seal'",
)
_HAS_PURGES = Query(
    "has_purges",
    "SELECT 1 FROM journal WHERE entity = 'memory' AND entity NOT IN ('event', 'state') AND position > :after "
    "AND operation = 'purge' LIMIT 1",
)
_PURGED = Query("purged_versions", "SELECT id FROM memory_entries WHERE namespace = ''")
_IN_SCOPE = Query("in_scope", "SELECT memory_entries.id FROM memory_entries WHERE memory_entries.id > 0{where}")
_CHECKED = Query(
    "still_in_scope",
    "SELECT memory_entries.id FROM json_each(:listed) CROSS JOIN memory_entries ON memory_entries.id = json_each.value "
    "WHERE memory_entries.id > 0{where}",
)

_DIRECT = Query(
    "vectors_in_scope",
    "SELECT memory_entries.id, memory_vectors.embedding FROM memory_entries CROSS JOIN memory_vectors "
    "ON memory_vectors.space_id = :space_id AND memory_vectors.memory_id = memory_entries.id "
    "WHERE memory_entries.id > 0{where} LIMIT :most",
)

_MOST_SPACES = 3  # are held at the same time: while the model is changed there are two
_AT_ONCE = 20_000  # rows read into the index at a time
_SMALL = 2_000  # rows that are looked at one by one while there is no index
_FEW = 256  # changes that may be read without holding up an event loop
_QUICK = 20_000  # vectors that are searched in about a millisecond
_FEWEST = 64  # of the nearest are looked at, if a scope asks for what the index does not know
_MOST = 5_000  # of the nearest are looked at before all in scope are found
_ERASED = 0.5  # a vector that is shorter has been overwritten


class VectorCache:
    """The indexes that this process holds, one for each space that was searched; shared by all who use the file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._held: dict[int, HeldSpace] = {}
        self._lock = threading.Lock()

    def space(self, space: Space) -> "HeldSpace":
        """The index of a space; one that was not used for longest makes room."""
        with self._lock:
            held = self._held[space.id] = self._held.pop(space.id, None) or HeldSpace(self._engine, space)
            if len(self._held) > _MOST_SPACES:
                del self._held[next(iter(self._held))]
            return held


class HeldSpace:
    """The index of one space, and how far it has come."""

    def __init__(self, engine: Engine, space: Space) -> None:
        self._lock = threading.Lock()
        self._engine = engine
        self._space = space
        self._index: VectorIndex | None = None
        self._number = 0
        self._position = 0
        self._looked_at = 0

    @property
    def is_read(self) -> bool:
        return self._index is not None

    def is_worth_reading(self, rows: int) -> bool:
        """Whether the index was read, or so much was looked at without it that to read all rows is time well spent."""
        return self._index is not None or self._looked_at > rows // 2

    def look_at(self, rows: int) -> None:
        self._looked_at += rows

    @property
    def index(self) -> "VectorIndex":
        assert self._index is not None
        return self._index

    def lag(self, number: int, position: int) -> int | None:
        """How much has happened since; None if the index is not even there."""
        return None if self._index is None else max(0, number - self._number, position - self._position)

    async def catch_up(self, tx: Transaction, *, patient: bool) -> bool:
        """Read what has changed. Whether that was done: unless `patient`, not if another thread is at it."""
        if not self._lock.acquire(blocking=patient):
            return False
        try:
            number, position = _latest(await tx.fetch_all(_LATEST, {}))
            await self._read(tx)
            self._number, self._position = max(number, self._number), max(position, self._position)
        finally:
            self._lock.release()
        return True

    async def _read(self, tx: Transaction) -> None:
        from mnemon.vectorindex import VectorIndex  # noqa: PLC0415 - loads numpy

        index = VectorIndex(self._space.model.dimension) if self._index is None else self._index
        await self._add(tx, index)
        if self._index is not None:
            await self._remove(tx, index)
        self._index = index

    async def _add(self, tx: Transaction, index: "VectorIndex") -> None:
        after, more = self._number, True
        while more:
            params = {"after": after, "space_id": self._space.id, "limit": _AT_ONCE}
            rows = await tx.fetch_all(_ADDED, params)
            if rows:
                index.put([row[1] for row in rows], [row[2] for row in rows], _matrix([row[3] for row in rows]))
                after = rows[-1][0]
            more = len(rows) == _AT_ONCE

    async def _remove(self, tx: Transaction, index: "VectorIndex") -> None:
        since = {"after": self._position}
        rows = await tx.fetch_all(_RETIRED, since) + await tx.fetch_all(_SEALED, since)
        if await tx.fetch_all(_HAS_PURGES, since):
            rows += await tx.fetch_all(_PURGED, {})
        if rows:
            index.remove([row[0] for row in rows])

    def fetch(self, ids: "npt.NDArray[np.int64]") -> Vector:
        """The vectors of versions that are not held in memory; rows of NaN for those that are gone."""
        import numpy as np  # noqa: PLC0415 - loaded already

        query, params = _vectors_of(self._space, ids.tolist())
        found = dict(self._engine.fetch(query, params))  # pyright: ignore[reportArgumentType]
        gone = np.full(self._space.model.dimension, np.nan, "<f4").tobytes()
        return _matrix([found.get(each, gone) for each in ids.tolist()])


class SqliteVectors:
    """Searches the index in memory, and asks the database for what it does not know."""

    def __init__(self, store: Store, runner: Runner, cache: VectorCache) -> None:
        self._store = store
        self._runner = runner
        self._cache = cache

    async def prepare(self, space: Space) -> None:
        """Nothing is to be prepared: the index is read when it is first needed."""

    async def put(self, tx: Transaction, rows: Sequence[VectorRow]) -> None:
        await tx.execute_many(_PUT, [
            {"space_id": row.space_id, "memory_id": row.memory_id, "embedding": _bytes(row.embedding)} for row in rows
        ])  # fmt: skip

    async def erase(self, tx: Transaction, memory_ids: Sequence[int]) -> None:
        """Overwrite the vectors with zeros; the rows stay, as those of purged memories do."""
        these = _among("memory_id", memory_ids)
        await tx.execute(_ERASE.where([these]), these.params)

    async def search(self, space: Space, vector: Vector, scope: Scope, limit: int) -> list[Match]:
        """The nearest in scope; of those as near, the oldest first."""
        check_dimension(space, vector)
        if limit < 1:
            return []
        held = self._cache.space(space)
        search = Search(held, self._store, self._runner, vector, scope)
        latest = await self._latest()
        if not held.is_worth_reading(latest[0]):
            found = await search.without_index(space, limit)
            if found is not None:
                return found
        await self._catch_up(held, latest)
        return await search.best(limit)

    async def _latest(self) -> tuple[int, int]:
        return _latest(await self._store.fetch(_LATEST, {}))

    async def _catch_up(self, held: HeldSpace, latest: tuple[int, int]) -> None:
        """See to it that the index has everything up to a number and a position that were read before."""
        lag = held.lag(*latest)
        few = lag is not None and lag <= _FEW
        if lag == 0 or (few and await self._store.read(lambda tx: held.catch_up(tx, patient=False))):
            return
        await self._store.read(lambda tx: held.catch_up(tx, patient=True), long=True)

    async def similarity(self, space: Space, vector: Vector, memory_ids: Sequence[int]) -> dict[int, float]:
        check_dimension(space, vector)
        held, found = self._cache.space(space), dict[int, float]()
        if held.is_read:  # what it has of a version never changes
            scores = held.index.scores(memory_ids, vector, fetch=held.fetch).tolist()
            found = {each: score for each, score in zip(memory_ids, scores, strict=True) if not math.isnan(score)}
        others = await self.vectors_of(space, [each for each in memory_ids if each not in found])
        return found | {memory_id: float(each @ vector) for memory_id, each in others.items()}

    async def vectors_of(self, space: Space, memory_ids: Sequence[int]) -> dict[int, Vector]:
        if not memory_ids:
            return {}
        rows = await self._store.fetch(*_vectors_of(space, memory_ids))
        matrix = _matrix([row[1] for row in rows])
        return {row[0]: each for row, each in zip(rows, matrix, strict=True) if each @ each > _ERASED}


@dataclass(frozen=True, slots=True)
class Search:
    """One question put to the index. What the index does not know of a scope is asked from the database."""

    held: HeldSpace
    store: Store
    runner: Runner
    vector: Vector
    scope: Scope

    async def without_index(self, space: Space, limit: int) -> list[Match] | None:
        """The nearest by looking at all in scope; None if these are too many."""
        conditions = live_in(self.scope, self.store.dialect)
        query = _DIRECT.where(conditions)
        params = {"space_id": space.id, "most": _SMALL + 1, **params_of(conditions)}
        rows = await self.store.read(lambda tx: tx.fetch_all(query, params), long=True)
        self.held.look_at(len(rows))
        if len(rows) > _SMALL:
            return None
        if not rows:
            return []
        return _ordered([row[0] for row in rows], _matrix([row[1] for row in rows]) @ self.vector)[:limit]

    async def best(self, limit: int) -> list[Match]:
        """The nearest that are in scope at this moment.

        As long as enough of the nearest meet the scope, looking at these is much quicker than finding all that do.
        """
        if is_plain(self.scope):  # the index has followed the journal, and knows all that the scope asks for
            return await self._nearest(limit)
        wanted = max(4 * limit, _FEWEST)
        while wanted < _MOST:
            near = await self._nearest(wanted)
            found = await self._checked(near)
            if len(found) >= limit or len(near) < wanted:
                return found[:limit]
            wanted *= 8
        return await self._nearest(limit, await self._allowed())

    async def _nearest(self, count: int, allowed: Sequence[int] | None = None) -> list[Match]:
        index, prefixes = self.held.index, self.scope.prefixes

        def search() -> list[Match]:
            return _matches(*index.search(self.vector, prefixes, count, allowed=allowed, fetch=self.held.fetch))

        return search() if index.size(prefixes) <= _QUICK else await self.runner.aside(search)

    async def _checked(self, matches: Sequence[Match]) -> list[Match]:
        conditions = live_in(self.scope, self.store.dialect)
        params = {"listed": json.dumps([match.memory_id for match in matches]), **params_of(conditions)}
        rows = await self.store.fetch(_CHECKED.where(conditions), params)
        live = {row[0] for row in rows}
        return [match for match in matches if match.memory_id in live]

    async def _allowed(self) -> list[int]:
        """Every memory in scope."""
        conditions = live_in(self.scope, self.store.dialect)
        query, params = _IN_SCOPE.where(conditions), params_of(conditions)
        return [row[0] for row in await self.store.read(lambda tx: tx.fetch_all(query, params), long=True)]


def _ordered(ids: Sequence[int], scores: Vector) -> list[Match]:
    """The nearest first, and of those alike the oldest."""
    import numpy as np  # noqa: PLC0415 - loaded already

    return sorted(_matches(np.array(ids), scores), key=lambda match: (-match.score, match.memory_id))


def _matches(ids: "npt.NDArray[np.int64]", scores: Vector) -> list[Match]:
    """What the index found, as it is in order."""
    return list(map(Match, ids.tolist(), scores.astype("f8").round(DIGITS).tolist()))


def _latest(rows: Sequence[Row]) -> tuple[int, int]:
    [(number, position)] = rows
    return number or 0, position or 0


def _vectors_of(space: Space, memory_ids: Sequence[int]) -> tuple[Query, dict[str, Any]]:
    these = _among("memory_id", memory_ids)
    return _VECTORS_OF.where([these]), {"space_id": space.id, **these.params}


def _among(column: str, values: Sequence[int]) -> Fragment:
    """The condition that a column has one of any number of values."""
    return Fragment(f"{column} IN (SELECT value FROM json_each(:listed))", {"listed": json.dumps(list(values))})


def _bytes(vector: Vector) -> bytes:
    return vector.astype("<f4", copy=False).tobytes()


def _matrix(embeddings: Sequence[bytes]) -> Vector:
    import numpy as np  # noqa: PLC0415 - loaded when something is searched, not when a file is opened

    flat = np.frombuffer(b"".join(embeddings), "<f4")
    return flat.reshape(len(embeddings), -1) if embeddings else flat.reshape(0, 0)
