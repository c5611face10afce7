"""An embedder for tests, which fails and dawdles when told to, and what every embedder and cache must do."""

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

from mnemon.clock import moment
from mnemon.errors import EmbedderUnavailable
from mnemon.model import EmbeddingModel, Space, SpaceStatus
from mnemon.ports import Embedder, EmbeddingCache, Vector


@dataclass(slots=True)
class _Fault:
    """Something that is to happen at some of the next calls."""

    action: Callable[[], None]
    skip: int
    times: int

    def is_due(self) -> bool:
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return self.times >= 0


class FakeEmbedder:
    """Makes vectors of any dimension from the words of a text: the more words two texts share, the nearer they are.

    The same text has the same vector in every process. Models of another name or version lie in another
    space. `calls` counts the calls, and `texts` are those that were embedded.
    """

    def __init__(self, dimension: int = 32, *, name: str = "fake", version: str = "1", is_quick: bool = False) -> None:
        self.model = EmbeddingModel(name, version, dimension)
        self.is_quick = is_quick
        self.calls = 0
        self.texts: list[str] = []
        self.is_closed = False
        self._faults: list[_Fault] = []

    def fail(self, error: Exception | None = None, *, times: int = 1, skip: int = 0) -> None:
        """Raise `error`, or else `EmbedderUnavailable`, at the next `times` calls, once `skip` more have passed."""

        def raise_it() -> None:
            raise error or EmbedderUnavailable("told to fail")

        self._faults.append(_Fault(raise_it, skip, times))

    def delay(self, seconds: float, *, times: int = 1, skip: int = 0) -> None:
        """Be late by `seconds` at the next calls."""
        self._faults.append(_Fault(lambda: time.sleep(seconds), skip, times))

    def heal(self) -> None:
        """Forget every fault that has not happened yet."""
        self._faults.clear()

    def embed(self, texts: Sequence[str]) -> Vector:
        self.calls += 1
        for fault in [fault for fault in self._faults if fault.is_due()]:
            fault.action()
        self.texts += texts
        vectors = np.zeros((len(texts), self.model.dimension), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                vector += _direction(self.model, word)
        return vectors

    def close(self) -> None:
        self.is_closed = True


@lru_cache(10_000)
def _direction(model: EmbeddingModel, word: str) -> Vector:
    seed = hashlib.sha256(f"{model} {word}".encode()).digest()
    return np.random.default_rng(int.from_bytes(seed)).standard_normal(model.dimension, np.float32)


_SENTENCES = (
    "The cat sat on the mat.",
    "Quarterly revenue rose by ten percent.",
    "Den lille katten sover på matten.",
    "def area(r): return 3.14159 * r ** 2",
    "ERR_CONN_REFUSED at 10.0.0.1:5432",
)
_ODD = ("", " ", "\n\t", "\x00", "é", "e\u0301", "日本語のテキスト", "🙂" * 40, "\u200b", "x" * 500, "<s> [CLS] </s>")


class EmbedderSuite:
    """Derive from it and override the fixture `embedder` to test an embedder of your own."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """The embedder under test."""
        raise NotImplementedError("override `embedder`")

    def test_each_text_has_a_row_in_its_place(self, embedder: Embedder) -> None:
        together = embedder.embed(_SENTENCES)
        assert together.shape == (len(_SENTENCES), embedder.model.dimension)
        assert together.dtype == np.float32
        for text, row in zip(_SENTENCES, together, strict=True):
            (alone,) = embedder.embed([text])
            assert cosine(alone, row) > 0.9999

    def test_the_order_of_many_texts_is_kept(self, embedder: Embedder) -> None:
        texts = [f"{number} {_SENTENCES[number % 5] * (number % 3)}" for number in range(80)]
        vectors = embedder.embed(texts)
        assert vectors.shape[0] == 80
        for number in (0, 1, 63, 64, 65, 79):
            assert cosine(embedder.embed([texts[number]])[0], vectors[number]) > 0.9999

    def test_a_text_has_always_the_same_vector(self, embedder: Embedder) -> None:
        first, second = (embedder.embed(_SENTENCES) for _ in range(2))
        assert np.allclose(first, second, atol=1e-5)

    def test_different_texts_have_different_vectors(self, embedder: Embedder) -> None:
        vectors = embedder.embed(_SENTENCES)
        likeness = [cosine(one, other) for n, one in enumerate(vectors) for other in vectors[n + 1 :]]
        assert max(likeness) < 0.99

    def test_texts_about_the_same_are_nearer(self, embedder: Embedder) -> None:
        question, answer, other = embedder.embed(
            ["Where did the cat sit?", "The cat sat on the mat.", "Quarterly revenue rose by ten percent."]
        )
        assert cosine(question, answer) > cosine(question, other) + 0.1

    def test_no_texts_have_no_rows(self, embedder: Embedder) -> None:
        embedder.embed(["a word"])
        assert embedder.embed([]).shape == (0, embedder.model.dimension)

    def test_odd_texts_are_embedded_too_and_disturb_no_other(self, embedder: Embedder) -> None:
        vectors = embedder.embed([*_ODD, _SENTENCES[0]])
        assert vectors.shape[0] == len(_ODD) + 1
        assert np.isfinite(vectors).all()
        assert cosine(vectors[-1], embedder.embed([_SENTENCES[0]])[0]) > 0.9999
        for text in _ODD:
            assert np.isfinite(embedder.embed([text])).all(), ascii(text)

    def test_a_long_text_is_embedded_as_far_as_it_goes(self, embedder: Embedder) -> None:
        (vector,) = embedder.embed(["The cat sat on the mat. " * 400])
        assert cosine(vector, embedder.embed(["The cat sat on the mat."])[0]) > 0.5

    def test_the_model_has_a_name_a_version_and_the_dimension_of_its_vectors(self, embedder: Embedder) -> None:
        vectors = embedder.embed(["a word"])
        model = embedder.model
        assert model.name
        assert model.version
        assert model.dimension == vectors.shape[1] > 0
        embedder.embed(["another"])
        assert embedder.model == model

    def test_several_threads_may_embed_at_once(self, embedder: Embedder) -> None:
        wanted = embedder.embed(_SENTENCES)
        with ThreadPoolExecutor(4) as threads:
            for found in threads.map(embedder.embed, [_SENTENCES] * 8):
                assert np.allclose(found, wanted, atol=1e-5)

    def test_it_may_be_closed_twice(self, embedder: Embedder) -> None:
        embedder.embed(["a word"])
        embedder.close()
        embedder.close()


class EmbeddingCacheSuite:
    """Derive from it and override the fixture `cache`, which must be empty, to test a cache of your own."""

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def cache(self) -> EmbeddingCache:
        """The cache under test."""
        raise NotImplementedError("override `cache`")

    async def test_what_was_put_is_found_again_to_the_bit(self, cache: EmbeddingCache) -> None:
        vectors = {f"digest{number}": vector for number, vector in enumerate(_random(450))}
        await cache.put(_space(1), vectors)
        found = await cache.get(_space(1), [*vectors, "unknown"])
        assert found.keys() == vectors.keys()
        assert all(np.array_equal(found[digest], vectors[digest]) for digest in vectors)
        assert {vector.dtype for vector in found.values()} == {np.dtype(np.float32)}

    async def test_what_is_put_again_takes_the_place(self, cache: EmbeddingCache) -> None:
        old, new = _random(2)
        await cache.put(_space(1), {"digest": old})
        await cache.put(_space(1), {"digest": new})
        assert np.array_equal((await cache.get(_space(1), ["digest"]))["digest"], new)

    async def test_models_are_kept_apart(self, cache: EmbeddingCache) -> None:
        one, other = _random(2)
        await cache.put(_space(1), {"digest": one})
        assert await cache.get(_space(2), ["digest"]) == {}
        await cache.put(_space(2), {"digest": other})
        assert np.array_equal((await cache.get(_space(1), ["digest"]))["digest"], one)

    async def test_a_vector_of_another_dimension_is_not_found(self, cache: EmbeddingCache) -> None:
        await cache.put(_space(1), {"digest": np.ones(5, np.float32)})
        assert await cache.get(_space(1), ["digest"]) == {}

    async def test_what_is_dropped_is_gone_and_nothing_else(self, cache: EmbeddingCache) -> None:
        vectors = {f"digest{number}": vector for number, vector in enumerate(_random(3))}
        for number in (1, 2):
            await cache.put(_space(number), vectors)
        await cache.drop(_space(1), ["digest0", "digest1", "unknown"])
        assert (await cache.get(_space(1), list(vectors))).keys() == {"digest2"}
        assert (await cache.get(_space(2), list(vectors))).keys() == vectors.keys()

    async def test_nothing_can_be_asked_put_and_dropped(self, cache: EmbeddingCache) -> None:
        await cache.put(_space(1), {})
        await cache.drop(_space(1), [])
        assert await cache.get(_space(1), []) == {}


def cosine(one: Vector, other: Vector) -> float:
    """How near two vectors of any length are: 1 for the same direction."""
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def _random(count: int) -> Vector:
    return np.random.default_rng(count).standard_normal((count, 24), np.float32)


def _space(number: int) -> Space:
    return Space(number, "fake", EmbeddingModel("fake", str(number), 24), SpaceStatus.ACTIVE, moment(0))
