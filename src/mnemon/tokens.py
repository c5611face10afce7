"""How many tokens a text is: counted with `rs-bpe`, or estimated where that is not installed.

`pip install mnemon[tokens]` brings the exact counts of OpenAI's encodings, which are also a fair guide for
other models. Loading an encoding takes 0.1 to 0.6 s, once in a process. Counting takes 0.05 µs a character of
prose, 0.4 µs of emoji or random letters, and 3 µs at worst, for a few thousand times the same sign.

The estimate adds up what each run of characters costs; `_COSTS` has the whole formula. Compared with o200k it is

- too high by 15 % for English prose and dialogue, 20 to 40 % for code, and 0 to 20 % for JSON, tables and logs;
- too high by 13 % for Norwegian, 35 to 50 % for German and Spanish, 40 % for Chinese, Japanese and emoji, and
  20 to 130 % for other scripts;
- too low, now and then, by up to 7 % for a paragraph of English, Norwegian or code and up to 20 % for a list of
  signs and names, and always for random letters and for rare Chinese characters, by 20 and 45 %.

For cl100k, what is not ASCII is taken to cost 1.7 times as much. An estimate takes 0.7 µs a character.
"""

import importlib
import math
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any, Protocol

from mnemon.errors import InvalidInput

MARK = "…"
"""Ends a text that was cut."""

_ENCODINGS = {"o200k": "o200k_base", "cl100k": "cl100k_base"}
_LONG_TEXT = 10_000
_LAP = 256
_LONG_RUN = re.compile(r"([^\w ])\1{4351,}")  # 16 laps and one more: what is kept, and what can be left out


class TokenCounter(Protocol):
    """Counts tokens. `exact` says whether the count is that of the encoding called `name`."""

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int:
        """How many tokens `text` is."""
        ...

    def cut(self, text: str, limit: int) -> str:
        """The text, or its beginning and `MARK` if it is more than `limit` tokens; never more than that.

        Cuts between tokens and between characters, an accent or a joined emoji being part of its character.
        Where not even the mark fits, the empty text.
        """
        ...


@cache
def counter(encoding: str = "o200k") -> TokenCounter:
    """The counter for an encoding, `o200k` or `cl100k`: exact if rs-bpe is installed, else an estimate."""
    if encoding not in _ENCODINGS:
        raise InvalidInput(f"there is no encoding {encoding!r}; use one of {', '.join(_ENCODINGS)}")
    try:
        openai = importlib.import_module("rs_bpe.bpe").openai
    except ImportError:
        return EstimatedTokens(encoding)
    return _CountedTokens(encoding, getattr(openai, _ENCODINGS[encoding])())


class _CountedTokens:
    """Exact counts by a tokenizer of rs-bpe."""

    exact = True

    def __init__(self, name: str, tokenizer: Any) -> None:
        self.name = name
        self._tokenizer = tokenizer

    def count(self, text: str) -> int:
        text = _sound(text)
        if len(text) < _LONG_TEXT:
            return self._tokenizer.count(text)
        shorter, left_out = self._shorten_runs(text)
        return self._tokenizer.count(shorter) + left_out

    def cut(self, text: str, limit: int) -> str:
        text = _sound(text)
        beginning = self._beginning(text, limit)
        tokens = self._tokenizer.encode(beginning)
        if beginning is text and len(tokens) <= limit:
            return text
        for kept in range(limit - self.count(MARK), -1, -1):
            whole: str | None = self._tokenizer.decode(tokens[:kept])  # None inside a character
            if whole is not None:
                shown = _ended(text, len(whole))
                if self.count(shown) <= limit:
                    return shown
        return ""

    def _beginning(self, text: str, limit: int) -> str:
        """As much of `text` as is surely enough for `limit` tokens, so that a long rest costs nothing."""
        length = 8 * max(limit, 0) + 64
        while length < len(text) and self._tokenizer.count_till_limit(text[:length], max(limit, 0)) is not None:
            length *= 2
        return text if length >= len(text) else text[:length]

    def _shorten_runs(self, text: str) -> tuple[str, int]:
        """The text with its very long runs of one sign shortened, and how many tokens that left out.

        The tokenizer needs seconds for a megabyte of one sign. Within a long run the tokens repeat, so whole
        laps can be left out and counted once.
        """
        left_out = 0

        def shorten(run: re.Match[str]) -> str:
            nonlocal left_out
            sign, length = run[1], run.end() - run.start()
            laps = length // _LAP - 16
            count = self._tokenizer.count
            left_out += laps * (count(sign * 16 * _LAP) - count(sign * 15 * _LAP))
            return sign * (length - laps * _LAP)

        return _LONG_RUN.sub(shorten, text), left_out


