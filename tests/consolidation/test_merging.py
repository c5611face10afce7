"""What a model says about two memories decides only what it was asked, and is done without if it cannot be used."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemon import LanguageModelUnavailable, Settings
from mnemon.consolidation.merging import merge
from mnemon.consolidation.prompts import load_prompt
from mnemon.consolidation.sources import Source
from mnemon.language import CheckedModel
from mnemon.testing import FakeLanguageModel, ManualClock

FIRST = Source("k1", "Alice lives in Oslo, near the sea.", "alice", datetime(2024, 5, 3, tzinfo=UTC))
SECOND = Source("k2", "Alice lives in Bergen.", "bob", datetime(2024, 6, 3, tzinfo=UTC))


def answer(decision: str, text: str = "", reason: str = "it is newer") -> dict[str, str]:
    return {"decision": decision, "text": text, "reason": reason}


def checked(*answers: Any) -> tuple[CheckedModel, FakeLanguageModel]:
    fake = FakeLanguageModel(*answers)
    return CheckedModel(fake, ManualClock(), Settings()), fake


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (answer("keep_first", "whatever"), FIRST.text),
        (answer("keep_second"), SECOND.text),
        (answer("both", "ignored"), None),
        (answer("merge", "Alice lives in Bergen, near the sea."), "Alice lives in Bergen, near the sea."),
    ],
)
def test_a_model_decides(told: dict[str, str], text: str | None) -> None:
    model, fake = checked(told)
    merging = merge(FIRST, SECOND, model)
    assert (merging.decision, merging.text, merging.reason) == (told["decision"], text, "it is newer")
    assert (merging.method, merging.model, merging.fallback) == ("model", "fake", None)
    assert merging.prompt_version == load_prompt("merge").version
    assert merging.usage.calls == 1
    data = json.loads(fake.asked[0][1].content.split("\n")[1])
    assert data["first"] == {"who": "alice", "when": "2024-05-03T00:00+00:00", "text": FIRST.text}
    assert data["second"]["text"] == SECOND.text


@pytest.mark.parametrize(
    "text",
    [
        "Alice lives in Paris.",
        "Alice does not live in Bergen, near the sea.",
        "Alice lives in Bergen since 2019.",
        "",
        "the and of",
    ],
)
def test_a_merged_text_that_adds_something_is_not_taken(text: str) -> None:
    merging = merge(FIRST, SECOND, checked(answer("merge", text))[0])
    assert (merging.decision, merging.text, merging.method) == ("keep_second", SECOND.text, "latest_wins")
    assert merging.fallback == "the merged text of the language model is not in the words of the two"
    assert merging.usage.calls == 1, "it was paid for all the same"


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (LanguageModelUnavailable("it is down"), "it is down"),
        ("no", "no JSON object"),
        (answer("delete_everything"), "is none of"),
        (answer("merge", "Alice " * 50), "longer than"),
        (answer("merge", "Alice", "x" * 900), "longer than"),
        (answer("both") | {"trust": 1.0}, "'trust', which nobody asked for"),
        (answer("both") | {"namespace": "app:admin"}, "'namespace', which nobody asked for"),
        ({"decision": "both"}, "has no 'text'"),
        ({"decision": ["both"], "text": "", "reason": ""}, "is none of"),
    ],
)
def test_without_a_usable_answer_the_later_one_is_kept(told: Any, reason: str) -> None:
    merging = merge(FIRST, SECOND, checked(told, told)[0])
    assert (merging.decision, merging.text, merging.reason) == ("keep_second", SECOND.text, "it is the later one")
    assert (merging.method, merging.prompt_version) == ("latest_wins", None)
    assert merging.fallback is not None
    assert reason in merging.fallback


def test_without_a_model_it_says_so() -> None:
    merging = merge(SECOND, FIRST, None)
    assert (merging.decision, merging.text, merging.method) == ("keep_first", SECOND.text, "latest_wins")
    assert merging.fallback == "no language model is configured"


@pytest.mark.parametrize("at", [None, SECOND.at])
def test_where_no_one_is_later_both_are_kept(at: datetime | None) -> None:
    merging = merge(Source("k1", "a", at=at), SECOND, None)
    assert (merging.decision, merging.text) == ("both", None)
    assert merging.reason == "it is not known which is the later one"


def test_texts_that_are_too_long_are_not_sent() -> None:
    model, fake = checked()
    merging = merge(Source("k1", "word " * 20_000), SECOND, model)
    assert merging.decision == "both"
    assert "too long" in (merging.fallback or "")
    assert not fake.asked
