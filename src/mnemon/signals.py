"""Waking those who wait for a commit, on any thread or event loop of this process."""

import asyncio
import threading
from contextlib import suppress


class CommitSignal:
    """Counts commits. Those who wait are woken by the next one, whoever makes it."""

    def __init__(self) -> None:
        self._count = 0
        self._arrival = threading.Condition()
        self._loops: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}
        self._blocked = 0

    def ticket(self) -> int:
        return self._count

    def notify(self) -> None:
        """Say that something was committed; costs next to nothing while nobody waits."""
        self._count += 1
        if not self._blocked and not self._loops:
            return
        with self._arrival:
            self._arrival.notify_all()
            waiting, self._loops = self._loops, {}
        for future, loop in waiting.items():
            with suppress(RuntimeError):  # a loop that was closed has nobody left who waits
                loop.call_soon_threadsafe(_resolve, future)

    def block(self, ticket: int, timeout: float) -> None:
        """Hold this thread until a commit after `ticket`, or for `timeout` seconds."""
        with self._arrival:
            self._blocked += 1
            self._arrival.wait_for(lambda: self._count != ticket, timeout)
            self._blocked -= 1

    async def wait(self, ticket: int, timeout: float) -> None:
        """Let this task sleep until a commit after `ticket`, or for `timeout` seconds."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._arrival:
            self._loops[future] = loop
        # Not `wait_for`, which before Python 3.12 swallows a cancellation that comes together with the commit.
        # Where a commit has come already, the other tasks of the loop still get their turn.
        alarm = loop.call_later(timeout if self._count == ticket else 0, _resolve, future)
        try:
            await future
        finally:
            alarm.cancel()
            with self._arrival:
                self._loops.pop(future, None)


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
