"""How a language model behind HTTP is asked, what it is asked for when it knows less, and how it fails."""

import json
import logging
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from mnemon import InvalidSettings, LanguageModelUnavailable, Settings, StoreUnavailable
from mnemon.ports import Completion, LanguageModel, Message
from mnemon.providers import endpoint as endpoint_module
from mnemon.providers import loading
from tests.language.endpoint import YES, ChatEndpoint

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 20}},
    "required": ["answer"],
    "additionalProperties": False,
}
BARE = {**SCHEMA, "properties": {"answer": {"type": "string"}}}
MESSAGES = [Message("system", "Answer."), Message("user", "Well?")]
TURNS = [{"role": "system", "content": "Answer."}, {"role": "user", "content": "Well?"}]

LOADED: list[LanguageModel] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while LOADED:
        LOADED.pop().close()


def load(specification: str, settings: Settings) -> LanguageModel:
    """A language model that is closed after the test."""
    LOADED.append(loading.load_language_model(specification, settings))
    return LOADED[-1]


def ask(model: LanguageModel) -> Completion:
    return model.complete(MESSAGES, SCHEMA, 50)


# ---------------------------------------------------------------------------------------------------- specifications


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpt", "there is no language model 'gpt'; use openai:NAME or ollama:NAME"),
        ("static", "there is no language model"),
        ("openai:", "the language model 'openai:' names no model; write it as 'openai:gpt-4o-mini'"),
        ("ollama", "names no model; write it as 'ollama:llama3.2'"),
        ("openai:m?dimension=4", "unknown option 'dimension'; it can have url"),
        ("openai:m?url=ftp://x", "names no URL"),
        ("openai:m?url=http://me:hush@host/v1", "a URL in the language model must not hold a password"),
    ],
)
def test_a_specification_that_cannot_be_used_says_why(text: str, message: str) -> None:
    with pytest.raises(InvalidSettings, match=message) as caught:
        load(text, Settings())
    assert "hush" not in str(caught.value)


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mnemon.providers.language", "mnemon.providers.endpoint"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "httpx", None)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidSettings, match=r"the language model 'openai:m' needs httpx: pip install 'mnemon\[remote\]'"
    ):
        load("openai:m", Settings())


# ------------------------------------------------------------------------------------------------------------- asking


def test_openai_is_asked_for_json_of_the_schema(endpoint: ChatEndpoint) -> None:
    model = load("openai:gpt", replace(endpoint.settings, openai_api_key="sk-hush"))
    assert endpoint.requests == [], "asked before it was needed"
    assert ask(model) == Completion(json.dumps(YES), 100, 7)
    assert model.name == "openai:gpt"
    assert endpoint.headers["authorization"] == "Bearer sk-hush"
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
    assert endpoint.requests == [
        {"model": "gpt", "messages": TURNS, "max_tokens": 50, "temperature": 0, "response_format": wanted}
    ]


def test_ollama_is_asked_in_its_own_words(endpoint: ChatEndpoint) -> None:
    model = load("ollama:llama", replace(endpoint.settings, language_model_context=4096))
    assert ask(model) == Completion(json.dumps(YES), 100, 7)
    options = {"temperature": 0, "num_predict": 50, "num_ctx": 4096}
    assert endpoint.requests == [
        {"model": "llama", "messages": TURNS, "stream": False, "options": options, "format": SCHEMA}
    ]


def test_the_key_goes_to_its_own_endpoint_only(endpoint: ChatEndpoint) -> None:
    elsewhere = Settings(openai_url="https://api.example.com/v1", openai_api_key="sk-hush")
    ask(load(f"openai:gpt?url={endpoint.url}/v1", elsewhere))
    assert "authorization" not in endpoint.headers


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_tokens_are_estimated_where_the_endpoint_does_not_tell(kind: str, endpoint: ChatEndpoint) -> None:
    endpoint.usage = False
    endpoint.say({"answer": "word " * 50})
    completion = ask(load(f"{kind}:m", endpoint.settings))
    assert 3 <= completion.prompt_tokens <= 10
    assert 50 <= completion.completion_tokens <= 70


# ------------------------------------------------------------------------------------------- endpoints that know less


def formats(endpoint: ChatEndpoint) -> list[Any]:
    return [request.get("response_format", {}).get("type") for request in endpoint.requests]


