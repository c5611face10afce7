"""The one handle that a program holds: it delegates to the services and decides nothing."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.consumers import Consumer, ConsumerStatus, list_consumers
from mnemon.errors import AccessDenied
from mnemon.journal import Journal, match
from mnemon.memories import MemoryService
from mnemon.model import Change, Page, Principal, Verification
from mnemon.namespaces import EVERYTHING
from mnemon.ports import Store
from mnemon.seals import Seals
from mnemon.sessions import SessionService
from mnemon.settings import Settings
from mnemon.state import StateStore
from mnemon.tasks import TaskService


@dataclass(frozen=True, slots=True)
class Parts:
    """What a service is put together from."""

    store: Store
    clock: Clock
    settings: Settings
    closing: Callable[[], Awaitable[None]]


class HybridMemoryService:
    """Sessions, state, tasks and memories over one database, with one journal of all changes.

    Get one from `mnemon.open`. Close it, or enter it as a context manager.
    """

    def __init__(self, parts: Parts, principal: Principal | None = None) -> None:
        self._parts = parts
        access = Access(principal)
        arguments = (parts.store, parts.clock, parts.settings, access)
        self.sessions = SessionService(*arguments)
        self.state = StateStore(*arguments)
        self.tasks = TaskService(*arguments)
        self.memories = MemoryService(*arguments)
        self._access = access
        self._journal = Journal(parts.store, access)
        self._seals = Seals(parts.store, parts.clock, parts.settings.seal_key)

    def as_principal(self, principal: Principal) -> "HybridMemoryService":
        """The same store, as this principal may see and change it; closing is left to this handle."""
        if self._access.principal is not None:
            raise AccessDenied("a handle that is bound to a principal cannot become another")
        return HybridMemoryService(self._parts, principal)

    def changes(
        self,
        after: int | None = None,
        follow: bool = False,
        *,
        entity: str | None = None,
        namespace: str | None = None,
        session_id: str | None = None,
    ) -> AsyncIterator[Change]:
        """Every change after a journal position, oldest first; from the beginning if None.

        `follow` goes on for ever with what comes. To resume, pass the last position seen.
        """
        wanted = match(entity=entity, namespace=namespace, session_id=session_id)
        return self._journal.changes(after, follow, wanted)

    async def position(self) -> int:
        """The newest journal position; `changes(after=await position())` begins with what comes next."""
        return await self._journal.position()

    async def audit(
        self,
        *,
        actor: str | None = None,
        entity: str | None = None,
        entity_id: str | None = None,
        operation: str | None = None,
        namespace: str | None = None,
        session_id: str | None = None,
        task_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Change]:
        """Who changed what and when: the newest changes first, a page at a time."""
        wanted = match(
            actor=actor, entity=entity, entity_id=entity_id, operation=operation,
            session_id=session_id, task_id=task_id, namespace=namespace,
        )  # fmt: skip
        return await self._journal.audit(wanted, since, until, limit, cursor)

    def consumer(self, name: str, *, lease: float = 30.0, batch: int = 500) -> Consumer:
        """A worker that follows the journal from where the consumer of this name stands."""
        self._access.require(EVERYTHING, "admin")
        return Consumer(self._parts.store, self._journal, self._parts.clock, name, lease=lease, batch=batch)

    async def consumers(self) -> list[ConsumerStatus]:
        """Every consumer of the journal, and where it stands."""
        self._access.require(EVERYTHING, "admin")
        return await list_consumers(self._parts.store)

    async def seal(self) -> int:
        """Seal the journal up to now, without waiting for the background; how many entries."""
        self._access.require(EVERYTHING, "admin")
        return await self._seals.seal()

    async def verify(self, anchor: str | None = None) -> Verification:
        """Look for journal entries that were edited, removed, inserted or moved since they were sealed."""
        self._access.require(EVERYTHING, "admin")
        return await self._seals.verify(anchor)

    async def close(self) -> None:
        """Finish what was accepted and let go of everything; idempotent."""
        if self._access.principal is None:
            await self._parts.closing()

    async def __aenter__(self) -> "HybridMemoryService":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
