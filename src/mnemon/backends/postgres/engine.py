"""Connections of both colours behind one interface, so that what uses them is written once.

The blocking half never suspends: `mnemon.coroutines.complete` can drive what awaits it.
"""

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

from psycopg import AsyncConnection, Connection, DataError
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from mnemon.backends.postgres.connection import Location
from mnemon.backends.postgres.statements import grouped, translate
from mnemon.ports import Params, Row
from mnemon.sql import Query

AnyConnection: TypeAlias = AsyncConnection[TupleRow] | Connection[TupleRow]
C = TypeVar("C", bound=AnyConnection)

_NOTHING: Params = {}


class Link(Protocol):
    """A borrowed connection."""

    @property
    def connection(self) -> AnyConnection: ...

    async def run(self, statement: bytes, params: Params = _NOTHING) -> tuple[list[Row], int]:
        """Run a statement; the rows of its answer, and how many rows it found or changed."""
        ...


L = TypeVar("L", bound=Link)


class Connections(Protocol[L]):
    """A pool of connections."""

    async def borrow(self) -> L: ...
    async def give_back(self, link: L) -> None: ...
    async def replace_broken(self) -> None:
        """Look at every idle connection, and open another for each that was lost."""
        ...

    async def pause(self, seconds: float) -> None: ...
    async def close(self) -> None: ...


class PostgresTransaction:
    """Statements on one connection."""

    __slots__ = ("_link",)

    def __init__(self, link: Link) -> None:
        self._link = link

    async def fetch_one(self, query: Query, params: Params) -> Row | None:
        rows, _ = await self._link.run(translate(query.text), params)
        return rows[0] if rows else None

    async def fetch_all(self, query: Query, params: Params) -> list[Row]:
        rows, _ = await self._link.run(translate(query.text), params)
        return rows

    async def fetch_each(self, query: Query, rows: Sequence[Params]) -> list[Row]:
        found: list[Row] = []
        for statement, params in grouped(query.text, rows):
            found += (await self._link.run(statement, params))[0]
        return found

    async def execute(self, query: Query, params: Params) -> int:
        return (await self._link.run(translate(query.text), params))[1]

    async def execute_many(self, query: Query, rows: Sequence[Params]) -> None:
        for statement, params in grouped(query.text, rows):
            await self._link.run(statement, params)


class _Borrowed(Generic[C]):
    __slots__ = ("connection",)

    def __init__(self, connection: C) -> None:
        self.connection: C = connection


class AsyncLink(_Borrowed[AsyncConnection[TupleRow]]):
    """A connection for an event loop."""

    async def run(self, statement: bytes, params: Params = _NOTHING) -> tuple[list[Row], int]:
        try:
            cursor = await self.connection.execute(statement, params)
        except UnicodeEncodeError as error:  # text that is not Unicode, found before anything was sent
            raise DataError(str(error)) from error
        return await cursor.fetchall() if cursor.rownumber is not None else [], cursor.rowcount


class BlockingLink(_Borrowed[Connection[TupleRow]]):
    """A connection for a thread that may block."""

    async def run(self, statement: bytes, params: Params = _NOTHING) -> tuple[list[Row], int]:
        try:
            cursor = self.connection.execute(statement, params)
        except UnicodeEncodeError as error:  # text that is not Unicode, found before anything was sent
            raise DataError(str(error)) from error
        return cursor.fetchall() if cursor.rownumber is not None else [], cursor.rowcount


class AsyncConnections:
    """A pool that belongs to one event loop."""

    def __init__(self, location: Location, size: int, timeout: float) -> None:
        self._pool: AsyncConnectionPool[AsyncConnection[TupleRow]] = AsyncConnectionPool(
            location.conninfo, kwargs=location.options, min_size=1, max_size=size, timeout=timeout, open=False
        )

    async def open(self) -> None:
        await self._pool.open()

    async def borrow(self) -> AsyncLink:
        return AsyncLink(await self._pool.getconn())

    async def give_back(self, link: AsyncLink) -> None:
        await self._pool.putconn(link.connection)

    async def replace_broken(self) -> None:
        await self._pool.check()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        await self._pool.close()


class BlockingConnections:
    """A pool for threads, which connects when it is first needed."""

    def __init__(self, location: Location, size: int, timeout: float) -> None:
        self._pool: ConnectionPool[Connection[TupleRow]] = ConnectionPool(
            location.conninfo, kwargs=location.options, min_size=1, max_size=size, timeout=timeout, open=False,
            num_workers=min(size, 3),
        )  # fmt: skip
        self._opening = threading.Lock()
        self._opened = False

    async def borrow(self) -> BlockingLink:
        if not self._opened:
            with self._opening:
                if not self._opened:
                    self._pool.open()
                    self._opened = True
        return BlockingLink(self._pool.getconn())

    async def give_back(self, link: BlockingLink) -> None:
        self._pool.putconn(link.connection)

    async def replace_broken(self) -> None:
        self._pool.check()

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - blocking is what this colour is for

    async def close(self) -> None:
        with self._opening:
            self._pool.close()
            self._opened = True  # so that the pool refuses, instead of being opened
