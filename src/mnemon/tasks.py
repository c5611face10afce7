"""Tasks: units of work inside a session, which outlive it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mnemon import journal
from mnemon.access import Access
from mnemon.clock import Clock, moment
from mnemon.encryption.keys import Fetch
from mnemon.encryption.sealing import Layout, Sealing
from mnemon.errors import (
    ConflictError,
    InvalidStatus,
    InvalidTransition,
    SessionNotFound,
    TaskExists,
    TaskNotFound,
)
from mnemon.journal import Origin, origin_of
from mnemon.model import Level, Page, Task, TaskStatus
from mnemon.namespaces import EVERYTHING, check_identifier, check_key
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import Fragment, equal, load, params_of
from mnemon.state import SessionRow
from mnemon.values import check_text, decode, encode

_SQL = load("tasks")
_SESSIONS = load("sessions")

TRANSITIONS: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    TaskStatus.PENDING: frozenset({TaskStatus.RUNNING, TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED}),
    TaskStatus.RUNNING: frozenset({TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.PENDING}),
    TaskStatus.FAILED: frozenset({TaskStatus.PENDING}),
    TaskStatus.COMPLETED: frozenset(),
    TaskStatus.CANCELLED: frozenset(),
}
"""Which status may follow which. Back to pending is another try."""


class _Row(NamedTuple):
    """A row of `tasks`, as every query selects it."""

    id: str
    session_id: str | None
    parent_id: str | None
    name: str
    status: str
    input: str
    result: str
    error: str | None
    version: int
    created_at: int
    updated_at: int


_LAYOUT = Layout("tasks", _Row._fields)
_CHANGED = Layout("tasks", _Row._fields, ("result", "error"))  # the input stays as it was written


class TaskService:
    """Creates tasks and keeps their status, input and result."""

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, access: Access, sealing: Sealing | None = None
    ) -> None:
        self._sealing = sealing or Sealing()
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access

    async def create(
        self,
        name: str,
        *,
        task_id: str | None = None,
        session_id: str | None = None,
        parent_id: str | None = None,
        input: Any = None,
        actor: str | None = None,
    ) -> Task:
        """Create a pending task; its session and its parent must exist."""
        identifier = self._clock.new_id() if task_id is None else check_identifier("task_id", task_id)
        check_key("the task's name", name, self._settings.max_key_length)
        text = encode("the task's input", input, self._settings.max_value_bytes)
        if session_id is None:  # then the task belongs to nobody in particular
            self._access.require(EVERYTHING, "write")
        now = self._clock.now()
        row = _Row(identifier, session_id, parent_id, name, "pending", text, "null", None, 1, now, now)
        await self._prepare(session_id)

        async def unit(tx: Transaction) -> None:
            origin, session = await self._origin(tx, now, actor, session_id, identifier)
            if parent_id is not None and await self._find(tx, parent_id, "read") is None:
                raise _not_found(parent_id)
            if not await tx.execute(_SQL["insert_task"], await self._sealed(tx, session, row)):
                raise TaskExists(f"task {identifier!r} exists already; choose another id")
            await journal.record(tx, [_entry(origin, "create", 1, {"parent_id": parent_id})])

        await self._store.write(unit)
        return _task(row)

    async def get(self, task_id: str) -> Task | None:
        """The task, or None if there is none."""

        async def unit(tx: Transaction) -> Task | None:
            row = await self._find(tx, task_id, "read")
            return (await self._tasks(tx.fetch_all, [row]))[0] if row else None

        return await self._store.read(unit)

    async def update(
        self,
        task_id: str,
        status: str,
        *,
        result: Any = None,
        error: str | None = None,
        expected_version: int | None = None,
        actor: str | None = None,
    ) -> Task:
        """Move the task on, with its result or error; `TRANSITIONS` says what may follow what."""
        target = _check_status(status)
        text = encode("the task's result", result, self._settings.max_value_bytes)
        if error is not None:
            check_text("the task's error", error, self._settings.max_value_bytes)
        now = self._clock.now()

        async def unit(tx: Transaction) -> Task:
            row = await self._locked(tx, task_id)
            present = TaskStatus(row.status)
            if expected_version not in (None, row.version):
                raise ConflictError(
                    f"task {task_id!r} has version {row.version}, not {expected_version}: read it again"
                )
            if target not in TRANSITIONS[present]:
                raise InvalidTransition(f"task {task_id!r} is {present} and cannot become {target}")
            changed = row._replace(
                status=str(target), result=text, error=error, version=row.version + 1, updated_at=now
            )
            origin, session = await self._origin(tx, now, actor, row.session_id, task_id)
            await tx.execute(_SQL["set_task"], await self._sealed(tx, session, changed, row))
            moved = {"from": str(present), "to": str(target)}
            await journal.record(tx, [_entry(origin, "status", changed.version, moved)])
            return (await self._tasks(tx.fetch_all, [changed]))[0]

        return await self._store.write(unit)

    async def delete(self, task_id: str, *, actor: str | None = None) -> None:
        """Delete the task; its children stay, without a parent."""
        now = self._clock.now()

        async def unit(tx: Transaction) -> None:
            row = await self._locked(tx, task_id)
            await tx.execute(_SQL["delete_task"], {"id": task_id})
            origin, _ = await self._origin(tx, now, actor, row.session_id, task_id)
            await journal.record(tx, [_entry(origin, "delete", row.version + 1)])

        await self._store.write(unit)

    async def list(
        self,
        *,
        session_id: str | None = None,
        parent_id: str | None = None,
        status: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Task]:
        """Tasks, the oldest first, a page at a time."""
        wanted = None if status is None else str(_check_status(status))
        exact = equal(session_id=session_id, parent_id=parent_id, status=wanted)
        conditions = [*exact, *self._open("read")]
        after, after_id = decode_cursor(cursor, "tasks", (0, ""))
        params = {"limit": check_limit(limit), "after": after, "after_id": after_id, **params_of(conditions)}
        rows = [_Row(*row) for row in await self._store.fetch(_SQL["list_tasks"].where(conditions), params)]
        more = encode_cursor("tasks", rows[-1].created_at, rows[-1].id) if len(rows) == limit else None
        return Page(tuple(await self._tasks(self._store.fetch, rows)), more)

    def _open(self, level: Level) -> Sequence[Fragment]:
        """A task is open to whoever may use its session."""
        return [
            Fragment(f"session_id IN (SELECT id FROM sessions WHERE {sessions.text})", sessions.params)
            for sessions in self._access.sessions(level)
        ]

    async def _find(self, tx: Transaction, task_id: str, level: Level, lock: str = "") -> _Row | None:
        conditions = self._open(level)
        params = {"id": check_identifier("task_id", task_id), **params_of(conditions)}
        row = await tx.fetch_one(_SQL["get_task"].where(conditions, lock), params)
        return _Row(*row) if row else None

    async def _locked(self, tx: Transaction, task_id: str) -> _Row:
        row = await self._find(tx, task_id, "write", self._store.dialect.row_lock)
        if row is None:
            raise _not_found(task_id)
        return row

    async def _origin(
        self, tx: Transaction, now: int, actor: str | None, session_id: str | None, task_id: str
    ) -> tuple[Origin, SessionRow | None]:
        """Who changes the task, and its session; whoever may change it may use its session."""
        if session_id is None:
            return origin_of(self._access, now, actor, task_id), None
        conditions = self._access.sessions("write")
        params = {"id": check_identifier("session_id", session_id), **params_of(conditions)}
        row = await tx.fetch_one(_SESSIONS["get_session"].where(conditions), params)
        if row is None:
            raise SessionNotFound(f"no session {session_id!r}; create it with create_session")
        session = SessionRow(*row)
        return origin_of(self._access, now, actor, task_id, session.user_id, session_id), session

    # -- what is encrypted

    async def _prepare(self, session_id: str | None) -> None:
        if session_id is not None:
            await self._sealing.prepare_session(session_id)

    async def _sealed(
        self, tx: Transaction, session: SessionRow | None, row: _Row, before: _Row | None = None
    ) -> Mapping[str, Any]:
        """A task as it is to be written: as its session is, or without one as it was before."""
        if not self._sealing.is_active:
            return row._asdict()
        if session is not None:
            scope = self._sealing.session_scope(session.id, session.app_name, session.user_id, session.project_id)
        else:
            scope = await self._sealing.scope_of(tx.fetch_all, before.input if before else None)
        [sealed] = await self._sealing.sealed_in(
            tx, scope or self._sealing.covering(EVERYTHING), _LAYOUT if before is None else _CHANGED, [row._asdict()]
        )
        return sealed

    async def _tasks(self, fetch: Fetch, rows: Sequence[_Row]) -> Sequence[Task]:
        return [_task(_Row(*row)) for row in await self._sealing.opened(fetch, _LAYOUT, rows)]


def _entry(origin: Origin, operation: str, version: int, payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
    assert origin.task_id is not None
    namespace = None if origin.session_id is None else f"session:{origin.session_id}"
    return journal.entry(
        origin, "task", origin.task_id, operation, namespace=namespace, version=version, payload=payload
    )


def _check_status(status: str) -> TaskStatus:
    try:
        return TaskStatus(status)
    except ValueError:
        raise InvalidStatus(f"{status!r} is not a task's status; use one of {', '.join(TaskStatus)}") from None


def _not_found(task_id: str) -> TaskNotFound:
    return TaskNotFound(f"no task {task_id!r}")


def _task(row: _Row) -> Task:
    return Task(
        row.id,
        row.session_id,
        row.parent_id,
        row.name,
        TaskStatus(row.status),
        decode(row.input),
        decode(row.result),
        row.error,
        row.version,
        moment(row.created_at),
        moment(row.updated_at),
    )
