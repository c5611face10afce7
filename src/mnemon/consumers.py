"""Consumers of the journal: each has a name, a stored position and a lease.

A consumer can be stopped, killed, copied or rewound at any point. Its position moves in the same
transaction as what it did, and only while its lease holds, so that nothing is lost or done twice.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from mnemon.clock import Clock, moment
from mnemon.errors import InvalidInput, LeaseLost, NotFound, StoreError
from mnemon.journal import Journal, match_any
from mnemon.model import Change
from mnemon.namespaces import check_key
from mnemon.ports import Row, Store, Transaction, Unit
from mnemon.sql import load

_SQL = load("journal")
_PATIENCE = 1.0
_LONGEST_STRIDE = 1000  # positions that may be left behind while none of them matters
_LONGEST_REST = 5_000_000  # microseconds until even one is left behind no longer

T = TypeVar("T")

Handler = Callable[[Transaction, Sequence[Change]], Awaitable[None]]
Preparation = Callable[[Sequence[Change]], Awaitable[Unit[object]]]
Delivery = Callable[[Sequence[Change]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """Where a consumer stands, and who is working on it until when."""

    name: str
    position: int
    lease_owner: str | None
    lease_until: datetime
    updated_at: datetime


class _Batch(NamedTuple):
    """The next changes that matter, where they were read from, and up to where there are no others."""

    after: int
    changes: Sequence[Change]
    reached: int


class Consumer:
    """One worker of a named consumer. Any number of workers may run; one at a time has the lease.

    With `entities` it follows only changes of these. Past all others its position moves on with the next
    batch, and now and then by itself, so that it tells how far the consumer has come. `keep_lease=False`
    lets another worker go on after every batch, rather than when the lease runs out.
    """

    def __init__(
        self,
        store: Store,
        journal: Journal,
        clock: Clock,
        name: str,
        *,
        lease: float = 30.0,
        batch: int = 500,
        entities: Sequence[str] | None = None,
        keep_lease: bool = True,
    ) -> None:
        if lease <= 0 or batch < 1:
            raise InvalidInput("a consumer's lease and batch must be above zero")
        if entities is not None and not entities:
            raise InvalidInput("a consumer follows at least one kind of entity; None follows all")
        self.name = check_key("the consumer's name", name, 256)
        self._store = store
        self._journal = journal
        self._clock = clock
        self._lease = int(lease * 1_000_000)
        self._batch = batch
        self._owner = clock.new_id()
        self._wanted = [] if entities is None else match_any(entities)
        self._keeps_lease = keep_lease
        self._owed: _Batch | None = None

    async def process(self, handler: Handler) -> int:
        """Hand the next batch to `handler` and move on, in one transaction: exactly once.

        The handler awaits only its transaction. Returns how many changes were handled; 0 also
        while another worker has the lease. Raises `LeaseLost`, having done nothing, if the lease
        ran out meanwhile.
        """

        async def preparation(changes: Sequence[Change]) -> Unit[object]:
            return lambda tx: _awaited(handler(tx, changes))

        return await self.prepare(preparation)

    async def prepare(self, preparation: Preparation) -> int:
        """Like `process`, for work that must not all be done inside a transaction.

        `preparation` is given the batch and may take its time: read, embed, ask something outside. It
        returns the unit of work, which runs in one transaction with the move of the position. If
        it fails, or the lease is lost meanwhile, nothing has happened, and the batch comes again.
        """
        async with self._leased() as batch:
            if batch is None:
                return 0
            unit = await preparation(batch.changes) if batch.changes else None
            await self._finish(batch, unit)
            return len(batch.changes)

    async def deliver(self, delivery: Delivery) -> int:
        """Hand the next batch to something outside the database, then move on.

        A worker killed between the two delivers the batch again, so the delivery must be idempotent.

        A worker may be so slow that another takes over before its delivery arrives, and what it
        delivers could be older than what is there by then. So it looks whether the lease is still its own
        right before the delivery, and once it has lost the lease, or a delivery has failed, it delivers
        the same changes again, now or at the next call. A delivery that reads afresh what it
        delivers, as it should, then leaves the newest there.
        """
        async with self._leased() as batch:
            if self._owed and (batch is None or batch.after != self._owed.after):
                await self._deliver_again(delivery)
            if batch is None:
                return 0
            if batch.changes:
                await self._confirm()
                self._owed = batch
                await delivery(batch.changes)
            try:
                await self._finish(batch, None)
            except LeaseLost:
                await self._deliver_again(delivery)
                raise
            self._owed = None
            return len(batch.changes)

    async def run(self, handler: Handler) -> None:
        """Process everything there is and everything that comes, until cancelled."""
        while True:
            ticket = self._store.ticket()
            with suppress(LeaseLost):  # somebody else did that batch, or will
                if await self.has_work() and await self.process(handler):
                    continue
            await self._store.wait(ticket, _PATIENCE)

    async def status(self) -> ConsumerStatus:
        """Where the consumer stands; `NotFound` before its first batch."""
        rows = await self._store.fetch(_SQL["get_consumer"], {"name": self.name})
        if not rows:
            raise NotFound(f"no consumer {self.name!r} has run yet")
        return _status(rows[0])

    async def rewind(self, position: int = 0) -> None:
        """Start again after `position`; a worker that is in a batch loses its lease."""
        if position < 0:
            raise InvalidInput(f"a journal position is a whole number from 0, not {position!r}")
        params = {"name": self.name, "position": position, "now": self._clock.now()}

        async def unit(tx: Transaction) -> None:
            await tx.execute(_SQL["ensure_consumer"], params)
            await tx.execute(_SQL["rewind_consumer"], params)

        await self._store.write(unit)

    async def release(self) -> None:
        """Let another worker go on at once, rather than when the lease runs out."""
        params = {"name": self.name, "owner": self._owner, "now": self._clock.now()}
        await self._store.write(lambda tx: tx.execute(_SQL["release_lease"], params))

    async def has_work(self) -> bool:
        """Whether there is something to do that no other worker is at.

        Taking the lease to find out would be a commit that wakes every follower.
        """
        if self._owed:
            return True
        now = self._clock.now()
        rows = await self._store.fetch(_SQL["get_consumer"], {"name": self.name})
        _, position, owner, until, updated = rows[0] if rows else (self.name, 0, None, 0, now)
        if owner not in (None, self._owner) and until >= now:
            return False
        if await self._journal.read(position, 1, self._wanted):
            return True
        behind = await self._journal.position() - position if self._wanted else 0
        return behind >= _LONGEST_STRIDE or (behind > 0 and now - updated >= _LONGEST_REST)

    async def has_reached(self, position: int) -> bool:
        """Whether every change up to a position that matters to this consumer was handled."""
        rows = await self._store.fetch(_SQL["get_consumer"], {"name": self.name})
        stands = rows[0][1] if rows else 0
        if stands >= position:
            return True
        following = await self._journal.read(stands, 1, self._wanted)
        return not following or following[0].position > position

    @asynccontextmanager
    async def _leased(self) -> AsyncGenerator["_Batch | None"]:
        """The next batch, with the lease; None if another worker has that, or if there is nothing."""
        taken = await self._take()
        if taken is None:
            yield None
            return
        try:
            batch = await self._read(taken)
            yield batch
        except (Exception, KeyboardInterrupt):  # after Ctrl-C too, another may go on at once
            await self._let_go()
            raise
        if batch is None:
            await self._let_go()

    async def _read(self, taken: int) -> "_Batch | None":
        reached = await self._journal.position() if self._wanted else taken
        changes = await self._journal.read(taken, self._batch, self._wanted)
        if len(changes) == self._batch:
            reached = changes[-1].position
        elif changes:
            reached = max(reached, changes[-1].position)
        return _Batch(taken, changes, reached) if reached > taken else None

    async def _let_go(self) -> None:
        """Release the lease if it is not to be kept between batches; else, or if that fails, it runs out."""
        if not self._keeps_lease:
            with suppress(StoreError):
                await self.release()

    async def _confirm(self) -> None:
        """Raise `LeaseLost` unless this worker has the lease and it has not run out."""
        rows = await self._store.fetch(_SQL["get_consumer"], {"name": self.name})
        if not rows or rows[0][2] != self._owner or rows[0][3] < self._clock.now():
            raise self._lost()

    async def _finish(self, batch: _Batch, unit: Unit[object] | None) -> None:
        async def both(tx: Transaction) -> None:
            await self._advance(tx, batch.after, batch.reached)
            if unit is not None:
                await unit(tx)

        await self._store.write(both)

    async def _deliver_again(self, delivery: Delivery) -> None:
        if self._owed:
            await delivery(self._owed.changes)
            self._owed = None

    async def _take(self) -> int | None:
        now = self._clock.now()
        params = {"name": self.name, "owner": self._owner, "now": now, "until": now + self._lease, "position": 0}

        async def unit(tx: Transaction) -> int | None:
            await tx.execute(_SQL["ensure_consumer"], params)
            row = await tx.fetch_one(_SQL["take_lease"], params)
            return row[0] if row else None

        return await self._store.write(unit)

    async def _advance(self, tx: Transaction, was: int, position: int) -> None:
        now = self._clock.now()
        keeper, until = (self._owner, now + self._lease) if self._keeps_lease else (None, 0)
        params = {
            "name": self.name, "owner": self._owner, "was": was,
            "position": position, "keeper": keeper, "until": until, "now": now,
        }  # fmt: skip
        if not await tx.execute(_SQL["advance_consumer"], params):
            raise self._lost()

    def _lost(self) -> LeaseLost:
        return LeaseLost(f"another worker has taken over the consumer {self.name!r}; this batch was rolled back")


class PassingConsumer(Consumer):
    """One that is not needed for ever."""

    async def hold(self) -> None:
        """Keep the lease for its whole time from now on; `LeaseLost` if another worker has it."""
        if await self._take() is None:
            raise self._lost()

    async def alone(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """Do something while no other worker does; None if one does. Whatever comes of it, be forgotten then."""
        if await self._take() is None:
            return None
        try:
            return await work()
        finally:
            with suppress(StoreError):  # then the lease runs out
                params = {"name": self.name, "owner": self._owner}
                await self._store.write(lambda tx: tx.execute(_SQL["end_consumer"], params))

    async def end(self, last: Callable[[], Awaitable[object]]) -> bool:
        """Do what comes last, and be forgotten; False, having done nothing, while another worker has the lease.

        `LeaseLost` if the lease ran out meanwhile: another worker has done it again then, or will.
        """
        if await self._take() is None:
            return False
        try:
            await last()
        except Exception:
            await self.release()
            raise
        params = {"name": self.name, "owner": self._owner}
        if not await self._store.write(lambda tx: tx.execute(_SQL["end_consumer"], params)):
            raise self._lost()
        return True


async def _awaited(work: Awaitable[object]) -> None:
    await work


async def list_consumers(store: Store) -> list[ConsumerStatus]:
    """Every consumer that has run, by name."""
    return [_status(row) for row in await store.fetch(_SQL["list_consumers"], {})]


def _status(row: Row) -> ConsumerStatus:
    name, position, owner, until, updated = row
    return ConsumerStatus(name, position, owner, moment(until), moment(updated))
