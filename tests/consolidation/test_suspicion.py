"""Pairs about which no rule decides are suspected if they are very probably of one thing, and only told of."""

import random
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import mnemon
from benchmarks import conflicts, suspicion
from mnemon import Settings, SystemClock
from mnemon.consolidation.conflicts import Finding, Statement, find
from mnemon.consolidation.planning import ConsolidationPlan, digest_of, judge_of, make_plan
from mnemon.consolidation.suspicion import SIGNS, Embed
from mnemon.language import CheckedModel
from mnemon.testing import FakeLanguageModel
from tests.consolidation.test_planning import finding, memory

DATA = Path(__file__).parent.parent / "data"
ANN = "user:ann"
FEE = ("Late returns cost 50 cents per day.", "The late fee is 50 cents a day.")
ALBUM = ("The album comes out in May.", "The album release was postponed to August.")
BY_RULE = ["latest_wins", "highest_trust", "merge"]


@pytest.fixture(scope="module")
def embed() -> Embed:
    return conflicts.static()


def found(texts: tuple[str, ...] | list[str], embed: Embed | None) -> list[Finding]:
    return find([Statement(f"{at:02}", ANN, f"note-{at}", text) for at, text in enumerate(texts)], embed)


# ------------------------------------------------------------------------------------------------------- what it is


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("near_duplicate", FEE),
        ("near_duplicate", ("Ann collects stamps.", "Ann is a stamp collector.")),
        ("near_duplicate", ("Remote work is allowed on Mondays.", "Working remotely is permitted on Mondays.")),
        ("contradiction", ALBUM),
    ],
)
def test_what_no_rule_decides_may_be_suspected(kind: str, texts: tuple[str, str], embed: Embed) -> None:
    [suspected] = found(texts, embed)
    assert (suspected.kind, suspected.certainty) == (kind, "suspected")
    assert suspected.reason.startswith("suspected: probably")
    assert 0.75 <= suspected.score < 1
    assert found(texts, None) == [], "without vectors nothing is"


def test_what_a_rule_decides_is_certain(embed: Embed) -> None:
    texts = ("Ann lives in Bergen.", "Ann now lives in Oslo.", "The build takes 90 minutes.", "The build takes 1.5 h.")
    assert found(texts, embed) == found(texts, None)
    assert {each.certainty for each in found(texts, embed)} == {"certain"}


@pytest.mark.parametrize(
    "texts",
    [
        ("Ann manages Bo.", "Bo manages Ann."),
        ("Ann likes tea.", "Ann likes coffee."),
        ("The retro is on Thursday.", "The retro is on Thursday at 3 pm."),
        ("Are late returns 50 cents per day?", "The late fee is 50 cents a day."),
        ("Ann collects stamps.", "Bo is a stamp collector."),
        ("Server 1 has 64 GB of RAM.", "The memory of server 2 is 64 GB."),
        ("The price is at least $100.", "The price is $120."),
        ("Ann wants to visit Iceland.", "Ann has visited Iceland."),
        ("Some backups are encrypted.", "Some backups are unencrypted."),
        ("The bridge is 300 m long.", "The width of the bridge is 300 m."),
        ("Our flight was delayed.", "Their flight was late."),
        ("Felipe spielt Cello im Orchester.", "Felipe ist Cellist im Orchester."),
    ],
)
def test_what_is_known_to_be_of_two_things_is_not(texts: tuple[str, str], embed: Embed) -> None:
    assert found(texts, embed) == []


def test_records_are_left_to_the_rules(embed: Embed) -> None:
    records = [{"fee": "50 cents per day", "for": "late returns"}, {"late_fee": "50 cents a day", "of": "returns"}]
    statements = [Statement(at, ANN, f"note-{at}", value) for at, value in enumerate(records)]
    assert find(statements, embed) == []


# ------------------------------------------------------------------------------------------------------ among many


def test_each_is_the_best_match_of_the_other(embed: Embed) -> None:
    """Given three that are alike, when they are compared, then only the best pair of them is suspected."""
    texts = [*FEE, "Returning a book late costs 50 cents for each day."]
    [suspected] = [each for each in found(texts, embed) if each.certainty == "suspected"]
    assert {suspected.first.value, suspected.second.value} == set(FEE)


