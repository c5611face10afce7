"""Memories found by their words, with PostgreSQL's full-text index."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from mnemon.backends.wordsearch import FRESH, Reader, Totals, WordSearch, split, written
from mnemon.bm25 import namespace_terms, term
from mnemon.ports import Params, Row, Store, Transaction
from mnemon.sql import Query, among, chunks

T = TypeVar("T")

_PUT = Query(
    "put_text",
    "INSERT INTO memory_texts (memory_id, words, terms) VALUES (:memory_id, :words, CAST(:terms AS tsvector)) "
    "ON CONFLICT (memory_id) DO UPDATE SET words = excluded.words, terms = excluded.terms",
)
_DROP = Query("drop_texts", "DELETE FROM memory_texts WHERE memory_id > 0{where}")
_POSITION = Query("journal_end", "SELECT position FROM journal WHERE position > 0 ORDER BY position DESC LIMIT 1")

# Beyond :many the server's own estimate of how many there are is good enough, and the newest tell how long they are.
_TOTALS = Query(
    "word_totals",
    """
    SELECT CASE WHEN reltuples > :many THEN CAST(reltuples AS bigint) ELSE (SELECT COUNT(*) FROM memory_texts) END,
           (SELECT AVG(CASE words WHEN '' THEN 0 ELSE length(words) - length(replace(words, ' ', '')) + 1 END)
            FROM (SELECT words FROM memory_texts WHERE memory_id > 0 ORDER BY memory_id DESC LIMIT :many) AS newest)
    FROM pg_class WHERE oid = CAST('memory_texts' AS regclass)
    """,
)
_COUNT = Query(
    "count_terms",
    """
    SELECT term, (SELECT COUNT(*) FROM (
        SELECT 1 FROM memory_texts WHERE terms @@ CAST(term AS tsquery) LIMIT :most) AS found)
    FROM unnest(CAST(:terms AS text[])) AS term
    """,
)
_ESTIMATE = Query(
    "estimate_terms",
    """
    SELECT term, AVG(CASE WHEN newest.terms @@ CAST(term AS tsquery) THEN 1.0 ELSE 0.0 END)
    FROM unnest(CAST(:terms AS text[])) AS term,
         (SELECT terms FROM memory_texts WHERE memory_id > 0 ORDER BY memory_id DESC LIMIT :sample) AS newest
    GROUP BY term
    """,
)

_MANY = 20_000  # texts: up to here everything is counted
_MOST = 5_000  # texts with a term are counted beyond that, and more are estimated
_SAMPLE = 2_000  # texts to estimate from


class PostgresWords(WordSearch):
    """Words are kept in `memory_texts` with what `bm25` makes of them, which is indexed."""

    candidates = Query(
        "text_candidates",
        "SELECT memory_texts.memory_id, memory_texts.words FROM memory_texts{join} "
        "WHERE memory_texts.terms @@ CAST(:match AS tsquery){where} LIMIT :limit",
    )
    join = " JOIN memory_entries ON memory_entries.id = memory_texts.memory_id"
    texts = Query("texts", "SELECT memory_id, words FROM memory_texts WHERE memory_id > 0{where}")
    operators = (" & ", " | ", " & !")

    async def put(self, tx: Transaction, memory_id: int, namespace: str, words: Sequence[str]) -> None:
        """Index a version of a memory; again is the same."""
        text = written(words)
        terms = {*map(term, split(text)), *namespace_terms(namespace)}
        await tx.execute(_PUT, {"memory_id": memory_id, "words": text, "terms": " ".join(terms)})

    async def drop(self, tx: Transaction, memory_ids: Sequence[int], *, erase: bool = False) -> None:
        """Forget the words. Their bytes are gone once the table is written anew: see `scrub` of the database."""
        for some in chunks(memory_ids):
            these = among("memory_id", some, "memory")
            await tx.execute(_DROP.where([these]), these.params)

    async def _read(self, unit: Callable[[Reader], Coroutine[Any, Any, T]], *, long: bool = False) -> T:
        """Without a transaction, which would be two more ways to the server and back."""
        return await unit(_Statements(self._store))

    async def _totals(self, tx: Reader) -> Totals:
        rows = await tx.fetch_all(_POSITION, {})
        position: int = rows[0][0] if rows else 0
        known = self._counts.totals
        if known is None or abs(position - known.position) > known.documents // FRESH:
            [(documents, average)] = await tx.fetch_all(_TOTALS, {"many": _MANY})
            self._counts.totals = known = Totals(documents, float(average or 0), position)
        return known

    async def _count(self, tx: Reader, terms: Sequence[str], totals: Totals) -> dict[str, int]:
        most = _MANY if totals.documents <= _MANY else _MOST
        rows = await tx.fetch_all(_COUNT, {"terms": list(terms), "most": most})
        counts: dict[str, int] = {row[0]: row[1] for row in rows}
        common = [each for each, count in counts.items() if count == _MOST == most]
        if common:
            rows = await tx.fetch_all(_ESTIMATE, {"terms": common, "sample": _SAMPLE})
            counts |= {row[0]: max(_MOST, round(float(row[1]) * totals.documents)) for row in rows}
        return counts


class _Statements:
    """Statements of which each is a transaction of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def fetch_all(self, query: Query, params: Params) -> list[Row]:
        return await self._store.fetch(query, params)
