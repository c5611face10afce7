"""Values of vectors: their spaces, the stores that hold them, and what is near."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, overload


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
