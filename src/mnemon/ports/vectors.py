"""Stores of vectors outside the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mnemon.facts import FactFilter
from mnemon.model import Match, StoreDescription

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector: TypeAlias = npt.NDArray[np.float32]
else:
    Vector = Any  # numpy is slow to import, and needed only once something is embedded
"""One vector, or a matrix with a row for each: 32-bit floats, of length 1 where it is stored or compared."""


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """The vector of a live memory as a vector store outside the database keeps it."""

    id: str
    """A UUID made of the memory's namespace and key: a new version takes the place of the old one."""
    memory_id: int
    """The version that the vector is of."""
    embedding: Vector
    facts: tuple[str, ...]
    """What filters are answered from: see `facts`."""
    trust: float
    words: tuple[str, ...]
    """The analysed text, for stores that search text too."""
    about: Mapping[str, str | int]
    """Namespace, key, version, and the embedding model's name, version and dimension."""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """What a vector store outside the database is asked for."""

    embedding: Vector
    limit: int
    where: FactFilter
    """Met exactly: `facts.accepts` says what it means, `facts.normal` gives it a form that any store can take."""
    min_trust: float = 0.0
    words: tuple[str, ...] = ()
    """If any, a store that searches text too mixes both scores in its own way."""


class VectorMemory(Protocol):
    """A vector store outside the database, opened for one space. It follows the journal.

    Its methods are plain functions that may block: Mnemon calls them from a thread, several at once.
    They raise `StoreUnavailable` when the store cannot be reached or does not answer in time,
    `StoreClosed` after `close`, and another `StoreError` when the store fails. Opening reaches nothing
    yet: the first call connects and sets up what the space needs, and if it fails the next one tries
    again. Nothing is repeated behind the caller's back, as a late write could undo a later one.
    """

    def store(self, records: Sequence[VectorRecord]) -> None:
        """Keep the records; one with the same id is replaced, and within a batch the last one stays.

        They can be found when this returns. If it raises, any of them may have been kept.
        """
        ...

    def query(self, query: VectorQuery) -> list[Match]:
        """The nearest that meet the filter, nearest first, as ids of memories with cosines.

        If the store mixes in words, the scores are its own: they order its answer and compare with nothing else.
        """
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Forget the records; those that are not there do not matter."""
        ...

    def listing(self, after: str | None, limit: int) -> list[tuple[str, int]]:
        """The next records' ids and memory ids after an id, in the store's own order; for verifying.

        The order stays while records come and go, so that what is there all the time is listed exactly
        once; the id itself need not be there any more.
        """
        ...

    def describe(self) -> StoreDescription:
        """What the store is and how much it holds."""
        ...

    def drop(self) -> None:
        """Remove all that is kept for the space, and the place where it is kept; nothing there does not matter.

        Whoever uses the store after that begins with an empty one.
        """
        ...

    def close(self) -> None:
        """Let go of every connection; idempotent."""
        ...
