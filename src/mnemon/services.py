"""The services over one database, put together from their parts: each when it is first asked for, if it can wait."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.contents import Contents
from mnemon.encryption.sealing import Sealing
from mnemon.indexing.router import Router
from mnemon.indexing.service import IndexService
from mnemon.indexing.stores import Outside
from mnemon.indexing.upkeep import Bench
from mnemon.journal import Journal
from mnemon.language import CheckedModel
from mnemon.memories import MemoryService
from mnemon.memories.findable import Findable
from mnemon.memories.writing import Writing
from mnemon.model import (
    Memory,
    Principal,
)
from mnemon.ports import Expander, Indexes, Reranker, Runner, Store
from mnemon.seals import Seals
from mnemon.sessions import SessionService
from mnemon.settings import Settings
from mnemon.state import StateStore
from mnemon.tasks import TaskService
from mnemon.vectors import VectorService

if TYPE_CHECKING:  # slow to import, or not needed by everybody
    from mnemon.artifacts import ArtifactService
    from mnemon.consolidation.flow import Flow
    from mnemon.consolidation.service import ConsolidationService
    from mnemon.consolidation.suspicion import Embed
    from mnemon.documents import DocumentService
    from mnemon.embedding import Embedding
    from mnemon.episodes import EpisodeService
    from mnemon.keys import KeyService
    from mnemon.retention.archives import Archives
    from mnemon.retention.service import RetentionService
    from mnemon.retention.uses import Uses
    from mnemon.retrieval.contexts import Contexts
    from mnemon.retrieval.recall import Recall
    from mnemon.retrieval.recent import RecentContexts
    from mnemon.working import WorkingMemory
    from mnemon.working.mirror import Mirror
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
    words: "Callable[[], Embed] | None" = None
    """What makes vectors of words, by which pairs are suspected; None where nothing is embedded."""
    sealing: Sealing | None = None
    """What encrypts; None if nothing is encrypted."""
    uses: "Uses | None" = None
    """Counts how often memories are recalled, if they are to be counted."""
    mirror: "Callable[[Store, Runner], Mirror | None]" = lambda store, runner: None
    """The copy of working memory outside the database, if there is one."""


class Services:
    """Everything that a handle delegates to, for one principal."""

    def __init__(self, parts: Parts, principal: Principal | None = None) -> None:
        self._parts = parts
        access = Access(principal)
        arguments = (parts.store, parts.clock, parts.settings, access)
        embedding = parts.embedding
        self._indexes = cache(lambda: parts.index(parts.store, parts.runner))
        self._embedding = None if embedding is None else cache(lambda: embedding(parts.store, parts.runner))
        self.sessions = SessionService(*arguments, parts.sealing)
        self.state = StateStore(*arguments, parts.sealing)
        self.tasks = TaskService(*arguments, parts.sealing)
        writing = Writing(*arguments, Findable(self._indexes, self._embedding, parts.sealing))
        self.memories = MemoryService(
            *arguments, writing, lambda: self.consolidation, lambda: self._archives, _noting(parts)
        )
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
    def working(self) -> "WorkingMemory":
        """The buffers and scratchpads that sessions work with."""
        from mnemon.working import WorkingMemory  # noqa: PLC0415

        parts = self._parts
        mirror = parts.mirror(parts.store, parts.runner)
        return WorkingMemory(*self._arguments, parts.runner, mirror, parts.sealing)

    @cached_property
    def episodes(self) -> "EpisodeService":
        """What happened, and how far consolidation has come with it."""
        from mnemon.episodes import EpisodeService  # noqa: PLC0415

        return EpisodeService(*self._arguments, lambda: self._archives, self._parts.sealing)

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
            *self._arguments, parts.runner, self._indexes, self.memories, self._writing, parts.language,
            lambda: self._flow, parts.words,
        )  # fmt: skip

    @cached_property
    def _flow(self) -> "Flow":
        from mnemon.consolidation.flow import Flow  # noqa: PLC0415
        from mnemon.working.desk import Desk  # noqa: PLC0415

        parts = self._parts
        mirror = parts.mirror(parts.store, parts.runner)
        desk = Desk(parts.store, parts.clock, self._access, mirror, parts.sealing)
        return Flow(*self._arguments, parts.runner, desk, self._writing, parts.language, self.consolidation.consolidate)

    @cached_property
    def retention(self) -> "RetentionService":
        """Keeping the database within its policies."""
        from mnemon.retention.service import RetentionService  # noqa: PLC0415

        parts = self._parts
        return RetentionService(*self._arguments, parts.contents, self._writing, parts.uses)

    @cached_property
    def keys(self) -> "KeyService":
        """The keys that encrypt, and what they encrypt."""
        from mnemon.keys import KeyService  # noqa: PLC0415

        parts = self._parts
        findable = self._writing.findable
        return KeyService(*self._arguments, parts.contents, parts.runner, findable, self.artifacts.rebuild)

    @cached_property
    def _archives(self) -> "Archives":
        from mnemon.retention.archives import Archives  # noqa: PLC0415 - not needed by everybody

        return Archives(self._parts.store, self._parts.contents)

    @cached_property
    def _recaller(self) -> "Recall":
        from mnemon.retrieval.recall import Helpers, Recall  # noqa: PLC0415 - needs numpy

        parts = self._parts
        return Recall(
            parts.store, parts.clock, parts.runner, self._indexes(),
            None if self._embedding is None else self._embedding(),
            Router(parts.store, self._indexes, parts.runner, parts.outside),
            Helpers(parts.expander, parts.reranker), parts.sealing,
        )  # fmt: skip

    @cached_property
    def _contexts(self) -> "Contexts":
        from mnemon.retrieval.contexts import Contexts  # noqa: PLC0415 - needs numpy

        parts = self._parts
        return Contexts(self.sessions, self.artifacts, self._recaller, self._access, parts.settings, parts.runner)

    @cached_property
    def _recent(self) -> "RecentContexts":
        from mnemon.retrieval.recent import RecentContexts  # noqa: PLC0415

        return RecentContexts(
            self.sessions, self.working, self.episodes, self.memories, self._access, self._parts.runner
        )

    def _bench(self) -> Bench:
        parts = self._parts
        return Bench(
            parts.store, parts.clock, parts.settings, parts.runner, self._indexes, self._embedding, parts.outside,
            parts.sealing,
            mirror=cache(lambda: parts.mirror(parts.store, parts.runner)),
        )  # fmt: skip


def _noting(parts: Parts) -> Callable[[Sequence[Memory]], object]:
    """What counts the uses of memories that are read by their keys: only where a policy asks how relevant they are."""
    asked = any(each.min_relevance is not None or each.max_size is not None for each in parts.settings.retention)
    return parts.uses.note if parts.uses is not None and asked else lambda _: None
