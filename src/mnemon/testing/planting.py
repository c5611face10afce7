"""Memories that no service wrote, put straight into the tables and the indexes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mnemon.model import EmbeddingModel, Space, SpaceStatus
from mnemon.ports import Indexes, Row, Scope, Store, Transaction, Vector, VectorRow
from mnemon.sql import Query

EVERYWHERE = Scope(("",))

_LATEST = Query(
    "plant",
    "SELECT id, version FROM memory_entries WHERE namespace = :namespace AND key = :key ORDER BY version DESC LIMIT 1",
)
_RETIRE = Query("plant", "UPDATE memory_entries SET is_current = FALSE WHERE id = :id")
_INSERT = Query(
    "plant",
    "INSERT INTO memory_entries (namespace, key, value, memory_type, version, is_deleted, metadata, created_at, "
    "updated_at, trust, valid_from) VALUES (:namespace, :key, '\"planted\"', :memory_type, :version, :is_deleted, "
    ":metadata, 1, 1, :trust, 1) RETURNING id",
)
_JOURNAL = Query(
    "plant",
    "INSERT INTO journal (at, entity, entity_id, operation, version, namespace) "
    "VALUES (1, 'memory', :key, :operation, :version, :namespace)",
)
_SPACE = Query(
    "plant",
    "INSERT INTO vector_spaces (provider, model, version, dimension, status, created_at) "
    "VALUES ('planted', :name, '1', :dimension, 'retired', 1) RETURNING id",
)


@dataclass(frozen=True, slots=True)
class Seed:
    """A memory that is to be planted with many others."""

    namespace: str
    key: str
    vector: Vector
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    memory_type: str = "semantic"
    trust: float = 1.0

    def columns(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace, "key": self.key, "metadata": json.dumps(self.metadata), "trust": self.trust,
            "memory_type": self.memory_type, "version": 1, "is_deleted": False, "operation": "add",
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Garden:
    """Plants memories, one version after the other, as the service would write them."""

    store: Store
    indexes: Indexes

    async def plant(self, namespace: str, key: str, words: str = "", **columns: Any) -> int:
        """A memory, or a new version of it, with these words and vectors by space; its id."""
        return await self.store.write(lambda tx: self.planting(tx, namespace, key, words, **columns))

    async def planting(
        self,
        tx: Transaction,
        namespace: str,
        key: str,
        words: str = "",
        *,
        vectors: Mapping[int, Vector] | None = None,
        metadata: Mapping[str, Any] | None = None,
        memory_type: str = "semantic",
        trust: float = 1.0,
    ) -> int:
        """The same in a transaction of the caller's."""
        columns = {"memory_type": memory_type, "metadata": json.dumps(metadata or {}), "trust": trust}
        [memory_id] = await self._follow(tx, namespace, key, "update", is_deleted=False, **columns)
        await self.indexes.words.put(tx, memory_id, namespace, words.split(" ") if words else [])
        rows = [VectorRow(memory_id, space_id, namespace, vector) for space_id, vector in (vectors or {}).items()]
        await self.indexes.vectors.put(tx, rows)
        return memory_id

    async def sow(self, space: Space, seeds: Sequence[Seed]) -> list[int]:
        """Many new memories with no words, in one transaction and few statements; their ids."""

        async def unit(tx: Transaction) -> list[int]:
            rows = [seed.columns() for seed in seeds]
            inserted = [await tx.fetch_one(_INSERT, row) for row in rows]
            ids = [row[0] for row in inserted if row]
            await tx.execute_many(_JOURNAL, rows)
            told = zip(ids, seeds, strict=True)
            await self.indexes.vectors.put(
                tx, [VectorRow(n, space.id, seed.namespace, seed.vector) for n, seed in told]
            )
            return ids

        return await self.store.write(unit)

    async def uproot(self, namespace: str, key: str) -> None:
        """Delete a memory softly."""
        columns = {"memory_type": "semantic", "metadata": "{}", "trust": 1.0}
        await self.store.write(lambda tx: self._follow(tx, namespace, key, "delete", is_deleted=True, **columns))

    async def burn(self, namespace: str, key: str) -> None:
        """Purge a memory, with everything of it."""

        async def unit(tx: Transaction) -> None:
            params = {"namespace": namespace, "key": key, "operation": "purge", "version": None}
            condition = "WHERE namespace = :namespace AND key = :key"
            rows = await tx.fetch_all(Query("plant", f"SELECT id FROM memory_entries {condition}"), params)
            ids = [row[0] for row in rows]
            cleared = "namespace = '', key = CAST(id AS TEXT), value = 'null', metadata = '{}', is_deleted = TRUE"
            query = Query("plant", f"UPDATE memory_entries SET {cleared}, is_current = FALSE {condition}")
            await tx.execute(query, params)
            await self.indexes.words.drop(tx, ids, erase=True)
            await self.indexes.vectors.erase(tx, ids)
            await tx.execute(_JOURNAL, params)

        await self.store.write(unit)
        assert await self.store.scrub()

    async def _follow(self, tx: Transaction, namespace: str, key: str, operation: str, **columns: Any) -> Row:
        params = {"namespace": namespace, "key": key, **columns}
        latest = await tx.fetch_one(_LATEST, params)
        if latest:
            await tx.execute(_RETIRE, {"id": latest[0]})
            await self.indexes.words.drop(tx, [latest[0]])
        params |= {"version": latest[1] + 1 if latest else 1, "operation": operation if latest else "add"}
        inserted = await tx.fetch_one(_INSERT, params)
        assert inserted is not None
        await tx.execute(_JOURNAL, params)
        return inserted

    async def space(self, dimension: int, name: str = "model") -> Space:
        """A space for vectors; retired, so that nobody else writes to it."""
        params = {"name": name, "dimension": dimension}
        row = await self.store.write(lambda tx: tx.fetch_one(_SPACE, params))
        assert row is not None
        space = Space(row[0], "planted", EmbeddingModel(name, "1", dimension), SpaceStatus.RETIRED, datetime.now(UTC))
        await self.indexes.vectors.prepare(space)
        return space

    async def words(self, words: str, *prefixes: str, limit: int = 100, **scope: Any) -> list[int]:
        """The ids of what is found by words, in order."""
        found = await self.indexes.words.search(words.split(" "), Scope(prefixes or ("",), **scope), limit)
        return [match.memory_id for match in found]

    async def nearest(self, space: Space, vector: Vector, *prefixes: str, limit: int = 100, **scope: Any) -> list[int]:
        """The ids of what is found by a vector, in order."""
        found = await self.indexes.vectors.search(space, vector, Scope(prefixes or ("",), **scope), limit)
        return [match.memory_id for match in found]


