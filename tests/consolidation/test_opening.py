"""Which language model a memory consolidates with: of the settings, or of one's own."""

import pytest

import mnemon
import mnemon.sync
from mnemon.testing import FakeLanguageModel

QUIET = {"background": False, "embedder": "none"}
TWO = {"note-1": "Ann lives in Bergen.", "note-2": "Ann now lives in Oslo."}


async def test_a_model_of_ones_own_is_asked_and_closed() -> None:
    model = FakeLanguageModel({"decision": "keep_first", "text": "", "reason": "told so"})
    async with mnemon.open("sqlite://", language_model=model, language_model_price=(1.0, 1.0), **QUIET) as memory:
        for key, text in TWO.items():
            await memory.remember(text, namespace="user:ann", key=key)
        report = await memory.consolidate("user:ann")
    assert [step.kept.key for step in report.steps] == ["note-1"]
    assert (len(model.asked), model.is_closed) == (1, True)
    assert report.usage.cost is not None
    assert report.usage.cost > 0


def test_the_blocking_face_takes_one_too() -> None:
    model = FakeLanguageModel({"decision": "keep_second", "text": "", "reason": "told so"})
    with mnemon.sync.open("sqlite://", language_model=model, **QUIET) as memory:
        for key, text in TWO.items():
            memory.remember(text, namespace="user:ann", key=key)
        report = memory.memories.consolidate_memories("user:ann")
    assert ([step.kept.key for step in report.steps], model.is_closed) == (["note-2"], True)


def test_a_model_that_nobody_asks_is_not_touched() -> None:
    model = FakeLanguageModel()
    with mnemon.sync.open("sqlite://", language_model=model, **QUIET) as memory:
        memory.consolidate("user:ann", "latest_wins")
    assert model.asked == []


@pytest.mark.parametrize("specification", ["custom", "static", "openai:", "openai:x?colour=red", "nobody:gpt"])
def test_what_cannot_be_a_model_is_refused_when_the_memory_is_opened(specification: str) -> None:
    with pytest.raises(mnemon.InvalidSettings, match="language model"):
        mnemon.sync.open("sqlite://", language_model=specification, **QUIET)


def test_an_endpoint_that_is_down_costs_nothing_but_the_judgement() -> None:
    gone = {"language_model": "openai:gone", "openai_url": "http://127.0.0.1:9/v1", "language_model_timeout": 0.2}
    with mnemon.sync.open("sqlite://", **gone, **QUIET) as memory:
        for key, text in TWO.items():
            memory.remember(text, namespace="user:ann", key=key)
        report = memory.consolidate("user:ann")
    assert (report.strategy_used, report.applied, report.usage.failures) == ("llm_based", 1, 1)
    [reason] = report.fallbacks
    assert "cannot be reached" in reason