def test_the_order_of_memories_does_not_matter(embed: Embed) -> None:
    pairs = conflicts.read_pairs(DATA / "conflicts" / "blind_5.jsonl")
    statements = [
        Statement(f"{pair.id}{side.id}", ANN, side.key, side.value) for pair in pairs for side in pair.statements
    ]
    expected = find(statements, embed)
    random.Random(3).shuffle(statements)
    assert find(statements, embed) == expected
    suspected = [each for each in expected if each.certainty == "suspected"]
    assert suspected
    assert expected[-len(suspected) :] == suspected, "what is certain comes first"
    named = [each.id for finding in suspected for each in (finding.first, finding.second)]
    assert len(named) == len(set(named))


@pytest.mark.parametrize("name", ["held_out", "held_out_2", "blind_1", "blind_2", "blind_3", "blind_4", "blind_5"])
def test_hardly_anything_is_suspected_that_is_not_so(name: str, embed: Embed) -> None:
    pairs = conflicts.judged(DATA / "conflicts" / f"{name}.jsonl", embed)
    certain, together = conflicts.scores(pairs), conflicts.scores(pair.with_suspected for pair in pairs)
    assert together.precision >= conflicts.PRECISION
    assert together.recall >= certain.recall
    assert not any(pair.suspected != "none" for pair in pairs if pair.label == "none")


@pytest.mark.unmeasured
def test_in_a_large_namespace_few_are_suspected_and_most_are_right(embed: Embed) -> None:
    """Given all memories of all sets in one namespace: of what is suspected and has a label, nine of ten are right."""
    labels = {
        frozenset(map(str, (pair.first, pair.second))): pair.label
        for path in (*sorted((DATA / "conflicts").glob("*.jsonl")), DATA / "suspicion" / "neighbours.jsonl")
        for pair in conflicts.read_pairs(path)
    }
    statements = suspicion.namespace()
    suspected = [each for each in find(statements, embed) if each.certainty == "suspected"]
    told = [labels.get(frozenset((str(each.first.value), str(each.second.value)))) for each in suspected]
    known = [label for label in told if label is not None]
    assert len(statements) > 3000
    assert len(suspected) < len(statements) / 40
    assert len(known) > len(told) / 2
    assert sum(label != "none" for label in known) >= 0.85 * len(known)


# ---------------------------------------------------------------------------------------------------------- weights


def test_the_weights_are_those_that_the_labels_give(embed: Embed) -> None:
    pairs = [*suspicion.weighed(suspicion.undecided(), embed), *suspicion.weighed(suspicion.neighbours(), embed)]
    kept, made = (
        tomllib.loads(text) for text in (suspicion.WEIGHTS.read_text("utf-8"), suspicion.written(suspicion.fit(pairs)))
    )
    assert kept["threshold"] == made["threshold"]
    for family in ("same", "conflict"):
        assert kept[family].keys() == {"bias", *SIGNS}
        assert kept[family] == pytest.approx(made[family], abs=0.01)


def test_of_a_set_that_they_have_not_seen_they_are_right(embed: Embed) -> None:
    asked = suspicion.weighed(suspicion.undecided(), embed)
    told = list(suspicion.left_out(asked, suspicion.weighed(suspicion.neighbours(), embed)))
    suspected, right, related = (sum(row[at] for row in told) for at in (1, 2, 3))
    assert suspected >= 90
    assert right >= 0.93 * suspected
    assert related >= 0.98 * suspected


@pytest.mark.unmeasured
def test_they_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert suspicion.main(["--suspected"]) == 0
    printed = capsys.readouterr().out
    assert "blind_1: " in printed
    assert "near_duplicate: 'Late returns cost 50 cents per day.'" in printed


# ----------------------------------------------------------------------------------------------------------- plans


def planned(strategy: str, model: FakeLanguageModel | None = None, known: Any = frozenset()) -> ConsolidationPlan:
    one, other = memory(1, FEE[0]), memory(2, FEE[1])
    suspected = finding("near_duplicate", one, other, certainty="suspected")
    checked = None if model is None else CheckedModel(model, SystemClock(), Settings())
    return make_plan([one, other], [suspected], strategy, judge_of(strategy, checked), known)


