"""What is known of a memory as short texts, from which any vector store can answer filters alike.

Vector stores differ in what they can filter: nested metadata, negation, types. All of them can tell
whether a list of texts has one of some texts. So everything that a filter may ask for is written as
such a fact, and a filter becomes facts joined by and, or and not. What facts cannot say (a greater
number, a part of a string) is left out so that too much is found, never too little, and the rest of
the filter is then put to the database.

    in=user:alice          it lies in this namespace or below; there is one for each prefix
    type=semantic
    .author.name"sbob      the metadata at this path is this: s text, n number, b truth value, z null
    .tags"~snew            the list at this path has this element
    .size":n               what is at this path is a number
    more                   there was more to say than is kept

No two things that a filter can tell apart are written alike. A filter's path has no quotation mark,
so the first one ends the path, and metadata cannot pass itself off as a namespace. What is long is
written as a digest, after a mark that nothing else has in its place.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias, assert_never, cast

from mnemon.filters import Combination, Comparison, Filter, Negation
from mnemon.namespaces import EVERYTHING

_MOST = 256
_LONGEST = 120
_MORE = "more"  # a memory with more facts than are kept might have any
_LONG_PATH = '."'
_LONG_VALUE = "#"
_LONG_NAMESPACE = "in#"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Has at least one of the facts; with none to choose from, nothing does."""

    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """All of the conditions hold, or any of them; all of none is everything."""

    all: bool
    parts: "tuple[FactFilter, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: "FactFilter"


FactFilter: TypeAlias = AnyOf | Joined | Not

EVERY_FACT = Joined(all=True, parts=())
NO_FACT = AnyOf(())


def facts_of(namespace: str, memory_type: str, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Everything that a filter may ask of a memory."""
    segments = namespace.split(":")
    known = [_lies_in(":".join(segments[:count])) for count in range(1, len(segments) + 1)]
    told = list(islice(_told("", metadata), _MOST + 1))
    more = [_MORE] if len(told) > _MOST else []
    return (*known, f"type={memory_type}", *dict.fromkeys(told[:_MOST]), *more)


def filter_for(prefixes: Sequence[str], types: Sequence[str], where: Filter | None) -> FactFilter:
    """What at least must hold for memories of these namespaces and types, and of this metadata."""
    parts: list[FactFilter] = []
    if EVERYTHING not in prefixes:
        parts.append(AnyOf(tuple(_lies_in(prefix) for prefix in prefixes)))
    if types:
        parts.append(AnyOf(tuple(f"type={kind}" for kind in types)))
    if where is not None:
        parts.append(_bound(where, above=True))
    return parts[0] if len(parts) == 1 else Joined(all=True, parts=tuple(parts))


def accepts(condition: FactFilter, facts: Collection[str]) -> bool:
    """Whether a memory with these facts meets the condition."""
    match condition:
        case AnyOf():
            return any(fact in facts for fact in condition.facts)
        case Joined():
            return (all if condition.all else any)(accepts(part, facts) for part in condition.parts)
        case Not():
            return not accepts(condition.part, facts)
        case _:
            assert_never(condition)


def normal(condition: FactFilter, *, negated: bool = False) -> FactFilter:
    """The same condition in a form that any store can be given.

    It is `EVERY_FACT`, `NO_FACT`, or made of two or more parts joined, of `AnyOf` with at least one fact,
    and of `Not` before such an `AnyOf` only.
    """
    match condition:
        case AnyOf():
            if not condition.facts:
                return EVERY_FACT if negated else NO_FACT
            return Not(condition) if negated else condition
        case Not():
            return normal(condition.part, negated=not negated)
        case Joined():
            return _joined(condition.all != negated, [normal(part, negated=negated) for part in condition.parts])
        case _:
            assert_never(condition)


def _joined(every: bool, parts: Sequence[FactFilter]) -> FactFilter:
    idle, decisive = (EVERY_FACT, NO_FACT) if every else (NO_FACT, EVERY_FACT)
    if decisive in parts:
        return decisive
    left = tuple(part for part in parts if part != idle)
    if not left:
        return idle
    return left[0] if len(left) == 1 else Joined(every, left)


def _told(path: str, value: object) -> Iterator[str]:
    """What metadata says, as far as a filter's path can lead there."""
    if isinstance(value, Mapping):
        for name, child in cast("Mapping[str, object]", value).items():
            if name and "." not in name and '"' not in name:
                yield from _told(f"{path}.{name}", child)
    elif isinstance(value, list | tuple):
        elements = cast("Sequence[object]", value)
        yield from (_fact(path, "~", _written(each)) for each in elements if not isinstance(each, dict | list | tuple))
    else:
        written = _written(value)
        yield _fact(path, "", written)
        yield _fact(path, ":", written[0])


def _bound(condition: Filter, *, above: bool) -> FactFilter:
    """A filter that holds wherever `condition` does (`above`), or only where it does."""
    match condition:
        case Comparison():
            return _bound_comparison(condition, above=above)
        case Negation():
            return Not(_bound(condition.part, above=not above))
        case Combination():
            return Joined(condition.joint == "and", tuple(_bound(part, above=above) for part in condition.parts))


def _bound_comparison(comparison: Comparison, *, above: bool) -> FactFilter:
    path, operand = f".{'.'.join(comparison.path)}", comparison.operand
    if comparison.operator == "ne":
        return Not(_bound_comparison(Comparison(comparison.path, "eq", operand), above=not above))
    if isinstance(operand, tuple):
        found = [_fact(path, "", _written(each)) for each in operand]
    elif comparison.operator == "eq":
        found = [_fact(path, "", _written(operand))]
    elif comparison.operator == "contains":
        within = [_fact(path, ":", "s")] if above and isinstance(operand, str) else []
        found = [_fact(path, "~", _written(operand)), *within]
    elif above:
        found = [_fact(path, ":", _written(operand)[0])]
    else:
        return NO_FACT
    return AnyOf((*found, _MORE) if above and found else tuple(found))


def _fact(path: str, relation: str, written: str) -> str:
    return f'{_shortened(path, _LONG_PATH)}"{relation}{_shortened(written, _LONG_VALUE)}'


def _lies_in(prefix: str) -> str:
    return _shortened(f"in={prefix}", _LONG_NAMESPACE)


def _written(value: object) -> str:
    """A scalar with its type, so that `1` equals `1.0`, and neither `"1"` nor `true`."""
    if value is None:
        return "z"
    if isinstance(value, bool):
        return f"b{int(value)}"
    if isinstance(value, str):
        return f"s{value}"
    number = cast("int | float", value)
    return f"n{int(number)}" if number == number // 1 else f"n{number!r}"


def _shortened(text: str, mark: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{mark}{hashlib.blake2b(text.encode(), digest_size=20).hexdigest()}"
