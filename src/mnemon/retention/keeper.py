"""The thread that applies the policies while a memory is open."""

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from mnemon.coroutines import complete
from mnemon.errors import MnemonError, StoreClosed

if TYPE_CHECKING:  # not needed by those who are open for a moment only
    from mnemon.retention.service import RetentionService

_LOG = logging.getLogger("mnemon.retention")
_FIRST = 1.0  # seconds; a process that lives for less does not begin with it
_PAUSE = 60.0
_AFTER_FAILURE = 3600.0


class Keeper:
    """Looks now and then whether it is time. What fails is tried again in an hour."""

    def __init__(self, make: "Callable[[Callable[[], bool]], RetentionService]") -> None:
        self._make = make
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mnemon-retention", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the piece of work that it is at; idempotent."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause, service = _FIRST, None
        while not self._stopped.wait(pause):
            try:
                service = service or self._make(self._stopped.is_set)
                complete(service.apply_if_due())
                pause = _PAUSE
            except StoreClosed:
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the thread
                unexpected = None if isinstance(error, MnemonError) else error
                _LOG.warning("the retention policies could not be applied: %s", error, exc_info=unexpected)
                pause = _AFTER_FAILURE
