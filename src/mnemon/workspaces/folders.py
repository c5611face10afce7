"""Real folders: what is in one, to be imported; and a target for an export, out of which nothing is ever written."""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mnemon.errors import InvalidInput, InvalidPath, PathTaken
from mnemon.ignoring import Patterns
from mnemon.ports import PIECE
from mnemon.workspaces.paths import check_for_windows, check_path

_HAS_FOLDERS_BY_NUMBER = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_BINARY = getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


# ----------------------------------------------------------------------------------------------------------- reading


class Unreadable(Exception):
    """A file that cannot be imported, and why."""


class Source:
    """A file of a real folder, which is opened when it is read and never through a link."""

    def __init__(self, path: str, file: Path) -> None:
        self.path = path
        self.is_executable = False
        self.size = 0
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        with self._opened() as file:
            while piece := self._read(file):
                yield piece

    def digest(self) -> str:
        """The digest of what is in it now."""
        digest = hashlib.sha256()
        for piece in self:
            digest.update(piece)
        return digest.hexdigest()

    def look(self) -> None:
        """Learn its size and whether it is executable."""
        self._opened().close()

    def _opened(self) -> BinaryIO:
        try:
            number = os.open(self._file, os.O_RDONLY | _BINARY | _NO_LINK)
        except OSError as error:
            raise Unreadable(error.strerror) from error
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            os.close(number)
            raise Unreadable("not a plain file")
        self.size, self.is_executable = found.st_size, bool(found.st_mode & stat.S_IXUSR)
        return os.fdopen(number, "rb", buffering=0)

    @staticmethod
    def _read(file: BinaryIO) -> bytes:
        try:
            return file.read(PIECE)
        except OSError as error:
            raise Unreadable(error.strerror) from error


class Listing(NamedTuple):
    """The files of a folder, and what cannot be imported, as `path: why`."""

    sources: list[Source]
    skipped: list[str]


def listing(top: Path, ignored: Patterns, prefix: str) -> Listing:
    """Walk through a folder; links are not followed."""
    if not top.is_dir():
        raise InvalidInput(f"{str(top)!r:.200} is not a folder")
    found = Listing([], [])
    paths: set[str] = set()
    pending = [("", top)]
    while pending:
        above, folder = pending.pop()
        for entry in _entries(folder, above, found.skipped):
            name = f"{above}/{entry.name}" if above else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if ignored.decide(name, is_folder=is_folder):
                continue
            if is_folder:
                pending.append((name, folder / entry.name))
            else:
                _note(found, paths, entry, name, f"{prefix}/{name}" if prefix else name)
    return found


def _entries(folder: Path, above: str, skipped: list[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        skipped.append(f"{above}/: {error.strerror}")
        return []


def _note(found: Listing, paths: set[str], entry: os.DirEntry[str], name: str, place: str) -> None:
    shown = name.encode(errors="replace").decode()
    if not entry.is_file(follow_symlinks=False):
        found.skipped.append(f"{shown}: {'a link' if entry.is_symlink() else 'not a plain file'}")
        return
    try:
        path = check_path(place)
    except InvalidPath as error:
        found.skipped.append(f"{shown}: {str(error).encode(errors='replace').decode()}")
        return
    if path in paths:
        found.skipped.append(f"{shown}: another file has this name, written with other accents")
        return
    paths.add(path)
    found.sources.append(Source(path, Path(entry.path)))


# ----------------------------------------------------------------------------------------------------------- writing


class Target:
    """A folder that files are written to, and nothing outside of it: links in it are never followed.

    Folders are opened one inside the other and held by number, so that nobody can put a link in their place
    meanwhile. Where a system cannot do that, each is looked at before it is entered.
    """

    def __init__(self, folder: Path, *, overwrite: bool) -> None:
        self._folder = folder
        self._overwrite = overwrite
        self._numbers: list[int] = []
        self._inside: list[str] = []

    def open(self) -> None:
        """Make the folder if it is not there; refuse one that is not empty, unless it may be written over."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            is_empty = not any(self._folder.iterdir())
        except (FileExistsError, NotADirectoryError) as error:
            raise InvalidInput(f"{self._folder} is not a folder") from error
        except ValueError as error:
            raise InvalidInput(f"{str(self._folder)!r:.200} cannot be a folder: {error}") from error
        if not (is_empty or self._overwrite):
            raise InvalidInput(f"{self._folder} is not empty; say overwrite=True to write into it all the same")
        if _HAS_FOLDERS_BY_NUMBER:
            self._numbers = [os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)]

    def close(self) -> None:
        """Let go of the folders; idempotent."""
        while self._numbers:
            os.close(self._numbers.pop())

    def write(self, path: str, pieces: Iterable[bytes], *, is_executable: bool) -> None:
        """Write a file, whole or not at all; what was there is replaced if that is allowed."""
        path = check_path(path)  # whoever wrote the row
        if os.name == "nt":
            check_for_windows(path)
        *folders, name = path.split("/")
        try:
            self._enter(folders)
            self._fill(name, pieces, 0o777 if is_executable else 0o666)
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
            raise PathTaken(f"{path!r} cannot be written to {self._folder}: something else is in its place") from error

    def _enter(self, folders: list[str]) -> None:
        """Go from the last file's folder to this one's."""
        common = 0
        while common < min(len(folders), len(self._inside)) and folders[common] == self._inside[common]:
            common += 1
        del self._inside[common:]
        while len(self._numbers) > common + 1:
            os.close(self._numbers.pop())
        for name in folders[common:]:
            with suppress(FileExistsError):
                os.mkdir(self._at(name), dir_fd=self._number)
            self._descend(name)

    def _descend(self, name: str) -> None:
        if self._numbers:
            try:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
                self._numbers.append(os.open(name, flags, dir_fd=self._number))
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise NotADirectoryError(error.errno, error.strerror, name) from error
                raise
        elif not stat.S_ISDIR(os.lstat(self._at(name)).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", name)
        self._inside.append(name)

    def _fill(self, name: str, pieces: Iterable[bytes], mode: int) -> None:
        first = self._at(f".{secrets.token_hex(8)}.part" if self._overwrite else name)
        number = os.open(first, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | _NO_LINK, mode, dir_fd=self._number)
        try:
            with os.fdopen(number, "wb") as file:
                for piece in pieces:
                    file.write(piece)
            if self._overwrite:
                os.replace(first, self._at(name), src_dir_fd=self._number, dst_dir_fd=self._number)
        except BaseException:
            with suppress(OSError):
                os.unlink(first, dir_fd=self._number)
            raise

    @property
    def _number(self) -> int | None:
        return self._numbers[-1] if self._numbers else None

    def _at(self, name: str) -> str:
        return name if self._numbers else str(self._folder.joinpath(*self._inside, name))
