"""Embeddings of a model that Ollama runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from mnemon.providers.http import HttpEmbedder
from mnemon.providers.specifications import Specification
from mnemon.settings import Settings


class OllamaEmbedder(HttpEmbedder):
    """Asks `ollama:MODEL` at the setting `ollama_url`. Ollama itself cuts what is too long for the model."""

    path = "/api/embed"
    example = "nomic-embed-text"

    def __init__(self, specification: Specification, settings: Settings) -> None:
        super().__init__(specification, settings.ollama_url, settings.embedder_timeout)

    def request(self, name: str, texts: Sequence[str], dimension: int | None) -> Mapping[str, Any]:
        wanted = {} if dimension is None else {"dimensions": dimension}
        return {"model": name, "input": list(texts), "truncate": True, **wanted}

    def response(self, answer: Any) -> Any:
        return answer["embeddings"]