@pytest.mark.parametrize("strategy", [*BY_RULE, "llm_based"])
def test_no_strategy_acts_on_what_is_suspected(strategy: str) -> None:
    made = planned(strategy)
    assert (made.steps, made.for_review, made.left, made.fallbacks) == ((), (), 0, {})
    [told] = made.suspected
    assert (told.first.key, told.second.key, told.certainty) == ("note-1", "note-2", "suspected")
    assert planned(strategy, known=frozenset((digest_of(told),))).suspected == (), "somebody said that both stay"


def test_a_person_is_asked() -> None:
    made = planned("review")
    assert (made.steps, made.suspected, [each.certainty for each in made.for_review]) == ((), (), ["suspected"])


def test_a_model_decides() -> None:
    kept = planned("llm_based", FakeLanguageModel({"decision": "keep_second", "text": "", "reason": "the same"}))
    assert ([step.kept.key for step in kept.steps], kept.suspected) == (["note-2"], ())
    both = planned("llm_based", FakeLanguageModel({"decision": "both", "text": "", "reason": "two things"}))
    assert (both.steps, len(both.settled), both.suspected) == ((), 1, ())


def test_if_the_model_fails_it_stays_suspected() -> None:
    made = planned("llm_based", FakeLanguageModel("no JSON", "no JSON", "no JSON", "no JSON"))
    assert (made.steps, made.left, len(made.suspected)) == ((), 0, 1)
    assert sum(made.fallbacks.values()) == 1


@pytest.mark.parametrize("strategy", BY_RULE)
def test_of_what_the_plan_changes_nothing_is_suspected(strategy: str) -> None:
    """Given a suspicion about a memory that goes into another: what it says then is to be looked at anew."""
    one, other, third = memory(1, FEE[0]), memory(2, FEE[1]), memory(3, {"fee": 2})
    findings = [finding("near_duplicate", one, other, certainty="suspected"), finding("superseded", one, third)]
    made = make_plan([one, other, third], findings, strategy, judge_of(strategy, None))
    assert ([step.kept.key for step in made.steps], made.suspected) == (["note-3"], ())


# ------------------------------------------------------------------------------------------------------- services


@pytest.fixture
async def noted() -> AsyncIterator[mnemon.HybridMemoryService]:
    async with mnemon.open("sqlite://", background=False) as opened:
        for at, text in enumerate(FEE, 1):
            await opened.remember(text, namespace=ANN, key=f"note-{at}")
        yield opened


@pytest.mark.parametrize("strategy", [*BY_RULE, "llm_based"])
async def test_it_is_reported_and_left_alone(noted: mnemon.HybridMemoryService, strategy: str) -> None:
    dry = await noted.consolidate(ANN, strategy, dry_run=True)
    report = await noted.consolidate(ANN, strategy)
    assert (report.findings, report.steps, report.for_review) == (0, (), ())
    [told] = report.suspected
    assert dry.suspected == report.suspected
    assert (told.kind, told.first.key, told.second.key) == ("near_duplicate", "note-1", "note-2")
    assert len(await noted.memories.search_memories(ANN)) == 2


async def test_a_review_of_it_says_so_and_is_decided_once(noted: mnemon.HybridMemoryService) -> None:
    assert len((await noted.consolidate(ANN, "review")).for_review) == 1
    [review] = await noted.consolidation.reviews()
    assert (review.reason, review.kind) == ("suspected", "near_duplicate")
    await noted.consolidation.decide(review.id, "both")
    assert (await noted.consolidate(ANN, "latest_wins")).suspected == ()


async def test_without_embeddings_nothing_is_suspected() -> None:
    async with mnemon.open("sqlite://", background=False, embedder="none") as plain:
        for at, text in enumerate(FEE, 1):
            await plain.remember(text, namespace=ANN, key=f"note-{at}")
        assert (await plain.consolidate(ANN, "latest_wins")).suspected == ()
