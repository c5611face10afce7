"""Contents in a folder, and what people see of them there.

    content/ab/ab12…             every content, once, under its digest, or the name that an encrypted one has
    content/incoming/…           what is being written
    artifacts/{session}/…        the same files by names that say what they are, and manifest.json
    locks/ab                     empty files that are locked while contents or sessions of this shard change

Whatever leads out of the root, or was not made here, is neither followed nor read.
"""

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256 as _sha256
from pathlib import Path

import orjson

from mnemon.backends.folders import Folder, mapped_errors, pieces_of
from mnemon.errors import ContentCorrupt, ContentMissing
from mnemon.model import StoredContent
from mnemon.ports import PIECE, Exhibit

_CONTENT, _INCOMING, _LOCKS, _SHOWN = "content", "incoming", "locks", "artifacts"
_MANIFEST = "manifest.json"
_NAME = re.compile(r"[0-9a-f]{64}|[0-9a-f]{112}\.[0-9A-Za-z_-]{1,64}")  # a digest, or what an encrypted content has
_SHARD = re.compile(r"[0-9a-f]{2}")
_OURS = re.compile(r"\d{8}T\d{6}\.\d{6}Z_.*|manifest\.json|\.manifest-[0-9a-f]+", re.DOTALL)
_AT_ONCE = 1 << 16  # for larger writes Linux looks for larger pages, which takes several times as long
_NO_HARD_LINKS = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EXDEV, errno.EACCES, errno.ENOSYS}


