"""The content of an artifact while it is read."""

from collections.abc import AsyncGenerator, Awaitable, Callable

from mnemon.contents import Contents
from mnemon.errors import ContentMissing, InvalidInput
from mnemon.model import Artifact


class ArtifactStream:
    """An open artifact: iterate over its pieces, or `read` as much as is wanted. Enter it, or close it.

    It is looked up when it is entered, or first read. Content that is read from the beginning to the end is verified:
    `ContentCorrupt` comes in place of the last piece.
    """

    def __init__(self, find: Callable[[], Awaitable[Artifact]], contents: Contents, offset: int) -> None:
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"offset must be a whole number of bytes from 0, not {offset!r}")
        self._find = find
        self._contents = contents
        self._content = ""
        self._artifact: Artifact | None = None
        self._pieces: AsyncGenerator[bytes] | None = None
        self._rest = b""
        self._position = offset

    @property
    def artifact(self) -> Artifact:
        """What is open; known once it was entered or read from."""
        if self._artifact is None:
            raise InvalidInput("the artifact is not open yet: enter it with `async with`, or read from it")
        return self._artifact

    @property
    def position(self) -> int:
        """The next byte that will be read."""
        return self._position

    async def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, fewer only at the end; all that is left if it is negative."""
        parts: list[bytes] = []
        have = 0
        while size < 0 or have < size:
            piece = await self._next(None if size < 0 else size - have)
            if not piece:
                break
            parts.append(piece)
            have += len(piece)
        return b"".join(parts)

    async def seek(self, position: int) -> None:
        """Go on reading from another place; what was left out is not verified."""
        await self.close()
        self._position = position

    async def close(self) -> None:
        """Let go of the content; idempotent."""
        pieces, self._pieces, self._rest = self._pieces, None, b""
        if pieces is not None:
            await pieces.aclose()

    async def _next(self, most: int | None = None) -> bytes:
        """The next piece, of at most so many bytes; nothing at the end."""
        if not self._rest:
            self._rest = await anext(await self._opened(), b"")
        piece = self._rest if most is None else self._rest[:most]
        self._rest = self._rest[len(piece) :]
        self._position += len(piece)
        return piece

    async def _opened(self) -> AsyncGenerator[bytes]:
        await self.__aenter__()
        if self._pieces is None:
            self._pieces = self._contents.read(self._content, self._position)
        return self._pieces

    def __aiter__(self) -> "ArtifactStream":
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await self._next()
        except ContentMissing as error:
            raise ContentMissing(f"{self.artifact.url}: {error}") from error
        if not piece:
            await self.close()
            raise StopAsyncIteration
        return piece

    async def __aenter__(self) -> "ArtifactStream":
        if self._artifact is None:
            found = await self._find()
            self._content = found.sha256
            [self._artifact] = await self._contents.told([found])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
