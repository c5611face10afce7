"""Bringing memories back out of an archive, with all their versions."""

from collections.abc import Mapping
from typing import Any

from mnemon import journal
from mnemon.encryption.envelope import is_sealed
from mnemon.journal import Origin
from mnemon.memories.findable import Findable, Vectors
from mnemon.memories.rows import LAYOUT, named
from mnemon.memories.rows import SQL as MEMORIES
from mnemon.memories.writing import entry_of
from mnemon.ports import Store, Transaction
from mnemon.retention.rows import SQL, Kept, is_stand_in
from mnemon.sql import Fragment
from mnemon.values import decode

_THIS = "version = :version"


class Restoring:
    """Writes versions back as they were. The caller has seen to it that the namespace is open to whoever asks."""

    def __init__(self, store: Store, findable: Findable) -> None:
        self._store = store
        self._findable = findable

    async def restore(self, archive_id: int, kept: Kept, origin: Origin) -> int:
        """How many versions came back; none if the place is taken, or if the memory was erased meanwhile.

        All of a memory comes back only where there is none now. Old versions come back to a memory that is there
        still, and take the place of what stands for them.
        """
        newest = kept.versions[-1]
        await self._findable.sealing.prepare([kept.namespace])
        vectors: Vectors = {}
        if kept.is_whole and not newest["is_deleted"] and not is_sealed(newest["value"]):
            [vectors] = await self._findable.embed([decode(newest["value"])], [kept.namespace])

        async def unit(tx: Transaction) -> int:
            place = {"namespace": kept.namespace, "key": kept.key}
            lock = self._store.dialect.row_lock
            here = {**place, "archive_id": archive_id}
            if await tx.fetch_one(SQL["get_archived"].fill(lock=lock), here) is None:
                return 0
            latest = await tx.fetch_one(MEMORIES["latest_version"].fill(lock=lock), place)
            if kept.is_whole:
                return 0 if latest else await self._restore_whole(tx, kept, origin, vectors)
            if latest is None or named(latest)["version"] <= newest["version"]:
                return 0
            return await self._restore_versions(tx, kept, origin)

        return await self._store.write(unit)

    async def _restore_whole(self, tx: Transaction, kept: Kept, origin: Origin, vectors: Vectors) -> int:
        for row in kept.versions:
            written = await self._insert(tx, row, origin)
            if row["is_current"] and not row["is_deleted"]:
                await self._findable.put(tx, [written], [vectors])
        restored = {"namespace": kept.namespace, "key": kept.key, "now": origin.now}
        await tx.execute(SQL["note_restored"], restored)
        return len(kept.versions)

    async def _restore_versions(self, tx: Transaction, kept: Kept, origin: Origin) -> int:
        place = {"namespace": kept.namespace, "key": kept.key}
        present = {row["version"]: row for row in map(named, await tx.fetch_all(MEMORIES["history"], place))}
        restored = 0
        for row in kept.versions:
            there = present.get(row["version"])
            if there is not None:
                if not is_stand_in(there["metadata"]) or is_stand_in(row["metadata"]):
                    continue
                this = Fragment(_THIS, {"version": row["version"]})
                await tx.execute(MEMORIES["purge"].where([this]), {**place, **this.params})
            await self._insert(tx, row, origin)
            restored += 1
        return restored

    async def _insert(self, tx: Transaction, row: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
        """A version as it was; one that was not encrypted is, if it would be now."""
        is_plain = not is_sealed(row["value"]) and not is_stand_in(row["metadata"])
        written = await self._findable.sealing.sealed(tx, LAYOUT, row) if is_plain else row
        [(number,)] = await tx.fetch_each(SQL["restore_version"], [written])
        entry = entry_of(origin, "restore", row["namespace"], row["key"], row["version"])
        await journal.record(tx, [entry])
        return {**row, "id": number}
