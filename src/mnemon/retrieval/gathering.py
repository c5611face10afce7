"""Gathering candidates: every channel is asked at once, and what one found the others are asked about."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mnemon.indexing.router import Router
from mnemon.journal import match
from mnemon.model import Space
from mnemon.namespaces import covers
from mnemon.ports import Indexes, Row, Runner, Scope, Store, Vector, WordStatistics
from mnemon.scopes import is_plain, within
from mnemon.sql import Fragment, load, params_of

_SQL = load("retrieval")
_RECENT = 10
_NAMED = 20  # that have an identifier or a key which the question names
_SEEDS = 10  # the best of each channel, whose neighbours in their threads are looked at
_MOST_SEEN, _LONGEST_SEEN = 20_000, 1_000  # candidates that are kept in mind, and characters of one
_NO_COSINES: Mapping[int, float] = MappingProxyType({})
_NO_WORDS = WordStatistics(0, 0.0, {})
REACH = 4  # places in a thread to each side that count as the neighbourhood


class Candidate(NamedTuple):
    """What ranking needs to know of a memory; for a version of one it never changes."""

    id: int
    namespace: str
    thread: str | None
    position: int | None
    author: str | None
    occurred_at: int | None
    updated_at: int
    trust: float
    importance: float
    words: str
    """Those that it is indexed with, the one of its key first, with a space between them."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Everything that was found."""

    memories: Sequence[Candidate]
    cosines: npt.NDArray[np.float32]
    """How near each memory's vector is to the question's; NaN where there is none."""
    statistics: WordStatistics
    channels: Mapping[str, Collection[int]] = field(default_factory=dict[str, Collection[int]])
    """The ids that each channel found."""

    def found_by(self, memory_id: int) -> tuple[str, ...]:
        """The channels that found a memory; if none did, a neighbour in its thread was found."""
        return tuple(name for name, ids in self.channels.items() if memory_id in ids) or ("thread",)


class Gatherer:
    """Asks the channels of one database, and a router of vector stores."""

    def __init__(self, store: Store, runner: Runner, indexes: Indexes, router: Router) -> None:
        self._store = store
        self._runner = runner
        self._indexes = indexes
        self._router = router
        self._seen = _Seen()

    async def gather(
        self,
        words: Sequence[str],
        names: Sequence[str],
        vectors: Sequence[tuple[Space, Vector]],
        scope: Scope,
        depth: int,
    ) -> Candidates:
        """What the channels find for a question's words, the names among these, and its vector in each space.

        `depth` is how many a channel may bring; if there are fewer in all, there are no more.
        """
        channels = await self._runner.together(
            *([self._by_words(words, scope, depth)] if words else []),
            *([self._by_names(names, scope)] if names else []),
            self._recent(scope),
            *(self._by_vector(space, vector, scope, depth) for space, vector in vectors),
        )
        known = await self._look_up(list(dict.fromkeys(each for channel in channels for each in channel.ids)), scope)
        seeds = dict.fromkeys(each for channel in channels for each in channel.ids[:_SEEDS])
        known |= await self._neighbours([known[each] for each in seeds if each in known], known, scope)
        near = next((channel.cosines for channel in channels if channel.cosines), _NO_COSINES)
        return Candidates(
            list(known.values()),
            await self._cosines(list(known), vectors, near),
            next((channel.statistics for channel in channels if channel.statistics), _NO_WORDS),
            _merged(channels),
        )

    async def _by_words(self, words: Sequence[str], scope: Scope, depth: int) -> "_Channel":
        matches, statistics = await self._indexes.words.find(words, scope, depth)
        return _Channel("words", [match.memory_id for match in matches], statistics=statistics)

    async def _by_names(self, names: Sequence[str], scope: Scope) -> "_Channel":
        """A name is one of the words too, but among many of these others may seem to fit better."""
        matches, _ = await self._indexes.words.find(names, scope, _NAMED)
        return _Channel("exact", [match.memory_id for match in matches])

    async def _recent(self, scope: Scope) -> "_Channel":
        """The last changes below each prefix, which the journal has an index for."""
        ids: list[int] = []
        conditions = within(scope, self._store.dialect)
        for prefix in scope.prefixes:
            changed = _changes_of_memories(prefix)
            query = _SQL["recent"].fill(changed=_joined(changed)).where(conditions)
            params = {**params_of(changed), **params_of(conditions), "limit": _RECENT}
            ids += [row[0] for row in await self._store.fetch(query, params)]
        return _Channel("recent", ids)

    async def _by_vector(self, space: Space, vector: Vector, scope: Scope, depth: int) -> "_Channel":
        routed = await self._router.search(space, vector, scope, depth)
        cosines = {match.memory_id: match.score for match in routed.matches}
        return _Channel(f"vectors:{routed.served_by}", list(cosines), cosines)

    async def _look_up(self, ids: Sequence[int], scope: Scope) -> dict[int, Candidate]:
        """Those of the memories that are in scope."""
        found = self._seen.known(ids, scope)
        unknown = [each for each in ids if each not in found]
        if unknown:
            wanted = [self._store.dialect.listed("memory_entries.id", "ids", unknown)]
            wanted += within(scope, self._store.dialect)
            rows = await self._store.fetch(_SQL["candidates"].where(wanted), params_of(wanted))
            found |= self._seen.learn(rows)
        return {each: found[each] for each in ids if each in found}

    async def _neighbours(
        self, seeds: Iterable[Candidate], known: Mapping[int, Candidate], scope: Scope
    ) -> dict[int, Candidate]:
        """Who else stands near the seeds in their threads."""
        runs = _unknown_places(seeds, known.values())
        if not runs:
            return {}
        params: dict[str, Any] = {
            f"{name}{number}": value
            for number, run in enumerate(runs)
            for name, value in zip(("thread", "first", "last"), run, strict=True)
        }
        values = ", ".join(f"(:thread{n}, :first{n}, :last{n})" for n in range(len(runs)))
        conditions = within(scope, self._store.dialect)
        query = _SQL["neighbours"].fill(places=values).where(conditions)
        rows = await self._store.fetch(query, params | params_of(conditions))
        return await self._look_up([row[0] for row in rows if row[0] not in known], scope)

    async def _cosines(
        self, ids: Sequence[int], vectors: Sequence[tuple[Space, Vector]], known: Mapping[int, float]
    ) -> npt.NDArray[np.float32]:
        """How near every candidate is, whichever channel found it."""
        cosines = dict(known)
        for space, vector in vectors:  # where there are several, the active space comes first
            unknown = [each for each in ids if each not in cosines]
            cosines |= await self._indexes.vectors.similarity(space, vector, unknown) if unknown else {}
        return np.array([cosines.get(each, np.nan) for each in ids], np.float32)


