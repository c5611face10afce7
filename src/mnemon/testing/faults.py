"""A store that fails, stalls and races when told to, for tests of what happens then."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias, TypeVar

from mnemon.hybrid import HybridMemoryService
from mnemon.ports import Dialect, Params, Raced, Row, Store, Transaction, Unit
from mnemon.sql import Query
from mnemon.testing.handles import over, parts_of
from mnemon.testing.triggers import Triggers

T = TypeVar("T")

Method = Literal["write", "read", "fetch", "scrub", "wait"]
Action: TypeAlias = Callable[[], Awaitable[None]]


class _Lost(Exception):
    """The statement is to answer as if it had met no row."""


class FaultyStore:
    """Does what the store behind it does, except where it was told otherwise.

    `calls` counts the calls of each method, and `statements` the statements by the name of their query.
    """

    def __init__(self, store: Store, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """`sleep` is awaited to be late; a blocking store needs one that never suspends."""
        self.calls: Counter[str] = Counter()
        self.statements: Counter[str] = Counter()
        self._store = store
        self._sleep = sleep
        self._before: Triggers[Action] = Triggers()
        self._after: Triggers[Action] = Triggers()
        self._within: Triggers[Action] = Triggers()

    # -- what is to go wrong

    def fail(
        self, method: Method, error: Exception, *, times: int = 1, skip: int = 0, after_effect: bool = False
    ) -> None:
        """Raise `error` at the next `times` calls, once `skip` more have passed.

        With `after_effect` the call is done first, and only its answer is lost: as when a connection
        breaks between the commit and the reply.
        """
        (self._after if after_effect else self._before).add(method, _raiser(error), skip, times)

    def fail_statement(self, name: str, error: Exception, *, times: int = 1, skip: int = 0) -> None:
        """Raise `error` in place of a statement inside a transaction, which is then rolled back.

        A store may run a unit of work again; it then fails again, unless with `Raced`.
        """
        self._within.add(name, _raiser(error), skip, times)

    def race(self, name: str, *, times: int = 1, skip: int = 0) -> None:
        """Let a statement do nothing, as if another writer had been quicker to change its rows."""
        self.fail_statement(name, _Lost(), times=times, skip=skip)

    def delay(self, method: Method, seconds: float, *, times: int = 1, skip: int = 0) -> None:
        """Be late by `seconds` before a call."""

        async def stall() -> None:
            await self._sleep(seconds)

        self._before.add(method, stall, skip, times)

    def interleave(self, method: Method, action: Action, *, skip: int = 0) -> None:
        """Do something else just before the next call: what another process could have done then."""
        self._before.add(method, action, skip, 1)

    def interleave_statement(self, name: str, action: Action, *, skip: int = 0) -> None:
        """Do something else just before a statement inside a transaction, which goes on when that is done.

        What needs a row that the transaction holds must be started and not awaited: it would wait for ever.
        """
        self._within.add(name, action, skip, 1)

    def heal(self) -> None:
        """Forget every fault that has not happened yet."""
        for triggers in (self._before, self._after, self._within):
            triggers.clear()

    # -- the port

    @property
    def dialect(self) -> Dialect:
        return self._store.dialect

    async def write(self, unit: Unit[T]) -> T:
        await self._begin("write")
        result = await self._store.write(self._watched(unit))
        await _fire(self._after, "write")
        return result

    async def read(self, unit: Unit[T], *, long: bool = False) -> T:
        await self._begin("read")
        result = await self._store.read(self._watched(unit), long=long)
        await _fire(self._after, "read")
        return result

    async def fetch(self, query: Query, params: Params) -> list[Row]:
        await self._begin("fetch")
        rows = await self._store.fetch(query, params)
        await _fire(self._after, "fetch")
        return rows

    async def scrub(self, tables: Sequence[str] = ()) -> bool:
        await self._begin("scrub")
        scrubbed = await self._store.scrub(tables)
        await _fire(self._after, "scrub")
        return scrubbed

    async def close(self) -> None:
        await self._store.close()

    def ticket(self) -> int:
        return self._store.ticket()

    def wake(self) -> None:
        self._store.wake()

    async def wait(self, ticket: int, timeout: float) -> None:
        await self._begin("wait")
        await self._store.wait(ticket, timeout)
        await _fire(self._after, "wait")

    async def _begin(self, method: Method) -> None:
        self.calls[method] += 1
        await _fire(self._before, method)

    def _watched(self, unit: Unit[T]) -> Unit[T]:
        failed: dict[str, Exception] = {}

        async def run(tx: Transaction) -> T:
            return await unit(_FaultyTransaction(tx, self._within, self.statements, failed))

        return run


class _FaultyTransaction:
    """A transaction whose statements may be told to fail."""

    def __init__(
        self, tx: Transaction, triggers: Triggers[Action], statements: "Counter[str]", failed: dict[str, Exception]
    ) -> None:
        self._tx = tx
        self._triggers = triggers
        self._statements = statements
        self._failed = failed  # what this call has failed with, by statement

    async def fetch_one(self, query: Query, params: Params) -> Row | None:
        return await self._tx.fetch_one(query, params) if await self._runs(query) else None

    async def fetch_all(self, query: Query, params: Params) -> list[Row]:
        return await self._tx.fetch_all(query, params) if await self._runs(query) else []

    async def fetch_each(self, query: Query, rows: Sequence[Params]) -> list[Row]:
        return await self._tx.fetch_each(query, rows) if await self._runs(query) else []

    async def execute(self, query: Query, params: Params) -> int:
        return await self._tx.execute(query, params) if await self._runs(query) else 0

    async def execute_many(self, query: Query, rows: Sequence[Params]) -> None:
        if await self._runs(query):
            await self._tx.execute_many(query, rows)

    async def _runs(self, query: Query) -> bool:
        self._statements[query.name] += 1
        if query.name in self._failed:
            raise self._failed[query.name]
        try:
            await _fire(self._triggers, query.name)
        except _Lost:
            return False
        except Raced:
            raise
        except Exception as error:
            self._failed[query.name] = error
            raise
        return True


def with_faults(
    memory: HybridMemoryService, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> tuple[HybridMemoryService, FaultyStore]:
    """A handle on the same database whose store can be told to fail; closing is left to `memory`."""
    store = FaultyStore(parts_of(memory).store, sleep)
    return over(memory, store), store


async def _fire(triggers: Triggers[Action], name: str) -> None:
    for action in triggers.due(name):
        await action()


def _raiser(error: Exception) -> Action:
    async def act() -> None:
        raise error

    return act
