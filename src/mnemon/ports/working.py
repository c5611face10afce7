"""The copy of working memory outside the database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """Where a buffer or a scratchpad of a session is kept outside the database."""

    app_name: str
    session_id: str
    kind: Literal["buffer", "pad"]
    name: str
    created_at: int
    """When the session was made: another one of the same id has nothing of it. 0 if that does not matter."""


@dataclass(frozen=True, slots=True)
class CopyRead:
    """What a copy had: its newest entries, the newest first."""

    entries: Sequence[str]
    is_whole: bool = False
    """The copy has every entry there is, not only the newest."""


@dataclass(frozen=True, slots=True)
class CopyChange:
    """A change that was committed, for the copy. Positions are those of the journal."""

    place: CopyPlace
    base: int
    """The position of the change before."""
    position: int
    added: Sequence[tuple[int, str]] = ()
    """Entries with their sequences; one that has a sequence of the copy takes its place."""
    removed: Sequence[int] = ()


class WorkingCopy(Protocol):
    """A quick copy of working memory outside the database, which never is the only place where something is.

    Its methods are plain functions that may block, and raise `StoreUnavailable`. Whoever reads says where the
    database stands: a copy that stands anywhere else is none, whatever may have happened to it. So it may lose
    changes, come back from a disk or be replaced by an older one without anybody reading something old.
    """

    def read(self, place: CopyPlace, position: int, limit: int) -> CopyRead | None:
        """The newest entries, at the most `limit`; None if the copy does not stand at `position`, or has too few."""
        ...

    def fill(self, place: CopyPlace, position: int, entries: Sequence[tuple[int, str]], whole: bool) -> None:
        """Keep what the database had at `position`, unless the copy stands further already."""
        ...

    def apply(self, change: CopyChange) -> None:
        """Change a copy that stands where the change began, drop any that is older, and tell those who listen."""
        ...

    def drop_session(self, app_name: str, session_id: str) -> None:
        """Drop all copies of a session."""
        ...

    def listen(self, heard: Callable[[], None]) -> None:
        """Call `heard` from a thread whenever something was applied, by whichever process; once is enough."""
        ...

    def close(self) -> None:
        """Let go of everything; idempotent."""
        ...
