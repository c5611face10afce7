"""Whether one text says anything that another does not: pure, and the same for every language."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

SIMILAR = 0.8
"""How many of the word triples of two texts must be the same for one to be as good as the other."""

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORDS = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_AROUND = ".,;:!?\"'`*_()[]{}<>…“”‘’«»、。"
_DIGIT = re.compile(r"\d")
_FEW = 3
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Gist:
    """What a text is compared by: its words in order, its word triples, and its words with digits."""

    words: str
    count: int
    triples: dict[tuple[str, ...], None]
    numbers: frozenset[str]


def words_of(text: str) -> list[str]:
    """The words in lower case, without the punctuation around them; characters of unspaced scripts one by one."""
    found = _WORDS.findall(unicodedata.normalize("NFKC", text[:_LONGEST]).casefold())
    return [bare for word in found if (bare := word.strip(_AROUND))]


def gist_of(text: str) -> Gist:
    words = words_of(text)
    return Gist(
        f" {' '.join(words)} " if words else text.strip(),
        len(words),
        dict.fromkeys(zip(words, words[1:], words[2:], strict=False)),
        frozenset(word for word in words if not word.isalpha() and _DIGIT.search(word)),
    )


def says_no_more(new: Gist, known: Gist) -> bool:
    """Whether `new` is the same as `known`, a part of it of three words or more, or nearly the same.

    Nearly the same are texts that share four fifths of their word triples, as long as `new` has no number,
    date or identifier that `known` has not.
    """
    if new.words == known.words:
        return True
    if new.count >= _FEW and new.words in known.words:
        return True
    smaller, larger = sorted((len(new.triples), len(known.triples)))
    if smaller < SIMILAR * larger or not smaller or not new.numbers <= known.numbers:
        return False
    shared = len(new.triples.keys() & known.triples.keys())
    return shared >= SIMILAR * (smaller + larger - shared)


class KnownTexts:
    """Texts that were told already, to look up which of them say all that a new one does."""

    def __init__(self) -> None:
        self._texts: list[tuple[str, Gist]] = []
        self._by_words: dict[str, list[int]] = defaultdict(list)
        self._by_triple: dict[tuple[str, ...], list[int]] = defaultdict(list)

    def add(self, name: str, gist: Gist) -> None:
        number = len(self._texts)
        self._texts.append((name, gist))
        self._by_words[gist.words].append(number)
        for triple in gist.triples:
            self._by_triple[triple].append(number)

    def saying(self, new: Gist) -> Iterator[str]:
        """The names of those that say no less than `new`, in the order in which they were added."""
        found = set(self._by_words.get(new.words, ()))
        # What shares four fifths of its triples shares at least one of any fifth of them and one more.
        few = len(new.triples) - int(SIMILAR * len(new.triples)) + 1
        for triple in islice(new.triples, few):
            found.update(self._by_triple.get(triple, ()))
        for number in sorted(found):
            name, known = self._texts[number]
            if says_no_more(new, known):
                yield name
