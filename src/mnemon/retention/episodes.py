"""Old episodes: out of the database into an archive, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from mnemon import journal
from mnemon.clock import moment
from mnemon.episodes.rows import SQL as EPISODES
from mnemon.episodes.rows import EpisodeRow, entry_of
from mnemon.journal import Origin
from mnemon.model import Content, RetentionAction
from mnemon.ports import Store, Transaction
from mnemon.retention.archives import Archives
from mnemon.retention.rows import SQL, read_episodes
from mnemon.sql import Fragment

_IN_USE = Fragment("sha256 <> ''")


class EpisodeRemoving:
    """Removes episodes that were consolidated, and brings them back as they were."""

    def __init__(self, store: Store, archives: Archives) -> None:
        self._store = store
        self._archives = archives

    async def remove(
        self, actions: Sequence[RetentionAction], origin: Origin, *, archive: bool
    ) -> tuple[list[RetentionAction], int | None]:
        """Remove episodes of one namespace, in one transaction; the actions with what became of them, and the archive.

        One that is to be consolidated again, or was deleted meanwhile, is left as it is.
        """
        rows = [row for action in actions for row in await self._found(int(action.key))]
        number = None
        while rows:
            content = await self._archive(actions[0], rows, origin) if archive else None
            left, number = await self._store.write(partial(self._remove, actions[0], rows, content, origin))
            if left == rows:
                break
            if content is not None:
                await self._archives.drop(content.sha256)
            rows = left
        gone = {row.id for row in rows}
        done = [replace(each, status="applied" if int(each.key) in gone else "outdated") for each in actions]
        return done, number

    async def restore(self, archive_id: int, content: bytes, origin: Origin) -> list[tuple[str, str, int]]:
        """Each episode of an archive, and how many of it came back: none, if it is there or was erased meanwhile."""
        found: list[tuple[str, str, int]] = []
        for row in read_episodes(content):
            restored = await self._store.write(partial(self._restore, archive_id, row, origin))
            found.append((row["namespace"], str(row["id"]), restored))
        return found

    async def _found(self, episode_id: int) -> list[EpisodeRow]:
        rows = await self._store.fetch(EPISODES["get_episode"].where([]), {"id": episode_id})
        return [row for row in (EpisodeRow(*each) for each in rows) if row.status == "consolidated"]

    async def _archive(self, action: RetentionAction, rows: Sequence[EpisodeRow], origin: Origin) -> Content:
        at = moment(origin.now).isoformat()
        about = {"kind": "episodes", "namespace": action.namespace, "policy": action.policy, "at": at}
        lines = [orjson.dumps(row._asdict(), option=orjson.OPT_APPEND_NEWLINE) for row in rows]
        return await self._archives.put(about, lines)

    async def _remove(
        self,
        action: RetentionAction,
        rows: list[EpisodeRow],
        content: Content | None,
        origin: Origin,
        tx: Transaction,
    ) -> tuple[list[EpisodeRow], int | None]:
        """Those that are as they were; only if all are, they are removed."""
        lock = self._store.dialect.row_lock
        held = [await tx.fetch_one(EPISODES["get_episode"].where([], lock), {"id": row.id}) for row in rows]
        same = [row for row, now in zip(rows, held, strict=True) if now is not None and tuple(now) == row]
        if same != rows:
            return same, None
        number = None
        if content is not None:
            number = await self._archives.note(tx, origin, _archive_row(action, rows, content), [])
        told = {"policy": action.policy, "reason": action.reason, "archive": number}
        for row in rows:
            await tx.execute(EPISODES["delete_episode"], {"id": row.id})
            await journal.record(tx, [entry_of(origin, "purge", row.namespace, row.id, **told)])
        return rows, number

    async def _restore(self, archive_id: int, row: Mapping[str, Any], origin: Origin, tx: Transaction) -> int:
        held = SQL["get_archive"].where([_IN_USE], self._store.dialect.row_lock)
        if await tx.fetch_one(held, {"id": archive_id}) is None:
            return 0
        if await tx.fetch_one(EPISODES["get_episode"].where([]), {"id": row["id"]}) is not None:
            return 0
        await tx.execute(SQL["restore_episode"], {**row, "restored_at": origin.now})
        await journal.record(tx, [entry_of(origin, "restore", row["namespace"], row["id"])])
        return 1


def _archive_row(action: RetentionAction, rows: Sequence[EpisodeRow], content: Content) -> dict[str, Any]:
    ended = [row.ended_at for row in rows]
    return {
        "kind": "episodes", "namespace": action.namespace, "policy": action.policy,
        "sha256": content.sha256, "size": content.size, "memories": len(rows), "versions": len(rows),
        "first_at": min(ended), "last_at": max(ended),
    }  # fmt: skip
