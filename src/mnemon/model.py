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


@dataclass(frozen=True, slots=True)
class Match:
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
    """How far a long piece of work has come, in memories or in changes of them."""

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
class ArtifactReference:
    """A version of a file, and where to get it; `size` is in bytes."""

    name: str
    version: int
    url: str
    size: int
    media_type: str


@dataclass(frozen=True, slots=True)
class Citation:
    """The memory that a mark such as `[m1]` stands for, and its place in a conversation or document."""

    mark: str
    namespace: str
    key: str
    version: int
    thread: str | None
    position: int | None
    author: str | None
    occurred_at: datetime | None


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
