"""What a backend is put together from."""

from collections.abc import Callable
from dataclasses import dataclass

from mnemon.ports.database import Store
from mnemon.ports.indexes import Indexes
from mnemon.ports.running import Runner


def _no_indexes(store: Store, runner: Runner) -> Indexes:
    raise NotImplementedError("this backend finds memories neither by words nor by vectors")


@dataclass(frozen=True, slots=True)
class Backend:
    """A database as one program uses it, and what its upkeep needs."""

    store: Store
    upkeep: Store
    """A face of the same database whose coroutines never suspend, for the housekeeper's thread."""
    chores: tuple[Callable[[], object], ...] = ()
    """What the housekeeper does when the backend asks for it."""
    attach: Callable[[Callable[[], None]], None] = lambda poke: None
    """Tells the backend how to ask for its chores."""
    index: Callable[[Store, Runner], Indexes] = _no_indexes
    """The indexes, as one of the two stores reaches them; what they hold in memory is shared."""
    read_only: bool = False
