"""How candidates are ranked: a weighted sum of signals, each a pure function.

Every signal is 0, or the same for all, where the data that it needs is missing: a memory without a thread, an author
or a date is ranked by the others. The weights were chosen on conversations 1 to 5 of LoCoMo; see
`docs/explanation/ranking.md` for what each is worth.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mnemon.clock import micros, moment
from mnemon.ports import WordStatistics
from mnemon.retrieval.dates import Period, periods_in
from mnemon.retrieval.gathering import Candidate, Candidates
from mnemon.words import analyse, key_words

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

REACH = 4  # places in a thread to each side that count as the neighbourhood
_STRIDE = 1 << 40
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
    exact: float = 0.5
    recency: float = 0.02
    importance: float = 0.05
    trust: float = 0.1
    diversity: float = 0.2


WEIGHTS = Weights()

_BEFORE = (0.9, 0.7, 0.5, 0.3)  # how much of what was said just before counts here, by its distance
_AFTER = (0.7, 0.5, 0.3, 0.2)  # and of what was said just after
_IN_THREAD = 0.2  # and of what is said anywhere in the thread
_SATURATION = 0.4  # how soon a word's repetitions stop counting
_ENOUGH_WORDS = 20
_SPREAD, _SPREAD_KNOWN_FROM = 0.1, 30  # of cosines, as it usually is, and how many candidates it takes to know better
_FADING = 10.0  # days
_HALF_LIFE = 30.0  # days
_COMPARED = 30  # of the best, to see whether one says what a better one says
_ALIKE = 0.6  # share of common words from which on two say the same, more or less


@dataclass(frozen=True, slots=True)
class Question:
    """A question as ranking sees it."""

    text: str
    words: tuple[str, ...]
    """What to look for, without repeats: its words, those of other wordings, and keys that it may name."""

    @classmethod
    def read(cls, text: str, others: Iterable[str] = ()) -> "Question":
        words = [word for wording in (text, *others) for word in analyse(wording)]
        return cls(text, tuple(dict.fromkeys([*words, *key_words(text)])))


@dataclass(frozen=True, slots=True)
class Ranking:
    """The score of every candidate, and the signals that it is the sum of, already weighted."""

    scores: Floats
    signals: Mapping[str, Floats]

    def order(self) -> list[int]:
        """The places of the candidates, best first; those that are equal stay as they were."""
        return np.argsort(-self.scores, kind="stable").tolist()

    def signals_of(self, place: int) -> dict[str, float]:
        """What each signal adds to the score of one candidate."""
        return {name: float(values[place]) for name, values in self.signals.items()}


def rank(question: Question, candidates: Candidates, now: int, weights: Weights = WEIGHTS) -> Ranking:
    """Score every candidate."""
    found = signals(question, candidates, now)
    weighted = {name: getattr(weights, name) * values for name, values in found.items()}
    scores = sum(weighted.values(), np.zeros(len(candidates.memories)))
    weighted["diversity"] = weights.diversity * diversity(candidates.words, scores)
    return Ranking(scores + weighted["diversity"], weighted)


def signals(question: Question, candidates: Candidates, now: int) -> dict[str, Floats]:
    """Every signal of every candidate but its diversity, by the name of its weight."""
    known = candidates.memories
    named = _named_authors(question.words, known)
    names = frozenset[str]().union(*named.values())
    wanted = [word for word in question.words if word not in names and not word.startswith("=")]
    threads = _place(known)
    vector = standardise(candidates.cosines.astype(np.float64))
    return {
        "text": text(match_words(candidates.words, wanted), rarities(wanted, candidates.statistics), threads),
        "vector": vector,
        "vector_before": vector_before(vector, threads),
        "vector_thread": vector_thread(vector, threads),
        "author": author(candidates, named),
        "date": date(known, periods_in(question.text, moment(now))),
        "substance": substance(candidates.words),
        "exact": exact(candidates.words, question.words),
        "recency": recency(known, now),
        "importance": np.array([each.importance - 0.5 for each in known]),
        "trust": np.array([each.trust - 1.0 for each in known]),
    }


# -- threads


@dataclass(frozen=True, slots=True)
class _Threads:
    """Where each candidate stands: the number of its thread, and who stands beside it."""

    number: Places
    beside: Mapping[int, Places]
    """For each distance, the place of the candidate that stands there; -1 for none."""
    are_known: bool
    """Whether any candidate has a thread at all."""


def _place(known: Sequence[Candidate]) -> _Threads:
    numbers: dict[object, int] = {}
    names = (each.thread if each.thread is not None else (place,) for place, each in enumerate(known))
    threads = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    positions = np.array([-1 if each.position is None else each.position for each in known], np.int64)
    places = threads * _STRIDE + positions + REACH
    order = np.argsort(places, kind="stable")
    beside = {step: _at(places, order, positions, step) for step in range(-REACH, REACH + 1) if step}
    return _Threads(threads, beside, any(each.thread is not None for each in known))


def _at(places: Places, order: Places, positions: Places, step: int) -> Places:
    if not len(places):
        return places
    nearest = np.searchsorted(places[order], places + step)
    found = order[np.minimum(nearest, len(order) - 1)]
    return np.where((places[found] == places + step) & (positions >= 0) & (positions[found] >= 0), found, -1)


def _lend(values: Floats, places: Places) -> Floats:
    """What stands beside each candidate; 0 where nobody does."""
    return np.where(places >= 0, values[..., places], 0.0)


def _best_in_thread(values: Floats, threads: Places) -> Floats:
    if not len(threads):
        return values
    order = np.argsort(threads, kind="stable")
    starts = np.flatnonzero(np.diff(threads[order], prepend=-1))
    return np.maximum.reduceat(values[..., order], starts, axis=-1)[..., threads]


# -- signals


def rarities(words: Sequence[str], statistics: WordStatistics) -> Floats:
    """How much each word tells, by how few memories have it: BM25's inverse document frequency."""
    found: list[float] = []
    for word in words:
        count = min(statistics.frequencies.get(word, 0), statistics.documents)
        found.append(math.log1p((statistics.documents - count + 0.5) / (count + 0.5)))
    return np.array(found)


