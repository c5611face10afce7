"""The static embedder: the mean of learnt word vectors, with no network to run. It needs nothing but a processor.

The weights are those that the package `wordllama` carries. They are read from its files, because
importing it costs half a second and sets up logging for the whole program, and because the few lines
that it takes to use them are three times as fast here for a single sentence.
"""

import threading
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from mnemon.errors import InvalidSettings
from mnemon.model import EmbeddingModel
from mnemon.ports import Vector
from mnemon.providers.specifications import Specification
from mnemon.providers.weights import arrays_of

_NAME = "wordllama-l2-supercat"


class StaticEmbedder:
    """Embeds on the spot: tens of microseconds for a sentence. Words that it does not know are taken in pieces."""

    is_quick = True

    def __init__(self, specification: Specification) -> None:
        specification.check_options()
        with _loading:
            self._weights, self._tokenizer = _load(_folder())
        major, minor, *_ = version("wordllama").split(".")
        self.model = EmbeddingModel(_NAME, f"{major}.{minor}", self._weights.shape[1])

    def embed(self, texts: Sequence[str]) -> Vector:
        vectors = np.zeros((len(texts), self.model.dimension), np.float32)
        weights, encode = self._weights, self._tokenizer.encode_batch_fast
        for vector, text in zip(vectors, texts, strict=True):
            (encoded,) = encode([text], add_special_tokens=False)  # one at a time is faster than all, and than `encode`
            if ids := encoded.ids:
                np.add.reduce(weights.take(ids, axis=0, mode="clip"), axis=0, out=vector)
                vector /= len(ids)
        return vectors

    def close(self) -> None:
        """There is nothing to let go of."""


_loading = threading.Lock()
"""For all embedders of a process: they share what was read, which nothing changes, with 32 MiB of weights."""


@cache
def _load(folder: Path) -> tuple[Vector, Tokenizer]:
    weights = arrays_of(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return np.ascontiguousarray(weights, np.float32), tokenizer


def _folder() -> Path:
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'wordllama'", name="wordllama")
    folder = Path(spec.origin).parent
    if not (folder / "weights" / "l2_supercat_256.safetensors").is_file():
        raise InvalidSettings(
            f"wordllama {version('wordllama')} does not carry the weights of the embedder 'static': "
            "pip install 'wordllama>=0.4,<0.5'"
        )
    return folder
