"""The first stage: what a buffer has becomes an episode, in one transaction, so that each item is in exactly one."""

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mnemon.clock import Clock, micros
from mnemon.episodes.covers import place_of
from mnemon.episodes.rows import SQL, new_row, written
from mnemon.episodes.service import add
from mnemon.errors import MnemonError, StoreBusy, StoreClosed, StoreFull, StoreReadOnly, StoreUnavailable
from mnemon.model import EpisodeEntry, EpisodeKind, WorkingItem
from mnemon.ports import CopyChange, Store, Transaction
from mnemon.working.desk import Desk, Waiting

ACTOR = "consolidation"
"""In whose name consolidation works."""
PASSING = (StoreBusy, StoreClosed, StoreFull, StoreReadOnly, StoreUnavailable)
"""Troubles of the database, not of what is in it."""

_LOG = logging.getLogger("mnemon.consolidation")
_MICROS = 1_000_000
_MOST_ITEMS = 100  # of one episode
_MOST_BYTES = 1_000_000  # of one episode, unless a single item is longer


class Drained(NamedTuple):
    """How many items became how many episodes."""

    items: int = 0
    episodes: int = 0


class Draining:
    """Makes episodes of what waits in buffers: of those left alone for a while, and of sessions that have ended."""

    def __init__(self, store: Store, clock: Clock, desk: Desk) -> None:
        self._store = store
        self._clock = clock
        self._desk = desk
        self._set_aside: set[Waiting] = set()  # what could not be drained, until something is appended to it

    async def step(self, idle: float) -> Drained | None:
        """Drain the beginning of the buffer that has waited for longest; None if none has waited for `idle` seconds."""
        waiting = await self._next(idle)
        if waiting is None:
            return None
        try:
            return await self._drain(waiting)
        except PASSING:
            raise
        except MnemonError as error:  # it must not hold up the others
            self._set_aside.add(waiting)
            _LOG.warning("buffer %r of session %r is not drained: %s", waiting.buffer, waiting.session_id, error)
            return Drained()

    async def _next(self, idle: float) -> Waiting | None:
        limit = len(self._set_aside) + 1
        found = [each for each in await self._desk.waiting(idle=idle, limit=limit) if each not in self._set_aside]
        if not found and idle > 0:
            now = self._clock.now()
            params = {"now": now, "since": now - int(idle * _MICROS), "limit": limit}
            ended = [Waiting(*row) for row in await self._store.fetch(SQL["ended_buffers"], params)]
            found = [each for each in ended if each not in self._set_aside]
        return found[0] if found else None

    async def _drain(self, waiting: Waiting) -> Drained:
        async def unit(tx: Transaction) -> tuple[Drained, Sequence[CopyChange]]:
            place = {"session_id": waiting.session_id, "name": waiting.buffer}
            held = await self._desk.hold(tx, place)
            if held is None or held[0] != waiting.last_sequence:
                return Drained(), ()  # somebody goes on with it
            taken = await self._desk.take(tx, waiting.session_id, waiting.buffer, _MOST_ITEMS, ACTOR)
            pieces = list(_pieces(taken.items))
            session = await self._desk.find(tx, waiting.session_id, "write")
            origin = self._desk.origin(session, ACTOR, None)
            for piece in pieces:
                row = new_row(
                    origin,
                    namespace=place_of(session, "", self._desk.sealing),
                    kind=_kind(waiting.buffer),
                    entries=[EpisodeEntry(item.value, item.created_at, item.created_by) for item in piece],
                    metadata=written(_origin_of(waiting.buffer, piece)),
                    started_at=min(micros(item.created_at) for item in piece),
                    ended_at=max(micros(item.created_at) for item in piece),
                )
                await add(tx, origin, row, self._desk.sealing)
            return Drained(len(taken.items), len(pieces)), taken.changes

        drained, changes = await self._store.write(unit)
        if changes:
            await self._desk.copy(changes)
        return drained


def _pieces(items: Sequence[WorkingItem]) -> Iterator[Sequence[WorkingItem]]:
    """The items, divided where they would be too much for one episode."""
    piece: list[WorkingItem] = []
    size = 0
    for item in items:
        length = len(written(item.value))
        if piece and size + length > _MOST_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(item)
        size += length
    if piece:
        yield piece


def _kind(buffer: str) -> str:
    """A buffer that is called `task_log` is one; everything else is a conversation."""
    return str(EpisodeKind.TASK_LOG if buffer == EpisodeKind.TASK_LOG else EpisodeKind.CONVERSATION)


def _origin_of(buffer: str, items: Sequence[WorkingItem]) -> dict[str, object]:
    return {"buffer": buffer, "first_sequence": items[0].sequence, "last_sequence": items[-1].sequence}
