"""A vector store in memory that fails, stalls and keeps only a part when told to, for tests of what happens then."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from mnemon.errors import StoreClosed, StoreUnavailable
from mnemon.facts import accepts
from mnemon.model import Match, Space, StoreDescription
from mnemon.ports import VectorQuery, VectorRecord
from mnemon.testing.triggers import Triggers

VectorMethod = Literal["store", "query", "delete", "listing", "describe", "drop"]

_Action: TypeAlias = Callable[[], object]
_ALWAYS = 2**62


class FakeVectorMemory:
    """Does exactly what `ports.VectorMemory` promises, except where it was told otherwise.

    `calls` counts the calls of each method, and `records` holds what is stored, by id. It searches no text.
    """

    def __init__(
        self,
        space: Space,
        records: dict[str, VectorRecord] | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """`records` is used and changed in place, so that another fake with the same is the same store."""
        self.calls: Counter[str] = Counter()
        self.records = {} if records is None else records
        self._space = space
        self._sleep = sleep
        self._lock = threading.RLock()
        self._closed = False
        self._before: Triggers[_Action] = Triggers()
        self._after: Triggers[_Action] = Triggers()
        self._parts: Triggers[tuple[int, Exception]] = Triggers()

    # -- what is to go wrong

    def fail(
        self,
        method: VectorMethod,
        error: Exception | None = None,
        *,
        times: int = 1,
        skip: int = 0,
        after_effect: bool = False,
    ) -> None:
        """Raise `error`, or `StoreUnavailable`, at the next `times` calls, once `skip` more have passed.

        With `after_effect` the call is done first, and only its answer is lost.
        """
        (self._after if after_effect else self._before).add(method, _raiser(error or _away()), skip, times)

    def delay(self, method: VectorMethod, seconds: float, *, times: int = 1, skip: int = 0) -> None:
        """Be late by `seconds` before a call."""
        self._before.add(method, lambda: self._sleep(seconds), skip, times)

    def store_part(self, count: int, error: Exception | None = None, *, times: int = 1, skip: int = 0) -> None:
        """Keep only the first `count` records of a batch, and then raise `error`, or `StoreUnavailable`."""
        self._parts.add("store", (count, error or _away()), skip, times)

    def go_down(self) -> None:
        """Be out of reach until `heal`."""
        for method in get_args(VectorMethod):
            self.fail(method, times=_ALWAYS)

    def heal(self) -> None:
        """Forget every fault that has not happened yet."""
        for triggers in (self._before, self._after, self._parts):
            triggers.clear()

    # -- the port

    def store(self, records: Sequence[VectorRecord]) -> None:
        self._begin("store")
        parts = self._parts.due("store")
        kept = records[: parts[0][0]] if parts else records
        with self._lock:
            self.records.update((record.id, record) for record in kept)
        if parts:
            raise parts[0][1]
        self._end("store")

    def query(self, query: VectorQuery) -> list[Match]:
        self._begin("query")
        with self._lock:
            found = [
                record
                for record in self.records.values()
                if record.trust >= query.min_trust and accepts(query.where, frozenset(record.facts))
            ]
        cosines = [float(np.dot(record.embedding, query.embedding)) for record in found]
        best = sorted(zip(cosines, found, strict=True), key=lambda pair: (-pair[0], pair[1].memory_id))
        self._end("query")
        return [Match(record.memory_id, cosine) for cosine, record in best[: query.limit]]

    def delete(self, ids: Sequence[str]) -> None:
        self._begin("delete")
        with self._lock:
            for each in ids:
                self.records.pop(each, None)
        self._end("delete")

    def listing(self, after: str | None, limit: int) -> list[tuple[str, int]]:
        self._begin("listing")
        with self._lock:
            page = sorted(
                (record.id, record.memory_id) for record in self.records.values() if record.id > (after or "")
            )
        self._end("listing")
        return page[:limit]

    def describe(self) -> StoreDescription:
        self._begin("describe")
        described = StoreDescription("fake", "memory", len(self.records), self._space.model.dimension)
        self._end("describe")
        return described

    def drop(self) -> None:
        self._begin("drop")
        with self._lock:
            self.records.clear()
        self._end("drop")

    def close(self) -> None:
        self._closed = True

    def _begin(self, method: VectorMethod) -> None:
        with self._lock:
            self.calls[method] += 1
        for action in self._before.due(method):
            action()
        if self._closed:
            raise StoreClosed("the fake vector store was closed")

    def _end(self, method: VectorMethod) -> None:
        for action in self._after.due(method):
            action()


def _away() -> StoreUnavailable:
    return StoreUnavailable("the fake vector store was told to be away")


def _raiser(error: Exception) -> _Action:
    def act() -> None:
        raise error

    return act
