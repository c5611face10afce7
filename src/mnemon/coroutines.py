"""Running a coroutine that never really suspends, with no event loop."""

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def complete(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of `coroutine`, which must finish without waiting for anything."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("a unit of work may await only its transaction")
