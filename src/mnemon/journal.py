"""The journal: one row per change, written in the change's own transaction, safe to tail.

It is the only history there is. Audit reads it, the change feed tails it, consumers follow it.
An entry says what changed and never the content, so that an erasure leaves nothing behind here.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from mnemon.access import Access, under
from mnemon.clock import micros, moment
from mnemon.errors import InvalidInput
from mnemon.model import Change, Page
from mnemon.namespaces import check_label, check_prefix
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Row, Store, Transaction
from mnemon.sql import Fragment, among, equal, load, params_of
from mnemon.values import decode

_SQL = load("journal")
_BATCH = 500
_PATIENCE = 1.0  # seconds; a wake-up that got lost costs at most this
_LATEST = 2**63 - 1
_INDEXED = Fragment("entity NOT IN ('event', 'state')")  # so says the index


class Origin(NamedTuple):
    """Who makes a change, and for what; the same for all that one call changes."""

    now: int
    actor: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    task_id: str | None = None


def origin_of(
    access: Access,
    now: int,
    actor: str | None,
    task_id: str | None,
    user_id: str | None = None,
    session_id: str | None = None,
) -> Origin:
    """An origin whose names were checked; a principal acts in its own name, whatever it says."""
    named = access.actor(check_label("the actor's name", actor))
    return Origin(now, named, user_id, session_id, check_label("task_id", task_id))


def entry(
    origin: Origin,
    entity: str,
    entity_id: str,
    operation: str,
    *,
    namespace: str | None,
    version: int | None = None,
    payload: Mapping[str, Any] | None = None,
    shared: bool = False,
) -> dict[str, Any]:
    """A journal row, ready to be recorded; `shared` where it is not the user's own affair."""
    return {
        "at": origin.now,
        "actor": origin.actor,
        "entity": entity,
        "entity_id": entity_id,
        "operation": operation,
        "version": version,
        "namespace": namespace,
        "user_id": None if shared else origin.user_id,
        "session_id": origin.session_id,
        "task_id": origin.task_id,
        "payload": orjson.dumps(payload).decode() if payload else "{}",
    }


async def record(tx: Transaction, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write the entries of a change, in the transaction that makes it."""
    await tx.execute_many(_SQL["append"], entries)


async def record_one(tx: Transaction, row: Mapping[str, Any]) -> int:
    """Write one entry; its position."""
    (position,) = (await tx.fetch_each(_SQL["append_returning"], [row]))[0]
    return position


def match(
    *,
    actor: str | None = None,
    entity: str | None = None,
    entity_id: str | None = None,
    operation: str | None = None,
    session_id: str | None = None,
    task_id: str | None = None,
    namespace: str | None = None,
) -> list[Fragment]:
    """The conditions that a change must meet; what is None does not matter."""
    found = equal(
        actor=actor, entity=entity, entity_id=entity_id, operation=operation, session_id=session_id, task_id=task_id
    )
    if entity not in (None, "event", "state"):
        found.append(_INDEXED)
    if namespace is not None:
        found += _within(check_prefix(namespace, 10_000))
    return found


def match_any(entities: Sequence[str]) -> list[Fragment]:
    """The condition that a change is one of these entities'."""
    found = [among("entity", entities, "entity")]
    return found if {"event", "state"} & set(entities) else [*found, _INDEXED]


def _within(prefix: str) -> list[Fragment]:
    """At or below a prefix; the index has the first two segments, below which there is seldom much."""
    segments = prefix.split(":")
    if len(segments) == 1:
        return [under("namespace", [prefix], "within")]
    owner = equal(owner=":".join(segments[:2]))
    return owner if len(segments) == 2 else [*owner, under("namespace", [prefix], "within")]


class Journal:
    """Reading the journal: backwards as an audit, forwards as a feed."""

    def __init__(self, store: Store, access: Access) -> None:
        self._store = store
        self._access = access

    async def position(self) -> int:
        """The newest position that is safe to have read up to; 0 while nothing has changed."""
        horizon = await self._horizon()
        rows = await self._store.fetch(_SQL["last_position"], {})
        return min(horizon, rows[0][0]) if rows else 0

    async def read(self, after: int, limit: int = _BATCH, conditions: Sequence[Fragment] = ()) -> list[Change]:
        """The next changes after a position, oldest first."""
        horizon = await self._horizon()  # before the rows, and apart from them: see Dialect.horizon
        wanted = [*conditions, *self._access.journal()]
        params = {**params_of(wanted), "after": after, "horizon": horizon, "limit": limit}
        return self._shown(await self._store.fetch(_SQL["read"].where(wanted), params))

    async def changes(
        self, after: int | None = None, follow: bool = False, conditions: Sequence[Fragment] = ()
    ) -> AsyncIterator[Change]:
        """Every change after a position, from the first if None; `follow` goes on for ever."""
        position = _check_position(after)
        while True:
            ticket = self._store.ticket()
            reached = await self.position() if follow else 0
            batch = await self.read(position, conditions=conditions)
            for found in batch:
                position = found.position
                yield found
            if len(batch) < _BATCH:
                if not follow:
                    return
                position = max(position, reached)  # what nobody asked for need not be looked at again
                await self._store.wait(ticket, _PATIENCE)

    async def audit(
        self,
        conditions: Sequence[Fragment],
        since: datetime | None,
        until: datetime | None,
        limit: int,
        cursor: str | None,
    ) -> Page[Change]:
        """The newest changes first, a page at a time."""
        wanted = [*conditions, *self._access.journal()]
        check_limit(limit)
        if since or until:
            rows = await self._read_period(wanted, since, until, limit, cursor)
        else:
            (before,) = decode_cursor(cursor, "audit", (_LATEST,))
            params = {**params_of(wanted), "before": before, "limit": limit}
            rows = await self._store.fetch(_SQL["read_backwards"].where(wanted), params)
        found = tuple(self._shown(rows))
        if len(found) < limit:
            return Page(found)
        place = (micros(found[-1].at), found[-1].position) if since or until else (found[-1].position,)
        return Page(found, encode_cursor("period" if since or until else "audit", *place))

    async def _read_period(
        self, wanted: Sequence[Fragment], since: datetime | None, until: datetime | None, limit: int, cursor: str | None
    ) -> list[Row]:
        before_at, before = decode_cursor(cursor, "period", (_LATEST, _LATEST))
        params = {
            **params_of(wanted),
            "since": micros(since) if since else 0,
            "until": micros(until) if until else _LATEST,
            "before_at": before_at,
            "before": before,
            "limit": limit,
        }
        return await self._store.fetch(_SQL["read_period"].where(wanted), params)

    def _shown(self, rows: Sequence[Row]) -> list[Change]:
        """The changes; of what is shared, a principal learns what changed but not in whose session."""
        changes = [change(row) for row in rows]
        if self._access.principal is None:
            return changes
        return [
            replace(told, session_id=None, actor=None) if told.session_id and told.user_id is None else told
            for told in changes
        ]

    async def _horizon(self) -> int:
        return (await self._store.fetch(self._store.dialect.horizon, {}))[0][0]


def change(row: Row) -> Change:
    """A journal row as the feed and the audit show it."""
    (
        position, at, actor, entity, entity_id, operation, version,
        namespace, user_id, session_id, task_id, payload,
    ) = row  # fmt: skip
    return Change(
        position, moment(at), actor, entity, entity_id, operation, version,
        namespace, user_id, session_id, task_id, decode(payload),
    )  # fmt: skip


def _check_position(after: int | None) -> int:
    if after is None:
        return 0
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"a journal position is a whole number from 0, not {after!r}")
    return after
