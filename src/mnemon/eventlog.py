"""A session's append-only log: checking, writing, reading and archiving events."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from mnemon import journal
from mnemon.building import builder
from mnemon.clock import moment
from mnemon.encryption.keys import Fetch
from mnemon.encryption.sealing import Layout, Sealing
from mnemon.errors import EventExists, InvalidIdentifier, InvalidInput
from mnemon.journal import Origin
from mnemon.model import Event
from mnemon.namespaces import check_key
from mnemon.ports import Row, Transaction
from mnemon.settings import Settings
from mnemon.sql import Query, load
from mnemon.state import encode_delta
from mnemon.values import decode, decode_all, encode_mapping

_SQL = load("sessions")
_LONGEST_ID = 256
_build = builder(Event)
_OURS = re.compile(r"#\d+$")
_UNBOUNDED = 2**31
_LAYOUT = Layout("events", ("sequence", "id", "body", "state_delta", "actor", "task_id", "created_at"))
SHORT_READ = 200
"""How many events may be read on the caller's own thread."""


class EventDraft(NamedTuple):
    """One event of a batch. An `id` makes appending it idempotent."""

    event: Mapping[str, Any]
    state_delta: Mapping[str, Any] | None = None
    id: str | None = None


class Encoded(NamedTuple):
    """An event that was checked and is ready to be written; `id` is None if it was given none."""

    id: str | None
    body: str
    delta: Sequence[tuple[str, str]] = ()
    kept_delta: str | None = None


def encode_event(draft: EventDraft, settings: Settings) -> Encoded:
    """Check an event; its id is the draft's, or else the event's own `"id"`."""
    event, given, name = draft
    body = encode_mapping("an event", event, settings.max_value_bytes)
    if name is None and isinstance(own := event.get("id"), str) and own:
        name = own
    if name is not None and _OURS.search(check_key("event_id", name, _LONGEST_ID)):
        raise InvalidIdentifier(f"event_id {name!r} ends in '#' and a number; such ids are made by Mnemon itself")
    if not given:
        return Encoded(name, body)
    delta = encode_delta(given, settings)
    # What is temporary must not outlive the session, so the log does not keep it.
    kept = {key: given[key] for key, _ in delta if not key.startswith("temp:")}
    return Encoded(name, body, delta, orjson.dumps(kept).decode())


async def find_known(tx: Transaction, session_id: str, drafts: Iterable[Encoded], sealing: Sealing) -> dict[str, Event]:
    """Those of the drafts that the log has already; `EventExists` if one has other content."""
    known: dict[str, Event] = {}
    for draft in drafts:
        if draft.id is None:
            continue
        found = await tx.fetch_one(_SQL["find_event"], {"session_id": session_id, "id": draft.id})
        if found is None:
            continue
        [row] = await sealing.opened(tx.fetch_all, _LAYOUT, [found], session_id=session_id)
        if not (_is_same(row[2], draft.body) and _is_same(row[3] or "null", draft.kept_delta or "null")):
            raise EventExists(f"event {draft.id!r} of session {session_id!r} exists with other content")
        [known[draft.id]] = _events(session_id, [row], decode_all([row[2]]))
    return known


def write_up(
    session_id: str, sequence: int, version: int, draft: Encoded, keys: Sequence[str], origin: Origin
) -> tuple[Event, dict[str, Any], dict[str, Any]]:
    """The event, its row, and its journal entry with the keys of the session's own state in its delta."""
    event_id = draft.id or _own_id(session_id, sequence)
    now, actor, _, _, task_id = origin
    delta = None if draft.kept_delta is None else decode(draft.kept_delta)
    event = _build(session_id, sequence, event_id, decode(draft.body), delta, actor, task_id, moment(now))
    row = {
        "session_id": session_id, "sequence": sequence, "id": draft.id, "body": draft.body,
        "state_delta": draft.kept_delta, "actor": actor, "task_id": task_id, "now": now,
    }  # fmt: skip
    payload: dict[str, Any] = {"sequence": sequence, "keys": keys} if keys else {"sequence": sequence}
    told = journal.entry(
        origin, "event", event_id, "append", namespace=f"session:{session_id}", version=version, payload=payload
    )
    return event, row, told


async def sealed(
    tx: Transaction, rows: Sequence[Mapping[str, Any]], sealing: Sealing, scope: str | None
) -> Sequence[Mapping[str, Any]]:
    """Rows of events as they are to be written: encrypted, if their session has a scope."""
    return await sealing.sealed_in(tx, scope, _LAYOUT, rows)


