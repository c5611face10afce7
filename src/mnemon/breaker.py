"""A circuit breaker: what keeps failing is left alone for a while, so that nobody waits for it in vain."""

import threading

from mnemon.clock import Clock

_MICROS = 1_000_000


class Breaker:
    """Says whether something may be asked. Tell it how that went.

    After `failures` in a row it refuses for `pause` seconds. Then one caller may try; if that fails
    too, it refuses for twice as long as before, up to `longest`. A success closes it again. A caller
    that was let through and never told how it went only delays the next try by a pause.
    """

    def __init__(self, clock: Clock, *, failures: int = 3, pause: float = 1.0, longest: float = 60.0) -> None:
        self._clock = clock
        self._limit = failures
        self._first_pause = round(pause * _MICROS)
        self._longest = round(longest * _MICROS)
        self._pause = self._first_pause
        self._failures = 0
        self._refusing_since: int | None = None
        self._lock = threading.Lock()

    @property
    def failures(self) -> int:
        """How many times in a row it went wrong; 0 while all is well."""
        return self._failures

    @property
    def is_open(self) -> bool:
        """Whether it would refuse now."""
        return not self._is_due()

    def allows(self) -> bool:
        """Whether the caller may try now. Of those who ask when a pause is over, only one may."""
        with self._lock:
            if self._refusing_since is None:
                return True
            if not self._is_due():
                return False
            self._refusing_since = self._clock.now()
            return True

    def succeeded(self) -> bool:
        """It went well; whether that ends an outage."""
        if not self._failures:
            return False
        with self._lock:
            ended, self._failures = self._failures > 0, 0
            self._refusing_since, self._pause = None, self._first_pause
            return ended

    def failed(self) -> bool:
        """It went wrong; whether that begins an outage."""
        with self._lock:
            self._failures += 1
            if self._refusing_since is not None:
                self._pause = min(2 * self._pause, self._longest)
                self._refusing_since = self._clock.now()
            elif self._failures >= self._limit:
                self._refusing_since = self._clock.now()
            return self._failures == 1

    def _is_due(self) -> bool:
        since = self._refusing_since
        # A clock that was set back must not keep it open for longer than the pause.
        return since is None or not 0 <= self._clock.now() - since < self._pause
