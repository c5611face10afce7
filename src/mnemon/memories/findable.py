"""What makes memories findable: their words and their vectors, written in the transactions that write them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mnemon.encryption.envelope import is_sealed
from mnemon.encryption.sealing import Sealing
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

    async def embed_texts(self, texts: Sequence[str], *, cached: bool = True) -> Sequence[Vectors]: ...
    async def forget(self, texts: Sequence[str]) -> None: ...


class Findable:
    """Keeps the database's own indexes in step with `memory_entries`. What it is given is loaded when first used.

    Of what is encrypted only the key is a word, and there are no vectors unless they are chosen: both would tell
    what it says.
    """

    def __init__(
        self,
        indexes: Callable[[], Indexes],
        embedding: Callable[[], Embeds] | None,
        sealing: Sealing | None = None,
    ) -> None:
        self.sealing = sealing or Sealing()
        self._indexes = indexes
        self._embedding = embedding

    async def embed(self, values: Sequence[Any], namespaces: Sequence[str]) -> Sequence[Vectors]:
        """The vectors of memories' values, each for its namespace. Not for inside a transaction: it may take long.

        What is to be encrypted has none, or is not kept in the embedder's cache; its key is had at hand.
        """
        await self.sealing.prepare(namespaces)
        if self._embedding is None:
            return [{} for _ in values]
        sealed = [at for at, namespace in enumerate(namespaces) if self.sealing.seals(namespace)]
        found: dict[int, Vectors] = {}
        for places, cached in (
            ([at for at in range(len(values)) if at not in set(sealed)], True),
            (sealed if self.sealing.keeps_vectors else [], False),
        ):
            texts = [text_of(values[at]) for at in places]
            made = await self._embedding().embed_texts(texts, cached=cached) if texts else ()
            found |= dict(zip(places, made, strict=True))
        return [found.get(at, {}) for at in range(len(values))]

    async def put(self, tx: Transaction, rows: Sequence[Mapping[str, Any]], vectors: Sequence[Vectors]) -> None:
        """Make new current versions findable."""
        for row in rows:
            await self._put_words(tx, row)
        found = [
            VectorRow(row["id"], space_id, row["namespace"], vector)
            for row, each in zip(rows, vectors, strict=True)
            if not self.sealing.hides_vectors(row["namespace"])
            for space_id, vector in each.items()
        ]
        if found:
            await self._indexes().vectors.put(tx, found)

    async def put_again(self, tx: Transaction, source: int, row: Mapping[str, Any]) -> None:
        """Make a new current version findable that says what an earlier one said."""
        await self._put_words(tx, row)
        if not self.sealing.hides_vectors(row["namespace"]):
            await tx.execute(_SQL["copy_vectors"], {"source": source, "memory_id": row["id"]})

    async def retire(self, tx: Transaction, memory_id: int) -> None:
        """The version is no longer the current one."""
        await self._indexes().words.drop(tx, [memory_id])

    async def erase(self, tx: Transaction, memory_ids: Sequence[int]) -> None:
        """Leave nothing of the versions' words and vectors."""
        await self._indexes().words.drop(tx, memory_ids, erase=True)
        await self._indexes().vectors.erase(tx, memory_ids)

    async def hide(self, tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
        """Versions are encrypted from now on: leave nothing of them but the words that their keys are."""
        ids = [row["id"] for row in rows]
        await self._indexes().words.drop(tx, ids, erase=True)
        if not self.sealing.keeps_vectors:
            await self._indexes().vectors.erase(tx, ids)
        for row in rows:
            if row["is_current"] and not row["is_deleted"]:
                await self._put_words(tx, row)

    async def forget(self, values: Sequence[Any]) -> None:
        """Leave nothing in the embedder's cache either. Not for inside a transaction."""
        if self._embedding is not None:
            await self._embedding().forget([text_of(value) for value in values])

    async def _put_words(self, tx: Transaction, row: Mapping[str, Any]) -> None:
        await self._indexes().words.put(tx, row["id"], row["namespace"], self._words(row))

    def _words(self, row: Mapping[str, Any]) -> list[str]:
        hidden = self.sealing.seals(row["namespace"]) or is_sealed(row["value"])
        return [key_word(row["key"])] if hidden else words_of(row)


def words_of(row: Mapping[str, Any]) -> list[str]:
    """The words under which a row of `memory_entries` is found."""
    return [key_word(row["key"]), *analyse(text_of(decode(row["value"])))]
