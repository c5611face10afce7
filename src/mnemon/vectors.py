"""Vectors that the caller brings, and the search by a vector.

A vector always belongs to a memory: to store one puts a memory whose key is the vector's id. So it has versions, a
history and grants like any other, and whatever stores hold vectors follow it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mnemon.access import Access
from mnemon.clock import Clock
from mnemon.encryption.sealing import Layout
from mnemon.errors import DimensionMismatch, EmbedderUnavailable, InvalidInput, InvalidSettings
from mnemon.indexing.duties import at_places
from mnemon.indexing.router import MIRROR, Router
from mnemon.indexing.stores import Outside, Place
from mnemon.journal import origin_of
from mnemon.memories import MemoryService
from mnemon.memories.rows import check_types
from mnemon.memories.writing import Writing
from mnemon.model import Matches, Memory, MemoryDraft, Space, StoreDescription, VectorDraft, VectorMatch
from mnemon.namespaces import EVERYTHING, check_key, check_namespace
from mnemon.pages import check_limit
from mnemon.ports import Indexes, Runner, Store, Transaction, Vector
from mnemon.scopes import scope_of
from mnemon.settings import Settings
from mnemon.spaces import Spaces
from mnemon.sql import among, chunks, load
from mnemon.values import decode_all
from mnemon.words import analyse

if TYPE_CHECKING:  # slow to import
    from mnemon.embedding import Embedding

_SQL = load("indexing")
_MATCHED = Layout("memory_entries", ("id", "namespace", "key", "value", "metadata", "version"), ("value", "metadata"))
_CLOSE = 1e-6  # a difference between two numbers that comes of rounding only


class VectorService:
    """Stores, finds and deletes vectors, as one caller may."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        runner: Runner,
        indexes: Callable[[], Indexes],
        embedding: "Callable[[], Embedding] | None",
        memories: MemoryService,
        writing: Writing,
        stores: Sequence[Outside] = (),
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._runner = runner
        self._indexes = indexes
        self._embedding = embedding
        self._memories = memories
        self._writing = writing
        self._stores = stores
        self._router = Router(store, indexes, runner, stores)
        self._spaces = Spaces(store, clock)

    async def store(
        self,
        id: str,
        embedding: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        namespace: str = "app:vectors",
        text: str | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Memory:
        """Keep a vector under an id: a list of numbers or an array, of the active space's dimension.

        It belongs to the memory with that key, whose value is `text`. One that is there already gets a
        new version; nothing happens if it is the same.
        """
        draft = VectorDraft(id, embedding, metadata, namespace, text)
        [stored] = await self.store_many([draft], actor=actor, task_id=task_id)
        return stored

    async def store_many(
        self, items: Sequence[VectorDraft], *, actor: str | None = None, task_id: str | None = None
    ) -> list[Memory]:
        """Keep several vectors, all or none; see `store`."""
        space = await self._space()
        vectors = [_checked(item.embedding, space) for item in items]
        origin = origin_of(self._access, self._clock.now(), actor, task_id)
        drafts = [MemoryDraft(item.text or "", item.namespace, item.id, metadata=item.metadata) for item in items]
        await self._writing.sealing.prepare_sessions(item.namespace for item in items)
        places = [self._place(item) for item in items]
        if len(set(places)) < len(places):
            raise InvalidInput("two vectors of one batch have the same namespace and id")
        known = await self._known(space, places)
        units = [
            await self._writing.putting(
                [draft], origin, [{space.id: vector}], renew=not _is_same(known.get(place), vector)
            )
            for draft, place, vector in zip(drafts, places, vectors, strict=True)
        ]

        async def unit(tx: Transaction) -> list[Memory]:
            return [memory for each in units for memory in await each(tx)]

        return await self._store.write(unit)

    async def query(
        self,
        embedding: Any,
        top_k: int = 10,
        filter: Mapping[str, Any] | None = None,
        *,
        namespaces: str | Sequence[str] = EVERYTHING,
        types: str | Sequence[str] | None = None,
        min_trust: float | None = None,
        text: str | None = None,
    ) -> Matches:
        """The memories whose vectors are nearest, nearest first, and which store says so.

        `filter` is on the metadata: see `filters`. With `text`, a store that searches words too may
        mix how well they fit into the score.
        """
        space = await self._space()
        vector = _checked(embedding, space)
        longest = self._settings.max_namespace_length
        scope = scope_of(self._access, namespaces, longest, check_types(types), filter, min_trust)
        self._writing.sealing.refuse_filter(scope.prefixes, filter)
        words = analyse(text) if text else ()
        routed = await self._router.search(space, vector, scope, check_limit(top_k), words)
        told = await self._told([match.memory_id for match in routed.matches])
        found = [replace(told[m.memory_id], score=m.score) for m in routed.matches if m.memory_id in told]
        return Matches(tuple(found), routed.served_by)

    async def delete(
        self, id: str, *, namespace: str = "app:vectors", actor: str | None = None, task_id: str | None = None
    ) -> None:
        """Delete the memory with its vector, softly; `purge_memory` erases it for good."""
        await self._memories.delete_memory(namespace, id, actor, task_id)

    async def describe(self) -> list[StoreDescription]:
        """The stores that hold vectors, in the order in which they are asked, the database's mirror last.

        What they hold is of the active space; there is none before the first vector.
        """
        self._access.require(EVERYTHING, "read")
        self._spaces.forget()
        space = await self._spaces.active()
        if space is None:
            return []
        found = [await self._describe(outside, space) for outside in self._stores]
        count = (await self._store.fetch(_SQL["count_live"], {"space_id": space.id}))[0][0]
        return [*found, StoreDescription(MIRROR, "the database", count, space.model.dimension)]

    # -- the space, and what is in it

    async def _space(self) -> Space:
        """The space that vectors of callers belong to: the active one."""
        if self._embedding is None:
            raise InvalidSettings("vectors are switched off by embedder='none'; choose one, or 'given:NAME:DIMENSION'")
        spaces = await self._embedding().prepare()
        if not spaces:
            raise EmbedderUnavailable("the embedder cannot be asked now which dimension its vectors have")
        return spaces[0]

    def _place(self, item: VectorDraft) -> Place:
        namespace = check_namespace(item.namespace, self._settings.max_namespace_length)
        if self._writing.sealing.hides_vectors(namespace):
            raise InvalidInput(
                f"{namespace!r} is encrypted, and a vector would tell what it says; "
                "use add_memory, or set encrypted_vectors"
            )
        return namespace, check_key("a vector's id", item.id, self._settings.max_key_length)

    async def _known(self, space: Space, wanted: Sequence[Place]) -> dict[Place, Vector]:
        """The vectors that are there already."""
        places: dict[int, Place] = {}
        for piece in chunks(wanted):
            there = at_places(piece)
            rows = await self._store.fetch(_SQL["live_at"].where([there]), there.params)
            places |= {row[0]: (row[1], row[2]) for row in rows}
        vectors = await self._indexes().vectors.vectors_of(space, list(places))
        return {places[memory_id]: vector for memory_id, vector in vectors.items()}

    async def _told(self, ids: Sequence[int]) -> dict[int, VectorMatch]:
        """What there is to tell of memories that were found."""
        told: dict[int, VectorMatch] = {}
        for piece in chunks(ids):
            these = among("id", piece, "id")
            rows = await self._store.fetch(_SQL["matched"].where([these]), these.params)
            rows = await self._writing.sealing.opened(self._store.fetch, _MATCHED, rows)
            values, metadata = decode_all([row[3] for row in rows]), decode_all([row[4] for row in rows])
            for (memory_id, namespace, key, _, _, version), value, about in zip(rows, values, metadata, strict=True):
                told[memory_id] = VectorMatch(key, namespace, 0.0, value, about, version, memory_id)
        return told

    async def _describe(self, outside: Outside, space: Space) -> StoreDescription:
        params = {"consumer": outside.consumer_name(space)}
        lag = (await self._store.fetch(_SQL["count_tail"], params))[0][0]
        try:
            described = await self._runner.aside(lambda: outside.of(space).describe())
        except Exception:  # noqa: BLE001 - whatever it is, the store cannot be used
            return StoreDescription(outside.name, outside.location, 0, space.model.dimension, lag=lag, is_up=False)
        return replace(described, name=outside.name, lag=lag)


def _checked(embedding: Any, space: Space) -> Vector:
    """The vector at length 1, if it is one and fits the space."""
    import numpy as np  # noqa: PLC0415 - slow to import

    try:
        given = np.asarray(embedding)
    except ValueError:  # rows of different lengths
        raise _no_vector(embedding) from None
    if given.ndim != 1 or given.dtype.kind not in "fiu":
        raise _no_vector(embedding)
    if len(given) != space.model.dimension:
        raise DimensionMismatch(f"the vector has {len(given)} dimensions, and the database's are of {space.model}")
    numbers = given.astype(np.float64)
    largest = float(np.abs(numbers).max())
    if not math.isfinite(largest):
        raise InvalidInput("the vector holds NaN or infinity, so that nothing can be compared with it")
    if largest == 0:
        raise InvalidInput("the vector is all zeros, so that it points nowhere and nothing can be compared with it")
    numbers /= largest
    return (numbers / np.sqrt(numbers.dot(numbers))).astype(np.float32)


def _no_vector(embedding: object) -> InvalidInput:
    return InvalidInput(f"an embedding is a list or an array of numbers, not {type(embedding).__name__}")


def _is_same(known: Vector | None, vector: Vector) -> bool:
    return known is not None and bool(abs(known - vector).max() < _CLOSE)
