"""Codes of vectors, one bit a dimension, and how a query is compared with them.

A code is the signs of a vector after a fixed random rotation. From the distance of two codes follows, with a known
chance of error, what the cosine of the vectors can be at best.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Planes: TypeAlias = NDArray[np.uint64]
Bytes: TypeAlias = NDArray[np.uint8]

Counts: TypeAlias = NDArray[np.uint8] | NDArray[np.int16]

LONGEST = 9216  # codes that are compared at a time: the buffers stay in the cache
_BITS = (1, 2, 4)


def _count_by_table(words: Planes, out: Bytes) -> Bytes:
    """`np.bitwise_count`, for numpy before 2.0."""
    quarters = _ONES.take(words.view(np.uint16)).view(np.uint32)
    np.right_shift(quarters * np.uint32(0x01010101), np.uint32(24), out=out, casting="unsafe")
    return out


_ONES: Bytes = np.unpackbits(np.arange(65536, dtype=np.uint16).view(np.uint8)).reshape(-1, 16).sum(1, dtype=np.uint8)
_count_ones: Callable[..., Bytes] = getattr(np, "bitwise_count", _count_by_table)


@cache  # it takes a tenth of a second
def _rotation(dimension: int) -> Floats:
    # RandomState promises the same numbers in every version of numpy.
    square, triangle = np.linalg.qr(np.random.RandomState(dimension).standard_normal((dimension, dimension)))
    return np.ascontiguousarray(square * np.sign(np.diag(triangle)), dtype=np.float32)


class SignCodes:
    """Turns vectors of one dimension into codes, and a query into what codes are compared with.

    The rotation is the same in every process, so codes may be stored. Without it, a coordinate that is large in all
    vectors would waste its bit, and the chances below would not hold.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.words = -(-dimension // 64)
        self._rotation = _rotation(dimension)

    def encode(self, vectors: Floats) -> Bytes:
        """One code of `8 * words` bytes a vector."""
        return self._pack(vectors @ self._rotation >= 0)

    def question(self, query: Floats) -> "Question":
        return Question(query @ self._rotation, self._pack)

    def _pack(self, bits: NDArray[np.bool_]) -> Bytes:
        packed = np.zeros((len(bits), 8 * self.words), np.uint8)
        packed[:, : -(-self.dimension // 8)] = np.packbits(bits, axis=1)
        return packed


class Question:
    """A query, compared with codes: quickly by counting bits, or more finely with weights.

    The weights are the query's coordinates in whole steps of 1 to 7. So they too are counted bit by bit: first the
    signs that differ where the weight is odd, then where it has a 2, then where it has a 4.
    """

    def __init__(self, rotated: Floats, pack: Callable[[NDArray[np.bool_]], Bytes]) -> None:
        self._rotated = rotated
        size = np.abs(rotated)
        self._counted = size >= np.partition(size, -_counted(len(size)))[-_counted(len(size))]
        self._steps = np.minimum(size * (7 / (2.5 * np.sqrt(np.mean(size**2)))) + 0.5, 7).astype(np.uint8)
        masks = [self._counted, *(self._steps & bit != 0 for bit in _BITS)]
        signs, *masks = pack(np.stack([rotated >= 0, *masks])).view(np.uint64)
        self._signs, self._masks = signs[:, None], [mask[:, None] for mask in masks]
        self._differing = np.empty((len(signs), LONGEST), np.uint64)
        self._counts = np.empty((len(signs), LONGEST), np.uint8)

    def count(self, planes: Planes, out: Bytes) -> None:
        """How many of the counted signs differ, for each code; codes are given word by word, at most LONGEST."""
        rows = planes.shape[1]
        differing = self._differing[:, :rows]
        np.bitwise_xor(planes, self._signs, out=differing)
        self._sum(differing, self._masks[0], out)

    def weigh(self, planes: Planes) -> NDArray[np.int16]:
        """The sum of the weights of signs that agree, less those of signs that differ, for any number of codes."""
        weights = np.full(planes.shape[1], self._steps.sum(), np.int16)
        for start in range(0, planes.shape[1], LONGEST):
            part = planes[:, start : start + LONGEST] ^ self._signs
            counts = np.empty(part.shape[1], np.int16)
            for bit, mask in zip(_BITS, self._masks[1:], strict=True):
                weights[start : start + LONGEST] -= 2 * bit * self._sum(part, mask, counts)
        return weights

    def _sum(self, differing: Planes, mask: Planes, out: Counts) -> Counts:
        masked, counts = self._differing[:, : len(out)], self._counts[:, : len(out)]
        np.bitwise_and(differing, mask, out=masked)
        _count_ones(masked, out=counts)
        return np.add.reduce(counts, axis=0, dtype=out.dtype, out=out)

    def farthest(self, score: float, doubt: float) -> int:
        """The largest count that a vector of this score has, unless it is off by more than `doubt` deviations."""
        counted = self._counted.astype(np.float32)
        mean, deviation = self._expected(counted, score)
        return int((counted.sum() - mean + doubt * deviation) / 2)

    def lightest(self, score: float, doubt: float) -> float:
        """The smallest weight that a vector of this score has, unless it is off by more than `doubt` deviations."""
        mean, deviation = self._expected(self._steps.astype(np.float32), score)
        return mean - doubt * deviation

    def _expected(self, weights: Floats, score: float) -> tuple[float, float]:
        """Mean and deviation of the weight of a vector with this score that is otherwise random.

        Each sign leans to that of the query, more where the query is large. That the score is known to be this one,
        and not only on average, makes the deviation smaller.
        """
        size, cosine = np.abs(self._rotated), min(score, 0.999)
        bend = size * (cosine * np.sqrt(len(size) / 2 / (1 - cosine**2)))
        lean = np.tanh(1.12838 * bend + 0.10277 * bend**3)  # the error function, to a thousandth
        known = weights @ (size * np.exp(-(bend**2))) * np.sqrt(2 / np.pi)
        variance = weights**2 @ (1 - lean**2) - known**2
        return float(weights @ lean), float(np.sqrt(max(variance, 0.0)))


def _counted(dimension: int) -> int:
    """How many coordinates of a query are counted.

    Small ones tell less than they blur: counting the larger 54 % is the best that can be done with one weight for
    all. No more than 255 are, so that a count is a byte.
    """
    return min(255, max(1, round(0.54 * dimension)))
