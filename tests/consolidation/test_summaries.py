"""A summary says how it was made and what it rests on; what a model makes up is not in it."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemon import InvalidInput, LanguageModelUnavailable, Settings
from mnemon.consolidation.prompts import load_prompt
from mnemon.consolidation.sources import Fact, Source
from mnemon.consolidation.summaries import summarise
from mnemon.language import CheckedModel
from mnemon.testing import FakeLanguageModel, ManualClock
from mnemon.tokens import EstimatedTokens, counter

TALK = [
    Source("event-1", "I live in Oslo and I work for Acme.", "alice", datetime(2024, 5, 3, 9, 30, tzinfo=UTC)),
    Source("event-2", "The trip to Lisbon costs 400 euros.", "bob"),
    Source("event-3", "Actually, I moved to Bergen. I am not vegetarian.", "alice", datetime(2024, 6, 1, tzinfo=UTC)),
]
STATED = (
    Fact("alice", "home", "Oslo", "event-1"),
    Fact("alice", "employer", "Acme", "event-1"),
    Fact("alice", "home", "Bergen", "event-3", corrects=True),
)
SETTINGS = Settings(language_model_price=(1.0, 4.0))


def fact(subject: str, attribute: str, value: str, source: str) -> dict[str, str]:
    return {"subject": subject, "attribute": attribute, "value": value, "source": source}


def answer(*facts: dict[str, str], summary: str = "Alice moved from Oslo to Bergen.") -> dict[str, Any]:
    return {"summary": summary, "facts": list(facts)}


def checked(*answers: Any, settings: Settings = SETTINGS) -> tuple[CheckedModel, FakeLanguageModel]:
    fake = FakeLanguageModel(*answers)
    return CheckedModel(fake, ManualClock(), settings), fake


def data_in(fake: FakeLanguageModel, call: int = 0) -> Any:
    _, data, _ = fake.asked[call][1].content.split("\n")
    return json.loads(data)


# ------------------------------------------------------------------------------------------------- without a model


def test_without_a_model_it_is_an_extract() -> None:
    summary = summarise(TALK, 200)
    assert summary.method == "extractive"
    assert summary.text.splitlines()[0] == "2024-05-03 alice: I live in Oslo and I work for Acme."
    assert summary.sources == ("event-1", "event-2", "event-3")
    assert summary.facts == STATED
    assert (summary.model, summary.prompt_version, summary.fallback, summary.usage.calls) == (None, None, None, 0)


def test_of_nothing_there_is_an_empty_summary() -> None:
    model, fake = checked()
    assert summarise([Source("e", " ")], 50, model).text == ""
    assert not fake.asked


@pytest.mark.parametrize(("sources", "budget"), [(TALK, 0), ([TALK[0], TALK[0]], 50)])
def test_what_cannot_be_meant_is_refused(sources: list[Source], budget: int) -> None:
    with pytest.raises(InvalidInput):
        summarise(sources, budget)


# ---------------------------------------------------------------------------------------------------- with a model


def test_a_model_is_told_the_record_and_makes_the_summary() -> None:
    model, fake = checked(answer(fact("Lisbon trip", "cost", "400 euros", "s2")))
    summary = summarise(TALK, 60, model)
    assert summary.text == "Alice moved from Oslo to Bergen."
    assert (summary.method, summary.model) == ("model", "fake")
    assert summary.prompt_version == load_prompt("summarise").version
    assert summary.sources == ("event-1", "event-2", "event-3")
    assert summary.facts == (*STATED, Fact("Lisbon trip", "cost", "400 euros", "event-2"))
    assert summary.usage.calls == 1
    assert summary.usage.cost is not None
    assert summary.usage.cost > 0
    told = data_in(fake)
    assert told["record"][0] == {
        "id": "s1", "who": "alice", "when": "2024-05-03T09:30+00:00", "text": "I live in Oslo and I work for Acme.",
    }  # fmt: skip
    assert [item["id"] for item in told["record"]] == ["s1", "s2", "s3"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (fact("alice", "home", "Oslo", "s9"), "there is no such source"),
        (fact("alice", "home", "Oslo", "event-1"), "that is not what the source was called"),
        (fact("alice", "home", "Paris", "s1"), "no source says so"),
        (fact("alice", "home", "Oslo", "s2"), "that source does not say so"),
        (fact("alice", "diet", "vegetarian", "s3"), "the source denies it"),
        (fact("alice", "home", "not Oslo", "s1"), "the source does not deny it"),
        (fact("carol", "home", "Oslo", "s1"), "nobody is called so"),
        (fact("alice", "price", "500 euros", "s2"), "the number is another"),
        (fact("alice", "home", "the of and", "s1"), "there is no word in it"),
    ],
)
def test_a_fact_without_support_is_dropped_and_counted(wrong: dict[str, str], why: str) -> None:
    right = fact("trip", "price", "400 euros", "s2")
    summary = summarise(TALK, 60, checked(answer(wrong, right, wrong))[0])
    assert summary.facts == (*STATED, Fact("trip", "price", "400 euros", "event-2")), why
    assert summary.dropped == 2


def test_a_fact_that_is_stated_plainly_is_there_once() -> None:
    summary = summarise(TALK, 60, checked(answer(fact("Alice", "lives in", "OSLO", "s1")))[0])
    assert summary.facts == STATED
    assert summary.dropped == 0


@pytest.mark.parametrize("budget", [1, 5, 20])
def test_a_summary_that_is_too_long_is_cut(budget: int) -> None:
    for tokens in (EstimatedTokens(), counter()):
        text = "word " * (budget + 10)
        summary = summarise(TALK, budget, checked(answer(summary=text))[0], tokens)
        assert summary.method == "model"
        assert tokens.count(summary.text) <= budget


def test_what_cannot_be_seen_is_not_kept() -> None:
    summary = summarise(TALK, 60, checked(answer(summary="A\x00lice\u202e moved\n\U000e0041 out."))[0])
    assert summary.text == "A lice  moved\n  out."


def test_a_record_that_is_too_long_is_read_in_parts() -> None:
    settings = replace(SETTINGS, language_model_context=4096)
    talk = [Source(f"e{n}", f"The depot {n} holds {n} boxes. " * 20, "bob") for n in range(40)]
    answers = [answer(fact("bob", "boxes", f"{n} boxes", "s1"), summary=f"Part {n}.") for n in range(40)]
    model, fake = checked(*answers, settings=settings)
    summary = summarise(talk, 100, model)
    parts = [data_in(fake, call)["record"] for call in range(len(fake.asked))]
    assert 2 < len(parts) < 20
    assert [item["text"] for part in parts for item in part] == [source.text for source in talk]
    assert [part[0]["id"] for part in parts] == ["s1"] * len(parts)
    assert summary.text.splitlines() == [f"Part {n}." for n in range(len(parts))]
    assert summary.usage.calls == len(parts)
    # a label means another source in each part
    assert all(fact.source == f"e{fact.value.split()[0]}" for fact in summary.facts)
    assert len(summary.facts) + summary.dropped == len(parts)


def test_a_turn_that_is_too_long_is_cut() -> None:
    settings = replace(SETTINGS, language_model_context=4096)
    model, fake = checked(answer(), settings=settings)
    summary = summarise([Source("e1", "word " * 10_000)], 50, model)
    assert summary.method == "model"
    assert 500 < data_in(fake)["record"][0]["text"].count("word") < 4000


# --------------------------------------------------------------------------------------------------------- falling back


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([LanguageModelUnavailable("it is down")], "it is down"),
        (["no JSON", "no JSON"], "answered what was not asked for, twice: it has no JSON object"),
        ([{"summary": "", "facts": []}] * 2, "summary is too short"),
        ([{"summary": "s"}] * 2, "has no 'facts'"),
        ([answer() | {"trust": 1}] * 2, "has 'trust', which nobody asked for"),
        ([answer(summary="x" * 2000)] * 2, "longer than"),
        ([answer(*[fact("alice", "home", "Oslo", "s1")] * 50)] * 2, "more than 8 items"),
    ],
)
def test_a_model_that_cannot_do_it_is_done_without(answers: list[Any], reason: str) -> None:
    summary = summarise(TALK, 60, checked(*answers)[0])
    assert summary.method == "extractive"
    assert summary.fallback is not None
    assert reason in summary.fallback
    assert summary.text == summarise(TALK, 60).text
    assert summary.facts == STATED
    assert summary.prompt_version is None
    assert summary.usage.calls == summary.usage.failures == len(answers)


def test_a_budget_that_leaves_no_room_is_done_without_a_model() -> None:
    model, fake = checked(settings=replace(SETTINGS, language_model_context=1024))
    summary = summarise(TALK, 400, model)
    assert summary.method == "extractive"
    assert summary.fallback is not None
    assert "raise language_model_context" in summary.fallback
    assert not fake.asked
