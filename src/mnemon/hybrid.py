"""The one handle that a program holds: it delegates to the services and decides nothing."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mnemon.consumers import Consumer, ConsumerStatus, list_consumers
from mnemon.errors import AccessDenied, InvalidInput
from mnemon.journal import match
from mnemon.memories.drafts import draft, draft_of
from mnemon.memories.erasure import each_of
from mnemon.memories.rows import check_types
from mnemon.model import (
    Change,
    ConsolidationReport,
    Context,
    Episode,
    EpisodeKind,
    Hit,
    Memory,
    MemoryDraft,
    MemoryType,
    Offer,
    Page,
    Principal,
    Progress,
    Space,
    Verification,
)
from mnemon.namespaces import EVERYTHING
from mnemon.scopes import scope_of
from mnemon.services import Services
from mnemon.sql import chunks

if TYPE_CHECKING:  # slow to import, or not needed by everybody
    from mnemon.agents import AgentService


class HybridMemoryService(Services):
    """Sessions, state, tasks and memories over one database, with one journal of all changes.

    Get one from `mnemon.open`. Close it, or enter it as a context manager.
    """

    @cached_property
    def agents(self) -> "AgentService":
        """Agents, and what they proposed and did."""
        from mnemon.agents import AgentService  # noqa: PLC0415

        return AgentService(
            *self._arguments, self._parts.runner, self.memories, self._writing, self.workspaces, self.recall
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
        self._writing.sealing.refuse_filter(scope.prefixes, where)
        hits = await self._recaller.recall(query, scope, k=k, offset=offset, as_of=as_of, explain=explain)
        if self._parts.uses is not None:
            self._parts.uses.note([hit.memory for hit in hits])
        return hits

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
        context = await self._contexts.context(query, session_id, namespaces, budget)
        if self._parts.uses is not None:
            self._parts.uses.note(context.citations)
        return context

    async def fetch_recent_context(self, session_id: str, *, limit: int = 50, budget: int = 2000) -> Context:
        """What a session is at now, in at most `budget` tokens, with no question asked.

        That is its state and scratchpads, the newest of what its events and buffers say (`limit` of them at the
        most), and summaries of the last episodes of its user.
        """
        return await self._recent.fetch(session_id, limit, budget)

    async def upsert_vector(
        self,
        id: str,
        embedding: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        namespace: str = "app:vectors",
        text: str | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Memory:
        """Keep a vector under an id, in place of the one that was there; see `VectorService.store`."""
        return await self.vectors.store(
            id, embedding, metadata, namespace=namespace, text=text, actor=actor, task_id=task_id
        )

    async def store_episode(
        self,
        entries: Iterable[Any],
        *,
        kind: str = EpisodeKind.CONVERSATION,
        namespace: str | None = None,
        session_id: str | None = None,
        title: str = "",
        participants: Iterable[str] | None = None,
        offers: Iterable[Offer | Mapping[str, Any]] | None = None,
        outcome: Any = None,
        started_at: datetime | None = None,
        ended_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Episode:
        """Store what happened, for consolidation to make a summary and facts of; see `EpisodeService.store`."""
        return await self.episodes.store(
            entries, kind=kind, namespace=namespace, session_id=session_id, title=title, participants=participants,
            offers=offers, outcome=outcome, started_at=started_at, ended_at=ended_at, metadata=metadata, actor=actor,
            task_id=task_id,
        )  # fmt: skip

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
        Without a key it also erases the episodes there, and counts them: see `EpisodeService.erase`.
        """
        if key is not None or not erase:
            return await self.memories.forget_memories(namespace, key, erase=erase, actor=actor, task_id=task_id)
        return await each_of(  # episodes first: whoever is at one of them can remember nothing of it afterwards
            lambda: self.episodes.erase(namespace, actor=actor, task_id=task_id),
            lambda: self.memories.forget_memories(namespace, erase=True, actor=actor, task_id=task_id),
        )

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
