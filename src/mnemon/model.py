"""The values that come back from Mnemon: frozen, and with no behaviour of their own."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import astuple, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

T = TypeVar("T")

Level = Literal["read", "write", "admin"]


class SessionStatus(StrEnum):
    """Where a session is in its life; `sessions.TRANSITIONS` says what may follow what."""

    CREATED = "created"
    ACTIVE = "active"
    PAUSED = "paused"
    TERMINATED = "terminated"
    ARCHIVED = "archived"


class TaskStatus(StrEnum):
    """Where a task is in its life; `tasks.TRANSITIONS` says what may follow what."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class CycleStatus(StrEnum):
    """What became of an agent's proposal; the words are those of AutoGPT's results."""

    PROPOSED = "proposed"
    SUCCESS = "success"
    ERROR = "error"
    INTERRUPTED = "interrupted_by_human"


class DocumentStatus(StrEnum):
    """Whether a document's chunks are what the document says."""

    PENDING = "pending"
    SYNCED = "synced"
    FAILED = "failed"
    STALE = "stale"


class DocumentType(StrEnum):
    """How a document is read."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    PDF = "pdf"
    CODE = "code"


class MemoryType(StrEnum):
    """What kind of knowledge a memory is."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a session's log. `sequence` counts from 1 within the session."""

    session_id: str
    sequence: int
    id: str
    body: dict[str, Any]
    state_delta: dict[str, Any] | None
    actor: str | None
    task_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """A session; `state` and `events` are filled where the call says so."""

    id: str
    app_name: str
    user_id: str
    project_id: str | None
    status: SessionStatus
    metadata: dict[str, Any]
    version: int
    event_count: int
    archived_count: int
    created_at: datetime
    last_update_time: datetime
    terminated_at: datetime | None
    archived_at: datetime | None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[Event] = field(default_factory=list[Event])


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One state key. `version` grows by one with every change, also over a deletion.

    Only `watch` shows deletions, with `is_deleted` set.
    """

    key: str
    value: Any
    version: int
    updated_at: datetime
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A unit of work; `session_id` is None once its session was deleted."""

    id: str
    session_id: str | None
    parent_id: str | None
    name: str
    status: TaskStatus
    input: Any
    result: Any
    error: str | None
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a memory comes from, and how far to trust and weigh it (both 0 to 1)."""

    session_id: str | None = None
    event_id: str | None = None
    author: str | None = None
    trust: float = 1.0
    importance: float = 0.5


@dataclass(frozen=True, slots=True)
class Placement:
    """A memory's place in a thread, when it happened, and when it is true."""

    thread: str | None = None
    position: int | None = None
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """One version of a memory. A deletion is a version too, with `is_deleted` set."""

    id: int
    namespace: str
    key: str
    value: Any
    memory_type: MemoryType
    version: int
    is_deleted: bool
    is_current: bool
    metadata: dict[str, Any]
    created_by: str | None
    updated_by: str | None
    task_id: str | None
    created_at: datetime
    updated_at: datetime
    provenance: Provenance
    placement: Placement

    @property
    def source(self) -> str | None:
        """The file and place that it is a chunk of, as in `guide.md:12-30` or `paper.pdf, page 3`; None of others."""
        path = self.metadata.get("path")
        if path is None or not (self.placement.thread or "").startswith("document:"):
            return None
        if (page := self.metadata.get("page")) is not None:
            return f"{path}, page {page}"
        first, last = self.metadata.get("first_line"), self.metadata.get("last_line")
        return f"{path}:{first}" if first == last else f"{path}:{first}-{last}"


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory that is to be remembered; without a key it gets one of its own.

    `value` is what it says: a text, or anything else that JSON can carry.
    """

    value: Any
    namespace: str
    key: str | None = None
    memory_type: str = MemoryType.SEMANTIC
    metadata: Mapping[str, Any] | None = None
    provenance: Provenance | None = None
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What asking a language model took. `failures` are calls that brought nothing that can be used.

    `cost` is None if the setting `language_model_price` does not tell the price of tokens. Where an endpoint does not
    tell how many tokens it counted, they are estimated.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    failures: int = 0
    seconds: float = 0.0

    def plus(self, other: "Usage") -> "Usage":
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(known) if known else None,
            self.failures + other.failures,
            self.seconds + other.seconds,
        )


class ConsolidationStrategy(StrEnum):
    """Which of two memories is to stay that say the same or deny each other."""

    LATEST_WINS = "latest_wins"
    HIGHEST_TRUST = "highest_trust"
    MERGE = "merge"
    LLM_BASED = "llm_based"
    REVIEW = "review"


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """One version of a memory, by where it is."""

    namespace: str
    key: str
    version: int


@dataclass(frozen=True, slots=True)
class MemoryConflict:
    """Two memories that say the same or deny each other, the older first.

    `kind` is `duplicate`, `near_duplicate`, `contradiction` or `superseded`.
    """

    kind: str
    first: MemoryVersion
    second: MemoryVersion
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class ConsolidationStep:
    """Memories that become one: `kept` stays, and those that are `retired` are deleted softly.

    If `is_merged`, the kept memory gets a new version that says `value`, with the lowest trust of them all.
    `status` is `planned`, `applied`, `outdated` if one of them was changed meanwhile, or `refused` if the new version
    would be too large.
    """

    kept: MemoryVersion
    retired: tuple[MemoryVersion, ...]
    kinds: tuple[str, ...]
    method: str
    reason: str
    value: Any
    trust: float
    is_merged: bool = False
    status: Literal["planned", "applied", "outdated", "refused"] = "planned"


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """What consolidating the memories of a namespace came to, or would come to if it was a dry run."""

    namespace: str
    strategy: str
    strategy_used: str
    """Another one if there is no language model."""
    is_dry_run: bool = False
    examined: int = 0
    findings: int = 0
    steps: tuple[ConsolidationStep, ...] = ()
    for_review: tuple[MemoryConflict, ...] = ()
    """What a person is to decide."""
    left: int = 0
    """How many findings were left alone: a language model wants both to stay, or nobody knows which is the later."""
    fallbacks: Mapping[str, int] = field(default_factory=dict[str, int])
    """Why a language model did not decide, and how often."""
    usage: Usage = field(default_factory=Usage)

    @property
    def applied(self) -> int:
        """How many steps were done."""
        return sum(step.status == "applied" for step in self.steps)

    @property
    def skipped(self) -> int:
        """How many steps were not done, for what their status says."""
        return sum(step.status in ("outdated", "refused") for step in self.steps)


class ReviewStatus(StrEnum):
    """What has become of a question to a person."""

    OPEN = "open"
    APPLIED = "applied"
    REJECTED = "rejected"
    OUTDATED = "outdated"


@dataclass(frozen=True, slots=True)
class Review:
    """Two memories of which somebody is to say which is right.

    `first` and `second` are the versions that it is about, or None if they were purged. `reason` names the rule that
    found them, and never what they say.
    """

    id: int
    namespace: str
    kind: str
    first: Memory | None
    second: Memory | None
    score: float
    reason: str
    status: ReviewStatus
    choice: str | None
    decided_by: str | None
    decided_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Agent:
    """Who acts: its identity, its directives, and what it overrides of the configuration.

    `version` counts the changes of these; `cycle_count` is the number of its newest cycle, undone or not.
    """

    id: str
    namespace: str
    name: str
    role: str
    directives: Any
    config: dict[str, Any]
    metadata: dict[str, Any]
    workspace_id: str | None
    version: int
    cycle_count: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Cycle:
    """One turn of an agent: what it proposed and, once it was done, what came of it.

    `snapshot` is of the workspace as it was before the action. `undone_at` says when a rewinding undid the cycle.
    """

    agent_id: str
    number: int
    session_id: str | None
    task_id: str | None
    proposal: dict[str, Any]
    status: CycleStatus
    result: dict[str, Any] | None
    summary: str | None
    artifacts: tuple[str, ...]
    workspace_id: str | None
    snapshot: int | None
    proposed_at: datetime
    finished_at: datetime | None
    undone_at: datetime | None

    @property
    def is_pending(self) -> bool:
        """Whether its result is still awaited."""
        return self.status is CycleStatus.PROPOSED and self.undone_at is None


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where an agent stands: all that it needs to go on after it ended in whatever way.

    If there is a `pending` cycle, its action was proposed and may have been done, in part or wholly; `snapshot` is of
    the workspace before it.
    """

    agent: Agent
    last: Cycle | None
    """The newest cycle that has a result and was not undone."""
    pending: Cycle | None
    recent: tuple[Cycle, ...]
    """The newest cycles with a result, the oldest of them first."""
    session_id: str | None
    workspace_id: str | None
    snapshot: int | None

    @property
    def next_cycle(self) -> int:
        """The number that the next proposal will get."""
        return self.agent.cycle_count + 1


