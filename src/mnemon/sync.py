"""The blocking face, for scripts and notebooks: the same services, with no event loop at all.

    with mnemon.sync.open() as memory:
        memory.sessions.create_session("s1", app_name="helpdesk", user_id="alice")

Each method here *is* the asynchronous one, run to its end on the caller's thread.
"""

import io
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from mnemon.agents import AgentService
from mnemon.artifacts import ArtifactService
from mnemon.artifacts.streams import ArtifactStream
from mnemon.assembly import Given, open_blocking
from mnemon.clock import Clock
from mnemon.consolidation.service import ConsolidationService
from mnemon.consumers import Consumer
from mnemon.coroutines import complete
from mnemon.documents import DocumentService
from mnemon.episodes import EpisodeService
from mnemon.hybrid import HybridMemoryService
from mnemon.indexing.service import IndexService
from mnemon.keys import KeyService
from mnemon.memories import MemoryService
from mnemon.model import Principal
from mnemon.ports import Expander, KeyProvider, Reranker
from mnemon.retention.service import RetentionService
from mnemon.sessions import SessionService
from mnemon.state import StateStore
from mnemon.tasks import TaskService
from mnemon.vectors import VectorService
from mnemon.working import WorkingMemory
from mnemon.workspaces import WorkspaceService

P = ParamSpec("P")
R = TypeVar("R")


class _Face:
    """Stands before one asynchronous service."""

    def __init__(self, service: Any) -> None:
        self._service = service


class _Method(Generic[P, R]):
    """A method of the service behind the face, as a blocking one with the same signature."""

    def __init__(self, method: Callable[..., Any], run: Callable[[Any], R]) -> None:
        self._method = method
        self._run = run
        update_wrapper(self, method)  # pyright: ignore[reportArgumentType]

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, face: _Face | None, owner: type) -> Callable[P, R]:
        if face is None:
            return cast("Callable[P, R]", self)
        method, run = getattr(face._service, self._name), self._run  # pyright: ignore[reportPrivateUsage]

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return run(method(*args, **kwargs))

        face.__dict__[self._name] = update_wrapper(call, method)  # the next look-up finds it at once
        return call


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> _Method[P, R]:
    """Run a coroutine to its end."""
    return _Method(method, complete)


def iterating(method: Callable[Concatenate[Any, P], AsyncIterator[R]]) -> _Method[P, Iterator[R]]:
    """Run an asynchronous iterator step by step."""
    return _Method(method, _iterate)


def opening(method: Callable[Concatenate[Any, P], ArtifactStream]) -> "_Method[P, BlockingArtifact]":
    """Read a stream as a binary file."""
    return _Method(method, BlockingArtifact)


def _iterate(source: AsyncIterator[R]) -> Iterator[R]:
    while True:
        try:
            yield complete(source.__anext__())  # pyright: ignore[reportArgumentType]
        except StopAsyncIteration:
            return


class BlockingSessions(_Face):
    """`SessionService`, blocking."""

    create_session = blocking(SessionService.create_session)
    get_session = blocking(SessionService.get_session)
    append_event = blocking(SessionService.append_event)
    append_events = blocking(SessionService.append_events)
    events = blocking(SessionService.events)
    update_status = blocking(SessionService.update_status)
    update_metadata = blocking(SessionService.update_metadata)
    get_state = blocking(SessionService.get_state)
    set_state = blocking(SessionService.set_state)
    list_active_sessions = blocking(SessionService.list_active_sessions)
    list_sessions = blocking(SessionService.list_sessions)
    terminate_session = blocking(SessionService.terminate_session)
    delete_session = blocking(SessionService.delete_session)


class BlockingState(_Face):
    """`StateStore`, blocking."""

    get = blocking(StateStore.get)
    entry = blocking(StateStore.entry)
    set = blocking(StateStore.set)
    merge = blocking(StateStore.merge)
    compare_and_set = blocking(StateStore.compare_and_set)
    update = blocking(StateStore.update)
    delete = blocking(StateStore.delete)
    entries = blocking(StateStore.entries)
    watch = iterating(StateStore.watch)


