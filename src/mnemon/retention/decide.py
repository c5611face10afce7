"""What the policies come to. It is reckoned from what is told of memories, and nothing else: no database, no clock."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NamedTuple

from mnemon.model import MemoryType, PolicyUse, RetentionAction, RetentionPolicy
from mnemon.policies import policy_for

DAY = 86_400_000_000
"""Microseconds, in which moments are told here."""
NO_POLICY = ""
"""What memories that fall under no policy are counted as."""


class VersionSize(NamedTuple):
    """One version of a memory."""

    version: int
    size: int
    is_stand_in: bool = False
    """It stands for others that were there before."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What is told of a memory: all its versions, the oldest first, and how it stands."""

    namespace: str
    key: str
    memory_type: str
    versions: tuple[VersionSize, ...]
    written_at: int
    """When the newest version was written, which may be a deletion."""
    importance: float = 0.5
    is_pinned: bool = False
    uses: int = 0
    used_at: int | None = None
    restored_at: int | None = None

    @property
    def size(self) -> int:
        return sum(each.size for each in self.versions)

    @property
    def standing_since(self) -> int:
        """When its age begins."""
        return max(self.written_at, self.restored_at or 0)


def relevance(footprint: Footprint, half_life_days: float, now: int) -> float:
    """How much a memory matters, from 0 to 1.

    It begins as its importance, comes nearer to 1 with every use, and halves with every half-life since it was
    written, restored or used.
    """
    weight = 1 - (1 - footprint.importance) / (1 + math.log1p(footprint.uses))
    idle = max(0, now - max(footprint.standing_since, footprint.used_at or 0))
    return weight * 0.5 ** (idle / (half_life_days * DAY))


@dataclass(slots=True)
class _Count:
    """What there is under one policy, and what may go if it is too much."""

    memories: int = 0
    versions: int = 0
    size: int = 0
    pinned: int = 0
    episodes: int = 0
    left: int = 0
    """The size of what stays so far."""
    staying: list[tuple[Footprint, RetentionAction | None]] = field(
        default_factory=list[tuple[Footprint, "RetentionAction | None"]]
    )


