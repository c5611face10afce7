"""Sessions: their life cycle, their logs and their state."""

from collections.abc import Mapping, Sequence
from typing import Any

from mnemon import eventlog, journal, state
from mnemon.access import Access
from mnemon.clock import Clock, moment, moment_or_none
from mnemon.encryption.envelope import is_sealed
from mnemon.encryption.keys import Fetch
from mnemon.encryption.sealing import Layout, Sealing
from mnemon.encryption.vault import Vault
from mnemon.errors import ConflictError, EventExists, InvalidStatus, InvalidTransition, SessionExists, SessionNotFound
from mnemon.eventlog import EventDraft, Window
from mnemon.journal import Origin, origin_of
from mnemon.model import Event, Page, Session, SessionStatus
from mnemon.namespaces import check_identifier
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Row, Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import equal, load, params_of
from mnemon.state import Owners, SessionRow, StateStore
from mnemon.values import decode, encode_metadata

_SQL = load("sessions")
_STATE = load("state")
_NEWEST = 2**63 - 1
_LAYOUT = Layout("sessions", SessionRow._fields)

TRANSITIONS: Mapping[SessionStatus, frozenset[SessionStatus]] = {
    SessionStatus.CREATED: frozenset({SessionStatus.ACTIVE, SessionStatus.TERMINATED}),
    SessionStatus.ACTIVE: frozenset({SessionStatus.PAUSED, SessionStatus.TERMINATED}),
    SessionStatus.PAUSED: frozenset({SessionStatus.ACTIVE, SessionStatus.TERMINATED}),
    SessionStatus.TERMINATED: frozenset({SessionStatus.ARCHIVED}),
    SessionStatus.ARCHIVED: frozenset(),
}
"""Which status may follow which. The first event makes a created session active."""

_AFTER_EVENT = {"created": "active", "active": "active", "paused": "paused"}


