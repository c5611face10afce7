"""Values of retention: policies, what they come to, archives and growth."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from mnemon.model.contents import Content
from mnemon.model.memories import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """How long memories of some namespaces and types are kept, and how much of them.

    The policy of a memory is the one whose namespace is the longest; of those, one that names its type. What is None
    has no bound. `pinned` memories are never touched, nor those whose metadata says `{"pinned": true}`.
    """

    __pydantic_config__ = {"extra": "forbid", "revalidate_instances": "always", "allow_inf_nan": False}  # noqa: RUF012

    name: str
    namespace: str = ""
    """At or below this one; `""` is everything."""
    types: tuple[MemoryType, ...] = ()
    """Of these types; all if empty."""
    max_age_days: float | None = None
    """Remove a memory this long after it was last written, deleted or restored."""
    min_relevance: float | None = None
    """Remove a memory that is less relevant than this, from 0 to 1: see `half_life_days`."""
    half_life_days: float = 30.0
    """Relevance begins as importance, grows with every use, and halves in so many days without one."""
    max_size: int | None = None
    """Remove the least relevant until all memories of this policy together are within so many bytes of JSON."""
    versions_kept: int | None = None
    """Remove all versions of a memory but so many of the newest."""
    squash: bool = False
    """Leave a summary in place of the versions that `versions_kept` removes."""
    archive: bool = True
    """Put what is removed into an archive first, from which it can be restored."""
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class RetentionAction:
    """What is done to a memory: all of it is removed, or its versions up to `last`. Episodes are removed whole."""

    namespace: str
    key: str
    version: int
    """The newest version when it was decided; if there is a newer one since, nothing is done."""
    policy: str
    reason: Literal["age", "relevance", "size", "versions"]
    last: int
    """The newest version that is removed."""
    versions: int
    """How many versions are removed."""
    size: int
    """How many bytes of JSON they are."""
    squash: bool = False
    status: Literal["planned", "applied", "outdated", "failed"] = "planned"
    """`outdated` if it was changed meanwhile, `failed` if the key of its archive was not to be had."""
    kind: Literal["memory", "episode"] = "memory"
    """The key of an episode is its id."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the memory stays."""
        return self.last == self.version


@dataclass(frozen=True, slots=True)
class PolicyUse:
    """How much there is under a policy, before anything is removed."""

    policy: str
    memories: int = 0
    versions: int = 0
    size: int = 0
    pinned: int = 0
    episodes: int = 0
    """Those that were consolidated. They fall under the policies of episodic memories, by their age only."""


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What the policies come to at a moment, or what was done if it was applied."""

    at: datetime
    namespace: str
    actions: tuple[RetentionAction, ...] = ()
    policies: tuple[PolicyUse, ...] = ()
    archives: tuple[int, ...] = ()
    """The archives that what was removed went into."""
    pruned_vectors: int = 0
    """How many vectors were removed that belonged to nothing any more."""
    is_dry_run: bool = True
    pruned_items: int = 0
    """How many items and scratchpads of working memory were removed that had expired."""
    growth: "GrowthReport | None" = None
    """How quickly everything grows, if the policies were applied to everything."""

    @property
    def applied(self) -> int:
        """How many memories were removed or shortened."""
        return sum(action.status == "applied" for action in self.actions)

    @property
    def size(self) -> int:
        """How many bytes of JSON all actions remove."""
        return sum(action.size for action in self.actions if action.status in ("planned", "applied"))


@dataclass(frozen=True, slots=True)
class Archive:
    """Memories that retention took out of the database; the content lies where artifacts do."""

    id: int
    namespace: str
    policy: str
    content: Content
    memories: int
    versions: int
    first_at: datetime | None
    """When the oldest version in it was written."""
    last_at: datetime | None
    created_at: datetime
    restored_at: datetime | None = None
    kind: Literal["memories", "episodes"] = "memories"
    """If it is of episodes, `memories` is how many those are."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What came back out of an archive."""

    archive: Archive
    memories: int
    """Or episodes."""
    versions: int
    skipped: tuple[tuple[str, str], ...] = ()
    """Namespaces and keys whose place was taken, so that nothing of them came back."""


@dataclass(frozen=True, slots=True)
class GrowthSample:
    """How large everything was at a moment, in bytes."""

    at: datetime
    size: int
    detail: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class GrowthReport:
    """How large everything is, and how quickly it grows."""

    now: GrowthSample
    weekly: int
    """By how many bytes it grew in the last week, as far as there are samples."""
    limit: int | None
    samples: tuple[GrowthSample, ...] = ()

    @property
    def is_alarming(self) -> bool:
        """Whether it grows more quickly than the setting `growth_alert` allows."""
        return self.limit is not None and self.weekly > self.limit
