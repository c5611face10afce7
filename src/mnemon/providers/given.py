"""The embedder that is none: the caller brings the vectors."""

from collections.abc import Sequence

from mnemon.errors import EmbedderUnavailable, InvalidSettings
from mnemon.model import EmbeddingModel
from mnemon.ports import Vector
from mnemon.providers.specifications import Specification


class GivenVectors:
    """Names the model and the dimension of vectors that somebody else makes: `given:NAME:DIMENSION`."""

    is_quick = True

    def __init__(self, specification: Specification) -> None:
        specification.check_options("version")
        name, _, dimension = specification.name.rpartition(":")
        if not name:
            raise InvalidSettings(
                f"the embedder {specification.text!r} names no model and dimension; write it as 'given:my-model:768'"
            )
        self.model = EmbeddingModel(
            name, specification.options.get("version", "1"), specification.whole_number(dimension)
        )

    def embed(self, texts: Sequence[str]) -> Vector:
        raise EmbedderUnavailable(
            f"vectors of {self.model} are given, not made: pass the vector along, or choose an embedder that can embed"
        )

    def close(self) -> None:
        """There is nothing to let go of."""
