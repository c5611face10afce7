"""The values that come back from Mnemon: frozen, and with no behaviour of their own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar, overload

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
