"""The copy of working memory beside the database, which is written first and says where a copy has to stand."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from mnemon.access import Access
from mnemon.breaker import Breaker
from mnemon.clock import Clock
from mnemon.consumers import Consumer
from mnemon.errors import StoreUnavailable
from mnemon.journal import Journal
from mnemon.model import Change
from mnemon.ports import CopyChange, CopyPlace, CopyRead, Runner, Store, WorkingCopy

T = TypeVar("T")

_LOG = logging.getLogger("mnemon.working")
_BATCH = 200
_LEASE = 15.0

CONSUMER = "working"
"""The name of the consumer that drops the copies of deleted sessions."""


class Mirror:
    """The copy as one process sees it. While it cannot be used, it is as if it had nothing."""

    def __init__(self, copy: WorkingCopy, store: Store, clock: Clock, runner: Runner, *, reads: bool) -> None:
        self._copy = copy
        self._store = store
        self._runner = runner
        self._reads = reads
        self._breaker = Breaker(clock, failures=1, longest=30.0)
        journal = Journal(store, Access())
        self._consumer = Consumer(
            store, journal, clock, CONSUMER,
            lease=_LEASE, batch=_BATCH, entities=["session"], keep_lease=False,
        )  # fmt: skip

    @property
    def is_used(self) -> bool:
        """Whether a copy would be read, or made, now."""
        return self._reads and not self._breaker.is_open

    async def read(self, place: CopyPlace, position: int | None, limit: int) -> CopyRead | None:
        """What the copy has, if it stands where the database does."""
        if not self._reads or not position:
            return None
        return await self._try(lambda: self._copy.read(place, position, limit))

    async def fill(
        self, place: CopyPlace, position: int | None, entries: Sequence[tuple[int, str]], *, whole: bool
    ) -> None:
        """Keep what the database had at a position."""
        if self._reads and position:
            await self._try(lambda: self._copy.fill(place, position, entries, whole))

    async def apply(self, changes: Sequence[CopyChange]) -> None:
        """Change the copy as the database was. If that fails, nobody reads the copy, as it does not stand there."""
        for change in changes:
            await self._try(lambda change=change: self._copy.apply(change))

    async def listen(self, heard: Callable[[], None]) -> None:
        """Hear of changes that other processes apply."""
        await self._runner.aside(lambda: self._copy.listen(heard))

    @property
    def consumer(self) -> Consumer:
        """The consumer that drops the copies of deleted sessions; `step` is its work."""
        return self._consumer

    async def step(self) -> int:
        """Go through the next changes of the journal, and drop the copies of sessions that were deleted."""
        return await self._consumer.deliver(self._deliver)

    async def _deliver(self, changes: Sequence[Change]) -> None:
        ended = {
            (change.payload["app_name"], change.session_id)
            for change in changes
            if change.operation == "delete" and change.session_id and change.payload.get("app_name")
        }
        for app_name, session_id in ended:
            await self._runner.aside(partial(self._copy.drop_session, app_name, session_id))

    async def _try(self, work: Callable[[], T]) -> T | None:
        if not self._breaker.allows():
            return None
        try:
            result = await self._runner.aside(work)
        except StoreUnavailable as error:
            if self._breaker.failed():
                _LOG.warning("working memory is read from the database only: %s", error)
            return None
        if self._breaker.succeeded():
            _LOG.warning("working memory is read from Redis again")
        return result
