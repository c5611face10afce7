"""Many callers at once: as tasks of an event loop, or as threads where coroutines never suspend."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias, TypeVar

from mnemon.coroutines import complete

T = TypeVar("T")

Work: TypeAlias = Callable[[], Coroutine[Any, Any, T]]

_THREADS = 8


class Crowd(Protocol):
    """How a suite does several things at the same time."""

    async def gather(self, works: Iterable[Work[T]]) -> list[T]:
        """Do all of them at once; their results in order."""
        ...

    def meanwhile(self, work: Work[object], delay: float = 0.02) -> AbstractAsyncContextManager[None]:
        """Begin `work` after `delay` seconds, while the body of the context runs; it is done at the end."""
        ...


class TaskCrowd:
    """For a store whose coroutines wait on the event loop."""

    async def gather(self, works: Iterable[Work[T]]) -> list[T]:
        return await asyncio.gather(*(work() for work in works))

    @asynccontextmanager
    async def meanwhile(self, work: Work[object], delay: float = 0.02) -> AsyncGenerator[None]:
        async def later() -> None:
            await asyncio.sleep(delay)
            await work()

        task = asyncio.create_task(later())
        try:
            yield
        finally:
            await task


class ThreadCrowd:
    """For a store whose coroutines hold their thread instead of suspending."""

    async def gather(self, works: Iterable[Work[T]]) -> list[T]:
        with ThreadPoolExecutor(_THREADS) as threads:
            return [done.result() for done in [threads.submit(complete, work()) for work in works]]

    @asynccontextmanager
    async def meanwhile(self, work: Work[object], delay: float = 0.02) -> AsyncGenerator[None]:
        def later() -> None:
            time.sleep(delay)
            complete(work())

        with ThreadPoolExecutor(1) as threads:
            done = threads.submit(later)
            try:
                yield
            finally:
                done.result()
