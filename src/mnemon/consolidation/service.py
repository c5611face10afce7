"""Consolidating memories: finding what says the same or denies each other, and making one of it."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from mnemon import journal
from mnemon.access import Access, under
from mnemon.clock import Clock
from mnemon.consolidation.applying import Applying
from mnemon.consolidation.reviews import (
    SQL,
    ReviewRow,
    decided,
    entry_of,
    new_row,
    review_of,
    step_of,
)
from mnemon.errors import ConflictError, InvalidInput, InvalidStatus, InvalidValue, ReviewNotFound
from mnemon.journal import Origin, origin_of
from mnemon.language import CheckedModel
from mnemon.memories import MemoryService
from mnemon.memories.rows import LAYOUT, check_types, memories
from mnemon.memories.rows import SQL as MEMORIES
from mnemon.memories.writing import Writing
from mnemon.model import (
    ConsolidationReport,
    ConsolidationStep,
    ConsolidationStrategy,
    FlowReport,
    Memory,
    MemoryType,
    MemoryVersion,
    Page,
    Review,
    ReviewStatus,
)
from mnemon.namespaces import EVERYTHING, check_prefix
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Indexes, Runner, Store, Transaction, Vector
from mnemon.settings import Settings
from mnemon.spaces import Spaces
from mnemon.sql import chunks, equal, params_of
from mnemon.texts import text_of

if TYPE_CHECKING:  # slow to import
    from mnemon.consolidation.flow import Flow
    from mnemon.consolidation.planning import ConsolidationPlan
    from mnemon.consolidation.suspicion import Embed

_PAGE = 1000
_TYPES = (MemoryType.SEMANTIC, MemoryType.PROCEDURAL)
_CHOICES = ("first", "second", "both", "merge")
_CHUNKS = "document:"  # a thread of chunks, which are what their file says


class ConsolidationService:
    """Makes one of memories that say the same or deny each other, and asks people where they are to decide."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        runner: Runner,
        indexes: Callable[[], Indexes],
        memories: MemoryService,
        writing: Writing,
        language: Callable[[], CheckedModel | None],
        flow: "Callable[[], Flow]",
        words: "Callable[[], Embed] | None" = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._runner = runner
        self._indexes = indexes
        self._memories = memories
        self._applying = Applying(store, settings, writing)
        self._sealing = writing.sealing
        self._language = language
        self._flow = flow
        self._words = words
        self._spaces = Spaces(store, clock)

    async def consolidate(
        self,
        namespace: str,
        strategy: str = "llm_based",
        dry_run: bool = False,
        *,
        types: str | Sequence[str] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> ConsolidationReport:
        """Make one of the memories that say the same or deny each other, in each namespace at or below this one.

        The strategies are `latest_wins`, `highest_trust`, `merge`, `llm_based` and `review`. Nothing is lost: what
        is given up is deleted softly and says what took its place. A dry run shows what would be done. Pairs that are
        only suspected are reported; nothing but `review` and a language model decides about them.
        """
        _check_strategy(strategy)
        chosen = frozenset(check_types(types) or map(str, _TYPES))
        prefix = check_prefix(namespace, self._settings.max_namespace_length)
        self._access.require(prefix, "read" if dry_run else "write")
        origin_of(self._access, 0, actor, task_id)
        model = self._language() if strategy == "llm_based" else None
        used = "latest_wins" if strategy == "llm_based" and model is None else strategy
        report = ConsolidationReport(prefix, strategy, used, dry_run)
        async for members in self._members(prefix, chosen):
            findings, plan = await self._plan(members, strategy, model)
            origin = origin_of(self._access, self._clock.now(), actor, task_id)
            steps = plan.steps if dry_run else await self._carry_out(plan, origin)
            report = _added(report, len(members), findings, plan, steps)
        return report

    async def flow(
        self,
        idle: float | None = 0.0,
        *,
        lease: float | None = None,
        rounds: int | None = None,
        progress: Callable[[FlowReport], object] | None = None,
    ) -> FlowReport:
        """Let working memory flow into long-term memory: drain buffers into episodes, make summaries and facts of
        those, and settle facts that deny each other.

        `idle` is for how many seconds a buffer must have been left alone; None is what the setting
        `consolidate_after` says. Buffers of sessions that have ended are not waited for. It goes on until nothing is
        left to do, or for so many `rounds`. It may be killed, called again and run in any number of copies; each
        piece of work is nobody else's for `lease` seconds.
        """
        return await self._flow().run(idle, lease, rounds, progress)

    async def reviews(
        self,
        status: str | None = "open",
        *,
        namespace_prefix: str = EVERYTHING,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Review]:
        """What people are to decide or have decided, a page at a time; None for every status."""
        wanted = None if status is None else str(_check_status(status))
        prefix = check_prefix(namespace_prefix, self._settings.max_namespace_length)
        below = under("namespace", self._access.within(prefix, "read"), "within")
        conditions = [*equal(status=wanted), below]
        (after,) = decode_cursor(cursor, "reviews", (0,))
        params = {**params_of(conditions), "after": after, "limit": check_limit(limit)}
        rows = [ReviewRow(*row) for row in await self._store.fetch(SQL["list_reviews"].where(conditions), params)]
        more = encode_cursor("reviews", rows[-1].id) if len(rows) == limit else None
        return Page(tuple([await self._shown(row) for row in rows]), more)

    async def decide(
        self, review_id: int, choice: str, value: Any = None, *, actor: str | None = None, task_id: str | None = None
    ) -> Review:
        """Decide a review: the `first` is right, the `second`, `both` stay, or `merge` them into `value`.

        If one of the memories has changed since, nothing happens to them and the review is `outdated`.
        """
        if choice not in _CHOICES:
            raise InvalidStatus(f"{choice!r} is no choice; use one of {', '.join(_CHOICES)}")
        if (choice == "merge") != (value is not None):
            raise InvalidInput("give a value with the choice merge, and only then")
        row = await self._review(review_id)
        self._access.require(row.namespace, "write")
        origin = origin_of(self._access, self._clock.now(), actor, task_id)
        step = step_of(row, choice, value)
        vectors = await self._applying.embed(step)

        async def unit(tx: Transaction) -> ReviewRow:
            current = await self._hold(tx, review_id)
            status = ReviewStatus.REJECTED
            if choice != "both":
                try:
                    await self._applying.write(tx, origin, step, vectors)
                    status = ReviewStatus.APPLIED
                except ConflictError:
                    status = ReviewStatus.OUTDATED
            changed = decided(current._asdict(), status, choice, origin)
            await tx.execute(SQL["decide_review"], changed)
            told = {"status": str(status), "choice": choice}
            await journal.record(tx, [entry_of(origin, "decide", current.namespace, review_id, **told)])
            return ReviewRow(**changed)

        return await self._shown(await self._store.write(unit))

    # -- planning

    async def _members(self, prefix: str, types: frozenset[str]) -> AsyncIterator[list[Memory]]:
        """The memories to be compared: those of one type in one namespace at a time."""
        kept: dict[str, list[Memory]] = {}
        cursor, here = None, None
        while True:
            page = await self._memories.search_memories(prefix, limit=_PAGE, cursor=cursor)
            for memory in page:
                if memory.namespace != here:
                    for members in kept.values():
                        yield members
                    kept, here = {}, memory.namespace
                if memory.memory_type in types and _says_something(memory):
                    kept.setdefault(memory.memory_type, []).append(memory)
            cursor = page.next_cursor
            if cursor is None:
                break
        for members in kept.values():
            yield members

    async def _plan(
        self, members: Sequence[Memory], strategy: str, model: CheckedModel | None
    ) -> "tuple[int, ConsolidationPlan]":
        """How many certain findings there are in the memories of a namespace, and what is to be done about all."""
        from mnemon.consolidation.conflicts import find, statement_of  # noqa: PLC0415 - needs numpy
        from mnemon.consolidation.planning import judge_of, make_plan  # noqa: PLC0415

        vectors = await self._vectors(members)
        asking = strategy in ("review", "llm_based")
        known = await self._known(members[0].namespace, asking=asking)

        def work() -> "tuple[int, ConsolidationPlan]":
            embed = None if self._words is None else self._words()
            findings = find([statement_of(memory, vectors.get(memory.id)) for memory in members], embed)
            certain = sum(finding.certainty == "certain" for finding in findings)
            return certain, make_plan(members, findings, strategy, judge_of(strategy, model), known)

        return await self._runner.aside(work)

    async def _vectors(self, members: Sequence[Memory]) -> dict[int, Vector]:
        """The vectors that there are: by them memories are compared that share no word."""
        space = await self._spaces.active()
        if space is None:
            return {}
        found: dict[int, Vector] = {}
        for piece in chunks([memory.id for memory in members]):
            found |= await self._indexes().vectors.vectors_of(space, piece)
        return found

    async def _known(self, namespace: str, *, asking: bool) -> frozenset[str]:
        """Pairs of which somebody said that both stay, and, for who would ask, those that are asked already."""
        found: set[str] = set()
        after = 0
        while True:
            params = {"namespace": namespace, "after": after, "limit": _PAGE}
            rows = await self._store.fetch(SQL["known_reviews"], params)
            found |= {digest for _, digest, status in rows if asking or status == ReviewStatus.REJECTED}
            if len(rows) < _PAGE:
                return frozenset(found)
            after = rows[-1][0]

    # -- doing

    async def _carry_out(self, plan: "ConsolidationPlan", origin: Origin) -> tuple[ConsolidationStep, ...]:
        done = tuple([await self._apply(step, origin) for step in plan.steps])
        if plan.for_review or plan.settled:
            await self._store.write(lambda tx: self._open(tx, plan, origin))
        return done

    async def _apply(self, step: ConsolidationStep, origin: Origin) -> ConsolidationStep:
        vectors = await self._applying.embed(step)
        try:
            await self._store.write(lambda tx: self._applying.write(tx, origin, step, vectors))
        except ConflictError:
            return replace(step, status="outdated")
        except InvalidValue:
            return replace(step, status="refused")
        return replace(step, status="applied")

    async def _open(self, tx: Transaction, plan: "ConsolidationPlan", origin: Origin) -> None:
        """Ask what is to be asked, and note what a model has decided to leave as it is."""
        from mnemon.consolidation.planning import digest_of  # noqa: PLC0415 - needs numpy

        rows = [new_row(each, digest_of(each), origin.now) for each in plan.for_review]
        rows += [
            decided(new_row(each, digest_of(each), origin.now), ReviewStatus.REJECTED, "both", origin)
            for each in plan.settled
        ]
        for row in rows:
            inserted = await tx.fetch_one(SQL["insert_review"], row)
            if inserted is not None:
                entry = entry_of(origin, "open", row["namespace"], inserted[0], kind=row["kind"], status=row["status"])
                await journal.record(tx, [entry])

    # -- reviews

    async def _review(self, review_id: int) -> ReviewRow:
        below = under("namespace", self._access.within(EVERYTHING, "read"), "within")
        rows = await self._store.fetch(SQL["get_review"].where([below]), {"id": review_id, **below.params})
        if not rows:
            raise _not_found(review_id)
        return ReviewRow(*rows[0])

    async def _hold(self, tx: Transaction, review_id: int) -> ReviewRow:
        """The review, if it is open still, for the rest of the transaction."""
        row = await tx.fetch_one(SQL["get_review"].where([], self._store.dialect.row_lock), {"id": review_id})
        if row is None:
            raise _not_found(review_id)
        found = ReviewRow(*row)
        if found.status != ReviewStatus.OPEN:
            raise ConflictError(f"review {review_id} is {found.status} already")
        return found

    async def _shown(self, row: ReviewRow) -> Review:
        first, second = [await self._version(version) for version in row.versions]
        return review_of(row, first, second)

    async def _version(self, version: MemoryVersion) -> Memory | None:
        rows = await self._store.fetch(MEMORIES["get_version"], asdict(version))
        found = memories(await self._sealing.opened(self._store.fetch, LAYOUT, rows))
        return found[0] if found else None


def _added(
    report: ConsolidationReport,
    examined: int,
    findings: int,
    plan: "ConsolidationPlan",
    steps: tuple[ConsolidationStep, ...],
) -> ConsolidationReport:
    """The report with what another namespace came to."""
    return replace(
        report,
        examined=report.examined + examined,
        findings=report.findings + findings,
        steps=report.steps + steps,
        for_review=report.for_review + plan.for_review,
        suspected=report.suspected + plan.suspected,
        left=report.left + plan.left,
        fallbacks=dict(Counter(report.fallbacks) + Counter(plan.fallbacks)),
        usage=report.usage.plus(plan.usage),
    )


def _says_something(memory: Memory) -> bool:
    is_chunk = (memory.placement.thread or "").startswith(_CHUNKS)
    return not is_chunk and bool(text_of(memory.value).strip())


def _check_strategy(strategy: str) -> None:
    if strategy not in tuple(ConsolidationStrategy):
        raise InvalidStatus(f"{strategy!r} is not a strategy; use one of {', '.join(ConsolidationStrategy)}")


def _check_status(status: str) -> ReviewStatus:
    try:
        return ReviewStatus(status)
    except ValueError:
        raise InvalidStatus(f"{status!r} is not a review's status; use one of {', '.join(ReviewStatus)}") from None


def _not_found(review_id: int) -> ReviewNotFound:
    return ReviewNotFound(f"there is no review {review_id!r}")
