"""The scope of a question as conditions of a query on `memory_entries`."""

from collections.abc import Mapping, Sequence
from typing import Any

from mnemon.access import Access, under
from mnemon.errors import InvalidInput
from mnemon.filters import parse, render
from mnemon.namespaces import check_prefix, covers
from mnemon.ports import Dialect, Scope
from mnemon.sql import Fragment, among


def scope_of(
    access: Access,
    namespaces: str | Sequence[str],
    longest: int,
    types: Sequence[str] = (),
    where: Mapping[str, Any] | None = None,
    min_trust: float | None = None,
) -> Scope:
    """What a caller asks for, checked, as far as the caller may read it; `longest` is the longest namespace."""
    asked = [namespaces] if isinstance(namespaces, str) else list(namespaces or ())
    if not asked:
        raise InvalidInput('say at least one namespace; "" stands for everything')
    if min_trust is not None and not _is_share(min_trust):
        raise InvalidInput(f"min_trust must be between 0 and 1, not {min_trust!r}")
    parts = {part for each in asked for part in access.within(check_prefix(each, longest), "read")}
    outermost = sorted(part for part in parts if not any(other != part and covers(other, part) for other in parts))
    return Scope(tuple(outermost), tuple(types), min_trust or 0.0, None if where is None else parse(where))


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def live_in(scope: Scope, dialect: Dialect, table: str = "memory_entries") -> list[Fragment]:
    """What a row must meet to be a current, live memory in scope."""
    return [Fragment(f"{table}.is_current = TRUE AND {table}.is_deleted = FALSE"), *within(scope, dialect, table)]


def within(scope: Scope, dialect: Dialect, table: str = "memory_entries") -> list[Fragment]:
    """What a row must meet to be in scope, whether it is current or not."""
    found = [under(f"{table}.namespace", scope.prefixes, "scope")]
    if scope.types:
        found.append(among(f"{table}.memory_type", scope.types, "type"))
    if scope.min_trust > 0:
        found.append(Fragment(f"{table}.trust >= :min_trust", {"min_trust": scope.min_trust}))
    if scope.where is not None:
        found.append(render(scope.where, f"{table}.metadata", dialect.compare))
    return found


def is_plain(scope: Scope) -> bool:
    """Whether only the namespace decides what is in scope."""
    return not scope.types and scope.min_trust <= 0 and scope.where is None