FILTERS: Sequence[tuple[dict[str, Any], set[str]]] = (
    ({"colour": "red"}, {"red", "both"}),
    ({"colour": {"ne": "red"}}, {"blue", "bare"}),
    ({"size": {"gt": 2}}, {"blue", "both"}),
    ({"size": {"gte": 2}}, {"red", "blue", "both"}),
    ({"size": {"lt": 3}}, {"red"}),
    ({"size": {"lte": 3}}, {"red", "blue"}),
    ({"colour": {"in": ["blue", "green"]}}, {"blue"}),
    ({"tags": {"contains": "new"}}, {"both"}),
    ({"author.name": "eve"}, {"blue"}),
    ({"not": {"colour": "red"}}, {"blue", "bare"}),
    ({"or": [{"size": 2}, {"size": 3}]}, {"red", "blue"}),
    ({"and": [{"colour": "red"}, {"size": {"gte": 4}}]}, {"both"}),
    ({"colour": None}, set()),
    ({}, {"red", "blue", "both", "bare"}),
)
"""Filters, and the keys of those of `COLOURED` that meet them."""

COLOURED: Mapping[str, dict[str, Any]] = {
    "red": {"colour": "red", "size": 2},
    "blue": {"colour": "blue", "size": 3, "author": {"name": "eve"}},
    "both": {"colour": "red", "size": 4.5, "tags": ["old", "new"]},
    "bare": {},
}
"""The metadata of memories, by key."""