async def archive(
    tx: Transaction, session_id: str, kept: int, last: int, archived: int, origin: Origin
) -> list[dict[str, Any]]:
    """Move the oldest events away, a tenth of what is kept at a time; the journal entry for it."""
    if last - archived <= kept + kept // 10:
        return []
    params = {"session_id": session_id, "last": last - kept}
    for step in ("copy_to_archive", "drop_archived", "set_archived_count"):
        await tx.execute(_SQL[step], params)
    moved = {"first": archived + 1, "last": last - kept}
    namespace = f"session:{session_id}"
    return [journal.entry(origin, "session", session_id, "archive_events", namespace=namespace, payload=moved)]


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a log is wanted: the last N, or what comes after a sequence number."""

    last: int | None = None
    after: int | None = None
    limit: int = _UNBOUNDED

    def __post_init__(self) -> None:
        if self.last is not None and self.after is not None:
            raise InvalidInput("ask for the last events or for those after a sequence number, not both")
        if self.last is not None and self.limit != _UNBOUNDED:
            raise InvalidInput("`last` says how many events are wanted; `limit` goes with `after`")
        for name in ("last", "after"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
                raise InvalidInput(f"{name} must be a whole number from 0, not {value!r}")

    @property
    def is_long(self) -> bool:
        return (self.limit if self.last is None else self.last) > SHORT_READ

    @property
    def query(self) -> Query:
        """The one query that answers the window, as long as nothing archived is wanted."""
        return _SQL["events_after" if self.last is None else "last_events"]

    def params(self, session_id: str) -> dict[str, Any]:
        limit = self.limit if self.last is None else self.last
        return {"session_id": session_id, "after": self.after or 0, "limit": limit}

    async def events(self, fetch: Fetch, session_id: str, rows: list[Row], sealing: Sealing) -> list[Event]:
        """What `query` answered, in order."""
        return await _opened(fetch, session_id, rows if self.last is None else rows[::-1], sealing)

    async def read(self, tx: Transaction, session_id: str, sealing: Sealing) -> list[Event]:
        """The events of the window, in order."""
        rows = await tx.fetch_all(self.query, self.params(session_id))
        return await self.events(tx.fetch_all, session_id, rows, sealing)

    async def read_with_archive(self, tx: Transaction, session_id: str, sealing: Sealing) -> list[Event]:
        """The events of the window, in order, whether they were archived or not."""
        rows = await (self._read_last(tx, session_id) if self.last is not None else self._read_after(tx, session_id))
        return await _opened(tx.fetch_all, session_id, rows, sealing)

    async def _read_last(self, tx: Transaction, session_id: str) -> list[Row]:
        wanted = self.last or 0
        rows: list[Row] = []
        for source in ("last_events", "last_archived_events"):
            rows += await tx.fetch_all(_SQL[source], {"session_id": session_id, "limit": wanted - len(rows)})
        rows.reverse()
        return rows

    async def _read_after(self, tx: Transaction, session_id: str) -> list[Row]:
        rows: list[Row] = []
        for source in ("archived_events_after", "events_after"):
            params = {"session_id": session_id, "after": self.after or 0, "limit": self.limit - len(rows)}
            rows += await tx.fetch_all(_SQL[source], params)
        return rows


def _is_same(left: str, right: str) -> bool:
    """Whether two JSON texts say the same, in whatever order; to Python `1` would equal `true`."""
    return left == right or _in_key_order(left) == _in_key_order(right)


def _in_key_order(text: str) -> bytes:
    return orjson.dumps(decode(text), option=orjson.OPT_SORT_KEYS)


def _own_id(session_id: str, sequence: int) -> str:
    return f"{session_id}#{sequence}"


async def _opened(fetch: Fetch, session_id: str, rows: Sequence[Row], sealing: Sealing) -> list[Event]:
    """Rows as events. A body is an object, so that one which is a text is encrypted."""
    bodies = decode_all([row[2] for row in rows])
    if str in map(type, bodies):
        rows = await sealing.opened(fetch, _LAYOUT, rows, session_id=session_id)
        bodies = decode_all([row[2] for row in rows])
    return _events(session_id, rows, bodies)


def _events(session_id: str, rows: Sequence[Row], bodies: Sequence[Any]) -> list[Event]:
    deltas = decode_all([row[3] or "null" for row in rows])
    return [
        _build(session_id, sequence, event_id or _own_id(session_id, sequence), body, delta, actor, task_id, moment(at))
        for (sequence, event_id, _, _, actor, task_id, at), body, delta in zip(rows, bodies, deltas, strict=True)
    ]
