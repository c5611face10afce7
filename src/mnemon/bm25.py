"""BM25: how well a text answers a question, by how often it has the question's words and how rare these are.

What a database indexes are digests of words, called terms, and of the namespaces that a text is in. They have no
length or character that an index would not take, and give nothing away. Texts found by them are only candidates: they
are scored by their words, so that two words with the same digest do no harm.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final
from zlib import crc32

from mnemon.namespaces import EVERYTHING
from mnemon.ports import WordStatistics

MOST_WORDS = 10_000  # of a text are indexed
MOST_ASKED = 1_000  # words of a question are looked up ...
_MOST_WEIGHED = 200  # ... and the weightiest of these are scored
_MOST_STAGES = 8  # for one word each; what is left then is looked for together
FEWEST_CANDIDATES = 200  # are scored, if there are so many

_SATURATION: Final = 1.2  # how soon a word's repetitions stop counting, usually called k1
_LENGTH: Final = 0.75  # how much longer texts are held back, usually called b
_MOST_PREFIXES = 64  # more would make a query of terms too large


def term(word: str) -> str:
    """The digest of a word: hexadecimal."""
    return f"{crc32(word.encode(errors='surrogatepass')):x}"


def prefix_term(prefix: str) -> str:
    """The digest of a namespace or the beginning of one; no word has the same."""
    return f"n{crc32(prefix.encode()):x}"


def namespace_terms(namespace: str) -> list[str]:
    """The digests of everything that a namespace is at or below."""
    segments = namespace.split(":")
    return [prefix_term(":".join(segments[:count])) for count in range(1, len(segments) + 1)]


def scope_terms(prefixes: Sequence[str]) -> tuple[str, ...]:
    """The digests of which every text below the prefixes has one; none if that says nothing, or too much."""
    if EVERYTHING in prefixes or len(prefixes) > _MOST_PREFIXES:
        return ()
    return tuple(prefix_term(prefix) for prefix in prefixes)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question: in how many texts it is, and the most that it can add to a score."""

    text: str
    count: int
    weight: float


class Question:
    """The words of a question, weighed by how rare they are."""

    def __init__(self, words: Sequence[str], statistics: WordStatistics) -> None:
        self._average = max(statistics.average_length, 1.0)
        known = [
            Word(word, min(count, statistics.documents), times * _rarity(statistics.documents, count))
            for word, times in Counter(words).items()
            if (count := statistics.frequencies.get(word, 0))
        ]
        weightiest = sorted(known, key=lambda word: (-word.weight, word.text))[:_MOST_WEIGHED]
        self.ranked = sorted(weightiest, key=lambda word: (word.count, word.text))
        """Those that any text has and that say most, the rarest first."""
        # Each stands between two spaces of its own, so that counting it in a text finds its neighbours too.
        self._weights = [(f" {word.text} ", word.weight) for word in self.ranked]

    def score(self, text: str) -> float:
        """How well a text of words with a space between them fits; 0 if it has none of the question's words."""
        length = text.count(" ") + 1
        held_back = _SATURATION * (1 - _LENGTH + _LENGTH * length / self._average)
        spaced = f" {text.replace(' ', '  ')} "
        score = 0.0
        for word, weight in self._weights:
            if times := spaced.count(word):
                score += weight * times / (times + held_back)
        return score


def _rarity(documents: int, count: int) -> float:
    """Above zero even for a word that every text has."""
    count = min(count, documents)
    return (_SATURATION + 1) * math.log1p((documents - count + 0.5) / (count + 0.5))


@dataclass(frozen=True, slots=True)
class Stage:
    """Terms to look for: of each of the groups at least one, and none of those that were looked for before."""

    groups: tuple[tuple[str, ...], ...]
    without: tuple[str, ...] = ()
    ceiling: float = 0.0
    """No text that neither this nor an earlier stage finds can have a higher score."""
    skips: int = 0
    """If this stage finds fewer than were asked for, it has found all that so many of the next ones would."""

    def written(self, both: str, either: str, but_not: str) -> str:
        """The query of a full-text index with these operators."""
        wanted = both.join(f"({either.join(group)})" for group in self.groups)
        return f"({wanted}){but_not}({either.join(self.without)})" if self.without else wanted


def stages(question: Question, scope: tuple[str, ...], share: float, wanted: int) -> list[Stage]:
    """How to look for `wanted` candidates, the most promising first.

    A word that most texts have says little and is dear to look for. So first those that together are in no more than
    `wanted` texts, then one after the other, the rarer first; one that alone would be too many, with another at first.
    Of a long question the rest is looked for together.
    In a scope that has a small share of all texts more words can probably be looked for at once, and this is tried.
    """
    ranked = question.ranked
    counts = [word.count for word in ranked]
    terms = tuple(term(word.text) for word in ranked)
    ceilings = [sum(word.weight for word in ranked[number:]) for number in range(len(ranked) + 1)]
    within = (scope,) if scope else ()
    rare = _fitting(counts, wanted)
    found = [Stage((*within, terms[:rare]), (), ceilings[rare])] if rare else []
    for number in range(rare, min(rare + _MOST_STAGES, len(terms))):
        before, this, after = terms[:number], terms[number : number + 1], terms[number + 1 :]
        if after and counts[number] * share > wanted:
            found.append(Stage((*within, this, after), before, ceilings[number]))
            before += after
        found.append(Stage((*within, this), before, ceilings[number + 1]))
    if rest := terms[rare + _MOST_STAGES :]:
        found.append(Stage((*within, rest), terms[: rare + _MOST_STAGES]))
    likely = min(_fitting([count * share for count in counts], 0.7 * wanted), rare + _MOST_STAGES)
    if likely > rare + 1:
        skips = likely - rare + bool(rare)
        found.insert(0, Stage((*within, terms[:likely]), (), ceilings[likely], skips))
    return found


def _fitting(counts: Sequence[float], wanted: float) -> int:
    """How many of the counts together are no more than wanted."""
    return sum(total <= wanted for total in accumulate(counts))
