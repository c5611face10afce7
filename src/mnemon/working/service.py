"""Working memory: buffers that a session fills and workers drain, and scratchpads. The database has all of it."""

import math
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from mnemon import journal
from mnemon.access import Access
from mnemon.clock import Clock, moment
from mnemon.encryption.sealing import Sealing
from mnemon.errors import ConflictError, InvalidInput, InvalidTransition, KeyUnavailable, LeaseLost
from mnemon.journal import Journal, Origin, match, match_any
from mnemon.model import BufferStatus, Change, DrainedBatch, Page, Scratchpad, SessionStatus, WorkingItem
from mnemon.namespaces import check_identifier, check_key
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import CopyChange, Row, Runner, Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import Fragment, load, params_of
from mnemon.state import SessionRow
from mnemon.tokens import counter
from mnemon.values import decode, encode
from mnemon.working.covers import require_version
from mnemon.working.desk import Desk, entry_of, no_session, payload_of, place_of
from mnemon.working.mirror import Mirror
from mnemon.working.pruning import REMEMBERED, prune
from mnemon.working.rows import ItemRow, PadRow, is_live

_SQL = load("working")
_SESSIONS = load("sessions")
_OVER = frozenset({SessionStatus.TERMINATED, SessionStatus.ARCHIVED})
_COPIED = 500  # so many of the newest items are kept in a copy
_NOWHERE = -1
_USUAL = 50
_MICROS = 1_000_000
_LONGEST = 100 * 365 * 24 * 3600.0

CONVERSATION = "conversation"
"""The buffer that is meant if none is named."""


class _Draft(NamedTuple):
    body: str
    tokens: int


