"""What is asked of a language model comes back in the form that was asked for, is counted, or is a clear error."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from mnemon import InvalidAnswer, LanguageModelUnavailable, Settings, StoreUnavailable
from mnemon.language import CheckedModel, Usage
from mnemon.providers.loading import load_language_model
from mnemon.testing import FakeLanguageModel, ManualClock
from tests.language.endpoint import YES, ChatEndpoint

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 20}},
    "required": ["answer"],
    "additionalProperties": False,
}
PRICED = Settings(language_model_price=(2.0, 10.0))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def checked(*answers: Any, clock: ManualClock | None = None, settings: Settings = PRICED) -> CheckedModel:
    return CheckedModel(FakeLanguageModel(*answers), clock or ManualClock(), settings)


def ask(model: CheckedModel) -> Any:
    return model.ask("Answer.", "Well?", SCHEMA, 50)


# ----------------------------------------------------------------------------------------------------------- checking


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "yes"}',
        ' \n{"answer": "yes"}\n ',
        '```json\n{"answer": "yes"}\n```',
        'Here it is: {"answer": "yes"} I hope that helps {you}.',
        '<think>{"answer": "no"} perhaps?</think>\n{"answer": "yes"}',
    ],
)
def test_the_object_is_found_whatever_is_around_it(text: str) -> None:
    assert ask(checked(text)) == YES


WRONG = [
    "",
    "yes",
    "[]",
    '{"answer": "ye',
    '{"answer": 5}',
    '{"answer": null}',
    '{"answer": NaN}',
    "{}",
    '{"answer": "yes", "trust": 1.0}',
    '{"answer": "much longer than it may be"}',
    "{" * 5000,
]


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_answer_is_asked_for_once_more(text: str) -> None:
    fake = FakeLanguageModel(text, YES)
    model = CheckedModel(fake, ManualClock(), PRICED)
    assert ask(model) == YES
    system, question, wrong, complaint = fake.asked[1]
    assert (system.content, question.content, wrong.content) == ("Answer.", "Well?", text[:4000])
    assert complaint.content.startswith("That cannot be used: ")
    assert (model.usage.calls, model.usage.failures) == (2, 1)


@pytest.mark.parametrize("text", WRONG)
def test_two_wrong_answers_are_an_error(text: str) -> None:
    model = checked(text, text, YES)
    with pytest.raises(
        InvalidAnswer, match="the language model fake answered what was not asked for, twice: "
    ) as caught:
        ask(model)
    assert isinstance(caught.value, LanguageModelUnavailable)
    assert (model.usage.calls, model.usage.failures) == (2, 2)


def test_garbage_over_http_is_mended_in_the_same_way(endpoint: ChatEndpoint) -> None:
    endpoint.say('{"answer": "ye', YES)
    model = CheckedModel(load_language_model("openai:gpt", endpoint.settings), ManualClock(), endpoint.settings)
    assert ask(model) == YES
    assert [turn["role"] for turn in endpoint.requests[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert endpoint.requests[1]["max_tokens"] == 100, "an answer that was cut off would be cut off again"
    model.close()


def test_a_text_that_is_too_long_is_not_sent() -> None:
    fake = FakeLanguageModel()
    model = CheckedModel(fake, ManualClock(), replace(PRICED, language_model_context=1024))
    with pytest.raises(LanguageModelUnavailable, match="too long for language_model_context = 1024 tokens"):
        model.ask("Answer.", "word " * 1000, SCHEMA, 50)
    assert not fake.asked
    room = model.room("Answer.", 50)
    assert 800 < room < 1024 - 50
    model.ask("Answer.", "word " * (room - 10), SCHEMA, 50)


# ----------------------------------------------------------------------------------------------------------- counting


def test_what_a_call_took_is_told_and_added_up(endpoint: ChatEndpoint) -> None:
    settings = replace(endpoint.settings, language_model_price=(2.0, 10.0))
    model = CheckedModel(load_language_model("openai:gpt", settings), ManualClock(), settings)
    endpoint.say("no", YES)
    part = model.apart()
    ask(part)
    used = part.usage
    # both attempts are paid for: 100 tokens of question and 7 of answer each
    assert (used.calls, used.prompt_tokens, used.completion_tokens, used.failures) == (2, 200, 14, 1)
    assert used.cost == pytest.approx((200 * 2 + 14 * 10) / 1_000_000)
    assert used.seconds > 0
    ask(model)
    assert (model.usage.calls, model.usage.prompt_tokens) == (3, 300)
    assert part.usage == used
    assert model.usage.cost == pytest.approx((300 * 2 + 21 * 10) / 1_000_000)
    model.close()


def test_without_a_price_there_is_no_cost() -> None:
    model = checked(settings=Settings())
    ask(model)
    assert model.usage.cost is None
    assert model.usage.prompt_tokens > 0


def test_a_failed_call_is_counted() -> None:
    model = checked(LanguageModelUnavailable("down"))
    with pytest.raises(LanguageModelUnavailable, match="down"):
        ask(model)
    assert (model.usage.calls, model.usage.failures, model.usage.cost) == (1, 1, 0.0)


def test_nothing_is_lost_when_many_count_at_once() -> None:
    model = checked()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ask(model), range(200)))
    assert model.usage.calls == 200


def test_usage_is_added_up() -> None:
    one, other = Usage(1, 2, 3, None, 4, 5.0), Usage(1, 2, 3, 0.5, 4, 5.0)
    assert one.plus(other) == Usage(2, 4, 6, 0.5, 8, 10.0)
    assert one.plus(one).cost is None


# ----------------------------------------------------------------------------------------------------------- outages


def test_a_model_that_keeps_failing_is_left_alone_for_a_while(clock: ManualClock) -> None:
    fake = FakeLanguageModel()
    fake.fail(times=3)
    model = CheckedModel(fake, clock, PRICED)
    for _ in range(3):
        with pytest.raises(LanguageModelUnavailable, match="told to fail"):
            ask(model)
    with pytest.raises(LanguageModelUnavailable, match="fake failed 3 times in a row and is left alone for a while"):
        ask(model)
    assert len(fake.asked) == 3
    clock.advance(1)
    ask(model)
    assert len(fake.asked) == 4


def test_an_outage_is_logged_when_it_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    down = LanguageModelUnavailable("down")
    model = checked(down, down)
    for _ in range(2):
        with pytest.raises(LanguageModelUnavailable):
            ask(model)
    ask(model)
    said = [record.getMessage() for record in caplog.records if record.name == "mnemon.language"]
    assert said == ["the language model fake cannot be used: down", "the language model fake can be used again"]


def test_what_a_model_of_ones_own_raises_is_named_alike() -> None:
    model = checked(StoreUnavailable("no route"))
    with pytest.raises(LanguageModelUnavailable, match="no route"):
        ask(model)
    assert model.usage.failures == 1


def test_closing_closes_the_model() -> None:
    fake = FakeLanguageModel()
    CheckedModel(fake, ManualClock(), PRICED).close()
    assert fake.is_closed


def test_the_fake_says_the_least_that_a_schema_allows() -> None:
    kinds: dict[str, Any] = {
        "a": {"type": "string", "minLength": 2},
        "b": {"type": "array", "items": {"type": "string"}},
        "c": {"type": "boolean"},
        "d": {"type": "integer"},
        "e": {"type": "string", "enum": ["x", "y"]},
    }
    schema = {"type": "object", "properties": kinds, "required": list(kinds)}
    model = checked()
    assert model.ask("", "", schema, 9) == {"a": "xx", "b": [], "c": False, "d": 0, "e": "y"}
