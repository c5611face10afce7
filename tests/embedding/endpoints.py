"""Real HTTP endpoints that embed with the static embedder, in the protocols of OpenAI and Ollama."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mnemon import Settings
from mnemon.providers.loading import load
from tests.endpoints import Response, ScriptedEndpoint

MODELS = ("static-model", "nomic-embed-text")


class Endpoint(ScriptedEndpoint):
    """Embeds; or answers as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.dimension: int | None = None
        self.longest: int | None = None
        self.refusal = 400
        self._embedder = load("static", Settings())

    @property
    def settings(self) -> Settings:
        """Settings that lead to it."""
        return Settings(openai_url=f"{self.url}/v1", ollama_url=self.url, embedder_timeout=5.0)

    def respond(self, path: str, body: dict[str, Any]) -> Response:
        if body["model"] not in MODELS:
            return 404, {}, json.dumps({"error": f"model {body['model']!r} not found"}).encode()
        if any(not text for text in body["input"]):
            return 400, {}, b'{"error": "input cannot be an empty string"}'
        if self.longest and max(map(len, body["input"])) > self.longest:
            return self.refusal, {}, b'{"error": "the input is too long"}'
        if any("forbidden" in text for text in body["input"]):
            return 422, {}, b'{"error": "content policy"}'
        vectors = self._embedder.embed(body["input"])
        dimension = body.get("dimensions") or self.dimension
        vectors = np.resize(vectors, (len(vectors), dimension)) if dimension else vectors
        if path == "/v1/embeddings":
            data = [{"object": "embedding", "index": n, "embedding": v.tolist()} for n, v in enumerate(vectors)]
            return 200, {}, json.dumps({"object": "list", "data": data[::-1], "model": body["model"]}).encode()
        if path == "/api/embed":
            return 200, {}, json.dumps({"model": body["model"], "embeddings": vectors.tolist()}).encode()
        return 404, {}, b"404 page not found"


@contextmanager
def running() -> Iterator[Endpoint]:
    """An endpoint that is up."""
    endpoint = Endpoint()
    endpoint.start()
    try:
        yield endpoint
    finally:
        endpoint.stop()