class BlockingTasks(_Face):
    """`TaskService`, blocking."""

    create = blocking(TaskService.create)
    get = blocking(TaskService.get)
    update = blocking(TaskService.update)
    delete = blocking(TaskService.delete)
    list = blocking(TaskService.list)


class BlockingWorking(_Face):
    """`WorkingMemory`, blocking."""

    append = blocking(WorkingMemory.append)
    recent = blocking(WorkingMemory.recent)
    buffers = blocking(WorkingMemory.buffers)
    drain = blocking(WorkingMemory.drain)
    acknowledge = blocking(WorkingMemory.acknowledge)
    release = blocking(WorkingMemory.release)
    get = blocking(WorkingMemory.get)
    set = blocking(WorkingMemory.set)
    delete = blocking(WorkingMemory.delete)
    scratchpads = blocking(WorkingMemory.scratchpads)
    follow = iterating(WorkingMemory.follow)
    prune = blocking(WorkingMemory.prune)


class BlockingArtifact(io.BufferedReader):
    """An open artifact as a binary file; `artifact` is what is open. See `ArtifactStream`."""

    def __init__(self, stream: ArtifactStream) -> None:
        self.artifact = complete(stream.__aenter__()).artifact
        super().__init__(_Raw(stream, self.artifact.size))


class _Raw(io.RawIOBase):
    """The stream as Python's own files want it."""

    def __init__(self, stream: ArtifactStream, size: int) -> None:
        super().__init__()
        self._stream = stream
        self._size = size
        self._position = stream.position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = complete(self._stream.read(len(buffer)))
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"there is nothing before the first byte, at {start + offset}")
        if start + offset != self._position:
            self._position = start + offset
            complete(self._stream.seek(self._position))
        return self._position

    def close(self) -> None:
        if not self.closed:
            complete(self._stream.close())
        super().close()


class BlockingArtifacts(_Face):
    """`ArtifactService`, blocking; `open` gives a binary file."""

    save = blocking(ArtifactService.save)
    get = blocking(ArtifactService.get)
    list = blocking(ArtifactService.list)
    recent = blocking(ArtifactService.recent)
    versions = blocking(ArtifactService.versions)
    resolve = blocking(ArtifactService.resolve)
    manifest = blocking(ArtifactService.manifest)
    open = opening(ArtifactService.open)
    read = blocking(ArtifactService.read)
    delete = blocking(ArtifactService.delete)
    restore = blocking(ArtifactService.restore)
    verify = blocking(ArtifactService.verify)
    cleanup = blocking(ArtifactService.cleanup)
    rebuild = blocking(ArtifactService.rebuild)


class BlockingMemories(_Face):
    """`MemoryService`, blocking."""

    add_memory = blocking(MemoryService.add_memory)
    put_memories = blocking(MemoryService.put_memories)
    get_memory = blocking(MemoryService.get_memory)
    update_memory = blocking(MemoryService.update_memory)
    delete_memory = blocking(MemoryService.delete_memory)
    restore_memory = blocking(MemoryService.restore_memory)
    purge_memory = blocking(MemoryService.purge_memory)
    forget_memories = blocking(MemoryService.forget_memories)
    consolidate_memories = blocking(MemoryService.consolidate_memories)
    search_memories = blocking(MemoryService.search_memories)
    get_memory_history = blocking(MemoryService.get_memory_history)
    diff_memory = blocking(MemoryService.diff_memory)
    get_thread = blocking(MemoryService.get_thread)
    list_namespaces = blocking(MemoryService.list_namespaces)


class BlockingConsolidation(_Face):
    """`ConsolidationService`, blocking."""

    consolidate = blocking(ConsolidationService.consolidate)
    flow = blocking(ConsolidationService.flow)
    reviews = blocking(ConsolidationService.reviews)
    decide = blocking(ConsolidationService.decide)


