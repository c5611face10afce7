"""What long or paged work gives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work has come, in memories, changes of them, or files."""

    done: int
    total: int
    seconds: float
    """For how long it has been going on, this time."""

    @property
    def rate(self) -> float:
        """How many a second."""
        return self.done / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Page(Sequence[T], Generic[T]):
    """Some of the results, in order. `next_cursor` fetches the next page; None after the last."""

    items: tuple[T, ...]
    next_cursor: str | None = None

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)
