"""Consumers of the journal: each has a name, a stored position and a lease.

A consumer can be stopped, killed, copied or rewound at any point. Its position moves in the same
transaction as what it did, and only while its lease holds, so that nothing is lost or done twice.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from mnemon.clock import Clock, moment
from mnemon.errors import InvalidInput, LeaseLost, NotFound
from mnemon.journal import Journal
from mnemon.model import Change
from mnemon.namespaces import check_key
from mnemon.ports import Row, Store, Transaction
from mnemon.sql import load

_SQL = load("journal")
_PATIENCE = 1.0

Handler = Callable[[Transaction, Sequence[Change]], Awaitable[None]]
Delivery = Callable[[Sequence[Change]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """Where a consumer stands, and who is working on it until when."""

    name: str
    position: int
    lease_owner: str | None
    lease_until: datetime
    updated_at: datetime


class Consumer:
    """One worker of a named consumer. Any number of workers may run; one at a time has the lease."""

    def __init__(
        self, store: Store, journal: Journal, clock: Clock, name: str, *, lease: float = 30.0, batch: int = 500
    ) -> None:
        if lease <= 0 or batch < 1:
            raise InvalidInput("a consumer's lease and batch must be above zero")
        self.name = check_key("the consumer's name", name, 256)
        self._store = store
        self._journal = journal
        self._clock = clock
        self._lease = int(lease * 1_000_000)
        self._batch = batch
        self._owner = clock.new_id()

    async def process(self, handler: Handler) -> int:
        """Hand the next batch to `handler` and move on, in one transaction: exactly once.

        The handler awaits only its transaction. Returns how many changes were handled; 0 also
        while another worker has the lease. Raises `LeaseLost`, having done nothing, if the lease
        ran out meanwhile.
        """
        taken = await self._take()
        if taken is None:
            return 0
        batch = await self._journal.read(taken, self._batch)
        if batch:

            async def unit(tx: Transaction) -> None:
                await self._advance(tx, taken, batch[-1].position)
                await handler(tx, batch)

            await self._store.write(unit)
        return len(batch)

    async def deliver(self, delivery: Delivery) -> int:
        """Hand the next batch to something outside the database, then move on.

        A worker killed between the two delivers the batch again, so the delivery must be idempotent.
        """
        taken = await self._take()
        if taken is None:
            return 0
        batch = await self._journal.read(taken, self._batch)
        if batch:
            await delivery(batch)
            await self._store.write(lambda tx: self._advance(tx, taken, batch[-1].position))
        return len(batch)

    async def run(self, handler: Handler) -> None:
        """Process everything there is and everything that comes, until cancelled."""
        while True:
            ticket = self._store.ticket()
            with suppress(LeaseLost):  # somebody else did that batch, or will
                if await self._has_work() and await self.process(handler):
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

    async def _has_work(self) -> bool:
        """Whether to take the lease: doing so for nothing would be a commit that wakes every follower."""
        rows = await self._store.fetch(_SQL["get_consumer"], {"name": self.name})
        if not rows:
            return True
        _, position, owner, until, _ = rows[0]
        if owner not in (None, self._owner) and until >= self._clock.now():
            return False
        return bool(await self._journal.read(position, 1))

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
        params = {
            "name": self.name, "owner": self._owner, "was": was,
            "position": position, "until": now + self._lease, "now": now,
        }  # fmt: skip
        if not await tx.execute(_SQL["advance_consumer"], params):
            raise LeaseLost(f"another worker has taken over the consumer {self.name!r}; this batch was rolled back")


async def list_consumers(store: Store) -> list[ConsumerStatus]:
    """Every consumer that has run, by name."""
    return [_status(row) for row in await store.fetch(_SQL["list_consumers"], {})]


def _status(row: Row) -> ConsumerStatus:
    name, position, owner, until, updated = row
    return ConsumerStatus(name, position, owner, moment(until), moment(updated))
