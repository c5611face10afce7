"""What embedders behind an HTTP endpoint have in common."""

import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import orjson

from mnemon.errors import DimensionMismatch, EmbedderUnavailable, InvalidSettings
from mnemon.model import EmbeddingModel
from mnemon.ports import Vector
from mnemon.providers.specifications import Specification
from mnemon.sql import chunks

_LOG = logging.getLogger("mnemon.embedding")
_TRIES = 3
_FIRST_PAUSE = 0.2
_TRY_AGAIN = {429, 500, 502, 503, 504}
_REFUSED = {400, 413, 422, 500}  # perhaps because of a text: some servers call one that is too long their own error
_SHORTER = (2000, 500)  # characters; what is too much for one model is little for another
_HARMLESS = ["text"]


class HttpEmbedder(ABC):
    """Asks an endpoint for vectors, a batch at a time. Whatever it answers instead is `EmbedderUnavailable`.

    It may say to come again later (429) or fail (5xx): it is then asked again after a pause, three times in
    all and never for longer than the timeout. A text that is too long for it is cut. One that it refuses
    even so, though it takes others, gets zeros, as do texts without a word, which are not sent.
    """

    is_quick = False
    batch = 64

    def __init__(self, specification: Specification, url: str, timeout: float, key: str | None = None) -> None:
        options = specification.options
        specification.check_options("model", "version", "dimension", "url")
        name = specification.require_name(f"{specification.provider}:{self.example}")
        chosen = options.get("url", url)
        self._name = name
        self._declared = specification.whole_number(options["dimension"]) if "dimension" in options else None
        self._model = EmbeddingModel(options.get("model", name), options.get("version", "1"), self._declared or 0)
        self._timeout = timeout
        self._key = key if _origin(chosen) == _origin(url) else None  # never sent elsewhere than it was given for
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if self._key else {})}
        self._url = _checked(chosen, specification).rstrip("/") + self.path
        self._client = httpx.Client(headers=headers)

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
        self._client.close()

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
        if response.status_code in _REFUSED and self._takes_others():
            return np.stack([self._embed_alone(text) for text in texts])
        if response.status_code != 200:
            raise EmbedderUnavailable(self._complaint(response))
        return self._read(response, len(texts))

    def _takes_others(self) -> bool:
        """Whether the endpoint answers at all, so that it must be a text that it does not like."""
        response = self._ask(_HARMLESS)
        return response.status_code == 200 and len(self._read(response, 1)) == 1

    def _embed_alone(self, text: str) -> Vector:
        """The vector of a text that is perhaps the one; of so much of it as the endpoint takes."""
        response = self._ask([text])
        for length in _SHORTER:
            if response.status_code != 200 and len(text) > length:
                response = self._ask([text[:length]])
        if response.status_code == 200:
            return self._read(response, 1)[0]
        _LOG.warning("a text of %d characters gets no vector: %s", len(text), self._complaint(response))
        return np.zeros(self._model.dimension, np.float32)

    def _ask(self, texts: Sequence[str]) -> httpx.Response:
        """The endpoint's answer, whatever it is, once it has had its tries."""
        body = orjson.dumps(self.request(self._name, texts, self._declared))
        deadline = time.monotonic() + self._timeout
        attempt = 1
        while True:
            response = self._try_to_ask(body, deadline)
            pause = _pause(response, attempt)
            is_last = attempt == _TRIES or time.monotonic() + pause >= deadline
            if is_last or response.status_code not in _TRY_AGAIN:
                return response
            time.sleep(pause)
            attempt += 1

    def _try_to_ask(self, body: bytes, deadline: float) -> httpx.Response:
        try:
            return self._client.post(self._url, content=body, timeout=max(0.05, deadline - time.monotonic()))
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            return httpx.Response(503, text=f"the connection broke: {error}")  # perhaps only an old one: ask again
        except httpx.TimeoutException as error:
            raise EmbedderUnavailable(f"{self._url} did not answer within {self._timeout} s") from error
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise EmbedderUnavailable(f"{self._url} cannot be reached: {reason}") from error
        except RuntimeError as error:
            raise EmbedderUnavailable(f"{self._url} was closed") from error

    def _read(self, response: httpx.Response, count: int) -> Vector:
        try:
            vectors = np.array(self.response(orjson.loads(response.content)), np.float32)
        except (LookupError, TypeError, ValueError) as error:
            raise EmbedderUnavailable(f"{self._url} did not answer with vectors: {response.text[:200]!r}") from error
        if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
            raise EmbedderUnavailable(f"{self._url} answered with an array of shape {vectors.shape} to {count} texts")
        if not self._model.dimension:
            self._model = EmbeddingModel(self._model.name, self._model.version, vectors.shape[1])
        if vectors.shape[1] != self._model.dimension:
            raise DimensionMismatch(
                f"{self._url} answered with {vectors.shape[1]} dimensions, which is not the model {self._model}"
            )
        return vectors

    def _complaint(self, response: httpx.Response) -> str:
        said = response.text[:200]
        if self._key:
            said = said.replace(self._key, "…")
        remedy = {401: "; check the API key", 403: "; check the API key", 404: f"; check the model {self._name!r}"}
        return f"{self._url} answered {response.status_code}{remedy.get(response.status_code, '')}: {said}"


def _pause(response: httpx.Response, attempt: int) -> float:
    """How long to wait: as long as the endpoint asks for, or twice as long as the last time."""
    wanted = response.headers.get("retry-after", "")
    return float(wanted) if wanted.isdecimal() else random.uniform(0.5, 1.0) * _FIRST_PAUSE * 2.0**attempt


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url)[:2]


def _checked(url: str, specification: Specification) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidSettings(f"the embedder {specification.text!r} names no URL that begins with http:// or https://")
    if parts.username or parts.password:
        raise InvalidSettings("a URL in `embedder` must not hold a password: it is stored with the vectors")
    return url
