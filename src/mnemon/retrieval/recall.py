"""Recall: what the memory holds on a question, best first."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from mnemon.clock import Clock, micros
from mnemon.embedding import Embedding
from mnemon.encryption.sealing import Sealing
from mnemon.errors import InvalidInput
from mnemon.indexing.router import Router
from mnemon.memories.findable import words_of
from mnemon.memories.rows import COLUMNS, LAYOUT, memories, named
from mnemon.model import Hit, Memory, Space
from mnemon.pages import check_limit
from mnemon.ports import Expander, Indexes, Reranker, Row, Runner, Scope, Store, Vector, WordStatistics
from mnemon.retrieval.gathering import Candidate, Candidates, Gatherer
from mnemon.retrieval.ranking import Question, Ranking, rank
from mnemon.scopes import within
from mnemon.sql import among, chunks, load, params_of
from mnemon.texts import text_of

_SQL = {name: query.fill(columns=", ".join(COLUMNS)) for name, query in load("retrieval").items()}
_LONGEST_QUESTION = 10_000
_MOST_OF_THE_PAST = 5_000
_RERANKED = 50
_DEPTH, _DEEPER = 100, 4  # how many a channel may bring, and how many times as many if that is not enough


@dataclass(frozen=True, slots=True)
class Helpers:
    """What may help to find, and is off by default: both may take long."""

    expander: Expander | None = None
    reranker: Reranker | None = None


class _Ranked(NamedTuple):
    """A candidate, where it stands among those that it was ranked with."""

    among: Candidates
    ranking: Ranking
    place: int

    @property
    def memory(self) -> Candidate:
        return self.among.memories[self.place]

    def hit(self, whole: Memory, *, explain: bool) -> Hit:
        signals = self.ranking.signals_of(self.place) if explain else {}
        score = float(self.ranking.scores[self.place])
        return Hit(whole, score, signals, self.among.found_by(whole.id))


class Recall:
    """Answers questions with memories."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runner: Runner,
        indexes: Indexes,
        embedding: Embedding | None,
        router: Router,
        helpers: Helpers,
        sealing: Sealing | None = None,
    ) -> None:
        self._sealing = sealing or Sealing()
        self._store = store
        self._clock = clock
        self._runner = runner
        self._indexes = indexes
        self._embedding = embedding
        self._gatherer = Gatherer(store, runner, indexes, router)
        self._helpers = helpers

    async def recall(
        self,
        query: str,
        scope: Scope,
        *,
        k: int = 10,
        offset: int = 0,
        as_of: datetime | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """The memories in scope that answer best, best first."""
        question = _check_question(query)
        check_limit(k)
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"offset is a whole number from 0, not {offset!r}")
        asked = await self._ask(question)
        vectors = await self._embed(question)
        is_past = as_of is not None
        wanted = offset + k if self._helpers.reranker is None else max(offset + k, _RERANKED)
        if as_of is None:
            ranked = await self._rank_present(asked, vectors, scope, wanted)
        else:
            ranked = self._rank(asked, await self._gather_past(asked, vectors, scope, micros(as_of)), wanted)
        ranked = await self._reranked(question, ranked, is_past=is_past)
        return await self._hits(ranked[offset : offset + k], is_past=is_past, explain=explain)

    async def _rank_present(
        self, asked: Question, vectors: Sequence[tuple[Space, Vector]], scope: Scope, wanted: int
    ) -> list[_Ranked]:
        """As many as are wanted, if there are so many.

        What the channels bring first comes first, and what they bring when asked for more comes after it: so a page
        is the same whatever was asked for before it.
        """
        found: dict[int, _Ranked] = {}
        depth, known = _DEPTH, -1
        while known < len(found) < wanted:
            known = len(found)
            gathered = await self._gatherer.gather(asked.words, asked.names, vectors, scope, depth)
            for each in self._rank(asked, gathered, wanted):
                found.setdefault(each.memory.id, each)
            if len(gathered.memories) < depth:
                break
            depth *= _DEEPER
        return list(found.values())

    def _rank(self, asked: Question, found: Candidates, wanted: int) -> list[_Ranked]:
        ranking = rank(asked, found, self._clock.now(), wanted)
        return [_Ranked(found, ranking, place) for place in ranking.order]

    async def _ask(self, question: str) -> Question:
        """The question, and how else a language model would put it."""
        expander = self._helpers.expander
        if expander is None:
            return Question.read(question)
        return Question.read(question, await self._runner.aside(lambda: expander.expand(question)))

    async def _embed(self, question: str) -> list[tuple[Space, Vector]]:
        """The question's vector in every space that can be asked, the active one first."""
        if self._embedding is None:
            return []
        cached = not self._sealing.is_active  # a question may tell what is encrypted
        found = await self._embedding.embed_question(question, cached=cached)
        return [(space, found[space.id]) for space in await self._embedding.spaces.readable() if space.id in found]

    async def _gather_past(
        self, asked: Question, vectors: Sequence[tuple[Space, Vector]], scope: Scope, as_of: int
    ) -> Candidates:
        """What held at a moment: there is no index of the past, so all of it in scope is looked at."""
        held: list[dict[str, Any]] = []
        for prefix in scope.prefixes:  # one by one: for many at once a database would rather read the whole table
            conditions = within(replace(scope, prefixes=(prefix,)), self._store.dialect)
            params = {**params_of(conditions), "as_of": as_of, "limit": _MOST_OF_THE_PAST - len(held)}
            rows = await self._store.fetch(_SQL["valid_then"].where(conditions), params)
            held += map(named, await self._sealing.opened(self._store.fetch, LAYOUT, rows))
        texts = [words_of(row) for row in held]
        known = [
            Candidate._make([*(row[name] for name in Candidate._fields[:-1]), " ".join(words)])
            for row, words in zip(held, texts, strict=True)
        ]
        ids = [each.id for each in known]
        cosines = np.full(len(known), np.nan, np.float32)
        for space, vector in reversed(vectors):
            near = await self._indexes.vectors.similarity(space, vector, ids)
            cosines = np.array([near.get(c.id, old) for c, old in zip(known, cosines, strict=True)], np.float32)
        return Candidates(known, cosines, _count(asked.words, texts), {"past": frozenset(ids)})

    async def _reranked(self, question: str, ranked: list[_Ranked], *, is_past: bool) -> list[_Ranked]:
        """The best in the order in which the re-ranker sees them; the others after them, as they were."""
        reranker = self._helpers.reranker
        if reranker is None:
            return ranked
        rows = await self._rows([each.memory.id for each in ranked[:_RERANKED]], past=is_past)
        texts = {memory.id: text_of(memory.value) for memory in memories(list(rows.values()))}
        best = [each for each in ranked[:_RERANKED] if each.memory.id in texts]
        judged = await self._runner.aside(lambda: reranker.judge(question, [texts[each.memory.id] for each in best]))
        by_judgement = sorted(zip(judged, best, strict=True), key=lambda pair: -pair[0])
        return [*(each for _, each in by_judgement), *ranked[_RERANKED:]]

    async def _hits(self, ranked: Sequence[_Ranked], *, is_past: bool, explain: bool) -> list[Hit]:
        rows = await self._rows([each.memory.id for each in ranked], past=is_past)
        whole = {memory.id: memory for memory in memories(list(rows.values()))}
        return [each.hit(whole[each.memory.id], explain=explain) for each in ranked if each.memory.id in whole]

    async def _rows(self, ids: Sequence[int], *, past: bool = False) -> dict[int, Row]:
        found: dict[int, Row] = {}
        for some in chunks(ids):
            wanted = [among("id", some, "id")]
            query = _SQL["hydrate_past" if past else "hydrate"].where(wanted)
            rows = await self._store.fetch(query, params_of(wanted))
            found |= {row[0]: row for row in await self._sealing.opened(self._store.fetch, LAYOUT, rows)}
        return found


def _check_question(query: object) -> str:
    """The question, if it is text that says something and is not too long."""
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput(f"a question is a text that says something, not {query!r}")
    if len(query) > _LONGEST_QUESTION:
        raise InvalidInput(f"the question has {len(query)} characters; at most {_LONGEST_QUESTION} are allowed")
    return query


def _count(words: Sequence[str], texts: Sequence[Sequence[str]]) -> WordStatistics:
    sets = [set(text) for text in texts]
    frequencies = {word: sum(word in each for each in sets) for word in set(words)}
    average = sum(map(len, texts)) / len(texts) if texts else 0.0
    return WordStatistics(len(texts), average, frequencies)
