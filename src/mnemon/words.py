"""The words of a text, as every database indexes them and every question asks for them.

A word is in lower case, without accents, and reduced to its stem if it is English; stop words are left out. What is
joined by a point, a dash or the like, as identifiers, versions and error codes are, is there whole and in its parts.
Of writing without spaces, every two neighbouring characters are a word. No word has white space in it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

_STOP_WORDS = frozenset(Path(__file__).with_name("stop_words.txt").read_text("utf-8").split())
_ENDINGS = frozenset(("s", "t", "d", "m", "re", "ve", "ll"))  # of it's, don't, I'd and the like
_RUN = re.compile(r"[^\W_]+(?:[._:/@#+'\-]+[^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_LONGEST = 100  # a longer run is no word, and is read in parts
_LONGEST_KEY = 200


def analyse(text: str) -> list[str]:
    """The words of a text, in order, repeats and all."""
    return [word for run in _RUN.findall(_folded(text)) for word in _words(run)]


def key_word(key: str) -> str:
    """The word under which a memory is found by its whole key; no text has it."""
    return "=" + "_".join(key.casefold().split())[:_LONGEST_KEY]


def key_words(question: str) -> list[str]:
    """The keys that a question may name: what it quotes, and what looks like an identifier."""
    quoted = (part for parts in _QUOTED.findall(question) for part in parts if part)
    runs = (run for run in _IDENTIFIER.findall(question) if not run.isalpha())
    return list(dict.fromkeys(key_word(each) for each in (*quoted, *runs)))


class Identifier(NamedTuple):
    """What a question names that looks like the name of one thing: an error code, a version, a file, a number."""

    whole: str
    """The word under which a text has it by itself."""
    parts: str
    """Its parts, with a space between them: a text has these words in a row if it is a part of a longer one."""
    key: str
    """The word under which a memory has it for its key."""


def identifiers(question: str) -> list[Identifier]:
    """The identifiers that a question names: not what only counts, or tells a year, a day or an hour."""
    found: dict[str, Identifier] = {}
    for run in _RUN.findall(_folded(question)):
        words = _words(run) if _NAME.search(run) and not _AMOUNT.fullmatch(run) else ()
        if words:
            found[words[-1]] = Identifier(words[-1], " ".join(words[:-1] or words), key_word(run))
    return list(found.values())


# Digits beside something else, or three of them; a capital after a small letter; two words with a sign between them.
_NAME = re.compile(r"\d\D|\D\d|\d{3}|[a-z][A-Z]|[^\W_]{2}[._:@#]+[^\W_]")
_AMOUNT = re.compile(r"(?:19|20)\d\d(?:'?s)?|\d+[A-Za-z]{1,3}|\d+(?:-[a-z]+)+")  # 1990s, 8th, 5pm, 3-year-old
_QUOTED = re.compile(r"\"([^\"]{1,200})\"|'([^']{1,200})'|`([^`]{1,200})`")
_IDENTIFIER = re.compile(r"[^\s,;!?\"'`()\[\]{}]+[^\s,;!?\"'`()\[\]{}.:]")


def _folded(text: str) -> str:
    """The text with compatible characters alike and without accents; capitals stay."""
    text = text.replace("\u2019", "'")
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


@lru_cache(65_536)
def _words(run: str) -> tuple[str, ...]:
    """The words of what is written without a space: its parts, and itself if it has several."""
    if _UNSPACED.search(run):
        return tuple(_pairs(run.lower()))
    head, _, ending = run.rpartition("'")
    if head and ending.lower() in _ENDINGS:
        run = head
    parts = [piece.lower() for part in _PART.findall(run) for piece in _CAMEL.split(part)]
    words = [_stemmed(part) for part in parts if part not in _STOP_WORDS]
    return (*words, run.lower()) if len(parts) > 1 and len(run) <= _LONGEST else tuple(words)


def _stemmed(word: str) -> str:
    """Only English is stemmed, and nothing with a digit."""
    return _stemmer()(word) if word.isascii() and word.isalpha() else word[:_LONGEST]


@cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - needed only once something is written

    return cast("Any", Stemmer).Stemmer("english", 0).stemWord


def _pairs(run: str) -> Iterable[str]:
    return (run[start : start + 2] for start in range(max(1, len(run) - 1)))
