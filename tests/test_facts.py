"""Facts say of a memory what filters ask: exactly where they can, and never too little."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemon.facts import (
    EVERY_FACT,
    NO_FACT,
    AnyOf,
    FactFilter,
    Joined,
    Not,
    accepts,
    facts_of,
    filter_for,
    normal,
)
from mnemon.filters import parse
from tests.test_filters import documents, filter_paths, filters, holds, scalars

EVERYWHERE = ("",)


def found(metadata: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return accepts(filter_for(EVERYWHERE, (), parse(where)), facts_of("user:alice", "semantic", metadata))


def in_scope(namespace: str, *prefixes: str, metadata: Mapping[str, Any] | None = None) -> bool:
    return accepts(filter_for(prefixes, (), None), facts_of(namespace, "semantic", metadata or {}))


# ---------------------------------------------------------------------------------------------------- every filter

# Long paths and values are written in another way; quotation marks and signs are what could be confused.
names = st.sampled_from(["a", "b", "a=s", "in", "type", 'a"', ".", "", "~", "#", "x" * 121, "y" * 121])
odd = st.recursive(
    st.one_of(
        scalars,
        st.sampled_from(["=sb", '"sb', "s", "ession:s1", "emantic", "z" * 119, "z" * 120, "z" * 121, "~b", ":s"]),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
odd_documents = st.dictionaries(names, odd, max_size=4)
reachable = names.filter(lambda name: name and "." not in name and chr(34) not in name)
odd_paths = st.lists(reachable, min_size=1, max_size=2).map(".".join)
odd_scalars = st.one_of(scalars, st.sampled_from(["b", "=sb", "x", "z" * 119, "z" * 120, "z" * 121]))

equalities = st.one_of(
    st.builds(lambda sign, operand: {sign: operand}, st.sampled_from(["eq", "ne"]), odd_scalars),
    st.builds(lambda operands: {"in": operands}, st.lists(odd_scalars, max_size=3)),
    # in a string it would be looked for as a part, which facts cannot say
    st.builds(lambda operand: {"contains": operand}, odd_scalars.filter(lambda value: not isinstance(value, str))),
)
exact_filters = st.recursive(
    st.dictionaries(filter_paths | odd_paths, equalities, max_size=2),
    lambda inner: st.one_of(
        st.builds(lambda parts: {"and": parts}, st.lists(inner, max_size=3)),
        st.builds(lambda parts: {"or": parts}, st.lists(inner, max_size=3)),
        st.builds(lambda part: {"not": part}, inner),
    ),
    max_leaves=5,
)


@given(metadata=documents | odd_documents, where=filters)
def test_whatever_a_filter_accepts_its_facts_accept(metadata: dict[str, Any], where: dict[str, Any]) -> None:
    if holds(where, metadata):
        assert found(metadata, where)


@given(metadata=documents | odd_documents, where=exact_filters)
@example(metadata={"a": "=sb"}, where={"a=s": {"ne": "b"}})
@example(metadata={"z": "z" * 120}, where={"z": {"in": ["z" * 121]}})
@example(metadata={"a": {"b": 1}}, where={"a.b": 1.0})
@example(metadata={"a": "1"}, where={"not": {"a": 1}})
@example(metadata={"a": 2**53 + 1}, where={"a": float(2**53)})
@example(metadata={"a": [True]}, where={"a": {"contains": 1}})
def test_equality_membership_and_lists_are_exact(metadata: dict[str, Any], where: dict[str, Any]) -> None:
    assert found(metadata, where) == holds(where, metadata)


def test_an_element_of_a_list_that_is_text_is_found_exactly_among_lists() -> None:
    where = {"tags": {"contains": "new"}}
    assert found({"tags": ["old", "new"]}, where)
    assert not found({"tags": ["newer"]}, where)
    assert not found({"tags": {"new": 1}}, where)
    assert not found({"tags": 5}, where)


@pytest.mark.parametrize(
    ("metadata", "where"),
    [
        ({"n": 1}, {"n": {"gt": 5}}),
        ({"s": "b"}, {"s": {"lt": "a"}}),
        ({"s": "abc"}, {"s": {"contains": "x"}}),
        ({"n": 9}, {"not": {"n": {"gt": 5}}}),
        ({"s": "abc"}, {"not": {"s": {"contains": "b"}}}),
    ],
)
def test_what_facts_cannot_say_is_found_too_much_of(metadata: dict[str, Any], where: dict[str, Any]) -> None:
    assert not holds(where, metadata)
    assert found(metadata, where)


@pytest.mark.parametrize("where", [{"n": {"gt": 5}}, {"n": {"contains": "x"}}, {"n": {"lt": "x"}}])
def test_what_is_of_another_kind_is_not_found(where: dict[str, Any]) -> None:
    assert not found({"n": True}, where)
    assert not found({}, where)


# ------------------------------------------------------------------------------------------------ namespaces and types


def test_a_prefix_covers_whole_segments_only() -> None:
    assert in_scope("user:al:x", "user:al")
    assert in_scope("user:al", "user:al")
    assert in_scope("user:al", "user")
    assert not in_scope("user:alice", "user:al")
    assert not in_scope("user:al", "user:al:x")
    assert in_scope("user:bob", "user:alice", "user:bob")
    assert in_scope("user:bob", "")


def test_without_any_prefix_nothing_is_in_scope() -> None:
    assert not in_scope("user:bob")


def test_long_namespaces_are_told_apart() -> None:
    long = "user:" + "a" * 200
    assert in_scope(f"{long}:x", long)
    assert in_scope(f"{long}:x", f"{long}:x")
    assert not in_scope(f"{long}b:x", long)
    assert max(len(fact) for fact in facts_of(":".join(["user", *"abcdefgh" * 60]), "semantic", {})) <= 120


@pytest.mark.parametrize(
    "metadata",
    [
        {"in": "ession:s1"},
        {"in": "session:s1"},
        {"in=session:s1": "x"},
        {"in=session:s1": {"": ""}},
        {"": {"in": ["session:s1"]}},
        {'in=session:s1"': 1},
    ],
)
def test_metadata_cannot_claim_a_namespace_or_a_type(metadata: dict[str, Any]) -> None:
    assert not in_scope("user:bob", "session:s1", metadata=metadata)
    claimed = {"type": "emantic", "type=episodic": 1}
    assert not accepts(filter_for(EVERYWHERE, ("semantic",), None), facts_of("user:bob", "episodic", claimed))


def test_a_namespace_cannot_claim_metadata() -> None:
    facts = facts_of('user:a"sx', "semantic", {})
    assert not accepts(filter_for(EVERYWHERE, (), parse({"in=user:a": "x"})), facts)


def test_types_and_prefixes_must_both_hold() -> None:
    facts = facts_of("user:bob", "episodic", {})
    assert accepts(filter_for(("user:bob",), ("semantic", "episodic"), None), facts)
    assert not accepts(filter_for(("user:bob",), ("semantic",), None), facts)
    assert not accepts(filter_for(("user:eve",), ("episodic",), None), facts)


# ----------------------------------------------------------------------------------------------------------- limits


def test_a_memory_with_too_much_metadata_is_found_rather_too_often() -> None:
    many = {f"name{number}": number for number in range(1000)}
    assert len(facts_of("user:bob", "semantic", many)) < 270
    assert found(many, {"name0": 0})
    assert found(many, {"name999": 999})
    assert found(many, {"name999": {"ne": 998}})
    assert found(many, {"not": {"name999": 998}})
    assert found(many, {"name999": {"contains": 1}})
    assert not found(many, {"name0": {"ne": 0}})


def test_a_fact_is_said_once_and_is_never_long() -> None:
    facts = facts_of("user:bob", "semantic", {"a" * 5000: ["b" * 5000] * 50, "n": [1, 1.0, 1]})
    assert len(set(facts)) == len(facts) == 5
    assert max(map(len, facts)) < 250


# ------------------------------------------------------------------------------------------------------- normal form

texts = st.sampled_from("abcd")
conditions: st.SearchStrategy[FactFilter] = st.recursive(
    st.builds(AnyOf, st.lists(texts, max_size=2).map(tuple)),
    lambda inner: st.one_of(
        st.builds(Joined, st.booleans(), st.lists(inner, max_size=3).map(tuple)), st.builds(Not, inner)
    ),
    max_leaves=12,
)


def is_leaf(condition: FactFilter) -> bool:
    return isinstance(condition, AnyOf) and bool(condition.facts)


def is_normal(condition: FactFilter) -> bool:
    if isinstance(condition, Joined):
        return len(condition.parts) > 1 and all(map(is_normal, condition.parts))
    return is_leaf(condition) or (isinstance(condition, Not) and is_leaf(condition.part))


@given(condition=conditions, facts=st.sets(texts))
def test_the_normal_form_means_the_same(condition: FactFilter, facts: set[str]) -> None:
    assert accepts(normal(condition), facts) == accepts(condition, facts)


@given(condition=conditions)
def test_the_normal_form_is_simple(condition: FactFilter) -> None:
    simple = normal(condition)
    assert simple in (EVERY_FACT, NO_FACT) or is_normal(simple)
