"""Values of memories, their versions, and what recall finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal


class MemoryType(StrEnum):
    """What kind of knowledge a memory is."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"


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
    archives: tuple[int, ...] = ()
    """The archives that it was taken out of; their old contents are gone from where artifacts lie."""


@dataclass(frozen=True, slots=True)
class NamespaceCount:
    """A namespace that holds memories, and how many are live in it."""

    namespace: str
    memories: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that was found: how well it fits, what each signal added to that, and which channels found it."""

    memory: Memory
    score: float
    signals: Mapping[str, float] = field(default_factory=dict[str, float])
    found_by: tuple[str, ...] = ()
