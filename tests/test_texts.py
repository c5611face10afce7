"""What values and events of every known shape say."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.texts import LONGEST, event_author, event_role, event_text, pieces_of, text_of

OPENAI_CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo", "days": 2}'}},
        {"id": "c2", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}},
    ],
}
OPENAI_RESULT = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "12 degrees"}]}
RESPONSES_CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "not JSON"}
RESPONSES_RESULT = {"type": "function_call_output", "call_id": "c1", "output": "12 degrees"}
ANTHROPIC_CALL: dict[str, Any] = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "I should look.", "signature": "x"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
    ],
}
ANTHROPIC_RESULT: dict[str, Any] = {
    "role": "user",
    "content": [
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "12 degrees"}, {"type": "image", "source": {"data": "AAAA"}}],
        },
        {"type": "text", "text": "Go on."},
    ],
}
ADK_CALL = {
    "author": "forecaster",
    "content": {
        "role": "model",
        "parts": [
            {"text": "hm", "thought": True},
            {"function_call": {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}},
        ],
    },
}
ADK_RESULT = {
    "author": "forecaster",
    "content": {
        "role": "user",
        "parts": [{"function_response": {"id": "c1", "name": "weather", "response": {"result": "12 degrees"}}}],
    },
}
LANGCHAIN_CALL = {
    "type": "ai",
    "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}}],
    "tool_calls": [{"type": "tool_call", "id": "c1", "name": "weather", "args": {"city": "Oslo"}}],
}
LANGCHAIN_RESULT = {"type": "tool", "tool_call_id": "c1", "name": "weather", "content": "12 degrees"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Alice lives in Oslo", "Alice lives in Oslo"),
        (None, "null"),
        (True, "true"),
        (3.5, "3.5"),
        ([], ""),
        ({}, ""),
        (["red", 2, None], "red, 2, null"),
        ({"name": "Alice", "age": 31}, "name: Alice\nage: 31"),
        ({"address": {"city": "Oslo", "lines": ["a", "b"]}}, "address.city: Oslo\naddress.lines: a, b"),
        ({"orders": [{"id": 1, "paid": False}, {"id": 2}]}, "orders[0].id: 1\norders[0].paid: false\norders[1].id: 2"),
        ([{"a": 1}, "b"], "[0].a: 1\n[1]: b"),
        ({"text": "Alice lives in Oslo"}, "Alice lives in Oslo"),
        ({"text": "Alice lives in Oslo", "source": "chat"}, "text: Alice lives in Oslo\nsource: chat"),
        ({"note": {"content": "x"}, "empty": [], "nothing": ""}, "note: x"),
    ],
)
def test_a_value_as_text(value: object, text: str) -> None:
    assert text_of(value) == text


@given(json_values, st.integers(0, 40))
def test_text_is_bounded_and_always_the_same(value: object, limit: int) -> None:
    text = text_of(value, limit)
    assert len(text) <= limit
    assert text == text_of(value)[:limit]


def test_a_long_value_is_cut() -> None:
    assert len(text_of("x" * (LONGEST + 1))) == LONGEST
    assert len(text_of({"many": ["long"] * LONGEST, "more": "y"})) == LONGEST


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"role": "user", "text": "I moved"}, "I moved"),
        ({"text": "I moved"}, "I moved"),
        ({"message": "I moved"}, "I moved"),
        ({"role": "user", "content": "I moved"}, "I moved"),
        ({"role": "user", "content": [], "text": "I moved"}, "I moved"),
        ({"role": "user", "content": ["I", {"type": "text", "text": "moved"}]}, "I\nmoved"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:AAAA"}}]}, None),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot"}]}, "I cannot"),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "I moved"}]}, "I moved"),
        ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Fine"}]}, "Fine"),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "content": None}, None),
        ({"author": "user", "content": {"role": "user", "parts": [{"text": "I"}, {"text": "moved"}]}}, "I\nmoved"),
        ({"author": "forecaster", "content": None, "actions": {"state_delta": {"a": 1}}}, None),
        ({"role": "model", "parts": [{"text": "Fine"}]}, "Fine"),
        ({"type": "human", "content": "I moved"}, "I moved"),
        ({"type": "human", "data": {"content": "I moved", "name": "alice"}}, "I moved"),
        ({"type": "user", "message": {"role": "user", "content": "I moved"}}, "I moved"),
        (OPENAI_CALL, "weather(city: Oslo, days: 2)\nshell(ls -l)"),
        (OPENAI_RESULT, "12 degrees"),
        ({"role": "assistant", "function_call": {"name": "weather", "arguments": "{}"}}, "weather()"),
        ({"role": "function", "name": "weather", "content": "12 degrees"}, "weather: 12 degrees"),
        (RESPONSES_CALL, "weather(not JSON)"),
        (RESPONSES_RESULT, "12 degrees"),
        ({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "12"}]}, "12"),
        (
            {"type": "computer_call", "call_id": "c", "action": {"type": "click", "x": 1}},
            "computer_call(type: click, x: 1)",
        ),
        (ANTHROPIC_CALL, "Let me look.\nweather(city: Oslo)"),
        (ANTHROPIC_RESULT, "12 degrees\nGo on."),
        ({"type": "tool_use", "id": "c1", "name": "weather", "input": {}}, "weather()"),
        ({"type": "tool_result", "tool_use_id": "c1", "content": "12 degrees"}, "12 degrees"),
        (ADK_CALL, "weather(city: Oslo)"),
        (ADK_RESULT, "weather: 12 degrees"),
        ({"content": {"parts": [{"functionCall": {"name": "now"}}]}}, "now()"),
        (LANGCHAIN_CALL, "weather(city: Oslo)"),
        (LANGCHAIN_RESULT, "weather: 12 degrees"),
        ({"role": "tool", "tool_call_id": "c1", "content": {"degrees": 12, "wind": "weak"}}, "degrees: 12\nwind: weak"),
        ({"kind": "click", "x": 3}, None),
        ({"role": "user", "text": ""}, None),
        ({"role": "user", "content": 7, "tool_calls": "none"}, None),
        ({}, None),
    ],
)
def test_what_an_event_says(body: Mapping[str, Any], text: str | None) -> None:
    assert event_text(body) == text


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (OPENAI_CALL, OPENAI_RESULT),
        (RESPONSES_CALL, RESPONSES_RESULT),
        (ANTHROPIC_CALL, ANTHROPIC_RESULT),
        (ADK_CALL, ADK_RESULT),
        (ANTHROPIC_CALL["content"][2], ANTHROPIC_RESULT["content"][0]),
        (LANGCHAIN_CALL, LANGCHAIN_RESULT),
    ],
)
def test_a_call_and_its_result_have_one_id(call: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    [called, *_] = [piece for piece in pieces_of(call) if piece.kind == "call"]
    [answered] = [piece for piece in pieces_of(result) if piece.kind == "result"]
    assert (called.id, called.name, answered.id, answered.text) == ("c1", "weather", "c1", "12 degrees")


def test_calls_without_ids_are_told_apart_by_name_and_number() -> None:
    call = {"content": {"parts": [{"function_call": {"name": name}} for name in ("now", "now", "here")]}}
    result = {"content": {"parts": [{"function_response": {"name": name}} for name in ("now", "here", "now")]}}
    ids = [piece.id for piece in pieces_of(call)]
    assert len(set(ids)) == 3
    assert sorted(ids, key=str) == sorted([piece.id for piece in pieces_of(result)], key=str)


@pytest.mark.parametrize(
    ("body", "actor", "author", "role"),
    [
        ({"role": "user", "text": "x"}, None, "user", "user"),
        ({"role": "user", "text": "x"}, "alice", "alice", "user"),
        ({"role": "user", "name": "bob", "content": "x"}, "alice", "bob", "user"),
        ({"role": "developer", "content": "x"}, None, "developer", "developer"),
        ({"speaker": "Caroline", "text": "x"}, None, "Caroline", None),
        (ADK_CALL, "runner", "forecaster", "assistant"),
        ({"author": "user", "content": {"parts": [{"text": "x"}]}}, None, "user", "user"),
        ({"author": "forecaster", "content": {"parts": [{"text": "x"}]}}, None, "forecaster", "assistant"),
        ({"type": "ai", "content": "x"}, None, "assistant", "assistant"),
        ({"type": "human", "data": {"content": "x", "name": "bob"}}, None, "bob", "user"),
        (RESPONSES_CALL, None, "assistant", "assistant"),
        (RESPONSES_RESULT, "agent-7", "agent-7", "tool"),
        ({"kind": "click"}, None, None, None),
    ],
)
def test_who_said_it(body: Mapping[str, Any], actor: str | None, author: str | None, role: str | None) -> None:
    assert (event_author(body, actor), event_role(body)) == (author, role)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "role",
                "type",
                "content",
                "text",
                "parts",
                "tool_calls",
                "message",
                "call_id",
                "tool_call_id",
                "function_call",
                "name",
                "author",
                "data",
                "output",
            ]
        ),
        json_values,
    )
)
def test_no_shape_is_an_error(body: dict[str, Any]) -> None:
    text = event_text(body)
    assert text is None or text
    event_author(body, None)
    event_role(body)