def match_words(texts: Sequence[Sequence[str]], words: Sequence[str]) -> Floats:
    """For each word a row: how strongly each text has it, from 0 to 1, soon saturated."""
    counts = np.array([[held.count(word) for held in texts] for word in words], float).reshape(len(words), len(texts))
    return counts / (counts + _SATURATION)


def text(matches: Floats, rarity: Floats, threads: _Threads) -> Floats:
    """The share of the question that is found here; what only the neighbourhood says counts less."""
    if not matches.size:
        return np.zeros(len(threads.number))
    heard = np.maximum(matches, _IN_THREAD * _best_in_thread(matches, threads.number))
    for distance, (before, after) in enumerate(zip(_BEFORE, _AFTER, strict=True), 1):
        np.maximum(heard, before * _lend(matches, threads.beside[-distance]), out=heard)
        np.maximum(heard, after * _lend(matches, threads.beside[distance]), out=heard)
    return rarity @ heard / max(float(rarity.sum()), 1e-9)


def standardise(cosines: Floats) -> Floats:
    """How far each is from the mean, in units of their spread; 0 where there is no vector.

    A few candidates do not tell the spread of all, so that a usual one is mixed in.
    """
    known = ~np.isnan(cosines)
    seen = cosines[known]
    if not len(seen):
        return np.zeros_like(cosines)
    variance = (len(seen) * seen.var() + _SPREAD_KNOWN_FROM * _SPREAD**2) / (len(seen) + _SPREAD_KNOWN_FROM)
    return np.where(known, (np.nan_to_num(cosines) - seen.mean()) / math.sqrt(variance), 0.0)


def vector_before(vector: Floats, threads: _Threads) -> Floats:
    """How near the one just before is: what follows a question like this one may be its answer.

    Where nobody stands before, one's own counts, so that a single memory is not behind those of a thread.
    """
    places = threads.beside[-1]
    return np.where(places >= 0, vector[places], vector) if threads.are_known else np.zeros_like(vector)


def vector_thread(vector: Floats, threads: _Threads) -> Floats:
    """How near the nearest of the thread is."""
    return _best_in_thread(vector, threads.number) if threads.are_known else np.zeros_like(vector)


def _named_authors(words: Iterable[str], known: Sequence[Candidate]) -> dict[str, frozenset[str]]:
    """The authors whom the question names, each with those words of the name that it has."""
    asked = frozenset(words)
    authors = {each.author for each in known if each.author}
    named = {author: frozenset(analyse(author)) & asked for author in authors}
    return {author: words for author, words in named.items() if words}


def author(candidates: Candidates, named: Mapping[str, frozenset[str]]) -> Floats:
    """1 where the author is named in the question, or where a memory of no author names one who is."""
    if not named:
        return np.zeros(len(candidates.memories))
    names = frozenset[str]().union(*named.values())
    return np.array(
        [
            float(each.author in named if each.author else not names.isdisjoint(words))
            for each, words in zip(candidates.memories, candidates.words, strict=True)
        ]
    )


def date(known: Sequence[Candidate], periods: Sequence[Period]) -> Floats:
    """1 in a period that the question names, fading with the days outside it."""
    signal = np.zeros(len(known))
    if not periods:
        return signal
    days = np.array([np.nan if each.occurred_at is None else each.occurred_at / _DAY for each in known])
    for period in periods:
        signal = np.fmax(signal, np.exp(-_days_outside(days, period) / _FADING))
    return signal


def _days_outside(days: Floats, period: Period) -> Floats:
    start, end = micros(period.start) / _DAY, micros(period.end) / _DAY + 1
    if period.yearly:
        middle = (start + end) / 2
        days = middle + (days - middle + 182.6) % 365.25 - 182.6
    return np.maximum(np.maximum(start - days, days - end), 0.0)


def substance(texts: Sequence[Sequence[str]]) -> Floats:
    """How much a memory says at all."""
    lengths = np.array([len(words) - words[0].startswith("=") if words else 0 for words in texts], float)  # but its key
    return np.minimum(lengths, _ENOUGH_WORDS) / _ENOUGH_WORDS


def exact(texts: Sequence[Sequence[str]], words: Sequence[str]) -> Floats:
    """1 where the question names the memory's key."""
    keys = [word for word in words if word.startswith("=")]
    if not keys:
        return np.zeros(len(texts))
    return np.array([float(any(key in held for key in keys)) for held in texts])


def recency(known: Sequence[Candidate], now: int) -> Floats:
    """1 for what happened now, half of that for every month before."""
    days = np.array([max(0, now - (each.occurred_at or each.updated_at)) / _DAY for each in known])
    return 0.5 ** (days / _HALF_LIFE)


def diversity(texts: Sequence[Sequence[str]], scores: Floats) -> Floats:
    """Below 0 for what says the same as something better: -1 if it has the same words."""
    signal = np.zeros(len(texts))
    better: list[frozenset[str]] = []
    best: list[int] = np.argsort(-scores, kind="stable")[:_COMPARED].tolist()
    for place in best:
        words = frozenset(word for word in texts[place] if not word.startswith("="))
        common = max((len(words & other) / len(words | other) for other in better if words), default=0.0)
        signal[place] = -max(0.0, common - _ALIKE) / (1 - _ALIKE)
        better.append(words)
    return signal
