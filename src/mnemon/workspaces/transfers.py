"""The way from a real folder into a workspace, and out of it again."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeAlias

from mnemon.contents import Contents
from mnemon.encryption.contents import ContentKey, is_sealed_name
from mnemon.ignoring import Patterns
from mnemon.model import Imported, Progress
from mnemon.ports import Runner, Transaction
from mnemon.sql import chunks
from mnemon.workspaces.folders import Source, Target, Unreadable, listing
from mnemon.workspaces.records import At, By, Records
from mnemon.workspaces.rows import Entry, FileRow
from mnemon.workspaces.tree import ALL, Changed, Tree, Wanted

_WRITTEN = 500  # files that an import writes in one transaction
_TAKEN = 8  # files that are read at once
_EXPORTED = 50  # files between two reports of an export's progress

Report: TypeAlias = Callable[[Progress], object]


class Transfers:
    """Imports and exports folders."""

    def __init__(self, records: Records, contents: Contents, runner: Runner) -> None:
        self._records = records
        self._contents = contents
        self._runner = runner

    async def bring(
        self, workspace_id: str, top: Path, folder: str, ignored: Patterns, mirror: bool, report: Report | None, by: By
    ) -> Imported:
        """Write the files of a real folder to a folder of the workspace, some hundred at a time."""
        key = await self._contents.key_for(await self._records.require(workspace_id, "write"))
        sources, skipped = await self._runner.aside(lambda: listing(top, ignored, folder))
        refused = len(skipped)
        added = changed = done = 0
        began = time.monotonic()
        for some in chunks(sources, _WRITTEN):
            written = await self._write(workspace_id, some, skipped, by, key)
            changed += len(written.before)
            added += len(written.after) - len(written.before)
            done += len(some)
            if report:
                report(Progress(done, len(sources), time.monotonic() - began))
        unchanged = len(sources) - (len(skipped) - refused) - added - changed
        kept = {source.path for source in sources}
        removed = await self._remove_others(workspace_id, folder, kept, ignored, by) if mirror else 0
        return Imported(added, changed, unchanged, removed, tuple(skipped))

    async def _write(
        self, workspace_id: str, sources: Sequence[Source], skipped: list[str], by: By, key: ContentKey | None
    ) -> Changed:
        """Put the contents that are new, then write the files in one transaction."""
        paths = [source.path for source in sources]
        present = await self._records.store.read(lambda tx: self._present(tx, workspace_id, paths))
        digests = await self._contents.digests(row.sha256 for row in present.values())
        known = {
            path: row._replace(sha256=digests[row.sha256])
            for path, row in present.items()
            if key is None or is_sealed_name(row.sha256)
        }
        entries: dict[str, Entry] = {}
        for source, entry in zip(
            sources, await self._runner.aside(lambda: self._take_all(sources, known, key)), strict=True
        ):
            if isinstance(entry, Entry):
                entries[source.path] = entry
            elif entry is not None:
                skipped.append(f"{source.path}: {entry}")

        async def plan(tree: Tree) -> Wanted:
            known = await tree.find(entries)
            return {
                path: entry._replace(metadata=known[path].metadata) if path in known else entry
                for path, entry in entries.items()
            }

        return await self._records.change(workspace_id, "import", by, plan)

    async def _present(self, tx: Transaction, workspace_id: str, paths: Sequence[str]) -> dict[str, FileRow]:
        workspace = await self._records.seen(tx, workspace_id, "write")
        return await Tree(tx, workspace, self._records.sealing).find(paths)

    def _take_all(
        self, sources: Sequence[Source], known: Mapping[str, FileRow], key: ContentKey | None
    ) -> list[Entry | Unreadable | None]:
        """Several at once, as most of the time goes by until each is on the disk."""
        with ThreadPoolExecutor(_TAKEN) as threads:
            return list(threads.map(partial(self._take, key), sources, [known.get(source.path) for source in sources]))

    def _take(self, key: ContentKey | None, source: Source, row: FileRow | None) -> Entry | Unreadable | None:
        """What a file is to be in the workspace; None if it is that already."""
        try:
            if row is not None and _is_alike(source, row):
                return None
            kept = self._contents.keep(source, key)
        except Unreadable as error:
            return error
        return Entry(kept.sha256, kept.size, source.is_executable, "{}")

    async def _remove_others(self, workspace_id: str, folder: str, kept: set[str], ignored: Patterns, by: By) -> int:
        """Remove what the real folder does not have, but for what is ignored in it."""
        above = len(folder) + 1 if folder else 0

        async def plan(tree: Tree) -> Wanted:
            others = await tree.below(folder)
            return dict.fromkeys(path for path in others if path not in kept and not ignored.cover(path[above:]))

        return len((await self._records.change(workspace_id, "import", by, plan)).before)

    async def deliver(
        self, workspace_id: str, top: Path, folder: str, at: At, overwrite: bool, report: Report | None
    ) -> int:
        """Write the files of a folder of the workspace to a real folder; how many."""

        async def unit(tx: Transaction) -> Sequence[FileRow]:
            return await self._records.below(tx, await self._records.view(tx, workspace_id, at), folder, ALL)

        rows = await self._records.store.read(unit, long=True)
        target = Target(top, overwrite=overwrite)
        began, done = time.monotonic(), 0
        try:
            await self._runner.aside(target.open)
            for some in chunks(rows, _EXPORTED):
                await self._contents.ready(row.sha256 for row in some)
                await self._runner.aside(partial(self._fill, target, some, folder))
                done += len(some)
                if report:
                    report(Progress(done, len(rows), time.monotonic() - began))
        finally:
            target.close()
        return done

    def _fill(self, target: Target, rows: Sequence[FileRow], folder: str) -> None:
        for row in rows:
            above = row.path.rpartition("/")[0] if row.path == folder else folder
            path = row.path[len(above) + 1 if above else 0 :]
            target.write(path, self._contents.verified(row.sha256), is_executable=bool(row.is_executable))


def _is_alike(source: Source, row: FileRow) -> bool:
    """Whether a file is in the workspace already; it is read only if it may be."""
    source.look()
    if (source.size, source.is_executable) != (row.size, bool(row.is_executable)):
        return False
    return source.digest() == row.sha256
