"""From working memory to long-term memory: buffers become episodes, episodes summaries and facts, facts agree.

Any number of workers may do this at once, and each may be killed at any point: every stage is one transaction for each
piece of work, which either has happened or is there to be done.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.consolidation.draining import Draining
from mnemon.consolidation.settling import Consolidate, Settling
from mnemon.episodes.claims import Claims
from mnemon.errors import InvalidInput, LeaseLost
from mnemon.language import CheckedModel
from mnemon.memories.writing import Writing
from mnemon.model import FlowReport
from mnemon.namespaces import EVERYTHING
from mnemon.ports import Runner, Store
from mnemon.settings import Settings
from mnemon.working.desk import Desk

if TYPE_CHECKING:  # slow to import
    from mnemon.consolidation.digesting import Digesting

USUAL_IDLE = 1800.0
"""For how many seconds a buffer is left alone before it is drained, if neither the caller nor a setting says."""

_LEASE = 60.0
_CALLS = 10  # of a language model, for one episode or one batch of facts at the most
_LONGEST = 10 * 365 * 24 * 3600.0


class Flow:
    """Does what there is to do, piece by piece, over one face of a database."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        runner: Runner,
        desk: Desk,
        writing: Writing,
        language: Callable[[], CheckedModel | None],
        consolidate: Consolidate,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._runner = runner
        self._writing = writing
        self._language = language
        self._consolidate = consolidate
        self._claims = Claims(store, clock, writing.sealing)
        self._draining = Draining(store, clock, desk)
        self._settling: dict[float, Settling] = {}
        self._digesting: Digesting | None = None

    async def run(
        self,
        idle: float | None = 0.0,
        lease: float | None = None,
        rounds: int | None = None,
        progress: Callable[[FlowReport], object] | None = None,
    ) -> FlowReport:
        """Go on until there is nothing to do, or for some rounds; see `ConsolidationService.flow`."""
        self._access.require(EVERYTHING, "admin")
        seconds = self._idle(idle)
        held = self._lease(lease)
        if rounds is not None and (not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"rounds are a whole number above 0, not {rounds!r}")
        report = FlowReport()
        while rounds is None or rounds > 0:
            done = await self._round(seconds, held)
            if done is None:
                break
            report = report.plus(done)
            if progress is not None:
                progress(report)
            rounds = None if rounds is None else rounds - 1
        return report

    async def _round(self, idle: float, lease: float) -> FlowReport | None:
        """A piece of work of each stage; None if there is none of any."""
        found = [await self._drain(idle), await self._digest(lease), await self._settle(lease)]
        done = [each for each in found if each is not None]
        report = FlowReport(rounds=1)
        for each in done:
            report = report.plus(each)
        return report if done else None

    async def _drain(self, idle: float) -> FlowReport | None:
        drained = await self._draining.step(idle)
        return None if drained is None else FlowReport(drained=drained.items, episodes=drained.episodes)

    async def _digest(self, lease: float) -> FlowReport | None:
        if not await self._claims.are_due():
            return None
        if self._digesting is None:
            from mnemon.consolidation.digesting import Digesting  # noqa: PLC0415 - slow to import

            self._digesting = Digesting(
                self._store, self._clock, self._runner, self._writing, self._claims, self._language
            )
        digested = await self._digesting.step(lease)
        if digested is None:
            return None
        return FlowReport(
            summaries=digested.summaries, facts=digested.facts, failed=digested.failed,
            fallbacks=digested.fallbacks, usage=digested.usage,
        )  # fmt: skip

    async def _settle(self, lease: float) -> FlowReport | None:
        strategy = self._settings.consolidation_strategy
        if strategy is None or strategy == "none":
            return None
        if lease not in self._settling:
            self._settling = {lease: Settling(self._store, self._clock, self._consolidate, strategy, lease)}
        try:
            reports = await self._settling[lease].step()
        except LeaseLost:
            return FlowReport()  # another worker does it again
        if reports is None:
            return None
        return FlowReport(
            conflicts=sum(len(step.retired) for each in reports for step in each.steps if step.status == "applied"),
            for_review=sum(len(each.for_review) for each in reports),
        )

    def _idle(self, idle: float | None) -> float:
        if idle is None:
            return self._settings.consolidate_after or USUAL_IDLE
        return _seconds("idle", idle, 0.0)

    def _lease(self, lease: float | None) -> float:
        if lease is not None:
            return _seconds("a lease", lease, 0.001)
        model = self._settings.language_model is not None
        return _LEASE + (_CALLS * self._settings.language_model_timeout if model else 0.0)


def _seconds(what: str, value: object, least: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= _LONGEST:
        raise InvalidInput(f"{what} is a number of seconds from {least:g}, not {value!r}")
    return float(value)