def test_bounds_that_an_endpoint_does_not_take_are_left_out(
    endpoint: ChatEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.unknown = {"maxLength"}
    model = load("openai:gpt", endpoint.settings)
    assert ask(model).text == json.dumps(YES)
    assert endpoint.requests[1]["response_format"]["json_schema"]["schema"] == BARE
    assert endpoint.requests[1]["messages"] == TURNS
    ask(model)
    assert len(endpoint.requests) == 3, "it was not remembered"
    assert [record.levelno for record in caplog.records if record.name == "mnemon.language"] == [logging.WARNING]
    assert "does not take the format 'schema' and is asked for 'structure'" in caplog.text


@pytest.mark.parametrize(
    ("unknown", "asked"),
    [
        ({"json_schema"}, ["json_schema", "json_schema", "json_object"]),
        ({"json_schema", "json_object"}, ["json_schema", "json_schema", "json_object", None]),
        ({"response_format"}, ["json_schema", "json_schema", "json_object", None]),
    ],
)
def test_an_endpoint_without_schemas_is_told_in_words(
    unknown: set[str], asked: list[str | None], endpoint: ChatEndpoint
) -> None:
    endpoint.unknown = unknown
    model = load("openai:gpt", endpoint.settings)
    assert ask(model).text == json.dumps(YES)
    assert formats(endpoint) == asked
    told = endpoint.requests[-1]["messages"]
    assert told[0]["content"].startswith("Answer.\n\nAnswer with one JSON object of this JSON schema")
    assert json.loads(told[0]["content"].splitlines()[-1]) == SCHEMA
    assert told[1:] == TURNS[1:]
    ask(model)
    assert formats(endpoint) == [*asked, asked[-1]]


def test_an_old_ollama_is_asked_for_any_json(endpoint: ChatEndpoint) -> None:
    endpoint.unknown = {"format"}
    ask(load("ollama:llama", endpoint.settings))
    assert [request["format"] for request in endpoint.requests] == [SCHEMA, BARE, "json"]
    assert "JSON schema" in endpoint.requests[-1]["messages"][0]["content"]


def test_models_that_think_are_asked_as_they_want_to_be(endpoint: ChatEndpoint) -> None:
    endpoint.unknown = {"max_tokens", "temperature"}
    ask(load("openai:o4", endpoint.settings))
    last = endpoint.requests[-1]
    assert last["max_completion_tokens"] == 50
    assert {"max_tokens", "temperature"}.isdisjoint(last)
    assert last["response_format"]["type"] == "json_schema"


def test_a_refusal_for_another_reason_is_not_taken_for_a_format(endpoint: ChatEndpoint) -> None:
    endpoint.answer(400, {"error": "the context length is exceeded"})
    with pytest.raises(LanguageModelUnavailable, match=r"answered 400: .*context length"):
        ask(load("openai:gpt", endpoint.settings))
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_takes_no_format_at_all_is_unavailable(endpoint: ChatEndpoint) -> None:
    endpoint.answer(400, {"error": "no response_format whatsoever"}, times=9)
    with pytest.raises(LanguageModelUnavailable, match="whatsoever"):
        ask(load("openai:gpt", endpoint.settings))
    assert formats(endpoint) == ["json_schema", "json_schema", "json_object", None]


def test_threads_that_learn_it_at_once_step_down_once(endpoint: ChatEndpoint) -> None:
    endpoint.unknown = {"maxLength"}
    endpoint.stall = 0.05
    model = load("openai:gpt", endpoint.settings)
    with ThreadPoolExecutor(6) as pool:
        assert {completion.text for completion in pool.map(lambda _: ask(model), range(6))} == {json.dumps(YES)}
    assert set(formats(endpoint)) == {"json_schema"}


# ------------------------------------------------------------------------------------------------------------ failing


@pytest.mark.parametrize(("kind", "status"), [("openai", 429), ("ollama", 500), ("openai", 503)])
def test_what_passes_is_asked_again(kind: str, status: int, endpoint: ChatEndpoint) -> None:
    endpoint.answer(status, times=2)
    assert ask(load(f"{kind}:m", endpoint.settings)).text == json.dumps(YES)
    assert len(endpoint.requests) == 3


def test_what_does_not_pass_is_asked_three_times(endpoint: ChatEndpoint) -> None:
    endpoint.answer(503, "overloaded", times=5)
    with pytest.raises(LanguageModelUnavailable, match=r"answered 503: .*overloaded"):
        ask(load("openai:gpt", endpoint.settings))
    assert len(endpoint.requests) == 3


def test_the_pause_that_the_endpoint_asks_for_is_kept(endpoint: ChatEndpoint) -> None:
    endpoint.answer(429, retry_after="1")
    started = time.monotonic()
    ask(load("openai:gpt", endpoint.settings))
    assert 1.0 <= time.monotonic() - started < 4.0


def test_a_pause_that_is_too_long_is_not_waited_for(endpoint: ChatEndpoint) -> None:
    endpoint.answer(429, retry_after="3600")
    with pytest.raises(LanguageModelUnavailable, match="answered 429"):
        ask(load("openai:gpt", endpoint.settings))
    assert len(endpoint.requests) == 1


def test_an_attempt_that_is_late_is_repeated(endpoint: ChatEndpoint) -> None:
    endpoint.stall, endpoint.stalls = 3.0, 1
    model = load("openai:gpt", replace(endpoint.settings, language_model_timeout=1.0))
    started = time.monotonic()
    assert ask(model).text == json.dumps(YES)
    assert 1.0 <= time.monotonic() - started < 2.8
    assert len(endpoint.requests) == 2


def test_what_is_always_late_is_given_up(endpoint: ChatEndpoint) -> None:
    endpoint.stall = 1.5
    started = time.monotonic()
    with pytest.raises(LanguageModelUnavailable, match=r"did not answer within 0\.5 s"):
        ask(load("openai:gpt", replace(endpoint.settings, language_model_timeout=0.5)))
    assert time.monotonic() - started < 2.0


def test_an_answer_that_comes_in_drops_is_not_waited_for(endpoint: ChatEndpoint) -> None:
    endpoint.drip = 0.05
    started = time.monotonic()
    with pytest.raises(LanguageModelUnavailable, match=r"did not answer within 0\.5 s"):
        ask(load("openai:gpt", replace(endpoint.settings, language_model_timeout=0.5)))
    assert time.monotonic() - started < 3.0


def test_an_answer_without_end_is_not_read(endpoint: ChatEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "_LARGEST", 1000)
    endpoint.say("x" * 2000)
    with pytest.raises(LanguageModelUnavailable, match="answered with more than 1000 bytes"):
        ask(load("openai:gpt", endpoint.settings))


def test_a_connection_that_breaks_is_made_again(endpoint: ChatEndpoint) -> None:
    endpoint.breaks = 1
    assert ask(load("openai:gpt", endpoint.settings)).text == json.dumps(YES)


def test_an_endpoint_that_is_down_is_unavailable(endpoint: ChatEndpoint) -> None:
    endpoint.stop()
    with pytest.raises(LanguageModelUnavailable, match="cannot be reached") as caught:
        ask(load("openai:gpt", endpoint.settings))
    assert isinstance(caught.value, StoreUnavailable)
    assert isinstance(caught.value, ConnectionError)


@pytest.mark.parametrize(
    ("status", "remedy"), [(401, "check the API key"), (403, "check the API key"), (404, "check the model 'gpt'")]
)
def test_a_refusal_says_what_to_do_and_not_the_key(status: int, remedy: str, endpoint: ChatEndpoint) -> None:
    endpoint.answer(status, "wrong key sk-hush")
    with pytest.raises(LanguageModelUnavailable, match=f"answered {status}; {remedy}") as caught:
        ask(load("openai:gpt", replace(endpoint.settings, openai_api_key="sk-hush")))
    assert "sk-hush" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>not JSON</html>",
        b'{"choices": [{"mess',
        b"",
        b"\xff\xfe",
        {"choices": []},
        {"choices": {}},
        {"choices": [{"message": {"content": None}}]},
        {"choices": [{"message": {"content": [{"type": "text"}]}}]},
        {"choices": [{"message": "yes"}]},
        {"message": {"content": 5}},
        [1, 2],
        "yes",
        None,
    ],
)
@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_an_answer_without_a_message_is_unavailable(kind: str, body: object, endpoint: ChatEndpoint) -> None:
    endpoint.answer(200, body)
    with pytest.raises(LanguageModelUnavailable, match=r"answer(ed)? with"):
        ask(load(f"{kind}:m", endpoint.settings))


@pytest.mark.parametrize("told", [-5, "many", True, 10**12, None, 3.5])
def test_a_nonsensical_count_of_tokens_is_not_believed(told: object, endpoint: ChatEndpoint) -> None:
    message = {"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": told, "completion_tokens": told}}
    endpoint.answer(200, message)
    completion = ask(load("openai:gpt", endpoint.settings))
    assert 1 <= completion.prompt_tokens <= 10
    assert 1 <= completion.completion_tokens <= 3


def test_a_model_that_was_closed_says_so(endpoint: ChatEndpoint) -> None:
    model = load("ollama:llama", endpoint.settings)
    model.close()
    model.close()
    with pytest.raises(LanguageModelUnavailable, match="was closed"):
        ask(model)
