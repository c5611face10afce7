"""Reading what is told of memories and episodes, a page at a time, so that the policies can be weighed."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from mnemon.access import under
from mnemon.encryption.sealing import Layout, Sealing
from mnemon.errors import KeyUnavailable, TamperedValue
from mnemon.ports import Row, Store
from mnemon.retention.decide import Footprint
from mnemon.retention.rows import SQL, Told, ToldEpisode, footprint_of
from mnemon.sql import params_of

Pulse = Callable[[], Awaitable[object]]
"""Called between two pieces of long work; what it raises ends the work."""

_LOG = logging.getLogger("mnemon.retention")
_PAGE = 1000
_TOLD = Layout("memory_entries", Told._fields, ("metadata",))
_TOLD_EPISODE = Layout("episodes", ToldEpisode._fields, ("metadata",))
_UNREADABLE = '{"pinned": true}'  # what may be pinned stays


class Footprints:
    """What there is in the database, as the decision wants to know it."""

    def __init__(self, store: Store, sealing: Sealing) -> None:
        self._store = store
        self._sealing = sealing

    async def memories(self, prefix: str, pulse: Pulse) -> AsyncIterator[Footprint]:
        """What is told of each memory at or below a prefix."""
        versions: list[Told] = []
        async for told in self._versions(prefix, pulse):
            if versions and told.place != versions[-1].place:
                yield footprint_of(versions)
                versions = []
            versions.append(told)
        if versions:
            yield footprint_of(versions)

    async def episodes(self, prefix: str, pulse: Pulse) -> AsyncIterator[ToldEpisode]:
        """Each consolidated episode at or below a prefix."""
        below = under("namespace", [prefix], "within")
        size = " + ".join(self._store.dialect.octets(column) for column in ("body", "offers", "metadata"))
        query = SQL["consolidated_episodes"].fill(size=size).where([below])
        after = 0
        while True:
            await pulse()
            found = await self._store.fetch(query, {**below.params, "after": after, "limit": _PAGE})
            for row in await self._opened(_TOLD_EPISODE, found):
                yield ToldEpisode(*row)
            if len(found) < _PAGE:
                return
            after = ToldEpisode(*found[-1]).id

    async def _versions(self, prefix: str, pulse: Pulse) -> AsyncIterator[Told]:
        below = under("memory_entries.namespace", [prefix], "within")
        columns = ("memory_entries.value", "memory_entries.metadata")
        size = " + ".join(map(self._store.dialect.octets, columns))
        query = SQL["footprints"].fill(size=size).where([below])
        place = {"namespace": prefix or " ", "key": "", "version": 0}  # purged memories have no namespace
        end = {"end": f"{prefix};" if prefix else "{"}  # roots are small letters
        while True:
            await pulse()
            params = {**params_of([below]), **place, **end, "limit": _PAGE}
            rows = [Told(*row) for row in await self._opened(_TOLD, await self._store.fetch(query, params))]
            for told in rows:
                yield told
            if len(rows) < _PAGE:
                return
            last = rows[-1]
            place = {"namespace": last.namespace, "key": last.key, "version": last.version}

    async def _opened(self, layout: Layout, rows: Sequence[Row]) -> Sequence[Row]:
        try:
            return await self._sealing.opened(self._store.fetch, layout, rows)
        except (KeyUnavailable, TamperedValue) as error:
            _LOG.warning("what cannot be read may be pinned, and is not removed: %s", error)
        return [await self._opened_or_pinned(layout, row) for row in rows]

    async def _opened_or_pinned(self, layout: Layout, row: Row) -> Row:
        try:
            return (await self._sealing.opened(self._store.fetch, layout, [row]))[0]
        except (KeyUnavailable, TamperedValue):
            at = layout.columns.index("metadata")
            return (*row[:at], _UNREADABLE, *row[at + 1 :])
