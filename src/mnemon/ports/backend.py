"""What a backend is put together from."""

from collections.abc import Callable
from dataclasses import dataclass

from mnemon.ports.database import Store
from mnemon.ports.indexes import Indexes
from mnemon.ports.running import Runner


@dataclass(frozen=True, slots=True)
class Backend:
    """A database as one program uses it, and what its upkeep needs."""

    store: Store
    upkeep: Store
    """A face of the same database whose coroutines never suspend, for the housekeeper's thread."""
    index: Callable[[Store, Runner], Indexes]
    """The indexes, as one of the two stores reaches them; what they hold in memory is shared."""
    chores: tuple[Callable[[], object], ...] = ()
    """What the housekeeper does when the backend asks for it."""
    attach: Callable[[Callable[[], None]], None] = lambda poke: None
    """Tells the backend how to ask for its chores."""
    read_only: bool = False
