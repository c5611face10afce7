"""How work is done that may block."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Runner(Protocol):
    """How work that may block, and several things at once, are done: with an event loop or without."""

    async def aside(self, work: Callable[[], T]) -> T:
        """Do work that may block, so that an event loop does not wait for it."""
        ...

    async def together(self, *work: Awaitable[T]) -> list[T]:
        """Do all of it, at once if there is an event loop; the results in order."""
        ...
