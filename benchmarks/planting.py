"""Many memories at once, put straight into the tables and indexes of a database, past all services."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.progress import Bar
from mnemon.clock import SystemClock
from mnemon.coroutines import InlineRunner, complete
from mnemon.memories.findable import words_of
from mnemon.model import EmbeddingModel, Match, Space
from mnemon.ports import Backend, Indexes, Scope, Transaction, Vector, VectorRow
from mnemon.settings import Settings
from mnemon.spaces import Spaces
from mnemon.sql import Query, chunks

NAMESPACES = 100
_AT_ONCE = 10_000
_ENTRY = Query(
    "plant",
    "INSERT INTO memory_entries (id, namespace, key, value, memory_type, created_at, updated_at, valid_from, thread, "
    "position) VALUES (:id, :namespace, :key, :value, 'semantic', :at, :at, :at, :thread, :place)",
)
_JOURNAL = Query(
    "plant",
    "INSERT INTO journal (at, entity, entity_id, operation, version, namespace) "
    "VALUES (:at, 'memory', :key, 'add', 1, :namespace)",
)
_BEGAN = 1_700_000_000_000_000
_THREAD = 50  # memories of a thread


def namespace_of(number: int) -> str:
    """Every hundredth memory lies in the same one, so that each of them is a hundredth of all."""
    return f"user:{number % NAMESPACES:02}"


def key_of(number: int) -> str:
    return f"fact-{number:07}"


@dataclass(frozen=True, slots=True)
class Ground:
    """An open database, seen through its ports, whose coroutines never suspend."""

    backend: Backend
    indexes: Indexes
    space: Space

    def search(self, vector: Vector, prefixes: Sequence[str], limit: int) -> list[Match]:
        return complete(self.indexes.vectors.search(self.space, vector, Scope(tuple(prefixes)), limit))

    def search_words(self, words: Sequence[str], prefixes: Sequence[str], limit: int) -> list[Match]:
        return complete(self.indexes.words.search(words, Scope(tuple(prefixes)), limit))

    def plant(self, texts: Sequence[str] | None, vectors: Vector, bar: Bar) -> None:
        """Memory `number` has the id `number + 1`; without texts there is nothing to find by words."""
        numbers = range(len(vectors))
        bar.begin(-(-len(numbers) // _AT_ONCE))
        for some in chunks(numbers, _AT_ONCE):
            complete(self.backend.store.write(partial(self._plant, numbers=some, texts=texts, vectors=vectors)))
            bar.tick(f"{some[-1] + 1:,} of {len(numbers):,}")

    async def _plant(
        self, tx: Transaction, *, numbers: Sequence[int], texts: Sequence[str] | None, vectors: Vector
    ) -> None:
        rows = [_row(number, texts[number] if texts else "") for number in numbers]
        await tx.execute_many(_ENTRY, rows)
        await self.indexes.vectors.put(
            tx, [VectorRow(row["id"], self.space.id, row["namespace"], vectors[row["id"] - 1]) for row in rows]
        )
        if texts:
            for row in rows:
                await self.indexes.words.put(tx, row["id"], row["namespace"], words_of(row))
            await tx.execute_many(_JOURNAL, rows)

    def prepare(self) -> None:
        """Let the database make whatever index it has for the space."""
        complete(self.indexes.vectors.prepare(self.space))


@contextmanager
def ground(settings: Settings, provider: str, model: EmbeddingModel) -> Iterator[Ground]:
    """The database at the settings' URL, made if need be, with a space for vectors of a model."""
    if settings.url.startswith("sqlite"):
        from mnemon.backends.sqlite.opening import open_blocking  # noqa: PLC0415 - only what is used
    else:
        from mnemon.backends.postgres.opening import open_blocking  # noqa: PLC0415
    backend = open_blocking(settings)
    try:
        space = complete(Spaces(backend.store, SystemClock()).ensure(provider, model))
        yield Ground(backend, backend.index(backend.store, InlineRunner()), space)
    finally:
        complete(backend.store.close())


def _row(number: int, text: str) -> dict[str, Any]:
    thread, place = divmod(number // NAMESPACES, _THREAD)
    return {
        "id": number + 1, "namespace": namespace_of(number), "key": key_of(number), "value": json.dumps(text),
        "at": _BEGAN + number, "thread": f"{namespace_of(number)}/{thread}", "place": place,
    }  # fmt: skip
