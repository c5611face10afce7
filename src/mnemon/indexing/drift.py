"""Comparing a vector store with the database, putting right what differs, and filling a store anew.

Everything is read in pages. What was seen is kept as one bit for each memory.
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial

from mnemon.indexing.stores import Place, StoreIndex, record_id
from mnemon.journal import Journal
from mnemon.model import Drift, Progress
from mnemon.ports import Row, Runner, Store
from mnemon.sql import among, chunks, load

_SQL = load("indexing")
_PAGE = 1000


class Comparison:
    """A store beside the database."""

    def __init__(self, store: Store, journal: Journal, runner: Runner, index: StoreIndex) -> None:
        self._store = store
        self._journal = journal
        self._runner = runner
        self._index = index

    async def verify(self, *, mend: bool = False) -> Drift:
        """Look for differences; `mend` puts them right.

        Whatever was changed after the store was last fed, or while this goes on, comes to it by itself.
        """
        fed = await self._index.position()
        seen = _Numbers()
        drift = Drift(0, 0, 0, 0)
        async for page in self._listed():
            stale, surplus = await self._judge(page, seen, fed)
            if mend:
                await self._put_right(stale, surplus)
            drift = replace(
                drift,
                checked=drift.checked + len(page),
                stale=drift.stale + len(stale),
                surplus=drift.surplus + len(surplus),
            )
        async for page in self._wanted():
            absent = await self._settled([place for memory_id, place in page if memory_id not in seen], fed)
            if mend:
                await self._put_right(absent, [])
            drift = replace(drift, missing=drift.missing + len(absent))
        return replace(drift, pending=await self._count("count_changes", after=await self._index.position()))

    async def rebuild(self, progress: Callable[[Progress], object] | None = None) -> Drift:
        """Give the store everything again, and take from it what it should not have; what it had too much."""
        began, position, done = time.monotonic(), await self._journal.position(), 0
        total = await self._count("count_live", space_id=self._index.space.id)
        async for page in self._wanted():
            for piece in chunks([place for _, place in page]):
                await self._index.bring(piece)
            done += len(page)
            if progress is not None:
                progress(Progress(done, max(done, total), time.monotonic() - began))
        drift = await self.verify(mend=True)
        if await self._index.position() < position:  # all that was before is in it now
            await self._index.consumer.rewind(position)
        return drift

    # -- the store's side

    async def _listed(self) -> AsyncIterator[Sequence[tuple[str, int]]]:
        """What the store says that it holds."""
        after: str | None = None
        opened = self._index.outside.of(self._index.space)
        while page := await self._runner.aside(partial(opened.listing, after, _PAGE)):
            yield page
            after = page[-1][0]

    async def _judge(
        self, page: Sequence[tuple[str, int]], seen: "_Numbers", fed: int
    ) -> tuple[list[Place], list[str]]:
        """Which memories of a page are of another version, and which records are of no live memory."""
        known = {row[0]: row for row in await self._versions([memory_id for _, memory_id in page])}
        doubtful: dict[str, Place | None] = {}
        for each, memory_id in page:
            _, namespace, key, is_current, is_deleted = known.get(memory_id, (0, "", "", False, True))
            if record_id(namespace, key) != each:
                doubtful[each] = None
            elif is_current and not is_deleted:
                seen.add(memory_id)
            else:
                doubtful[each] = (namespace, key)
        if not doubtful:
            return [], []
        there = {live.place: live.id for live in await self._index.live([p for p in doubtful.values() if p])}
        for memory_id in there.values():
            seen.add(memory_id)  # another version of it is there, so it is not missing
        stale = await self._settled([place for place in doubtful.values() if place in there], fed)
        surplus = {each: place for each, place in doubtful.items() if place not in there}
        return stale, await self._settled_records(surplus, fed)

    async def _versions(self, ids: Sequence[int]) -> list[Row]:
        found: list[Row] = []
        for piece in chunks(ids):
            named = among("id", piece, "id")
            found += await self._store.fetch(_SQL["places_of"].where([named]), named.params)
        return found

    # -- the database's side

    async def _wanted(self) -> AsyncIterator[list[tuple[int, Place]]]:
        """Everything that the store should hold, by the memories' ids."""
        after = 0
        params = {"space_id": self._index.space.id, "limit": _PAGE}
        while rows := await self._store.fetch(_SQL["live_after"], {**params, "after": after}):
            yield [(row[0], (row[1], row[2])) for row in rows]
            after = rows[-1][0]

    async def _settled(self, places: Sequence[Place], fed: int) -> list[Place]:
        """Those that have not changed since the store was fed."""
        changed: set[Place] = set()
        for piece in chunks(places):
            keys = among("entity_id", list({key for _, key in piece}), "key")
            query = _SQL["changed_after"].where([keys])
            changed |= {(row[0], row[1]) for row in await self._store.fetch(query, {**keys.params, "after": fed})}
        return [place for place in places if place not in changed]

    async def _settled_records(self, surplus: dict[str, Place | None], fed: int) -> list[str]:
        """The same for records; of what was purged since, only the journal knows what it was."""
        settled = {record_id(*place) for place in await self._settled([p for p in surplus.values() if p], fed)}
        nameless = [each for each, place in surplus.items() if place is None]
        if nameless:
            rows = await self._store.fetch(_SQL["purged_after"], {"after": fed})
            purged = {record_id(row[0], row[1]) for row in rows}
            settled |= {each for each in nameless if each not in purged}
        return [each for each in surplus if each in settled]

    async def _put_right(self, places: Sequence[Place], surplus: Sequence[str]) -> None:
        for piece in chunks(places):
            await self._index.bring(piece)
        if surplus:
            await self._runner.aside(lambda: self._index.outside.of(self._index.space).delete(surplus))

    async def _count(self, query: str, **params: int) -> int:
        return (await self._store.fetch(_SQL[query], params))[0][0]


class _Numbers:
    """A set of whole numbers that takes a bit for each up to the largest."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, number: int) -> None:
        place = number >> 3
        if place >= len(self._bytes):
            self._bytes.extend(bytes(place + 1024 - len(self._bytes)))
        self._bytes[place] |= 1 << (number & 7)

    def __contains__(self, number: int) -> bool:
        place = number >> 3
        return place < len(self._bytes) and bool(self._bytes[place] & 1 << (number & 7))
