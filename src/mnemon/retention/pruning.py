"""Removing what belongs to nothing any more, and what has expired."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from mnemon import journal
from mnemon.clock import Clock
from mnemon.journal import Origin
from mnemon.ports import Store, Transaction
from mnemon.retention.footprints import Pulse
from mnemon.retention.rows import SQL
from mnemon.spaces import Spaces
from mnemon.sql import chunks
from mnemon.working.pruning import prune

_PAGE = 1000
_PLACES = 200


class Pruned(NamedTuple):
    """How much was removed."""

    vectors: int = 0
    items: int = 0
    """Items and scratchpads of working memory that had expired."""


class Pruning:
    """Goes over what can be left behind by a process that was killed, or by time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._spaces = Spaces(store, clock)

    async def prune(self, origin: Origin, pulse: Pulse) -> Pruned:
        """Remove vectors and counts of uses without a memory, and what has expired in working memory."""
        vectors = await self._prune_vectors(pulse)
        if vectors:
            entry = journal.entry(origin, "vector", "orphans", "prune", namespace=None, payload={"vectors": vectors})
            await self._store.write(lambda tx: journal.record(tx, [entry]))
        await self._prune_uses()
        return Pruned(vectors, await prune(self._store, origin.now))

    async def _prune_vectors(self, pulse: Pulse) -> int:
        removed = 0
        for space in await self._spaces.all():
            after = 0
            while True:
                await pulse()
                params = {"space_id": space.id, "after": after, "limit": _PAGE}
                rows = await self._store.fetch(SQL["orphaned_vectors"], params)
                for piece in chunks(rows):
                    removed += await self._store.write(partial(_drop_vectors, piece))
                if len(rows) < _PAGE:
                    break
                after = rows[-1][1]
        return removed

    async def _prune_uses(self) -> None:
        place = {"namespace": "", "key": ""}
        while rows := await self._store.fetch(SQL["orphaned_uses"], {**place, "limit": _PLACES}):
            places = [{"namespace": namespace, "key": key} for namespace, key in rows]
            await self._store.write(lambda tx, places=places: tx.execute_many(SQL["forget_uses"], places))
            place = places[-1]


async def _drop_vectors(rows: Sequence[tuple[int, int]], tx: Transaction) -> int:
    return sum(
        [
            await tx.execute(SQL["delete_vector"], {"space_id": space_id, "memory_id": memory_id})
            for space_id, memory_id in rows
        ]
    )
