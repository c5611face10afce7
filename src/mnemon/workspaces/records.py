"""Workspaces as the database has them, for one caller: found, held while they are changed, and recorded."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from mnemon import journal
from mnemon.access import Access, under
from mnemon.clock import Clock
from mnemon.encryption.sealing import Sealing
from mnemon.errors import InvalidInput, SnapshotNotFound, WorkspaceExists, WorkspaceFileNotFound, WorkspaceNotFound
from mnemon.journal import Origin, origin_of
from mnemon.model import Level, Snapshot
from mnemon.namespaces import check_identifier
from mnemon.ports import Row, Store, Transaction
from mnemon.sql import Fragment, params_of
from mnemon.workspaces.paths import bounds, is_within
from mnemon.workspaces.rows import FILE, PRESENT, SQL, WORKSPACE, FileRow, SnapshotRow, WorkspaceRow, visible
from mnemon.workspaces.tree import ALL, Changed, Tree, Wanted

_NAMED = 20  # paths that a journal entry names at the most

At: TypeAlias = int | Snapshot | None
"""A snapshot, or its number; None is now."""
Plan: TypeAlias = Callable[[Tree], Awaitable[Wanted]]
"""Says what the files are to be, inside the transaction that makes them so."""


class By(NamedTuple):
    """In whose name something is changed, and for which task."""

    actor: str | None
    task_id: str | None


class View(NamedTuple):
    """A workspace as it is or was, and the condition that a version of a file is in it."""

    workspace: WorkspaceRow
    revision: int
    condition: Fragment
    files: int
    size: int


class Records:
    """What one caller may see and change of all workspaces."""

    def __init__(self, store: Store, clock: Clock, access: Access, sealing: Sealing) -> None:
        self.store = store
        self.sealing = sealing
        self._clock = clock
        self._access = access

    def origin(self, by: By, now: int | None = None) -> Origin:
        """Who changes something now."""
        return origin_of(self._access, self._clock.now() if now is None else now, *by)

    async def insert(
        self, tx: Transaction, row: WorkspaceRow, origin: Origin, payload: Mapping[str, Any] | None = None
    ) -> None:
        """Write down a new workspace."""
        if not await tx.execute(SQL["insert_workspace"], await self.sealing.sealed(tx, WORKSPACE, row._asdict())):
            raise WorkspaceExists(f"workspace {row.id!r} exists already; choose another id")
        await record(tx, origin, row, "create", payload)

    async def find(self, tx: Transaction, workspace_id: str, level: Level, lock: str = "") -> WorkspaceRow | None:
        """The workspace, if there is one that is open at the level."""
        prefixes = self._access.prefixes(level)
        conditions = [] if self._access.principal is None else [under("namespace", prefixes, "open")]
        params = {"id": check_identifier("workspace_id", workspace_id), **params_of(conditions)}
        rows = await tx.fetch_all(SQL["get_workspace"].where(conditions, lock), params)
        return WorkspaceRow(*(await self.sealing.opened(tx.fetch_all, WORKSPACE, rows))[0]) if rows else None

    async def seen(self, tx: Transaction, workspace_id: str, level: Level = "read", lock: str = "") -> WorkspaceRow:
        """The workspace, which has to be there."""
        row = await self.find(tx, workspace_id, level, lock)
        if row is None:
            raise WorkspaceNotFound(f"no workspace {workspace_id!r}; create it with workspaces.create")
        return row

    async def held(self, tx: Transaction, workspace_id: str, level: Level = "write") -> WorkspaceRow:
        """The workspace, which nobody else can change before the transaction's end."""
        return await self.seen(tx, workspace_id, level, self.store.dialect.row_lock)

    async def require(self, workspace_id: str, level: Level) -> str:
        """Refuse now what would be refused only after all contents were put; the workspace's namespace."""
        return (await self.store.read(lambda tx: self.seen(tx, workspace_id, level))).namespace

    async def view(self, tx: Transaction, workspace_id: str, at: At) -> View:
        """The workspace now or in a snapshot."""
        row = await self.seen(tx, workspace_id)
        if at is None:
            return View(row, row.revision, PRESENT, row.files, row.size)
        if isinstance(at, Snapshot) and at.workspace_id != row.id:
            raise SnapshotNotFound(f"the snapshot is of workspace {at.workspace_id!r}, not of {row.id!r}")
        number = at.number if isinstance(at, Snapshot) else at
        if isinstance(number, bool) or not isinstance(number, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"a snapshot is given by its number, not by {number!r:.80}")
        found = await tx.fetch_one(SQL["get_snapshot"], {"workspace_id": row.id, "number": number})
        if found is None:
            raise SnapshotNotFound(f"workspace {row.id!r} has no snapshot {number}; `log` lists those it has")
        snapshot = SnapshotRow(*found)
        return View(row, snapshot.revision, visible(snapshot.revision), snapshot.files, snapshot.size)

    async def change(
        self, workspace_id: str, operation: str, by: By, plan: Plan, payload: Mapping[str, Any] | None = None
    ) -> Changed:
        """Do as planned to the files in one transaction, and record it if anything changed."""
        origin = self.origin(by)

        async def unit(tx: Transaction) -> Changed:
            tree = Tree(tx, await self.held(tx, workspace_id), self.sealing)
            changed = await tree.change(await plan(tree), origin)
            paths = list(dict.fromkeys([*changed.after, *changed.before]))
            if paths:
                told = {"files": len(paths), "paths": paths[:_NAMED], **(payload or {})}
                await record(tx, origin, changed.workspace, operation, told)
            return changed

        return await self.store.write(unit)

    async def files(self, tx: Transaction, rows: Sequence[Row]) -> list[FileRow]:
        """Versions of files as they were before what is noted of them was encrypted, if it was."""
        return [FileRow(*row) for row in await self.sealing.opened(tx.fetch_all, FILE, rows)]

    async def below(
        self, tx: Transaction, view: View, folder: str, limit: int, after: str | None = None
    ) -> Sequence[FileRow]:
        """The files below a folder, in order, after a path; if the folder is a file itself, that."""
        common = {"workspace_id": view.workspace.id, **view.condition.params}
        params = {**common, **bounds(folder), "limit": limit, **({} if after is None else {"after": after})}
        rows = await tx.fetch_all(SQL["list_files"].where([view.condition]), params)
        if not rows and folder and after is None:
            rows = await tx.fetch_all(SQL["get_file"].where([view.condition]), {**common, "path": folder})
        return await self.files(tx, rows)

    async def between(
        self, tx: Transaction, workspace_id: str, one: int, other: int, folder: str
    ) -> tuple[dict[str, FileRow], dict[str, FileRow]]:
        """What each of two revisions has that the other has not, by path."""
        earlier, later = sorted((one, other))
        params = {"workspace_id": workspace_id, "earlier": earlier, "later": later}
        ended = await self.files(tx, await tx.fetch_all(SQL["ended"], params))
        begun = await self.files(tx, await tx.fetch_all(SQL["begun"], params))
        before, after = ({row.path: row for row in rows if is_within(row.path, folder)} for rows in (ended, begun))
        return (before, after) if one <= other else (after, before)

    async def copy_files(self, tx: Transaction, view: View, clone: WorkspaceRow, names: Mapping[str, str]) -> None:
        """Let a new workspace have the files of another. What is encrypted is bound to where it is.

        `names` has the contents that are others there.
        """
        scope = await self.sealing.scope_at(tx.fetch_all, clone.namespace)
        if scope is None and not await self._has_sealed(tx, view):
            params = {"clone_id": clone.id, "workspace_id": view.workspace.id, "since": 1, **view.condition.params}
            await tx.execute(SQL["copy_files"].where([view.condition]), params)
            return
        found = await self.below(tx, view, "", ALL)
        rows = [
            row._replace(workspace_id=clone.id, since=1, until=None, sha256=names.get(row.sha256, row.sha256))._asdict()
            for row in found
        ]
        await tx.execute_many(SQL["insert_file"], await self.sealing.sealed_in(tx, scope, FILE, rows))

    async def _has_sealed(self, tx: Transaction, view: View) -> bool:
        """Whether anything that is noted of the workspace's files is encrypted; without any key nothing can be."""
        if self.sealing.keys is None:
            return False
        return await tx.fetch_one(SQL["sealed_file"], {"workspace_id": view.workspace.id}) is not None


async def record(
    tx: Transaction, origin: Origin, row: WorkspaceRow, operation: str, payload: Mapping[str, Any] | None = None
) -> None:
    """Write a workspace's journal entry."""
    told = journal.entry(
        origin, "workspace", row.id, operation, namespace=row.namespace, version=row.revision, payload=payload
    )
    await journal.record(tx, [told])


def no_file(workspace_id: str, path: str) -> WorkspaceFileNotFound:
    return WorkspaceFileNotFound(f"workspace {workspace_id!r} has no file {path!r}")
