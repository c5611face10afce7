"""Leaving nothing of purged memories beside their rows: in the embedder's cache, and in the bytes of the files."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mnemon.errors import StoreError, StoreUnavailable
from mnemon.memories.findable import Findable
from mnemon.ports import Store


class Erasure:
    """Memories that are being purged, some or many."""

    def __init__(self, findable: Findable) -> None:
        self.purged = 0
        self.scrubbed = False
        """Whether the bytes are gone from the database's files too."""
        self.trouble: StoreError | None = None
        """Why the cache still has something of them."""
        self._findable = findable

    async def follow(self, values: Sequence[Any]) -> None:
        """See to what a memory leaves behind whose rows are gone already, so that nothing may hold up the others."""
        self.purged += 1
        try:
            await self._findable.forget(values)
        except StoreError as error:
            self.trouble = error


@asynccontextmanager
async def erasing(store: Store, findable: Findable) -> AsyncGenerator[Erasure]:
    """For the time of one erasure or more; whatever comes between, the files are scrubbed of what was purged."""
    erasure = Erasure(findable)
    try:
        yield erasure
    except BaseException:
        if erasure.purged:
            await store.scrub()
        raise
    erasure.scrubbed = await store.scrub()
    if erasure.trouble is not None:
        raise StoreUnavailable(_told(erasure)) from erasure.trouble


def _told(erasure: Erasure) -> str:
    memories = "1 memory" if erasure.purged == 1 else f"{erasure.purged} memories"
    files = "" if erasure.scrubbed else ", though not yet from the bytes of its files, which the next purge sees to"
    return (
        f"{memories} purged from the database{files}, but vectors of what was said are left in the embedder's cache, "
        f"until they make room or have not been used for 30 days: {erasure.trouble}"
    )
