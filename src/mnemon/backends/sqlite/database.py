"""The two faces of a SQLite database: for an event loop, and for threads that may block."""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from mnemon.backends.sqlite.dialect import SqliteDialect
from mnemon.backends.sqlite.engine import Engine, Outcome
from mnemon.backends.sqlite.follower import Lookout
from mnemon.errors import StoreClosed
from mnemon.ports import Params, Row, Unit
from mnemon.settings import Settings
from mnemon.sql import Query

T = TypeVar("T")

_LONGEST_TURN = 0.005  # seconds that a task may keep the loop to itself
_LARGEST_GROUP = 64


class BlockingSqlite:
    """Runs everything on the caller's own thread; its coroutines never suspend."""

    dialect = SqliteDialect()

    def __init__(self, engine: Engine, lookout: Lookout) -> None:
        self._engine = engine
        self._lookout = lookout

    async def write(self, unit: Unit[T]) -> T:
        return self._engine.write(unit)

    async def read(self, unit: Unit[T], *, long: bool = False) -> T:
        return self._engine.read(unit)

    async def fetch(self, query: Query, params: Params) -> list[Row]:
        return self._engine.fetch(query, params)

    async def scrub(self, tables: Sequence[str] = ()) -> bool:
        return self._engine.scrub(whole=bool(tables))

    async def close(self) -> None:
        self._lookout.stop()
        self._engine.close()

    def ticket(self) -> int:
        return self._engine.commits.ticket()

    def wake(self) -> None:
        self._engine.commits.notify()

    async def wait(self, ticket: int, timeout: float) -> None:
        self._lookout.start()
        self._engine.commits.block(ticket, timeout)


class AsyncSqlite:
    """Never lets an event loop wait for a disk or a lock.

    With `synchronous=normal` a commit waits for neither, so the loop's own thread is the quickest
    place for it: a task that writes alone does so at once, and the writes of several tasks are
    gathered for one turn of the loop and committed as a group. With `synchronous=full`, or while
    another process has the lock, a writer thread commits all that are waiting.
    """

    dialect = SqliteDialect()

    def __init__(self, engine: Engine, settings: Settings, lookout: Lookout) -> None:
        self._engine = engine
        self._lookout = lookout
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="mnemon-reader")
        self._writer = _Writer(engine)
        self._turn: _Turn | None = None
        self._reading_since: float | None = None
        self._waits_for_disk = settings.synchronous == "full" and engine.location.path is not None

    async def write(self, unit: Unit[T]) -> T:
        loop = asyncio.get_running_loop()
        if self._turn is None:
            self._turn = _Turn(self._engine, self._writer, loop)
        if self._waits_for_disk or self._turn.loop is not loop or not self._writer.idle:
            return await self._writer.submit(_Job(unit, loop))
        if not self._turn.is_alone():
            return await self._turn.gather(_Job(unit, loop))
        done, result = self._engine.try_write(unit)
        if not done:
            return await self._writer.submit(_Job(unit, loop))
        if self._turn.is_long():
            await asyncio.sleep(0)
        return result  # pyright: ignore[reportReturnType]

    async def read(self, unit: Unit[T], *, long: bool = False) -> T:
        if not long:
            result = self._engine.read(unit)
            if self._has_read_long():
                await asyncio.sleep(0)
            return result
        try:
            reading = asyncio.get_running_loop().run_in_executor(self._readers, self._engine.read, unit)
        except RuntimeError as error:  # the pool takes nothing more
            raise StoreClosed(f"{self._engine.location} was closed") from error
        return await reading

    async def fetch(self, query: Query, params: Params) -> list[Row]:
        rows = self._engine.fetch(query, params)
        if self._has_read_long():
            await asyncio.sleep(0)
        return rows

    def _has_read_long(self) -> bool:
        """Whether reading piece after piece has kept the loop from a turn for long enough."""
        now = time.monotonic()
        if self._reading_since is None:
            self._reading_since = now
            asyncio.get_running_loop().call_soon(self._end_reading)
        elif now - self._reading_since > _LONGEST_TURN:
            self._end_reading()
            return True
        return False

    def _end_reading(self) -> None:
        self._reading_since = None

    async def scrub(self, tables: Sequence[str] = ()) -> bool:
        return await asyncio.to_thread(lambda: self._engine.scrub(whole=bool(tables)))

    async def close(self) -> None:
        if self._turn is not None and self._turn.loop is asyncio.get_running_loop():
            self._turn.finish()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.stop()
        self._readers.shutdown()
        self._lookout.stop()
        self._engine.close()

    def ticket(self) -> int:
        return self._engine.commits.ticket()

    def wake(self) -> None:
        self._engine.commits.notify()

    async def wait(self, ticket: int, timeout: float) -> None:
        self._lookout.start()
        await self._engine.commits.wait(ticket, timeout)


