"""Contents in memory: for databases in memory, and for tests."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from mnemon.errors import ContentMissing
from mnemon.model import StoredContent
from mnemon.ports import PIECE


class MemoryContents:
    """A `ContentStore` that ends with the program."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[bytes, float]] = {}
        self._lock = threading.Lock()

    def new(self) -> "MemoryWriter":
        return MemoryWriter(self)

    def read(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        with self._lock:
            found = self._kept.get(sha256)
        if found is None:
            raise ContentMissing(f"the content {sha256!r:.80} is not in memory")
        data, _ = found
        for start in range(offset, len(data), PIECE):
            yield data[start : start + PIECE]

    def keep(self, sha256: str, data: bytes) -> None:
        """What a writer has finished."""
        with self._lock:
            self._kept[sha256] = (data, time.time())

    def delete(self, sha256: str, age: float) -> bool:
        with self._lock:
            found = self._kept.get(sha256)
            if found is None or time.time() - found[1] < age:
                return False
            del self._kept[sha256]
            return True

    def listing(self) -> Iterator[StoredContent]:
        with self._lock:
            found = sorted((name, len(data), at) for name, (data, at) in self._kept.items())
        return (StoredContent(name, size, datetime.fromtimestamp(at, UTC)) for name, size, at in found)

    def sweep(self, age: float) -> int:
        """Writers that died left nothing."""
        return 0

    def close(self) -> None:
        """There is nothing to let go of."""


class MemoryWriter:
    """Collects pieces until they are kept."""

    def __init__(self, contents: MemoryContents) -> None:
        self._contents = contents
        self._pieces = bytearray()

    def write(self, piece: bytes) -> None:
        self._pieces += piece

    def finish(self, sha256: str) -> None:
        self._contents.keep(sha256, bytes(self._pieces))

    def abort(self) -> None:
        self._pieces.clear()
