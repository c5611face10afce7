"""Gathering candidates: every channel is asked at once, and what one found the others are asked about."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mnemon.indexing.router import Router
from mnemon.journal import match
from mnemon.model import Match, Space
from mnemon.ports import Indexes, Runner, Scope, Store, Vector, WordStatistics
from mnemon.scopes import within
from mnemon.sql import Fragment, among, chunks, load, params_of

_SQL = load("retrieval")
_RECENT = 10
_SEEDS = 30  # the best, whose neighbours in their threads are looked at
_REACH = 4  # places in a thread to each side


class Candidate(NamedTuple):
    """What ranking needs to know of a memory."""

    id: int
    namespace: str
    key: str
    thread: str | None
    position: int | None
    author: str | None
    occurred_at: int | None
    updated_at: int
    trust: float
    importance: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """Everything that was found, with the same place in every column."""

    memories: Sequence[Candidate]
    words: Sequence[Sequence[str]]
    cosines: npt.NDArray[np.float32]
    """How near the memory's vector is to the question's; NaN where there is none."""
    statistics: WordStatistics
    found_by: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """The channels that found a memory, by its id."""


class Gatherer:
    """Asks the channels of one database, and a router of vector stores."""

    def __init__(self, store: Store, runner: Runner, indexes: Indexes, router: Router) -> None:
        self._store = store
        self._runner = runner
        self._indexes = indexes
        self._router = router

    async def gather(
        self, words: Sequence[str], vectors: Sequence[tuple[Space, Vector]], scope: Scope, depth: int
    ) -> Candidates:
        """What the channels find for a question's words and for its vector in each space.

        `depth` is how many a channel may bring; if there are fewer in all, there are no more.
        """
        named = await self._runner.together(
            self._by_words(words, scope, depth),
            self._recent(scope),
            *(self._by_vector(space, vector, scope, depth) for space, vector in vectors),
        )
        found_by = _merged((name, [match.memory_id for match in matches]) for name, matches in named)
        known = await self._look_up(list(found_by), scope)
        seeds = _best([matches for _, matches in named])
        beside = await self._neighbours([known[seed] for seed in seeds if seed in known], scope)
        for each in beside:
            if each.id not in known:
                known[each.id] = each
                found_by[each.id] = ("thread",)
        near = {match.memory_id: match.score for _, matches in named[2:3] for match in matches}
        return await self._complete(list(known.values()), words, vectors, near, found_by)

    async def _by_words(self, words: Sequence[str], scope: Scope, depth: int) -> tuple[str, Sequence[Match]]:
        return "words", await self._indexes.words.search(words, scope, depth) if words else []

    async def _by_vector(self, space: Space, vector: Vector, scope: Scope, depth: int) -> tuple[str, Sequence[Match]]:
        found = await self._router.search(space, vector, scope, depth)
        return f"vectors:{found.served_by}", found.matches

    async def _recent(self, scope: Scope) -> tuple[str, Sequence[Match]]:
        """The last changes below each prefix, which the journal has an index for."""
        found: list[Match] = []
        conditions = within(scope, self._store.dialect)
        for prefix in scope.prefixes:
            changed = _changes_of_memories(prefix)
            query = _SQL["recent"].fill(changed=_joined(changed)).where(conditions)
            params = {**params_of(changed), **params_of(conditions), "limit": _RECENT}
            found += [Match(row[0], 0.0) for row in await self._store.fetch(query, params)]
        return "recent", found

    async def _look_up(self, ids: Sequence[int], scope: Scope) -> dict[int, Candidate]:
        """Those that are live and in scope still, whatever an index says."""
        conditions = within(scope, self._store.dialect)
        found: dict[int, Candidate] = {}
        for some in chunks(ids):
            wanted = [among("id", some, "id"), *conditions]
            rows = await self._store.fetch(_SQL["candidates"].where(wanted), params_of(wanted))
            found |= {row[0]: Candidate(*row) for row in rows}
        return {each: found[each] for each in ids if each in found}

    async def _neighbours(self, seeds: Sequence[Candidate], scope: Scope) -> list[Candidate]:
        places = {
            (seed.thread, max(0, seed.position - _REACH), seed.position + _REACH)
            for seed in seeds
            if seed.thread is not None and seed.position is not None
        }
        if not places:
            return []
        params: dict[str, Any] = {
            f"{name}{number}": value
            for number, place in enumerate(sorted(places))
            for name, value in zip(("thread", "first", "last"), place, strict=True)
        }
        values = ", ".join(f"(:thread{n}, :first{n}, :last{n})" for n in range(len(places)))
        conditions = within(scope, self._store.dialect)
        query = _SQL["neighbours"].fill(places=values).where(conditions)
        return [Candidate(*row) for row in await self._store.fetch(query, params | params_of(conditions))]

    async def _complete(
        self,
        known: Sequence[Candidate],
        words: Sequence[str],
        vectors: Sequence[tuple[Space, Vector]],
        near: Mapping[int, float],
        found_by: Mapping[int, tuple[str, ...]],
    ) -> Candidates:
        """Every signal of every candidate, whichever channel found it; `near` are cosines that are known."""
        ids = [each.id for each in known]
        texts = await self._indexes.words.words_of(ids)
        cosines = dict(near)
        for space, vector in vectors:  # where there are several, the active space comes first
            unknown = [each for each in ids if each not in cosines]
            cosines |= await self._indexes.vectors.similarity(space, vector, unknown) if unknown else {}
        return Candidates(
            known,
            [texts.get(each, []) for each in ids],
            np.array([cosines.get(each, np.nan) for each in ids], np.float32),
            await self._indexes.words.statistics(words),
            found_by,
        )


def _changes_of_memories(prefix: str) -> list[Fragment]:
    """Conditions on the journal that its index of owners answers, or its index of entities where there is no owner."""
    if ":" not in prefix:
        return match(entity="memory", namespace=prefix)
    return [*match(namespace=prefix), Fragment("entity || '' = 'memory'")]  # so that no index of entities is used


def _joined(conditions: Iterable[Fragment]) -> str:
    return "".join(f" AND ({condition.text})" for condition in conditions)


def _merged(named: Iterable[tuple[str, Sequence[int]]]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for name, ids in named:
        for each in dict.fromkeys(ids):
            found[each] = (*found.get(each, ()), name)
    return found


def _best(channels: Sequence[Sequence[Match]]) -> list[int]:
    """The first of every channel, in turn."""
    share = -(-_SEEDS // max(1, len(channels)))
    return list(dict.fromkeys(match.memory_id for matches in channels for match in matches[:share]))
