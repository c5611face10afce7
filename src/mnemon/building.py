"""Building many frozen values quickly."""

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def builder(made: type[T]) -> Callable[..., T]:
    """A function that does what calling the frozen, slotted dataclass does, at a third of the cost.

    A frozen class sets each field the slow way round its own lock. A twin with the same slots and
    no lock is filled instead, and then turned into the real thing.
    """

    @cache  # made when it is first needed: making a class takes a millisecond
    def twin() -> type[Any]:
        return make_dataclass(f"_{made.__name__}", [field.name for field in fields(made)], slots=True)  # pyright: ignore[reportArgumentType]

    def build(*values: Any) -> T:
        value = twin()(*values)
        value.__class__ = made
        return value

    return build
