"""Connections to one SQLite file, and the translation of what the driver raises."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from mnemon.errors import (
    IntegrityError,
    InvalidSettings,
    MnemonError,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

_OLDEST = (3, 35, 0)  # RETURNING
_CACHE_KIB = 16_000  # at the most: what a question reads is spread over the file
_CHECKPOINT_PAGES = 20_000  # the housekeeper checkpoints long before; this is for when it cannot


@dataclass(frozen=True, slots=True)
class Location:
    """Which database a `sqlite:` URL names; no path means one in memory."""

    path: Path | None
    read_only: bool = False

    @classmethod
    def parse(cls, url: str) -> "Location":
        parts = urlsplit(url)
        if parts.fragment or not unquote(url).isprintable():
            raise InvalidSettings(f"{url!r} has a '#', which should be written as %23, or a control character")
        if parts.netloc or (parts.path and not parts.path.startswith("/")):
            raise InvalidSettings(f"{url!r} should be sqlite:///relative.db, sqlite:////absolute.db or sqlite://")
        options = parse_qs(parts.query)
        unknown = options.keys() - {"mode"}
        if unknown or options.get("mode", ["rw"])[-1] not in ("rw", "ro"):
            raise InvalidSettings(f"{url!r}: the only option is mode=ro")
        path = unquote(parts.path).removeprefix("/")
        return cls(Path(path) if path and path != ":memory:" else None, options.get("mode", ["rw"])[-1] == "ro")

    def connect(self, synchronous: str, patience: float) -> sqlite3.Connection:
        """A connection in autocommit mode that waits up to `patience` seconds for a lock.

        A reader waits only for moments: while another process creates the file, recovers it after
        a crash, or is the last to close it.
        """
        if sqlite3.sqlite_version_info < _OLDEST:
            raise StoreUnavailable(
                f"this Python's SQLite is {sqlite3.sqlite_version}; Mnemon needs 3.35 or newer: use a newer Python"
            )
        if self.path and not self.read_only and not self.path.absolute().parent.is_dir():
            raise StoreUnavailable(f"the folder of {self.path} does not exist; create it first")
        with mapped_errors(self):
            connection = sqlite3.connect(
                self._uri(), uri=True, timeout=patience, isolation_level=None,
                check_same_thread=False, cached_statements=512,
            )  # fmt: skip
            try:
                self._configure(connection, synchronous)
            except BaseException:
                connection.close()
                raise
        return connection

    def _uri(self) -> str:
        if self.path is None:
            return ":memory:"
        if not self.read_only:
            return f"file:{quote(str(self.path))}?mode=rwc"
        return f"file:{quote(str(self.path))}?mode=ro&immutable={int(self._is_at_rest(self.path))}"

    def _is_at_rest(self, path: Path) -> bool:
        """Whether the file can be read by itself: nobody writes it, and nothing can be put beside it."""
        return not os.access(path.absolute().parent, os.W_OK) and not Path(f"{path}-wal").exists()

    def _configure(self, connection: sqlite3.Connection, synchronous: str) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {'FULL' if synchronous == 'full' else 'NORMAL'}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()  # reads the file's header

    def __str__(self) -> str:
        return str(self.path) if self.path else "the database in memory"


@contextmanager
def mapped_errors(location: Location) -> Generator[None]:
    """Raise Mnemon's errors for the driver's."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, location) from error


def is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translated(error: sqlite3.Error, location: Location) -> MnemonError:
    """The Mnemon error that says what happened and what to do about it."""
    code, text = _code(error), str(error)
    if isinstance(error, sqlite3.IntegrityError):
        return IntegrityError(f"{location}: {text}")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in text:
        return StoreClosed(f"{location} was closed")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorrupt(f"{location} is not a sound SQLite database ({text}): restore it from a backup")
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"{location}: {text}: free some space; nothing of this write was kept")
    if code == sqlite3.SQLITE_READONLY:
        return StoreReadOnly(f"{location} cannot be written ({text}): check its permissions")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"{location} is locked by another process; raise busy_timeout, or end what holds it")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreUnavailable(f"{location} cannot be opened or read ({text}): check the path and its permissions")
    return StoreError(f"{location}: {text}")


def _code(error: sqlite3.Error) -> int:
    """The primary result code; the extended part says more than is needed."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
