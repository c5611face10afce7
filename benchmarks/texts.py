"""Texts that nobody wrote, with words as common and as rare as they are in English."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

_SHIFT = 2.7  # of Zipf's law as Mandelbrot put it
_TOPICS = 500
_TOPIC_WORDS = 40
_ON_TOPIC = 0.4
_SHORTEST, _LONGEST = 8, 30


@cache
def vocabulary() -> tuple[str, ...]:
    """The words that the static embedder knows, the more common first, as its tokenizer learnt them in that order."""
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("pip install wordllama", name="wordllama")
    path = Path(spec.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
    known = Tokenizer.from_file(str(path)).get_vocab()
    words = sorted((number, token[1:]) for token, number in known.items() if token.startswith("▁"))
    return tuple(word for _, word in words if len(word) > 2 and word.isascii() and word.isalpha() and word.islower())


class Writer:
    """Writes texts, the same ones every time for the same seed. Each is about something: words come in company."""

    def __init__(self, seed: int = 7) -> None:
        self._chance = np.random.default_rng(seed)
        self._words = np.array(vocabulary())
        odds = 1 / (np.arange(len(self._words)) + 1 + _SHIFT)
        self._sums = np.cumsum(odds / odds.sum())
        self._topics = self._chance.integers(200, len(self._words), (_TOPICS, _TOPIC_WORDS))

    def text(self) -> str:
        length = int(self._chance.integers(_SHORTEST, _LONGEST + 1))
        places = np.searchsorted(self._sums, self._chance.random(length)).clip(max=len(self._words) - 1)
        topic = self._topics[self._chance.integers(_TOPICS)]
        on_topic = self._chance.random(length) < _ON_TOPIC
        places[on_topic] = topic[self._chance.integers(_TOPIC_WORDS, size=int(on_topic.sum()))]
        return " ".join(self._words[places].tolist())

    def texts(self, count: int) -> list[str]:
        return [self.text() for _ in range(count)]


def question_about(text: str, seed: int) -> str:
    """Some of a text's words in another order, as somebody asks who remembers it dimly."""
    words = list(dict.fromkeys(text.split(" ")))
    chosen = np.random.default_rng(seed).permutation(len(words))[:6]
    return " ".join(words[place] for place in chosen)
