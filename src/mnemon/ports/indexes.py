"""The indexes inside the database, by words and by vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mnemon.filters import Filter
from mnemon.model import Match, Space
from mnemon.ports.database import Transaction
from mnemon.ports.vectors import Vector


@dataclass(frozen=True, slots=True)
class Scope:
    """Which live memories a question is about; a principal's grants have gone into `prefixes` already."""

    prefixes: tuple[str, ...]
    """Namespaces at or below any of these; they lie side by side, none inside another."""
    types: tuple[str, ...] = ()
    """Any of these memory types; all types if empty."""
    min_trust: float = 0.0
    where: Filter | None = None
    """What the metadata must say."""


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """How common words are among all memories; what BM25 is reckoned from."""

    documents: int
    average_length: float
    frequencies: Mapping[str, int]
    """In how many memories each of the words asked for is."""


class WordIndex(Protocol):
    """Finds live memories by their words, which come analysed: see `words`."""

    async def put(self, tx: Transaction, memory_id: int, namespace: str, words: Sequence[str]) -> None:
        """Index a version of a memory in the transaction that makes it the current one."""
        ...

    async def drop(self, tx: Transaction, memory_ids: Sequence[int], *, erase: bool = False) -> None:
        """The versions are no longer current. `erase`: nothing of their words may stay in the files."""
        ...

    async def search(self, words: Sequence[str], scope: Scope, limit: int) -> list[Match]:
        """The memories in scope that match best, best first; the score is BM25's or like it."""
        ...

    async def find(self, words: Sequence[str], scope: Scope, limit: int) -> tuple[list[Match], WordStatistics]:
        """Like `search`, and how common the words are, for those who look at what was found anyway.

        They have to leave out what is not in scope: now and then something of another namespace is among it.
        """
        ...

    async def words_of(self, memory_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words that the memories were indexed with; those of no current memory are left out."""
        ...

    async def statistics(self, words: Sequence[str]) -> WordStatistics:
        """How common the words are."""
        ...


@dataclass(frozen=True, slots=True)
class VectorRow:
    """The vector of one version of a memory in one space."""

    memory_id: int
    space_id: int
    namespace: str
    embedding: Vector


class VectorMirror(Protocol):
    """The vectors of all memories, as rows of the database itself, and the search over them.

    Only current, live memories are found; vectors of earlier versions stay, for as-of reads.
    """

    async def prepare(self, space: Space) -> None:
        """Make the space ready to be searched fast, as by an index of its own; idempotent."""
        ...

    async def put(self, tx: Transaction, rows: Sequence[VectorRow]) -> None:
        """Write vectors in the transaction that makes or embeds their memories; again is the same."""
        ...

    async def search(self, space: Space, vector: Vector, scope: Scope, limit: int) -> list[Match]:
        """The memories in scope whose vectors are nearest, nearest first; the score is the cosine."""
        ...

    async def similarity(self, space: Space, vector: Vector, memory_ids: Sequence[int]) -> dict[int, float]:
        """The exact cosine of each of the versions that has a vector in the space, current or not."""
        ...

    async def vectors_of(self, space: Space, memory_ids: Sequence[int]) -> dict[int, Vector]:
        """The vectors of these versions, as far as they have one in the space."""
        ...

    async def erase(self, tx: Transaction, memory_ids: Sequence[int]) -> None:
        """Nothing of the vectors of these versions may stay in the files, in any space."""
        ...


@dataclass(frozen=True, slots=True)
class Indexes:
    """What finds memories in the database itself."""

    words: WordIndex
    vectors: VectorMirror
