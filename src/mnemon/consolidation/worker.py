"""Turning the flow for as long as a process lives: on a thread of an open memory, or as all that a process does."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from mnemon.errors import InvalidInput, MnemonError, StoreClosed
from mnemon.model import FlowReport

_LOG = logging.getLogger("mnemon.consolidation")
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds after a failure
_PATIENCE = 5.0  # seconds that closing waits for a piece of work; what is not done then is done by another


class FlowWorker:
    """Turns the flow again and again: at once while there is something to do, and else after a pause.

    A turn that fails is tried again, later each time; unless it is not `patient`, or what it is asked makes no sense.
    """

    def __init__(
        self,
        turn: Callable[[], FlowReport],
        pause: float,
        *,
        delay: float = 0.0,
        patient: bool = True,
        told: Callable[[FlowReport], object] | None = None,
    ) -> None:
        self._turn = turn
        self._pause = pause
        self._delay = delay
        self._patient = patient
        self._told = told
        self._stopped = False
        self._alarm: SimpleQueue[None] = SimpleQueue()  # of all that one can wait for, a signal handler may use this
        self._thread = threading.Thread(target=self.run, name="mnemon-consolidator", daemon=True)

    def start(self) -> None:
        """Work on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more; a signal handler may call it too."""
        self._stopped = True
        self._alarm.put(None)

    def join(self) -> None:
        """Wait for the piece of work that it is at, but not for long: a language model may take its time."""
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def run(self) -> None:
        """Work on this thread until stopped."""
        failures = 0
        self._wait(self._delay)
        while not self._stopped:
            try:
                report = self._turn()
            except StoreClosed:
                return
            except Exception as error:
                if not self._patient or isinstance(error, InvalidInput):
                    raise
                failures += 1
                self._note(failures, error)
                self._wait(min(_FIRST_PAUSE * 2 ** min(failures - 1, 20), _LONGEST_PAUSE))
                continue
            failures = 0
            if self._told is not None:
                self._told(report)
            if not report.rounds:
                self._wait(self._pause)

    def _wait(self, seconds: float) -> None:
        if seconds and not self._stopped:
            with suppress(Empty):
                self._alarm.get(timeout=seconds)

    def _note(self, failures: int, error: Exception) -> None:
        level = logging.WARNING if failures == 1 else logging.DEBUG
        unexpected = not isinstance(error, MnemonError)
        _LOG.log(level, "consolidation failed and is tried again: %s", error, exc_info=error if unexpected else None)
