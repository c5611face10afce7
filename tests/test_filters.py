"""Filters mean the same on every backend, and what plain Python says they mean."""

import operator
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mnemon.errors import InvalidFilter
from mnemon.filters import Combination, Comparison, Negation, parse
from mnemon.sync import BlockingMemory
from tests.conformance.backends import blocking_memory

__all__ = ["blocking_memory"]

RUNS = count()
MISSING = object()
ORDERS = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}


# -- what a filter means, in plain Python


def holds(where: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    return all(holds_for(name, condition, metadata) for name, condition in where.items())


def holds_for(name: str, condition: Any, metadata: Mapping[str, Any]) -> bool:
    if name == "and":
        return all(holds(part, metadata) for part in condition)
    if name == "or":
        return any(holds(part, metadata) for part in condition)
    if name == "not":
        return not holds(condition, metadata)
    operators = condition if isinstance(condition, Mapping) else {"eq": condition}
    found = reach(metadata, name.split("."))
    return all(compares(found, sign, operand) for sign, operand in operators.items())


def reach(value: Any, path: list[str]) -> Any:
    for segment in path:
        if not isinstance(value, Mapping) or segment not in value:
            return MISSING
        value = value[segment]
    return value


def compares(found: Any, sign: str, operand: Any) -> bool:
    if sign == "ne":
        return not same(found, operand)
    if sign == "eq":
        return same(found, operand)
    if sign == "in":
        return any(same(found, each) for each in operand)
    if sign == "contains":
        if isinstance(found, list):
            return any(same(element, operand) for element in found)
        return isinstance(found, str) and isinstance(operand, str) and operand in found
    return kind(found) == kind(operand) in ("number", "text") and ORDERS[sign](found, operand)


def same(found: Any, operand: Any) -> bool:
    return kind(found) == kind(operand) and found == operand


def kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return f"{value}"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "other"


# -- metadata and filters that are likely to meet

names = st.sampled_from(["a", "b", "0", "a b", "é", "c\\d", "e'f", "[0]", "$", "#", "%", "or", "x\ty"])
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
strings = st.sampled_from(
    ["", "a", "ab", "b", "A", "é", "1", "true", "null", "%", "_", "\U0001f600", "\uffff"]
) | st.text(characters, max_size=3)
numbers = st.one_of(
    st.sampled_from([0, 1, -1, 2, 1.0, 0.5, -0.0, 0.1 + 0.2, 1e300, 5e-324, 2**53, 2**53 + 1, float(2**53), 2**63 - 1]),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, strings)
documents = st.dictionaries(
    names,
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
    ),
    max_size=4,
)
filter_paths = (
    st.lists(names, min_size=1, max_size=2).map(".".join).filter(lambda name: name not in ("and", "or", "not"))
)
comparisons = st.one_of(
    st.builds(lambda sign, operand: {sign: operand}, st.sampled_from(["eq", "ne", "contains"]), scalars),
    st.builds(lambda sign, operand: {sign: operand}, st.sampled_from(sorted(ORDERS)), numbers | strings),
    st.builds(lambda operands: {"in": operands}, st.lists(scalars, max_size=3)),
)
conditions = st.builds(lambda one, other: {**one, **other}, comparisons, comparisons) | comparisons | scalars
filters = st.recursive(
    st.dictionaries(filter_paths, conditions, max_size=2),
    lambda inner: st.one_of(
        st.builds(lambda parts: {"and": parts}, st.lists(inner, max_size=3)),
        st.builds(lambda parts: {"or": parts}, st.lists(inner, max_size=3)),
        st.builds(lambda part: {"not": part}, inner),
        st.builds(lambda one, other: {**one, "not": other}, inner, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(metadata=st.lists(documents, min_size=1, max_size=4), wheres=st.lists(filters, min_size=1, max_size=4))
@example(metadata=[{"a": ["x", "y"]}, {"a": {"0": "x"}}], wheres=[{"a.0": "x"}, {"a": {"contains": "x"}}])
@example(metadata=[{"a": True}, {"a": 1}, {"a": "true"}, {"a": 1.0}], wheres=[{"a": 1}, {"a": True}, {"a": "true"}])
@example(metadata=[{}, {"a": None}], wheres=[{"a": None}, {"a": {"ne": None}}, {"not": {"a": {"gt": 0}}}])
@example(metadata=[{"a": [[1], {"b": 1}, 1]}], wheres=[{"a": {"contains": 1}}, {"a.b": 1}])
@example(metadata=[{"a": 0.30000000000000004}], wheres=[{"a": 0.1 + 0.2}, {"a": {"gt": 0.3}}, {"a": 0.3}])
@example(metadata=[{"a": 2**53 + 1}], wheres=[{"a": float(2**53)}, {"a": {"gt": float(2**53)}}])
@example(metadata=[{"a": "\U0001f600"}], wheres=[{"a": {"gt": "\uffff"}}])
@example(metadata=[{"a": {"b": 1}}, {"a.b": 1}], wheres=[{"a.b": 1}])
def test_every_backend_finds_what_plain_python_finds(
    blocking_memory: BlockingMemory, metadata: list[dict[str, Any]], wheres: list[dict[str, Any]]
) -> None:
    namespace = f"user:{next(RUNS)}"
    for number, document in enumerate(metadata):
        blocking_memory.memories.add_memory(namespace, str(number), 1, metadata=document)

    for where in wheres:
        found = [memory.key for memory in blocking_memory.memories.search_memories(namespace, where=where)]
        recent = blocking_memory.memories.search_memories(namespace, where=where, order="recent")

        assert found == [str(number) for number, document in enumerate(metadata) if holds(where, document)], where
        assert sorted(memory.key for memory in recent) == found


def test_a_filter_is_read_as_it_was_written() -> None:
    both = parse({"size": {"gte": 3, "lt": 10}})
    assert both == Combination("and", (Comparison(("size",), "gte", 3), Comparison(("size",), "lt", 10)))
    assert parse({"author.name": "bob"}) == Comparison(("author", "name"), "eq", "bob")
    assert parse({"a": {"in": ("x", None)}}) == Comparison(("a",), "in", ("x", None))
    assert parse({}) == Combination("and", ())
    either = parse({"or": [{"a": 1}, {"not": {"b": 2}}]})
    assert either == Combination("or", (Comparison(("a",), "eq", 1), Negation(Comparison(("b",), "eq", 2))))


def nested(depth: int) -> dict[str, Any]:
    where: dict[str, Any] = {"a": 1}
    for _ in range(depth):
        where = {"not": where}
    return where


BAD_FILTERS: list[tuple[Any, str]] = [
    (None, "a filter is a mapping"),
    ([{"a": 1}], "a filter is a mapping"),
    ("a = 1", "a filter is a mapping"),
    ({"and": {"a": 1}}, "'and' takes a list of filters"),
    ({"or": "a"}, "'or' takes a list of filters"),
    ({"or": [1]}, "a filter is a mapping"),
    ({"not": [{"a": 1}]}, "a filter is a mapping"),
    ({"a": {}}, "the filter on 'a' has no operator"),
    ({"a": {"like": "x%"}}, "unknown operator 'like' on 'a'; use one of eq, ne, gt"),
    ({"a": {1: 2}}, "unknown operator 1 on 'a'"),
    ({"a.b": {"in": "xy"}}, "'in' on 'a.b' takes a list"),
    ({"a": {"in": [[1]]}}, "compares with list; use a scalar"),
    ({"a": [1]}, "compares with list; use a scalar"),
    ({"a": {"eq": {"b": 1}}}, "compares with dict; use a scalar"),
    ({"a": b"x"}, "compares with bytes"),
    ({"a": {"gt": True}}, "'gt' on 'a' takes a number or a string"),
    ({"a": {"lte": None}}, "'lte' on 'a' takes a number or a string"),
    ({"a": float("nan")}, "compares with nan"),
    ({"a": {"in": [float("inf")]}}, "compares with inf"),
    ({"a": 2**63}, "integer beyond 64 bits"),
    ({"a": -(2**63) - 1}, "integer beyond 64 bits"),
    ({"a": "x\0"}, "NUL"),
    ({"a": "\ud800"}, "surrogate"),
    ({"\ud800": 1}, "surrogate"),
    ({"": 1}, "is a path such as 'author.name', not ''"),
    ({"a..b": 1}, "is a path"),
    ({".a": 1}, "is a path"),
    ({1: 1}, "is a path such as 'author.name', not 1"),
    ({'a"b': 1}, "quotation mark"),
    ({"a\0": 1}, "NUL"),
    (nested(33), "nested at most 32 deep"),
]


@pytest.mark.parametrize(("where", "message"), BAD_FILTERS)
def test_a_filter_without_a_meaning_is_refused(where: Any, message: str) -> None:
    with pytest.raises(InvalidFilter, match=message) as caught:
        parse(where)
    assert isinstance(caught.value, ValueError)


def test_a_filter_may_be_nested_as_deep_as_the_limit(blocking_memory: BlockingMemory) -> None:
    blocking_memory.memories.add_memory("user:alice", "k", 1, metadata={"a": 1})

    assert len(blocking_memory.memories.search_memories("user:alice", where=nested(32))) == 1


def test_a_filter_may_be_wide(blocking_memory: BlockingMemory) -> None:
    blocking_memory.memories.add_memory("user:alice", "k", 1, metadata={"a": 150, "b": "x"})
    where = {
        "or": [{"a": number} for number in range(200)],
        "b": {"in": [str(number) for number in range(200)] + ["x"]},
    }

    assert len(blocking_memory.memories.search_memories("user:alice", where=where)) == 1