@dataclass(frozen=True, slots=True)
class Recollection:
    """What comes back to an agent: a memory that answers, or one of its recent cycles; and what it says, as text."""

    text: str
    hit: "Hit | None" = None
    cycle: Cycle | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """How one part of a value changed between two versions; `path` is like `$.address.city`."""

    path: str
    before: Any
    after: Any
    kind: Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class PurgeReceipt:
    """Proof of an erasure: what was erased, when, by whom, and where the journal says so.

    `scrubbed` says whether the bytes are gone from the database's files too. They stay there for as
    long as another program reads what was before the purge; the next purge tries again.
    """

    namespace: str
    key: str
    versions: int
    digest: str
    purged_by: str | None
    purged_at: datetime
    position: int
    scrubbed: bool


@dataclass(frozen=True, slots=True)
class NamespaceCount:
    """A namespace that holds memories, and how many are live in it."""

    namespace: str
    memories: int


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """What makes vectors comparable: those of one model and version lie in one space."""

    name: str
    version: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.dimension} dimensions)"


class SpaceStatus(StrEnum):
    """What a vector space is for at present."""

    FILLING = "filling"
    ACTIVE = "active"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Space:
    """A vector space: the vectors of one embedding model, compared by cosine.

    `provider` says how to load its embedder again, as the setting `embedder` would.
    """

    id: int
    provider: str
    model: EmbeddingModel
    status: SpaceStatus
    created_at: datetime


