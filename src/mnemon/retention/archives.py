"""Archives: contents that hold what was taken out of the database, and the rows that say what is in which."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from mnemon import journal
from mnemon.access import under
from mnemon.contents import Contents
from mnemon.errors import StoreBusy, StoreError
from mnemon.journal import Origin
from mnemon.model import Content
from mnemon.ports import Store, Transaction
from mnemon.retention.rows import SQL, ArchiveRow, heading, lines_but
from mnemon.sql import among, load

_REFERENCES = load("artifacts")
_PAGE = 200
_ATTEMPTS = 10


class Archives:
    """Makes archives, and takes out of them what is erased. The caller has seen to what may be done."""

    def __init__(self, store: Store, contents: Contents) -> None:
        self._store = store
        self._contents = contents

    async def put(self, about: Mapping[str, Any], lines: Iterable[bytes]) -> Content:
        """Make the content of an archive, which is durable when this returns. `note` it, or `drop` it."""
        return await self._contents.put([heading(about), *lines], about["namespace"])

    async def read(self, row: ArchiveRow) -> bytes:
        return await self._contents.whole(row.sha256)

    async def note(self, tx: Transaction, origin: Origin, row: Mapping[str, Any], places: Sequence[Any]) -> int:
        """Say that there is an archive, and which memories are in it; its number."""
        [(number,)] = await tx.fetch_each(SQL["insert_archive"], [{**row, "created_at": origin.now}])
        inside = [{"archive_id": number, "namespace": namespace, "key": key} for namespace, key in places]
        if inside:
            await tx.execute_many(SQL["insert_archived"], inside)
        told = {name: row[name] for name in ("policy", "memories", "versions")}
        await journal.record(tx, [archive_entry(origin, "create", row["namespace"], number, told)])
        return number

    async def drop(self, sha256: str) -> bool:
        """Remove a content that nothing refers to any more; whether it was removed."""
        wanted = among("sha256", [sha256], "sha")
        if await self._store.fetch(_REFERENCES["referenced_among"].where([wanted]), wanted.params):
            return False
        return await self._contents.remove(sha256)

    async def discard(self, row: ArchiveRow, origin: Origin) -> None:
        """Give up an archive, and remove its content."""

        async def unit(tx: Transaction) -> None:
            if await tx.execute(SQL["delete_archive"], {"id": row.id}):
                await journal.record(tx, [archive_entry(origin, "discard", row.namespace, row.id, {})])

        await self._store.write(unit)
        await self.drop(row.sha256)

    # -- erasing

    async def mark(self, tx: Transaction, namespace: str, key: str, now: int) -> list[int]:
        """A memory is to be erased: nobody can restore it any more, even if the process dies here; from where."""
        place = {"namespace": namespace, "key": key, "now": now}
        return [number for (number,) in await tx.fetch_all(SQL["mark_erased"], place)]

    async def places(self, prefix: str) -> list[tuple[str, str]]:
        """Some of the memories at or below a prefix that are in archives."""
        below = under("namespace", [prefix], "within")
        params = {**below.params, "limit": _PAGE}
        return [(*row,) for row in await self._store.fetch(SQL["archived_places"].where([below]), params)]

    async def erase(self, numbers: Iterable[int], origin: Origin) -> None:
        """Write archives anew without what was marked in them, and remove their old contents."""
        for number in sorted(set(numbers)):
            await self._erase(number, origin)

    async def give_up_episodes(self, tx: Transaction, prefix: str, origin: Origin) -> list[int]:
        """Episodes are to be erased: nobody can restore those of some archives any more, even if the process dies here.

        How many each had. Those of an archive that was restored are in the database again, and are not counted.
        """
        below = under("namespace", [prefix], "within")
        rows = await tx.fetch_all(SQL["give_up_episodes"].where([below]), {**below.params, "limit": _PAGE})
        entries = [archive_entry(origin, "discard", namespace, number, {}) for number, namespace, *_ in rows]
        if entries:
            await journal.record(tx, entries)
        return [0 if restored_at else memories for *_, memories, restored_at in rows]

    async def remove_given_up(self, prefix: str) -> None:
        """Remove the archives that were given up, with their contents; what could not be removed is told in the end."""
        below = under("namespace", [prefix], "within")
        query, params = SQL["given_up"].where([below]), {**below.params, "after": 0, "limit": _PAGE}
        failed: StoreError | None = None
        while rows := [ArchiveRow(*row) for row in await self._store.fetch(query, params)]:
            for row in rows:
                try:
                    await self._finish(row, ())
                except StoreError as error:
                    failed = error
            params["after"] = rows[-1].id
        if failed is not None:
            raise failed

    async def unfinished(self) -> list[int]:
        """The archives that still hold something which is marked, as the process died or the contents were down."""
        found: list[int] = []
        while rows := await self._store.fetch(
            SQL["unfinished_erasures"], {"after": found[-1] if found else 0, "limit": _PAGE}
        ):
            found += [number for (number,) in rows]
        return found

    async def _erase(self, number: int, origin: Origin) -> None:
        """Each step can be the last one of a process: the next that comes by goes on from there."""
        for _ in range(_ATTEMPTS):
            rows = await self._store.fetch(SQL["get_archive"].where([]), {"id": number})
            marked = {(*row,) for row in await self._store.fetch(SQL["erased_in"], {"id": number})}
            if not rows or not marked:
                return
            row = ArchiveRow(*rows[0])
            if row.replaced is not None:  # another was here before; what was marked since may be in it still
                await self._finish(row, ())
            elif (written := await self._rewritten(row, marked, origin)) is not None:
                await self._finish(written, marked)
        raise StoreBusy(f"archive {number} was changed again and again; erase once more")

    async def _rewritten(self, row: ArchiveRow, places: set[Any], origin: Origin) -> ArchiveRow | None:
        """The archive without some memories, if it was as it had been read; one of nothing else has no content."""
        left = (await self._store.fetch(SQL["count_archived"], {"id": row.id}))[0][0]
        content, versions = Content("", 0), 0
        if left:
            lines = lines_but(await self.read(row), places)
            content, versions = await self._contents.put(lines, row.namespace), len(lines) - 1
        written = row._replace(
            sha256=content.sha256, size=content.size, memories=left, versions=versions, replaced=row.sha256
        )
        if await self._store.write(partial(self._rewrite, written, len(places), origin)):
            return written
        if left:
            await self.drop(content.sha256)
        return None

    async def _rewrite(self, row: ArchiveRow, erased: int, origin: Origin, tx: Transaction) -> bool:
        done = await tx.execute(SQL["rewrite_archive"], {**row._asdict(), "was": row.replaced})
        if done:
            await journal.record(tx, [archive_entry(origin, "erase", row.namespace, row.id, {"memories": erased})])
        return bool(done)

    async def _finish(self, row: ArchiveRow, places: Iterable[Any]) -> None:
        """Remove the content that an archive had, and only then forget that there was something to do."""
        if row.replaced and row.replaced != row.sha256:
            await self.drop(row.replaced)
        gone = [{"archive_id": row.id, "namespace": namespace, "key": key} for namespace, key in places]

        async def unit(tx: Transaction) -> None:
            if not row.sha256:
                await tx.execute(SQL["delete_archive"], {"id": row.id})
                return
            await tx.execute(SQL["forget_replaced"], {"id": row.id, "replaced": row.replaced})
            await tx.execute_many(SQL["forget_erased"], gone)

        await self._store.write(unit)


def archive_entry(
    origin: Origin, operation: str, namespace: str, number: int, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """The journal entry of a change of an archive."""
    return journal.entry(origin, "archive", str(number), operation, namespace=namespace, payload=payload)
