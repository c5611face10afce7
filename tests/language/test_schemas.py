"""Which values are of a schema; every rule is compared with the library that everybody knows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mnemon.schemas import flaw, structure

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 5},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "tags": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        "age": {"type": "integer"},
        "size": {"type": "number"},
        "is_new": {"type": "boolean"},
        "gone": {"type": "null"},
    },
    "required": ["name"],
    "additionalProperties": False,
}

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=7)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*PERSON["properties"], "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_it_agrees_with_the_library_about_any_value(value: object) -> None:
    wanted = Draft202012Validator(PERSON).is_valid(value)
    is_whole_float = isinstance(value, dict) and isinstance(value.get("age"), float)  # which we do not take for whole
    assert (flaw(value, PERSON) is None) == wanted or is_whole_float


@given(st.fixed_dictionaries({"name": st.text(max_size=7)}, optional={
    "kind": st.sampled_from(["a", "b", "c"]), "tags": st.lists(st.text(max_size=2), max_size=3), "age": st.integers(),
    "size": st.integers() | st.floats(allow_nan=False), "is_new": st.booleans(), "gone": st.none(),
}))  # fmt: skip
def test_it_agrees_about_values_that_nearly_are(value: object) -> None:
    assert (flaw(value, PERSON) is None) == Draft202012Validator(PERSON).is_valid(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "the answer is no object"),
        ({}, "the answer has no 'name'"),
        ({"name": 5}, "the answer.name is no string"),
        ({"name": ""}, "the answer.name is too short"),
        ({"name": "longer"}, "the answer.name is longer than 5 characters"),
        ({"name": "n", "kind": "c"}, "the answer.kind is none of 'a', 'b'"),
        ({"name": "n", "tags": ["a", 1]}, r"the answer.tags\[1\] is no string"),
        ({"name": "n", "tags": ["a", "b", "c"]}, "the answer.tags has more than 2 items"),
        ({"name": "n", "age": True}, "the answer.age is no integer"),
        ({"name": "n", "trust": 1}, "the answer has 'trust', which nobody asked for"),
    ],
)
def test_a_flaw_is_named(value: object, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert not flaw(value, PERSON), flaw(value, PERSON)


def test_a_schema_that_could_not_be_checked_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="pattern"):
        flaw("x", {"type": "string", "pattern": "^x$"})


def test_a_structure_has_no_bounds() -> None:
    bare = structure(PERSON)
    assert "Length" not in str(bare)
    assert "maxItems" not in str(bare)
    assert flaw({"name": "much longer", "tags": ["a", "b", "c"]}, bare) is None
    assert flaw({"name": "n", "trust": 1}, bare) is not None
    assert bare["properties"]["kind"] == PERSON["properties"]["kind"]