class Decision:
    """Weighs one memory after the other; those that stay are kept in mind only where a policy bounds their size."""

    def __init__(self, policies: Sequence[RetentionPolicy], now: int) -> None:
        self._policies = tuple(policies)
        self._policy = lru_cache(1024)(partial(policy_for, self._policies))  # neighbours fall under the same
        self._now = now
        self._counts: dict[str, _Count] = {}
        self._actions: list[RetentionAction] = []

    def weigh(self, footprint: Footprint) -> None:
        policy = self._policy(footprint.namespace, footprint.memory_type)
        count = self._counted(policy, footprint)
        if policy is None:
            return
        if policy.pinned or footprint.is_pinned:
            count.left += footprint.size
            return
        reason = self._reason(policy, footprint)
        if reason is not None:
            self._actions.append(_whole(policy, footprint, reason))
            return
        trim = _trim(policy, footprint)
        count.left += footprint.size - (trim.size if trim else 0)
        if policy.max_size is not None:
            count.staying.append((footprint, trim))
        elif trim is not None:
            self._actions.append(trim)

    def weigh_episode(self, namespace: str, key: str, size: int, since: int, *, is_pinned: bool) -> None:
        """An episode that was consolidated goes when it is older than an episodic memory there may be."""
        policy = self._policy(namespace, MemoryType.EPISODIC)
        self._count(policy).episodes += 1
        if policy is None or policy.pinned or is_pinned or policy.max_age_days is None:
            return
        if self._now - since > policy.max_age_days * DAY:
            self._actions.append(RetentionAction(namespace, key, 1, policy.name, "age", 1, 1, size, kind="episode"))

    def actions(self) -> tuple[RetentionAction, ...]:
        """What is to be done, in order of namespace and key."""
        found = list(self._actions)
        for policy in self._policies:
            found += self._make_room(policy)
        return tuple(sorted(found, key=lambda action: (action.namespace, action.key)))

    def uses(self) -> tuple[PolicyUse, ...]:
        """How much there is under each policy."""
        return tuple(
            PolicyUse(name, count.memories, count.versions, count.size, count.pinned, count.episodes)
            for name, count in sorted(self._counts.items(), key=lambda each: each[0])
        )

    def _count(self, policy: RetentionPolicy | None) -> _Count:
        name = policy.name if policy else NO_POLICY
        if name not in self._counts:
            self._counts[name] = _Count()
        return self._counts[name]

    def _counted(self, policy: RetentionPolicy | None, footprint: Footprint) -> _Count:
        count = self._count(policy)
        count.memories += 1
        count.versions += len(footprint.versions)
        count.size += footprint.size
        count.pinned += footprint.is_pinned or (policy is not None and policy.pinned)
        return count

    def _reason(self, policy: RetentionPolicy, footprint: Footprint) -> str | None:
        age = self._now - footprint.standing_since
        if policy.max_age_days is not None and age > policy.max_age_days * DAY:
            return "age"
        least = policy.min_relevance
        if least is not None and relevance(footprint, policy.half_life_days, self._now) < least:
            return "relevance"
        return None

    def _make_room(self, policy: RetentionPolicy) -> list[RetentionAction]:
        """The least relevant go until the rest is within the bound; the others are shortened as was decided."""
        count = self._counts.get(policy.name)
        if count is None or policy.max_size is None:
            return []

        def order(each: tuple[Footprint, RetentionAction | None]) -> tuple[float, int, str, str]:
            footprint = each[0]
            weight = relevance(footprint, policy.half_life_days, self._now)
            return weight, footprint.standing_since, footprint.namespace, footprint.key

        found: list[RetentionAction] = []
        left = count.left
        for footprint, trim in sorted(count.staying, key=order):
            if left > policy.max_size:
                found.append(_whole(policy, footprint, "size"))
                left -= footprint.size - (trim.size if trim else 0)
            elif trim is not None:
                found.append(trim)
        return found


def decide(
    footprints: Iterable[Footprint], policies: Sequence[RetentionPolicy], now: int
) -> tuple[RetentionAction, ...]:
    """What is to be done about all of these memories."""
    decision = Decision(policies, now)
    for footprint in footprints:
        decision.weigh(footprint)
    return decision.actions()


def _whole(policy: RetentionPolicy, footprint: Footprint, reason: str) -> RetentionAction:
    newest = footprint.versions[-1].version
    return RetentionAction(
        footprint.namespace,
        footprint.key,
        newest,
        policy.name,
        reason,  # pyright: ignore[reportArgumentType] - one of those that `Decision` knows
        newest,
        len(footprint.versions),
        footprint.size,
    )


def _trim(policy: RetentionPolicy, footprint: Footprint) -> RetentionAction | None:
    """The versions that are too many; not what stands for them already."""
    if policy.versions_kept is None:
        return None
    old = footprint.versions[: -policy.versions_kept]
    if not old or (len(old) == 1 and old[0].is_stand_in):
        return None
    return RetentionAction(
        footprint.namespace,
        footprint.key,
        footprint.versions[-1].version,
        policy.name,
        "versions",
        old[-1].version,
        len(old),
        sum(each.size for each in old),
        policy.squash,
    )


@dataclass(frozen=True, slots=True)
class Sized:
    """How large everything was at a moment."""

    at: int
    size: int


def weekly_growth(samples: Sequence[Sized], now: Sized) -> int:
    """By how much it grew in the last week; if the sample before that is older, in a week on the average.

    While all samples are younger than a week, it is what it grew since the oldest.
    """
    earlier = sorted((each for each in samples if each.at < now.at), key=lambda each: each.at)
    if not earlier:
        return 0
    week = 7 * DAY
    base = next((each for each in reversed(earlier) if each.at <= now.at - week), earlier[0])
    grown = now.size - base.size
    return round(grown * week / max(week, now.at - base.at))
