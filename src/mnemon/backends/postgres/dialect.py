"""Metadata comparisons over JSON text, and the journal's horizon, as PostgreSQL writes them."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, assert_never

from mnemon.filters import Comparison, Scalar
from mnemon.sql import Fragment, Query

_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class PostgresDialect:
    """Positions are handed out before they are committed; `schema.sql` explains the horizon."""

    horizon = Query("horizon", "SELECT mnemon_horizon('journal_position')")
    size = Query(
        "size",
        "SELECT CAST(COALESCE(SUM(pg_total_relation_size(pg_class.oid)), 0) AS bigint) FROM pg_class "
        "WHERE relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r'",
    )
    row_lock = " FOR NO KEY UPDATE"  # rows that refer to these can still be inserted

    def octets(self, column: str) -> str:
        return f"OCTET_LENGTH({column})"

    def listed(self, column: str, name: str, values: Sequence[int]) -> Fragment:
        return Fragment(f"{column} = ANY(CAST(:{name} AS bigint[]))", {name: list(values)})

    def compare(self, comparison: Comparison, column: str, name: str) -> Fragment:
        # A chain of arrows, since a path (#>) would also take "0" for the first element of a list.
        params: dict[str, Any] = {f"{name}_path{n}": segment for n, segment in enumerate(comparison.path)}
        value = " -> ".join([f"{column}::json", *(f":{parameter}::text" for parameter in params)])
        condition = _condition(comparison, _Place("place.value"), name, params)
        # OFFSET keeps the planner from reading the JSON again at each place where its value is compared.
        condition = f"coalesce((SELECT {condition} FROM (SELECT {value} AS value OFFSET 0) AS place), FALSE)"
        mark = _mark(comparison)
        if mark is not None:  # to look for it in the text takes a tenth of the time that it takes to read the JSON
            params[f"{name}_mark"] = mark
            condition = f"(strpos({column}, :{name}_mark::text) > 0 AND {condition})"
        return Fragment(condition, params)


def _mark(comparison: Comparison) -> str | None:
    """What is in the text of every JSON that meets the comparison, as Mnemon writes JSON; None if that is not sure."""
    if comparison.operator == "ne":
        return None
    operand = comparison.operand
    mark = operand if comparison.operator == "eq" and isinstance(operand, str) else comparison.path[-1]
    return f'"{mark}"' if mark.isprintable() and '"' not in mark and "\\" not in mark else None


class _Place:
    """The SQL of a JSON value, and of comparisons with it."""

    def __init__(self, value: str) -> None:
        self.value = f"({value})"
        self.kind = f"json_typeof{self.value}"
        self.text = f"({self.value} #>> '{{}}')"

    def compares(self, sign: str, operand: Scalar, name: str, params: dict[str, Any]) -> str:
        """Whether the value has the operand's type and stands in this relation to it."""
        if operand is None:
            return f"{self.kind} = 'null'"
        if isinstance(operand, bool):
            return f"({self.kind} = 'boolean' AND {self.text} = '{str(operand).lower()}')"
        if isinstance(operand, str):
            params[name] = operand
            return f"({self.kind} = 'string' AND {self.text} COLLATE \"C\" {sign} :{name}::text)"
        return self._compares_number(sign, operand, name, params)

    def _compares_number(self, sign: str, operand: int | float, name: str, params: dict[str, Any]) -> str:
        """Floats as floats, and integers beyond a float's digits too, with nothing rounded."""
        params[name] = str(Decimal(operand))
        written, nearest = _on_floats(sign, operand)
        params[f"{name}_float"] = nearest
        return (
            f"CASE WHEN {self.kind} <> 'number' THEN FALSE "
            f"WHEN {self.text} ~ '[.eE]' THEN {self.text}::float8 {written} :{name}_float::float8 "
            f"ELSE {self.text}::numeric {sign} :{name}::numeric END"
        )


def _on_floats(sign: str, operand: int | float) -> tuple[str, float | None]:
    """The same relation for a float on the left: to the float that is nearest to the operand."""
    nearest = float(operand)
    if nearest == operand:
        return sign, nearest
    if sign == "=":
        return sign, None
    too_high = nearest > operand
    return ("<" if too_high else "<=") if sign in ("<", "<=") else (">=" if too_high else ">"), nearest


def _condition(comparison: Comparison, place: _Place, name: str, params: dict[str, Any]) -> str:
    operand = comparison.operand
    if isinstance(operand, tuple):
        each = [f"({place.compares('=', value, f'{name}_{n}', params)})" for n, value in enumerate(operand)]
        return f"({' OR '.join(each) or 'FALSE'})"
    match comparison.operator:
        case "eq" | "in":
            return place.compares("=", operand, name, params)
        case "ne":
            return f"NOT coalesce({place.compares('=', operand, name, params)}, FALSE)"
        case "gt" | "gte" | "lt" | "lte":
            return place.compares(_SIGNS[comparison.operator], operand, name, params)
        case "contains":
            element = _Place("element.value").compares("=", operand, name, params)
            listed = f"EXISTS (SELECT 1 FROM json_array_elements({place.value}) AS element (value) WHERE {element})"
            part = f'strpos({place.text} COLLATE "C", :{name}::text) > 0' if isinstance(operand, str) else "FALSE"
            return f"CASE {place.kind} WHEN 'array' THEN {listed} WHEN 'string' THEN {part} END"
        case _:
            assert_never(comparison.operator)
