"""Finding memories by where they are, what kind they are and what their metadata says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from mnemon.access import under
from mnemon.clock import micros
from mnemon.encryption.sealing import Sealing
from mnemon.errors import InvalidCursor, InvalidInput
from mnemon.filters import parse, render
from mnemon.memories.rows import LAYOUT, SQL, check_type, memories
from mnemon.model import Memory, NamespaceCount, Page
from mnemon.namespaces import EVERYTHING, covers
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Dialect, Row, Store, Transaction
from mnemon.sql import Fragment, equal, params_of

Order = Literal["namespace", "recent"]

_NEWEST = 2**63 - 1
_LAST = "\U0010ffff"  # no namespace sorts after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What is wanted. `prefixes` lie side by side, none inside another, in their order."""

    prefixes: Sequence[str]
    memory_type: str | None
    created_by: str | None
    where: Mapping[str, Any] | None
    updated_after: datetime | None
    updated_before: datetime | None
    order: Order
    limit: int
    cursor: str | None

    async def run(self, store: Store, sealing: Sealing) -> Page[Memory]:
        """One page of what was found."""
        check_limit(self.limit)
        conditions = self._conditions(store.dialect)
        sealing.refuse_filter(self.prefixes, self.where)
        if self.order == "recent":
            return await self._recent(store, sealing, conditions)
        if self.order == "namespace":
            return await self._by_namespace(store, sealing, conditions)
        raise InvalidInput(f"order must be 'namespace' or 'recent', not {self.order!r}")

    def _conditions(self, dialect: Dialect) -> list[Fragment]:
        kind = None if self.memory_type is None else str(check_type(self.memory_type))
        found = equal(memory_type=kind, created_by=self.created_by)
        if self.updated_after:
            found.append(Fragment("updated_at > :updated_after", {"updated_after": micros(self.updated_after)}))
        if self.updated_before:
            found.append(Fragment("updated_at < :updated_before", {"updated_before": micros(self.updated_before)}))
        if self.where is not None:
            found.append(render(parse(self.where), "metadata", dialect.compare))
        return found

    async def _recent(self, store: Store, sealing: Sealing, conditions: list[Fragment]) -> Page[Memory]:
        conditions = [*conditions, under("namespace", self.prefixes, "within")]
        before, before_id = decode_cursor(self.cursor, "recent", (_NEWEST, _NEWEST))
        params = {"before": before, "before_id": before_id, "limit": self.limit, **params_of(conditions)}
        rows = await store.fetch(SQL["search_recent"].where(conditions), params)
        more = encode_cursor("recent", rows[-1][13], rows[-1][0]) if len(rows) == self.limit else None
        return Page(tuple(memories(await sealing.opened(store.fetch, LAYOUT, rows))), more)

    async def _by_namespace(self, store: Store, sealing: Sealing, conditions: list[Fragment]) -> Page[Memory]:
        """Prefix after prefix: first the namespace itself, then what lies below it."""
        after = decode_cursor(self.cursor, "namespace", ("", ""))
        rows: list[Row] = []
        for prefix in self._remaining(after[0]):
            for query, bounds in _halves(prefix, *after):
                if len(rows) < self.limit:
                    params = {**bounds, "limit": self.limit - len(rows), **params_of(conditions)}
                    rows += await store.fetch(SQL[query].where(conditions), params)
            after = ("", "")
        more = encode_cursor("namespace", rows[-1][1], rows[-1][2]) if len(rows) == self.limit else None
        return Page(tuple(memories(await sealing.opened(store.fetch, LAYOUT, rows))), more)

    def _remaining(self, reached: str) -> Sequence[str]:
        if not reached:
            return self.prefixes
        for index, prefix in enumerate(self.prefixes):
            if covers(prefix, reached):
                return self.prefixes[index:]
        raise InvalidCursor(f"the cursor is of another search: it had reached {reached!r}")


def _halves(prefix: str, namespace: str, key: str) -> list[tuple[str, dict[str, Any]]]:
    """The queries that together list a prefix in order, beginning after a namespace and key.

    One range from `a` to `a;` would also walk over `a1`, `a2`, …, which are not below `a`.
    """
    below = {"first": f"{prefix}:", "end": f"{prefix};"} if prefix != EVERYTHING else {"first": "", "end": _LAST}
    below |= {"first": max(below["first"], namespace), "after_namespace": namespace, "after_key": key}
    exact = {"namespace": prefix, "after_key": key if namespace == prefix else ""}
    if prefix == EVERYTHING or namespace > prefix:
        return [("search_below", below)]
    return [("search_exact", exact), ("search_below", below)]


async def list_places(store: Store, prefix: str, *, deleted: bool, limit: int = 200) -> list[tuple[str, str]]:
    """The namespaces and keys of the first memories at or below a prefix, with or without those that are deleted."""
    conditions = [under("namespace", [prefix], "within"), *([] if deleted else [Fragment("is_deleted = FALSE")])]
    rows = await store.fetch(SQL["list_places"].where(conditions), {"limit": limit, **params_of(conditions)})
    return [(namespace, key) for namespace, key in rows]


async def list_namespaces(tx: Transaction, prefixes: Sequence[str], limit: int) -> list[NamespaceCount]:
    """The namespaces that hold live memories, with how many; hops from one to the next."""
    found: list[NamespaceCount] = []
    for prefix in prefixes:
        namespace: str | None = prefix
        after, end = (f"{prefix}:", f"{prefix};") if prefix else ("", _LAST)
        while namespace is not None and len(found) < limit:
            counted = await tx.fetch_one(SQL["count_namespace"], {"namespace": namespace})
            if counted and counted[0]:
                found.append(NamespaceCount(namespace, counted[0]))
            row = await tx.fetch_one(SQL["next_namespace"], {"after": max(after, namespace), "end": end})
            namespace = row[0] if row else None
    return found