class BlockingEpisodes(_Face):
    """`EpisodeService`, blocking."""

    store = blocking(EpisodeService.store)
    get = blocking(EpisodeService.get)
    list = blocking(EpisodeService.list)
    counts = blocking(EpisodeService.counts)
    retry = blocking(EpisodeService.retry)
    delete = blocking(EpisodeService.delete)
    erase = blocking(EpisodeService.erase)


class BlockingVectors(_Face):
    """`VectorService`, blocking."""

    store = blocking(VectorService.store)
    store_many = blocking(VectorService.store_many)
    query = blocking(VectorService.query)
    delete = blocking(VectorService.delete)
    describe = blocking(VectorService.describe)


class BlockingDocuments(_Face):
    """`DocumentService`, blocking."""

    add = blocking(DocumentService.add)
    add_folder = blocking(DocumentService.add_folder)
    watch = iterating(DocumentService.watch)
    get = blocking(DocumentService.get)
    list = blocking(DocumentService.list)
    chunks = blocking(DocumentService.chunks)
    remove = blocking(DocumentService.remove)
    retry = blocking(DocumentService.retry)
    check = blocking(DocumentService.check)
    mark_stale = blocking(DocumentService.mark_stale)


class BlockingIndex(_Face):
    """`IndexService`, blocking."""

    settled = blocking(IndexService.settled)
    spaces = blocking(IndexService.spaces)
    verify = blocking(IndexService.verify)
    rebuild = blocking(IndexService.rebuild)
    reembed = blocking(IndexService.reembed)
    drop_space = blocking(IndexService.drop_space)


class BlockingAgents(_Face):
    """`AgentService`, blocking."""

    create = blocking(AgentService.create)
    get = blocking(AgentService.get)
    list = blocking(AgentService.list)
    update = blocking(AgentService.update)
    delete = blocking(AgentService.delete)
    capture_proposal = blocking(AgentService.capture_proposal)
    capture_result = blocking(AgentService.capture_result)
    succeed = blocking(AgentService.succeed)
    fail = blocking(AgentService.fail)
    interrupt = blocking(AgentService.interrupt)
    summarise = blocking(AgentService.summarise)
    record_memory = blocking(AgentService.record_memory)
    recall = blocking(AgentService.recall)
    cycle = blocking(AgentService.cycle)
    cycles = blocking(AgentService.cycles)
    resume = blocking(AgentService.resume)
    rewind = blocking(AgentService.rewind)
    import_autogpt = blocking(AgentService.import_autogpt)
    export_autogpt = blocking(AgentService.export_autogpt)


class BlockingWorkspaces(_Face):
    """`WorkspaceService`, blocking."""

    create = blocking(WorkspaceService.create)
    get = blocking(WorkspaceService.get)
    list = blocking(WorkspaceService.list)
    update_metadata = blocking(WorkspaceService.update_metadata)
    delete = blocking(WorkspaceService.delete)
    clone = blocking(WorkspaceService.clone)
    write = blocking(WorkspaceService.write)
    write_many = blocking(WorkspaceService.write_many)
    set_metadata = blocking(WorkspaceService.set_metadata)
    remove = blocking(WorkspaceService.remove)
    move = blocking(WorkspaceService.move)
    stat = blocking(WorkspaceService.stat)
    read = blocking(WorkspaceService.read)
    open = iterating(WorkspaceService.open)
    list_files = blocking(WorkspaceService.list_files)
    history = blocking(WorkspaceService.history)
    snapshot = blocking(WorkspaceService.snapshot)
    get_snapshot = blocking(WorkspaceService.get_snapshot)
    log = blocking(WorkspaceService.log)
    diff = blocking(WorkspaceService.diff)
    restore = blocking(WorkspaceService.restore)
    prune = blocking(WorkspaceService.prune)
    import_folder = blocking(WorkspaceService.import_folder)
    export_folder = blocking(WorkspaceService.export_folder)


