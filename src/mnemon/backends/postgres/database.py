"""The two faces of a PostgreSQL database: for an event loop, and for threads that may block."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Generic, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.pq import TransactionStatus

from mnemon.backends.postgres.connection import Location, mapped_errors
from mnemon.backends.postgres.dialect import PostgresDialect
from mnemon.backends.postgres.engine import AsyncLink, BlockingLink, Connections, L, PostgresTransaction
from mnemon.backends.postgres.follower import Followers
from mnemon.backends.postgres.statements import translate
from mnemon.coroutines import complete
from mnemon.errors import StoreBusy, StoreClosed, StoreError, StoreUnavailable
from mnemon.ports import Params, Raced, Row, Unit
from mnemon.sql import Query

T = TypeVar("T")

_BEGIN_WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PATIENCE = 30.0  # seconds for which a unit of work is tried again while others are quicker
_LONGEST_PAUSE = 0.1

_SCRUB_PATIENCE = 5.0  # seconds to wait for others before the table is written anew
_MOST_VECTOR_BYTES = 8 * 2**20  # of which an index can be made anew in a few seconds
_FEW_VECTORS = b"SELECT pg_relation_size('memory_vectors') <= %(most)s"
_MARK = b"SELECT pg_snapshot_xmax(pg_current_snapshot())::xid::text"
_OLDER_SNAPSHOTS = b"""
    SELECT COUNT(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND age(backend_xmin) > age(%(mark)s::xid)
"""


class _Postgres(Generic[L]):
    """What both faces do, given connections of their colour."""

    dialect = PostgresDialect()

    def __init__(
        self,
        location: Location,
        connections: Connections[L],
        followers: Followers,
        upkeep: "BlockingPostgres | None" = None,
    ) -> None:
        self._location = location
        self._connections = connections
        self._followers = followers
        self._upkeep = upkeep
        self._closed = False
        self._running: set[object] = set()

    async def write(self, unit: Unit[T]) -> T:
        with self._accepted():
            return await self._write(unit)

    async def _write(self, unit: Unit[T]) -> T:
        started, pause = time.monotonic(), 0.001
        while True:
            try:
                result = await self._write_once(unit)
            except Raced as race:
                if time.monotonic() - started > _PATIENCE:
                    raise StoreBusy(
                        f"{self._location}: other writers were quicker for {_PATIENCE:.0f} s; nothing of this "
                        "write was kept: try again with fewer writers on the same rows"
                    ) from race
            else:
                self._followers.wake()
                return result
            await self._connections.pause(random.uniform(0.2, 1.0) * pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def _write_once(self, unit: Unit[T]) -> T:
        try:
            async with self._transaction(_BEGIN_WRITE) as tx:
                return await unit(tx)
        except (pg.SerializationFailure, pg.DeadlockDetected) as error:
            raise Raced from error

    async def read(self, unit: Unit[T], *, long: bool = False) -> T:
        with self._accepted():
            async with self._transaction(_BEGIN_READ) as tx:
                return await unit(tx)

    async def fetch(self, query: Query, params: Params) -> list[Row]:
        with self._accepted():
            link, rows = await self._start(translate(query.text), params)
            await self._connections.give_back(link)
            return rows

    async def scrub(self, tables: Sequence[str] = ()) -> bool:
        """Write the tables anew: a plain VACUUM leaves the bytes of dead rows in the free space of their pages.

        What a transaction that began before can still see would be kept, so those have to end first.
        The write-ahead log, its archives, replicas and backups are beyond its reach. So are many vectors: to make
        their index anew would stop everybody for minutes. They are taken out of it, and the answer is no.
        """
        with self._accepted():
            link, [(mark,)] = await self._start(_MARK, {})
            try:
                return await self._outlive_snapshots(link, mark) and await self._rewrite(link, tables)
            finally:
                await self._connections.give_back(link)

    async def _outlive_snapshots(self, link: L, mark: str) -> bool:
        deadline = time.monotonic() + _SCRUB_PATIENCE
        while (await link.run(_OLDER_SNAPSHOTS, {"mark": mark}))[0] != [(0,)]:
            if time.monotonic() >= deadline:
                return False
            await self._connections.pause(0.02)
        return True

    async def _rewrite(self, link: L, tables: Sequence[str]) -> bool:
        await link.run(f"SET lock_timeout = '{_SCRUB_PATIENCE}s'".encode())
        written = dict.fromkeys(["memory_entries", "memory_texts", "embedding_cache", *tables])
        try:
            await link.run(f"VACUUM FULL {', '.join(written)}".encode())
            [(few,)], _ = await link.run(_FEW_VECTORS, {"most": _MOST_VECTOR_BYTES})
            await link.run(b"VACUUM FULL memory_vectors" if few else b"VACUUM (INDEX_CLEANUP ON) memory_vectors")
        except pg.LockNotAvailable:
            return False
        finally:
            await link.run(b"RESET lock_timeout")
        return few

    @contextmanager
    def _accepted(self) -> Generator[None]:
        """While something is done that closing has to wait for."""
        if self._closed:
            raise StoreClosed(f"{self._location} was closed")
        self._running.add(call := object())
        try:
            with mapped_errors(self._location):
                yield
        finally:
            self._running.discard(call)

    async def _close_connections(self) -> None:
        """Refuse what comes now, and finish what came before."""
        self._closed = True
        while self._running:
            await self._connections.pause(0.001)
        await self._connections.close()

    def ticket(self) -> int:
        return self._followers.commits.ticket()

    def wake(self) -> None:
        self._followers.commits.notify()

    @asynccontextmanager
    async def _transaction(self, begin: bytes) -> AsyncGenerator[PostgresTransaction]:
        link, _ = await self._start(begin, {})
        try:
            yield PostgresTransaction(link)
            await self._commit(link)
        except BaseException:
            with suppress(psycopg.Error):
                await link.run(b"ROLLBACK")
            raise
        finally:
            await self._connections.give_back(link)

    async def _commit(self, link: L) -> None:
        if link.connection.info.transaction_status == TransactionStatus.INERROR:
            raise StoreError(f"{self._location}: the unit of work went on after a statement of it had failed")
        try:
            await link.run(b"COMMIT")
        except psycopg.OperationalError as error:
            if link.connection.closed:
                raise StoreUnavailable(
                    f"{self._location}: the connection was lost during the commit, so it is not known whether "
                    "the write was kept: look before you repeat it"
                ) from error
            raise

    async def _start(self, statement: bytes, params: Params) -> tuple[L, list[Row]]:
        """Run a first statement on a connection; on another one if that turns out to be lost."""
        try:
            return await self._try_start(statement, params)
        except _LostIdle:
            await self._connections.replace_broken()
            return await self._try_start(statement, params)

    async def _try_start(self, statement: bytes, params: Params) -> tuple[L, list[Row]]:
        link = await self._connections.borrow()
        try:
            rows, _ = await link.run(statement, params)
        except BaseException as error:
            lost = link.connection.closed
            await self._connections.give_back(link)
            if lost and isinstance(error, psycopg.OperationalError):
                raise _LostIdle(str(error)) from error
            raise
        return link, rows


class _LostIdle(psycopg.OperationalError):
    """The connection was lost while nobody used it, so that nothing was begun on it."""


class AsyncPostgres(_Postgres[AsyncLink]):
    """For one event loop, which never waits for the server."""

    async def wait(self, ticket: int, timeout: float) -> None:
        self._followers.listen()
        await self._followers.commits.wait(ticket, timeout)

    async def close(self) -> None:
        await self._close_connections()
        await asyncio.to_thread(self._close_upkeep)

    def _close_upkeep(self) -> None:
        if self._upkeep:
            complete(self._upkeep.close())
        self._followers.stop()


class BlockingPostgres(_Postgres[BlockingLink]):
    """For threads that may block; its coroutines never suspend."""

    async def wait(self, ticket: int, timeout: float) -> None:
        self._followers.listen()
        self._followers.commits.block(ticket, timeout)

    async def close(self) -> None:
        await self._close_connections()
        if self._upkeep:
            await self._upkeep.close()
        self._followers.stop()
