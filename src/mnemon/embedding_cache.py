"""Vectors that were made before, kept in the database by the digest of their text."""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mnemon.clock import Clock
from mnemon.errors import StoreError
from mnemon.model import Space
from mnemon.ports import Store, Transaction, Vector
from mnemon.sql import among, chunks, load

_SQL = load("embeddings")
_HOUR = 3_600_000_000
_STORED = np.dtype("<f4")  # what a vector is made of outside this process, whatever the machine
_MOST_DROPPED = 10_000


def digest_of(text: str) -> str:
    """What a text is known by in a cache."""
    return hashlib.sha256(text.encode()).hexdigest()


def to_bytes(vector: Vector) -> bytes:
    """A vector as it is stored: 32-bit floats, the lowest byte first."""
    return vector.astype(_STORED, copy=False).tobytes()


def from_bytes(stored: bytes, space: Space) -> "Vector | None":
    """A stored vector; None if it is not one of the space."""
    vector = np.frombuffer(stored, _STORED).astype(np.float32, copy=False) if len(stored) % 4 == 0 else None
    return vector if vector is not None and len(vector) == space.model.dimension else None


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """How many texts were found in the cache of vectors, and how many had to be embedded."""

    hits: int
    misses: int


class CacheCounts:
    """Counts hits and misses, on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = 0
        self._missed = 0

    def add(self, asked: int, missed: int) -> None:
        with self._lock:
            self._asked += asked
            self._missed += missed

    def statistics(self) -> CacheStatistics:
        with self._lock:
            return CacheStatistics(self._asked - self._missed, self._missed)


class DatabaseCache:
    """An `EmbeddingCache` in the table `embedding_cache`, of about so many rows; the least recently used go first.

    When a row was used is written at most once an hour, so that a hit is seldom a write.
    """

    def __init__(self, store: Store, clock: Clock, rows: int) -> None:
        self._store = store
        self._clock = clock
        self._rows = rows
        self._until_trim = 0

    async def get(self, space: Space, digests: Sequence[str]) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        idle: list[str] = []
        now = self._clock.now()
        for piece in chunks(digests):
            named = among("digest", piece, "digest")
            query = _SQL["get_cached"].where([named])
            for digest, stored, used_at in await self._store.fetch(query, {**named.params, "space_id": space.id}):
                if (vector := from_bytes(stored, space)) is not None:
                    found[digest] = vector
                    if now - used_at >= _HOUR:
                        idle.append(digest)
        if idle:
            await self._touch(space, idle, now)
        return found

    async def put(self, space: Space, vectors: Mapping[str, Vector]) -> None:
        now = self._clock.now()
        rows = [
            {"space_id": space.id, "digest": digest, "embedding": to_bytes(vectors[digest]), "used_at": now}
            for digest in sorted(vectors)  # in the same order as everybody else, so that none waits for the other
        ]
        self._until_trim -= len(rows)
        is_due = self._until_trim < 0
        if is_due:
            self._until_trim = self._rows // 20

        async def unit(tx: Transaction) -> None:
            await tx.execute_many(_SQL["put_cached"], rows)
            if is_due:
                await tx.execute(_SQL["trim_cache"], {"rows": self._rows, "most": _MOST_DROPPED})

        await self._store.write(unit)

    async def drop(self, space: Space, digests: Sequence[str]) -> None:
        for piece in chunks(sorted(digests)):
            named = among("digest", piece, "digest")
            query, params = _SQL["drop_cached"].where([named]), {**named.params, "space_id": space.id}
            await self._store.write(lambda tx, query=query, params=params: tx.execute(query, params))

    async def _touch(self, space: Space, digests: Sequence[str], now: int) -> None:
        async def unit(tx: Transaction) -> None:
            for piece in chunks(sorted(digests)):
                named = among("digest", piece, "digest")
                params = {**named.params, "space_id": space.id, "used_at": now}
                await tx.execute(_SQL["touch_cached"].where([named]), params)

        with suppress(StoreError):  # as where the database is read-only: the vector is no worse for it
            await self._store.write(unit)