class BlockingRetention(_Face):
    """`RetentionService`, blocking."""

    plan = blocking(RetentionService.plan)
    apply = blocking(RetentionService.apply)
    apply_if_due = blocking(RetentionService.apply_if_due)
    archives = blocking(RetentionService.archives)
    restore = blocking(RetentionService.restore)
    discard = blocking(RetentionService.discard)
    growth = blocking(RetentionService.growth)
    prune = blocking(RetentionService.prune)


class BlockingKeys(_Face):
    """`KeyService`, blocking."""

    status = blocking(KeyService.status)
    rewrap = blocking(KeyService.rewrap)
    rotate = blocking(KeyService.rotate)
    reseal = blocking(KeyService.reseal)
    drop = blocking(KeyService.drop)


class BlockingConsumer(_Face):
    """`Consumer`, blocking. Handlers stay coroutine functions that await only their transaction."""

    process = blocking(Consumer.process)
    prepare = blocking(Consumer.prepare)
    deliver = blocking(Consumer.deliver)
    run = blocking(Consumer.run)
    has_work = blocking(Consumer.has_work)
    has_reached = blocking(Consumer.has_reached)
    status = blocking(Consumer.status)
    rewind = blocking(Consumer.rewind)
    release = blocking(Consumer.release)


class BlockingMemory(_Face):
    """`HybridMemoryService`, blocking."""

    def __init__(self, service: HybridMemoryService) -> None:
        super().__init__(service)
        self.sessions = BlockingSessions(service.sessions)
        self.state = BlockingState(service.state)
        self.tasks = BlockingTasks(service.tasks)
        self.working = BlockingWorking(service.working)
        self.episodes = BlockingEpisodes(service.episodes)
        self.artifacts = BlockingArtifacts(service.artifacts)
        self.memories = BlockingMemories(service.memories)
        self.consolidation = BlockingConsolidation(service.consolidation)
        self.vectors = BlockingVectors(service.vectors)
        self.documents = BlockingDocuments(service.documents)
        self.index = BlockingIndex(service.index)
        self.workspaces = BlockingWorkspaces(service.workspaces)
        self.agents = BlockingAgents(service.agents)
        self.retention = BlockingRetention(service.retention)
        self.keys = BlockingKeys(service.keys)

    remember = blocking(HybridMemoryService.remember)
    remember_many = blocking(HybridMemoryService.remember_many)
    recall = blocking(HybridMemoryService.recall)
    context = blocking(HybridMemoryService.context)
    fetch_recent_context = blocking(HybridMemoryService.fetch_recent_context)
    upsert_vector = blocking(HybridMemoryService.upsert_vector)
    store_episode = blocking(HybridMemoryService.store_episode)
    forget = blocking(HybridMemoryService.forget)
    consolidate = blocking(HybridMemoryService.consolidate)
    settled = blocking(HybridMemoryService.settled)
    reembed = blocking(HybridMemoryService.reembed)
    changes = iterating(HybridMemoryService.changes)
    position = blocking(HybridMemoryService.position)
    audit = blocking(HybridMemoryService.audit)
    consumers = blocking(HybridMemoryService.consumers)
    seal = blocking(HybridMemoryService.seal)
    verify = blocking(HybridMemoryService.verify)
    close = blocking(HybridMemoryService.close)

    def consumer(
        self, name: str, *, lease: float = 30.0, batch: int = 500, entities: Sequence[str] | None = None
    ) -> BlockingConsumer:
        """A worker that follows the journal from where the consumer of this name stands."""
        return BlockingConsumer(self._service.consumer(name, lease=lease, batch=batch, entities=entities))

    def as_principal(self, principal: Principal) -> "BlockingMemory":
        """The same store, as this principal may see and change it."""
        return BlockingMemory(self._service.as_principal(principal))

    def __enter__(self) -> "BlockingMemory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(
    url: str | None = None,
    *,
    clock: Clock | None = None,
    reranker: Reranker | None = None,
    expander: Expander | None = None,
    key_provider: KeyProvider | None = None,
    **settings: Any,
) -> BlockingMemory:
    """Open the memory at `url`; see `mnemon.open`."""
    return BlockingMemory(open_blocking(Given(url, settings, clock, reranker, expander, key_provider)))
