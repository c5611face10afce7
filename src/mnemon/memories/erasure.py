"""Leaving nothing of purged memories beside their rows: in the embedder's cache, archives, the bytes of the files."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from mnemon.errors import StoreError, StoreUnavailable
from mnemon.journal import Origin
from mnemon.memories.findable import Findable
from mnemon.ports import Store, Transaction

_CACHE = (
    "vectors of what was said are left in the embedder's cache, until they make room or have not been used for 30 days"
)
_ARCHIVES = "it is left in an archive, from which nobody can restore it and the next retention run takes it"


class Archives(Protocol):
    """What was taken out of the database, and lies elsewhere."""

    async def mark(self, tx: Transaction, namespace: str, key: str, now: int) -> Sequence[int]:
        """Let nobody bring a memory back any more; the archives that it is to be taken out of."""
        ...

    async def places(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Some of the memories at or below a prefix that are in archives and not marked."""
        ...

    async def erase(self, numbers: Iterable[int], origin: Origin) -> None:
        """Take out of archives what is marked, so that no byte of it is left."""
        ...


class Erasure:
    """Memories that are being purged, some or many."""

    def __init__(self, findable: Findable) -> None:
        self.purged = 0
        self.scrubbed = False
        """Whether the bytes are gone from the database's files too."""
        self.archives: set[int] = set()
        """Those that something was marked in."""
        self.troubles: list[tuple[str, StoreError]] = []
        """What is left of them elsewhere, and why."""
        self._findable = findable

    async def follow(self, values: Sequence[Any], archives: Iterable[int]) -> None:
        """See to what a memory leaves behind whose rows are gone already, so that nothing may hold up the others."""
        self.purged += 1
        self.archives.update(archives)
        try:
            await self._findable.forget(values)
        except StoreError as error:
            self.troubles.append((_CACHE, error))


@asynccontextmanager
async def erasing(store: Store, findable: Findable, archives: Archives, origin: Origin) -> AsyncGenerator[Erasure]:
    """For the time of one erasure or more; whatever comes between, the files are scrubbed of what was purged."""
    erasure = Erasure(findable)
    try:
        yield erasure
    except BaseException:
        if erasure.purged:
            await store.scrub()
        raise
    try:
        await archives.erase(erasure.archives, origin)
    except StoreError as error:
        erasure.troubles.append((_ARCHIVES, error))
    erasure.scrubbed = await store.scrub()
    if erasure.troubles:
        raise StoreUnavailable(_told(erasure)) from erasure.troubles[-1][1]


def _told(erasure: Erasure) -> str:
    memories = "1 memory" if erasure.purged == 1 else f"{erasure.purged} memories"
    files = "" if erasure.scrubbed else ", though not yet from the bytes of its files, which the next purge sees to"
    left = dict(erasure.troubles)  # of many that are alike one is enough
    told = "; and ".join(f"{what}: {error}" for what, error in left.items())
    return f"{memories} purged from the database{files}, but {told}"


async def each_of(*erasures: Callable[[], Awaitable[int]]) -> int:
    """Erase things of several kinds; how many. If something is left of one kind, the others are erased all the same."""
    erased = 0
    left: list[StoreUnavailable] = []
    for erase in erasures:
        try:
            erased += await erase()
        except StoreUnavailable as error:
            left.append(error)
    if left:
        raise StoreUnavailable("; ".join(dict.fromkeys(map(str, left)))) from left[-1]
    return erased
