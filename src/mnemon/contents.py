"""Contents of files: bytes of any size, kept outside the database once for each digest.

A content is put first, and is durable then; the record that refers to it follows in a transaction. Content without
a record does no harm, and is removed by `ArtifactService.cleanup` after a while.

Records refer to a content by the name that it has in the store: its SHA-256 digest, or, if it is encrypted, a name
that tells nothing without the key (`encryption.contents`). What callers see of it is always its digest: `told`.
"""

import hashlib
import os
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from io import TextIOBase
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias, TypeVar, cast

from mnemon.encryption.contents import ContentKey, is_sealed_name, key_id_of_name
from mnemon.encryption.keys import Fetch
from mnemon.encryption.sealing import Sealing
from mnemon.errors import ContentCorrupt, InvalidInput, InvalidValue, KeyUnavailable
from mnemon.model import Artifact, Content, WorkspaceFile
from mnemon.ports import PIECE, ContentStore, ContentWriter, Keeping, Runner, Showcase

Described = TypeVar("Described", Artifact, Content, WorkspaceFile)


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

    def __init__(self, keeping: Callable[[], Keeping], runner: Runner, sealing: Sealing | None = None) -> None:
        self._open = keeping
        self._runner = runner
        self._sealing = sealing or Sealing()
        self._keeping: Keeping | None = None
        self._lock = threading.Lock()
        self._keys: dict[str, ContentKey] = {}

    @property
    def sealing(self) -> Sealing:
        """What encrypts; records that refer to contents go by the same."""
        return self._sealing

    # -- keeping

    async def put(self, data: Data, namespace: str) -> Content:
        """Keep the data durably, encrypted if the namespace is; the same data is kept once, or once for each key.

        What belongs to a session lies in `session:<id>`. The answer has the content's name in place of its digest.
        """
        key = await self.key_for(namespace)
        if isinstance(data, AsyncIterable):
            return await self._take(data, key)
        return await self._runner.aside(lambda: self.keep(data, key))

    async def key_for(self, namespace: str) -> ContentKey | None:
        """The key that encrypts what is put there; None if it is not encrypted."""
        keys = self._sealing.keys
        scope = None if keys is None else await self._sealing.scope_at(keys.fetch, namespace)
        return None if keys is None or scope is None else ContentKey(await keys.at_hand(scope))

    def keep(self, data: Data, key: ContentKey | None) -> Content:
        """Like `put`, for threads that may block; the data does not come asynchronously."""
        return self._intake(key).take(_pieces(data))

    async def _take(self, source: AsyncIterable[bytes], key: ContentKey | None) -> Content:
        intake = self._intake(key)
        try:
            async for pieces in _gathered(source):
                await self._runner.aside(partial(intake.write_all, pieces))
            return await self._runner.aside(intake.finish)
        except BaseException:
            intake.abort()
            raise

    async def put_again(self, names: Iterable[str], namespace: str) -> dict[str, str]:
        """Contents that are to lie in another namespace too: the names of those that have to be encrypted for it."""
        key = await self.key_for(namespace)
        due = [] if key is None else sorted({name for name in names if not key.seals(name)})
        await self.ready(due)
        return {name: (await self._runner.aside(partial(self._keep_again, name, key))).sha256 for name in due}

    def _keep_again(self, name: str, key: ContentKey | None) -> Content:
        return self.keep(self.verified(name), key)

    # -- reading

    async def read(self, name: str, offset: int = 0) -> AsyncGenerator[bytes]:
        """The content in pieces, from `offset` on.

        Read from the beginning it is verified: `ContentCorrupt` comes in place of the last piece. What is encrypted
        is verified wherever reading begins. `ContentMissing` if it is not there.
        """
        await self.ready([name])
        flow = _Outflow(lambda: self.verified(name, offset))
        try:
            while piece := await self._runner.aside(flow.next):
                yield piece
        finally:
            flow.close()

    async def whole(self, name: str) -> bytes:
        """All of the content at once, verified."""
        await self.ready([name])
        return await self._runner.aside(lambda: b"".join(self.verified(name)))

    async def remove(self, name: str) -> bool:
        """Remove a content that no record refers to any more, without waiting for a cleanup; whether it was there."""
        return await self._runner.aside(lambda: self.store.delete(name, 0))

    def run_by(self, runner: Runner, sealing: Sealing) -> "Contents":
        """The same contents, for those whose blocking calls another runner sees to; closing is left to this one."""
        return Contents(self._kept, runner, sealing)

    def verified(self, name: str, offset: int = 0) -> Generator[bytes]:
        """Like `read`, for threads that may block, of what is `ready`."""
        sha256, pieces = name, self.store.read(name, offset)
        if is_sealed_name(name):
            key = self._keys[key_id_of_name(name)]
            sha256, pieces = key.content(name).sha256, key.pieces(partial(self.store.read, name), name, offset)
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
            raise ContentCorrupt(f"the content {name} is damaged: what is there has the digest {digest.hexdigest()}")
        if held:
            yield held

    async def ready(self, names: Iterable[str], fetch: Fetch | None = None) -> None:
        """Have the keys at hand that some contents need; inside a transaction it is told how to `fetch` them."""
        wanted = {key_id_of_name(name) for name in names if is_sealed_name(name)} - self._keys.keys()
        if not wanted:
            return
        keys = self._sealing.keys
        if keys is None:
            raise KeyUnavailable("a content is encrypted, and there is no master key: set encryption_keys")
        found = await keys.find(fetch or keys.fetch, wanted)
        self._keys |= {key_id: ContentKey(key) for key_id, key in found.items()}

    async def digests(self, names: Iterable[str], fetch: Fetch | None = None) -> Mapping[str, str]:
        """The SHA-256 digests of contents, by the names that they have in the store."""
        known = set(names)
        await self.ready(known, fetch)
        return {
            name: self._keys[key_id_of_name(name)].content(name).sha256 if is_sealed_name(name) else name
            for name in known
        }

    async def told(self, items: Sequence[Described]) -> list[Described]:
        """What callers are told: the same, with the digests of contents in place of their names."""
        digests = await self.digests(item.sha256 for item in items)
        return [
            replace(item, sha256=digests[item.sha256]) if is_sealed_name(item.sha256) else item  # most are not
            for item in items
        ]

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

    def _intake(self, key: ContentKey | None) -> "_Intake":
        return _Intake(lambda: self.store.new(), key)


class _Intake:
    """Takes in one content and reckons its digest. It may be aborted from another thread than the one that writes.

    Nothing is opened before the first piece comes, so whoever gives up before that leaves nothing to close.
    """

    def __init__(self, opener: Callable[[], ContentWriter], key: ContentKey | None) -> None:
        self._opener = opener
        self._key = key
        self._encryptor = None if key is None else key.encryptor()
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
                self._opened().write(piece if self._encryptor is None else self._encryptor.add(piece))
                self._digest.update(piece)
                self._size += len(piece)

    def finish(self) -> Content:
        with self._lock:
            content = Content(self._digest.hexdigest(), self._size)
            if self._key is not None and self._encryptor is not None:
                content = replace(content, sha256=self._key.name(content))
                self._opened().write(self._encryptor.finish(content.sha256))
            self._opened().finish(content.sha256)
            return content

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
