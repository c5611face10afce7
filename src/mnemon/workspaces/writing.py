"""Writing files into a workspace: their contents first, then all of them as one revision."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from mnemon.contents import Contents, Data
from mnemon.encryption.contents import is_sealed_name
from mnemon.errors import ConflictError, InvalidValue, PathTaken
from mnemon.model import Content, FileDraft, WorkspaceFile
from mnemon.ports import Runner
from mnemon.sql import chunks
from mnemon.values import encode_metadata
from mnemon.workspaces.paths import check_path
from mnemon.workspaces.records import By, Records
from mnemon.workspaces.rows import Entry, FileRow, file_of
from mnemon.workspaces.tree import Tree, Wanted

_AT_ONCE = 8  # contents that are put together


class Writing:
    """Writes files for one caller."""

    def __init__(self, records: Records, contents: Contents, runner: Runner, max_value_bytes: int) -> None:
        self._records = records
        self._contents = contents
        self._runner = runner
        self._max_value_bytes = max_value_bytes

    async def write(self, workspace_id: str, drafts: Mapping[str, FileDraft], by: By) -> Sequence[WorkspaceFile]:
        """Write the drafts, by their paths: all or none."""
        described = {path: self._described(draft) for path, draft in drafts.items()}
        namespace = await self._records.require(workspace_id, "write")
        contents: dict[str, Content] = {}
        for some in chunks(list(drafts.items()), _AT_ONCE):
            kept = await self._runner.together(*(self._contents.put(draft.data, namespace) for _, draft in some))
            contents |= {path: one for (path, _), one in zip(some, kept, strict=True)}

        async def plan(tree: Tree) -> Wanted:
            present = await tree.find(drafts)
            names = await self._standing(tree, contents, present)
            wanted: dict[str, Entry] = {}
            for path, draft in drafts.items():
                row = present.get(path)
                check_version(path, draft.expected_version, row)
                metadata, is_executable = described[path]
                is_executable = row and row.is_executable if is_executable is None else is_executable
                size = contents[path].size
                wanted[path] = Entry(
                    names[path], size, bool(is_executable), metadata or (row.metadata if row else "{}")
                )
            return wanted

        changed = await self._records.change(workspace_id, "write", by, plan)
        return await self._contents.told([file_of(changed.left[path]) for path in drafts])

    async def _standing(
        self, tree: Tree, contents: Mapping[str, Content], present: Mapping[str, FileRow]
    ) -> dict[str, str]:
        """The names of new contents; where a file says the same under another key, the name that it has.

        What was not encrypted and would be now is not the same.
        """
        names = {path: content.sha256 for path, content in contents.items()}
        other = {path: row.sha256 for path, row in present.items() if is_sealed_name(row.sha256)}
        digests = await self._contents.digests([*other.values(), *(names[path] for path in other)], tree.tx.fetch_all)
        return names | {path: name for path, name in other.items() if digests[name] == digests[names[path]]}

    def _described(self, draft: FileDraft) -> tuple[str | None, bool | None]:
        if draft.metadata is None:
            return None, draft.is_executable
        return encode_metadata(draft.metadata, self._max_value_bytes), draft.is_executable


def drafts_of(files: Mapping[str, Data] | Iterable[FileDraft]) -> dict[str, FileDraft]:
    """The drafts by their paths, each path once."""
    given = cast("Mapping[str, Data]", files).items() if isinstance(files, Mapping) else None
    drafts: dict[str, FileDraft] = {}
    for draft in files if given is None else [FileDraft(path, data) for path, data in given]:
        if not isinstance(draft, FileDraft):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"write_many takes drafts, or a mapping of paths to data, not {type(draft).__name__}")
        path = check_path(draft.path)
        if path in drafts:
            raise PathTaken(f"{path!r} is written twice in one call")
        drafts[path] = draft
    return drafts


def check_version(path: str, expected: int | None, row: FileRow | None) -> None:
    """Refuse a file that is not of the version that the caller knows."""
    present = row.since if row else 0
    if expected not in (None, present):
        raise ConflictError(f"{path!r} has version {present}, not {expected}: read it again")
