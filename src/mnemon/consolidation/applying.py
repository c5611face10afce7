"""Doing what a plan says, each step in a transaction that rests on every memory being as it was when it was planned."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mnemon.errors import ConflictError
from mnemon.journal import Origin
from mnemon.memories.findable import Vectors
from mnemon.memories.rows import SQL
from mnemon.memories.writing import Writing
from mnemon.model import ConsolidationStep, MemoryVersion
from mnemon.ports import Raced, Store, Transaction
from mnemon.settings import Settings
from mnemon.values import decode, encode, encode_metadata


class Applying:
    """Writes steps. The caller has seen to it that the namespace is open to whoever asks."""

    def __init__(self, store: Store, settings: Settings, writing: Writing) -> None:
        self._store = store
        self._limit = settings.max_value_bytes
        self._writing = writing

    async def embed(self, step: ConsolidationStep) -> Vectors:
        """The vectors of what a step makes a memory say. Not for inside a transaction."""
        return (await self._writing.findable.embed([step.value], [step.kept.namespace]))[0] if step.is_merged else {}

    async def write(self, tx: Transaction, origin: Origin, step: ConsolidationStep, vectors: Vectors) -> None:
        """Do a step; `ConflictError`, before anything is written, unless all of it is as it was planned."""
        everything = sorted((step.kept, *step.retired), key=lambda each: each.key)  # so that no two wait for each other
        rows = [await self._hold(tx, version) for version in everything]
        for version in step.retired:
            await self._give_up(tx, origin, step, version)
        if step.is_merged:
            await self._merge(tx, origin, step, rows, vectors)

    async def _hold(self, tx: Transaction, version: MemoryVersion) -> dict[str, Any]:
        """The row of a version that nobody else can replace until this is over."""
        query = SQL["latest_version"].fill(lock=self._store.dialect.row_lock)
        row = await tx.fetch_one(query, {"namespace": version.namespace, "key": version.key})
        found = None if row is None else await self._writing.opened(tx, row)
        if found is not None and not found["is_current"]:
            raise Raced  # another writer was quicker while this one waited for the row
        if found is None or found["is_deleted"] or found["version"] != version.version:
            raise ConflictError(f"memory {version.key!r} of {version.namespace!r} has changed since it was looked at")
        return found

    async def _give_up(self, tx: Transaction, origin: Origin, step: ConsolidationStep, version: MemoryVersion) -> None:
        before = await self._writing.retire(tx, version.namespace, version.key, version.version)
        told = {
            "superseded_by": {"key": step.kept.key, "version": step.kept.version + step.is_merged},
            "consolidated": {"method": step.method, "kinds": list(step.kinds)},
        }
        metadata = encode_metadata({**decode(before["metadata"]), **told}, self._limit)
        await self._writing.follow(tx, origin, "delete", before, {"is_deleted": True, "metadata": metadata})

    async def _merge(
        self,
        tx: Transaction,
        origin: Origin,
        step: ConsolidationStep,
        rows: Sequence[Mapping[str, Any]],
        vectors: Vectors,
    ) -> None:
        before = await self._writing.retire(tx, step.kept.namespace, step.kept.key, step.kept.version)
        sources = [{"key": row["key"], "version": row["version"]} for row in rows]
        told = {
            "consolidated": {
                "method": step.method, "kinds": list(step.kinds), "sources": sources, "keys": _keys(rows),
            }
        }  # fmt: skip
        authors = {row["author"] for row in rows}
        until = before["valid_to"]
        changes = {
            "value": encode("the merged value", step.value, self._limit),
            "metadata": encode_metadata({**decode(before["metadata"]), **told}, self._limit),
            "trust": min(row["trust"] for row in rows),
            "importance": max(row["importance"] for row in rows),
            "author": authors.pop() if len(authors) == 1 else None,
            "valid_to": until if until is not None and until > origin.now else None,
        }
        row = await self._writing.follow(tx, origin, "update", before, changes)
        await self._writing.findable.put(tx, [row], [vectors])


def _keys(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys of all memories whose words may be in a merged one, also of those that were merged before.

    Anybody may have written anything into the metadata.
    """
    found = {str(row["key"]) for row in rows}
    for row in rows:
        told = decode(row["metadata"]).get("consolidated")
        known = cast("dict[str, Any]", told).get("keys") if isinstance(told, dict) else None
        if isinstance(known, list):
            found |= {each for each in cast("list[Any]", known) if isinstance(each, str)}
    return sorted(found)
