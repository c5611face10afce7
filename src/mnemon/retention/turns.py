"""Whose turn it is to apply the policies, and when: once in a while, in one process at a time."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.consumers import PassingConsumer
from mnemon.errors import LeaseLost
from mnemon.journal import Journal
from mnemon.ports import Store
from mnemon.retention.footprints import Pulse
from mnemon.retention.rows import SQL

T = TypeVar("T")

_NAME = "retention"
_LEASE = 60.0  # seconds after which another process takes over from one that was killed
_MICROS = 1_000_000


class Interrupted(Exception):
    """The process is about to end."""


class Turns:
    """Hands out the turn, to one process at a time, when the interval since the last one is over."""

    def __init__(self, store: Store, clock: Clock, interval: float | None, interrupted: Callable[[], bool]) -> None:
        self._store = store
        self._clock = clock
        self._interval = interval
        self._interrupted = interrupted

    async def is_due(self) -> bool:
        """Whether it is time. The first time is an interval after the database was made."""
        if not self._interval:
            return False
        last = await self._store.fetch(SQL["last_run"], {}) or await self._store.fetch(SQL["first_change"], {})
        return bool(last) and self._clock.now() - last[0][0] >= self._interval * _MICROS

    async def take(self, work: Callable[[Pulse], Awaitable[T]]) -> T | None:
        """Do the work if it is time and nobody else is at it; None otherwise, or if it was given up.

        What the work did until then stays.
        """
        if not await self.is_due():
            return None
        lease = PassingConsumer(self._store, Journal(self._store, Access()), self._clock, _NAME, lease=_LEASE)

        async def unless_done() -> T | None:
            return await work(self._pulse(lease)) if await self.is_due() else None

        try:
            return await lease.alone(unless_done)
        except (Interrupted, LeaseLost):
            return None

    def _pulse(self, lease: PassingConsumer) -> Pulse:
        renewed = self._clock.now()

        async def pulse() -> None:
            nonlocal renewed
            if self._interrupted():
                raise Interrupted
            if self._clock.now() - renewed > _LEASE / 3 * _MICROS:
                await lease.hold()
                renewed = self._clock.now()

        return pulse
