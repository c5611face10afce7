"""The one handle that a program holds: it delegates to the services and decides nothing."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.consumers import Consumer, ConsumerStatus, list_consumers
from mnemon.contents import Contents
from mnemon.errors import AccessDenied, InvalidInput
from mnemon.indexing.router import Router
from mnemon.indexing.service import IndexService
from mnemon.indexing.stores import Outside
from mnemon.indexing.upkeep import Bench
from mnemon.journal import Journal, match
from mnemon.language import CheckedModel
from mnemon.memories import MemoryService
from mnemon.memories.drafts import draft, draft_of
from mnemon.memories.findable import Findable
from mnemon.memories.rows import check_types
from mnemon.memories.writing import Writing
from mnemon.model import (
    Change,
    ConsolidationReport,
    Context,
    Hit,
    Memory,
    MemoryDraft,
    MemoryType,
    Page,
    Principal,
    Progress,
    Space,
    Verification,
)
from mnemon.namespaces import EVERYTHING
from mnemon.ports import Expander, Indexes, Reranker, Runner, Store
from mnemon.scopes import scope_of
from mnemon.seals import Seals
from mnemon.sessions import SessionService
from mnemon.settings import Settings
from mnemon.sql import chunks
from mnemon.state import StateStore
from mnemon.tasks import TaskService
from mnemon.vectors import VectorService

if TYPE_CHECKING:  # slow to import, or not needed by everybody
    from mnemon.agents import AgentService
    from mnemon.artifacts import ArtifactService
    from mnemon.consolidation.service import ConsolidationService
    from mnemon.documents import DocumentService
    from mnemon.embedding import Embedding
    from mnemon.retrieval.contexts import Contexts
    from mnemon.retrieval.recall import Recall
    from mnemon.workspaces import WorkspaceService


@dataclass(frozen=True, slots=True)
class Parts:
    """What a service is put together from."""

    store: Store
    clock: Clock
    settings: Settings
    closing: Callable[[], Awaitable[None]]
    runner: Runner
    index: Callable[[Store, Runner], Indexes]
    embedding: "Callable[[Store, Runner], Embedding] | None"
    """None if nothing is to be embedded."""
    contents: Contents
    outside: Sequence[Outside] = ()
    reranker: Reranker | None = None
    expander: Expander | None = None
    language: Callable[[], CheckedModel | None] = lambda: None
    """The language model, if there is one; it is loaded when it is first asked for."""


class HybridMemoryService:
    """Sessions, state, tasks and memories over one database, with one journal of all changes.

    Get one from `mnemon.open`. Close it, or enter it as a context manager.
    """

    def __init__(self, parts: Parts, principal: Principal | None = None) -> None:
        self._parts = parts
        access = Access(principal)
        arguments = (parts.store, parts.clock, parts.settings, access)
        embedding = parts.embedding
        self._indexes = cache(lambda: parts.index(parts.store, parts.runner))
        self._embedding = None if embedding is None else cache(lambda: embedding(parts.store, parts.runner))
        self.sessions = SessionService(*arguments)
        self.state = StateStore(*arguments)
        self.tasks = TaskService(*arguments)
        writing = Writing(*arguments, Findable(self._indexes, self._embedding))
        self.memories = MemoryService(*arguments, writing, lambda: self.consolidation)
        self.vectors = VectorService(
            *arguments, parts.runner, self._indexes, self._embedding, self.memories, writing, parts.outside
        )
        self.index = IndexService(self._bench(), access)
        self._arguments = arguments
        self._writing = writing
        self._access = access
        self._journal = Journal(parts.store, access)
        self._seals = Seals(parts.store, parts.clock, parts.settings.seal_key)

    @cached_property
    def artifacts(self) -> "ArtifactService":
        """The files of sessions."""
        from mnemon.artifacts import ArtifactService  # noqa: PLC0415 - not needed by everybody

        return ArtifactService(*self._arguments, self._parts.contents, self._parts.runner)

    @cached_property
    def workspaces(self) -> "WorkspaceService":
        """The file trees of agents."""
        from mnemon.workspaces import WorkspaceService  # noqa: PLC0415

        return WorkspaceService(*self._arguments, self._parts.contents, self._parts.runner)

    @cached_property
    def agents(self) -> "AgentService":
        """Agents, and what they proposed and did."""
        from mnemon.agents import AgentService  # noqa: PLC0415

        return AgentService(
            *self._arguments, self._parts.runner, self.memories, self._writing, self.workspaces, self.recall
        )

    @cached_property
    def documents(self) -> "DocumentService":
        """Files whose chunks are memories."""
        from mnemon.documents import DocumentService  # noqa: PLC0415

        return DocumentService(*self._arguments, self._parts.runner, self._indexes, self._embedding, self._writing)

    @cached_property
    def consolidation(self) -> "ConsolidationService":
        """Making one of memories that say the same or deny each other."""
        from mnemon.consolidation.service import ConsolidationService  # noqa: PLC0415

        parts = self._parts
        return ConsolidationService(
            *self._arguments, parts.runner, self._indexes, self.memories, self._writing, parts.language
        )

    async def remember(
        self,
        value: Any,
        *,
        namespace: str,
        key: str | None = None,
        memory_type: str = MemoryType.SEMANTIC,
        thread: str | None = None,
        position: int | None = None,
        occurred_at: datetime | None = None,
        author: str | None = None,
        importance: float | None = None,
        trust: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Memory:
        """Remember a text, or any value that JSON can carry; it can be recalled when this returns.

        Without a `key` it gets one of its own. Under a key that is there already it becomes the next version,
        unless it says the same.
        """
        drafted = draft(
            value, namespace=namespace, key=key, memory_type=memory_type, thread=thread, position=position,
            occurred_at=occurred_at, author=author, importance=importance, trust=trust, metadata=metadata,
        )  # fmt: skip
        [memory] = await self.memories.put_memories([drafted], actor, task_id)
        return memory

    async def remember_many(
        self,
        items: Iterable[MemoryDraft | Mapping[str, Any] | str],
        *,
        namespace: str | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> list[Memory]:
        """Remember many: drafts, plain texts, or mappings of `remember`'s arguments with the `text` or `value`.

        `namespace` is for those that have none. They are written in batches, each of them whole or not at all.
        """
        if isinstance(items, str | Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput("remember_many takes several memories, as a list; use remember for one")
        drafts = [draft_of(item, namespace) for item in items]
        found: list[Memory] = []
        for piece in chunks(drafts):
            found += await self.memories.put_memories(piece, actor, task_id)
        return found

    async def recall(
        self,
        query: str,
        *,
        namespaces: str | Sequence[str],
        k: int = 10,
        types: str | Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        as_of: datetime | None = None,
        min_trust: float | None = None,
        explain: bool = False,
        offset: int = 0,
    ) -> list[Hit]:
        """The memories at or below the namespaces that answer best, best first; `offset` skips the first.

        `where` filters by metadata: see `filters`. `as_of` asks what was true at a moment. `explain` gives
        every hit the signals that its score is the sum of.
        """
        longest = self._parts.settings.max_namespace_length
        scope = scope_of(self._access, namespaces, longest, check_types(types), where, min_trust)
        return await self._recaller.recall(query, scope, k=k, offset=offset, as_of=as_of, explain=explain)

    async def context(
        self,
        query: str,
        *,
        session_id: str | None = None,
        namespaces: str | Sequence[str] | None = None,
        budget: int = 2000,
    ) -> Context:
        """What an agent needs to know for a question, in at most `budget` tokens.

        That is the session's state and recent events, and memories: at or below the namespaces, or else of
        the session, its user, app and project, or else all.
        """
        return await self._contexts.context(query, session_id, namespaces, budget)

    async def forget(
        self,
        namespace: str,
        key: str | None = None,
        *,
        erase: bool = False,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Forget a memory, or without a key all at or below the namespace; how many there were.

        They are deleted softly and can be restored; `erase` purges them, and those that were deleted before too.
        """
        return await self.memories.forget_memories(namespace, key, erase=erase, actor=actor, task_id=task_id)

    async def consolidate(
        self,
        namespace: str,
        strategy: str = "llm_based",
        dry_run: bool = False,
        *,
        types: str | Sequence[str] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> ConsolidationReport:
        """Make one of the memories at or below the namespace that say the same or deny each other."""
        return await self.consolidation.consolidate(
            namespace, strategy, dry_run, types=types, actor=actor, task_id=task_id
        )

    async def settled(self, timeout: float | None = None) -> None:
        """Return when everything that was written before this call can be recalled.

        Memories can be recalled when `remember` returns; this is for what the background sees to: events,
        texts whose embedder was down, and vector stores outside the database.
        """
        await self.index.settled(timeout)

    async def reembed(self, to: str, *, progress: Callable[[Progress], object] | None = None) -> Space:
        """Change the embedder while everything goes on; interrupted, it goes on where it was when called again."""
        return await self.index.reembed(to, progress=progress)

    def as_principal(self, principal: Principal) -> "HybridMemoryService":
        """The same store, as this principal may see and change it; closing is left to this handle."""
        if self._access.principal is not None:
            raise AccessDenied("a handle that is bound to a principal cannot become another")
        return HybridMemoryService(self._parts, principal)

    @cached_property
    def _recaller(self) -> "Recall":
        from mnemon.retrieval.recall import Helpers, Recall  # noqa: PLC0415 - needs numpy

        parts = self._parts
        return Recall(
            parts.store, parts.clock, parts.runner, self._indexes(),
            None if self._embedding is None else self._embedding(),
            Router(parts.store, self._indexes, parts.runner, parts.outside),
            Helpers(parts.expander, parts.reranker),
        )  # fmt: skip

    @cached_property
    def _contexts(self) -> "Contexts":
        from mnemon.retrieval.contexts import Contexts  # noqa: PLC0415 - needs numpy

        parts = self._parts
        return Contexts(self.sessions, self.artifacts, self._recaller, self._access, parts.settings, parts.runner)

    def _bench(self) -> Bench:
        parts = self._parts
        return Bench(
            parts.store, parts.clock, parts.settings, parts.runner, self._indexes, self._embedding, parts.outside
        )

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

    def consumer(
        self, name: str, *, lease: float = 30.0, batch: int = 500, entities: Sequence[str] | None = None
    ) -> Consumer:
        """A worker that follows the journal from where the consumer of this name stands.

        With `entities`, as in `["memory"]`, it is given only the changes of these.
        """
        self._access.require(EVERYTHING, "admin")
        parts = self._parts
        return Consumer(parts.store, self._journal, parts.clock, name, lease=lease, batch=batch, entities=entities)

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
