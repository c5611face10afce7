"""How candidates are ranked: a weighted sum of signals, each a pure function.

Every signal is 0, or the same for all, where the data that it needs is missing: a memory without a thread, an author
or a date is ranked by the others. The weights were chosen on conversations 1 to 5 of LoCoMo; see
`docs/explanation/ranking.md` for what each is worth.
"""

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mnemon.clock import micros, moment
from mnemon.ports import WordStatistics
from mnemon.retrieval.dates import Period, periods_in
from mnemon.retrieval.gathering import REACH, Candidates
from mnemon.words import Identifier, analyse, identifiers, key_words

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

_STEPS: Places = np.array([*range(-REACH, 0), *range(1, REACH + 1)])
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class Weights:
    """What each signal is worth; text is the unit."""

    text: float = 1.0
    vector: float = 0.04
    vector_before: float = 0.03
    vector_thread: float = 0.04
    author: float = 0.2
    date: float = 0.4
    substance: float = 0.1
    exact: float = 2.0
    recency: float = 0.02
    importance: float = 0.05
    trust: float = 0.1
    diversity: float = 0.2


WEIGHTS = Weights()

# How much of what is said around counts here: of the four before, the nearest last, and of the four after.
_LENT: Floats = np.array([0.3, 0.5, 0.7, 0.9, 0.7, 0.5, 0.3, 0.2])[:, None]
_IN_THREAD = 0.2  # and of what is said anywhere in the thread
_SATURATION = 0.4  # how soon a word's repetitions stop counting
_ENOUGH_WORDS = 20
_SPREAD, _SPREAD_KNOWN_FROM = 0.1, 30  # of cosines, as it usually is, and how many candidates it takes to know better
_FADING = 10.0  # days
_HALF_LIFE = 30.0  # days
_IN_PARTS = 0.5  # what an identifier is worth that is only a part of a longer one
_OTHER_KEY = 0.25  # what a key is worth that is no identifier, such as a word in quotation marks
_ALIKE = 0.6  # share of common words from which on two say the same, more or less


