"""What JSON can carry goes in and comes out unchanged; anything else is refused with the place that is wrong."""

import enum
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mnemon.errors import InvalidValue, ValueTooLarge
from mnemon.sync import BlockingMemory
from mnemon.values import decode, encode, encode_mapping, encode_metadata
from tests.conformance.backends import blocking_memory

__all__ = ["blocking_memory"]

NUMBERS = count()
LIMIT = 1_048_576

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)


def exact(value: Any) -> bytes:
    """A form in which 1, 1.0 and True differ, as they do in JSON."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def nested(depth: int, inside: Any = 1) -> Any:
    """`inside` below `depth` lists."""
    for _ in range(depth):
        inside = [inside]
    return inside


def cyclic_list() -> list[Any]:
    cycle: list[Any] = [1]
    cycle.append(cycle)
    return cycle


def cyclic_mapping() -> dict[str, Any]:
    cycle: dict[str, Any] = {}
    cycle["a"] = [{"b": cycle}]
    return cycle


class Point(NamedTuple):
    x: int
    y: int


BAD_VALUES: dict[str, tuple[Any, str]] = {
    "nan": (float("nan"), "value is nan"),
    "infinity": ([1, {"b": float("inf")}], r"value\[1\].b is inf"),
    "minus infinity beside null": ({"a": None, "b": [float("-inf")]}, r"value.b\[0\] is -inf"),
    "bytes": ({"a": b"x"}, "value.a is bytes"),
    "bytearray": (bytearray(b"x"), "value is bytearray"),
    "datetime": ({"at": datetime(2030, 1, 1, tzinfo=UTC)}, "value.at is datetime"),
    "date": ([date(2030, 1, 1)], r"value\[0\] is date"),
    "decimal": ({"price": Decimal("1.5")}, "value.price is Decimal"),
    "set": ({"tags": {1}}, "value.tags is set"),
    "object": ([[object()]], r"value\[0\]\[0\] is object"),
    "a named tuple": ([Point(1, 2)], "value cannot be stored as JSON: .*Point"),
    "another mapping": ({"a": MappingProxyType({})}, "value.a is mappingproxy"),
    "a key that is a number": ({"a": {1: 2}}, "value.a has the key 1, which is not a string"),
    "a key that is nothing": ({None: 2}, "value has the key None"),
    "a list that holds itself": (cyclic_list(), r"value\[1\] contains itself"),
    "a mapping that holds itself": (cyclic_mapping(), r"value.a\[0\].b contains itself"),
    "too deep": (nested(255), "value is nested more than 254 deep"),
    "much too deep": (nested(100_000), "value is nested more than 254 deep"),
    "a number beyond 64 bits": ({"n": [2**64]}, r"value.n\[0\] is an integer beyond 64 bits"),
    "a number below 64 bits": (-(2**63) - 1, "value is an integer beyond 64 bits"),
    "half a character": ({"a": ["ok", "x\ud800y"]}, r"value.a\[1\] has text with a lone surrogate"),
    "half a character in a key": ({"a": {"\udfff": 1}}, "value.a has text with a lone surrogate"),
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_what_json_cannot_carry_is_refused_with_its_place(name: str) -> None:
    value, message = BAD_VALUES[name]

    with pytest.raises(InvalidValue, match=f"^{message}") as caught:
        encode("value", value, LIMIT)

    assert type(caught.value) is InvalidValue
    assert isinstance(caught.value, ValueError)


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**64 - 1, "18446744073709551615"),
        (-(2**63), "-9223372036854775808"),
        ((1, (2,)), "[1,[2]]"),
        (OrderedDict(a=1), '{"a":1}'),
        (Colour.RED, '"red"'),
        (None, "null"),
        ("null", '"null"'),
        ({"null": [None, 1.5]}, '{"null":[null,1.5]}'),
        ("a\0b", '"a\\u0000b"'),
        ([[1], [1]], "[[1],[1]]"),
    ],
)
def test_what_json_can_carry_is_written_as_json(value: Any, text: str) -> None:
    assert encode("value", value, LIMIT) == text


def test_a_part_that_comes_twice_is_not_a_cycle() -> None:
    shared = [None]

    assert encode("value", {"a": shared, "b": [shared, shared]}, LIMIT) == '{"a":[null],"b":[[null],[null]]}'


@pytest.mark.parametrize("inside", [1, None])
def test_a_value_may_be_as_deep_as_the_limit(inside: Any) -> None:
    value = nested(254, inside)

    assert decode(encode("value", value, LIMIT)) == value


def test_a_value_may_be_as_large_as_the_limit() -> None:
    assert len(encode("value", "x" * 98, 100)) == 100
    with pytest.raises(ValueTooLarge, match=r"^value is 101 bytes as JSON; max_value_bytes allows 100"):
        encode("value", "x" * 99, 100)
    with pytest.raises(ValueTooLarge, match="101 bytes"):
        encode("value", "é" * 49 + "x", 100)


def test_what_must_be_a_mapping_may_be_any_mapping() -> None:
    assert encode_mapping("an event", MappingProxyType({"a": 1}), LIMIT) == '{"a":1}'
    for value in ([1], "a", None, 1):
        with pytest.raises(InvalidValue, match=r"^an event must be a mapping of names to values, not "):
            encode_mapping("an event", value, LIMIT)


def test_metadata_may_be_left_out_and_holds_no_nul() -> None:
    assert encode_metadata(None, LIMIT) == "{}"
    assert encode_metadata({"a": "\\u0000"}, LIMIT) == '{"a":"\\\\u0000"}'  # six characters that look like one
    for value in ({"a": "\0"}, {"a": [{"b": "x\0"}]}, {"\0": 1}, {"a": {"x\0y": None}}):
        with pytest.raises(InvalidValue, match="NUL"):
            encode_metadata(value, LIMIT)


@given(json_values)
@example([0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0])
@example({"": {"\U0010ffff": "\u2028\ufeff\x7f"}})
def test_encoding_and_decoding_change_nothing(value: Any) -> None:
    assert exact(decode(encode("value", value, LIMIT))) == exact(value)


# -- through the services


def places(memory: BlockingMemory) -> Iterator[tuple[str, Any]]:
    """Every place that takes a JSON value: how to put one there and get it back."""
    name = f"k{next(NUMBERS)}"

    def through_memory(value: Any) -> Any:
        memory.memories.add_memory("user:alice", name, value)
        found = memory.memories.get_memory("user:alice", name)
        assert found is not None
        return found.value

    def through_event(value: Any) -> Any:
        memory.sessions.append_event("s1", {"v": value}, event_id=name)
        return memory.sessions.events("s1", last=1)[0].body["v"]

    def through_delta(value: Any) -> Any:
        memory.sessions.append_event("s1", {}, {"delta": value})
        kept = memory.sessions.events("s1", last=1)[0].state_delta
        assert kept is not None
        assert exact(kept["delta"]) == exact(memory.sessions.get_state("s1", "delta"))
        return kept["delta"]

    def through_state(value: Any) -> Any:
        memory.state.set("user:v", value, session_id="s1")
        return memory.state.get("user:v", session_id="s1")

    def through_task(value: Any) -> Any:
        memory.tasks.create("job", task_id=name, input=value)
        done = memory.tasks.update(name, "completed", result=value)
        assert exact(done.input) == exact(done.result)
        found = memory.tasks.get(name)
        assert found is not None
        return found.result

    yield "memory", through_memory
    yield "event", through_event
    yield "delta", through_delta
    yield "state", through_state
    yield "task", through_task


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=json_values)
@example(value="a\0b")
@example(value=2**64 - 1)
@example(value=nested(250, None))
@example(value={"": {"\U0010ffff": "\u2028\ufeff\x7f"}})
def test_a_value_comes_back_from_every_place_as_it_went_in(blocking_memory: BlockingMemory, value: Any) -> None:
    if blocking_memory.sessions.get_session("s1", last=0) is None:
        blocking_memory.sessions.create_session("s1", "helpdesk", "alice")

    for place, roundtrip in places(blocking_memory):
        assert exact(roundtrip(value)) == exact(value), place


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(metadata=st.dictionaries(texts, json_values, max_size=4))
def test_metadata_comes_back_as_it_went_in(blocking_memory: BlockingMemory, metadata: dict[str, Any]) -> None:
    key = f"k{next(NUMBERS)}"
    if b"\\u0000" in exact(metadata).replace(b"\\\\", b""):
        with pytest.raises(InvalidValue, match="NUL"):
            blocking_memory.memories.add_memory("user:alice", key, 1, metadata=metadata)
        return

    blocking_memory.memories.add_memory("user:alice", key, 1, metadata=metadata)

    found = blocking_memory.memories.get_memory("user:alice", key)
    assert found is not None
    assert exact(found.metadata) == exact(metadata)


@pytest.mark.parametrize("name", BAD_VALUES)
def test_a_bad_value_is_refused_at_every_place_and_leaves_nothing(blocking_memory: BlockingMemory, name: str) -> None:
    blocking_memory.sessions.create_session("s1", "helpdesk", "alice")
    before = blocking_memory.position()

    for _, roundtrip in places(blocking_memory):
        with pytest.raises(InvalidValue):
            roundtrip(BAD_VALUES[name][0])
        if roundtrip.__name__ != "through_task":  # its task was made with an input that is refused first
            assert blocking_memory.position() == before
    assert blocking_memory.position() == before
