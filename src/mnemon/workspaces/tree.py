"""The present files of a workspace, inside the transaction that holds it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mnemon.encryption.sealing import Sealing
from mnemon.errors import PathTaken
from mnemon.journal import Origin
from mnemon.ports import Row, Transaction
from mnemon.sql import among, chunks
from mnemon.workspaces.paths import bounds, folders_of
from mnemon.workspaces.rows import FILE, PRESENT, SQL, WORKSPACE, Entry, FileRow, WorkspaceRow

ALL = 2**31 - 1

Wanted = Mapping[str, Entry | None]
"""What some paths are to be; None is nothing."""


class Changed(NamedTuple):
    """What a change did to the files that it was about."""

    workspace: WorkspaceRow
    before: dict[str, FileRow]
    """Those that became different or are gone, as they were."""
    after: dict[str, FileRow]
    """Those that became different or are new, as they are."""
    left: dict[str, FileRow]
    """All that are there after it, also those that were so already."""


class Tree:
    """Finds files and changes them; what was looked up is not looked up again."""

    def __init__(self, tx: Transaction, workspace: WorkspaceRow, sealing: Sealing) -> None:
        self.workspace = workspace
        self.tx = tx
        self._sealing = sealing
        self._known: dict[str, FileRow | None] = {}

    async def find(self, paths: Iterable[str]) -> dict[str, FileRow]:
        """Which of the paths are files, and what they are."""
        asked = list(paths)
        for some in chunks([path for path in asked if path not in self._known]):
            self._known.update(dict.fromkeys(some))
            condition = among("path", some, "path")
            params = {"workspace_id": self.workspace.id, **condition.params}
            await self._note(await self.tx.fetch_all(SQL["present_files"].where([condition]), params))
        return {path: row for path in asked if (row := self._known[path]) is not None}

    async def below(self, folder: str) -> dict[str, FileRow]:
        """All files below a folder, by their paths."""
        params = {"workspace_id": self.workspace.id, "limit": ALL, **bounds(folder)}
        return await self._note(await self.tx.fetch_all(SQL["list_files"].where([PRESENT]), params))

    async def at(self, path: str) -> dict[str, FileRow]:
        """The file at the path, or else the files below it."""
        return await self.find([path]) or await self.below(path)

    async def change(self, wanted: Wanted, origin: Origin) -> Changed:
        """Make the paths what they are to be, as the next revision; nothing happens if they are so already."""
        present = await self.find(wanted)
        before = {path: row for path, row in present.items() if row.entry != wanted[path]}
        begun = {
            path: entry
            for path, entry in wanted.items()
            if entry is not None and (path not in present or path in before)
        }
        if not before and not begun:
            return Changed(self.workspace, {}, {}, present)
        revision = self.workspace.revision + 1
        after = {
            path: FileRow(self.workspace.id, path, revision, None, *entry, origin.actor, origin.now)
            for path, entry in begun.items()
        }
        await self._write(before, after, revision)
        await self._refuse_clashes([path for path in after if path not in before], revision)
        workspace = await self._count(before, after, revision, origin)
        return Changed(workspace, before, after, await self.find(wanted))

    async def _note(self, rows: Sequence[Row]) -> dict[str, FileRow]:
        opened = await self._sealing.opened(self.tx.fetch_all, FILE, rows)
        found = {row.path: row for row in (FileRow(*fields) for fields in opened)}
        self._known.update(found)
        return found

    async def _write(self, before: Iterable[str], after: Mapping[str, FileRow], revision: int) -> None:
        ended = [{"workspace_id": self.workspace.id, "path": path, "until": revision} for path in before]
        if ended:
            await self.tx.execute_many(SQL["end_file"], ended)
        if after:
            scope = await self._sealing.scope_at(self.tx.fetch_all, self.workspace.namespace)
            rows = [row._asdict() for row in after.values()]
            await self.tx.execute_many(SQL["insert_file"], await self._sealing.sealed_in(self.tx, scope, FILE, rows))
        self._known |= {**dict.fromkeys(before), **after}

    async def _count(
        self, before: Mapping[str, FileRow], after: Mapping[str, FileRow], revision: int, origin: Origin
    ) -> WorkspaceRow:
        grown = sum(row.size for row in after.values()) - sum(row.size for row in before.values())
        self.workspace = self.workspace._replace(
            revision=revision,
            files=self.workspace.files + len(after) - len(before),
            size=self.workspace.size + grown,
            updated_at=origin.now,
        )
        written = await self._sealing.sealed(self.tx, WORKSPACE, self.workspace._asdict())
        await self.tx.execute(SQL["set_workspace"], written)
        return self.workspace

    async def _refuse_clashes(self, fresh: list[str], revision: int) -> None:
        """A path is a file or a folder, never both."""
        if not fresh:
            return
        folders = {folder for path in fresh for folder in folders_of(path)}
        for path in await self.find(folders):
            raise PathTaken(f"{path!r} is a file of workspace {self.workspace.id!r}, so that nothing can be below it")
        params = {"workspace_id": self.workspace.id, "since": revision}
        if clash := await self.tx.fetch_one(SQL["clash_below"], params):
            above, below = clash
            raise PathTaken(f"{above!r} is a folder of workspace {self.workspace.id!r}: it has {below!r}")
