"""How two states of a workspace differ."""

import difflib
from collections.abc import Iterable, Mapping
from io import StringIO

from mnemon.model import FileDifference, WorkspaceFile
from mnemon.workspaces.rows import FileRow, file_of


def compare(before: Mapping[str, FileRow], after: Mapping[str, FileRow]) -> list[FileDifference]:
    """The differences between two sets of files, in the order of their paths.

    A file that is gone and a file that is new with the same content are one that was renamed, unless they are empty.
    """
    gone = {path: row for path, row in before.items() if path not in after}
    new = {path: row for path, row in after.items() if path not in before}
    both = [(before[path], after[path]) for path in after if path in before]
    moved = _moved(gone.values(), new.values())
    taken = {row.path for row in moved.values()}
    found = [FileDifference(one.path, "changed", file_of(one), file_of(other)) for one, other in both
             if one.entry != other.entry]  # fmt: skip
    found += [FileDifference(path, "removed", file_of(row), None) for path, row in gone.items() if path not in taken]
    for path, row in new.items():
        origin = moved.get(path)
        kind = "added" if origin is None else "renamed"
        found.append(FileDifference(path, kind, None if origin is None else file_of(origin), file_of(row)))
    return sorted(found, key=lambda difference: difference.path)


def _moved(gone: Iterable[FileRow], new: Iterable[FileRow]) -> dict[str, FileRow]:
    """For new paths, the files that were moved there: of the same content, best of the same name."""
    left: dict[str, list[FileRow]] = {}
    for row in gone:
        if row.size:
            left.setdefault(row.sha256, []).append(row)
    found: dict[str, FileRow] = {}
    for row in sorted(new, key=lambda row: row.path):
        alike = left.get(row.sha256)
        if alike:
            same_name = [one for one in alike if _name(one.path) == _name(row.path)]
            found[row.path] = (same_name or alike)[0]
            alike.remove(found[row.path])
    return found


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def unified(difference: FileDifference, before: bytes, after: bytes) -> str | None:
    """A unified diff; None if one of them is no text."""
    if b"\0" in before or b"\0" in after:
        return None
    try:
        old, new = (list(StringIO(side.decode(), newline="\n")) for side in (before, after))
    except UnicodeDecodeError:
        return None
    names = (_told("a", difference.before), _told("b", difference.after))
    lines = difflib.unified_diff(old, new, *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _told(side: str, file: WorkspaceFile | None) -> str:
    return "/dev/null" if file is None else f"{side}/{file.path}"