class _Job:
    """A unit of work that waits its turn, and the future that its caller awaits."""

    __slots__ = ("future", "loop", "unit")

    def __init__(self, unit: Unit[Any], loop: asyncio.AbstractEventLoop) -> None:
        self.unit = unit
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()


class _Turn:
    """One turn of the event loop: who wrote in it, and which writes wait for its end.

    A task that only writes never gives the loop a turn, so the second writer of a turn is how
    one notices that there are several. From then on their writes are gathered, until a group
    turns out to have one member only.
    """

    def __init__(self, engine: Engine, writer: "_Writer", loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._engine = engine
        self._writer = writer
        self._task: asyncio.Task[Any] | None = None
        self._began = 0.0
        self._gathering = False
        self._gathered: list[_Job] = []

    def is_alone(self) -> bool:
        """Whether no other task has written in this turn, or was gathered of late."""
        task = asyncio.current_task()
        if self._task is None:
            self._task = task
            self._began = time.monotonic()
            self.loop.call_soon(self._end)
        elif self._task is not task:
            self._gathering = True
        return not self._gathering

    def is_long(self) -> bool:
        """Whether the loop has waited long enough for this turn to end."""
        return time.monotonic() - self._began > _LONGEST_TURN

    def gather(self, job: _Job) -> "asyncio.Future[Any]":
        if not self._gathered:
            self.loop.call_soon(self._commit)
        self._gathered.append(job)
        return job.future

    def finish(self) -> None:
        """Commit what was gathered now, without waiting for the turn to end."""
        while self._gathered:
            self._commit()

    def _end(self) -> None:
        self._task = None

    def _commit(self) -> None:
        if not self._gathered:
            return
        jobs, self._gathered = self._gathered[:_LARGEST_GROUP], self._gathered[_LARGEST_GROUP:]
        if self._gathered:
            self.loop.call_soon(self._commit)
        self._gathering = len(jobs) > 1
        outcomes = self._engine.try_write_group([job.unit for job in jobs])
        if outcomes is None:
            self._writer.put(jobs)
        else:
            _settle([(job.future, outcome) for job, outcome in zip(jobs, outcomes, strict=True)])


class _Writer:
    """The thread that commits waiting units of work in groups; begins with the first of them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[_Job] = []
        self._arrival = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._stopped = False

    @property
    def idle(self) -> bool:
        return not self._busy and not self._waiting

    def submit(self, job: _Job) -> "asyncio.Future[Any]":
        self.put([job])
        return job.future

    def put(self, jobs: list[_Job]) -> None:
        """Have the jobs done, in this order and after those that wait already."""
        with self._arrival:
            if self._stopped:
                closed = StoreClosed(f"{self._engine.location} was closed")
                _settle([(job.future, Outcome(error=closed)) for job in jobs])
                return
            self._waiting += jobs
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mnemon-writer", daemon=True)
                self._thread.start()
            self._arrival.notify()

    def stop(self) -> None:
        """Finish what was submitted, then end the thread."""
        with self._arrival:
            self._stopped = True
            self._arrival.notify()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        while jobs := self._next_group():
            outcomes = self._engine.write_group([job.unit for job in jobs])
            for loop in {job.loop for job in jobs}:
                settled = [(job.future, o) for job, o in zip(jobs, outcomes, strict=True) if job.loop is loop]
                with suppress(RuntimeError):  # a loop that was closed has nobody left who waits
                    loop.call_soon_threadsafe(_settle, settled)

    def _next_group(self) -> list[_Job]:
        """All that is waiting, once there is something; nothing once the thread is to end."""
        with self._arrival:
            self._busy = False
            self._arrival.wait_for(lambda: self._waiting or self._stopped)
            jobs, self._waiting = self._waiting, []
            self._busy = bool(jobs)
            return jobs


def _settle(settled: "list[tuple[asyncio.Future[Any], Outcome]]") -> None:
    for future, outcome in settled:
        if future.done():  # its caller was cancelled
            continue
        if outcome.error is not None:
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome.result)
