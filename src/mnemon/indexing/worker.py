"""The thread that keeps indexes in step while a memory is open."""

import logging
import random
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from mnemon.coroutines import complete
from mnemon.errors import LeaseLost, MnemonError, StoreClosed
from mnemon.indexing.duties import Duty
from mnemon.ports import Store

_LOG = logging.getLogger("mnemon.indexing")
_PATIENCE = 1.0  # seconds; a wake-up that got lost costs at most this
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
_GLIMPSE = 0.002  # seconds in which one sees whether others are writing
_SHARE = 3  # while they are, it rests for so many times as long as it worked
_LONGEST_REST = 0.5


@dataclass(slots=True)
class _Trouble:
    """How often in a row a duty failed, and when it is tried again."""

    failures: int = 0
    next_try: float = 0.0

    def note(self) -> None:
        self.failures += 1
        pause = min(_FIRST_PAUSE * 2 ** min(self.failures - 1, 20), _LONGEST_PAUSE)
        self.next_try = time.monotonic() + random.uniform(0.5, 1.0) * pause


class Worker:
    """Drives every duty, over a store whose coroutines never suspend.

    It is woken by commits, and waits a little more so that a burst of them is handled together. While
    others write without a pause it rests after each batch, so that they hardly notice it, and makes up for that
    later. A duty that fails is tried again, later each time; it holds up no other.
    """

    def __init__(
        self, store: Store, duties: Callable[[], Coroutine[Any, Any, Sequence[Duty]]], delay: float = 0.05
    ) -> None:
        self._store = store
        self._duties = duties
        self._delay = delay
        self._troubles: dict[str, _Trouble] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mnemon-indexer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the batch that it is at; idempotent."""
        self._stopped.set()
        self._store.wake()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            ticket = self._store.ticket()
            began = time.monotonic()
            try:
                worked = self._do_all()
            except StoreClosed:
                return
            if worked:
                self._rest(time.monotonic() - began)
            else:
                self._wait(ticket)

    def _do_all(self) -> bool:
        """Give every duty its turn; whether one of them had something to do."""
        try:
            duties = complete(self._duties())
        except StoreClosed:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the thread
            self._note("the upkeep of indexes", error)
            return False
        present = {duty.name for duty in duties}
        self._troubles = {name: trouble for name, trouble in self._troubles.items() if name in present}
        return sum(self._do(duty) for duty in duties if not self._stopped.is_set()) > 0

    def _do(self, duty: Duty) -> bool:
        trouble = self._troubles.get(duty.name)
        if trouble and time.monotonic() < trouble.next_try:
            return False
        try:
            done = complete(duty.has_work()) and complete(duty.step())
        except StoreClosed:
            raise
        except LeaseLost:
            return False
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the thread
            self._note(duty.name, error)
            return False
        if self._troubles.pop(duty.name, None):
            _LOG.warning("%s goes on", duty.name)
        return bool(done)

    def _note(self, name: str, error: Exception) -> None:
        trouble = self._troubles.setdefault(name, _Trouble())
        trouble.note()
        level = logging.WARNING if trouble.failures == 1 else logging.DEBUG
        unexpected = not isinstance(error, MnemonError)
        _LOG.log(level, "%s failed and is tried again: %s", name, error, exc_info=error if unexpected else None)

    def _rest(self, worked: float) -> None:
        """Leave the database to others, if there are any who write."""
        ticket = self._store.ticket()
        self._stopped.wait(_GLIMPSE)
        if self._store.ticket() != ticket:
            self._stopped.wait(min(_SHARE * worked, _LONGEST_REST))

    def _wait(self, ticket: int) -> None:
        """Until something is committed or a duty is to be tried again, and a little longer."""
        now = time.monotonic()
        due = [trouble.next_try - now for trouble in self._troubles.values()]
        try:
            complete(self._store.wait(ticket, max(0.0, min([_PATIENCE, *due]))))  # pyright: ignore[reportArgumentType]
        except StoreClosed:
            self._stopped.set()
        except MnemonError as error:
            _LOG.debug("waiting for changes failed: %s", error)
            self._stopped.wait(_PATIENCE)
        self._stopped.wait(self._delay)
