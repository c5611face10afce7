"""Retention: what the policies of the settings come to, doing it, and bringing back what was archived."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from mnemon import journal
from mnemon.access import Access, under
from mnemon.clock import Clock, moment
from mnemon.contents import Contents
from mnemon.errors import ArchiveNotFound, InvalidInput, KeyUnavailable, StoreError
from mnemon.journal import Origin, origin_of
from mnemon.memories.writing import Writing
from mnemon.model import (
    Archive,
    Content,
    GrowthReport,
    Level,
    Page,
    RestoreReport,
    RetentionAction,
    RetentionPlan,
)
from mnemon.namespaces import EVERYTHING, check_prefix
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.policies import check_policies
from mnemon.ports import Store, Transaction
from mnemon.retention.archives import Archives, archive_entry
from mnemon.retention.decide import Decision
from mnemon.retention.episodes import EpisodeRemoving
from mnemon.retention.footprints import Footprints, Pulse
from mnemon.retention.growth import Growth
from mnemon.retention.pruning import Pruned, Pruning
from mnemon.retention.removing import Removing
from mnemon.retention.restoring import Restoring
from mnemon.retention.rows import SQL, ArchiveRow, archive_of, read_lines
from mnemon.retention.turns import Turns
from mnemon.retention.uses import Uses
from mnemon.settings import Settings
from mnemon.sql import chunks

_LOG = logging.getLogger("mnemon.retention")
_AT_ONCE = 50  # memories that are removed in one transaction, and lie in one archive

By = Callable[[], Origin]
"""Who acts, and when: now."""


class RetentionService:
    """Keeps the database within its policies."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        contents: Contents,
        writing: Writing,
        uses: Uses | None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._uses = uses
        self._contents = contents
        self._archives = Archives(store, contents)
        self._removing = Removing(store, self._archives, writing.findable)
        self._restoring = Restoring(store, writing.findable)
        self._episodes = EpisodeRemoving(store, self._archives)
        self._footprints = Footprints(store, writing.findable.sealing)
        self._growth = Growth(store, settings.growth_alert)
        self._pruning = Pruning(store, clock)
        self._turns = Turns(store, clock, settings.retention_interval, interrupted)

    async def plan(self, namespace_prefix: str = EVERYTHING) -> RetentionPlan:
        """What `apply` would do at or below the namespace now, and how much there is under each policy.

        The size that a policy allows is that of all its memories, so it is reckoned from those in the prefix only.
        """
        return await self._planned(self._within(namespace_prefix, "read"))

    async def apply(
        self,
        namespace_prefix: str = EVERYTHING,
        dry_run: bool = False,
        *,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> RetentionPlan:
        """Remove what the policies say at or below the namespace; a dry run is a plan.

        What is removed goes into archives first, unless its policy says otherwise. A memory that was changed
        meanwhile is left as it is. It is done in small steps: if it is interrupted, call it again. Applied to
        everything, it also measures growth.
        """
        prefix = self._within(namespace_prefix, "read" if dry_run else "admin")
        by = self._by(actor, task_id)
        return await (self._planned(prefix) if dry_run else self._applied(prefix, by, _unhurried))

    async def apply_if_due(self, *, actor: str | None = None, task_id: str | None = None) -> RetentionPlan | None:
        """Apply the policies to everything, if the setting `retention_interval` says that it is time.

        None if it is not, or if another process is at it. The background does this by itself.
        """
        self._access.require(EVERYTHING, "admin")
        by = self._by(actor, task_id)
        return await self._turns.take(lambda pulse: self._applied(EVERYTHING, by, pulse))

    async def archives(
        self, namespace_prefix: str = EVERYTHING, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Archive]:
        """The archives of memories at or below a namespace, the oldest first, a page at a time."""
        prefix = check_prefix(namespace_prefix, self._settings.max_namespace_length)
        below = under("namespace", self._access.within(prefix, "read"), "within")
        (after,) = decode_cursor(cursor, "archives", (0,))
        params = {**below.params, "after": after, "limit": check_limit(limit)}
        rows = [ArchiveRow(*row) for row in await self._store.fetch(SQL["list_archives"].where([below]), params)]
        more = encode_cursor("archives", rows[-1].id) if len(rows) == limit else None
        contents = await self._contents.told([Content(row.sha256, row.size) for row in rows])
        return Page(tuple(map(archive_of, rows, contents)), more)

    async def restore(self, archive_id: int, *, actor: str | None = None, task_id: str | None = None) -> RestoreReport:
        """Bring the memories of an archive back, with all their versions; their age begins anew.

        Where a memory has taken the place of another since, nothing comes back. The archive stays. Episodes come back
        the same way.
        """
        row = await self._archive(archive_id)
        self._access.require(row.namespace, "admin")
        by = self._by(actor, task_id)
        content = await self._archives.read(row)
        if row.kind == "episodes":
            restored = await self._episodes.restore(row.id, content, by())
        else:
            restored = [
                (kept.namespace, kept.key, await self._restoring.restore(row.id, kept, by()))
                for kept in read_lines(content)
            ]
        memories = sum(versions > 0 for *_, versions in restored)
        told = {"memories": memories, "versions": sum(versions for *_, versions in restored)}
        origin = by()
        await self._store.write(partial(self._note_restored, row, origin, told))
        skipped = tuple((namespace, key) for namespace, key, versions in restored if not versions)
        [shown] = await self._contents.told([Content(row.sha256, row.size)])
        return RestoreReport(archive_of(row._replace(restored_at=origin.now), shown), **told, skipped=skipped)

    async def discard(self, archive_id: int, *, actor: str | None = None, task_id: str | None = None) -> None:
        """Give up an archive: nothing of it can be restored any more, and its content is removed."""
        row = await self._archive(archive_id)
        self._access.require(row.namespace, "admin")
        await self._archives.discard(row, origin_of(self._access, self._clock.now(), actor, task_id))

    async def growth(self, *, record: bool = True, actor: str | None = None) -> GrowthReport:
        """How large everything is, and by how much it grew in a week.

        Each call is a sample for later ones, unless `record` is false. Growth above the setting `growth_alert` is
        told in the log and in the journal too.
        """
        self._access.require(EVERYTHING, "admin")
        return await self._growth.report(origin_of(self._access, self._clock.now(), actor, None), record=record)

    async def prune(self, *, actor: str | None = None, task_id: str | None = None) -> int:
        """Remove vectors and counts of uses that belong to nothing any more, and what has expired; how many vectors."""
        self._access.require(EVERYTHING, "admin")
        return (await self._pruning.prune(self._by(actor, task_id)(), _unhurried)).vectors

    def _by(self, actor: str | None, task_id: str | None) -> By:
        origin_of(self._access, 0, actor, task_id)  # so that what cannot be is refused before anything is done
        return lambda: origin_of(self._access, self._clock.now(), actor, task_id)

    # -- planning

    def _within(self, namespace_prefix: str, level: Level) -> str:
        prefix = check_prefix(namespace_prefix, self._settings.max_namespace_length)
        self._access.require(prefix, level)
        return prefix

    async def _planned(self, prefix: str, pulse: Pulse | None = None) -> RetentionPlan:
        now = self._clock.now()
        beat = pulse or _unhurried
        decision = Decision(check_policies(self._settings.retention), now)
        async for footprint in self._footprints.memories(prefix, beat):
            decision.weigh(footprint if self._uses is None else self._uses.added(footprint))
        async for told in self._footprints.episodes(prefix, beat):
            decision.weigh_episode(
                told.namespace, str(told.id), told.size, told.standing_since, is_pinned=told.is_pinned
            )
        return RetentionPlan(moment(now), prefix, decision.actions(), decision.uses())

    # -- applying

    async def _applied(self, prefix: str, by: By, pulse: Pulse) -> RetentionPlan:
        is_all = prefix == EVERYTHING
        growth = await self._growth.report(by(), record=True) if is_all else None
        if self._uses is not None:
            await self._uses.flush(self._store)
        plan = await self._planned(prefix, pulse)
        done: list[RetentionAction] = []
        archives: list[int] = []
        for piece in _pieces(plan.actions):
            await pulse()
            results, archive = await self._remove(piece, by())
            done += results
            archives += [] if archive is None else [archive]
        pruned = Pruned()
        if self._access.allows(EVERYTHING, "admin"):
            await self._finish_erasures(by())
            pruned = await self._pruning.prune(by(), pulse)
        applied = replace(
            plan, actions=tuple(done), archives=tuple(archives), pruned_vectors=pruned.vectors,
            pruned_items=pruned.items, is_dry_run=False, growth=growth,
        )  # fmt: skip
        if is_all:
            await self._store.write(partial(_note_run, by(), applied))
        return applied

    async def _remove(
        self, actions: Sequence[RetentionAction], origin: Origin
    ) -> tuple[list[RetentionAction], int | None]:
        archive = next(each.archive for each in self._settings.retention if each.name == actions[0].policy)
        removing = self._removing if actions[0].kind == "memory" else self._episodes
        try:
            return await removing.remove(actions, origin, archive=archive)
        except KeyUnavailable as error:
            _LOG.warning("%s is left as it is, as it cannot be archived: %s", actions[0].namespace, error)
            return [replace(action, status="failed") for action in actions], None

    async def _finish_erasures(self, origin: Origin) -> None:
        """Take out of archives what was erased, where a process died before that or contents were down."""
        for number in await self._archives.unfinished():
            try:
                await self._archives.erase([number], origin)
            except StoreError as error:
                _LOG.warning("archive %d still has something that was erased: %s", number, error)
        try:
            await self._archives.remove_given_up(EVERYTHING)
        except StoreError as error:
            _LOG.warning("an archive still has episodes that were erased: %s", error)

    # -- archives

    async def _archive(self, archive_id: int) -> ArchiveRow:
        if isinstance(archive_id, bool) or not isinstance(archive_id, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"an archive's id is a whole number, not {archive_id!r}")
        below = under("namespace", self._access.within(EVERYTHING, "read"), "within")
        rows = (
            await self._store.fetch(SQL["get_archive"].where([below]), {"id": archive_id, **below.params})
            if 0 < archive_id < 2**63
            else []
        )
        row = ArchiveRow(*rows[0]) if rows else None
        if row is None or not row.sha256:
            raise ArchiveNotFound(f"there is no archive {archive_id!r}")
        return row

    async def _note_restored(self, row: ArchiveRow, origin: Origin, told: dict[str, int], tx: Transaction) -> None:
        await tx.execute(SQL["set_restored"], {"id": row.id, "now": origin.now})
        await journal.record(tx, [archive_entry(origin, "restore", row.namespace, row.id, told)])


async def _unhurried() -> None:
    """Nothing ends what somebody waits for."""


def _pieces(actions: Sequence[RetentionAction]) -> Iterator[Sequence[RetentionAction]]:
    """What is done in one transaction, and lies in one archive: of one kind, namespace and policy."""

    def place(action: RetentionAction) -> tuple[str, str, str]:
        return action.kind, action.namespace, action.policy

    for _, group in groupby(sorted(actions, key=place), key=place):
        yield from chunks(list(group), _AT_ONCE)


async def _note_run(origin: Origin, plan: RetentionPlan, tx: Transaction) -> None:
    told = {"applied": plan.applied, "archives": len(plan.archives), "bytes": plan.size}
    await journal.record(tx, [journal.entry(origin, "retention", "policies", "apply", namespace=None, payload=told)])
