"""Finding memories by their vectors: what is alike on every database."""

from collections.abc import Iterable

from mnemon.errors import DimensionMismatch
from mnemon.model import Space
from mnemon.ports import Vector

DIGITS = 6
"""Of cosines. Further ones differ from one way of adding up to another."""


def check_dimension(space: Space, vector: Vector) -> None:
    """Refuse a vector of another space."""
    if vector.shape != (space.model.dimension,):
        raise DimensionMismatch(
            f"a vector of shape {vector.shape} cannot be compared with those of {space.model}: "
            "embed with the model that the space was made with"
        )


def rounded(scores: Iterable[float]) -> list[float]:
    """Cosines without the digits that say nothing."""
    return [round(float(score), DIGITS) for score in scores]
