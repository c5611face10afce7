"""Folders that nothing leads out of: no symbolic link is followed below the root, and only the owner may look in.

Where the system can, every step is taken from an open folder (`openat`), so that a link that is planted between a
check and its use is not followed either.
"""

import errno
import os
import stat
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from mnemon.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable

FOLDER_MODE, FILE_MODE = 0o700, 0o600
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.utime in os.supports_fd  # everywhere but on Windows
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # else opening a pipe that was put there would wait for ever
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} if hasattr(errno, "EDQUOT") else {errno.ENOSPC, errno.EFBIG}
_CLOSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_LINKS = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}


@contextmanager
def mapped_errors(where: object) -> Generator[None]:
    """What the file system refuses, as an error of the store."""
    try:
        yield
    except OSError as error:
        told = f"{where}: {error.strerror or error}"
        if error.errno in _FULL:
            raise StoreFull(told) from error
        if error.errno in _CLOSED:
            raise StoreReadOnly(told) from error
        if error.errno in _LINKS:
            raise StoreError(f"{where}: something stands there that is no folder or file of its own") from error
        raise (StoreUnavailable if isinstance(error, FileNotFoundError) else StoreError)(told) from error


class Folder:
    """An open folder. Names are single names of what is in it, never paths."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self._path = path
        self._fd = descriptor

    @classmethod
    @contextmanager
    def at(cls, root: Path, *names: str, create: bool = False) -> Generator["Folder"]:
        """The folder below `root`, which may itself be a link; `FileNotFoundError` if there is none."""
        if create:
            _make_root(root)
        folder = cls(root, os.open(root, os.O_RDONLY | os.O_DIRECTORY) if _BY_DESCRIPTOR else None)
        try:
            for name in names:
                inner = folder._inner(name, create)
                folder._close()
                folder = inner
            yield folder
        finally:
            folder._close()

    def _inner(self, name: str, create: bool) -> "Folder":
        try:
            return self._enter(name)
        except FileNotFoundError:
            if not create:
                raise
        try:
            os.mkdir(self._at(name), FOLDER_MODE, dir_fd=self._fd)
        except FileExistsError:
            return self._enter(name)
        inner = self._enter(name)
        inner._restrict()
        self.sync()
        return inner

    def _enter(self, name: str) -> "Folder":
        if self._fd is not None:
            fd = os.open(self._at(name), os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=self._fd)
            return Folder(self._path / name, fd)
        if not stat.S_ISDIR(os.lstat(self._at(name)).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(self._path / name))
        return Folder(self._path / name, None)

    def create(self, name: str) -> int:
        """A descriptor of a new file that is open for writing; nothing may be there yet."""
        fd = os.open(
            self._at(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY, FILE_MODE, dir_fd=self._fd
        )
        _restrict(fd)
        return fd

    def open(self, name: str) -> int:
        """A descriptor of a regular file that is open for reading; anything else there is an `OSError`."""
        fd = os.open(self._at(name), os.O_RDONLY | _NO_LINK | _NO_WAIT | _BINARY, dir_fd=self._fd)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
        raise OSError(errno.ELOOP, "not a regular file", name)

    def status(self, name: str) -> os.stat_result | None:
        """What stands there, not what it leads to; None for nothing."""
        try:
            return os.stat(self._at(name), dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def touch(self, name: str) -> None:
        """The regular file counts as written now."""
        fd = self.open(name)
        try:
            os.utime(fd if _BY_DESCRIPTOR else self._at(name))
        finally:
            os.close(fd)

    def take(self, source: "Folder", name: str, new_name: str) -> None:
        """Move a file of another folder in, in place of what may stand there."""
        os.replace(source._at(name), self._at(new_name), src_dir_fd=source._fd, dst_dir_fd=self._fd)

    def link(self, source: "Folder", name: str, new_name: str) -> None:
        """Show a file of another folder here too: one file under two names."""
        os.link(
            source._at(name), self._at(new_name),
            src_dir_fd=source._fd, dst_dir_fd=self._fd, follow_symlinks=False,
        )  # fmt: skip

    def point(self, target: str, new_name: str) -> None:
        """A symbolic link, for people, where a file cannot have two names."""
        os.symlink(target, self._at(new_name), dir_fd=self._fd)

    def unlink(self, name: str) -> None:
        """Remove a file or a link, if there is one."""
        try:
            os.unlink(self._at(name), dir_fd=self._fd)
        except FileNotFoundError:
            return

    def remove_inner(self, name: str) -> bool:
        """Remove a folder that is empty; whether it is gone."""
        try:
            os.rmdir(self._at(name), dir_fd=self._fd)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return False
            raise
        return True

    def names(self) -> list[str]:
        """What is in the folder, sorted."""
        return sorted(os.listdir(self._path if self._fd is None else self._fd))  # noqa: PTH208 - of an open folder

    def sync(self) -> None:
        """When this returns, the names in the folder survive a power cut."""
        if self._fd is not None:
            os.fsync(self._fd)

    @contextmanager
    def locked(self, name: str) -> Generator[None]:
        """Nobody else holds this lock meanwhile, in any thread or process."""
        fd = os.open(self._at(name), os.O_RDWR | os.O_CREAT | _NO_LINK | _BINARY, FILE_MODE, dir_fd=self._fd)
        try:
            _restrict(fd)
            with _alone(fd, str(self._path / name)):
                yield
        finally:
            os.close(fd)

    def _restrict(self) -> None:
        if self._fd is not None:
            os.fchmod(self._fd, FOLDER_MODE)

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _at(self, name: str) -> str | Path:
        """How to name what is in the folder; refuses what would lead elsewhere, though nobody should ask for it."""
        if name in ("", ".", "..") or "/" in name or os.sep in name or "\0" in name:
            raise OSError(errno.EINVAL, "not a name of something in a folder", name)
        return name if self._fd is not None else self._path / name


def _make_root(root: Path) -> None:
    """The root, if it is not there yet, for the owner only; one that is there is left as it is."""
    if not root.is_dir():
        missing = [each for each in (root, *root.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(FOLDER_MODE, exist_ok=True)
            each.chmod(FOLDER_MODE)


def _restrict(fd: int) -> None:
    """The owner's only, whatever the umask is."""
    if hasattr(os, "fchmod"):
        os.fchmod(fd, FILE_MODE)


if sys.platform == "win32":
    import msvcrt

    @contextmanager
    def _alone(fd: int, path: str) -> Generator[None]:
        msvcrt.locking(fd, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(fd, 0, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    @contextmanager
    def _alone(fd: int, path: str) -> Generator[None]:
        fcntl.flock(fd, fcntl.LOCK_EX)  # closing the file lets go of it
        yield


def pieces_of(fd: int, offset: int, size: int) -> Iterator[bytes]:
    """What an open file holds from `offset` on; the descriptor is closed at the end."""
    with os.fdopen(fd, "rb", buffering=0) as file:
        file.seek(offset)
        while piece := file.read(size):
            yield piece
