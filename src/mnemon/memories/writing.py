"""Writing versions of memories: rows, their journal entries, and what makes them findable, in one transaction."""

from collections.abc import Mapping, Sequence
from typing import Any

from mnemon import journal
from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.errors import ConflictError, MemoryNotFound
from mnemon.journal import Origin
from mnemon.memories.findable import Findable, Vectors
from mnemon.memories.rows import LAYOUT, SQL, check_type, memories, named, placement_row, provenance_row, stored
from mnemon.model import Level, Memory, MemoryDraft, Placement, Provenance
from mnemon.namespaces import check_key, check_namespace
from mnemon.ports import Raced, Row, Store, Transaction, Unit
from mnemon.settings import Settings
from mnemon.values import encode, encode_metadata

_CONTENT = (
    "value", "memory_type", "metadata", "session_id", "event_id", "author", "trust", "importance",
    "thread", "position", "occurred_at", "valid_to",
)  # fmt: skip


class Writing:
    """Writes versions of memories, as far as one caller may. Its steps are for inside a transaction."""

    def __init__(self, store: Store, clock: Clock, settings: Settings, access: Access, findable: Findable) -> None:
        self.findable = findable
        self.sealing = findable.sealing
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access

    # -- whole units of work

    async def putting(
        self,
        drafts: Sequence[MemoryDraft],
        origin: Origin,
        vectors: Sequence[Vectors] | None = None,
        *,
        renew: bool = False,
    ) -> Unit[list[Memory]]:
        """The unit of work of `put_memories`, with everything embedded that can be embedded now.

        `vectors` are used instead of the embedder's. `renew` writes a new version even of what says the same.
        """
        rows = [self.new_row(draft, origin) for draft in drafts]
        namespaces = [draft.namespace for draft in drafts]
        if vectors is None:
            vectors = await self.findable.embed([draft.value for draft in drafts], namespaces)
        else:
            await self.sealing.prepare(namespaces)
        found = vectors

        async def unit(tx: Transaction) -> list[Memory]:
            pairs = zip(rows, found, strict=True)
            return memories([stored(await self._put(tx, origin, *each, renew=renew)) for each in pairs])

        return unit

    def deleting(self, places: Sequence[tuple[str, str]], origin: Origin, **changes: Any) -> Unit[None]:
        """A unit of work that deletes those of some namespaces and keys that have a live memory.

        `changes` are columns in which the deletion differs from what is deleted.
        """

        async def unit(tx: Transaction) -> None:
            for namespace, key in places:
                if await tx.fetch_one(SQL["get_current"], {"namespace": namespace, "key": key}):
                    before = await self.retire(tx, namespace, key, None)
                    await self.follow(tx, origin, "delete", before, {"is_deleted": True, **changes})

        return unit

    # -- steps

    def new_row(self, draft: MemoryDraft, origin: Origin) -> dict[str, Any]:
        """A first version as a row, checked."""
        key = self._clock.new_id() if draft.key is None else draft.key
        self.check_place(draft.namespace, key, "write")
        return {
            "namespace": draft.namespace, "key": key, "version": 1, "is_deleted": False, "is_current": True,
            "value": encode("the memory's value", draft.value, self._settings.max_value_bytes),
            "memory_type": str(check_type(draft.memory_type)),
            "metadata": encode_metadata(draft.metadata, self._settings.max_value_bytes),
            "created_by": origin.actor, "updated_by": origin.actor, "task_id": origin.task_id,
            "created_at": origin.now, "updated_at": origin.now,
            **provenance_row(draft.provenance or Provenance()),
            **placement_row(draft.placement or Placement(), origin.now),
        }  # fmt: skip

    async def _put(
        self, tx: Transaction, origin: Origin, row: dict[str, Any], vectors: Vectors, *, renew: bool
    ) -> dict[str, Any]:
        """Add the row, or let it follow what is there; what stands there then."""
        added = await self.add(tx, origin, row, vectors)
        if added is not None:
            return added
        current = await tx.fetch_one(SQL["get_current"], row)
        if current and not renew:
            known = await self.opened(tx, current)
            if _says_the_same(known, row):
                return known
        before = await self.retire(tx, row["namespace"], row["key"], None)
        operation = "add" if before["is_deleted"] else "update"  # it was deleted in this very moment
        kept = {"created_at", "created_by", "version", "updated_at", "updated_by"}
        changes = {name: value for name, value in row.items() if name not in kept}
        written = await self.follow(tx, origin, operation, before, changes)
        await self.findable.put(tx, [written], [vectors])
        return written

    async def add(
        self, tx: Transaction, origin: Origin, row: dict[str, Any], vectors: Vectors
    ) -> dict[str, Any] | None:
        """Write a first version, or the one after a deletion; None if there is a live one."""
        inserted = await tx.fetch_one(SQL["insert_memory"], await self.sealing.sealed(tx, LAYOUT, row))
        if inserted:
            await journal.record(tx, [entry_of(origin, "add", row["namespace"], row["key"], 1)])
            added = {**row, "id": inserted[0]}
        else:
            latest = await tx.fetch_one(SQL["latest_version"].fill(lock=""), row)
            if latest is None or not named(latest)["is_deleted"]:
                return None
            before = await self.retire(tx, row["namespace"], row["key"], None)
            if not before["is_deleted"]:
                raise Raced  # another writer added it between the look and the lock
            added = await self._insert(tx, origin, "add", {**row, "version": before["version"] + 1})
        await self.findable.put(tx, [added], [vectors])
        return added

    async def retire(self, tx: Transaction, namespace: str, key: str, expected_version: int | None) -> dict[str, Any]:
        """Take the newest version's place; it, as a row."""
        query = SQL["latest_version"].fill(lock=self._store.dialect.row_lock)
        row = await tx.fetch_one(query, {"namespace": namespace, "key": key})
        if row is None:
            raise not_found(namespace, key)
        before = await self.opened(tx, row)
        if not before["is_current"]:
            raise Raced  # another writer was quicker while this one waited for the row
        await tx.execute(SQL["retire"], {"id": before["id"]})
        if expected_version not in (None, before["version"]):
            raise ConflictError(
                f"memory {key!r} of {namespace!r} has version {before['version']}, not {expected_version}: "
                "read it again and retry"
            )
        if not before["is_deleted"]:
            await self.findable.retire(tx, before["id"])
        return before

    async def follow(
        self, tx: Transaction, origin: Origin, operation: str, before: dict[str, Any], changes: dict[str, Any]
    ) -> dict[str, Any]:
        """Write the version after `before`; it, as a row."""
        row: dict[str, Any] = {
            **before, "valid_from": origin.now, "valid_to": None, **changes,
            "version": before["version"] + 1, "updated_by": origin.actor, "updated_at": origin.now,
            "task_id": origin.task_id,
        }  # fmt: skip
        return await self._insert(tx, origin, operation, row)

    async def _insert(self, tx: Transaction, origin: Origin, operation: str, row: dict[str, Any]) -> dict[str, Any]:
        inserted = await tx.fetch_one(SQL["insert_memory"], await self.sealing.sealed(tx, LAYOUT, row))
        if inserted is None:
            raise Raced
        await journal.record(tx, [entry_of(origin, operation, row["namespace"], row["key"], row["version"])])
        return {**row, "id": inserted[0], "is_current": True}

    async def opened(self, tx: Transaction, row: Row) -> dict[str, Any]:
        """A row as the parameters that would write it again, and no longer encrypted."""
        return named((await self.sealing.opened(tx.fetch_all, LAYOUT, [row]))[0])

    def check_place(self, namespace: str, key: str, level: Level) -> None:
        """Refuse what cannot be a memory's place, or is not open to the caller at this level."""
        check_namespace(namespace, self._settings.max_namespace_length)
        check_key("a memory's key", key, self._settings.max_key_length)
        self._access.require(namespace, level)


def entry_of(
    origin: Origin,
    operation: str,
    namespace: str,
    key: str,
    version: int | None,
    payload: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The journal entry of a change of a memory."""
    return journal.entry(origin, "memory", key, operation, namespace=namespace, version=version, payload=payload)


def not_found(namespace: str, key: str) -> MemoryNotFound:
    return MemoryNotFound(f"{namespace!r} has no memory {key!r}")


def _says_the_same(before: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a new version would differ only in when and by whom it was written."""
    return all(before[name] == row[name] for name in _CONTENT)
