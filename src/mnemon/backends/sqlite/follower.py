"""Followers on SQLite: woken by commits of this process at once, of others within milliseconds."""

import sqlite3
import threading
from contextlib import closing, suppress

from mnemon.backends.sqlite.engine import Engine
from mnemon.errors import MnemonError

_GLANCE = 0.008  # seconds between looks at the file, while somebody follows


class Lookout:
    """Watches the file for commits of other processes; begins when somebody first waits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def start(self) -> None:
        if self._thread or self._engine.location.path is None:
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="mnemon-lookout", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        with self._starting:
            thread = self._thread
        if thread:
            thread.join()

    def _watch(self) -> None:
        # Whoever waits looks for himself now and then, and is told by the store what is wrong with it.
        with suppress(MnemonError, sqlite3.Error), closing(self._engine.connect()) as connection:
            seen = _version(connection)
            while not self._stop.wait(_GLANCE):
                now = _version(connection)
                if now != seen:
                    seen = now
                    self._engine.commits.notify()


def _version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA data_version").fetchone()[0]
