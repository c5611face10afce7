"""Metadata filters: one small language with the same meaning on every backend.

    {"colour": "red"}                                   equality
    {"size": {"gte": 3, "lt": 10}, "tags": {"contains": "new"}}    all of them
    {"or": [{"lang": "en"}, {"not": {"author.name": {"in": ["bob", "eve"]}}}]}

A name is a path into the metadata, with dots. The rules, which leave nothing to a database:

- A comparison is true or false, never unknown. Where the path leads nowhere it is false,
  but `ne` is the exact opposite of `eq`, as `not` is of what it holds.
- `eq` and `in` compare type and value: `1` equals `1.0`, and neither equals `"1"` or `true`.
- `gt gte lt lte` hold between two numbers, or two strings in code point order; otherwise false.
- `contains` holds for a list that has the element, or a string that has the substring.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

from mnemon.errors import InvalidFilter
from mnemon.sql import Fragment

Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "contains"]
Scalar: TypeAlias = str | int | float | bool | None

_OPERATORS = frozenset(get_args(Operator))
_ORDERED = frozenset({"gt", "gte", "lt", "lte"})
_DEEPEST = 32
_UNUSABLE = re.compile(r"[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`operand` is a tuple of scalars for `in`, one scalar for the others."""

    path: tuple[str, ...]
    operator: Operator
    operand: Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Combination:
    """Several conditions: all of them, or any of them."""

    joint: Literal["and", "or"]
    parts: "tuple[Filter, ...]"


@dataclass(frozen=True, slots=True)
class Negation:
    """The opposite of a condition."""

    part: "Filter"


Filter: TypeAlias = Comparison | Combination | Negation


class _Compare(Protocol):
    def __call__(self, comparison: Comparison, column: str, name: str) -> Fragment: ...


def parse(where: object, depth: int = 0) -> Filter:
    """The filter that `where` writes down, or `InvalidFilter` that says what is wrong with it."""
    if not isinstance(where, Mapping):
        raise InvalidFilter("a filter is a mapping of names to conditions")
    if depth > _DEEPEST:
        raise InvalidFilter(f"a filter may be nested at most {_DEEPEST} deep")
    parts = [
        part
        for name, condition in cast("Mapping[object, object]", where).items()
        for part in _parse_item(name, condition, depth)
    ]
    return parts[0] if len(parts) == 1 else Combination("and", tuple(parts))


def render(condition: Filter, column: str, compare: _Compare) -> Fragment:
    """The SQL of a whole filter, given how the database writes one comparison."""
    numbers = count()
    params: dict[str, Any] = {}

    def text(part: Filter) -> str:
        match part:
            case Comparison():
                fragment = compare(part, column, f"filter{next(numbers)}")
                params.update(fragment.params)
                return fragment.text
            case Negation():
                return f"NOT ({text(part.part)})"
            case Combination():
                empty = "1 = 1" if part.joint == "and" else "1 = 0"
                return f" {part.joint.upper()} ".join(f"({text(p)})" for p in part.parts) or empty

    return Fragment(text(condition), params)


def _parse_item(name: object, condition: object, depth: int) -> Iterator[Filter]:
    if name in ("and", "or"):
        if not isinstance(condition, list | tuple):
            raise InvalidFilter(f"{name!r} takes a list of filters")
        parts = cast("Sequence[object]", condition)
        yield Combination(name, tuple(parse(p, depth + 1) for p in parts))
    elif name == "not":
        yield Negation(parse(condition, depth + 1))
    else:
        path = _path(name)
        operators = cast("Mapping[object, object]", condition) if isinstance(condition, Mapping) else {"eq": condition}
        if not operators:
            raise InvalidFilter(f"the filter on {name!r} has no operator")
        for operator, operand in operators.items():
            yield _comparison(path, operator, operand)


def _path(name: object) -> tuple[str, ...]:
    if not isinstance(name, str) or not all(name.split(".")):
        raise InvalidFilter(f"a filter's name is a path such as 'author.name', not {name!r}")
    if '"' in name or _UNUSABLE.search(name):
        raise InvalidFilter(f"a filter's name may not hold a quotation mark, NUL or a lone surrogate: {name!r}")
    return tuple(name.split("."))


def _comparison(path: tuple[str, ...], operator: object, operand: object) -> Comparison:
    where = ".".join(path)
    if operator not in _OPERATORS:
        raise InvalidFilter(f"unknown operator {operator!r} on {where!r}; use one of {', '.join(get_args(Operator))}")
    if operator == "in":
        if not isinstance(operand, list | tuple | set | frozenset):
            raise InvalidFilter(f"'in' on {where!r} takes a list")
        values = cast("Sequence[object]", operand)
        return Comparison(path, "in", tuple(_scalar(where, v) for v in values))
    scalar = _scalar(where, operand)
    if operator in _ORDERED and (isinstance(scalar, bool) or scalar is None):
        raise InvalidFilter(f"{operator!r} on {where!r} takes a number or a string")
    return Comparison(path, cast("Operator", operator), scalar)


def _scalar(where: str, value: object) -> Scalar:
    if not isinstance(value, str | int | float | bool | None):
        raise InvalidFilter(f"the filter on {where!r} compares with {type(value).__name__}; use a scalar")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidFilter(f"the filter on {where!r} compares with {value}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidFilter(f"the filter on {where!r} compares with an integer beyond 64 bits")
    if isinstance(value, str) and _UNUSABLE.search(value):
        raise InvalidFilter(f"the filter on {where!r} compares with a NUL character or a lone surrogate")
    return value
