"""Text search among many memories: what a question of common words costs beside one of rare words."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks import planting
from benchmarks.embedded import url_of
from benchmarks.measuring import Contest, Contestant, Result, Round, Target, run, timed, turns
from benchmarks.progress import Bar
from benchmarks.texts import Writer
from mnemon.model import EmbeddingModel
from mnemon.settings import Settings
from mnemon.words import analyse

LIMIT = 100  # as deep as `recall` looks
TARGET = Target("≤ 5 ×", {"common": 5.0})
_WORDS = 3
_COMMON = 40  # words


def measure(folder: Path, count: int, rounds: int) -> Result:
    """Questions of three words each, over all memories: rare words are the floor."""
    texts = Writer().texts(count)
    settings = Settings(url=url_of(folder / "words.db"))
    with planting.ground(settings, "bench", EmbeddingModel("bench", "1", 2)) as ground:
        with Bar("words") as bar:
            ground.plant(texts, np.tile(np.array([1, 0], np.float32), (count, 1)), bar)
        questions = _questions(texts)
        contest = Contest(
            f"text_{count}",
            f"text search, {count:,} memories",
            {name: _asking(ground, asked) for name, asked in questions.items()},
            "three rare words",
            TARGET,
        )
        with Bar("words") as bar:
            bar.begin(turns([contest], rounds))
            [result] = run([contest], rounds, bar.tick)
    for path in folder.glob("words.db*"):
        path.unlink()
    return result


def _questions(texts: Sequence[str]) -> dict[str, Callable[[np.random.Generator], list[str]]]:
    counts = Counter(word for text in texts for word in set(analyse(text)))
    ranked = [word for word, _ in counts.most_common()]
    common, rare = ranked[:_COMMON], [word for word in ranked if counts[word] <= max(20, len(texts) // 2000)]

    def some(words: Sequence[str], chance: np.random.Generator, number: int) -> list[str]:
        return [words[int(place)] for place in chance.choice(len(words), number, replace=False)]

    return {
        "floor": lambda chance: some(rare, chance, _WORDS),
        "common": lambda chance: some(common, chance, _WORDS),
        "mixed": lambda chance: some(common, chance, _WORDS - 1) + some(rare, chance, 1),
    }


def _asking(ground: planting.Ground, asked: Callable[[np.random.Generator], list[str]]) -> Contestant:
    def contestant(number: int) -> Round:
        chance = np.random.default_rng(number)
        inputs = [(asked(chance), [""], LIMIT) for _ in range(20)]
        return timed(ground.search_words, inputs)

    return contestant
