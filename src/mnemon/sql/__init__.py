"""Named queries, kept in files beside this module and written once for both dialects.

A query's parameters are written `:name`. `{where}` in its text is where `Query.where` puts
further conditions; they come as fragments, whose text is made by this package and never by a caller.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of SQL with its own parameters."""

    text: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Query:
    """One statement; `name` says in logs and plans what it is for."""

    name: str
    text: str

    def where(self, fragments: Iterable[Fragment], lock: str = "") -> "Query":
        """This query with more conditions, all of which must hold, and with or without a row lock."""
        return self.fill(where="".join(f" AND ({fragment.text})" for fragment in fragments), lock=lock)

    def fill(self, **parts: str) -> "Query":
        """This query with its `{markers}` replaced by SQL."""
        text = self.text
        for marker, part in parts.items():
            text = text.replace(f"{{{marker}}}", part)
        return Query(self.name, text)


def equal(**columns: Any) -> list[Fragment]:
    """One condition for each column that has a value to be equal to."""
    return [Fragment(f"{name} = :{name}", {name: value}) for name, value in columns.items() if value is not None]


def among(column: str, values: Sequence[Any], name: str) -> Fragment:
    """The condition that a column has one of some values: a few hundred at the most, see `chunks`."""
    params = {f"{name}{number}": value for number, value in enumerate(values)}
    return Fragment(f"{column} IN ({', '.join(f':{each}' for each in params) or 'NULL'})", params)


def chunks(values: Sequence[T], size: int = 200) -> Iterator[Sequence[T]]:
    """The values in pieces that one query can take."""
    return (values[start : start + size] for start in range(0, len(values), size))


def params_of(fragments: Iterable[Fragment]) -> dict[str, Any]:
    """The parameters of several fragments together."""
    return {name: value for fragment in fragments for name, value in fragment.params.items()}


@cache
def load(noun: str) -> Mapping[str, Query]:
    """The queries of `noun`.sql by name; a file is read once."""
    text = Path(__file__).with_name(f"{noun}.sql").read_text("utf-8")
    _, *parts = _NAME.split(text)
    return {
        name: Query(name, _COMMENT.sub("", body).strip().removesuffix(";"))
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