_COSTS: dict[str, tuple[str, float, float, float]] = {
    # A kind of run: its pattern; what its first character costs, each up to the sixth, and each after that.
    "joined_space": (r" (?=[^\s0-9])", 0.0, 0.0, 0.0),
    "blob": (r"(?=[A-Za-z+/]*+[0-9])(?=[0-9+/]*+[A-Za-z])[A-Za-z0-9+/=]{24,}", 0.75, 0.75, 0.75),
    "long_word": (r"[A-Z]?[a-z]{16,}+", 1.0, 0.45, 0.45),
    "word": (r"[A-Z]?[a-z]++", 1.0, 0.0, 0.18),
    "capitals": (r"[A-Z]++", 1.0, 0.3, 0.35),
    "digits": (r"[0-9]{1,3}+", 1.0, 0.0, 0.0),
    "space": (r"\s+", 1.0, 0.0, 0.0),
    "signs": (r"(?P<one>[!-~])(?P=one)*", 1.0, 0.12, 0.12),
    "accented": (r"[À-ɏ]", 2.2, 0.0, 0.0),
    "alphabet": (r"[\u0250-\u1fff]+", 1.5, 0.5, 0.5),
    "symbol": (r"[\u2000-\u2fff]", 1.5, 0.0, 0.0),
    "ideograph": (r"[\u3000-\uffff]", 1.1, 0.0, 0.0),
    "other": (r".", 2.5, 0.0, 0.0),
}
_RUNS = re.compile("|".join(f"(?P<{kind}>{costs[0]})" for kind, costs in _COSTS.items()), re.DOTALL)
_NOT_ASCII = {"accented", "alphabet", "symbol", "ideograph", "other"}
_FACTORS = {"o200k": 1.0, "cl100k": 1.7}  # how much more a character costs that is not ASCII


class EstimatedTokens:
    """An estimate that is rather too high than too low; see the module for how far off it is."""

    exact = False

    def __init__(self, encoding: str = "o200k") -> None:
        self.name = f"estimate of {encoding}"
        factor = _FACTORS[encoding]
        self._costs = {
            kind: tuple(cost * (factor if kind in _NOT_ASCII else 1.0) for cost in costs)
            for kind, (_, *costs) in _COSTS.items()
        }

    def count(self, text: str) -> int:
        return math.ceil(sum(cost for _, cost in self._runs(text)) - 1e-6)

    def cut(self, text: str, limit: int) -> str:
        if len(text) < 3 * limit and self.count(text) <= limit:
            return text
        room, spent, end = limit - self.count(MARK), 0.0, 0
        for run_end, cost in self._runs(text):
            spent += cost
            if spent > limit:
                return _ended(text, end) if room >= 0 else ""
            if spent <= room:
                end = run_end
        return text

    def _runs(self, text: str) -> Iterator[tuple[int, float]]:
        """Where each run of the text ends, and what it costs."""
        costs = self._costs
        for run in _RUNS.finditer(text):
            first, near, far = costs[run.lastgroup or "other"]
            length = run.end() - run.start()
            further = length - 1
            yield run.end(), first + near * further if further < 6 else first + near * 5 + far * (further - 5)


def _sound(text: str) -> str:
    """The text without halves of characters, which no encoding has."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


def _ended(text: str, end: int) -> str:
    """The text up to `end`, or to where its last whole character ends before, and the mark."""
    while 0 < end < len(text) and _is_joined(text[end - 1], text[end]):
        end -= 1
    return text[:end].rstrip() + MARK


def _is_joined(before: str, after: str) -> bool:
    """Whether two code points are parts of one character: an accent, a skin colour, a joined emoji."""
    return (
        "\u200d" in (before, after)
        or "\ufe00" <= after <= "\ufe0f"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or unicodedata.combining(after) > 0
    )
