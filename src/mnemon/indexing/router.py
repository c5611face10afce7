"""Which vector store answers a question: the first of those outside the database that can, and its mirror at last.

An answer is the same whichever store gives it:

- What a store has not been told yet, the tail of the journal after its consumer's position, is compared exactly with
  the vectors in the database. If the tail is long, the database answers all of it.
- A store may find too much where a filter is finer than the facts it knows. So what it found is checked against the
  database, and it is asked for more until there is enough.
- A store that fails is left alone for a while. A question never fails because of it.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from mnemon.facts import filter_for
from mnemon.indexing.duties import at_places
from mnemon.indexing.stores import Outside, Place
from mnemon.model import Match, Routed, Space
from mnemon.ports import Indexes, Runner, Scope, Store, Vector, VectorQuery
from mnemon.scopes import live_in
from mnemon.sql import Fragment, among, chunks, load, params_of

MIRROR = "mirror"
"""What an answer is said to be served by if the database itself gave it."""

_LOG = logging.getLogger("mnemon.indexing")
_SQL = load("indexing")
_LONGEST_TAIL = 1000
_MOST = 10_000
_GROWTH = 4


class _Question(NamedTuple):
    space: Space
    vector: Vector
    scope: Scope
    limit: int
    words: tuple[str, ...]


class _Failed(Exception):
    """The store outside could not answer."""


class Router:
    """Asks the stores in order."""

    def __init__(
        self, store: Store, indexes: Callable[[], Indexes], runner: Runner, stores: Sequence[Outside] = ()
    ) -> None:
        self._store = store
        self._indexes = indexes
        self._runner = runner
        self._stores = stores

    async def search(self, space: Space, vector: Vector, scope: Scope, limit: int, words: Sequence[str] = ()) -> Routed:
        """The live memories in scope that are nearest, nearest first, and who says so.

        With `words`, a store that searches text too may mix both scores in its own way.
        """
        question = _Question(space, vector, scope, limit, tuple(words))
        for outside in self._stores:
            found = await self._try(outside, question)
            if found is not None:
                return Routed(found, outside.name)
        return Routed(await self._indexes().vectors.search(space, vector, scope, limit), MIRROR)

    async def _try(self, outside: Outside, question: _Question) -> list[Match] | None:
        """What a store finds; None if it cannot answer, or not better than the database."""
        if outside.breaker.is_open:
            return None
        tail = await self._tail(outside, question.space)
        if len(tail) > _LONGEST_TAIL or not outside.breaker.allows():
            return None
        try:
            found = await self._find(outside, question, tail)
        except _Failed:
            return None
        if found is None or not tail:
            return found
        return _merged(found, await self._compare(question, tail), question.limit)

    async def _tail(self, outside: Outside, space: Space) -> list[Place]:
        """The memories that changed since the store was last fed; one more than matters at the most."""
        params = {"consumer": outside.consumer_name(space), "limit": _LONGEST_TAIL + 1}
        return [(namespace, key) for namespace, key in await self._store.fetch(_SQL["tail"], params)]

    async def _find(self, outside: Outside, question: _Question, tail: Sequence[Place]) -> list[Match] | None:
        """What of the store's answer is live and in scope; None if it takes too much to get enough of it."""
        scope, limit = question.scope, question.limit
        is_exact = scope.where is None and not tail
        where = filter_for(scope.prefixes, scope.types, scope.where)
        words = () if tail else question.words  # mixed scores could not be compared with the tail's
        asked = limit if is_exact else 2 * limit
        while True:
            query = VectorQuery(question.vector, min(asked, _MOST), where, scope.min_trust, words)
            found = await self._ask(outside, question.space, query)
            kept = found if is_exact else await self._check(found, scope)
            if len(kept) >= limit or len(found) < query.limit:
                return kept[:limit]
            if asked >= _MOST:
                return None
            asked *= _GROWTH

    async def _ask(self, outside: Outside, space: Space, query: VectorQuery) -> list[Match]:
        try:
            found = await self._runner.aside(lambda: outside.of(space).query(query))
        except Exception as error:
            if outside.breaker.failed():
                _LOG.warning("%s does not answer, so another store does: %s", outside.name, error)
            raise _Failed from error
        if outside.breaker.succeeded():
            _LOG.warning("%s answers again", outside.name)
        return found

    async def _check(self, found: Sequence[Match], scope: Scope) -> list[Match]:
        """Those that are live and in scope."""
        conditions = live_in(scope, self._store.dialect)
        live: set[int] = set()
        for piece in chunks([match.memory_id for match in found]):
            live |= await self._ids([among("id", piece, "id"), *conditions])
        return [match for match in found if match.memory_id in live]

    async def _compare(self, question: _Question, tail: Sequence[Place]) -> Iterable[Match]:
        """What of the tail is live and in scope, compared exactly."""
        conditions = live_in(question.scope, self._store.dialect)
        live: set[int] = set()
        for piece in chunks(tail):
            live |= await self._ids([at_places(piece), *conditions])
        near = await self._indexes().vectors.similarity(question.space, question.vector, sorted(live))
        return [Match(memory_id, score) for memory_id, score in near.items()]

    async def _ids(self, conditions: Sequence[Fragment]) -> set[int]:
        rows = await self._store.fetch(_SQL["checked"].where(conditions), params_of(conditions))
        return {row[0] for row in rows}


def _merged(found: Iterable[Match], exact: Iterable[Match], limit: int) -> list[Match]:
    """Both, each memory once, nearest first."""
    scores = {match.memory_id: match.score for part in (found, exact) for match in part}
    best = sorted(scores.items(), key=lambda each: (-each[1], each[0]))
    return [Match(memory_id, score) for memory_id, score in best[:limit]]
