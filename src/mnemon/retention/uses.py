"""How often memories are recalled: noted in this process, and written to the database now and then."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mnemon.clock import Clock
from mnemon.errors import StoreError
from mnemon.model import Citation, Memory
from mnemon.ports import Store, Unit
from mnemon.retention.decide import Footprint
from mnemon.retention.rows import SQL
from mnemon.sql import chunks

_MOST = 100_000  # memories that are kept in mind between two flushes; what comes beyond that is not counted


class Uses:
    """Counts uses. To note one takes no database, so that recall does not wait; what a crash loses is a few counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._noted: dict[tuple[str, str], tuple[int, int]] = {}
        self._lock = threading.Lock()

    def note(self, memories: Sequence[Memory | Citation]) -> None:
        """These were recalled or read now."""
        now = self._clock.now()
        with self._lock:
            for memory in memories:
                self._add((memory.namespace, memory.key), 1, now)

    def added(self, footprint: Footprint) -> Footprint:
        """What is told of a memory, with the uses that were not written yet."""
        with self._lock:
            noted = self._noted.get((footprint.namespace, footprint.key))
        if noted is None:
            return footprint
        return replace(footprint, uses=footprint.uses + noted[0], used_at=max(footprint.used_at or 0, noted[1]))

    async def flush(self, store: Store) -> int:
        """Write what was noted since the last time; of how many memories. What cannot be written is noted again."""
        with self._lock:
            noted, self._noted = self._noted, {}
        rows: list[dict[str, Any]] = [
            {"namespace": namespace, "key": key, "uses": uses, "used_at": at}
            for (namespace, key), (uses, at) in sorted(noted.items())
        ]
        written = 0
        try:
            for piece in chunks(rows):
                await store.write(_writing(piece))
                written += len(piece)
        except StoreError:
            with self._lock:
                for row in rows[written:]:
                    self._add((row["namespace"], row["key"]), row["uses"], row["used_at"])
            raise
        return written

    def _add(self, place: tuple[str, str], uses: int, at: int) -> None:
        known = self._noted.get(place)
        if known is not None or len(self._noted) < _MOST:
            before, last = known or (0, at)
            self._noted[place] = before + uses, max(last, at)


def _writing(rows: Sequence[Mapping[str, Any]]) -> Unit[None]:
    return lambda tx: tx.execute_many(SQL["count_use"], rows)
