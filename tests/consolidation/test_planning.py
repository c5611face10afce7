"""Plans are pure: the same memories come to the same plan, in whatever order they are given."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemon import Settings, SystemClock
from mnemon.consolidation.conflicts import Finding, find, statement_of
from mnemon.consolidation.planning import (
    ConsolidationPlan,
    Judgement,
    Standing,
    combine,
    digest_of,
    judge_of,
    make_plan,
)
from mnemon.language import CheckedModel
from mnemon.model import Certainty, ConsolidationStrategy, Memory, MemoryType, Placement, Provenance
from mnemon.testing import FakeLanguageModel
from mnemon.texts import text_of

START = datetime(2030, 1, 1, tzinfo=UTC)
PURE = ["latest_wins", "highest_trust", "merge", "llm_based", "review"]
TEXTS = [
    "Ann lives in Bergen.", "Ann now lives in Oslo.", "Ann lives in Bergen.", "The build takes 90 minutes.",
    "The build takes 1.5 h.", "The build takes 2 hours.", "Ann moved to Rome.", "Ann's sister lives in Rome.",
]  # fmt: skip


def memory(number: int, value: Any, trust: float = 1.0) -> Memory:
    at = START + timedelta(minutes=number)
    return Memory(
        number, "user:ann", f"note-{number}", value, MemoryType.SEMANTIC, 1, False, True, {}, None, None, None, at, at,
        Provenance(trust=trust), Placement(valid_from=at),
    )  # fmt: skip


def finding(kind: Any, first: Memory, second: Memory, certainty: Certainty = "certain") -> Finding:
    return Finding(kind, statement_of(first), statement_of(second), 0.9, "rule: a reason", certainty=certainty)


def plan(memories: Sequence[Memory], strategy: str, findings: Sequence[Finding] | None = None) -> ConsolidationPlan:
    found = find([statement_of(each) for each in memories]) if findings is None else findings
    return make_plan(memories, found, strategy, judge_of(strategy, None))


def went(made: ConsolidationPlan) -> dict[str, list[str]]:
    """Which memories go into which."""
    return {step.kept.key: [each.key for each in step.retired] for step in made.steps}


@pytest.mark.parametrize("strategy", PURE)
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_memories_and_findings_does_not_matter(strategy: str, seed: int) -> None:
    chance = random.Random(seed)
    memories = [memory(number, text, chance.choice([0.2, 0.5, 1.0])) for number, text in enumerate(TEXTS, 1)]
    findings = find([statement_of(each) for each in memories])
    assert len(findings) > 3
    expected = plan(memories, strategy, findings)
    for _ in range(5):
        chance.shuffle(memories)
        chance.shuffle(findings)
        assert plan(memories, strategy, findings) == expected


@pytest.mark.parametrize("strategy", PURE)
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_found_each_memory_goes_once_and_into_one_that_stays(strategy: str, seed: int) -> None:
    """Also where findings go round in a circle."""
    chance = random.Random(seed)
    memories = [memory(number, f"text {number}", chance.choice([0.2, 0.5, 1.0])) for number in range(8)]
    kinds = ["duplicate", "near_duplicate", "contradiction", "superseded"]
    findings = [finding(chance.choice(kinds), *chance.sample(memories, 2)) for _ in range(12)]
    made = plan(memories, strategy, findings)
    gone = [each for step in made.steps for each in step.retired]
    assert len(gone) == len(set(gone))
    assert not set(gone) & {step.kept for step in made.steps}
    changed = {each for step in made.steps for each in (*step.retired, *([step.kept] if step.is_merged else []))}
    asked = {each for conflict in made.for_review for each in (conflict.first, conflict.second)}
    assert not changed & asked, "what is asked about is there when it is decided"


def test_of_two_that_deny_different_things_of_a_third_both_stay() -> None:
    m, n, p = memory(1, "Ann lives in Bergen and likes tea"), memory(2, "Ann lives in Oslo"), memory(3, "likes coffee")
    made = plan([m, n, p], "latest_wins", [finding("superseded", m, n), finding("superseded", m, p)])
    assert went(made) == {"note-2": ["note-1"]}


def test_a_chain_ends_in_the_last() -> None:
    a, b, c = (memory(number, f"text {number}") for number in range(3))
    made = plan([a, b, c], "latest_wins", [finding("superseded", b, c), finding("superseded", a, b)])
    assert went(made) == {"note-2": ["note-0", "note-1"]}
    made = plan([a, b, c], "merge", [finding("near_duplicate", a, b), finding("superseded", b, c)])
    assert made.steps[0].value == "text 2\nEarlier: text 1"


def test_what_says_that_it_replaces_the_other_does_though_it_is_older() -> None:
    older, newer = memory(1, "Ann lives in Oslo now"), memory(2, "Ann lives in Bergen")
    assert went(plan([older, newer], "latest_wins", [finding("superseded", newer, older)])) == {"note-1": ["note-2"]}


def test_the_trust_of_what_is_merged_is_the_lowest_of_all_that_went_into_it() -> None:
    memories = [memory(1, "a", 0.9), memory(2, "b", 0.1), memory(3, "c", 0.5)]
    found = [finding("superseded", memories[0], memories[1]), finding("superseded", memories[1], memories[2])]
    [step] = plan(memories, "merge", found).steps
    assert (step.trust, step.is_merged, step.value) == (0.1, True, "c\nEarlier: b\nEarlier: a")


def test_without_a_model_the_more_trusted_is_not_given_up() -> None:
    first, second = memory(1, "Ann lives in Bergen.", 0.9), memory(2, "Ann now lives in Oslo.", 0.2)
    made = plan([first, second], "llm_based")
    assert (made.steps, len(made.for_review)) == ((), 1)
    assert made.fallbacks == {"no language model is configured": 1}


def test_what_is_known_is_left_alone() -> None:
    memories = [memory(1, "Ann lives in Bergen."), memory(2, "Ann now lives in Oslo.")]
    findings = find([statement_of(each) for each in memories])
    [conflict] = make_plan(memories, findings, "review", judge_of("review", None)).for_review
    known = {digest_of(conflict)}
    for strategy in PURE:
        made = make_plan(memories, findings, strategy, judge_of(strategy, None), known)
        assert (made.steps, made.for_review) == ((), ())


def test_a_judge_sees_what_was_merged_before() -> None:
    a, b, c = (memory(number, f"text {number}", 0.5) for number in range(3))
    seen: list[tuple[Any, Any]] = []

    def judge(_: Finding, first: Any, second: Any) -> Judgement:
        seen.append((first.value, second.value))
        return Judgement("merge", "test", value=f"{first.value}+{second.value}")

    made = make_plan([a, b, c], [finding("superseded", a, b), finding("superseded", b, c)], "merge", judge)
    assert seen == [("text 0", "text 1"), ("text 0+text 1", "text 2")]
    assert [step.value for step in made.steps] == ["text 0+text 1+text 2"]


def test_what_cannot_be_combined_is_the_later() -> None:
    assert combine([1], [2]) == [2]
    assert combine("text", {"a": 1}) == {"a": 1}
    assert combine({"a": 1, "b": 1}, {"a": 2}) == {"a": 2, "b": 1}


def test_every_strategy_has_a_judge() -> None:
    assert [str(each) for each in ConsolidationStrategy] == PURE
    for strategy in PURE:
        assert callable(judge_of(strategy, None))


@pytest.mark.parametrize(
    ("trusted", "other", "merged", "decision"),
    [
        ("Ann lives in Bergen.", "Ann lives in Oslo.", "Ann lives in Bergen, Oslo", "merge"),
        ("Ann lives in Bergen.", "Ann lives in Oslo.", "Ann lives in Oslo.", "review"),
        ("Ann lives in Bergen.", "Ann does not live in Bergen.", "Ann does not live in Bergen", "review"),
        ({"city": "Bergen"}, {"diet": "vegan"}, "", "merge"),
        ({"city": "Bergen"}, {"city": "Oslo"}, "", "review"),
        ("Ann lives in Bergen.", {"city": "Oslo"}, "", "review"),
    ],
)
def test_a_model_cannot_merge_the_trusted_away(trusted: Any, other: Any, merged: str, decision: str) -> None:
    """Given a memory that is trusted less, when a model merges it with another, then that one still says its own."""
    text = merged or text_of(other)
    model = FakeLanguageModel({"decision": "merge", "text": text, "reason": "told to"})
    asked = judge_of("llm_based", CheckedModel(model, SystemClock(), Settings()))
    first, second = memory(1, trusted, 0.9), memory(2, other, 0.2)
    judgement = asked(
        finding("contradiction", first, second), Standing(first, trusted, 0.9), Standing(second, other, 0.2)
    )
    assert (judgement.decision, judgement.method) == (decision, "llm_based")
