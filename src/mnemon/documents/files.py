"""Files as documents: what they are called, and which of a folder are wanted."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mnemon.documents import folders
from mnemon.documents.reading import may_be_read
from mnemon.errors import InvalidIdentifier, InvalidInput
from mnemon.namespaces import check_key

PathLike = str | os.PathLike[str]

_LONGEST_PATH = 1024  # bytes; what an index takes beside a namespace


@dataclass(frozen=True, slots=True)
class Folder:
    """Which files of a folder are wanted, and what they are called."""

    folder: Path
    root: Path | None
    patterns: Sequence[str] | None
    ignore: Sequence[str]

    @staticmethod
    def of(
        folder: PathLike, root: PathLike | None, patterns: Sequence[str] | None, ignore: Sequence[str] | None
    ) -> "Folder":
        if isinstance(patterns, str) or isinstance(ignore, str):
            raise InvalidInput('patterns are a list, as in ["*.md"]')
        path = folders.existing_folder(folder)
        base = None if root is None else Path(root).expanduser().resolve()
        name_of(path / "x", base)  # or it lies outside of the root
        return Folder(path, base, None if patterns is None else tuple(patterns), tuple(ignore or ()))

    def find(self) -> folders.Found:
        return folders.find_files(self.folder, self.patterns, self.ignore)

    def name_of(self, file: str) -> str:
        return name_of(self.folder / file, self.root)

    def has(self, path: str) -> bool:
        """Whether a document's path says that it is a file of the folder."""
        prefix = name_of(self.folder / "x", self.root)[:-1]
        return path.startswith(prefix) and (bool(prefix) or not Path(path).is_absolute())

    def may_have(self, path: str) -> bool:
        """Whether a change at this path is of interest; one of a database that lies in the folder is not."""
        return self.patterns is not None or may_be_read(path)

    def is_among(self, file: str, changed: set[str] | None) -> bool:
        """Whether a file, or a folder that it lies in, is among what changed."""
        if changed is None or any(Path(path).name == folders.IGNORE_FILE for path in changed):
            return True
        path = self.folder / file
        return not changed.isdisjoint(map(str, (path, *path.parents)))


def name_of(file: Path, root: PathLike | None) -> str:
    """What a file is called: its whole path, or its path from the root."""
    if root is None:
        return file.as_posix()
    try:
        return file.relative_to(Path(root).expanduser().resolve()).as_posix()
    except ValueError:
        raise InvalidInput(f"{str(file.parent)!r} is not in the root {str(root)!r}") from None


def absolute(file: Path) -> Path:
    """The file with nothing relative in its path; a link is not followed, as it has a name of its own."""
    path = file.expanduser()
    return path.parent.resolve() / path.name


def check_path(path: object) -> str:
    check_key("a document's path", path, _LONGEST_PATH)
    if len(str(path).encode()) > _LONGEST_PATH:
        raise InvalidIdentifier(f"a document's path has more than {_LONGEST_PATH} bytes: {str(path)[:80]!r}…")
    return str(path)
