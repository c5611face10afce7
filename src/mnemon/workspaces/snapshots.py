"""Snapshots: numbers for revisions, what differs between two, and the way back to one."""

from collections.abc import Sequence
from dataclasses import replace

from mnemon.contents import Contents
from mnemon.errors import InvalidInput
from mnemon.model import FileDifference, Page, Pruned, Snapshot
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Row, Runner, Transaction
from mnemon.values import check_text
from mnemon.workspaces.differences import compare, unified
from mnemon.workspaces.records import At, By, Records, record
from mnemon.workspaces.rows import SNAPSHOT, SQL, SnapshotRow, snapshot_of
from mnemon.workspaces.tree import Tree, Wanted

_NEWEST = 2**63 - 1
_MOST = 2**31 - 1


class Snapshots:
    """The snapshots of all workspaces that a caller may see. `longest` is for messages and for diffs of texts."""

    def __init__(self, records: Records, contents: Contents, runner: Runner, longest: int) -> None:
        self._records = records
        self._contents = contents
        self._runner = runner
        self._longest = longest

    async def take(self, workspace_id: str, message: str, by: By) -> Snapshot:
        """Give the present revision a number."""
        check_text("a snapshot's message", message, self._longest)
        origin = self._records.origin(by)

        async def unit(tx: Transaction) -> Snapshot:
            held = await self._records.held(tx, workspace_id)
            last = await tx.fetch_one(SQL["last_snapshot"], {"workspace_id": held.id})
            row = SnapshotRow(
                held.id, last[0] + 1 if last else 1, held.revision, message, held.files, held.size,
                origin.actor, origin.task_id, origin.now,
            )  # fmt: skip
            scope = await self._records.sealing.scope_at(tx.fetch_all, held.namespace)
            written = await self._records.sealing.sealed_in(tx, scope, SNAPSHOT, [row._asdict()])
            await tx.execute_many(SQL["insert_snapshot"], written)
            await record(tx, origin, held, "snapshot", {"number": row.number})
            return snapshot_of(row)

        return await self._records.store.write(unit)

    async def get(self, workspace_id: str, number: int) -> Snapshot | None:
        async def unit(tx: Transaction) -> Snapshot | None:
            row = await self._records.seen(tx, workspace_id)
            found = await tx.fetch_all(SQL["get_snapshot"], {"workspace_id": row.id, "number": number})
            return (await self._read(tx, found))[0] if found else None

        return await self._records.store.read(unit)

    async def log(self, workspace_id: str, limit: int, cursor: str | None) -> Page[Snapshot]:
        (before,) = decode_cursor(cursor, "snapshots", (_NEWEST,))
        check_limit(limit)

        async def unit(tx: Transaction) -> Sequence[Snapshot]:
            row = await self._records.seen(tx, workspace_id)
            params = {"workspace_id": row.id, "before": before, "limit": limit}
            return await self._read(tx, await tx.fetch_all(SQL["list_snapshots"], params))

        found = await self._records.store.read(unit)
        more = encode_cursor("snapshots", found[-1].number) if len(found) == limit else None
        return Page(tuple(found), more)

    async def _read(self, tx: Transaction, rows: Sequence[Row]) -> list[Snapshot]:
        return [snapshot_of(row) for row in await self._records.sealing.opened(tx.fetch_all, SNAPSHOT, rows)]

    async def diff(self, workspace_id: str, before: At, after: At, folder: str, text: bool) -> list[FileDifference]:
        """What differs; it takes time for what was written in between, not for what there is."""

        async def unit(tx: Transaction) -> list[FileDifference]:
            first = await self._records.view(tx, workspace_id, before)
            second = await self._records.view(tx, workspace_id, after)
            sides = await self._records.between(tx, first.workspace.id, first.revision, second.revision, folder)
            return compare(*sides)

        found = await self._records.store.read(unit)
        return await self._told([await self._with_text(each) for each in found] if text else found)

    async def restore(self, workspace_id: str, at: int | Snapshot, folder: str, by: By) -> list[FileDifference]:
        """Go back to a snapshot by a new revision; what was changed by that."""

        async def plan(tree: Tree) -> Wanted:
            then = await self._records.view(tree.tx, workspace_id, at)
            present = tree.workspace
            gone, new = await self._records.between(tree.tx, present.id, then.revision, present.revision, folder)
            return {**dict.fromkeys(new), **{path: row.entry for path, row in gone.items()}}

        number = at.number if isinstance(at, Snapshot) else at
        changed = await self._records.change(workspace_id, "restore", by, plan, {"snapshot": number})
        return await self._told(compare(changed.before, changed.after))

    async def prune(self, workspace_id: str, keep: int, by: By) -> Pruned:
        """Forget old snapshots, and the versions of files that neither another snapshot nor the present has."""
        if isinstance(keep, bool) or not isinstance(keep, int) or not 1 <= keep <= _MOST:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"keep is how many snapshots stay, from 1, not {keep!r}")
        origin = self._records.origin(by)

        async def unit(tx: Transaction) -> Pruned:
            held = await self._records.held(tx, workspace_id, "admin")
            params = {"workspace_id": held.id}
            oldest = await tx.fetch_one(SQL["oldest_kept"], {**params, "newer": keep - 1})
            snapshots = await tx.execute(SQL["drop_snapshots"], {**params, "number": oldest[0] if oldest else 0})
            versions = await tx.execute(SQL["drop_unseen"], params)
            if snapshots or versions:
                await record(tx, origin, held, "prune", {"snapshots": snapshots, "versions": versions})
            return Pruned(snapshots, versions)

        return await self._records.store.write(unit)

    async def _told(self, differences: Sequence[FileDifference]) -> list[FileDifference]:
        """With the digests of contents in place of their names."""
        sides = [side for each in differences for side in (each.before, each.after) if side is not None]
        told = iter(await self._contents.told(sides))
        return [
            replace(each, before=each.before and next(told), after=each.after and next(told)) for each in differences
        ]

    async def _with_text(self, difference: FileDifference) -> FileDifference:
        sides = (difference.before, difference.after)
        if any(side is not None and side.size > self._longest for side in sides):
            return difference
        before, after = [b"" if side is None else await self._contents.whole(side.sha256) for side in sides]
        return replace(difference, text=await self._runner.aside(lambda: unified(difference, before, after)))
