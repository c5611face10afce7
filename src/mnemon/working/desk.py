"""What is done to buffers inside a transaction: by `WorkingMemory`, and by whatever drains them into something else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mnemon import journal
from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.encryption.sealing import Sealing
from mnemon.errors import SessionNotFound
from mnemon.journal import Origin, origin_of
from mnemon.model import Level, WorkingItem
from mnemon.namespaces import check_identifier
from mnemon.pages import check_limit
from mnemon.ports import CopyChange, CopyPlace, Row, Store, Transaction
from mnemon.sql import Fragment, load, params_of
from mnemon.state import SessionRow
from mnemon.working.covers import Covers
from mnemon.working.mirror import Mirror
from mnemon.working.rows import ItemRow

_SQL = load("working")
_SESSIONS = load("sessions")
_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Taken:
    """Items that were removed in a transaction of the caller's; `changes` are for the copy, once it is committed."""

    items: tuple[WorkingItem, ...]
    changes: tuple[CopyChange, ...] = ()


class Waiting(NamedTuple):
    """A buffer that has items which nobody is at."""

    session_id: str
    buffer: str
    last_sequence: int
    updated_at: int


class Desk:
    """The buffers as one caller may use them."""

    def __init__(
        self, store: Store, clock: Clock, access: Access, mirror: Mirror | None, sealing: Sealing | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._access = access
        self._mirror = mirror
        self.covers = Covers(sealing, store.dialect.row_lock)
        self.sealing = self.covers.sealing

    async def take(self, tx: Transaction, session_id: str, buffer: str, limit: int, actor: str | None = None) -> Taken:
        """Remove the oldest items that nobody is at, in a transaction that does something with them: exactly once.

        Hand the changes to `copy` when the transaction is committed.
        """
        params = {"session_id": session_id, "name": buffer, "limit": limit}
        session = await self.find(tx, session_id, "write")
        origin = self.origin(session, actor, None)
        held = await self.hold(tx, params)
        if held is None:
            return Taken(())
        rows = [ItemRow(*row) for row in await tx.fetch_all(_SQL["free_items"], {**params, "now": origin.now})]
        if not rows:
            return Taken(())
        chosen = self.chosen(rows)
        await tx.execute(_SQL["remove_items"].where([chosen]), {**params, **chosen.params})
        removed = [row.sequence for row in rows]
        change = await self.note_removal(tx, session, origin, buffer, held, removed)
        opened = await self.covers.open_items(tx.fetch_all, session_id, buffer, rows)
        return Taken(tuple(row.item for row in opened), (change,))

    async def waiting(self, *, idle: float = 0.0, limit: int = 100) -> list[Waiting]:
        """Buffers of any session with items that nobody is at, which nothing was appended to for `idle` seconds."""
        self._access.require("", "admin")
        now = self._clock.now()
        params = {"now": now, "before": now - int(idle * _MICROS), "limit": check_limit(limit)}
        return [Waiting(*row) for row in await self._store.fetch(_SQL["waiting_buffers"], params)]

    async def copy(self, changes: Sequence[CopyChange]) -> None:
        """Change the copy in Redis, if there is one, as was committed."""
        if self._mirror:
            await self._mirror.apply(changes)

    async def find(self, tx: Transaction, session_id: str, level: Level) -> SessionRow:
        conditions = self._access.sessions(level)
        params = {"id": check_identifier("session_id", session_id), **params_of(conditions)}
        row = await tx.fetch_one(_SESSIONS["get_session"].where(conditions), params)
        if row is None:
            raise no_session(session_id)
        return SessionRow(*row)

    async def hold(self, tx: Transaction, params: dict[str, Any]) -> Row | None:
        """The buffer's last sequence and position; it is the transaction's alone from here to its end."""
        return await tx.fetch_one(_SQL["get_buffer"].where([], self._store.dialect.row_lock), params)

    def chosen(self, rows: Sequence[ItemRow]) -> Fragment:
        return self._store.dialect.listed("sequence", "chosen", [row.sequence for row in rows])

    async def note_removal(
        self, tx: Transaction, session: SessionRow, origin: Origin, name: str, held: Row, removed: Sequence[int]
    ) -> CopyChange:
        last, base = held
        told = {"count": len(removed)}
        return await self.note_buffer(tx, session, origin, name, "acknowledge", last, told, base, [], removed)

    async def note_buffer(
        self,
        tx: Transaction,
        session: SessionRow,
        origin: Origin,
        name: str,
        operation: str,
        version: int,
        told: dict[str, Any],
        base: int,
        added: Sequence[tuple[int, str]],
        removed: Sequence[int],
    ) -> CopyChange:
        """Journal a change of a buffer, and let the buffer say where."""
        row = entry_of(origin, "buffer", name, operation, version, payload_of(session, name, **told))
        position = await journal.record_one(tx, row)
        await tx.execute(_SQL["move_buffer"], {"session_id": session.id, "name": name, "position": position})
        return CopyChange(place_of(session, "buffer", name), base, position, added, removed)

    def origin(self, session: SessionRow, actor: str | None, task_id: str | None) -> Origin:
        return origin_of(self._access, self._clock.now(), actor, task_id, session.user_id, session.id)


def place_of(session: SessionRow, kind: Any, name: str) -> CopyPlace:
    return CopyPlace(session.app_name, session.id, kind, name, session.created_at)


def payload_of(session: SessionRow, name: str, **more: Any) -> dict[str, Any]:
    return {"app_name": session.app_name, "name": name, **more}


def entry_of(
    origin: Origin, entity: str, name: str, operation: str, version: int | None, payload: dict[str, Any]
) -> dict[str, Any]:
    namespace = f"session:{origin.session_id}"
    return journal.entry(origin, entity, name, operation, namespace=namespace, version=version, payload=payload)


def no_session(session_id: str) -> SessionNotFound:
    return SessionNotFound(f"no session {session_id!r}; create it with create_session")