class FileContents:
    """A `ContentStore` in a folder, which it makes when something is first written."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def new(self) -> "FileWriter":
        return FileWriter(self._root)

    def read(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        _check_digest(sha256)
        with mapped_errors(f"content {sha256} in {self._root}"):
            try:
                with Folder.at(self._root, _CONTENT, sha256[:2]) as shard:
                    fd = shard.open(sha256)
            except FileNotFoundError:
                raise ContentMissing(f"the content {sha256} is not in {self._root}") from None
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.EMLINK):
                    raise
                raise ContentCorrupt(f"the content {sha256} in {self._root} is no file of its own") from None
            yield from pieces_of(fd, offset, PIECE)

    def delete(self, sha256: str, age: float) -> bool:
        _check_digest(sha256)
        with (
            mapped_errors(self._root),
            suppress(FileNotFoundError),
            _locked(self._root, sha256[:2]),
            Folder.at(self._root, _CONTENT, sha256[:2]) as shard,
        ):
            status = shard.status(sha256)
            if status is not None and time.time() - status.st_mtime >= age:
                shard.unlink(sha256)
                return True
        return False

    def listing(self) -> Iterator[StoredContent]:
        for shard in _names(self._root, _CONTENT):
            if _SHARD.fullmatch(shard):
                yield from self._listed(shard)

    def _listed(self, shard: str) -> Iterator[StoredContent]:
        with mapped_errors(self._root), Folder.at(self._root, _CONTENT, shard) as folder:
            found = [(name, folder.status(name)) for name in folder.names() if _is_digest(name, shard)]
        for name, status in found:
            if status is not None:
                yield StoredContent(name, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))

    def sweep(self, age: float) -> int:
        freed = 0
        for name in _names(self._root, _CONTENT, _INCOMING):
            with mapped_errors(self._root), Folder.at(self._root, _CONTENT, _INCOMING) as incoming:
                status = incoming.status(name)
                if status is not None and time.time() - status.st_mtime >= age:
                    incoming.unlink(name)
                    freed += status.st_size
        return freed

    def close(self) -> None:
        """There is nothing to let go of."""


class FileWriter:
    """Writes into a file of its own, which is moved under its digest when it is whole and on the disk."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._name = secrets.token_hex(16)
        self._fd: int | None = None
        with mapped_errors(root), Folder.at(root, _CONTENT, _INCOMING, create=True) as incoming:
            self._fd = incoming.create(self._name)

    def write(self, piece: bytes) -> None:
        assert self._fd is not None
        view = memoryview(piece)
        with mapped_errors(self._root):
            while view:
                view = view[os.write(self._fd, view[:_AT_ONCE]) :]

    def finish(self, sha256: str) -> None:
        assert self._fd is not None
        with mapped_errors(self._root), Folder.at(self._root, _CONTENT, _INCOMING) as incoming:
            with Folder.at(self._root, _CONTENT, sha256[:2], create=True) as shard:
                if not self._is_kept(incoming, shard, sha256):
                    os.fsync(self._fd)
                    self._move(incoming, shard, sha256)
            self._close()
            incoming.unlink(self._name)

    def abort(self) -> None:
        if self._fd is None:
            return
        self._close()
        with mapped_errors(self._root), Folder.at(self._root, _CONTENT, _INCOMING) as incoming:
            incoming.unlink(self._name)

    def _is_kept(self, incoming: Folder, shard: Folder, sha256: str) -> bool:
        """Whether the very same bytes are there already; then they count as written now."""
        if not _is_same(incoming, self._name, shard, sha256):
            return False
        with _locked(self._root, sha256[:2]):
            if shard.status(sha256) is None:  # removed while they were compared
                return False
            shard.touch(sha256)
        shard.sync()  # whoever wrote them may not have come so far
        return True

    def _move(self, incoming: Folder, shard: Folder, sha256: str) -> None:
        with _locked(self._root, sha256[:2]):
            incoming.touch(self._name)  # what took long to write is new all the same
            shard.take(incoming, self._name, sha256)
        shard.sync()

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class FileShowcase:
    """A `Showcase` of folders beside the contents, whose files are the contents themselves under another name."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def show(self, exhibit: Exhibit) -> bool:
        with (
            mapped_errors(self._root),
            _locked(self._root, _shard_of(exhibit.place)),
            Folder.at(self._root, _SHOWN, exhibit.place, create=True) as place,
        ):
            if _revision(place) > exhibit.revision:
                return False
            self._arrange(place, exhibit)
            return True

    def places(self) -> Iterator[str]:
        yield from _names(self._root, _SHOWN)

    def remove(self, place: str, revision: int | None = None) -> bool:
        with mapped_errors(self._root), suppress(FileNotFoundError), _locked(self._root, _shard_of(place)):
            with Folder.at(self._root, _SHOWN, place) as folder:
                if revision is not None and _revision(folder) > revision:
                    return False
                for name in filter(_OURS.fullmatch, folder.names()):
                    folder.unlink(name)
            with Folder.at(self._root, _SHOWN) as shown:
                shown.remove_inner(place)  # unless somebody put something of their own there
        return True

    def _arrange(self, place: Folder, exhibit: Exhibit) -> None:
        there = set(place.names())
        for name in there - exhibit.files.keys() - {_MANIFEST}:
            if _OURS.fullmatch(name):
                place.unlink(name)
        for name, sha256 in exhibit.files.items():
            if name not in there:
                self._place(place, name, sha256)
        draft = f".manifest-{secrets.token_hex(8)}"
        with os.fdopen(place.create(draft), "wb") as file:
            file.write(exhibit.manifest)
        place.take(place, draft, _MANIFEST)

    def _place(self, place: Folder, name: str, sha256: str) -> None:
        """One file under two names; a symbolic link where that cannot be, and nothing where the content is missing."""
        with suppress(FileNotFoundError), Folder.at(self._root, _CONTENT, sha256[:2]) as shard:
            content = shard.status(sha256)
            if content is None or not stat.S_ISREG(content.st_mode):
                return
            try:
                place.link(shard, sha256, name)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                with suppress(OSError):
                    place.point(f"../../{_CONTENT}/{sha256[:2]}/{sha256}", name)


@contextmanager
def _locked(root: Path, shard: str) -> Generator[None]:
    """Nobody else changes the contents or the session folders of a shard meanwhile."""
    with Folder.at(root, _LOCKS, create=True) as locks, locks.locked(shard):
        yield


def _names(root: Path, *folders: str) -> list[str]:
    """What is in a folder; nothing if it is not there."""
    with mapped_errors(root):
        try:
            with Folder.at(root, *folders) as folder:
                return folder.names()
        except FileNotFoundError:
            return []


def _revision(place: Folder) -> int:
    """Which revision is shown; 0 if none is, or it cannot be told."""
    try:
        with os.fdopen(place.open(_MANIFEST), "rb") as file:
            return int(orjson.loads(file.read())["revision"])
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def _shard_of(place: str) -> str:
    return _sha256(place.encode()).hexdigest()[:2]


def _is_digest(name: str, shard: str) -> bool:
    return bool(_NAME.fullmatch(name)) and name.startswith(shard)


def _check_digest(sha256: str) -> None:
    if not _NAME.fullmatch(sha256):
        raise ContentMissing(f"{sha256!r:.80} is not the digest of a content")


def _is_same(one: Folder, name: str, other: Folder, other_name: str) -> bool:
    """Whether two regular files hold the same bytes."""
    status, other_status = one.status(name), other.status(other_name)
    if status is None or other_status is None or status.st_size != other_status.st_size:
        return False
    try:
        pieces = pieces_of(one.open(name), 0, PIECE)
        return all(a == b for a, b in zip(pieces, pieces_of(other.open(other_name), 0, PIECE), strict=True))
    except (OSError, ValueError):
        return False
