"""Embeddings of OpenAI, and of the many servers that speak its protocol."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from mnemon.providers.http import HttpEmbedder
from mnemon.providers.specifications import Specification
from mnemon.settings import Settings


class OpenaiEmbedder(HttpEmbedder):
    """Asks `openai:MODEL` at the setting `openai_url`, with `openai_api_key`."""

    path = "/embeddings"
    example = "text-embedding-3-small"

    def __init__(self, specification: Specification, settings: Settings) -> None:
        super().__init__(specification, settings.openai_url, settings.embedder_timeout, settings.openai_api_key)

    def request(self, name: str, texts: Sequence[str], dimension: int | None) -> Mapping[str, Any]:
        wanted = {} if dimension is None else {"dimensions": dimension}
        return {"model": name, "input": list(texts), "encoding_format": "float", **wanted}

    def response(self, answer: Any) -> Any:
        return [item["embedding"] for item in sorted(answer["data"], key=itemgetter("index"))]
