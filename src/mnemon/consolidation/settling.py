"""The third stage: facts that deny each other are settled, as a consumer of the journal.

It follows the episodes that were consolidated. A worker killed on the way leaves its batch to the next one, which finds
whatever is left to be settled: what was settled is not found again.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.consolidation.draining import ACTOR, PASSING
from mnemon.consumers import Consumer
from mnemon.episodes.service import FACTS
from mnemon.errors import MnemonError
from mnemon.journal import Journal
from mnemon.model import Change, ConsolidationReport
from mnemon.ports import Store

NAME = "facts"
"""The consumer's name."""

_LOG = logging.getLogger("mnemon.consolidation")
_BATCH = 20

Consolidate = Callable[..., Coroutine[Any, Any, ConsolidationReport]]
"""`ConsolidationService.consolidate`."""


class Settling:
    """Settles the facts of namespaces whose episodes were consolidated."""

    def __init__(self, store: Store, clock: Clock, consolidate: Consolidate, strategy: str, lease: float) -> None:
        self._consolidate = consolidate
        self._strategy = strategy
        self._reports: list[ConsolidationReport] = []
        self._consumer = Consumer(
            store, Journal(store, Access()), clock, NAME,
            lease=lease, batch=_BATCH, entities=["episode"], keep_lease=False,
        )  # fmt: skip

    async def step(self) -> Sequence[ConsolidationReport] | None:
        """Settle what the next consolidated episodes have brought; None if there are none, or another is at them."""
        if not await self._consumer.has_work():
            return None
        self._reports = []
        handled = await self._consumer.deliver(self._deliver)
        return self._reports if handled else None

    async def _deliver(self, changes: Sequence[Change]) -> None:
        found = {change.namespace for change in changes if change.operation == "consolidate" and _has_facts(change)}
        for namespace in sorted(each for each in found if each is not None):
            try:
                self._reports.append(await self._consolidate(f"{namespace}:{FACTS}", self._strategy, actor=ACTOR))
            except PASSING:
                raise
            except MnemonError as error:  # the other namespaces go on; this one is looked at with its next fact
                _LOG.warning("the facts of %r are not settled: %s", namespace, type(error).__name__)


def _has_facts(change: Change) -> bool:
    return bool(change.payload.get("facts"))
