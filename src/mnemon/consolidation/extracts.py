"""A summary without a language model: the sentences that say most of what was said, in their own words and order.

A sentence counts for as much as it has in common with all of the text, for the names, numbers and dates in it, and a
little for standing first or last. Small talk and the names of those who talk do not count. What repeats a sentence that
was taken counts for less. The same sources always have the same extract.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mnemon.consolidation.sources import Source, is_denial
from mnemon.retrieval.duplicates import Gist, gist_of, says_no_more
from mnemon.tokens import TokenCounter
from mnemon.words import analyse

_LONGEST = 600  # characters of a sentence; what is longer is a table or code
_CANDIDATES = 400  # sentences that are compared with each other
_FEWEST_WORDS = 4  # of a sentence without a name or a number that is not in the first person
_FEWEST_OF_ALL = 2
_WHOLE = 6  # words that make a whole sentence; of a shorter one, what it has in common counts for less
_SAME = 0.7  # cosine from which sentences say the same, if they have the same names and numbers

_NAMES = 0.15  # what names and numbers add, of 1 for what the best sentence has in common with the text
_TELLING = 0.1  # what somebody says of themselves
_OPENING = 0.1
_CLOSING = 0.1
_QUESTION = -0.3
_REPEATING = 0.8

_ABBREVIATION = re.compile(r"\b(?:[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|approx|e\.g|i\.e|p\.m|a\.m)$")
_SMALL_TALK = frozenset(
    analyse(
        "hi hey hello bye goodbye welcome thanks thank please sorry yes yeah yep nope ok okay sure well wow oh haha "
        "lol cool nice great good awesome amazing glad happy sounds looks really totally right wonderful congrats"
    )
)
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|[。！？]+")
_BULLET = re.compile(r"^\s*(?:[-*•‣]|\d{1,2}[.)])\s+")
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")
_NAME = re.compile(r"(?<![.!?…]\s)(?<!^)\b[A-Z][\w'’-]+|\d[\d.,:/-]*")


@dataclass(slots=True)
class _Sentence:
    """One sentence: which source it is of, its place among all, and what it weighs."""

    place: int
    source: int
    text: str
    weights: Mapping[str, float]
    names: frozenset[str]
    score: float = 0.0
    repeats: float = 0.0
    gist: Gist = field(init=False)

    def __post_init__(self) -> None:
        self.gist = gist_of(self.text)

    def says_no_more_than(self, other: "_Sentence") -> bool:
        if says_no_more(self.gist, other.gist):
            return True
        is_near = self.names <= other.names and _cosine(self.weights, other.weights) >= _SAME
        return is_near and is_denial(self.text) == is_denial(other.text)


def extract(sources: Sequence[Source], budget: int, counter: TokenCounter) -> tuple[str, tuple[str, ...]]:
    """The best sentences within `budget` tokens, a line for each source with when and who, and the ids of those.

    If not even one sentence fits, the best one is cut.
    """
    candidates = _scored(sources)
    if not candidates:
        return "", ()
    chosen: list[_Sentence] = []
    best = candidates[0]
    while candidates:
        sentence = max(candidates, key=lambda each: (each.score - _REPEATING * each.repeats, -each.place))
        candidates.remove(sentence)
        if any(sentence.says_no_more_than(other) for other in chosen):
            continue
        if counter.count(_render(sources, [*chosen, sentence])) <= budget:
            chosen.append(sentence)
            for other in candidates:
                other.repeats = max(other.repeats, _cosine(other.weights, sentence.weights))
    text = _render(sources, chosen) if chosen else counter.cut(_render(sources, [best]), budget)
    used = dict.fromkeys(sources[each.source].id for each in sorted(chosen or [best], key=lambda each: each.place))
    return text, tuple(used) if text else ()


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a text; every line ends one."""
    for written in text.splitlines():
        line = _BULLET.sub("", written)
        start = 0
        for end in [*(found.end() for found in _END.finditer(line) if not _is_abbreviation(line, found)), len(line)]:
            if sentence := " ".join(line[start:end].split()):
                yield sentence
            start = end


def _is_abbreviation(line: str, end: re.Match[str]) -> bool:
    return end[0] == "." and bool(_ABBREVIATION.search(line[max(0, end.start() - 8) : end.start()]))


def _scored(sources: Sequence[Source]) -> list[_Sentence]:
    """The sentences worth looking at, best first."""
    people = {word for source in sources for word in analyse(source.author or "")}
    found = [
        (number, text, counts)
        for number, source in enumerate(sources)
        for text in sentences_of(source.text)
        if _says_something(text, counts := _telling_words(text, people))
    ]
    if not found:  # nothing but short cries and long tables
        found = [(number, source.text, Counter(analyse(source.text))) for number, source in enumerate(sources)]
        found = [each for each in found if each[1].strip()]
    rarity = _rarity([counts for _, _, counts in found])
    sentences = [
        _Sentence(
            place,
            number,
            text,
            _normal({word: count * rarity[word] for word, count in counts.items()}),
            frozenset(name for name in _NAME.findall(text) if not people.issuperset(analyse(name))),
        )
        for place, (number, text, counts) in enumerate(found)
    ]
    _score(sentences, len(sources))
    return sorted(sentences, key=lambda each: (-each.score, each.place))[:_CANDIDATES]


def _telling_words(text: str, people: set[str]) -> Counter[str]:
    return Counter(word for word in analyse(text) if word not in _SMALL_TALK and word not in people)


def _says_something(text: str, counts: Counter[str]) -> bool:
    is_telling = bool(_NAME.search(text) or _FIRST_PERSON.search(text))
    return len(text) <= _LONGEST and counts.total() >= (_FEWEST_OF_ALL if is_telling else _FEWEST_WORDS)


def _rarity(counts: Sequence[Counter[str]]) -> dict[str, float]:
    """How much each word tells: the more, the fewer sentences have it."""
    having = Counter(word for each in counts for word in each)
    return {word: math.log(1 + len(counts) / number) for word, number in having.items()}


def _score(sentences: Sequence[_Sentence], sources: int) -> None:
    centre: Counter[str] = Counter()
    for sentence in sentences:
        centre.update(sentence.weights)
    shared = [math.fsum(weight * centre[word] for word, weight in each.weights.items()) for each in sentences]
    most = max(shared, default=0.0) or 1.0
    for sentence, common in zip(sentences, shared, strict=True):
        common *= min(1.0, len(sentence.weights) / _WHOLE)
        names = _NAMES * min(3, len(sentence.names))
        sentence.score = common / most + names + (_QUESTION if sentence.text.endswith("?") else 0.0)
        sentence.score += _TELLING if _FIRST_PERSON.search(sentence.text) else 0.0
        sentence.score += _OPENING if sentence.source == 0 else _CLOSING if sentence.source == sources - 1 else 0.0


def _normal(weights: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(math.fsum(weight * weight for weight in weights.values())) or 1.0
    return {word: weight / length for word, weight in weights.items()}


def _cosine(some: Mapping[str, float], others: Mapping[str, float]) -> float:
    few, many = sorted((some, others), key=len)
    return math.fsum(weight * many.get(word, 0.0) for word, weight in few.items())


def _render(sources: Sequence[Source], sentences: Sequence[_Sentence]) -> str:
    """The sentences in the order in which they were said, a line for each source."""
    lines: dict[int, list[str]] = {}
    for sentence in sorted(sentences, key=lambda each: each.place):
        lines.setdefault(sentence.source, []).append(sentence.text)
    return "\n".join(sources[number].heading + " ".join(texts) for number, texts in lines.items())
