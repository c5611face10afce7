"""Removing memories or their oldest versions: into an archive first, then out of the database, as was decided."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import orjson

from mnemon import journal
from mnemon.clock import moment
from mnemon.encryption.envelope import is_sealed
from mnemon.encryption.sealing import Layout
from mnemon.errors import KeyUnavailable, TamperedValue
from mnemon.journal import Origin
from mnemon.memories.findable import Findable
from mnemon.memories.rows import COLUMNS, LAYOUT, named, stored
from mnemon.memories.rows import SQL as MEMORIES
from mnemon.memories.writing import entry_of
from mnemon.model import Content, RetentionAction
from mnemon.ports import Row, Store, Transaction
from mnemon.retention.archives import Archives
from mnemon.retention.rows import SQL, STANDS_FOR, lines_of, same
from mnemon.sql import Fragment
from mnemon.texts import text_of
from mnemon.tokens import counter
from mnemon.values import decode

_LOG = logging.getLogger("mnemon.retention")
_SUMMARY_TOKENS = 200
_VALUES = Layout(LAYOUT.table, COLUMNS, ("value",))


class _Changed(Exception):
    """A memory is not as it was when it was read."""

    def __init__(self, place: tuple[str, str]) -> None:
        super().__init__(place)
        self.place = place


class _Marked(NamedTuple):
    """What is to be done, and all versions of the memory as they were read."""

    action: RetentionAction
    history: list[Row]
    summary: str = ""
    """What is left in place of versions that are squashed."""

    @property
    def place(self) -> tuple[str, str]:
        return self.action.namespace, self.action.key

    @property
    def removed(self) -> list[dict[str, Any]]:
        rows = [named(row) for row in self.history]
        return [row for row in rows if row["version"] <= self.action.last]


class Removing:
    """Carries out actions. The caller has seen to it that the namespaces are open to whoever asks."""

    def __init__(self, store: Store, archives: Archives, findable: Findable) -> None:
        self._store = store
        self._archives = archives
        self._findable = findable

    async def remove(
        self, actions: Sequence[RetentionAction], origin: Origin, *, archive: bool
    ) -> tuple[list[RetentionAction], int | None]:
        """Do what was decided about memories of one namespace, in one transaction; the actions with what became of
        them, and the archive.

        What has changed since is left as it is.
        """
        marked = [await self._marked(action) for action in actions]
        outdated = {each.place for each in marked if not _stands(each)}
        number = None
        while todo := [each for each in marked if each.place not in outdated]:
            content = await self._archive(todo, origin) if archive else None
            try:
                number = await self._store.write(partial(self._remove_all, origin, todo, content))
                break
            except _Changed as change:
                outdated.add(change.place)
                if content is not None:
                    await self._archives.drop(content.sha256)
        done = [replace(each.action, status="outdated" if each.place in outdated else "applied") for each in marked]
        return done, number

    async def _marked(self, action: RetentionAction) -> _Marked:
        place = {"namespace": action.namespace, "key": action.key}
        marked = _Marked(action, await self._store.fetch(MEMORIES["history"], place))
        return marked._replace(summary=await self._summary(marked)) if action.squash else marked

    async def _summary(self, marked: _Marked) -> str:
        """The best of what the versions said that are to be removed.

        There is none of what cannot be opened, nor of what is encrypted if the summary would not be.
        """
        sealing, rows = self._findable.sealing, marked.removed
        try:
            await sealing.prepare([marked.action.namespace])
            if any(is_sealed(row["value"]) for row in rows) and not sealing.seals(marked.action.namespace):
                return ""
            opened = await sealing.opened(self._store.fetch, _VALUES, [stored(row) for row in rows])
        except (KeyUnavailable, TamperedValue) as error:
            _LOG.warning("versions of a memory are removed without a summary, as they cannot be read: %s", error)
            return ""
        return _summed([named(row) for row in opened])

    async def _archive(self, marked: Sequence[_Marked], origin: Origin) -> Content:
        """The content is durable when this returns; if no row refers to it in the end, it is cleaned up."""
        action = marked[0].action
        about = {"namespace": action.namespace, "policy": action.policy, "at": moment(origin.now).isoformat()}
        return await self._archives.put(about, lines_of([row for each in marked for row in each.removed]))

    # -- inside the transaction

    async def _remove_all(
        self, origin: Origin, marked: Sequence[_Marked], content: Content | None, tx: Transaction
    ) -> int | None:
        for each in marked:
            await self._hold(tx, each)
        number = None
        if content is not None:
            number = await self._note_archive(tx, origin, marked, content)
        for each in marked:
            await self._remove(tx, origin, each, number)
        return number

    async def _hold(self, tx: Transaction, marked: _Marked) -> None:
        """The memory is this transaction's alone until its end, if it is as it was."""
        place = {"namespace": marked.action.namespace, "key": marked.action.key}
        await tx.fetch_one(MEMORIES["latest_version"].fill(lock=self._store.dialect.row_lock), place)
        if not same(marked.history, await tx.fetch_all(MEMORIES["history"], place)):
            raise _Changed(marked.place)

    async def _note_archive(self, tx: Transaction, origin: Origin, marked: Sequence[_Marked], content: Content) -> int:
        action = marked[0].action
        written = [row["updated_at"] for each in marked for row in each.removed]
        row = {
            "kind": "memories", "namespace": action.namespace, "policy": action.policy,
            "sha256": content.sha256, "size": content.size, "memories": len(marked), "versions": len(written),
            "first_at": min(written), "last_at": max(written),
        }  # fmt: skip
        return await self._archives.note(tx, origin, row, [each.place for each in marked])

    async def _remove(self, tx: Transaction, origin: Origin, marked: _Marked, archive: int | None) -> None:
        action, rows = marked.action, marked.removed
        place = {"namespace": action.namespace, "key": action.key}
        first = 0 if action.is_whole else rows[0]["version"]
        these = Fragment("version > :first AND version <= :last", {"first": first, "last": action.last})
        await tx.execute(MEMORIES["purge"].where([these]), {**place, **these.params})
        await self._findable.erase(tx, [row["id"] for row in rows])
        if not action.is_whole:
            await tx.execute(SQL["stand_in"], await self._stand_in(tx, marked))
        if action.is_whole:
            await tx.execute(SQL["forget_uses"], place)
        told = {"policy": action.policy, "reason": action.reason, "versions": len(rows), "archive": archive}
        operation = "purge" if action.is_whole else "squash" if action.squash else "trim"
        await journal.record(tx, [entry_of(origin, operation, action.namespace, action.key, None, told)])

    async def _stand_in(self, tx: Transaction, marked: _Marked) -> Mapping[str, Any]:
        """The first of some versions, as it stands for all of them: with a summary, or with nothing but that."""
        rows, text = marked.removed, marked.summary
        about = {STANDS_FOR: rows[-1]["version"]}
        row = {**rows[0], "value": orjson.dumps(text or None).decode(), "is_deleted": not text}
        sealed = await self._findable.sealing.sealed(tx, _VALUES, row) if text else row
        return {**sealed, "metadata": orjson.dumps(about).decode()}


def _summed(rows: Sequence[Mapping[str, Any]]) -> str:
    """The best of what some versions said."""
    from mnemon.consolidation.extracts import extract  # noqa: PLC0415 - seldom needed
    from mnemon.consolidation.sources import Source  # noqa: PLC0415

    sources = [
        Source(str(row["version"]), text_of(decode(row["value"])), row["author"], moment(row["updated_at"]))
        for row in rows
        if not row["is_deleted"]
    ]
    text, _ = extract([each for each in sources if each.text.strip()], _SUMMARY_TOKENS, counter())
    return text


def _stands(marked: _Marked) -> bool:
    return bool(marked.history) and named(marked.history[-1])["version"] == marked.action.version
