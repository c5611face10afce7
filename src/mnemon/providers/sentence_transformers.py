"""Any model of the sentence-transformers library, on whatever device torch finds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from huggingface_hub import try_to_load_from_cache
from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

from mnemon.errors import EmbedderUnavailable
from mnemon.model import EmbeddingModel
from mnemon.ports import Vector
from mnemon.providers.specifications import Specification
from mnemon.providers.weights import HUB_OWNER, WEIGHTS, version_of

_BATCH = 32


class SentenceTransformersEmbedder:
    """Runs `sentence_transformers:NAME`: a folder, or a model of the hub, downloaded when it is first used.

    The version is made of the weights' digest, so that it is the same space as `onnx` with the same weights.
    """

    is_quick = False

    def __init__(self, specification: Specification) -> None:
        specification.check_options("model", "version")
        name = specification.require_name("sentence_transformers:all-MiniLM-L6-v2")
        try:
            self._model = cast("Any", SentenceTransformer)(name)
        except (OSError, ValueError) as error:
            raise EmbedderUnavailable(f"the model {name!r} cannot be loaded: {error}") from error
        options = specification.options
        version = options.get("version") or _version(name)
        dimension = self.embed(["a"]).shape[1]
        self.model = EmbeddingModel(options.get("model", name.rstrip("/").rpartition("/")[2]), version, dimension)

    def embed(self, texts: Sequence[str]) -> Vector:
        found = self._model.encode(list(texts), batch_size=_BATCH, convert_to_numpy=True, show_progress_bar=False)
        return np.asarray(found, np.float32).reshape(len(texts), -1 if texts else self.model.dimension)

    def close(self) -> None:
        """Torch frees the model when the embedder goes."""


def _version(name: str) -> str:
    folder = Path(name)
    repository = name if "/" in name else f"{HUB_OWNER}/{name}"
    file = folder / WEIGHTS if folder.is_dir() else try_to_load_from_cache(repository, WEIGHTS)
    return version_of(Path(file)) if isinstance(file, str | Path) and Path(file).is_file() else "1"
