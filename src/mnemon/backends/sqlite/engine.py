"""The write connection, its lock and its transactions; read connections on demand."""

import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from mnemon.backends.sqlite.connection import Location, is_busy, mapped_errors, translated
from mnemon.coroutines import complete
from mnemon.errors import InvalidValue, StoreBusy, StoreClosed
from mnemon.ports import Params, Raced, Row, Transaction, Unit
from mnemon.settings import Settings
from mnemon.signals import CommitSignal
from mnemon.sql import Query

T = TypeVar("T")

_COMMITS_PER_CHECKPOINT = 250
_MERGE_TERMS = Query("merge_terms", "INSERT INTO memory_terms (memory_terms) VALUES ('optimize')")
_TRIES = 20  # of a unit that says it was raced, which with one writer at a time is hardly ever true


class SqliteTransaction:
    """Statements on one connection. Nothing here ever suspends."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def fetch_one(self, query: Query, params: Params) -> Row | None:
        # Reading to the end finishes the statement, so that its lock does not outlive the call.
        rows = self._execute(query.text, params).fetchall()
        return rows[0] if rows else None

    async def fetch_all(self, query: Query, params: Params) -> list[Row]:
        return self._execute(query.text, params).fetchall()

    async def fetch_each(self, query: Query, rows: Sequence[Params]) -> list[Row]:
        execute, text = self._execute, query.text
        return [execute(text, params).fetchall()[0] for params in rows]

    async def execute(self, query: Query, params: Params) -> int:
        return self._execute(query.text, params).rowcount

    async def execute_many(self, query: Query, rows: Sequence[Params]) -> None:
        try:
            self._connection.executemany(query.text, rows)
        except (OverflowError, UnicodeEncodeError) as error:
            raise _unusable(error) from error

    def _execute(self, text: str, params: Params) -> sqlite3.Cursor:
        try:
            return self._connection.execute(text, params)
        except (OverflowError, UnicodeEncodeError) as error:
            raise _unusable(error) from error


@dataclass(slots=True)
class Outcome:
    """What became of one unit of work of a group."""

    result: Any = None
    error: Exception | None = None


class Engine:
    """One database file, or one database in memory, as this process sees it."""

    def __init__(self, location: Location, settings: Settings) -> None:
        self.location = location
        self.commits = CommitSignal()
        self.closed = False
        self.on_checkpoint: Callable[[], None] = lambda: None
        self._settings = settings
        self._writer = self.connect()
        self._writer.execute("PRAGMA busy_timeout = 0")  # it is asked again, without holding up its thread
        self._lock = threading.Lock()
        self._readers: deque[sqlite3.Connection] = deque()
        self._transaction = SqliteTransaction(self._writer)
        self._uncounted = 0

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection]:
        """The write connection, for set-up: it waits for others, and nobody of this process has it meanwhile."""
        with self._lock:
            self._writer.execute(f"PRAGMA busy_timeout = {round(self._settings.busy_timeout * 1000)}")
            try:
                yield self._writer
            finally:
                self._writer.execute("PRAGMA busy_timeout = 0")

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """The write connection in a transaction that is committed, or rolled back on an error."""
        with self._lock:
            self._begin_patiently()
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    # -- writing

    def try_write(self, unit: Unit[T]) -> tuple[bool, T | None]:
        """Run `unit` now if nobody else is writing; the first part of the answer says whether."""
        if not self._lock.acquire(blocking=False):
            return False, None
        try:
            self._check_open()
            if not self._begin():
                return False, None
            with suppress(Raced):
                return True, self._commit_after(lambda: complete(unit(self._transaction)))
            return False, None
        finally:
            self._lock.release()

    def write(self, unit: Unit[T]) -> T:
        """Run `unit` and commit it, waiting for other writers up to the busy timeout."""
        with self._lock:
            for _ in range(_TRIES):
                self._check_open()
                self._begin_patiently()
                with suppress(Raced):
                    return self._commit_after(lambda: complete(unit(self._transaction)))
            raise self._raced()

    def try_write_group(self, units: Sequence[Unit[Any]]) -> list[Outcome] | None:
        """Run several units in one transaction, now; None if somebody else is writing."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._commit_group(units, self._begin)
        finally:
            self._lock.release()

    def write_group(self, units: Sequence[Unit[Any]]) -> list[Outcome]:
        """Run several units in one transaction, waiting for other writers up to the busy timeout."""
        with self._lock:
            return self._commit_group(units, self._begin_patiently) or []

    def _commit_group(self, units: Sequence[Unit[Any]], begin: Callable[[], bool]) -> list[Outcome] | None:
        """One that fails takes nothing with it: each has a savepoint of its own."""
        try:
            self._check_open()
            if not begin():
                return None
            return self._commit_after(lambda: [self._run_saved(unit) for unit in units], len(units))
        except Exception as error:  # noqa: BLE001 - raised again for each caller
            return [Outcome(error=error) for _ in units]

    def _run_saved(self, unit: Unit[Any]) -> Outcome:
        for _ in range(_TRIES):
            outcome = self._try_saved(unit)
            if not isinstance(outcome.error, Raced):
                return outcome
        return Outcome(error=self._raced())

    def _try_saved(self, unit: Unit[Any]) -> Outcome:
        self._writer.execute("SAVEPOINT job")
        try:
            outcome = Outcome(complete(unit(self._transaction)))
        except Exception as error:
            if not self._writer.in_transaction:
                raise  # SQLite gave up the whole transaction, as when the disk is full
            outcome = Outcome(error=translated(error, self.location) if isinstance(error, sqlite3.Error) else error)
            self._writer.execute("ROLLBACK TO job")
        self._writer.execute("RELEASE job")
        return outcome

    def _raced(self) -> StoreBusy:
        return StoreBusy(f"{self.location}: a unit of work was raced {_TRIES} times; nothing of it was kept: try again")

    def _commit_after(self, work: Callable[[], T], count: int = 1) -> T:
        """Do `work` in the open transaction and commit it, or leave nothing of it."""
        try:
            result = work()
            self._writer.execute("COMMIT")
        except BaseException as error:
            self._roll_back()
            if isinstance(error, sqlite3.Error):
                raise translated(error, self.location) from error
            raise
        self._committed(count)
        return result

    def _roll_back(self) -> None:
        if self._writer.in_transaction:  # some errors, such as a full disk, have rolled back already
            with suppress(sqlite3.Error):
                self._writer.execute("ROLLBACK")

    def _committed(self, count: int) -> None:
        self.commits.notify()
        self._uncounted += count
        if self._uncounted >= _COMMITS_PER_CHECKPOINT:
            self._uncounted = 0
            self.on_checkpoint()

    def _begin(self) -> bool:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if is_busy(error):
                return False
            raise translated(error, self.location) from error
        return True

    def _begin_patiently(self) -> bool:
        """Wait for the other processes with growing, uneven pauses, so that none starves."""
        deadline = time.monotonic() + self._settings.busy_timeout
        pause = 0.0002
        while not self._begin():
            if time.monotonic() >= deadline:
                raise StoreBusy(
                    f"{self.location} was locked by another process for {self._settings.busy_timeout} s; "
                    "raise busy_timeout, or end what holds it"
                )
            time.sleep(random.uniform(0.2, 1.0) * pause)
            pause = min(pause * 1.5, 0.02)
        return True

    # -- reading

    def fetch(self, query: Query, params: Params) -> list[Row]:
        """Answer one query on the state as last committed."""
        connection = self._borrow()
        try:
            return connection.execute(query.text, params).fetchall()
        except (OverflowError, UnicodeEncodeError) as error:
            raise _unusable(error) from error
        except sqlite3.Error as error:
            raise translated(error, self.location) from error
        finally:
            self._give_back(connection)

    def read(self, unit: Unit[T]) -> T:
        """Run `unit` on one snapshot."""
        connection = self._borrow()
        try:
            with mapped_errors(self.location):
                connection.execute("BEGIN")
                try:
                    return complete(unit(SqliteTransaction(connection)))
                finally:
                    connection.execute("COMMIT")
        finally:
            self._give_back(connection)

    def _borrow(self) -> sqlite3.Connection:
        self._check_open()
        if self.location.path is None:  # a second connection would be a second database
            self._lock.acquire()
            return self._writer
        try:
            return self._readers.pop()
        except IndexError:
            return self.connect()

    def connect(self) -> sqlite3.Connection:
        return self.location.connect(self._settings.synchronous, self._settings.busy_timeout)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if connection is self._writer:
            self._lock.release()
        elif self.closed:
            connection.close()
        else:
            self._readers.append(connection)

    # -- upkeep

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file, and begin the log anew so that it does not grow.

        Most is moved beside the writers. Only the little that they add meanwhile is moved while they
        wait: without that the log would never be empty for a moment, and grow for as long as they write.
        """
        if self._has_log():
            connection = self._borrow()
            try:
                _checkpoint(connection, "PASSIVE", self.location)
            finally:
                self._give_back(connection)
            with self._lock:
                self._check_open()
                _checkpoint(self._writer, "RESTART", self.location)

    def scrub(self, *, whole: bool = False) -> bool:
        """Leave nothing of what was deleted in the file and beside it; whether that was possible now.

        Deleted rows are overwritten with zeros, but the index of words forgets only when it is merged. Rows that were
        changed may have been moved between pages before, which leaves copies: `whole` writes the file anew.
        """
        try:
            self.write(_merge_terms)
            if whole:
                self._vacuum()
        except StoreBusy:
            return False
        return self.empty_log()

    def _vacuum(self) -> None:
        with self._lock:
            self._check_open()
            try:
                self._writer.execute("PRAGMA temp_store = FILE")  # else all of it would be in memory
                self._writer.execute("VACUUM")
                self._writer.execute("PRAGMA temp_store = MEMORY")
            except sqlite3.Error as error:
                raise translated(error, self.location) from error

    def empty_log(self) -> bool:
        """Leave nothing in the write-ahead log, waiting for readers up to the busy timeout; whether it is empty."""
        deadline = time.monotonic() + self._settings.busy_timeout
        while self._has_log():
            with self._lock:
                self._check_open()
                if _checkpoint(self._writer, "TRUNCATE", self.location):
                    return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)
        return True

    def _has_log(self) -> bool:
        return self.location.path is not None and not self.location.read_only

    def close(self) -> None:
        with self._lock:
            if self.closed:
                return
            self.closed = True
            while self._readers:
                self._readers.pop().close()
            self._writer.close()
        self.commits.notify()  # so that those who follow learn of it now

    def _check_open(self) -> None:
        if self.closed:
            raise StoreClosed(f"{self.location} was closed")


async def _merge_terms(tx: Transaction) -> None:
    await tx.execute(_MERGE_TERMS, {})


def _unusable(error: Exception) -> InvalidValue:
    """A number or a text that SQLite cannot take; the services check what they can before."""
    return InvalidValue(f"a value cannot be stored or compared with: {error}")


def _checkpoint(connection: sqlite3.Connection, mode: str, location: Location) -> bool:
    """Whether the whole log was moved; readers and writers of other processes may prevent it."""
    try:
        return not connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0]
    except sqlite3.Error as error:
        if is_busy(error):
            return False
        raise translated(error, location) from error
