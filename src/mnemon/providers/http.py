"""What embedders behind an HTTP endpoint have in common."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from mnemon.errors import DimensionMismatch, EmbedderUnavailable
from mnemon.model import EmbeddingModel
from mnemon.ports import Vector
from mnemon.providers.endpoint import Answer, Endpoint
from mnemon.providers.specifications import Specification
from mnemon.sql import chunks

_LOG = logging.getLogger("mnemon.embedding")
_REFUSED = {400, 413, 422, 500}  # perhaps because of a text: some servers call one that is too long their own error
_SHORTER = (2000, 500)  # characters; what is too much for one model is little for another
_HARMLESS = ["text"]


class HttpEmbedder(ABC):
    """Asks an endpoint for vectors, a batch at a time. Whatever it answers instead is `EmbedderUnavailable`.

    With all its tries (see `Endpoint`) a batch never takes longer than the timeout. A text that is too long for it
    is cut. One that it refuses even so, though it takes others, gets zeros, as do texts without a word, which are
    not sent.
    """

    is_quick = False
    batch = 64

    def __init__(self, specification: Specification, url: str, timeout: float, key: str | None = None) -> None:
        options = specification.options
        specification.check_options("model", "version", "dimension", "url")
        name = specification.require_name(f"{specification.provider}:{self.example}")
        self._name = name
        self._declared = specification.whole_number(options["dimension"]) if "dimension" in options else None
        self._model = EmbeddingModel(options.get("model", name), options.get("version", "1"), self._declared or 0)
        self._endpoint = Endpoint(specification, url, self.path, timeout, key=key, unavailable=EmbedderUnavailable)

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    def embed(self, texts: Sequence[str]) -> Vector:
        worded = [number for number, text in enumerate(texts) if text.strip()]
        parts = [self._embed_batch([texts[number] for number in batch]) for batch in chunks(worded, self.batch)]
        vectors = np.zeros((len(texts), self._model.dimension), np.float32)
        if parts:
            vectors[worded] = np.concatenate(parts)
        return vectors

    def close(self) -> None:
        self._endpoint.close()

    # -- what differs between protocols

    path: str
    example: str

    @abstractmethod
    def request(self, name: str, texts: Sequence[str], dimension: int | None) -> Mapping[str, Any]:
        """The question; `dimension` if the settings ask for one."""

    @abstractmethod
    def response(self, answer: Any) -> Any:
        """The vectors in the answer, in the order of the texts; may raise LookupError, TypeError or ValueError."""

    # -- asking

    def _embed_batch(self, texts: Sequence[str]) -> Vector:
        response = self._ask(texts)
        if response.status in _REFUSED and self._takes_others():
            return np.stack([self._embed_alone(text) for text in texts])
        if response.status != 200:
            raise EmbedderUnavailable(self._endpoint.complaint(response))
        return self._read(response, len(texts))

    def _takes_others(self) -> bool:
        """Whether the endpoint answers at all, so that it must be a text that it does not like."""
        response = self._ask(_HARMLESS)
        return response.status == 200 and len(self._read(response, 1)) == 1

    def _embed_alone(self, text: str) -> Vector:
        """The vector of a text that is perhaps the one; of so much of it as the endpoint takes."""
        response = self._ask([text])
        for length in _SHORTER:
            if response.status != 200 and len(text) > length:
                response = self._ask([text[:length]])
        if response.status == 200:
            return self._read(response, 1)[0]
        _LOG.warning("a text of %d characters gets no vector: %s", len(text), self._endpoint.complaint(response))
        return np.zeros(self._model.dimension, np.float32)

    def _ask(self, texts: Sequence[str]) -> Answer:
        return self._endpoint.ask(self.request(self._name, texts, self._declared))

    def _read(self, response: Answer, count: int) -> Vector:
        try:
            vectors = np.array(self.response(orjson.loads(response.body)), np.float32)
        except (LookupError, TypeError, ValueError) as error:
            raise EmbedderUnavailable(
                f"{self._endpoint.url} did not answer with vectors: {response.text[:200]!r}"
            ) from error
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
            raise EmbedderUnavailable(
                f"{self._endpoint.url} answered with an array of shape {vectors.shape} to {count} texts"
            )
        if not self._model.dimension:
            self._model = EmbeddingModel(self._model.name, self._model.version, vectors.shape[1])
        if vectors.shape[1] != self._model.dimension:
            raise DimensionMismatch(
                f"{self._endpoint.url} answered with {vectors.shape[1]} dimensions, and is not the model {self._model}"
            )
        return vectors
