"""Conversations can be recalled: what the events of sessions say becomes episodic memories.

The consumer `conversations` reads each event of the sessions that the setting `remember_events` covers and puts
its text under `session:<id>`, with the key `event-<sequence>`. Putting the same again changes nothing, so
it can be killed, copied or rewound. When a session is deleted its memories are deleted too, softly, as every memory is:
`purge_memory`, or `forget` with `erase`, erases them for good.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mnemon.clock import Clock, moment
from mnemon.consumers import Consumer
from mnemon.encryption.sealing import Layout
from mnemon.errors import InvalidInput
from mnemon.indexing.duties import AT_ONCE, LEASE, Duty, at_places
from mnemon.journal import Journal, Origin
from mnemon.memories.writing import Writing
from mnemon.model import Change, MemoryDraft, MemoryType, Placement, Provenance
from mnemon.namespaces import check_label, check_prefix, covers
from mnemon.ports import Row, Store, Transaction, Unit
from mnemon.sql import Fragment, among, chunks, load, params_of
from mnemon.texts import event_author, event_text
from mnemon.values import decode

NAME = "conversations"

_LOG = logging.getLogger("mnemon.indexing")
_SQL = load("indexing")
_BATCH = 2 * AT_ONCE  # events at a time: nearly each of them is work
_KEY = "event-"
_AFTER_KEYS = "event."  # no key of an event sorts after it
_LATEST = 2**63 - 1
_LAYOUT = Layout("events", ("session_id", "sequence", "id", "body", "actor", "task_id", "created_at"), ("body",))


class _Session(NamedTuple):
    id: str
    app_name: str
    user_id: str
    project_id: str | None
    created_at: int
    event_count: int

    def is_covered(self, prefixes: Iterable[str]) -> bool:
        names = [f"session:{self.id}", f"user:{self.user_id}", f"app:{self.app_name}", f"project:{self.project_id}"]
        known = names if self.project_id is not None else names[:-1]
        return any(covers(prefix, name) for prefix in prefixes for name in known)


@dataclass(frozen=True, slots=True)
class _Said:
    """The memory of an event, and who made the event for what."""

    draft: MemoryDraft
    origin: Origin


class Conversations:
    """Makes memories of what events say."""

    def __init__(self, store: Store, journal: Journal, clock: Clock, writing: Writing, prefixes: Sequence[str]) -> None:
        self._store = store
        self._clock = clock
        self._writing = writing
        self._prefixes = [check_prefix(prefix, 10_000) for prefix in prefixes]
        self._consumer = Consumer(
            store, journal, clock, NAME, entities=("event", "session"), batch=_BATCH, lease=LEASE, keep_lease=False
        )

    @property
    def duty(self) -> Duty:
        return Duty(self._consumer, lambda: self._consumer.prepare(self._prepare))

    async def _prepare(self, changes: Sequence[Change]) -> Unit[object]:
        """Do all but the last of it, each piece in a transaction of its own; the last goes with the position."""
        sessions = await self._sessions(changes)
        deletions = {c.entity_id: c for c in changes if c.entity == "session" and c.operation == "delete"}
        units = [unit for deletion in deletions.values() for unit in await self._deleting(deletion, sessions)]
        said = [each for row in await self._events(changes, sessions) for each in self._read(row, sessions)]
        for piece in chunks(await self._wanted(said), AT_ONCE):
            units += await self._putting(piece)
        for unit in units[:-1]:
            await self._store.write(unit)
        return units[-1] if units else _nothing

    async def _sessions(self, changes: Sequence[Change]) -> dict[str, _Session]:
        """The sessions of the changes that are there, by id."""
        ids = list(dict.fromkeys(change.session_id or change.entity_id for change in changes))
        named = among("id", ids, "id")
        rows = await self._store.fetch(_SQL["sessions_named"].where([named]), named.params)
        return {row[0]: _Session(*row) for row in rows}

    # -- what was said

    async def _events(self, changes: Sequence[Change], sessions: dict[str, _Session]) -> list[Row]:
        """The events that were appended and are to be remembered, whether they were archived since or not."""
        wanted = {
            (change.session_id or "", int(change.payload["sequence"]))
            for change in changes
            if change.entity == "event" and change.operation == "append"
        }
        wanted = {place for place in wanted if self._covers(sessions.get(place[0]))}
        found: list[Row] = []
        for table in ("events_at", "archived_events_at"):
            missing = wanted - {(row[0], row[1]) for row in found}
            if missing:
                stretches = _stretches(missing)
                rows = await self._store.fetch(_SQL[table].where([stretches]), stretches.params)
                opened = await self._writing.sealing.opened(self._store.fetch, _LAYOUT, rows)
                found += [row for row in opened if (row[0], row[1]) in missing]
        return sorted(found, key=lambda row: (row[0], row[1]))

    def _covers(self, session: _Session | None) -> bool:
        return session is not None and session.is_covered(self._prefixes)

    def _read(self, row: Row, sessions: dict[str, _Session]) -> list[_Said]:
        session_id, sequence, event_id, body, actor, task_id, at = row
        event = decode(body)
        text = event_text(event)
        if not text:
            return []
        draft = MemoryDraft(
            text,
            f"session:{session_id}",
            f"{_KEY}{sequence:010}",
            MemoryType.EPISODIC,
            provenance=Provenance(
                session_id,
                _label(event_id or f"{session_id}#{sequence}"),
                _label(event_author(event, actor)),
            ),
            placement=Placement(session_id, sequence, moment(at)),
        )
        return [_Said(draft, Origin(self._clock.now(), actor, sessions[session_id].user_id, session_id, task_id))]

    async def _wanted(self, said: Sequence[_Said]) -> Sequence[_Said]:
        """All but those that somebody has deleted since: following the journal again must not bring them back."""
        deleted: set[Row] = set()
        for piece in chunks(said):
            there = at_places([(each.draft.namespace, each.draft.key or "") for each in piece])
            deleted.update(await self._store.fetch(_SQL["deleted_events"].where([there]), there.params))
        gone = {(namespace, key, moment(at)) for namespace, key, at in deleted if at is not None}
        return [each for each in said if not gone or _place(each) not in gone]

    async def _putting(self, said: Sequence[_Said]) -> list[Unit[object]]:
        """Units of work, one for each of those who said something and what for."""
        groups: dict[Origin, list[MemoryDraft]] = {}
        for each in said:
            groups.setdefault(each.origin._replace(now=said[0].origin.now), []).append(each.draft)
        units: list[Unit[object]] = []
        for origin, drafts in groups.items():
            try:
                units.append(await self._writing.putting(drafts, origin))
            except InvalidInput:
                units += await self._putting_one_by_one(drafts, origin)
        return [_all(units)]

    async def _putting_one_by_one(self, drafts: Sequence[MemoryDraft], origin: Origin) -> list[Unit[object]]:
        """What cannot be a memory, as where a setting allows less than it did, is left out."""
        units: list[Unit[object]] = []
        for draft in drafts:
            try:
                units.append(await self._writing.putting([draft], origin))
            except InvalidInput as error:
                _LOG.warning("%s of %s cannot be remembered: %s", draft.key, draft.namespace, error)
        return units

    # -- what was taken back

    async def _deleting(self, deletion: Change, sessions: dict[str, _Session]) -> list[Unit[object]]:
        """Units of work that delete what is left of a session; all but the last are done already.

        If there is a session of that name again, what is left is older than it or beyond its log. The
        deletion names no event, as there is none any more.
        """
        session = sessions.get(deletion.entity_id)
        params = {
            "namespace": f"session:{deletion.entity_id}",
            "thread": deletion.entity_id,
            "first": _KEY,
            "end": _AFTER_KEYS,
            "created_at": session.created_at if session else _LATEST,
            "event_count": session.event_count if session else 0,
            "limit": AT_ONCE,
        }
        origin = Origin(self._clock.now(), deletion.actor, deletion.user_id, deletion.entity_id, deletion.task_id)
        while rows := await self._store.fetch(_SQL["left_over_events"], params):
            unit = self._writing.deleting([(row[0], row[1]) for row in rows], origin, event_id=None)
            if len(rows) < AT_ONCE:
                return [unit]
            await self._store.write(unit)
        return []


def _stretches(places: Iterable[tuple[str, int]]) -> Fragment:
    """The condition that an event is between the first and the last of those wanted of its session."""
    ends: dict[str, tuple[int, int]] = {}
    for session_id, sequence in places:
        first, last = ends.get(session_id, (sequence, sequence))
        ends[session_id] = (min(first, sequence), max(last, sequence))
    parts = [
        Fragment(
            f"session_id = :in{number} AND sequence >= :from{number} AND sequence <= :to{number}",
            {f"in{number}": session_id, f"from{number}": first, f"to{number}": last},
        )
        for number, (session_id, (first, last)) in enumerate(ends.items())
    ]
    return Fragment(" OR ".join(f"({part.text})" for part in parts), params_of(parts))


def _place(said: _Said) -> tuple[str, str | None, object]:
    at = said.draft.placement.occurred_at if said.draft.placement else None
    return said.draft.namespace, said.draft.key, at


def _label(name: str | None) -> str | None:
    """A name, if a memory can have it; events may carry names of any kind."""
    try:
        return check_label("a name", name or None)
    except InvalidInput:
        return None


def _all(units: Sequence[Unit[object]]) -> Unit[object]:
    async def unit(tx: Transaction) -> None:
        for each in units:
            await each(tx)

    return unit


async def _nothing(tx: Transaction) -> None:
    return
