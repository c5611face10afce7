"""What is to become of memories that say the same or deny each other: pure, but for a judge that may ask a model.

A strategy is a judge: it is shown two memories, as they stand after what was decided before, and says which is to
stay. Findings are gone through in an order of their own, so that the same memories always come to the same plan.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast

from mnemon.consolidation.conflicts import Finding, age, statement_of
from mnemon.consolidation.merging import merge
from mnemon.consolidation.sources import Source, is_denial, is_supported
from mnemon.language import CheckedModel
from mnemon.model import ConsolidationStep, Memory, MemoryConflict, MemoryVersion, Usage
from mnemon.texts import text_of

_SAME = ("duplicate", "near_duplicate")


@dataclass(frozen=True, slots=True)
class ConsolidationPlan:
    """What is to be done, and what is left to a person.

    `suspected` are those about which neither a person nor a model is asked, `settled` those of which a model says that
    both are to stay; `left` counts the latter, and those of which nobody could say anything.
    """

    steps: tuple[ConsolidationStep, ...] = ()
    for_review: tuple[MemoryConflict, ...] = ()
    settled: tuple[MemoryConflict, ...] = ()
    suspected: tuple[MemoryConflict, ...] = ()
    left: int = 0
    fallbacks: Mapping[str, int] = field(default_factory=dict[str, int])
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Standing:
    """A memory as it stands in the plan: what it says by now, and how far that is to be trusted."""

    memory: Memory
    value: Any
    trust: float
    is_merged: bool = False

    @property
    def at(self) -> datetime:
        """Since when it is true."""
        return self.memory.placement.valid_from or self.memory.placement.occurred_at or self.memory.updated_at

    @property
    def source(self) -> Source:
        return Source(str(self.memory.id), text_of(self.value), self.memory.provenance.author, self.at)


class Judgement(NamedTuple):
    """What is to become of two memories, of which the second is the later; `value` is what a merged one says."""

    decision: Literal["first", "second", "merge", "both", "review", "suspected"]
    method: str
    reason: str = ""
    value: Any = None
    fallback: str | None = None
    usage: Usage | None = None


Judge = Callable[[Finding, Standing, Standing], Judgement]


# ---------------------------------------------------------------------------------------------------------- strategies


def judge_of(strategy: str, model: CheckedModel | None) -> Judge:
    """The strategy of this name. Only `llm_based` may block.

    What is only suspected is for a person or a model to decide: without either it stays so.
    """
    judges: dict[str, Judge] = {
        "latest_wins": lambda _, first, second: Judgement("second", "latest_wins"),
        "highest_trust": lambda _, first, second: Judgement(_trusted(first, second), "highest_trust"),
        "merge": _merge,
        "llm_based": lambda finding, first, second: _ask(finding, first, second, model),
        "review": lambda _, first, second: Judgement("review", "review"),
    }
    judge = judges[strategy]
    asks = strategy == "review" or (strategy == "llm_based" and model is not None)

    def decide(finding: Finding, first: Standing, second: Standing) -> Judgement:
        if finding.certainty == "certain":
            return judge(finding, first, second)
        judgement = judge(finding, first, second) if asks else Judgement("suspected", strategy)
        return judgement if judgement.fallback is None else judgement._replace(decision="suspected")

    return decide


def _trusted(first: Standing, second: Standing) -> Literal["first", "second"]:
    """The one that is trusted more, or else the later one."""
    return "first" if first.trust > second.trust else "second"


def _merge(finding: Finding, first: Standing, second: Standing) -> Judgement:
    if finding.kind == "duplicate":
        return Judgement(_trusted(first, second), "merge")
    if finding.kind == "near_duplicate" and isinstance(first.value, str) and isinstance(second.value, str):
        return Judgement("first" if len(first.value) > len(second.value) else "second", "merge")
    combined = combine(first.value, second.value)
    if combined == second.value:
        return Judgement("second", "merge")
    return Judgement("merge", "merge", value=combined)


def combine(earlier: Any, later: Any) -> Any:
    """Both in one value: fields of either, and texts one after the other. Where they differ the later one holds."""
    if isinstance(earlier, dict) and isinstance(later, dict):
        return cast("dict[str, Any]", earlier | later)
    if isinstance(earlier, str) and isinstance(later, str):
        return f"{later}\nEarlier: {earlier}"
    return later


def _ask(finding: Finding, first: Standing, second: Standing, model: CheckedModel | None) -> Judgement:
    """What a model says, or else the dates.

    One that is trusted more is not given up for one that is trusted less, whatever that one says to the model.
    """
    if finding.kind == "duplicate":
        return Judgement(_trusted(first, second), "highest_trust")
    told = merge(first.source, second.source, model)
    method = "llm_based" if told.method == "model" else told.method
    judgement = Judgement("both", method, told.reason, None, told.fallback, told.usage)
    texts = isinstance(first.value, str) and isinstance(second.value, str)
    match told.decision:
        case "merge":
            value = told.text if texts else combine(first.value, second.value)
            asked = judgement._replace(decision="merge", value=value)
        case "keep_first":
            asked = judgement._replace(decision="first", value=first.value)
        case "keep_second":
            asked = judgement._replace(decision="second", value=second.value)
        case "both":
            return judgement
    weaker, stronger = sorted((first, second), key=lambda each: each.trust)
    is_safe = weaker.trust == stronger.trust or _holds(stronger, asked.value)
    return asked if is_safe else judgement._replace(decision="review")


def _holds(standing: Standing, value: Any) -> bool:
    """Whether a value still says what a memory says."""
    mine = standing.value
    if isinstance(mine, str) and isinstance(value, str) and mine != value:
        return is_supported(mine, [value]) and (is_denial(mine) or not is_denial(value))
    if isinstance(mine, dict) and isinstance(value, dict):
        fields, others = cast("dict[str, Any]", mine), cast("dict[str, Any]", value)
        return all(name in others and others[name] == field for name, field in fields.items())
    return mine == value


# -------------------------------------------------------------------------------------------------------------- plans


def make_plan(
    memories: Iterable[Memory], findings: Sequence[Finding], strategy: str, judge: Judge, known: Set[str] = frozenset()
) -> ConsolidationPlan:
    """What is to become of the memories that were found; `known` are digests of pairs that are to be left alone."""
    draft = _Draft({memory.id: memory for memory in memories}, known)
    for finding in sorted(findings, key=lambda each: _order(each, strategy)):
        draft.decide(finding, judge)
    return draft.plan()


def _order(finding: Finding, strategy: str) -> tuple[Any, ...]:
    """The certain come first; of these those that say the same, and then those of which the weaker is the weakest."""
    weakest = min(finding.first.trust, finding.second.trust) if strategy == "highest_trust" else 0.0
    differs = finding.kind not in _SAME
    return finding.certainty, differs, finding.kind, weakest, age(finding.first), -finding.score, age(finding.second)


class _Pair(NamedTuple):
    """Two memories that a finding is about, or that have taken the places of those."""

    finding: Finding
    first: Any
    second: Any


class _Draft:
    """A plan in the making: into which memory each one goes, and what those say that remain."""

    def __init__(self, memories: Mapping[Any, Memory], known: Set[str]) -> None:
        self._memories = memories
        self._known = known
        self._standing = {
            identifier: Standing(memory, memory.value, memory.provenance.trust)
            for identifier, memory in memories.items()
        }
        self._into: dict[Any, Any] = {}
        self._lost: set[Any] = set()  # went into another that does not say the same
        self._told: dict[Any, list[tuple[str, Judgement, str]]] = {}
        self._for_review: list[_Pair] = []
        self._settled: list[_Pair] = []
        self._suspected: list[_Pair] = []
        self._left = 0
        self._fallbacks: Counter[str] = Counter()
        self._usage = Usage()

    def decide(self, finding: Finding, judge: Judge) -> None:
        pair = self._pair(finding)
        if pair is None or self._is_known(_Pair(finding, finding.first.id, finding.second.id)) or self._is_known(pair):
            return
        first, second = pair.first, pair.second
        one, other = self._standing[first], self._standing[second]
        judgement = judge(finding, one, other)
        if judgement.usage:
            self._usage = self._usage.plus(judgement.usage)
        if judgement.fallback:
            self._fallbacks[judgement.fallback] += 1
        match judgement.decision:
            case "review":
                self._for_review.append(pair)
            case "suspected":
                self._suspected.append(pair)
            case "both":
                self._left += 1
                self._settled += [pair] if judgement.fallback is None else []
            case "merge":
                merged = {"value": judgement.value, "trust": min(one.trust, other.trust), "is_merged": True}
                self._standing[second] = replace(other, **merged)
                self._go(first, second, finding, judgement, lost=False)
            case decision:
                loser, winner = (second, first) if decision == "first" else (first, second)
                self._go(loser, winner, finding, judgement, lost=finding.kind not in _SAME)

    def _pair(self, finding: Finding) -> _Pair | None:
        """The memories that say by now what the two said; None if one was given up, or they have become one.

        A suspicion is of these very words: it says nothing of what took their places.
        """
        found = finding.first.id, finding.second.id
        first, second = map(self._stand, found)
        if first is None or second is None or first == second:
            return None
        is_same = (first, second) == found
        if finding.certainty == "suspected" and not (is_same and all(self._is_as_found(each) for each in found)):
            return None
        if is_same:
            return _Pair(finding, first, second)
        return _Pair(finding, *sorted((first, second), key=lambda each: age(statement_of(self._memories[each]))))

    def _is_as_found(self, identifier: Any) -> bool:
        return not self._standing[identifier].is_merged

    def plan(self) -> ConsolidationPlan:
        groups: dict[Any, list[Any]] = {}
        for identifier in self._into:
            groups.setdefault(self._root(identifier), []).append(identifier)
        steps = [self._step(root, members) for root, members in groups.items()]
        return ConsolidationPlan(
            tuple(sorted(steps, key=lambda step: (step.kept.namespace, step.kept.key))),
            self._lasting(self._for_review), self._lasting(self._settled), self._lasting(self._suspected), self._left,
            dict(self._fallbacks), self._usage,
        )  # fmt: skip

    def _lasting(self, pairs: Iterable[_Pair]) -> tuple[MemoryConflict, ...]:
        """Those of which the plan changes neither memory. The others are found again, as they are then."""
        gone = {*self._into, *(each for each, standing in self._standing.items() if standing.is_merged)}
        return tuple(self._conflict(pair) for pair in pairs if gone.isdisjoint((pair.first, pair.second)))

    def _is_known(self, pair: _Pair) -> bool:
        return digest_of(self._conflict(pair)) in self._known

    def _conflict(self, pair: _Pair) -> MemoryConflict:
        first, second = (version_of(self._memories[each]) for each in (pair.first, pair.second))
        found = pair.finding
        return MemoryConflict(found.kind, first, second, found.score, found.reason, found.certainty)

    def _go(self, loser: Any, winner: Any, finding: Finding, judgement: Judgement, *, lost: bool) -> None:
        self._into[loser] = winner
        if lost:
            self._lost.add(loser)
        self._told.setdefault(loser, []).append((finding.kind, judgement, judgement.reason or finding.reason))

    def _stand(self, identifier: Any) -> Any | None:
        """The memory that says by now what this one says; None if it was given up."""
        while identifier in self._into:
            if identifier in self._lost:
                return None
            identifier = self._into[identifier]
        return identifier

    def _root(self, identifier: Any) -> Any:
        while identifier in self._into:
            identifier = self._into[identifier]
        return identifier

    def _step(self, root: Any, members: Sequence[Any]) -> ConsolidationStep:
        standing = self._standing[root]
        told = [each for member in members for each in self._told[member]]
        retired = sorted((version_of(self._memories[each]) for each in members), key=lambda each: each.key)
        sources = [self._memories[each].provenance.trust for each in (root, *members)]
        return ConsolidationStep(
            version_of(standing.memory),
            tuple(retired),
            tuple(sorted({kind for kind, _, _ in told})),
            "+".join(sorted({judgement.method for _, judgement, _ in told})),
            "; ".join(dict.fromkeys(reason for _, _, reason in told)),
            standing.value,
            min(sources) if standing.is_merged else standing.trust,
            standing.is_merged,
        )


def version_of(memory: Memory) -> MemoryVersion:
    return MemoryVersion(memory.namespace, memory.key, memory.version)


def digest_of(conflict: MemoryConflict) -> str:
    """The same for the same two versions, whichever comes first."""
    versions = sorted(f"{each.namespace}\0{each.key}\0{each.version}" for each in (conflict.first, conflict.second))
    return hashlib.sha256("\0".join(versions).encode()).hexdigest()