@dataclass(frozen=True, slots=True)
class Question:
    """A question as ranking sees it."""

    text: str
    words: tuple[str, ...]
    """What to look for, without repeats: its words, those of other wordings, and keys that it may name."""
    keys: tuple[str, ...]
    """The words under which memories are found by the keys that it may name."""
    identifiers: tuple[Identifier, ...]

    @classmethod
    def read(cls, text: str, others: Iterable[str] = ()) -> "Question":
        words = [word for wording in (text, *others) for word in analyse(wording)]
        keys = tuple(key_words(text))
        return cls(text, tuple(dict.fromkeys([*words, *keys])), keys, tuple(identifiers(text)))

    @property
    def names(self) -> tuple[str, ...]:
        """The words that name one thing: a memory that has them must not be missed, however long the question is."""
        named = [word for each in self.identifiers for word in (each.whole, *each.parts.split(" "))]
        return tuple(dict.fromkeys([*named, *self.keys]))


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates as they were ranked."""

    order: Sequence[int]
    """The places of the best, best first: as many as were wanted. Those that are equal stay as they were."""
    scores: Floats
    signals: Mapping[str, Floats]
    """What the scores are the sum of, already weighted; the diversity of those that come later may be missing."""

    def signals_of(self, place: int) -> dict[str, float]:
        """What each signal adds to the score of one candidate."""
        return {name: float(values[place]) for name, values in self.signals.items()}


def rank(
    question: Question, candidates: Candidates, now: int, wanted: int | None = None, weights: Weights = WEIGHTS
) -> Ranking:
    """Score the candidates, and put the best in order: as many as are wanted, or all."""
    found = signals(question, candidates, now)
    weighted = np.array(list(found.values()))
    weighted *= np.array([[getattr(weights, name)] for name in found])
    scores = np.add.reduce(weighted)
    texts = [each.words for each in candidates.memories]
    order, repeated = diversify(texts, scores, weights.diversity, len(texts) if wanted is None else wanted)
    parts = {**dict(zip(found, weighted, strict=True)), "diversity": weights.diversity * repeated}
    return Ranking(order, scores + parts["diversity"], parts)


def signals(question: Question, candidates: Candidates, now: int) -> dict[str, Floats]:
    """Every signal of every candidate but its diversity, by the name of its weight."""
    if not candidates.memories:
        return {name: np.zeros(0) for name in Weights.__slots__ if name != "diversity"}
    _, _, threads, positions, authors, occurred, updated, trusts, importances, texts = zip(
        *candidates.memories, strict=True
    )
    named = _named_authors(question.words, authors)
    names = frozenset[str]().union(*named.values())
    wanted = [word for word in question.words if word not in names and not word.startswith("=")]
    joined, places = Joined(texts), place(threads, positions)
    vector = standardise(candidates.cosines.astype(np.float64))
    return {
        "text": text(saturated(joined.counts(wanted)), rarities(wanted, candidates.statistics), places),
        "vector": vector,
        "vector_before": vector_before(vector, places),
        "vector_thread": vector_thread(vector, places),
        "author": author(authors, named, joined),
        "date": date(occurred, periods_in(question.text, moment(now))),
        "substance": substance(joined.lengths()),
        "exact": exact(question, joined, candidates.statistics),
        "recency": recency(occurred, updated, now),
        "importance": np.array(importances) - 0.5,
        "trust": np.array(trusts) - 1.0,
    }


# -- words


class Joined:
    """The words of all candidates in one string: to look for a word there is much quicker than in each by itself."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.size = len(texts)
        self._whole = " " + " \n ".join(texts) + " "
        # Each has a space on both sides, and a line feed behind it.
        self._ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 3)

    def lengths(self) -> Floats:
        """How many words each text has, but for the first, which is of its key."""
        spaces = np.frombuffer(self._whole.encode("utf-32-le", "surrogatepass"), np.uint32) == ord(" ")
        counted = np.add.reduceat(spaces, np.concatenate([[0], self._ends[:-1]]), dtype=np.float64)
        return counted - 2

    def counts(self, words: Sequence[str]) -> Floats:
        """For each word, or words with a space between them, a row: how often each text has it."""
        found: list[int] = []
        rows: list[int] = []
        find = self._whole.find
        for word in words:
            needle, length, before = f" {word} ", len(word) + 1, len(found)
            at = find(needle)
            while at >= 0:
                found.append(at)
                at = find(needle, at + length)
            rows.append(len(found) - before)
        texts = np.searchsorted(self._ends, np.array(found, np.int64), side="right")
        cells = np.repeat(np.arange(len(words)) * self.size, rows) + texts
        return np.bincount(cells, minlength=len(words) * self.size).reshape(len(words), self.size).astype(np.float64)


def saturated(counts: Floats) -> Floats:
    """How strongly a text has a word that it has so often: from 0 to 1."""
    return counts / (counts + _SATURATION)


def rarities(words: Sequence[str], statistics: WordStatistics) -> Floats:
    """How much each word tells, by how few memories have it: BM25's inverse document frequency."""
    return np.array([_rarity(statistics.documents, statistics.frequencies.get(word, 0)) for word in words])


def _rarity(documents: int, count: int) -> float:
    count = min(count, documents)
    return math.log1p((documents - count + 0.5) / (count + 0.5))


# -- threads


@dataclass(frozen=True, slots=True)
class Threads:
    """Where each candidate stands in its thread."""

    order: Places
    """The candidates thread by thread, each in its order; what follows is in this order too."""
    starts: Places
    """Where each thread begins."""
    thread: Places
    """The number of each candidate's thread."""
    beside: Places
    """For each of `_STEPS` a row: where the one is who stands so far on; behind the last for nobody."""


def place(threads: Sequence[str | None], positions: Sequence[int | None]) -> Threads | None:
    """Who stands beside whom; None if nobody has a thread."""
    if not any(threads):
        return None
    numbers = {thread: number for number, thread in enumerate(dict.fromkeys(threads))}
    number = np.array(list(map(numbers.__getitem__, threads)), np.int64)
    if None in numbers:  # each of these is alone
        alone = number == numbers[None]
        number[alone] = len(numbers) + np.arange(np.count_nonzero(alone))
    position = np.array(positions, np.float64)
    order = np.lexsort((position, number))
    number, position = number[order], position[order]
    changes = np.empty(len(order), bool)
    changes[0] = True
    np.not_equal(number[1:], number[:-1], out=changes[1:])
    return Threads(order, changes.nonzero()[0], changes.cumsum() - 1, _beside(position, changes))


