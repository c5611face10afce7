"""Running coroutines: without an event loop when they never really suspend, and beside one when work may block."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def complete(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of `coroutine`, which must finish without waiting for anything."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("a unit of work may await only its transaction")


class LoopRunner:
    """For code on an event loop: what may block goes to a thread, and awaitables run at once."""

    async def aside(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)

    async def together(self, *work: Awaitable[T]) -> list[T]:
        return await asyncio.gather(*work)


class InlineRunner:
    """For threads that may block: everything is done here and now, one after the other."""

    async def aside(self, work: Callable[[], T]) -> T:
        return work()

    async def together(self, *work: Awaitable[T]) -> list[T]:
        return [await each for each in work]
