"""Contents of files: bytes of any size, kept outside the database once for each digest.

A content is put first, and is durable then; the record that refers to it follows in a transaction. Content without
a record does no harm, and is removed by `ArtifactService.cleanup` after a while.
"""

import hashlib
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from functools import partial
from io import TextIOBase
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias, cast

from mnemon.errors import ContentCorrupt, InvalidInput, InvalidValue
from mnemon.model import Content
from mnemon.ports import ContentStore, ContentWriter, Keeping, Runner, Showcase

PIECE = 1 << 18
"""How many bytes are read, hashed and handed over at a time."""


class Readable(Protocol):
    """A binary file, or what behaves like one."""

    def read(self, size: int, /) -> bytes: ...


Data: TypeAlias = (
    bytes
    | bytearray
    | memoryview
    | str
    | os.PathLike[str]
    | BinaryIO
    | Readable
    | Iterable[bytes]
    | AsyncIterable[bytes]
)
"""What can become a content: bytes, a text, the path of a file, an open binary file, or pieces as they come."""


class Contents:
    """Puts contents into the store and reads them, in constant memory, without holding an event loop up."""

    def __init__(self, keeping: Callable[[], Keeping], runner: Runner) -> None:
        self._open = keeping
        self._runner = runner
        self._keeping: Keeping | None = None
        self._lock = threading.Lock()

    async def put(self, data: Data) -> Content:
        """Keep the data durably; the same data is kept once."""
        if isinstance(data, AsyncIterable):
            return await self._take(data)
        return await self._runner.aside(lambda: self.keep(data))

    def keep(self, data: Data) -> Content:
        """Like `put`, for threads that may block; the data does not come asynchronously."""
        return self._intake().take(_pieces(data))

    async def _take(self, source: AsyncIterable[bytes]) -> Content:
        intake = self._intake()
        try:
            async for pieces in _gathered(source):
                await self._runner.aside(partial(intake.write_all, pieces))
            return await self._runner.aside(intake.finish)
        except BaseException:
            intake.abort()
            raise

    async def read(self, sha256: str, offset: int = 0) -> AsyncGenerator[bytes]:
        """The content in pieces, from `offset` on.

        Read from the beginning it is verified: `ContentCorrupt` comes in place of the last piece. `ContentMissing`
        if it is not there.
        """
        flow = _Outflow(lambda: self.verified(sha256, offset))
        try:
            while piece := await self._runner.aside(flow.next):
                yield piece
        finally:
            flow.close()

    async def whole(self, sha256: str) -> bytes:
        """All of the content at once, verified."""
        return await self._runner.aside(lambda: b"".join(self.verified(sha256)))

    def verified(self, sha256: str, offset: int = 0) -> Generator[bytes]:
        """Like `read`, for threads that may block."""
        pieces = self.store.read(sha256, offset)
        if offset:
            yield from pieces
            return
        digest = hashlib.sha256()
        held = b""  # so that nobody has all of a content before it is known to be right
        for piece in pieces:
            digest.update(piece)
            if held:
                yield held
            held = piece
        if digest.hexdigest() != sha256:
            raise ContentCorrupt(f"the content {sha256} is damaged: what is there has the digest {digest.hexdigest()}")
        if held:
            yield held

    @property
    def store(self) -> ContentStore:
        """Where contents are kept; `InvalidSettings` if that was not said."""
        return self._kept().store

    @property
    def showcase(self) -> Showcase | None:
        """Where people see them, if the store is a file system."""
        return self._kept().showcase

    def close(self) -> None:
        """Let go of the store; idempotent."""
        with self._lock:
            if self._keeping is not None:
                self._keeping.store.close()

    def _kept(self) -> Keeping:
        with self._lock:
            if self._keeping is None:
                self._keeping = self._open()
            return self._keeping

    def _intake(self) -> "_Intake":
        return _Intake(lambda: self.store.new())


class _Intake:
    """Takes in one content and reckons its digest. It may be aborted from another thread than the one that writes.

    Nothing is opened before the first piece comes, so whoever gives up before that leaves nothing to close.
    """

    def __init__(self, opener: Callable[[], ContentWriter]) -> None:
        self._opener = opener
        self._writer: ContentWriter | None = None
        self._digest = hashlib.sha256()
        self._size = 0
        self._is_over = False
        self._lock = threading.Lock()

    def take(self, pieces: Iterable[bytes]) -> Content:
        try:
            self.write_all(pieces)
            return self.finish()
        except BaseException:
            self.abort()
            raise

    def write_all(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            with self._lock:
                self._opened().write(piece)
                self._digest.update(piece)
                self._size += len(piece)

    def finish(self) -> Content:
        with self._lock:
            sha256 = self._digest.hexdigest()
            self._opened().finish(sha256)
            return Content(sha256, self._size)

    def abort(self) -> None:
        with self._lock:
            self._is_over = True
            if self._writer is not None:
                self._writer.abort()

    def _opened(self) -> ContentWriter:
        if self._is_over:
            raise InvalidInput("the content was given up")
        if self._writer is None:
            self._writer = self._opener()
        return self._writer


class _Outflow:
    """Hands out pieces on one thread, and can be closed from another."""

    def __init__(self, opener: Callable[[], Generator[bytes]]) -> None:
        self._pieces = opener()
        self._lock = threading.Lock()

    def next(self) -> bytes:
        """The next piece; nothing at the end."""
        with self._lock:
            return next(self._pieces, b"")

    def close(self) -> None:
        with self._lock:
            self._pieces.close()


def _pieces(data: object) -> Iterator[bytes]:
    """The data in pieces of a bounded size, as it is read."""
    match data:
        case str():
            yield _encoded(data)
        case bytes() | bytearray() | memoryview():
            yield from _cut(_view(cast("object", data)))
        case os.PathLike():
            with Path(cast("os.PathLike[str]", data)).open("rb", buffering=0) as file:
                yield from _read(file)
        case TextIOBase():
            raise InvalidValue("a file that is open as text cannot be kept as it is; open it in binary mode")
        case _ if hasattr(data, "read"):
            yield from _read(cast("Readable", data))
        case Iterable():
            for piece in cast("Iterable[object]", data):
                yield from _cut(_view(piece))
        case _:
            raise InvalidValue(f"content is bytes, text, a path, a binary file or pieces, not {type(data).__name__}")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("a text with half a character cannot be kept as UTF-8") from None


def _read(file: Readable) -> Iterator[bytes]:
    while piece := file.read(PIECE):
        yield from _cut(_view(piece))


def _view(piece: object) -> memoryview:
    if not isinstance(piece, bytes | bytearray | memoryview):
        raise InvalidValue(f"a piece of content is bytes, not {type(piece).__name__}")
    return memoryview(cast("bytes", piece)).cast("B")


def _cut(view: memoryview) -> Iterator[bytes]:
    """A large piece in several; it is not copied."""
    for start in range(0, len(view), PIECE):
        yield cast("bytes", view[start : start + PIECE])


async def _gathered(source: AsyncIterable[object]) -> AsyncIterator[list[bytes]]:
    """Small pieces together, as each trip to a thread has its price."""
    pieces: list[bytes] = []
    size = 0
    async for piece in source:
        for part in _cut(_view(piece)):
            pieces.append(bytes(part))  # the source may use its buffer again
            size += len(part)
            if size >= PIECE:
                yield pieces
                pieces, size = [], 0
    yield pieces
