"""Contents that lie outside the database."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from mnemon.model import StoredContent

PIECE = 1 << 18
"""How many bytes of a content are read, hashed and handed over at a time."""


class ContentWriter(Protocol):
    """Takes in one content, piece by piece; only one thread at a time uses it."""

    def write(self, piece: bytes) -> None:
        """Take the next piece; it may be of any length."""
        ...

    def finish(self, sha256: str) -> None:
        """Keep what was written under its digest, which the caller has reckoned.

        When this returns, the content survives a power cut. Content that is there already is written again
        only if it is damaged, but counts as written now.
        """
        ...

    def abort(self) -> None:
        """Leave nothing behind. Idempotent, and nothing happens after `finish`."""
        ...


class ContentStore(Protocol):
    """Contents by their SHA-256 digest, outside the database; `contents` is how services use it.

    Its methods are plain functions that may block: Mnemon calls them from threads, several at once. They raise
    `StoreUnavailable` when the store cannot be reached, and another `StoreError` when it fails. Opening reaches
    nothing yet.
    """

    def new(self) -> ContentWriter:
        """A writer for a content of any size, which takes no more memory for a larger one."""
        ...

    def read(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes from `offset` on, in pieces; `ContentMissing` with the first of them if there are none.

        The caller verifies them, and closes the iterator if it does not read to the end.
        """
        ...

    def delete(self, sha256: str, age: float) -> bool:
        """Remove the content, if it was last written at least `age` seconds ago; whether it was removed.

        A writer that finishes the same content at the same time wins: after its `finish` the content is there.
        """
        ...

    def listing(self) -> Iterator[StoredContent]:
        """Every content, in the order of the digests; what comes or goes meanwhile may be listed or not."""
        ...

    def sweep(self, age: float) -> int:
        """Remove what writers left that died, if it was not written to for `age` seconds; how many bytes."""
        ...

    def close(self) -> None:
        """Let go of every resource; idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What people are to see of one session: a folder with files by names that say what they are, and a manifest.

    `revision` grows with every change of the session's artifacts; `files` has the digest of each file by its name.
    `place` and the names are safe in any file system.
    """

    place: str
    revision: int
    files: Mapping[str, str]
    manifest: bytes


class Showcase(Protocol):
    """Shows people what there is, beside the contents; a projection that can be made anew at any time.

    Plain functions that may block, like those of `ContentStore`.
    """

    def show(self, exhibit: Exhibit) -> bool:
        """Show this and nothing else in its place; False if what is shown is of a later revision.

        A file that is shown under the same name is left as it is. The manifest changes in one step, at the end.
        """
        ...

    def places(self) -> Iterator[str]:
        """Every place where something is shown."""
        ...

    def remove(self, place: str, revision: int | None = None) -> bool:
        """Show nothing there any more; idempotent. False if what is shown is of a later revision than this."""
        ...


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where contents are kept, and where people see them if they can."""

    store: ContentStore
    showcase: Showcase | None = None
