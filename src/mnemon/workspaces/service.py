"""Workspaces and their files: what there is, writing and reading; snapshots and folders are seen to beside this."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from mnemon.access import Access, under
from mnemon.clock import Clock
from mnemon.contents import Contents, Data
from mnemon.errors import PathTaken
from mnemon.model import (
    FileDifference,
    FileDraft,
    Imported,
    Page,
    Pruned,
    Snapshot,
    Workspace,
    WorkspaceFile,
)
from mnemon.namespaces import check_identifier, check_namespace, check_prefix
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Runner, Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import Fragment, params_of
from mnemon.values import encode_metadata
from mnemon.workspaces.paths import AnyPath, check_folder, check_path, check_patterns, is_within
from mnemon.workspaces.records import At, By, Records, no_file, record
from mnemon.workspaces.rows import SQL, WORKSPACE, FileRow, WorkspaceRow, file_of, workspace_of
from mnemon.workspaces.snapshots import Snapshots
from mnemon.workspaces.transfers import Report, Transfers
from mnemon.workspaces.tree import ALL, Tree, Wanted
from mnemon.workspaces.writing import Writing, check_version, drafts_of


class WorkspaceService:
    """Keeps file trees, every version of their files, and snapshots of them.

    Paths are relative, with `/` between the names; nothing outside the workspace can be named.
    """

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, access: Access, contents: Contents, runner: Runner
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._contents = contents
        self._runner = runner
        self._records = Records(store, clock, access, contents.sealing)
        self._snapshots = Snapshots(self._records, contents, runner, settings.max_value_bytes)
        self._writing = Writing(self._records, contents, runner, settings.max_value_bytes)
        self._transfers = Transfers(self._records, contents, runner)

    # -- workspaces

    async def create(
        self,
        workspace_id: str | None = None,
        *,
        namespace: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Workspace:
        """Create an empty workspace; without a namespace it lies in `app:workspaces:<id>`."""
        row = self._new(workspace_id, namespace, encode_metadata(metadata, self._settings.max_value_bytes), actor)
        origin = self._records.origin(By(actor, task_id), row.created_at)

        await self._records.sealing.prepare([row.namespace])

        async def unit(tx: Transaction) -> None:
            await self._records.insert(tx, row, origin)

        await self._store.write(unit)
        return workspace_of(row)

    async def get(self, workspace_id: str) -> Workspace | None:
        """The workspace, or None if there is none."""

        async def unit(tx: Transaction) -> Workspace | None:
            row = await self._records.find(tx, workspace_id, "read")
            return workspace_of(row) if row else None

        return await self._store.read(unit)

    async def list(self, namespace: str = "", *, limit: int = 50, cursor: str | None = None) -> Page[Workspace]:
        """The workspaces at or below a namespace, in order of namespace and id, a page at a time."""
        prefixes = self._access.within(check_prefix(namespace, self._settings.max_namespace_length), "read")
        conditions = [under("namespace", prefixes, "within")]
        if all(prefixes):
            conditions.append(Fragment("namespace < :beyond", {"beyond": max(f"{prefix};" for prefix in prefixes)}))
        after, after_id = decode_cursor(cursor, "workspaces", (min(prefixes), ""))
        params = {"limit": check_limit(limit), "after": after, "after_id": after_id, **params_of(conditions)}
        found = await self._store.fetch(SQL["list_workspaces"].where(conditions), params)
        rows = [WorkspaceRow(*row) for row in await self._records.sealing.opened(self._store.fetch, WORKSPACE, found)]
        more = encode_cursor("workspaces", rows[-1].namespace, rows[-1].id) if len(rows) == limit else None
        return Page(tuple(workspace_of(row) for row in rows), more)

    async def update_metadata(
        self,
        workspace_id: str,
        metadata: Mapping[str, Any],
        *,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Workspace:
        """Replace the workspace's own metadata; its files and its revision stay."""
        text = encode_metadata(metadata, self._settings.max_value_bytes)
        origin = self._records.origin(By(actor, task_id))

        async def unit(tx: Transaction) -> Workspace:
            held = await self._records.held(tx, workspace_id)
            row = held._replace(metadata=text, updated_at=origin.now)
            await tx.execute(SQL["set_workspace"], await self._records.sealing.sealed(tx, WORKSPACE, row._asdict()))
            await record(tx, origin, row, "metadata")
            return workspace_of(row)

        return await self._store.write(unit)

    async def delete(self, workspace_id: str, *, actor: str | None = None, task_id: str | None = None) -> None:
        """Delete the workspace with its snapshots and all versions of its files; a principal needs `admin`.

        What its files held is removed by the next cleanup, unless something else holds the same.
        """
        origin = self._records.origin(By(actor, task_id))

        async def unit(tx: Transaction) -> None:
            row = await self._records.held(tx, workspace_id, "admin")
            await tx.execute(SQL["delete_workspace"], {"id": row.id})
            await record(tx, origin, row, "delete")

        await self._store.write(unit)

    async def clone(
        self,
        workspace_id: str,
        clone_id: str | None = None,
        *,
        at: At = None,
        namespace: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Workspace:
        """A new workspace with the files that this one has, or had in a snapshot; nothing is copied but their names.

        Contents are too, if the new one's namespace is encrypted, and they are not, or by another key.

        Without `metadata` it has that of the first. Its own history begins with this.
        """
        given = None if metadata is None else encode_metadata(metadata, self._settings.max_value_bytes)
        blank = self._new(clone_id, namespace, "{}", actor)
        origin = self._records.origin(By(actor, task_id), blank.created_at)
        names = await self._put_again(workspace_id, at, blank.namespace)

        async def unit(tx: Transaction) -> Workspace:
            view = await self._records.view(tx, workspace_id, at)
            row = blank._replace(
                metadata=view.workspace.metadata if given is None else given,
                revision=1 if view.files else 0,
                files=view.files,
                size=view.size,
            )
            await self._records.insert(tx, row, origin, {"cloned_from": view.workspace.id, "revision": view.revision})
            await self._records.copy_files(tx, view, row, names)
            return workspace_of(row)

        return await self._store.write(unit)

    async def _put_again(self, workspace_id: str, at: At, namespace: str) -> Mapping[str, str]:
        """The contents of files that are others where they are encrypted otherwise: their names there."""
        if await self._contents.key_for(namespace) is None:
            return {}

        async def unit(tx: Transaction) -> Sequence[FileRow]:
            return await self._records.below(tx, await self._records.view(tx, workspace_id, at), "", ALL)

        files = await self._store.read(unit, long=True)
        return await self._contents.put_again([row.sha256 for row in files], namespace)

    # -- writing files

    async def write(
        self,
        workspace_id: str,
        path: AnyPath,
        data: Data,
        *,
        metadata: Mapping[str, Any] | None = None,
        is_executable: bool | None = None,
        expected_version: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> WorkspaceFile:
        """Write a file. `metadata` and `is_executable` stay as they are if they are None.

        `expected_version` is the file's version as the caller knows it, 0 if it should be new: `ConflictError` if
        it is another one now. Nothing changes if the file is so already.
        """
        draft = FileDraft(check_path(path), data, metadata, is_executable, expected_version)
        [written] = await self.write_many(workspace_id, [draft], actor=actor, task_id=task_id)
        return written

    async def write_many(
        self,
        workspace_id: str,
        files: Mapping[str, Data] | Iterable[FileDraft],
        *,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Sequence[WorkspaceFile]:
        """Write several files as one revision, all or none: drafts, or a mapping of paths to data."""
        return await self._writing.write(workspace_id, drafts_of(files), By(actor, task_id))

    async def set_metadata(
        self,
        workspace_id: str,
        path: AnyPath,
        metadata: Mapping[str, Any],
        *,
        is_executable: bool | None = None,
        expected_version: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> WorkspaceFile:
        """Replace what is noted of a file, and whether it is executable; what is in it stays."""
        place, text = check_path(path), encode_metadata(metadata, self._settings.max_value_bytes)

        async def plan(tree: Tree) -> Wanted:
            row = (await tree.find([place])).get(place)
            if row is None:
                raise no_file(workspace_id, place)
            check_version(place, expected_version, row)
            wanted = row.entry._replace(metadata=text)
            return {place: wanted if is_executable is None else wanted._replace(is_executable=bool(is_executable))}

        changed = await self._records.change(workspace_id, "metadata", By(actor, task_id), plan)
        return (await self._contents.told([file_of(changed.left[place])]))[0]

    async def remove(
        self,
        workspace_id: str,
        path: AnyPath,
        *,
        expected_version: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Remove a file, or a folder with all that is in it; how many files. Earlier versions stay."""
        place = check_folder(path)

        async def plan(tree: Tree) -> Wanted:
            found = await tree.at(place)
            if expected_version is not None:
                check_version(place, expected_version, found.get(place))
            if not found:
                raise no_file(workspace_id, place)
            return dict.fromkeys(found)

        changed = await self._records.change(workspace_id, "remove", By(actor, task_id), plan)
        return len(changed.before)

    async def move(
        self,
        workspace_id: str,
        path: AnyPath,
        new_path: AnyPath,
        *,
        overwrite: bool = False,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Move a file, or a folder with all that is in it; how many files.

        `PathTaken` if a file is in the way, unless it may be overwritten.
        """
        source, target = (check_path(check_folder(each)) for each in (path, new_path))
        if target != source and is_within(target, source):
            raise PathTaken(f"{source!r} cannot be moved into itself")

        async def plan(tree: Tree) -> Wanted:
            found = await tree.at(source)
            if not found:
                raise no_file(workspace_id, source)
            moved = {check_path(target + old[len(source) :]): row.entry for old, row in found.items()}
            taken = [each for each in await tree.find(moved) if each not in found]
            if taken and not overwrite:
                raise PathTaken(f"{taken[0]!r} is there already; say overwrite=True to replace it")
            return {**dict.fromkeys(found), **moved}

        changed = await self._records.change(
            workspace_id, "move", By(actor, task_id), plan, {"from": source, "to": target}
        )
        return len(changed.after)

    # -- reading files

    async def stat(
        self, workspace_id: str, path: AnyPath, *, at: At = None, version: int | None = None
    ) -> WorkspaceFile | None:
        """What is known of a file now, in a snapshot or in a version; None if there is no such file."""
        found = await self._find(workspace_id, path, at, version)
        return None if found is None else (await self._contents.told([found]))[0]

    async def _find(self, workspace_id: str, path: AnyPath, at: At, version: int | None) -> WorkspaceFile | None:
        """The same, with the name of its content in place of the digest."""
        place = check_path(path)

        async def unit(tx: Transaction) -> WorkspaceFile | None:
            view = await self._records.view(tx, workspace_id, at)
            wanted = view.condition if version is None else Fragment("since = :since", {"since": version})
            params = {"workspace_id": view.workspace.id, "path": place, **wanted.params}
            rows = await self._records.files(tx, await tx.fetch_all(SQL["get_file"].where([wanted]), params))
            return file_of(rows[0]) if rows else None

        return await self._store.read(unit)

    async def read(self, workspace_id: str, path: AnyPath, *, at: At = None, version: int | None = None) -> bytes:
        """All that is in a file now, in a snapshot or in a version, verified."""
        return await self._contents.whole((await self._file(workspace_id, path, at, version)).sha256)

    async def open(
        self, workspace_id: str, path: AnyPath, *, at: At = None, version: int | None = None, offset: int = 0
    ) -> AsyncIterator[bytes]:
        """What is in a file, in pieces, from `offset` on; read from the beginning it is verified."""
        file = await self._file(workspace_id, path, at, version)
        async with aclosing(self._contents.read(file.sha256, offset)) as pieces:
            async for piece in pieces:
                yield piece

    async def list_files(
        self,
        workspace_id: str,
        prefix: AnyPath = "",
        *,
        at: At = None,
        limit: int = 1000,
        cursor: str | None = None,
    ) -> Page[WorkspaceFile]:
        """The files of a folder and of those inside it, or of all, in the order of their paths, a page at a time."""
        folder = check_folder(prefix)
        after = decode_cursor(cursor, "files", ("",))[0] or None
        check_limit(limit)

        async def unit(tx: Transaction) -> Sequence[FileRow]:
            return await self._records.below(tx, await self._records.view(tx, workspace_id, at), folder, limit, after)

        rows = await self._store.read(unit)
        more = encode_cursor("files", rows[-1].path) if len(rows) == limit else None
        return Page(tuple(await self._contents.told([file_of(row) for row in rows])), more)

    async def history(self, workspace_id: str, path: AnyPath, *, limit: int = 100) -> Sequence[WorkspaceFile]:
        """The versions of the file at a path, the newest first; each can be read with `version`."""
        place = check_path(path)

        async def unit(tx: Transaction) -> Sequence[WorkspaceFile]:
            row = await self._records.seen(tx, workspace_id)
            params = {"workspace_id": row.id, "path": place, "limit": check_limit(limit)}
            return [file_of(each) for each in await self._records.files(tx, await tx.fetch_all(SQL["history"], params))]

        return await self._contents.told(await self._store.read(unit))

    # -- snapshots

    async def snapshot(
        self, workspace_id: str, message: str = "", *, actor: str | None = None, task_id: str | None = None
    ) -> Snapshot:
        """Give the present state a number; it takes the same however many files there are."""
        return await self._snapshots.take(workspace_id, message, By(actor, task_id))

    async def get_snapshot(self, workspace_id: str, number: int) -> Snapshot | None:
        """The snapshot of this number, or None if there is none."""
        return await self._snapshots.get(workspace_id, number)

    async def log(self, workspace_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Snapshot]:
        """The snapshots, the newest first, a page at a time."""
        return await self._snapshots.log(workspace_id, limit, cursor)

    async def diff(
        self,
        workspace_id: str,
        before: int | Snapshot,
        after: At = None,
        *,
        prefix: AnyPath = "",
        text: bool = False,
    ) -> Sequence[FileDifference]:
        """What differs between two snapshots, or between one and now, in the order of paths.

        It takes time for what was written in between, not for what there is. With `text`, files that are texts
        come with a unified diff.
        """
        return await self._snapshots.diff(workspace_id, before, after, check_folder(prefix), text)

    async def restore(
        self,
        workspace_id: str,
        at: int | Snapshot,
        *,
        prefix: AnyPath = "",
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Sequence[FileDifference]:
        """Make the files, or those of a folder, what they were in a snapshot; what was changed by that.

        It is a new revision: nothing of what was between is lost.
        """
        return await self._snapshots.restore(workspace_id, at, check_folder(prefix), By(actor, task_id))

    async def prune(
        self, workspace_id: str, *, keep: int, actor: str | None = None, task_id: str | None = None
    ) -> Pruned:
        """Forget all snapshots but the newest `keep`, and versions of files that no snapshot has then.

        A principal needs `admin`. What those versions held is removed by the next cleanup.
        """
        return await self._snapshots.prune(workspace_id, keep, By(actor, task_id))

    # -- real folders

    async def import_folder(
        self,
        workspace_id: str,
        folder: str | Path,
        *,
        prefix: AnyPath = "",
        ignore: str | Iterable[str] | None = None,
        mirror: bool = False,
        progress: Report | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Imported:
        """Write the files of a real folder; those that are so already are only read.

        Links and what is no plain file are left out, and so is what `ignore` is for, as a `.gitignore` would say it.
        `mirror` removes what the folder does not have. Files are written some hundred at a time: interrupted, begin
        again.
        """
        ignored = check_patterns(ignore or ())
        return await self._transfers.bring(
            workspace_id, Path(folder), check_folder(prefix), ignored, mirror, progress, By(actor, task_id)
        )

    async def export_folder(
        self,
        workspace_id: str,
        folder: str | Path,
        *,
        prefix: AnyPath = "",
        at: At = None,
        overwrite: bool = False,
        progress: Report | None = None,
    ) -> int:
        """Write the files, or those of a folder, to a real folder; how many. Nothing outside of it is written.

        The folder is made if it is not there, and has to be empty unless files in it may be overwritten.
        """
        place = check_folder(prefix)
        return await self._transfers.deliver(workspace_id, Path(folder), place, at, overwrite, progress)

    # -- inside

    def _new(self, workspace_id: str | None, namespace: str | None, metadata: str, actor: str | None) -> WorkspaceRow:
        """The row of a workspace that is to be; a principal must be allowed to write there."""
        identifier = self._clock.new_id() if workspace_id is None else check_identifier("workspace_id", workspace_id)
        place = f"app:workspaces:{identifier}" if namespace is None else namespace
        check_namespace(place, self._settings.max_namespace_length)
        self._access.require(place, "write")
        now = self._clock.now()
        return WorkspaceRow(identifier, place, metadata, 0, 0, 0, self._access.actor(actor), now, now)

    async def _file(self, workspace_id: str, path: AnyPath, at: At, version: int | None) -> WorkspaceFile:
        file = await self._find(workspace_id, path, at, version)
        if file is None:
            raise no_file(workspace_id, check_path(path))
        return file
