"""Memories found by their words, with SQLite's FTS5."""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from mnemon.backends.wordsearch import Reader, Totals, WordSearch, split, written
from mnemon.bm25 import namespace_terms, term
from mnemon.ports import Transaction
from mnemon.sql import Query, among, chunks

T = TypeVar("T")

_INSERT = Query(
    "insert_text",
    "INSERT INTO memory_texts (memory_id, words, scope) VALUES (:memory_id, :words, :scope) "
    "ON CONFLICT (memory_id) DO NOTHING",
)
_REPLACE = Query("replace_text", "UPDATE memory_texts SET words = :words, scope = :scope WHERE memory_id = :memory_id")
_CLEAR = Query("clear_texts", "UPDATE memory_texts SET words = '', scope = '' WHERE scope <> ''{where}")
_INDEX = Query("index_terms", "INSERT INTO memory_terms (rowid, terms, scope) VALUES (:memory_id, :terms, :scope)")
_UNINDEX = Query(
    "unindex_terms",
    "INSERT INTO memory_terms (memory_terms, rowid, terms, scope) VALUES ('delete', :memory_id, :terms, :scope)",
)

# FTS5 keeps the number of texts and the terms in each column, as a record of its own.
_TOTALS = Query(
    "word_totals",
    "SELECT (SELECT block FROM memory_terms_data WHERE id = 1), "
    "(SELECT position FROM journal WHERE position > 0 ORDER BY position DESC LIMIT 1)",
)
_COUNT = Query("count_terms", "SELECT term, doc FROM memory_vocabulary WHERE term > ''{where}")


class SqliteWords(WordSearch):
    """Words are kept in `memory_texts`; `memory_terms` indexes what `bm25` makes of them, and holds no text itself."""

    candidates = Query(
        "text_candidates",
        "SELECT memory_texts.memory_id, memory_texts.words FROM memory_terms "
        "CROSS JOIN memory_texts ON memory_texts.memory_id = memory_terms.rowid{join} "
        "WHERE memory_terms MATCH :match{where} ORDER BY memory_terms.rowid DESC LIMIT :limit",
    )
    join = " CROSS JOIN memory_entries ON memory_entries.id = memory_terms.rowid"
    texts = Query("texts", "SELECT memory_id, words, scope FROM memory_texts WHERE scope <> ''{where}")
    operators = (" AND ", " OR ", " NOT ")

    async def put(self, tx: Transaction, memory_id: int, namespace: str, words: Sequence[str]) -> None:
        """Index a version of a memory; again is the same."""
        text, scope = written(words), " ".join(namespace_terms(namespace))
        params = {"memory_id": memory_id, "words": text, "scope": scope}
        if not await tx.execute(_INSERT, params):
            await self._unindex(tx, [memory_id])
            await tx.execute(_REPLACE, params)
        await tx.execute(_INDEX, _terms(memory_id, text, scope))

    async def drop(self, tx: Transaction, memory_ids: Sequence[int], *, erase: bool = False) -> None:
        """Forget the words. The index lets go of their digests for good when it is next merged: see `Engine.scrub`."""
        for some in chunks(memory_ids):
            await self._unindex(tx, some)
            these = among("memory_id", some, "memory")
            await tx.execute(_CLEAR.where([these]), these.params)

    async def _unindex(self, tx: Transaction, memory_ids: Sequence[int]) -> None:
        these = among("memory_id", memory_ids, "memory")
        rows = await tx.fetch_all(self.texts.where([these]), these.params)
        await tx.execute_many(_UNINDEX, [_terms(*row) for row in rows])

    async def _read(self, unit: Callable[[Reader], Coroutine[Any, Any, T]], *, long: bool = False) -> T:
        return await self._store.read(unit, long=long)

    async def _totals(self, tx: Reader) -> Totals:
        [(block, position)] = await tx.fetch_all(_TOTALS, {})
        documents, words = (*_varints(block or b""), 0, 0)[:2]
        return Totals(documents, words / max(documents, 1), position or 0)

    async def _count(self, tx: Reader, terms: Sequence[str], totals: Totals) -> dict[str, int]:
        these = among("term", terms, "term")
        return {row[0]: row[1] for row in await tx.fetch_all(_COUNT.where([these]), these.params)}


def _terms(memory_id: int, words: str, scope: str) -> dict[str, Any]:
    """What the index is given. FTS5 must be told the very same again to forget it."""
    return {"memory_id": memory_id, "terms": " ".join(map(term, split(words))), "scope": scope}


def _varints(block: bytes) -> Iterator[int]:
    """The numbers of a record: seven bits a byte, the highest first; the last byte of each is below 128."""
    number = 0
    for byte in block:
        number = number << 7 | byte & 127
        if byte < 128:
            yield number
            number = 0