class Match(NamedTuple):
    """A version of a memory that an index found, and how well it fits."""

    memory_id: int
    score: float


@dataclass(frozen=True, slots=True)
class StoreDescription:
    """A vector store: its name, where it is, what it holds, and what it can do."""

    name: str
    location: str
    vectors: int
    dimension: int
    searches_text: bool = False
    lag: int = 0
    """How many changes of memories have not come to it yet."""
    is_up: bool = True


class Routed(NamedTuple):
    """What a vector store answered, and which one it was."""

    matches: Sequence[Match]
    served_by: str


@dataclass(frozen=True, slots=True)
class VectorDraft:
    """A vector that is to be stored, of a memory with the key `id`; `text` is what it is the vector of."""

    id: str
    embedding: Any
    metadata: Mapping[str, Any] | None = None
    namespace: str = "app:vectors"
    text: str | None = None


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """A memory that is near to a vector; `score` is the cosine, unless a store mixed words in."""

    id: str
    namespace: str
    score: float
    value: Any
    metadata: dict[str, Any]
    version: int
    memory_id: int


@dataclass(frozen=True, slots=True)
class Matches(Sequence[VectorMatch]):
    """What is nearest, nearest first, and the name of the store that found it."""

    items: tuple[VectorMatch, ...]
    served_by: str

    @overload
    def __getitem__(self, index: int) -> VectorMatch: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[VectorMatch, ...]: ...
    def __getitem__(self, index: int | slice) -> VectorMatch | tuple[VectorMatch, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class Drift:
    """How a vector store differs from the database."""

    missing: int
    """Memories that it does not have."""
    stale: int
    """Memories of which it has another version."""
    surplus: int
    """Records of no live memory."""
    checked: int
    """How many records it holds."""
    pending: int = 0
    """Changes that have not come to it yet; what they concern is not counted as a difference."""

    @property
    def is_none(self) -> bool:
        """Whether nothing differs."""
        return not (self.missing or self.stale or self.surplus)

    def __add__(self, other: "Drift") -> "Drift":
        return Drift(*(one + another for one, another in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work has come, in memories, changes of them, or files."""

    done: int
    total: int
    seconds: float
    """For how long it has been going on, this time."""

    @property
    def rate(self) -> float:
        """How many a second."""
        return self.done / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found: how well it fits, what each signal added to that, and which channels found it."""

    memory: Memory
    score: float
    signals: Mapping[str, float] = field(default_factory=dict[str, float])
    found_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, wherever it lies: the digest of its bytes in hexadecimal, and how many there are."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class StoredContent(Content):
    """A content that a store holds, and when it was last written there."""

    written_at: datetime


@dataclass(frozen=True, slots=True)
class Artifact:
    """One version of a named file of a session; `url` names just this version.

    `file_name` is what people see of it in the session's folder, where contents are kept in a file system.
    """

    id: int
    session_id: str
    name: str
    version: int
    size: int
    sha256: str
    content_type: str
    metadata: dict[str, Any]
    url: str
    file_name: str
    created_by: str | None
    task_id: str | None
    created_at: datetime
    deleted_at: datetime | None

    @property
    def is_deleted(self) -> bool:
        """Whether it was deleted softly: it can still be restored."""
        return self.deleted_at is not None


@dataclass(frozen=True, slots=True)
class Document:
    """A file that is indexed as chunks. `path` is what it is called and cited by; `size` is in bytes.

    `source` is where the file is on the disk, None if its content was given. If it failed, `error` says why; the
    chunks are those of the last content that could be read.
    """

    id: int
    namespace: str
    path: str
    title: str
    document_type: DocumentType
    status: DocumentStatus
    content_hash: str
    size: int
    chunk_count: int
    embedding_model: str | None
    metadata: dict[str, Any]
    source: str | None
    error: str | None
    last_synced_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A piece of a document: its text to the character, the headings above it, and its lines or its page.

    `key` is that of the memory that it is, `position` its place in the document, counted from 0.
    """

    key: str
    position: int
    text: str
    headings: tuple[str, ...]
    first_line: int | None
    last_line: int | None
    page: int | None


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """What became of some documents, by their paths, and what it cost.

    Of the chunks that were written, `chunks_embedded` were given to the embedder; the others were known already
    and only moved.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: int = 0
    removed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why each of them could not be read."""
    skipped: int = 0
    """How many files were of no kind that can be read."""
    chunks_written: int = 0
    chunks_embedded: int = 0
    chunks_removed: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing has happened."""
        return not (self.added or self.changed or self.removed or self.failed)


@dataclass(frozen=True, slots=True)
class ContentFlaw:
    """A content that is not as the records say; `used_by` names some of the files that it is the content of."""

    kind: Literal["missing", "corrupt", "orphaned"]
    sha256: str
    used_by: tuple[str, ...] = ()
    size: int = 0


@dataclass(frozen=True, slots=True)
class ContentReport:
    """What looking at all contents found. `pending` were written so lately that their records may still come."""

    checked: int
    stored: int
    size: int
    pending: int
    flaws: tuple[ContentFlaw, ...]

    @property
    def is_good(self) -> bool:
        """Whether every file can be read; content that nobody refers to harms none."""
        return all(flaw.kind == "orphaned" for flaw in self.flaws)


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What was removed for good, or would be: deleted versions, contents that nobody refers to, and folders."""

    versions: int
    contents: int
    freed: int
    """How many bytes that is."""
    folders: int


@dataclass(frozen=True, slots=True)
class ArtifactReference:
    """A version of a file, and where to get it; `size` is in bytes."""

    name: str
    version: int
    url: str
    size: int
    media_type: str


@dataclass(frozen=True, slots=True)
class Citation:
    """The memory that a mark such as `[m1]` stands for, and its place in a conversation or document.

    `source` is the file and the lines or page that it is a chunk of, as `Memory.source` has it.
    """

    mark: str
    namespace: str
    key: str
    version: int
    thread: str | None
    position: int | None
    author: str | None
    occurred_at: datetime | None
    source: str | None = None


Section = Literal["state", "memories", "artifacts", "events"]


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One thing in a context, as its text shows it.

    `name` is the state key, the memory's `namespace/key`, the event's id or the artifact's name. `tokens` is what
    it takes of the budget. A memory has its mark; an event has the chat messages that stand for it.
    """

    section: Section
    name: str
    text: str
    tokens: int
    mark: str | None = None
    is_cut: bool = False
    messages: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """Something that a context has no place for: why, and how many tokens it would have taken."""

    section: Section
    name: str
    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Context:
    """What an agent needs to know for a question, within a budget of tokens.

    `text` is all of it as one text, which is also `str(context)`; `messages()` is the same as chat messages.
    Either is within the budget. `exact` says whether tokens were counted or estimated.
    """

    question: str
    budget: int
    text: str
    system: str
    text_tokens: int
    message_tokens: int
    exact: bool
    items: tuple[ContextItem, ...]
    dropped: tuple[Dropped, ...]
    citations: tuple[Citation, ...]

    @property
    def tokens(self) -> int:
        """How many tokens the larger of both renderings takes."""
        return max(self.text_tokens, self.message_tokens)

    def messages(self) -> list[dict[str, Any]]:
        """A system message with state, memories and artifacts, then the recent events as messages of their own.

        A tool's call and result keep the shape that the provider gave them.
        """
        told = [{"role": "system", "content": self.system}] if self.system else []
        return told + [deepcopy(dict(message)) for item in self.items for message in item.messages]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Workspace:
    """A file tree. `revision` is one more with every change of it; `files` and `size` (in bytes) are those of now."""

    id: str
    namespace: str
    metadata: dict[str, Any]
    revision: int
    files: int
    size: int
    created_by: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file as it was from the workspace's revision `version` until before revision `until`; None is now."""

    workspace_id: str
    path: str
    version: int
    until: int | None
    sha256: str
    size: int
    is_executable: bool
    metadata: dict[str, Any]
    updated_by: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class FileDraft:
    """A file that is to be written. What is None stays as it is, or is empty if the file is new.

    `data` is a text, bytes, a path of the real file system, an open binary file, or an iterable of bytes.
    """

    path: str
    data: Any
    metadata: Mapping[str, Any] | None = None
    is_executable: bool | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A revision of a workspace that was given a number, from 1, and a message."""

    workspace_id: str
    number: int
    revision: int
    message: str
    files: int
    size: int
    created_by: str | None
    task_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FileDifference:
    """How a file differs between two states of a workspace; `before` of a renamed file has the old path.

    `text` is a unified diff, if one was asked for and both are texts.
    """

    path: str
    kind: Literal["added", "removed", "changed", "renamed"]
    before: WorkspaceFile | None
    after: WorkspaceFile | None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: how many files, and what was left out, as `path: why`."""

    added: int
    changed: int
    unchanged: int
    removed: int
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many snapshots a workspace lost, and how many versions of files that only those had."""

    snapshots: int
    versions: int


@dataclass(frozen=True, slots=True)
class Change:
    """One journal entry. It says what changed, never the content: read that from the entity."""

    position: int
    at: datetime
    actor: str | None
    entity: str
    entity_id: str
    operation: str
    version: int | None
    namespace: str | None
    user_id: str | None
    session_id: str | None
    task_id: str | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Flaw:
    """A range of the journal that is not as it was sealed."""

    first: int
    last: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What checking the journal's seals found. `head` can be kept elsewhere as an anchor."""

    sealed: int
    unsealed: int
    head: str | None
    flaws: tuple[Flaw, ...]

    @property
    def intact(self) -> bool:
        return not self.flaws


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking, and the namespace prefixes that they may `read`, `write` or `admin`.

    Each level includes those before it. The prefix `""` covers everything.
    """

    id: str
    grants: Mapping[str, Level]


@dataclass(frozen=True, slots=True)
class Page(Sequence[T], Generic[T]):
    """Some of the results, in order. `next_cursor` fetches the next page; None after the last."""

    items: tuple[T, ...]
    next_cursor: str | None = None

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)
