"""What is done with the changes of the journal, batch after batch, by whoever has the time."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from mnemon.consumers import Consumer
from mnemon.sql import Fragment

AT_ONCE = 10
"""How many memories are written in one transaction at the most, so that other writers wait for milliseconds only."""
BATCH = 200
"""How many changes are looked at together at the most."""
LEASE = 15.0
"""For how many seconds a batch is nobody else's. A worker that was killed holds up the others for so long."""


@dataclass(frozen=True, slots=True)
class Duty:
    """A consumer of the journal, and what it does with its next batch."""

    consumer: Consumer
    step: Callable[[], Coroutine[Any, Any, int]]
    """Handles a batch; how many changes. Does nothing while another worker has the lease."""
    outside: str | None = None
    """The name of the store outside the database that it depends on."""
    is_due: bool = False
    """There is something to do whatever the journal says."""

    @property
    def name(self) -> str:
        return self.consumer.name

    async def has_work(self) -> bool:
        """Whether there is something to do that no other worker is at."""
        return self.is_due or await self.consumer.has_work()


def at_places(places: Sequence[tuple[str, str]]) -> Fragment:
    """The condition that a row of `memory_entries` is at one of some namespaces and keys; see `sql.chunks`."""
    keys: dict[str, list[str]] = {}
    for namespace, key in places:
        keys.setdefault(namespace, []).append(key)
    params: dict[str, str] = {}
    texts: list[str] = []
    for number, (namespace, inside) in enumerate(keys.items()):
        names = {f"key{number}_{index}": key for index, key in enumerate(inside)}
        params |= {f"place{number}": namespace, **names}
        texts.append(f"namespace = :place{number} AND key IN ({', '.join(f':{name}' for name in names)})")
    return Fragment(" OR ".join(f"({text})" for text in texts) or "1 = 0", params)
