"""What makes memories findable: their words and their vectors, written in the transactions that write them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mnemon.ports import Indexes, Transaction, Vector, VectorRow
from mnemon.sql import load
from mnemon.texts import text_of
from mnemon.values import decode
from mnemon.words import analyse, key_word

_SQL = load("vectors")

Vectors = Mapping[int, Vector]
"""The vectors of one text, by the id of their space."""


class Embeds(Protocol):
    """Turns texts into vectors; what cannot be embedded now is left out and embedded later."""

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[Vectors]: ...
    async def forget(self, texts: Sequence[str]) -> None: ...


class Findable:
    """Keeps the database's own indexes in step with `memory_entries`. What it is given is loaded when first used."""

    def __init__(self, indexes: Callable[[], Indexes], embedding: Callable[[], Embeds] | None) -> None:
        self._indexes = indexes
        self._embedding = embedding

    async def embed(self, values: Sequence[Any]) -> Sequence[Vectors]:
        """The vectors of memories' values. Not for inside a transaction: it may take long."""
        if self._embedding is None:
            return [{} for _ in values]
        return await self._embedding().embed_texts([text_of(value) for value in values])

    async def put(self, tx: Transaction, rows: Sequence[Mapping[str, Any]], vectors: Sequence[Vectors]) -> None:
        """Make new current versions findable."""
        for row in rows:
            await self._put_words(tx, row)
        found = [
            VectorRow(row["id"], space_id, row["namespace"], vector)
            for row, each in zip(rows, vectors, strict=True)
            for space_id, vector in each.items()
        ]
        if found:
            await self._indexes().vectors.put(tx, found)

    async def put_again(self, tx: Transaction, source: int, row: Mapping[str, Any]) -> None:
        """Make a new current version findable that says what an earlier one said."""
        await self._put_words(tx, row)
        await tx.execute(_SQL["copy_vectors"], {"source": source, "memory_id": row["id"]})

    async def retire(self, tx: Transaction, memory_id: int) -> None:
        """The version is no longer the current one."""
        await self._indexes().words.drop(tx, [memory_id])

    async def erase(self, tx: Transaction, memory_ids: Sequence[int]) -> None:
        """Leave nothing of the versions' words and vectors."""
        await self._indexes().words.drop(tx, memory_ids, erase=True)
        await self._indexes().vectors.erase(tx, memory_ids)

    async def forget(self, values: Sequence[Any]) -> None:
        """Leave nothing in the embedder's cache either. Not for inside a transaction."""
        if self._embedding is not None:
            await self._embedding().forget([text_of(value) for value in values])

    async def _put_words(self, tx: Transaction, row: Mapping[str, Any]) -> None:
        await self._indexes().words.put(tx, row["id"], row["namespace"], words_of(row))


def words_of(row: Mapping[str, Any]) -> list[str]:
    """The words under which a row of `memory_entries` is found."""
    return [key_word(row["key"]), *analyse(text_of(decode(row["value"])))]