class WorkingMemory:
    """The buffers and scratchpads of sessions. Whoever may use a session may use those."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        runner: Runner,
        mirror: Mirror | None = None,
        sealing: Sealing | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._runner = runner
        self._mirror = mirror
        self._desk = Desk(store, clock, access, mirror, sealing)
        self._covers = self._desk.covers
        self._journal = Journal(store, access)

    # -- buffers

    async def append(
        self,
        session_id: str,
        values: Iterable[Any],
        *,
        buffer: str = CONVERSATION,
        ttl: float | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> list[WorkingItem]:
        """Append any number of values to a buffer, all or none; they are there to stay when this returns.

        `ttl` is in seconds; without it the setting `buffer_ttl` says how long they stay, unless they are drained.
        """
        if isinstance(values, str | bytes | dict):
            raise InvalidInput("append takes several values, as a list; put a single one in a list")
        name = self._check_name("the buffer's name", buffer)
        expires = self._until(ttl, self._settings.buffer_ttl)
        drafts = await self._drafts(list(values))
        if not drafts:
            return []
        await self._covers.prepare(session_id)

        async def unit(tx: Transaction) -> tuple[list[ItemRow], CopyChange]:
            session, origin = await self._session_to_write(tx, session_id, actor, task_id)
            params = {"session_id": session_id, "name": name, "count": len(drafts), "now": origin.now}
            [(last, base)] = await tx.fetch_each(_SQL["grow_buffer"], [params])
            rows = [
                ItemRow(last - len(drafts) + number, draft.body, draft.tokens, origin.actor, origin.now, expires)
                for number, draft in enumerate(drafts, 1)
            ]
            where = {"session_id": session_id, "name": name}
            kept = await self._covers.seal_items(tx, session, name, rows)
            await tx.execute_many(_SQL["insert_item"], [{**row._asdict(), **where} for row in kept])
            added = [row.copied for row in kept[-_COPIED:]] if self._mirror else []
            base = base if len(rows) <= _COPIED else _NOWHERE  # it would seem to be all that there is
            told = {"count": len(drafts)}
            return rows, await self._desk.note_buffer(tx, session, origin, name, "append", last, told, base, added, [])

        rows, change = await self._store.write(unit)
        await self._desk.copy([change])
        return [row.item for row in rows]

    async def recent(
        self, session_id: str, *, buffer: str = CONVERSATION, last: int | None = None, budget: int | None = None
    ) -> list[WorkingItem]:
        """The newest items of a buffer, the oldest of them first: at the most `last`, and `budget` tokens together.

        Without either, the last 50; with a budget alone, at the most 500. Items that a worker has drained but
        not acknowledged are still there.
        """
        name = self._check_name("the buffer's name", buffer)
        limit = check_limit(last) if last is not None else _USUAL if budget is None else _COPIED
        if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget < 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"a budget is a number of tokens from 0, not {budget!r}")
        session, position = await self._standing("at_buffer", session_id, name)
        rows = await self._newest(session, position, name, limit)
        if budget is not None:
            rows = rows[: _fitting(rows, budget)]
        return [row.item for row in reversed(rows)]

    async def buffers(self, session_id: str) -> list[BufferStatus]:
        """The buffers that a session has had, by name, and how much is in them now."""
        await self._session_to_read(session_id)
        params = {"session_id": session_id, "now": self._clock.now()}
        rows = await self._store.fetch(_SQL["list_buffers"], params)
        return [
            BufferStatus(session_id, name, items, tokens, last, moment(at)) for name, items, tokens, last, at in rows
        ]

    async def drain(
        self,
        session_id: str,
        *,
        buffer: str = CONVERSATION,
        limit: int = 100,
        lease: float = 60.0,
        actor: str | None = None,
    ) -> DrainedBatch | None:
        """Hand out the oldest items that nobody is at, for `lease` seconds; None if there are none.

        They stay in the buffer until the batch is acknowledged. If that does not happen in time, as the worker
        was killed, they are handed out again.
        """
        name = self._check_name("the buffer's name", buffer)
        until = self._until(lease, None)
        if until is None:
            raise InvalidInput("a lease has to run out some time, or a killed worker would keep its items for ever")
        params = {"session_id": session_id, "name": name, "limit": check_limit(limit)}
        token = self._clock.new_id()
        claim = {"claim": token, "until": until}

        async def unit(tx: Transaction) -> Sequence[ItemRow]:
            session = await self._desk.find(tx, session_id, "write")
            if await self._desk.hold(tx, params) is None:
                return []
            free = {**params, "now": self._clock.now()}
            rows = [ItemRow(*row) for row in await tx.fetch_all(_SQL["free_items"], free)]
            if rows:
                chosen = self._desk.chosen(rows)
                await tx.execute(_SQL["claim_items"].where([chosen]), {**params, **claim, **chosen.params})
                await self._note_claim(tx, session, name, "drain", len(rows), actor)
            return await self._covers.open_items(tx.fetch_all, session_id, name, rows)

        rows = await self._store.write(unit)
        if not rows:
            return None
        items = tuple(row.item for row in rows)
        return DrainedBatch(session_id, name, token, items, moment(until))

    async def acknowledge(self, batch: DrainedBatch, *, actor: str | None = None, task_id: str | None = None) -> None:
        """The batch was dealt with: remove its items. `LeaseLost`, having removed nothing, if it is another's now."""
        params = {"session_id": batch.session_id, "name": batch.buffer, "claim": batch.token}

        async def unit(tx: Transaction) -> CopyChange:
            session = await self._desk.find(tx, batch.session_id, "write")
            origin = self._desk.origin(session, actor, task_id)
            held = await self._desk.hold(tx, params)
            removed = [row[0] for row in await tx.fetch_all(_SQL["remove_claimed"], params)]
            if held is None or len(removed) != len(batch):
                raise LeaseLost(
                    f"{len(batch)} items of buffer {batch.buffer!r} were handed out, and {len(removed)} of them are "
                    "still this worker's; nothing was removed"
                )
            return await self._desk.note_removal(tx, session, origin, batch.buffer, held, removed)

        change = await self._store.write(unit)
        await self._desk.copy([change])

    async def release(self, batch: DrainedBatch, *, actor: str | None = None) -> None:
        """Let another worker have the batch at once, rather than when its lease runs out."""
        params = {"session_id": batch.session_id, "name": batch.buffer, "claim": batch.token}

        async def unit(tx: Transaction) -> None:
            session = await self._desk.find(tx, batch.session_id, "write")
            count = await tx.execute(_SQL["release_claimed"], params)
            if count:
                await self._note_claim(tx, session, batch.buffer, "release", count, actor)

        await self._store.write(unit)

    # -- scratchpads

    async def get(self, session_id: str, name: str) -> Scratchpad | None:
        """The scratchpad; None if it was never set, was deleted or has expired."""
        self._check_name("the scratchpad's name", name)
        session, stands = await self._standing("at_pad", session_id, name)
        now = self._clock.now()
        place = place_of(session, "pad", name)
        found = await self._mirror.read(place, stands, 1) if self._mirror else None
        if found:
            with suppress(KeyUnavailable):  # as where the key was dropped since; the database has it by another
                return await self._pad(session_id, PadRow(*decode(found.entries[0])), now)
        rows = await self._store.fetch(_SQL["get_pad"], {"session_id": session_id, "name": name})
        if not rows:
            return None
        *values, position = rows[0]
        row = PadRow(*values)
        if self._mirror:
            await self._mirror.fill(place, position, [row.copied], whole=True)
        return await self._pad(session_id, row, now)

    async def set(
        self,
        session_id: str,
        name: str,
        value: Any,
        *,
        expected_version: int | None = None,
        ttl: float | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Scratchpad:
        """Set a scratchpad; with `expected_version` only if it has that version, 0 if it must not be there.

        `ttl` is in seconds from now; without it the setting `scratchpad_ttl` says how long it stays.
        """
        self._check_name("the scratchpad's name", name)
        text = encode("the scratchpad's value", value, self._settings.max_value_bytes)
        expires = self._until(ttl, self._settings.scratchpad_ttl)
        _check_version(expected_version)
        query = "set_pad" if expected_version is None else "replace_pad" if expected_version else "create_pad"
        await self._covers.prepare(session_id)

        async def unit(tx: Transaction) -> tuple[PadRow, CopyChange]:
            session, origin = await self._session_to_write(tx, session_id, actor, task_id)
            params = {
                "session_id": session_id, "name": name, "value": text, "updated_by": origin.actor, "now": origin.now,
                "expires_at": expires, "expected": expected_version,
            }  # fmt: skip
            kept, foretold = await self._covers.next_pad(tx, session, params)
            written = await tx.fetch_one(_SQL[query], {**params, "value": kept})
            if written is None:
                raise await self._conflict(tx, session_id, name, expected_version or 0, origin.now)
            version, base = written
            require_version(version, foretold)
            row = PadRow(name, text, version, origin.actor, origin.now, expires)
            return row, await self._note_pad(tx, session, origin, "set", row._replace(value=kept), base)

        row, change = await self._store.write(unit)
        await self._desk.copy([change])
        pad = row.pad(row.updated_at)
        assert pad is not None
        return pad

    async def delete(
        self,
        session_id: str,
        name: str,
        *,
        expected_version: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> bool:
        """Delete a scratchpad; whether there was one."""
        self._check_name("the scratchpad's name", name)
        _check_version(expected_version)
        only = [] if expected_version is None else [Fragment("version = :expected", {"expected": expected_version})]

        async def unit(tx: Transaction) -> CopyChange | None:
            session, origin = await self._session_to_write(tx, session_id, actor, task_id)
            params = {
                "session_id": session_id, "name": name, "updated_by": origin.actor, "now": origin.now,
                "later": origin.now + REMEMBERED,
            }  # fmt: skip
            deleted = await tx.fetch_one(_SQL["delete_pad"].where(only), {**params, **params_of(only)})
            if deleted is None:
                if expected_version is not None:
                    raise await self._conflict(tx, session_id, name, expected_version, origin.now)
                return None
            row = PadRow(name, None, deleted[0], origin.actor, origin.now, None)
            return await self._note_pad(tx, session, origin, "delete", row, deleted[1])

        change = await self._store.write(unit)
        if change:
            await self._desk.copy([change])
        return change is not None

    async def scratchpads(self, session_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Scratchpad]:
        """The session's scratchpads by name, a page at a time."""
        (after,) = decode_cursor(cursor, "scratchpads", ("",))
        await self._session_to_read(session_id)
        now = self._clock.now()
        params = {"session_id": session_id, "after": after, "limit": check_limit(limit), "now": now}
        rows = [PadRow(*row[:-1]) for row in await self._store.fetch(_SQL["list_pads"], params)]
        more = encode_cursor("scratchpads", rows[-1].name) if len(rows) == limit else None
        pads = [row.pad(now) for row in await self._covers.open_pads(self._store.fetch, session_id, rows)]
        return Page(tuple(pad for pad in pads if pad), more)

    # -- both

    async def follow(self, session_id: str, *, after: int | None = None) -> AsyncIterator[Change]:
        """What changes in the session's working memory, as it happens, for ever; from a journal position, or now.

        With Redis, a change of another process is heard of at once.
        """
        start = await self._journal.position() if after is None else after
        await self._session_to_read(session_id)
        if self._mirror:
            await self._mirror.listen(self._store.wake)
        wanted = [*match_any(["buffer", "scratchpad"]), *match(session_id=session_id)]
        async for change in self._journal.changes(start, True, wanted):  # pragma: no branch - it never ends
            yield change

    async def prune(self) -> int:
        """Remove what has expired, which nobody could read any more; how many items and scratchpads.

        The background does so every minute.
        """
        self._access.require("", "admin")
        return await prune(self._store, self._clock.now())

    # -- reading

    async def _pad(self, session_id: str, row: PadRow, now: int) -> Scratchpad | None:
        [opened] = await self._covers.open_pads(self._store.fetch, session_id, [row])
        return opened.pad(now)

    async def _newest(self, session: SessionRow, position: int | None, name: str, limit: int) -> Sequence[ItemRow]:
        """The newest first; from the copy if that has them."""
        now = self._clock.now()
        place = place_of(session, "buffer", name)
        copied = self._mirror if limit <= _COPIED else None
        found = await copied.read(place, position, limit) if copied else None
        if found:
            rows = [ItemRow(*decode(text)) for text in found.entries]
            live = [row for row in rows if is_live(row, now)]
            if len(live) == limit or (found.is_whole and len(rows) < limit):
                with suppress(KeyUnavailable):
                    return await self._covers.open_items(self._store.fetch, session.id, name, live)
        fills = copied is not None and copied.is_used
        params = {"session_id": session.id, "name": name, "now": now, "limit": _COPIED if fills else limit}

        async def unit(tx: Transaction) -> tuple[Row | None, list[Row]]:
            return await tx.fetch_one(_SQL["get_buffer"].where([]), params), await tx.fetch_all(
                _SQL["newest_items"], params
            )

        head, fetched = await self._store.read(unit)
        rows = [ItemRow(*row) for row in fetched]
        if copied and fills and head:
            await copied.fill(place, head[1], [row.copied for row in rows], whole=len(rows) < _COPIED)
        return await self._covers.open_items(self._store.fetch, session.id, name, rows[:limit])

    async def _standing(self, query: str, session_id: str, name: str) -> tuple[SessionRow, int | None]:
        """The session, and the journal position where something of it stands, which a copy has to stand at too."""
        conditions = self._access.sessions("read")
        params = {"id": check_identifier("session_id", session_id), "name": name, **params_of(conditions)}
        rows = await self._store.fetch(_SQL[query].where(conditions), params)
        if not rows:
            raise no_session(session_id)
        *values, position = rows[0]
        return SessionRow(*values), position

    async def _session_to_read(self, session_id: str) -> SessionRow:
        conditions = self._access.sessions("read")
        params = {"id": check_identifier("session_id", session_id), **params_of(conditions)}
        rows = await self._store.fetch(_SESSIONS["get_session"].where(conditions), params)
        if not rows:
            raise no_session(session_id)
        return SessionRow(*rows[0])

    # -- writing

    async def _session_to_write(
        self, tx: Transaction, session_id: str, actor: str | None, task_id: str | None
    ) -> tuple[SessionRow, Origin]:
        session = await self._desk.find(tx, session_id, "write")
        if session.status in _OVER:
            raise InvalidTransition(
                f"session {session_id!r} is {session.status}; its working memory can only be drained"
            )
        return session, self._desk.origin(session, actor, task_id)

    async def _note_claim(
        self, tx: Transaction, session: SessionRow, name: str, operation: str, count: int, actor: str | None
    ) -> None:
        """Journal who is at items; nothing that is read changes by it."""
        payload = payload_of(session, name, count=count)
        entry = entry_of(self._desk.origin(session, actor, None), "buffer", name, operation, None, payload)
        await journal.record(tx, [entry])

    async def _note_pad(
        self, tx: Transaction, session: SessionRow, origin: Origin, operation: str, row: PadRow, base: int
    ) -> CopyChange:
        entry = entry_of(origin, "scratchpad", row.name, operation, row.version, payload_of(session, row.name))
        position = await journal.record_one(tx, entry)
        await tx.execute(_SQL["move_pad"], {"session_id": session.id, "name": row.name, "position": position})
        return CopyChange(place_of(session, "pad", row.name), base, position, [row.copied])

    async def _conflict(self, tx: Transaction, session_id: str, name: str, expected: int, now: int) -> ConflictError:
        row = await tx.fetch_one(_SQL["get_pad"], {"session_id": session_id, "name": name})
        pad = PadRow(*row[:-1]).pad(now) if row else None
        present = f"version {pad.version}" if pad else "not set"
        return ConflictError(f"scratchpad {name!r} is {present}, not version {expected}: read it again and retry")

    # -- checking

    async def _drafts(self, values: Sequence[Any]) -> list[_Draft]:
        bodies = [encode("an item's value", value, self._settings.max_value_bytes) for value in values]

        def count() -> list[_Draft]:
            counting = counter()
            pairs = zip(values, bodies, strict=True)
            return [_Draft(body, counting.count(v if isinstance(v, str) else body)) for v, body in pairs]

        return await self._runner.aside(count)

    def _check_name(self, what: str, name: str) -> str:
        return check_key(what, name, self._settings.max_key_length)

    def _until(self, ttl: float | None, default: float | None) -> int | None:
        seconds = default if ttl is None else ttl
        if seconds is None or seconds == math.inf:
            return None
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds <= _LONGEST:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"a number of seconds above 0 is needed, not {seconds!r}")
        return self._clock.now() + int(seconds * _MICROS)


def _check_version(expected: object) -> None:
    if expected is not None and (
        not isinstance(expected, int) or isinstance(expected, bool) or not 0 <= expected < 2**63
    ):
        raise InvalidInput(f"a version is a whole number from 0, not {expected!r:.80}")


def _fitting(rows: Sequence[ItemRow], budget: int) -> int:
    """How many of the first fit into the budget together."""
    for number, row in enumerate(rows):
        budget -= row.tokens
        if budget < 0:
            return number
    return len(rows)
