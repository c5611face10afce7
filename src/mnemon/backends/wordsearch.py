"""Finding memories by their words: what is alike on every database."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

from mnemon.bm25 import FEWEST_CANDIDATES, MOST_ASKED, MOST_WORDS, Question, Stage, scope_terms, stages, term
from mnemon.model import Match
from mnemon.namespaces import EVERYTHING
from mnemon.ports import Params, Row, Scope, Store, WordStatistics
from mnemon.scopes import is_plain, live_in
from mnemon.sql import Query, among, chunks, params_of

T = TypeVar("T")

FRESH = 100  # counts are believed until as many changes as a hundredth of the texts have come
_MOST_COUNTS = 50_000
_SPARE = 20  # matches beyond the limit, in place of those that are no longer there
_LIVE = Query("live_in_scope", "SELECT memory_entries.id FROM memory_entries WHERE memory_entries.id > 0{where}")
_MANY = 100  # words of a question: an event loop should not wait for more


@dataclass(frozen=True, slots=True)
class Totals:
    """All texts that can be found, when the journal had grown to `position`."""

    documents: int
    average_length: float
    position: int

    def is_like(self, other: "Totals") -> bool:
        """Whether so little has changed that what was counted then still holds."""
        changes = max(abs(self.position - other.position), abs(self.documents - other.documents))
        return changes <= self.documents // FRESH


class Reader(Protocol):
    """What a question needs of a transaction."""

    async def fetch_all(self, query: Query, params: Params) -> list[Row]: ...


class TermCounts:
    """In how many texts terms are, as counted of late. Counting takes longest for those that are the most common."""

    def __init__(self) -> None:
        self.totals: Totals | None = None
        """For a database that has to count them too."""
        self._counts: dict[str, tuple[int, Totals]] = {}

    def known(self, terms: Iterable[str], totals: Totals) -> dict[str, int]:
        """The counts that still hold. That there is none never does: a memory with the word may just have come."""
        counts = {each: self._counts[each] for each in terms if each in self._counts}
        return {each: count for each, (count, then) in counts.items() if count and totals.is_like(then)}

    def learn(self, counts: Mapping[str, int], totals: Totals) -> None:
        if len(self._counts) > _MOST_COUNTS:
            self._counts = {}
        self._counts.update((each, (count, totals)) for each, count in counts.items())


class WordSearch(ABC):
    """Looks for candidates by their terms, and scores these by their words."""

    candidates: ClassVar[Query]
    """The ids and words of `:limit` memories that meet `:match`; `{join}` and `{where}` bring conditions on entries."""
    join: ClassVar[str]
    texts: ClassVar[Query]
    """The words of current memories, and their ids before them, that meet further conditions."""
    operators: ClassVar[tuple[str, str, str]]
    """How `:match` writes and, or, and and not."""

    def __init__(self, store: Store, counts: TermCounts) -> None:
        self._store = store
        self._counts = counts

    @abstractmethod
    async def _read(self, unit: Callable[[Reader], Coroutine[Any, Any, T]], *, long: bool = False) -> T:
        """Run a unit that only reads."""

    @abstractmethod
    async def _totals(self, tx: Reader) -> Totals: ...

    @abstractmethod
    async def _count(self, tx: Reader, terms: Sequence[str], totals: Totals) -> dict[str, int]:
        """In how many texts each of the terms is; those that are in none may be left out."""

    async def search(self, words: Sequence[str], scope: Scope, limit: int) -> list[Match]:
        """The memories in scope that match best, best first, and of those alike the oldest first."""

        async def unit(tx: Reader) -> list[Match]:
            matches, _ = await self._find(tx, words[:MOST_ASKED], scope, limit, spare=_SPARE)
            return (await self._checked(tx, matches, scope))[:limit]

        return await self._read(unit, long=_takes_long(words, scope)) if words and limit > 0 else []

    async def find(self, words: Sequence[str], scope: Scope, limit: int) -> tuple[list[Match], WordStatistics]:
        """The same, not checked: where digests tell the namespace, another may have the same one."""
        return await self._read(lambda tx: self._find(tx, words, scope, limit), long=_takes_long(words, scope))

    async def _find(
        self, tx: Reader, words: Sequence[str], scope: Scope, limit: int, spare: int = 0
    ) -> tuple[list[Match], WordStatistics]:
        totals = await self._totals(tx)
        statistics = await self._statistics(tx, totals, words)
        question = Question(words[:MOST_ASKED], statistics)
        within = scope_terms(scope.prefixes)
        inside = sum((await self._frequencies(tx, totals, within)).values()) if within else totals.documents
        wanted = max(3 * limit, FEWEST_CANDIDATES)
        plan = stages(question, within, inside / max(totals.documents, 1), wanted)
        found: list[tuple[float, int]] = []
        while plan and len(found) < wanted:
            stage = plan.pop(0)
            texts = await self._candidates(tx, stage, scope, wanted - len(found))
            if stage.skips and len(texts) == wanted:
                continue
            del plan[: stage.skips]
            found = sorted([*found, *((-question.score(text), memory_id) for memory_id, text in texts)])
            if len(found) >= limit and -found[limit - 1][0] >= stage.ceiling:
                break
        return [Match(memory_id, -score) for score, memory_id in found[: limit + spare] if score], statistics

    async def _candidates(self, tx: Reader, stage: Stage, scope: Scope, limit: int) -> Sequence[tuple[int, str]]:
        # Terms tell of the namespace, and only live memories have texts: the rest can be checked of the best alone.
        conditions = [] if _is_told_by_terms(scope) else live_in(scope, self._store.dialect)
        query = self.candidates.fill(join=self.join if conditions else "").where(conditions)
        params: Params = {"match": stage.written(*self.operators), "limit": limit, **params_of(conditions)}
        return [(row[0], row[1]) for row in await tx.fetch_all(query, params)]

    async def _checked(self, tx: Reader, matches: Sequence[Match], scope: Scope) -> list[Match]:
        live: set[int] = set()
        for some in chunks([match.memory_id for match in matches]):
            conditions = [among("memory_entries.id", some, "memory"), *live_in(scope, self._store.dialect)]
            rows = await tx.fetch_all(_LIVE.where(conditions), params_of(conditions))
            live.update(row[0] for row in rows)
        return [match for match in matches if match.memory_id in live]

    async def statistics(self, words: Sequence[str]) -> WordStatistics:
        """How common the words are: the counts may lag behind by a hundredth of the memories."""

        async def unit(tx: Reader) -> WordStatistics:
            return await self._statistics(tx, await self._totals(tx), words)

        return await self._read(unit)

    async def _statistics(self, tx: Reader, totals: Totals, words: Sequence[str]) -> WordStatistics:
        terms = {word: term(word) for word in words}
        counts = await self._frequencies(tx, totals, list(terms.values()))
        frequencies = {word: counts[each] for word, each in terms.items()}
        return WordStatistics(totals.documents, totals.average_length, frequencies)

    async def _frequencies(self, tx: Reader, totals: Totals, terms: Sequence[str]) -> dict[str, int]:
        counts = self._counts.known(terms, totals)
        missing = list({each for each in terms if each not in counts})
        for some in chunks(missing):
            counted = await self._count(tx, some, totals)
            learned = {each: counted.get(each, 0) for each in some}
            self._counts.learn(learned, totals)
            counts |= learned
        return counts

    async def words_of(self, memory_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words that current memories were indexed with."""
        found: dict[int, list[str]] = {}
        for some in chunks(memory_ids):
            these = among("memory_id", some, "memory")
            rows = await self._store.fetch(self.texts.where([these]), these.params)
            found.update((row[0], split(row[1])) for row in rows)
        return found


def _takes_long(words: Sequence[str], scope: Scope) -> bool:
    return len(words) > _MANY or not is_plain(scope)


def _is_told_by_terms(scope: Scope) -> bool:
    return is_plain(scope) and bool(EVERYTHING in scope.prefixes or scope_terms(scope.prefixes))


def split(text: str) -> list[str]:
    """The words of a text that `written` made."""
    return text.split(" ") if text else []


def written(words: Sequence[str]) -> str:
    """The words of a text as they are kept, as many as are indexed."""
    return " ".join(words[:MOST_WORDS])
