"""Values of consolidation: what is planned, what was done, what people are to decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from mnemon.model.memories import Memory


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


Certainty = Literal["certain", "suspected"]
"""Whether a rule says it, or it is only probable."""


@dataclass(frozen=True, slots=True)
class MemoryConflict:
    """Two memories that say the same or deny each other, the older first.

    `kind` is `duplicate`, `near_duplicate`, `contradiction` or `superseded`. If it is only `suspected`, nothing is done
    about it but on the word of a person or a language model.
    """

    kind: str
    first: MemoryVersion
    second: MemoryVersion
    score: float
    reason: str
    certainty: Certainty = "certain"


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
    suspected: tuple[MemoryConflict, ...] = ()
    """What is probably the same or denied, and about which nothing was done: neither a person nor a model was asked."""
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


@dataclass(frozen=True, slots=True)
class FlowReport:
    """What turning the flow from working memory to long-term memory came to."""

    rounds: int = 0
    """How often there was something to do; 0 if nothing waits."""
    drained: int = 0
    """Items that left their buffers."""
    episodes: int = 0
    """Episodes that were made of them."""
    summaries: int = 0
    """Episodes that were consolidated: each has one summary."""
    facts: int = 0
    """Facts that were remembered, or remembered as said again."""
    conflicts: int = 0
    """Facts that were given up for others which deny them, or say the same."""
    for_review: int = 0
    """Pairs of facts of which a person is to say which is right."""
    failed: int = 0
    """How often an episode could not be consolidated; it is tried again later, or was given up."""
    fallbacks: int = 0
    """Summaries that a language model was to make and could not."""
    usage: Usage = field(default_factory=Usage)

    def plus(self, other: "FlowReport") -> "FlowReport":
        """Both together."""
        numbers = [each.name for each in fields(self) if each.name != "usage"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        return FlowReport(**sums, usage=self.usage.plus(other.usage))


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