def _beside(position: Floats, changes: npt.NDArray[np.bool_]) -> Places:
    """The rows of `Threads.beside`, for positions in order, thread after thread.

    Gaps too wide to look across, as those between threads or around a position that is not known, are made alike
    first. Then there are so few places that a table can say who stands at each.
    """
    gaps = np.empty(len(position))
    gaps[0] = REACH
    np.subtract(position[1:], position[:-1], out=gaps[1:])
    gaps[1:][changes[1:] | ~(gaps[1:] <= REACH)] = REACH + 1
    places = gaps.cumsum().astype(np.int64)
    table = np.full(places[-1] + REACH + 1, len(places), np.int64)
    table[places] = np.arange(len(places))
    return table[places + _STEPS[:, None]]


def _with_nobody(values: Floats) -> Floats:
    """One more at the end, who has nothing."""
    return np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)


def _best_in_thread(values: Floats, threads: Threads) -> Floats:
    return np.maximum.reduceat(values, threads.starts, axis=-1)[..., threads.thread]


def _as_found(values: Floats, threads: Threads) -> Floats:
    """From the order of the threads back to that of the candidates."""
    found = np.empty_like(values)
    found[threads.order] = values
    return found


# -- signals


def text(matches: Floats, rarity: Floats, threads: Threads | None) -> Floats:
    """The share of the question that is found here; what only the neighbourhood says counts less."""
    weights = rarity / max(float(rarity.sum()), 1e-9)
    if threads is None:
        return weights @ matches
    matches = matches[:, threads.order]
    heard = np.maximum(matches, _IN_THREAD * _best_in_thread(matches, threads))
    lent = _with_nobody(matches).take(threads.beside, axis=1)
    lent *= _LENT
    np.maximum(heard, np.maximum.reduce(lent, axis=1), out=heard)
    return _as_found(weights @ heard, threads)


def standardise(cosines: Floats) -> Floats:
    """How far each is from the mean, in units of their spread; 0 where there is no vector.

    A few candidates do not tell the spread of all, so that a usual one is mixed in.
    """
    known = ~np.isnan(cosines)
    seen = cosines[known]
    if not len(seen):
        return np.zeros_like(cosines)
    mean = float(seen.sum()) / len(seen)
    apart = seen - mean
    variance = (float(apart @ apart) + _SPREAD_KNOWN_FROM * _SPREAD**2) / (len(seen) + _SPREAD_KNOWN_FROM)
    signal = np.zeros_like(cosines)
    signal[known] = apart / math.sqrt(variance)
    return signal


def vector_before(vector: Floats, threads: Threads | None) -> Floats:
    """How near the one just before is: what follows a question like this one may be its answer.

    Where nobody stands before, one's own counts, so that a single memory is not behind those of a thread.
    """
    if threads is None:
        return np.zeros_like(vector)
    vector, before = vector[threads.order], threads.beside[REACH - 1]
    return _as_found(np.where(before < len(vector), _with_nobody(vector)[before], vector), threads)


def vector_thread(vector: Floats, threads: Threads | None) -> Floats:
    """How near the nearest of the thread is."""
    if threads is None:
        return np.zeros_like(vector)
    return _as_found(_best_in_thread(vector[threads.order], threads), threads)


def _named_authors(words: Iterable[str], authors: Iterable[str | None]) -> dict[str, frozenset[str]]:
    """The authors whom the question names, each with those words of the name that it has."""
    asked = frozenset(words)
    named = {author: frozenset(analyse(author)) & asked for author in set(authors) if author}
    return {author: words for author, words in named.items() if words}


def author(authors: Sequence[str | None], named: Mapping[str, frozenset[str]], texts: Joined) -> Floats:
    """1 where the author is named in the question, or where a memory of no author names one who is."""
    if not named:
        return np.zeros(len(authors))
    told: list[bool] = texts.counts(sorted(frozenset[str]().union(*named.values()))).any(axis=0).tolist()  # pyright: ignore[reportAssignmentType]
    return np.array([float(each in named if each else is_told) for each, is_told in zip(authors, told, strict=True)])


