"""Vector stores outside the database, each fed by a consumer of the journal.

A store holds the current, live memories that have a vector in its space. For every memory that changed, what the
database says now is stored, or what is no longer there is deleted. It is read afresh each time, and looked at once more
after it was stored, so that the newest stays, whoever was late.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from mnemon.breaker import Breaker
from mnemon.clock import Clock
from mnemon.consumers import PassingConsumer
from mnemon.encryption.envelope import is_sealed
from mnemon.errors import LeaseLost, NotFound
from mnemon.facts import facts_of
from mnemon.indexing.duties import BATCH, LEASE, Duty, at_places
from mnemon.journal import Journal
from mnemon.model import Change, Space
from mnemon.ports import Indexes, Runner, Store, VectorMemory, VectorRecord
from mnemon.sql import chunks, load
from mnemon.values import decode

_LOG = logging.getLogger("mnemon.indexing")
_SQL = load("indexing")
_RECORDS = "b6f1d7f0-3c0e-5d5a-9a43-2f4c1b7e8d10"
_TURNS = 10

Place = tuple[str, str]
"""A memory's namespace and key."""


def record_id(namespace: str, key: str) -> str:
    """The id of a memory in every vector store; a namespace holds no NUL character."""
    from uuid import UUID, uuid5  # noqa: PLC0415 - slow to import, and only needed where there is such a store

    return str(uuid5(UUID(_RECORDS), f"{namespace}\0{key}"))


class Outside:
    """A vector store outside the database, and how it has been doing. Any thread may use it."""

    def __init__(
        self, name: str, open_store: Callable[[Space], VectorMemory], clock: Clock, location: str = "outside"
    ) -> None:
        """`open_store` reaches nowhere yet: the store is connected to when it is first used."""
        self.name = name
        self.location = location
        self.breaker = Breaker(clock)
        self._open = open_store
        self._opened: dict[int, VectorMemory] = {}
        self._opening = threading.Lock()

    def of(self, space: Space) -> VectorMemory:
        """The store, open for a space."""
        with self._opening:
            if space.id not in self._opened:
                self._opened[space.id] = self._open(space)
            return self._opened[space.id]

    def consumer_name(self, space: Space) -> str:
        """The name of the consumer that feeds it for a space."""
        return f"store:{self.name}:{space.id}"

    def close(self) -> None:
        """Let go of every connection; idempotent."""
        with self._opening:
            while self._opened:
                self._opened.popitem()[1].close()


class Live(NamedTuple):
    """A live memory, as much of it as a record needs."""

    id: int
    namespace: str
    key: str
    version: int
    memory_type: str
    metadata: str
    trust: float

    @property
    def place(self) -> Place:
        return self.namespace, self.key


class StoreIndex:
    """One store for one space, kept in step with the database."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        clock: Clock,
        indexes: Callable[[], Indexes],
        runner: Runner,
        outside: Outside,
        space: Space,
    ) -> None:
        self.outside = outside
        self.space = space
        self.consumer = PassingConsumer(
            store, journal, clock, outside.consumer_name(space),
            entities=("memory",), batch=BATCH, lease=LEASE, keep_lease=False,
        )  # fmt: skip
        self._store = store
        self._indexes = indexes
        self._runner = runner
        self._is_known = False

    @property
    def duty(self) -> Duty:
        return Duty(self.consumer, self._step, self.outside.name)

    async def position(self) -> int:
        """Up to where in the journal the store has been fed."""
        try:
            return (await self.consumer.status()).position
        except NotFound:
            return 0

    async def _step(self) -> int:
        """Feed the store with the next batch."""
        try:
            if not self._is_known:
                await self._begin_again_if_empty()
            done = await self.consumer.deliver(self._deliver)
        except LeaseLost:
            raise
        except Exception:
            self._is_known = False  # whatever happened to it, it may have lost what it had
            self.outside.breaker.failed()
            raise
        self._is_known = True
        self.outside.breaker.succeeded()
        return done

    async def _begin_again_if_empty(self) -> None:
        """A store that has nothing, though it was fed, has lost everything: it is fed from the beginning."""
        description = await self._runner.aside(lambda: self.outside.of(self.space).describe())
        params = {"space_id": self.space.id, "after": 0, "limit": 1}
        if not description.vectors and await self.position() and await self._store.fetch(_SQL["live_after"], params):
            _LOG.warning("%s holds nothing, though it has been fed before: it is filled again", self.outside.name)
            await self.consumer.rewind()

    async def _deliver(self, changes: Sequence[Change]) -> None:
        wanted = [change for change in changes if change.payload.get("space", self.space.id) == self.space.id]
        await self.bring(list(dict.fromkeys((change.namespace or "", change.entity_id) for change in wanted)))

    async def bring(self, places: Sequence[Place]) -> None:
        """Make the store say of some memories what the database says.

        If the database says something else by the time that the store has it, then once more: the last to
        store something has looked, after that, whether it was the newest.
        """
        for _ in range(_TURNS if places else 0):
            live = await self.live(places)
            records = await self._records(live)
            gone = [record_id(*place) for place in places if place not in records]
            await self._runner.aside(partial(self._put, list(records.values()), gone))
            before = {one.place: one.id for one in live}
            after = {one.place: one.id for one in await self.live(places)}
            places = [place for place in places if before.get(place) != after.get(place)]
            if not places:
                return

    def _put(self, records: Sequence[VectorRecord], gone: Sequence[str]) -> None:
        store = self.outside.of(self.space)
        if records:
            store.store(records)
        if gone:
            store.delete(gone)

    async def live(self, places: Sequence[Place]) -> list[Live]:
        """The live memories at some places."""
        found: list[Live] = []
        for piece in chunks(places):
            there = at_places(piece)
            rows = await self._store.fetch(_SQL["live_at"].where([there]), there.params)
            found += [Live(*row) for row in rows]
        return found

    async def _records(self, live: Sequence[Live]) -> dict[Place, VectorRecord]:
        """What the store should hold of some memories."""
        vectors = await self._indexes().vectors.vectors_of(self.space, [one.id for one in live])
        words = await self._indexes().words.words_of(list(vectors))
        model = self.space.model
        about = {"model": model.name, "model_version": model.version, "dimension": model.dimension}
        return {
            one.place: VectorRecord(
                id=record_id(*one.place),
                memory_id=one.id,
                embedding=vectors[one.id],
                facts=facts_of(one.namespace, one.memory_type, {} if is_sealed(one.metadata) else decode(one.metadata)),
                trust=one.trust,
                words=tuple(words.get(one.id, ())),
                about={"namespace": one.namespace, "key": one.key, "version": one.version, **about},
            )
            for one in live
            if one.id in vectors
        }
