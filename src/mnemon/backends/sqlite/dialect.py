"""Metadata comparisons over JSON text, and the journal's horizon, as SQLite writes them."""

import json
from collections.abc import Sequence
from typing import Any, assert_never

from mnemon.filters import Comparison, Scalar
from mnemon.sql import Fragment, Query

_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class SqliteDialect:
    """SQLite has one writer, so positions appear in order and every one that is seen is safe."""

    horizon = Query("horizon", "SELECT 9223372036854775807")
    size = Query("size", "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
    row_lock = ""  # whoever writes has the whole database

    def octets(self, column: str) -> str:
        return f"LENGTH(CAST({column} AS BLOB))"

    def listed(self, column: str, name: str, values: Sequence[int]) -> Fragment:
        return Fragment(f"{column} IN (SELECT value FROM json_each(:{name}))", {name: json.dumps(list(values))})

    def compare(self, comparison: Comparison, column: str, name: str) -> Fragment:
        path = "$" + "".join(f'."{segment}"' for segment in comparison.path)
        params: dict[str, Any] = {f"{name}_path": path}
        place = _Place(f"json_type({column}, :{name}_path)", f"json_extract({column}, :{name}_path)")
        text = _condition(comparison, place, f"json_each({column}, :{name}_path)", name, params)
        return Fragment(f"coalesce({text}, 0)", params)


class _Place:
    """The SQL of a JSON value's type and of the value itself."""

    def __init__(self, kind: str, value: str) -> None:
        self.kind = kind
        self.value = value

    def equals(self, operand: Scalar, name: str, params: dict[str, Any]) -> str:
        if operand is None:
            return f"{self.kind} = 'null'"
        if isinstance(operand, bool):
            return f"{self.kind} = '{str(operand).lower()}'"
        params[name] = operand
        return f"{self.has_type_of(operand)} AND {self.value} = :{name}"

    def has_type_of(self, operand: Scalar) -> str:
        return f"{self.kind} = 'text'" if isinstance(operand, str) else f"{self.kind} IN ('integer', 'real')"


def _condition(comparison: Comparison, place: _Place, elements: str, name: str, params: dict[str, Any]) -> str:
    operand = comparison.operand
    if isinstance(operand, tuple):
        each = (f"({place.equals(value, f'{name}_{n}', params)})" for n, value in enumerate(operand))
        return f"({' OR '.join(each) or '0'})"
    match comparison.operator:
        case "eq" | "in":
            return f"({place.equals(operand, name, params)})"
        case "ne":
            return f"NOT coalesce({place.equals(operand, name, params)}, 0)"
        case "gt" | "gte" | "lt" | "lte":
            params[name] = operand
            return f"({place.has_type_of(operand)} AND {place.value} {_SIGNS[comparison.operator]} :{name})"
        case "contains":
            element = _Place("type", "value").equals(operand, name, params)
            listed = f"{place.kind} = 'array' AND EXISTS (SELECT 1 FROM {elements} WHERE {element})"
            if not isinstance(operand, str):
                return f"({listed})"
            return f"(({listed}) OR ({place.kind} = 'text' AND instr({place.value}, :{name}) > 0))"
        case _:
            assert_never(comparison.operator)
