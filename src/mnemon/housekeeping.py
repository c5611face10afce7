"""Chores that go on in the background, on a thread of their own."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from mnemon.errors import MnemonError

_LOG = logging.getLogger("mnemon.housekeeping")


class Housekeeper:
    """Does its chores at intervals, the urgent ones whenever poked, and all a last time when stopped."""

    def __init__(
        self,
        chores: Sequence[Callable[[], object]],
        interval: float | None,
        urgent: Sequence[Callable[[], object]] = (),
    ) -> None:
        self._chores = chores
        self._urgent = urgent
        self._interval = interval
        self._poked = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="mnemon-housekeeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poke(self) -> None:
        """Ask for the urgent chores soon; returns at once."""
        self._poked.set()

    def stop(self) -> None:
        self._stopped = True
        self._poked.set()
        self._thread.join()

    def _run(self) -> None:
        due, last = self._next_time(), False
        while not last:
            self._poked.wait(None if due is None else max(0.0, due - time.monotonic()))
            self._poked.clear()
            last = self._stopped  # what was done before the stop is seen to once more
            if last or (due is not None and time.monotonic() >= due):
                _do(self._chores)
                due = self._next_time()
            _do(self._urgent)

    def _next_time(self) -> float | None:
        return None if self._interval is None else time.monotonic() + self._interval


def _do(chores: Sequence[Callable[[], object]]) -> None:
    for chore in chores:
        try:
            chore()
        except MnemonError as error:
            _LOG.warning("a chore failed and will be tried again: %s", error)


def seldom(chore: Callable[[], object], interval: float) -> Callable[[], object]:
    """The chore, done at the most every `interval` seconds however often it is called, and not before the first."""
    due = time.monotonic() + interval

    def done_when_due() -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + interval
            chore()

    return done_when_due
