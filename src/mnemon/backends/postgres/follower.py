"""Followers on PostgreSQL: woken by commits of this process at once, of others by LISTEN and NOTIFY.

NOTIFY inside a transaction makes all such transactions commit one after another. So a thread of
its own sends it after the commit, once for all that were committed meanwhile.
"""

import logging
import selectors
import socket
import threading
from abc import ABC, abstractmethod

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from mnemon.backends.postgres.connection import Location
from mnemon.signals import CommitSignal

_LOG = logging.getLogger("mnemon.postgres")
_GAP = 0.004  # seconds between two notifications at the least: more often wakes nobody sooner
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0


class _Line(ABC):
    """A thread with a connection of its own, which it makes anew whenever that is lost."""

    def __init__(self, location: Location, name: str) -> None:
        self._location = location
        self._name = name
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._failures = 0

    def start(self) -> None:
        if self._thread:
            return
        with self._starting:
            if self._thread is None and not self._stopped.is_set():
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                thread.start()
                self._thread = thread

    def stop(self) -> None:
        with self._starting:
            if self._stopped.is_set():
                return
            self._stopped.set()
        self._wake()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while self._has_work():
            try:
                with self._location.connect() as connection:
                    self._serve(connection)
            except psycopg.Error as error:
                self._failures += 1
                _LOG.warning("%s: the connection of %s was lost: %s", self._location, self._name, error)
                self._stopped.wait(min(_SHORTEST_PAUSE * 2 ** min(self._failures, 10), _LONGEST_PAUSE))

    def _has_work(self) -> bool:
        return not self._stopped.is_set()

    @abstractmethod
    def _wake(self) -> None:
        """Make the thread notice that it was stopped."""

    @abstractmethod
    def _serve(self, connection: "psycopg.Connection[TupleRow]") -> None:
        """Work until stopped, or until the connection is lost."""


class Notifier(_Line):
    """Tells other processes that something was committed; begins with the first commit."""

    def __init__(self, location: Location) -> None:
        super().__init__(location, "mnemon-notifier")
        self.pid: int | None = None
        self._due = threading.Event()
        self._untold = False

    def notify(self) -> None:
        """Have the others told soon; returns at once."""
        self._untold = True
        if not self._due.is_set():
            self._due.set()
        self.start()

    def _has_work(self) -> bool:
        """What was committed before the end is still told, unless the server is away."""
        return not self._stopped.is_set() or (self._untold and not self._failures)

    def _wake(self) -> None:
        self._due.set()

    def _serve(self, connection: "psycopg.Connection[TupleRow]") -> None:
        connection.execute("SET synchronous_commit = off")  # nothing is written: there is no disk to wait for
        self.pid = connection.info.backend_pid
        while True:
            self._due.wait()
            self._due.clear()
            if self._untold:
                self._untold = False
                self._tell(connection)
            if self._stopped.wait(_GAP) and not self._untold:
                return

    def _tell(self, connection: "psycopg.Connection[TupleRow]") -> None:
        try:
            connection.execute("SELECT pg_notify(%s, '')", [self._location.schema])
        except psycopg.Error:
            self._untold = True
            self._due.set()
            raise
        self._failures = 0


class Listener(_Line):
    """Hears of the commits of other processes; begins when somebody first waits."""

    def __init__(self, location: Location, commits: CommitSignal, own: Notifier) -> None:
        super().__init__(location, "mnemon-listener")
        self._commits = commits
        self._own = own
        self._end, self._ended = socket.socketpair()

    def stop(self) -> None:
        super().stop()
        self._end.close()
        self._ended.close()

    def _wake(self) -> None:
        self._end.send(b"x")

    def _serve(self, connection: "psycopg.Connection[TupleRow]") -> None:
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._location.schema)))
        self._failures = 0
        self._commits.notify()  # for whatever was committed while nobody listened
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            selector.register(self._ended, selectors.EVENT_READ)
            while not self._stopped.is_set():
                selector.select()
                # What this process commits wakes its followers without a way around the server.
                if {note.pid for note in connection.notifies(timeout=0)} - {self._own.pid}:
                    self._commits.notify()


class Followers:
    """Everybody who waits for a commit, in this process and in others."""

    def __init__(self, location: Location) -> None:
        self.commits = CommitSignal()
        self._notifier = Notifier(location)
        self._listener = Listener(location, self.commits, self._notifier)

    def wake(self) -> None:
        """Say that something was committed."""
        self.commits.notify()
        self._notifier.notify()

    def listen(self) -> None:
        """Hear of other processes' commits from now on."""
        self._listener.start()

    def stop(self) -> None:
        self._notifier.stop()
        self._listener.stop()
        self.commits.notify()  # so that those who follow learn of it now