class _Seen:
    """Candidates that were looked up before, so that who asks about the same memories again is answered sooner.

    What the channels bring is live: nothing here is older than that. Should a memory be deleted meanwhile, it is left
    out when the answer is read.
    """

    def __init__(self) -> None:
        self._known: dict[int, Candidate] = {}

    def known(self, ids: Iterable[int], scope: Scope) -> dict[int, Candidate]:
        """Those that are in scope, as far as that can be told without asking."""
        if not is_plain(scope):
            return {}
        known = self._known
        found = {each: known[each] for each in ids if each in known}
        namespaces = {candidate.namespace for candidate in found.values()}
        if all(any(covers(prefix, namespace) for prefix in scope.prefixes) for namespace in namespaces):
            return found
        return {}

    def learn(self, rows: Iterable[Row]) -> dict[int, Candidate]:
        """What rows of the database say."""
        found = {row[0]: Candidate._make(row) for row in rows}
        if len(self._known) > _MOST_SEEN:
            self._known = {}
        self._known |= {each.id: each for each in found.values() if 0 < len(each.words) <= _LONGEST_SEEN}
        return found


class _Channel(NamedTuple):
    """What one channel found, best first."""

    name: str
    ids: list[int]
    cosines: Mapping[int, float] = _NO_COSINES
    statistics: WordStatistics | None = None


def _changes_of_memories(prefix: str) -> list[Fragment]:
    """Conditions on the journal that its index of owners answers, or its index of entities where there is no owner."""
    if ":" not in prefix:
        return match(entity="memory", namespace=prefix)
    return [*match(namespace=prefix), Fragment("entity || '' = 'memory'")]  # so that no index of entities is used


def _joined(conditions: Iterable[Fragment]) -> str:
    return "".join(f" AND ({condition.text})" for condition in conditions)


def _unknown_places(seeds: Iterable[Candidate], known: Iterable[Candidate]) -> list[tuple[str, int, int]]:
    """The places around the seeds of which nothing is known: in which thread, from where, and to where."""
    near: dict[str, set[int]] = {}
    for seed in seeds:
        if seed.thread is not None and seed.position is not None:
            around = range(max(0, seed.position - REACH), seed.position + REACH + 1)
            near.setdefault(seed.thread, set()).update(around)
    for each in known:
        if each.thread in near:
            near[each.thread].discard(each.position)  # pyright: ignore[reportArgumentType] - of no place there is none
    return [(thread, *run) for thread, places in sorted(near.items()) for run in _runs(sorted(places))]


def _runs(places: Iterable[int]) -> list[tuple[int, int]]:
    """The first and the last of those that follow each other; `places` are in order."""
    found: list[tuple[int, int]] = []
    for place in places:
        if found and found[-1][1] == place - 1:
            found[-1] = found[-1][0], place
        else:
            found.append((place, place))
    return found


def _merged(channels: Iterable[_Channel]) -> dict[str, set[int]]:
    """The ids by the channel's name, which two may share."""
    found: dict[str, set[int]] = {}
    for channel in channels:
        found.setdefault(channel.name, set()).update(channel.ids)
    return found
