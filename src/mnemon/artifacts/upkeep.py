"""Keeping contents and records in step: what is missing, what nobody refers to any more, and what people see."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice

from mnemon import journal
from mnemon.access import Access
from mnemon.artifacts.names import place_of, url_of
from mnemon.artifacts.rows import SQL
from mnemon.clock import Clock
from mnemon.contents import Contents
from mnemon.errors import ContentCorrupt, ContentMissing, InvalidInput
from mnemon.journal import origin_of
from mnemon.model import Cleanup, ContentFlaw, ContentReport, Progress, StoredContent
from mnemon.namespaces import EVERYTHING
from mnemon.ports import Runner, Store, Transaction
from mnemon.sql import among, load, params_of

GRACE = timedelta(hours=1)
"""How long content may wait for its record."""
KEPT = timedelta(days=30)
"""How long what was deleted can be restored."""

_JOURNAL = load("journal")
_BATCH = 200
_NAMED = 5  # files that are named beside a flaw


class ArtifactUpkeep:
    """What an administrator does with all contents and records at once."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        access: Access,
        contents: Contents,
        runner: Runner,
        refresh: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._access = access
        self._contents = contents
        self._runner = runner
        self._refresh = refresh

    # ----------------------------------------------------------------------------------------------------- verifying

    async def verify(
        self, deep: bool, grace: timedelta, progress: Callable[[Progress], object] | None
    ) -> ContentReport:
        """Compare what is referred to with what is there."""
        self._access.require(EVERYTHING, "admin")
        oldest = datetime.now(UTC) - _checked(grace)
        began = time.monotonic()
        total = (await self._store.fetch(SQL["count_digests"], {}))[0][0] if progress else 0
        flaws: list[ContentFlaw] = []
        checked = stored = size = pending = 0
        async for sha256 in self._referenced():
            checked += 1
            flaws += await self._examined(sha256, deep)
            if progress:
                progress(Progress(checked, max(total, checked), time.monotonic() - began))
        async for batch in self._stored():
            stored += len(batch)
            size += sum(each.size for each in batch)
            unused = await self._unused(batch)
            pending += sum(each.written_at > oldest for each in unused)
            flaws += [_orphaned(each) for each in unused if each.written_at <= oldest]
        return ContentReport(checked, stored, size, pending, tuple(flaws))

    async def _examined(self, sha256: str, deep: bool) -> list[ContentFlaw]:
        try:
            await self._contents.ready([sha256] if deep else [])
            await self._runner.aside(partial(self._look, sha256, deep))
        except ContentMissing:
            return [ContentFlaw("missing", sha256, await self._users(sha256))]
        except ContentCorrupt:
            return [ContentFlaw("corrupt", sha256, await self._users(sha256))]
        return []

    def _look(self, sha256: str, deep: bool) -> None:
        """Read the content, or only its beginning."""
        if deep:
            for _ in self._contents.verified(sha256):
                pass
        else:
            next(iter(self._contents.store.read(sha256)), None)

    async def _users(self, sha256: str) -> tuple[str, ...]:
        params = {"sha256": sha256, "limit": _NAMED}
        artifacts = await self._store.fetch(SQL["users_of_content"], params)
        files = await self._store.fetch(SQL["files_of_content"], params)
        archives = await self._store.fetch(SQL["archives_of_content"], params)
        named = [url_of(*row) for row in artifacts] + [f"{path} in workspace {owner}" for owner, path, _ in files]
        named += [f"archive {number} of {namespace}" for number, namespace in archives]
        return tuple(named)[:_NAMED]

    # ---------------------------------------------------------------------------------------------------- cleaning up

    async def cleanup(self, keep_deleted: timedelta, grace: timedelta, dry_run: bool, actor: str | None) -> Cleanup:
        """Records first, then contents that nothing refers to any more, then what people see."""
        self._access.require(EVERYTHING, "admin")
        age = _checked(grace).total_seconds()
        before = self._clock.now() - _checked(keep_deleted) // timedelta(microseconds=1)
        versions = await (self._count_deleted(before) if dry_run else self._purge(before, actor))
        contents = freed = 0
        async for batch in self._stored():
            for each in await self._unused(batch):
                if await self._removed(each, age, dry_run):
                    contents, freed = contents + 1, freed + each.size
        if not dry_run:
            freed += await self._runner.aside(lambda: self._contents.store.sweep(age))
        return Cleanup(versions, contents, freed, await self._close_places(dry_run))

    async def _count_deleted(self, before: int) -> int:
        return (await self._store.fetch(SQL["count_long_deleted"], {"before": before}))[0][0]

    async def _purge(self, before: int, actor: str | None) -> int:
        """Remove the records of what was deleted before a moment; how many."""
        removed = 0
        while done := await self._store.write(partial(self._purge_some, before, actor)):
            removed += done
        return removed

    async def _purge_some(self, before: int, actor: str | None, tx: Transaction) -> int:
        rows = await tx.fetch_all(SQL["long_deleted"], {"before": before, "limit": _BATCH})
        now = self._clock.now()
        done = 0
        for number, session_id, name, version, user_id in rows:
            if await tx.execute(SQL["purge_artifact"], {"id": number, "before": before}):
                origin = origin_of(self._access, now, actor, None, user_id, session_id)
                namespace = f"session:{session_id}"
                entry = journal.entry(origin, "artifact", name, "purge", namespace=namespace, version=version)
                await journal.record(tx, [entry])
                done += 1
        return done

    async def _removed(self, content: StoredContent, age: float, dry_run: bool) -> bool:
        if dry_run:
            return (datetime.now(UTC) - content.written_at).total_seconds() >= age
        return await self._runner.aside(lambda: self._contents.store.delete(content.sha256, age))

    # ------------------------------------------------------------------------------------------------ what people see

    async def rebuild(self, session_ids: Sequence[str] | None = None) -> int:
        """Show the sessions anew, whatever stands there; of how many."""
        showcase = await self._runner.aside(lambda: self._contents.showcase)
        if session_ids is None:
            self._access.require(EVERYTHING, "admin")
            session_ids = [session_id async for session_id in self._sessions()]
        if showcase is None:
            return 0
        for session_id in session_ids:
            await self._runner.aside(partial(showcase.remove, place_of(session_id)))
            await self._refresh(session_id)
        return len(session_ids)

    async def _close_places(self, dry_run: bool) -> int:
        """Take the folders of sessions away that have no artifacts, and bring the others up to date; how many went."""
        showcase = await self._runner.aside(lambda: self._contents.showcase)
        if showcase is None:
            return 0
        found = await self._store.fetch(_JOURNAL["last_position"], {})
        position = found[0][0] if found else 0  # what is shown from now on is of a later revision, and stays
        shown = set(await self._runner.aside(lambda: list(showcase.places())))
        async for session_id in self._sessions():
            shown.discard(place_of(session_id))
            if not dry_run:
                await self._refresh(session_id)
        for place in () if dry_run else sorted(shown):
            await self._runner.aside(partial(showcase.remove, place, position))
        return len(shown)

    # ----------------------------------------------------------------------------------------------------- both sides

    async def _sessions(self) -> AsyncIterator[str]:
        """Every session that has artifacts."""
        after = ""
        while rows := await self._store.fetch(SQL["sessions_with_artifacts"], {"after": after, "limit": _BATCH}):
            for (after,) in rows:
                yield after

    async def _referenced(self) -> AsyncIterator[str]:
        """Every digest that a record refers to, once."""
        for query in (SQL["digests_of_artifacts"], SQL["digests_of_workspaces"], SQL["digests_of_archives"]):
            after = ""
            while rows := await self._store.fetch(query, {"after": after, "limit": _BATCH}):
                for (after,) in rows:
                    yield after

    async def _stored(self) -> AsyncIterator[list[StoredContent]]:
        """Everything that the store holds, in batches."""
        listing = await self._runner.aside(lambda: self._contents.store.listing())
        while batch := await self._runner.aside(lambda: list(islice(listing, _BATCH))):
            yield batch

    async def _unused(self, batch: Sequence[StoredContent]) -> list[StoredContent]:
        """Those of the contents that no record refers to."""
        wanted = [among("sha256", [each.sha256 for each in batch], "sha")]
        rows = await self._store.fetch(SQL["referenced_among"].where(wanted), params_of(wanted))
        used = {sha256 for (sha256,) in rows}
        return [each for each in batch if each.sha256 not in used]


def _orphaned(content: StoredContent) -> ContentFlaw:
    return ContentFlaw("orphaned", content.sha256, size=content.size)


def _checked(span: timedelta) -> timedelta:
    if not isinstance(span, timedelta) or span < timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"how long something is kept is a timedelta from 0, not {span!r}")
    return span
