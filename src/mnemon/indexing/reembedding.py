"""Changing the embedding model while everybody goes on: a second space is filled beside the first, then they switch.

From the moment when the space is begun, every new memory gets a vector in both, and both are read. What was there
before is embedded by a consumer, `space:<id>`, that follows the journal from its beginning. Interrupted at any
point, it goes on from its position.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from mnemon.clock import Clock
from mnemon.encryption.sealing import Sealing
from mnemon.errors import InvalidSettings, LeaseLost, NotFound
from mnemon.indexing.duties import Duty
from mnemon.indexing.embeddings import Embeddings
from mnemon.journal import Journal
from mnemon.model import Progress, Space, SpaceStatus
from mnemon.ports import Indexes, Runner, Store
from mnemon.sql import load

if TYPE_CHECKING:  # slow to import
    from mnemon.embedding import Embedding

_SQL = load("indexing")
_PATIENCE = 0.5
_SPREAD = 1.5  # seconds after which every process has heard of a new space, and writes to it

Tell = Callable[[Progress], object]


class Reembedding:
    """Fills a space and puts it in the place of the active one."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        clock: Clock,
        runner: Runner,
        indexes: Callable[[], Indexes],
        embedding: "Embedding",
        sealing: Sealing | None = None,
    ) -> None:
        self._store = store
        self._journal = journal
        self._clock = clock
        self._runner = runner
        self._indexes = indexes
        self._embedding = embedding
        self._sealing = sealing

    async def run(self, to: str, tell: Tell | None = None) -> Space:
        """Change to the embedder `to`; the space that is active then.

        `tell` is told how far it has come, in versions of memories that were looked at.
        """
        space = await self._embedding.begin(to)
        if space.status is SpaceStatus.ACTIVE:
            return space
        if not self._embedding.makes_vectors(space):
            await self._embedding.spaces.retire(space)
            raise InvalidSettings(f"vectors of {space.model} are given, not made, so nothing can be embedded anew")
        began = time.monotonic()
        filling = Embeddings(
            self._store, self._journal, self._clock, self._indexes, lambda: self._embedding, space, self._sealing
        )
        await self._fill(filling, tell)
        await self._indexes().vectors.prepare(space)
        await self._runner.aside(partial(time.sleep, max(0.0, began + _SPREAD - time.monotonic())))
        await self._fill(filling, None)  # what was written meanwhile, and perhaps not to both
        return await self._embedding.spaces.activate(space)

    async def _fill(self, filling: Embeddings, tell: Tell | None) -> None:
        """Until everything is embedded that was there at the beginning, by this process or another."""
        began, target, duty = time.monotonic(), await self._journal.position(), filling.duty
        total = await self._left(duty, target)
        left, seen = total, filling.seen
        while not await duty.consumer.has_reached(target):
            ticket, handled = self._store.ticket(), 0
            with suppress(LeaseLost):
                handled = await duty.step()
            if handled:
                left, seen = left - (filling.seen - seen), filling.seen
            else:  # another process is at it
                await self._store.wait(ticket, _PATIENCE)
                left = await self._left(duty, target)
            if tell is not None:
                tell(Progress(total - left, total, time.monotonic() - began))

    async def _left(self, duty: Duty, target: int) -> int:
        """How many versions up to a position have not been looked at."""
        try:
            stands = (await duty.consumer.status()).position
        except NotFound:
            stands = 0
        return (await self._store.fetch(_SQL["count_written"], {"after": stands, "last": target}))[0][0]
