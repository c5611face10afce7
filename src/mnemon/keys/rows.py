"""Going through every row that may be sealed, and through every record of a content, a page at a time."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mnemon.encryption.contents import is_sealed_name, key_id_of_name
from mnemon.encryption.envelope import is_sealed, key_id_of
from mnemon.encryption.sealing import Sealing
from mnemon.encryption.tables import Table
from mnemon.namespaces import covers
from mnemon.ports import Params, Row, Store
from mnemon.retention.rows import STANDS_FOR
from mnemon.sql import Fragment, Query, load

SQL = load("keys")
PLAIN = ""
"""What a text that is not sealed has in place of the id of a key."""

_PAGE = 500
_STANDS_FOR = re.compile(rf'{{"{STANDS_FOR}":\d+}}')
_HEAD = 100  # characters of a sealed text that hold the id of its key
_OWN = "namespace"
_SESSION = "'session:' || {table}.session_id"
_WORKSPACE = "(SELECT namespace FROM workspaces WHERE workspaces.id = {table}.workspace_id)"

OWNERS: Mapping[str, str] = {
    "memory_entries": _OWN,
    "sessions": "'session:' || id",
    "events": _SESSION,
    "archived_events": _SESSION,
    "state": _OWN,
    "tasks": _SESSION,
    "artifacts": _SESSION,
    "workspaces": _OWN,
    "workspace_files": _WORKSPACE,
    "workspace_snapshots": _WORKSPACE,
    "agents": _OWN,
    "agent_cycles": "(SELECT namespace FROM agents WHERE agents.id = agent_cycles.agent_id)",
    "document_index": _OWN,
    "working_items": _SESSION,
    "scratchpads": _SESSION,
    "episodes": _OWN,
}
"""The namespace that a row of each table belongs to, in SQL; NULL if to none."""

CONTENTS: Mapping[str, tuple[Sequence[str], str]] = {
    "artifacts": (("id",), _SESSION),
    "workspace_files": (("workspace_id", "path", "since"), _WORKSPACE),
    "archives": (("id",), _OWN),
}
"""The tables that refer to contents: what finds a row, and whose it is."""


@dataclass(frozen=True, slots=True)
class Found:
    """A row, whose it is, and the keys that its texts are sealed by; `PLAIN` for one that is not."""

    table: str
    place: Mapping[str, Any]
    owner: str
    scope: str | None
    """Where it should be sealed now; None if it need not be."""
    keys: frozenset[str]
    content: str = ""
    """The name of the content that it refers to."""

    @property
    def told(self) -> str:
        return ", ".join(map(str, self.place.values()))


class Scopes:
    """Where things should be sealed, looked up once for each namespace; and which of it is asked for."""

    def __init__(self, store: Store, sealing: Sealing, prefix: str) -> None:
        self._store = store
        self._sealing = sealing
        self._prefix = prefix
        self._known: dict[str, str | None] = {}

    async def of(self, owner: str) -> str | None:
        """The scope that what lies in a namespace is to be sealed in."""
        if not owner:  # what belongs to nobody, and what was purged
            return None
        if owner not in self._known:
            self._known[owner] = await self._sealing.scope_at(self._store.fetch, owner)
        return self._known[owner]

    def are_asked_for(self, owner: str, scope: str | None) -> bool:
        return covers(self._prefix, owner) or (scope is not None and covers(self._prefix, scope))


class Page(NamedTuple):
    """Some rows that are asked for, out of how many that were looked at."""

    found: Sequence[Found]
    seen: int


async def rows_of(store: Store, scopes: Scopes, table: Table) -> AsyncGenerator[Page]:
    """The rows of a table, a page at a time."""
    heads = ", ".join(f"SUBSTR({column}, 1, {_HEAD})" for column in table.sealed)
    query = _filled(SQL["scan_rows"], table.name, table.finds, OWNERS[table.name], heads=heads)
    async for page in _pages(store, query, table.finds):
        found: list[Found] = []
        for row in page:
            place, owner, heads_of = _parted(row, table.finds)
            keys = frozenset(key for head in heads_of if (key := _key_of(head)) is not None)
            scope = await scopes.of(owner)
            if scopes.are_asked_for(owner, scope):
                found.append(Found(table.name, place, owner, scope, keys))
        yield Page(found, len(page))


async def contents_of(store: Store, scopes: Scopes, table: str) -> AsyncGenerator[Page]:
    """The records of a table that refer to contents, a page at a time."""
    finds, owner_of = CONTENTS[table]
    query = _filled(SQL["scan_contents"], table, finds, owner_of)
    async for page in _pages(store, query, finds):
        found: list[Found] = []
        for row in page:
            place, owner, (name,) = _parted(row, finds)
            scope = await scopes.of(owner)
            if scopes.are_asked_for(owner, scope):
                key = key_id_of_name(name) if is_sealed_name(name) else PLAIN
                found.append(Found(table, place, owner, scope, frozenset([key]), name))
        yield Page(found, len(page))


async def count(store: Store, tables: Sequence[str]) -> int:
    """How many rows some tables have."""
    return sum([(await store.fetch(SQL["count_rows"].fill(table=table), {}))[0][0] for table in tables])


def this(finds: Sequence[str]) -> str:
    """The condition that a row is the one that is meant."""
    return " AND ".join(f"{column} = :{column}" for column in finds)


def stays_plain(text: str) -> bool:
    """Whether a text is never sealed: what says that a version of a memory stands for others that are gone."""
    return bool(_STANDS_FOR.fullmatch(text))


class _Parts(NamedTuple):
    place: dict[str, Any]
    owner: str
    rest: Sequence[Any]


def _parted(row: Row, finds: Sequence[str]) -> _Parts:
    return _Parts(dict(zip(finds, row, strict=False)), row[len(finds)] or "", row[len(finds) + 1 :])


def _key_of(head: str | None) -> str | None:
    if head is None or stays_plain(head):
        return None
    return key_id_of(head) if is_sealed(head) else PLAIN


def _filled(query: Query, table: str, finds: Sequence[str], owner: str, **parts: str) -> Query:
    return query.fill(table=table, finds=", ".join(finds), owner=owner.format(table=table), **parts)


async def _pages(store: Store, query: Query, finds: Sequence[str]) -> AsyncGenerator[list[Row]]:
    """All rows of a query, in the order of what finds them."""
    after: list[Fragment] = []
    while True:
        params: Params = {"limit": _PAGE, **{name: value for each in after for name, value in each.params.items()}}
        rows = await store.fetch(query.where(after), params)
        yield rows
        if len(rows) < _PAGE:
            return
        last = {f"after_{column}": value for column, value in zip(finds, rows[-1], strict=False)}
        after = [Fragment(f"({', '.join(finds)}) > ({', '.join(f':{name}' for name in last)})", last)]
