"""Long-term memories: JSON values under a namespace and a key, each change a new version."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from mnemon import journal
from mnemon.access import Access, under
from mnemon.clock import Clock, micros_or_none, moment
from mnemon.errors import InvalidInput, MemoryExists, MemoryNotFound
from mnemon.journal import Origin, origin_of
from mnemon.memories import search
from mnemon.memories.differences import compare
from mnemon.memories.erasure import Archives, Erasure, erasing
from mnemon.memories.rows import (
    LAYOUT,
    LONGEST_THREAD,
    SQL,
    check_type,
    memories,
    named,
    placement_row,
    provenance_row,
)
from mnemon.memories.search import Order, Search
from mnemon.memories.writing import Writing, entry_of, not_found
from mnemon.model import (
    ConsolidationReport,
    Difference,
    Level,
    Memory,
    MemoryDraft,
    MemoryType,
    NamespaceCount,
    Page,
    Placement,
    Provenance,
    PurgeReceipt,
)
from mnemon.namespaces import EVERYTHING, check_key, check_namespace, check_prefix
from mnemon.pages import check_limit
from mnemon.ports import Row, Store, Transaction
from mnemon.settings import Settings
from mnemon.values import decode_all, encode, encode_metadata

_ENDLESS = 2**62


class Consolidates(Protocol):
    """Makes one of memories that say the same or deny each other."""

    async def consolidate(
        self,
        namespace: str,
        strategy: str = "llm_based",
        dry_run: bool = False,
        *,
        types: str | Sequence[str] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> ConsolidationReport: ...


class MemoryService:
    """Adds, reads, changes, deletes, restores and erases memories.

    Nothing is overwritten: a change, a deletion and a restoration are each a new version.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        writing: Writing,
        consolidation: Callable[[], Consolidates],
        archives: Callable[[], Archives],
        noting: Callable[[Sequence[Memory]], object] = lambda _: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._writing = writing
        self._consolidation = consolidation
        self._archives = archives
        self._noting = noting

    async def add_memory(
        self,
        namespace: str,
        key: str,
        value: Any,
        memory_type: str = MemoryType.SEMANTIC,
        created_by: str | None = None,
        task_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        provenance: Provenance | None = None,
        placement: Placement | None = None,
    ) -> int:
        """Add a memory and return its id; `MemoryExists` if a live one has the namespace and key.

        A key that was deleted before gets the next version, so that its history goes on.
        """
        draft = MemoryDraft(value, namespace, key, memory_type, metadata, provenance, placement)
        origin = self._origin(created_by, task_id)
        row = self._writing.new_row(draft, origin)
        vectors = await self._writing.findable.embed([value], [namespace])

        async def unit(tx: Transaction) -> int:
            added = await self._writing.add(tx, origin, row, vectors[0])
            if added is None:
                raise MemoryExists(f"{namespace!r} has a memory {key!r} already; use update_memory")
            return added["id"]

        return await self._store.write(unit)

    async def put_memories(
        self, drafts: Sequence[MemoryDraft], actor: str | None = None, task_id: str | None = None
    ) -> list[Memory]:
        """Add the memories, or write a new version of those that are there; all of them or none.

        One that says what its current version says already is left as it is.
        """
        return await self._store.write(await self._writing.putting(drafts, self._origin(actor, task_id)))

    async def get_memory(
        self, namespace: str, key: str, version: int | None = None, as_of: datetime | None = None
    ) -> Memory | None:
        """The newest version, a certain one, or the one that held at a moment; None if there is none.

        A certain version may be a deletion; the other two never are.
        """
        if version is not None and as_of is not None:
            raise InvalidInput("ask for a version or for a moment, not both")
        _check_number("a version", version)
        self._writing.check_place(namespace, key, "read")
        name = "get_current" if version is None and as_of is None else "get_version" if as_of is None else "get_as_of"
        params = {"namespace": namespace, "key": key, "version": version, "as_of": micros_or_none(as_of)}
        rows = await self._store.fetch(SQL[name], params)
        found = [each for each in await self._memories(rows) if not (as_of and each.is_deleted)]
        self._noting(found)
        return found[0] if found else None

    async def update_memory(
        self,
        namespace: str,
        key: str,
        value: Any,
        updated_by: str | None = None,
        task_id: str | None = None,
        expected_version: int | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        memory_type: str | None = None,
        provenance: Provenance | None = None,
        placement: Placement | None = None,
    ) -> int:
        """Write a new version and return its number; what is not given stays as it was.

        A new version holds from now on, unless `placement` says from when. With
        `expected_version`, `ConflictError` if the memory has changed since.
        """
        self._writing.check_place(namespace, key, "write")
        origin = self._origin(updated_by, task_id)
        changes: dict[str, Any] = {"value": encode("the memory's value", value, self._settings.max_value_bytes)}
        if metadata is not None:
            changes["metadata"] = encode_metadata(metadata, self._settings.max_value_bytes)
        if memory_type is not None:
            changes["memory_type"] = str(check_type(memory_type))
        if provenance is not None:
            changes |= provenance_row(provenance)
        if placement is not None:
            changes |= placement_row(placement, origin.now)
        vectors = await self._writing.findable.embed([value], [namespace])

        async def unit(tx: Transaction) -> int:
            before = await self._writing.retire(tx, namespace, key, expected_version)
            if before["is_deleted"]:
                raise MemoryNotFound(f"memory {key!r} of {namespace!r} is deleted; use restore_memory first")
            row = await self._writing.follow(tx, origin, "update", before, changes)
            await self._writing.findable.put(tx, [row], vectors)
            return row["version"]

        return await self._store.write(unit)

    async def delete_memory(
        self,
        namespace: str,
        key: str,
        deleted_by: str | None = None,
        task_id: str | None = None,
        *,
        expected_version: int | None = None,
    ) -> None:
        """Delete softly: a new version says so, and everything before it stays."""
        self._writing.check_place(namespace, key, "write")
        origin = self._origin(deleted_by, task_id)

        async def unit(tx: Transaction) -> None:
            before = await self._writing.retire(tx, namespace, key, expected_version)
            if before["is_deleted"]:
                raise MemoryNotFound(f"memory {key!r} of {namespace!r} is deleted already")
            await self._writing.follow(tx, origin, "delete", before, {"is_deleted": True})

        await self._store.write(unit)

    async def restore_memory(
        self,
        namespace: str,
        key: str,
        version: int | None = None,
        restored_by: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Make an earlier version (by default the last that was not a deletion) the newest again."""
        self._writing.check_place(namespace, key, "write")
        _check_number("a version", version)
        origin = self._origin(restored_by, task_id)

        async def unit(tx: Transaction) -> int:
            params = {"namespace": namespace, "key": key, "version": version}
            chosen = await tx.fetch_one(SQL["latest_live_version" if version is None else "get_version"], params)
            before = await self._writing.retire(tx, namespace, key, None)
            if chosen is None or named(chosen)["is_deleted"]:
                raise MemoryNotFound(f"memory {key!r} of {namespace!r} has no version {version} to restore")
            kept = {"created_at", "created_by", "version", "is_current", "id", "valid_from", "valid_to"}
            source = await self._writing.opened(tx, chosen)
            content = {name: value for name, value in source.items() if name not in kept}
            row = await self._writing.follow(tx, origin, "restore", before, {**content, "is_deleted": False})
            await self._writing.findable.put_again(tx, source["id"], row)
            return row["version"]

        return await self._store.write(unit)

    async def purge_memory(
        self, namespace: str, key: str, purged_by: str | None = None, task_id: str | None = None
    ) -> PurgeReceipt:
        """Erase every version for good, from the database's files too; a receipt to prove it.

        The journal keeps that there was such a memory and that it was purged, and nothing of what
        it said. The receipt's digest lets whoever still has the content show that this was it.
        It is taken out of the archives of retention too. `StoreUnavailable` if the database is rid of it and an
        archive, or the embedder's cache, could not be told.
        """
        origin = self._origin(purged_by, task_id)
        async with self._erasing(origin) as erasure:
            receipt = await self._purge(namespace, key, origin, erasure)
        return replace(receipt, scrubbed=erasure.scrubbed)

    def _erasing(self, origin: Origin) -> AbstractAsyncContextManager[Erasure]:
        return erasing(self._store, self._writing.findable, self._archives(), origin)

    async def _purge(self, namespace: str, key: str, origin: Origin, erasure: Erasure) -> PurgeReceipt:
        self._writing.check_place(namespace, key, "admin")

        async def unit(tx: Transaction) -> tuple[PurgeReceipt, list[str]]:
            place = {"namespace": namespace, "key": key}
            mark = partial(self._archives().mark, tx, namespace, key, origin.now)
            archives = set(await mark())  # nothing comes back from there any more
            rows = [named(row) for row in await tx.fetch_all(SQL["history"], place)]
            await tx.execute(SQL["purge"].where([]), place)
            archives.update(await mark())  # nor from one that was made while this transaction waited for its rows
            if not rows and not archives:
                raise not_found(namespace, key)
            await self._writing.findable.erase(tx, [row["id"] for row in rows])
            values: list[str] = [row["value"] for row in rows]
            digest = hashlib.sha256("\n".join(values).encode()).hexdigest()
            told: dict[str, Any] = {"versions": len(rows), "digest": digest}
            if archives:
                told["archives"] = sorted(archives)
            position = await journal.record_one(tx, entry_of(origin, "purge", namespace, key, None, told))
            found = PurgeReceipt(
                namespace, key, len(rows), digest, origin.actor, moment(origin.now), position,
                scrubbed=False, archives=tuple(sorted(archives)),
            )  # fmt: skip
            return found, values

        receipt, values = await self._store.write(unit)
        await erasure.follow(decode_all(values), receipt.archives)
        return receipt

    async def forget_memories(
        self,
        namespace: str,
        key: str | None = None,
        *,
        erase: bool = False,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Delete a memory, or without a key all at or below the namespace; how many there were.

        Each is deleted softly and can be restored; `erase` purges it instead, and also those that were
        deleted before or are in archives. Without a key it is done one by one: if it is interrupted, call it again.
        """
        level: Level = "admin" if erase else "write"
        self._access.require(check_namespace(namespace, self._settings.max_namespace_length), level)
        if not erase:
            return await self._forget(
                namespace, key, lambda at, name: self.delete_memory(at, name, actor, task_id), self._live_places
            )
        origin = partial(self._origin, actor, task_id)
        async with self._erasing(origin()) as erasure:
            return await self._forget(
                namespace, key, lambda at, name: self._purge(at, name, origin(), erasure), self._all_places
            )

    async def _live_places(self, prefix: str) -> Sequence[tuple[str, str]]:
        return await search.list_places(self._store, prefix, deleted=False)

    async def _all_places(self, prefix: str) -> Sequence[tuple[str, str]]:
        found = await search.list_places(self._store, prefix, deleted=True)
        return found or await self._archives().places(prefix)

    async def _forget(
        self,
        namespace: str,
        key: str | None,
        forget: Callable[[str, str], Awaitable[object]],
        listed: Callable[[str], Awaitable[Sequence[tuple[str, str]]]],
    ) -> int:
        if key is not None:
            await forget(namespace, key)
            return 1
        forgotten = 0
        while places := await listed(namespace):
            for place in places:
                with suppress(MemoryNotFound):  # somebody else was quicker
                    await forget(*place)
                    forgotten += 1
        return forgotten

    async def consolidate_memories(
        self,
        namespace: str,
        consolidation_strategy: str = "llm_based",
        dry_run: bool = False,
        *,
        types: str | Sequence[str] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> ConsolidationReport:
        """Make one of memories that say the same or deny each other; see `ConsolidationService.consolidate`."""
        return await self._consolidation().consolidate(
            namespace, consolidation_strategy, dry_run, types=types, actor=actor, task_id=task_id
        )

    async def search_memories(
        self,
        namespace_prefix: str = EVERYTHING,
        memory_type: str | None = None,
        limit: int = 50,
        *,
        where: Mapping[str, Any] | None = None,
        created_by: str | None = None,
        updated_after: datetime | None = None,
        updated_before: datetime | None = None,
        order: Order = "namespace",
        cursor: str | None = None,
    ) -> Page[Memory]:
        """Live memories at or below a namespace, a page at a time.

        The prefix matches whole segments; `""` is everything. In order of namespace and key, or
        with `order="recent"` the last changed first. `where` filters by metadata: see `filters`.
        """
        wanted = Search(
            prefixes=self._access.within(self._check_prefix(namespace_prefix), "read"),
            memory_type=memory_type,
            created_by=created_by,
            where=where,
            updated_after=updated_after,
            updated_before=updated_before,
            order=order,
            limit=limit,
            cursor=cursor,
        )
        return await wanted.run(self._store, self._writing.sealing)

    async def get_memory_history(self, namespace: str, key: str) -> list[Memory]:
        """Every version, the oldest first; empty if there never was such a memory."""
        self._writing.check_place(namespace, key, "read")
        return await self._memories(await self._store.fetch(SQL["history"], {"namespace": namespace, "key": key}))

    async def diff_memory(self, namespace: str, key: str, before: int, after: int) -> list[Difference]:
        """What changed in the value from one version to another."""
        versions = [await self.get_memory(namespace, key, version) for version in (before, after)]
        if None in versions:
            missing = before if versions[0] is None else after
            raise MemoryNotFound(f"memory {key!r} of {namespace!r} has no version {missing}")
        old, new = (version.value for version in versions if version)
        return list(compare(old, new))

    async def get_thread(
        self, thread: str, *, first: int = 0, last: int | None = None, limit: int = 100
    ) -> list[Memory]:
        """The live memories of a thread by their positions, from `first` to `last`."""
        _check_number("first", first)
        _check_number("last", last)
        check_key("thread", thread, LONGEST_THREAD)
        below = under("namespace", self._access.within(EVERYTHING, "read"), "within")
        params = {
            "thread": thread, "first": first, "last": _ENDLESS if last is None else last,
            "limit": check_limit(limit), **below.params,
        }  # fmt: skip
        return await self._memories(await self._store.fetch(SQL["search_thread"].where([below]), params))

    async def list_namespaces(self, prefix: str = EVERYTHING, *, limit: int = 1000) -> list[NamespaceCount]:
        """The namespaces at or below a prefix that hold live memories, and how many."""
        prefixes = self._access.within(self._check_prefix(prefix), "read")
        check_limit(limit)
        return await self._store.read(lambda tx: search.list_namespaces(tx, prefixes, limit), long=True)

    async def _memories(self, rows: Sequence[Row]) -> list[Memory]:
        return memories(await self._writing.sealing.opened(self._store.fetch, LAYOUT, rows))

    def _check_prefix(self, prefix: str) -> str:
        return check_prefix(prefix, self._settings.max_namespace_length)

    def _origin(self, actor: str | None, task_id: str | None) -> Origin:
        return origin_of(self._access, self._clock.now(), actor, task_id)


def _check_number(what: str, value: object) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise InvalidInput(f"{what} is a whole number from 0, not {value!r}")