class SessionService:
    """Creates sessions, appends to their logs and keeps to their life cycle."""

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, access: Access, sealing: Sealing | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._sealing = sealing or Sealing()
        self._state = StateStore(store, clock, settings, access, self._sealing)
        lock = store.dialect.row_lock
        self._get = _SQL["get_session"].where(access.sessions("read")), params_of(access.sessions("read"))
        self._hold = _SQL["get_session"].where(access.sessions("write"), lock), params_of(access.sessions("write"))

    async def create_session(
        self,
        session_id: str,
        app_name: str,
        user_id: str,
        project_id: str | None = None,
        initial_state: Mapping[str, Any] | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
    ) -> Session:
        """Create a session in status `created`; `SessionExists` if the id is taken."""
        owners = Owners(
            check_identifier("session_id", session_id),
            check_identifier("app_name", app_name),
            check_identifier("user_id", user_id),
            None if project_id is None else check_identifier("project_id", project_id),
        )
        self._access.require_session(session_id, user_id, "write")
        delta = state.encode_delta(initial_state or {}, self._settings)
        text = encode_metadata(metadata, self._settings.max_value_bytes)
        origin = self._origin(owners, actor, None)
        params = {"id": session_id, "app_name": app_name, "user_id": user_id, "project_id": project_id}
        if self._sealing.is_active:
            await self._sealing.prepare_owners(session_id, app_name, user_id, project_id)

        async def unit(tx: Transaction) -> None:
            kept = await self._sealed_metadata(tx, owners, text)
            if not await tx.execute(_SQL["insert_session"], {**params, "metadata": kept, "now": origin.now}):
                raise SessionExists(f"session {session_id!r} exists already; choose another id")
            rows = state.rows_of(owners, delta, origin.now)
            await state.merge(tx, rows, self._access, self._vault(owners))
            entries = state.entries(origin, "merge", rows, own=True)
            await journal.record(tx, [_entry(origin, "create", session_id, 1), *entries])

        await self._store.write(unit)
        now = origin.now
        row = SessionRow(session_id, app_name, user_id, project_id, "created", text, 1, 0, 0, now, now, None, None)
        return _session(row, {key: decode(value) for key, value in delta})

    async def get_session(
        self, session_id: str, *, last: int | None = None, after: int | None = None
    ) -> Session | None:
        """The session with its merged state and its events, or None if there is none.

        `last` brings only the newest events, `after` only those after a sequence number;
        archived events are read by `events`.
        """
        window = Window(last, after)

        async def unit(tx: Transaction) -> Session | None:
            row = await self._find(tx, session_id)
            if row is None:
                return None
            values = await state.read_all(tx, row.owners, self._access, self._sealing)
            if is_sealed(row.metadata):
                [row] = await self._opened(tx.fetch_all, [row])
            return _session(row, values, await window.read(tx, session_id, self._sealing))

        return await self._store.read(unit, long=window.is_long)

    async def append_event(
        self,
        session_id: str,
        event: Mapping[str, Any],
        state_delta: Mapping[str, Any] | None = None,
        *,
        event_id: str | None = None,
        expected_version: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Event:
        """Append one event and merge its state delta, in one transaction.

        Idempotent by `event_id`, or by the event's own `"id"`: the same event again changes
        nothing, another event under a taken id is `EventExists`. With `expected_version`,
        `ConflictError` if the session has changed since.
        """
        draft = EventDraft(event, state_delta, event_id)
        [appended] = await self.append_events(
            session_id, [draft], expected_version=expected_version, actor=actor, task_id=task_id
        )
        return appended

    async def append_events(
        self,
        session_id: str,
        events: Sequence[Mapping[str, Any] | EventDraft],
        *,
        expected_version: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> list[Event]:
        """Append several events in order, all or none; see `append_event`."""
        drafts = [
            eventlog.encode_event(event if isinstance(event, EventDraft) else EventDraft(event), self._settings)
            for event in events
        ]
        named = [draft.id for draft in drafts if draft.id is not None]
        if len(set(named)) < len(named):
            raise EventExists("two events of one batch have the same id")
        if not drafts:
            return []
        now, actor, _, _, task_id = origin_of(self._access, self._clock.now(), actor, task_id)
        if self._sealing.is_active:
            await self._sealing.prepare_session(session_id)

        async def unit(tx: Transaction) -> list[Event]:
            row = await self._locked(tx, session_id)
            origin = Origin(now, actor, row.user_id, session_id, task_id)
            known = await eventlog.find_known(tx, session_id, drafts, self._sealing) if named else {}
            fresh = [draft for draft in drafts if draft.id not in known] if known else drafts
            if not fresh:
                return [known[draft.id] for draft in drafts if draft.id]
            _check_version(session_id, expected_version, row.version)
            if row.status not in _AFTER_EVENT:
                raise InvalidTransition(f"session {session_id!r} is {row.status} and takes no more events")
            written = await self._append(tx, row, fresh, origin)
            return _in_order(drafts, written, known) if known else written

        return await self._store.write(unit)

    async def events(
        self,
        session_id: str,
        *,
        last: int | None = None,
        after: int | None = None,
        limit: int | None = None,
        archived: bool = False,
    ) -> list[Event]:
        """The session's events in order: the `last` N, or those `after` a sequence number.

        Reads nothing else, however long the log is. `archived` brings the archived ones too.
        """
        window = Window(last, after) if limit is None else Window(last, after, check_limit(limit))
        if self._access.principal is None and not archived and not window.is_long:
            rows = await self._store.fetch(window.query, window.params(session_id))
            if rows:  # then there is such a session
                return await window.events(self._store.fetch, session_id, rows, self._sealing)

        async def unit(tx: Transaction) -> list[Event]:
            if await self._find(tx, session_id) is None:
                raise _not_found(session_id)
            read = window.read_with_archive if archived else window.read
            return await read(tx, session_id, self._sealing)

        return await self._store.read(unit, long=window.is_long)

    async def update_status(
        self,
        session_id: str,
        status: str,
        *,
        expected_version: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Move the session on; its new version. `TRANSITIONS` says what may follow what.

        The status that it has already changes nothing. `terminated` clears its `temp:` state.
        """
        target = _check_status(status)

        async def unit(tx: Transaction) -> int:
            row = await self._locked(tx, session_id)
            _check_version(session_id, expected_version, row.version)
            present = SessionStatus(row.status)
            if present is target:
                return row.version
            if target not in TRANSITIONS[present]:
                raise _bad_transition(session_id, present, target)
            origin = self._origin(row.owners, actor, task_id)
            version = await state.touch(tx, row, origin.now, status=target)
            await self._mark(tx, session_id, target, origin.now)
            moved = {"from": str(present), "to": str(target)}
            await journal.record(tx, [_entry(origin, "status", session_id, version, moved)])
            return version

        return await self._store.write(unit)

    async def update_metadata(
        self,
        session_id: str,
        metadata: Mapping[str, Any],
        *,
        expected_version: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Replace the session's metadata; its new version."""
        text = encode_metadata(metadata, self._settings.max_value_bytes)
        await self._sealing.prepare_session(session_id)

        async def unit(tx: Transaction) -> int:
            row = await self._locked(tx, session_id)
            _check_version(session_id, expected_version, row.version)
            origin = self._origin(row.owners, actor, task_id)
            version = await state.touch(tx, row, origin.now)
            kept = await self._sealed_metadata(tx, row.owners, text)
            await tx.execute(_SQL["set_metadata"], {"id": session_id, "metadata": kept})
            await journal.record(tx, [_entry(origin, "metadata", session_id, version)])
            return version

        return await self._store.write(unit)

    async def terminate_session(self, session_id: str, *, actor: str | None = None, task_id: str | None = None) -> None:
        """End the session and clear its `temp:` state; it takes no more events."""
        await self.update_status(session_id, SessionStatus.TERMINATED, actor=actor, task_id=task_id)

    async def delete_session(self, session_id: str, *, actor: str | None = None, task_id: str | None = None) -> None:
        """Delete the session, its log and its own state; its tasks stay, without a session."""

        async def unit(tx: Transaction) -> None:
            row = await self._locked(tx, session_id)
            await tx.execute(_SQL["delete_session"], {"id": session_id})
            for scope in ("temp", "session"):
                await tx.execute(_STATE["clear_namespace"], {"namespace": f"{scope}:{session_id}"})
            origin = self._origin(row.owners, actor, task_id)
            told = _entry(origin, "delete", session_id, row.version + 1, {"app_name": row.app_name})
            await journal.record(tx, [told])

        await self._store.write(unit)

    async def get_state(self, session_id: str, key: str) -> Any:
        """The value of a state key of any scope, or None."""
        return await self._state.get(key, session_id=session_id)

    async def set_state(
        self, session_id: str, key: str, value: Any, *, actor: str | None = None, task_id: str | None = None
    ) -> int:
        """Set a state key of any scope; its new version."""
        return await self._state.set(key, value, session_id=session_id, actor=actor, task_id=task_id)

    async def list_active_sessions(self, user_id: str | None = None, *, limit: int = 100) -> list[Session]:
        """The active sessions, the most recently used first; without state and events."""
        conditions = self._access.sessions("read")
        params = {"limit": check_limit(limit), "user_id": user_id, **params_of(conditions)}
        query = _SQL["list_active" if user_id is None else "list_active_of_user"]
        rows = await self._store.fetch(query.where(conditions), params)
        return [_session(row) for row in await self._opened(self._store.fetch, rows)]

    async def list_sessions(
        self,
        *,
        app_name: str | None = None,
        user_id: str | None = None,
        project_id: str | None = None,
        status: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Session]:
        """Sessions, the newest first, a page at a time; without state and events."""
        wanted = None if status is None else str(_check_status(status))
        exact = equal(app_name=app_name, user_id=user_id, project_id=project_id, status=wanted)
        conditions = [*exact, *self._access.sessions("read")]
        before, before_id = decode_cursor(cursor, "sessions", (_NEWEST, ""))
        params = {"limit": check_limit(limit), "before": before, "before_id": before_id, **params_of(conditions)}
        found = await self._store.fetch(_SQL["list_sessions"].where(conditions), params)
        rows = await self._opened(self._store.fetch, found)
        more = encode_cursor("sessions", rows[-1].created_at, rows[-1].id) if len(rows) == limit else None
        return Page(tuple(_session(row) for row in rows), more)

    async def _find(self, tx: Transaction, session_id: str) -> SessionRow | None:
        query, access = self._get
        row = await tx.fetch_one(query, {"id": check_identifier("session_id", session_id), **access})
        return SessionRow(*row) if row else None

    async def _locked(self, tx: Transaction, session_id: str) -> SessionRow:
        """The session's row, which nobody else can change until the transaction ends."""
        query, access = self._hold
        row = await tx.fetch_one(query, {"id": check_identifier("session_id", session_id), **access})
        if row is None:
            raise _not_found(session_id)
        return SessionRow(*row)

    async def _append(
        self, tx: Transaction, session: SessionRow, drafts: Sequence[eventlog.Encoded], origin: Origin
    ) -> list[Event]:
        """Write events, what they change and what the journal says of it."""
        session_id, version, last = session.id, session.version, session.event_count
        owners, vault = session.owners, self._vault(session.owners)
        await state.touch(tx, session, origin.now, status=_AFTER_EVENT[session.status], events=len(drafts))
        events: list[Event] = []
        rows: list[dict[str, Any]] = []
        changed: list[dict[str, Any]] = []
        entries: list[dict[str, Any]] = []
        for number, draft in enumerate(drafts, 1):
            delta = state.rows_of(owners, draft.delta, origin.now)
            keys = state.own_keys(delta)
            event, row, told = eventlog.write_up(session_id, last + number, version + number, draft, keys, origin)
            events.append(event)
            rows.append(row)
            entries.append(told)
            changed += delta
        written = rows if vault is None else await eventlog.sealed(tx, rows, self._sealing, self._scope(owners))
        await tx.execute_many(_SQL["insert_event"], written)
        if changed:
            await state.merge(tx, changed, self._access, vault)
            entries += state.entries(origin, "merge", changed, own=False)
        kept = self._settings.max_events_kept
        if kept is not None:
            entries += await eventlog.archive(tx, session_id, kept, last + len(drafts), session.archived_count, origin)
        await journal.record(tx, entries)
        return events

    def _vault(self, owners: Owners) -> Vault | None:
        return Vault(self._sealing, owners, self._store.dialect.row_lock) if self._sealing.is_active else None

    def _scope(self, owners: Owners) -> str | None:
        """The scope under which what belongs to a session is encrypted."""
        session_id, app_name, user_id, project_id = owners
        return self._sealing.session_scope(session_id or "", app_name or "", user_id or "", project_id)

    async def _sealed_metadata(self, tx: Transaction, owners: Owners, text: str) -> str:
        row = {"id": owners.session_id, "metadata": text}
        [sealed] = await self._sealing.sealed_in(tx, self._scope(owners), _LAYOUT, [row])
        return sealed["metadata"]

    async def _opened(self, fetch: Fetch, rows: Sequence[Row]) -> list[SessionRow]:
        """Rows of sessions, with their metadata as it was before it was encrypted."""
        return [SessionRow(*row) for row in await self._sealing.opened(fetch, _LAYOUT, rows)]

    async def _mark(self, tx: Transaction, session_id: str, status: SessionStatus, now: int) -> None:
        """What else comes with a status: a stamp, and the end of what was temporary."""
        if status is SessionStatus.TERMINATED:
            await tx.execute(_SQL["set_terminated"], {"id": session_id, "now": now})
            await tx.execute(_STATE["clear_namespace"], {"namespace": f"temp:{session_id}"})
        elif status is SessionStatus.ARCHIVED:
            await tx.execute(_SQL["set_archived"], {"id": session_id, "now": now})

    def _origin(self, owners: Owners, actor: str | None, task_id: str | None) -> Origin:
        return origin_of(self._access, self._clock.now(), actor, task_id, owners.user_id, owners.session_id)


def _entry(
    origin: Origin, operation: str, session_id: str, version: int, payload: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    namespace = f"session:{session_id}"
    return journal.entry(
        origin, "session", session_id, operation, namespace=namespace, version=version, payload=payload
    )


def _in_order(drafts: Sequence[eventlog.Encoded], written: Sequence[Event], known: dict[str, Event]) -> list[Event]:
    fresh = iter(written)
    return [known.get(draft.id or "") or next(fresh) for draft in drafts]


def _check_status(status: str) -> SessionStatus:
    try:
        return SessionStatus(status)
    except ValueError:
        raise InvalidStatus(f"{status!r} is not a status; use one of {', '.join(SessionStatus)}") from None


def _check_version(session_id: str, expected: int | None, present: int) -> None:
    if expected is not None and expected != present:
        raise ConflictError(f"session {session_id!r} has version {present}, not {expected}: read it again and retry")


def _bad_transition(session_id: str, present: SessionStatus, target: SessionStatus) -> InvalidTransition:
    allowed = ", ".join(sorted(TRANSITIONS[present])) or "nothing"
    return InvalidTransition(f"session {session_id!r} is {present} and cannot become {target}; allowed: {allowed}")


def _not_found(session_id: str) -> SessionNotFound:
    return SessionNotFound(f"no session {session_id!r}; create it with create_session")


def _session(row: SessionRow, values: dict[str, Any] | None = None, events: list[Event] | None = None) -> Session:
    return Session(
        row.id,
        row.app_name,
        row.user_id,
        row.project_id,
        SessionStatus(row.status),
        decode(row.metadata),
        row.version,
        row.event_count,
        row.archived_count,
        moment(row.created_at),
        moment(row.last_update_time),
        moment_or_none(row.terminated_at),
        moment_or_none(row.archived_at),
        values or {},
        events or [],
    )