def date(occurred: Sequence[int | None], periods: Sequence[Period]) -> Floats:
    """1 in a period that the question names, fading with the days outside it."""
    signal = np.zeros(len(occurred))
    if not periods:
        return signal
    days = np.array(occurred, np.float64) / _DAY  # NaN if that is not known
    for period in periods:
        signal = np.fmax(signal, np.exp(-_days_outside(days, period) / _FADING))
    return signal


def _days_outside(days: Floats, period: Period) -> Floats:
    start, end = micros(period.start) / _DAY, micros(period.end) / _DAY + 1
    if period.yearly:
        middle = (start + end) / 2
        days = middle + (days - middle + 182.6) % 365.25 - 182.6
    return np.maximum(np.maximum(start - days, days - end), 0.0)


def substance(lengths: Floats) -> Floats:
    """How much a memory says at all."""
    return np.minimum(lengths, _ENOUGH_WORDS) / _ENOUGH_WORDS


def exact(question: Question, texts: Joined, statistics: WordStatistics) -> Floats:
    """1 where a memory alone has an identifier that the question names, less where others have it too.

    An identifier may be in its text or be its key. One that is there as a part of a longer one counts half, and a key
    that is no identifier a quarter.
    """
    signal = np.zeros(texts.size)
    if not question.names:
        return signal
    for each in question.identifiers:
        told, in_parts, is_key = texts.counts([each.whole, each.parts, each.key]) > 0
        here = np.where(told | is_key, 1.0, _IN_PARTS * in_parts)
        share = _rarity(statistics.documents, statistics.frequencies.get(each.whole, 0)) / _rarity(
            statistics.documents, 1
        )
        np.maximum(signal, min(share, 1.0) * here, out=signal)
    others = texts.counts(question.keys).any(axis=0) if question.keys else np.zeros(texts.size, bool)
    return np.maximum(signal, _OTHER_KEY * others)


def recency(occurred: Sequence[int | None], updated: Sequence[int], now: int) -> Floats:
    """1 for what happened now, half of that for every month before."""
    when = [change if then is None else then for then, change in zip(occurred, updated, strict=True)]
    return np.exp2(np.maximum(now - np.array(when), 0) / (-_DAY * _HALF_LIFE))


# -- diversity


def diversify(texts: Sequence[str], scores: Floats, weight: float, wanted: int) -> tuple[list[int], Floats]:
    """The places of the best, and a signal below 0 for what says the same as something better: -1 if all its words.

    Everything is compared with all that have a better score. But since this only ever takes something away, what has
    less than the last of those wanted is left need not be looked at.
    """
    signal = np.zeros(len(texts))
    told, kept = Told(), list[float]()
    ranked: list[tuple[float, int, int]] = []
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    for number, place in enumerate(order):
        score = float(scores[place])
        if len(kept) >= wanted and (not kept or score <= kept[0]):
            break
        common = told.likeness(texts[place])
        if common > _ALIKE:
            signal[place] = -(common - _ALIKE) / (1 - _ALIKE)
            score += weight * float(signal[place])
        ranked.append((-score, number, place))
        heapq.heappush(kept, score)
        if len(kept) > wanted:
            heapq.heappop(kept)
    return [place for _, _, place in sorted(ranked)[:wanted]], signal


class Told:
    """What was told already, to see how much of it another text repeats.

    Two texts that are alike share one of the first of their words in the order of the alphabet, whichever these are:
    of `n` words, those that are left if the share that makes them alike is taken away. So few have to be compared.
    """

    def __init__(self) -> None:
        self._texts: list[frozenset[str]] = []
        self._known: set[frozenset[str]] = set()
        self._by_word: dict[str, list[int]] = {}

    def likeness(self, text: str) -> float:
        """The largest share of words that it has in common with one that was told before; 0 if none is alike."""
        words = frozenset(text.split(" ")[1:])
        if words in self._known:
            return 1.0 if words else 0.0
        first = sorted(words)[: len(words) - int(_ALIKE * len(words))]
        others = {number for word in first for number in self._by_word.get(word, ())}
        for word in first:
            self._by_word.setdefault(word, []).append(len(self._texts))
        self._texts.append(words)
        self._known.add(words)
        return max((_common(words, self._texts[number]) for number in others), default=0.0)


def _common(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
