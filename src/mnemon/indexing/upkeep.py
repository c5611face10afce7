"""Everything that is kept in step with the journal, over one of the stores of a database."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.encryption.sealing import Sealing
from mnemon.errors import InvalidSettings, LeaseLost, NotFound, NotSettled, StoreError, StoreReadOnly
from mnemon.indexing.conversations import Conversations
from mnemon.indexing.drift import Comparison
from mnemon.indexing.duties import Duty
from mnemon.indexing.embeddings import Embeddings, filler_of
from mnemon.indexing.leftovers import Leftovers
from mnemon.indexing.reembedding import Reembedding
from mnemon.indexing.stores import Outside, StoreIndex
from mnemon.journal import Journal
from mnemon.memories.findable import Findable
from mnemon.memories.writing import Writing
from mnemon.model import Drift, Progress, Space
from mnemon.ports import Indexes, Runner, Store
from mnemon.settings import Settings
from mnemon.spaces import Spaces
from mnemon.sql import load

if TYPE_CHECKING:  # slow to import
    from mnemon.embedding import Embedding
    from mnemon.working.mirror import Mirror

_SQL = load("journal")
_PATIENCE = 0.25


@dataclass(frozen=True, slots=True)
class Bench:
    """What the work is done with."""

    store: Store
    clock: Clock
    settings: Settings
    runner: Runner
    indexes: Callable[[], Indexes]
    """Loaded when first called, as what follows."""
    embedding: "Callable[[], Embedding] | None"
    """None if nothing is to be embedded."""
    stores: Sequence[Outside] = ()
    """The vector stores outside the database, in the order in which they are asked."""
    sealing: Sealing | None = None
    """What encrypts; None if nothing is encrypted."""
    mirror: "Callable[[], Mirror | None]" = lambda: None
    """The copy of working memory outside the database, if there is one."""


class Upkeep:
    """Does what has to be done about the journal, and can wait until it is."""

    def __init__(self, bench: Bench) -> None:
        embedding = bench.embedding
        if embedding is not None:
            bench = replace(bench, embedding=cache(lambda: embedding().for_upkeep()))
        self._bench = bench
        self._journal = Journal(bench.store, Access())
        self._spaces = Spaces(bench.store, bench.clock)
        self._indexes: dict[tuple[str, int], StoreIndex] = {}
        self._leftovers = Leftovers(bench.store, bench.clock, bench.runner, self._spaces, bench.stores, self._index)

    async def duties(self) -> list[Duty]:
        """Everything that there is to do, each before what follows from it."""
        feeding = [index.duty for index in await self._store_indexes()]
        return [*self._conversations, *self._embeddings, *self._working, *feeding, *await self._leftovers.duties()]

    async def settled(self, timeout: float | None = None) -> None:
        """Return when everything that was written before the call can be found.

        What no other process is at is done now. A vector store that is down is not waited for: the
        others answer. `NotSettled` after `timeout` seconds; `EmbedderUnavailable` if texts cannot be
        embedded now, so that they are found by their words only.
        """
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        await self._reach_all(self._conversations, deadline)
        await self._reach_all(self._embeddings, deadline)
        await self._reach_all(self._working, deadline)
        self._spaces.forget()  # there may be one more than a moment ago
        await self._reach_all([index.duty for index in await self._store_indexes()], deadline)
        left = await self._leftovers.duties()
        await self._reach_all([duty for duty in left if not duty.is_due], deadline)
        await self._remove([duty for duty in left if duty.is_due])

    async def reembed(self, to: str, progress: Callable[[Progress], object] | None = None) -> Space:
        """Change to another embedder while everything goes on; see `reembedding`."""
        return await self._reembedding().run(to, progress)

    async def drop_space(self, space: Space) -> None:
        """Delete a retired space with its vectors; a vector store that is down does so when it is back."""
        await self._spaces.drop(space)
        filler = {"name": filler_of(space)}
        await self._bench.store.write(lambda tx: tx.execute(_SQL["delete_consumer"], filler))
        await self._remove([duty for duty in await self._leftovers.duties() if duty.is_due])

    async def verify(self, store: str, *, mend: bool = False) -> Drift:
        """How a vector store outside the database differs from it; `mend` puts that right."""
        found = [await self._comparison(index).verify(mend=mend) for index in await self._store_indexes(store)]
        return sum(found, Drift(0, 0, 0, 0))

    async def rebuild(self, store: str, progress: Callable[[Progress], object] | None = None) -> Drift:
        """Give a vector store outside the database everything again."""
        found = [await self._comparison(index).rebuild(progress) for index in await self._store_indexes(store)]
        return sum(found, Drift(0, 0, 0, 0))

    # -- waiting

    async def _reach_all(self, duties: Sequence[Duty], deadline: float) -> None:
        """What those before have written counts too."""
        target = await self._journal.position()
        for duty in duties:
            await self._reach(duty, target, deadline)

    async def _reach(self, duty: Duty, target: int, deadline: float) -> None:
        store = self._bench.store
        while not await duty.consumer.has_reached(target):
            left = deadline - time.monotonic()
            if left <= 0:
                raise NotSettled(f"{duty.name} has not come as far as the journal was; it goes on in the background")
            ticket, done = store.ticket(), 0
            try:
                with suppress(LeaseLost, StoreReadOnly):  # then it is another's work
                    done = await duty.step() if await duty.has_work() else 0
            except StoreError:
                if duty.outside is None:
                    raise
                return
            if not done:
                await store.wait(ticket, min(left, _PATIENCE))

    async def _remove(self, duties: Sequence[Duty]) -> None:
        """Remove what stores hold of retired spaces, as far as that can be done now; the rest stays to be done."""
        for duty in duties:
            with suppress(LeaseLost, StoreError):
                await duty.step()

    # -- putting it together

    @cached_property
    def _conversations(self) -> list[Duty]:
        bench = self._bench
        if not bench.settings.remember_events:
            return []
        findable = Findable(bench.indexes, bench.embedding, bench.sealing)
        writing = Writing(bench.store, bench.clock, bench.settings, Access(), findable)
        prefixes = bench.settings.remember_events
        return [Conversations(bench.store, self._journal, bench.clock, writing, prefixes).duty]

    @cached_property
    def _embeddings(self) -> list[Duty]:
        bench = self._bench
        return [
            Embeddings(
                bench.store, self._journal, bench.clock, bench.indexes, bench.embedding, sealing=bench.sealing
            ).duty
        ]

    @cached_property
    def _working(self) -> list[Duty]:
        mirror = self._bench.mirror()
        return [] if mirror is None else [Duty(mirror.consumer, mirror.step, outside="redis")]

    async def _store_indexes(self, name: str | None = None) -> list[StoreIndex]:
        """The stores outside the database, or one of them, for every space in use."""
        bench = self._bench
        stores = [outside for outside in bench.stores if name in (None, outside.name)]
        if name is not None:
            self._spaces.forget()  # who asks for a store sees to all that it holds now
        if name is not None and not stores:
            known = ", ".join(outside.name for outside in bench.stores) or "none"
            raise NotFound(f"no vector store {name!r} is set; there is: {known}")
        spaces = await self._spaces.readable() if stores else ()
        return [self._index(outside, space) for outside in stores for space in spaces]

    def _index(self, outside: Outside, space: Space) -> StoreIndex:
        bench, place = self._bench, (outside.name, space.id)
        if place not in self._indexes:
            self._indexes[place] = StoreIndex(
                bench.store, self._journal, bench.clock, bench.indexes, bench.runner, outside, space
            )
        return self._indexes[place]

    def _comparison(self, index: StoreIndex) -> Comparison:
        return Comparison(self._bench.store, self._journal, self._bench.runner, index)

    def _reembedding(self) -> Reembedding:
        bench = self._bench
        if bench.embedding is None:
            raise InvalidSettings("embedding is switched off by embedder='none'; choose an embedder first")
        return Reembedding(
            bench.store, self._journal, bench.clock, bench.runner, bench.indexes, bench.embedding(), bench.sealing
        )
