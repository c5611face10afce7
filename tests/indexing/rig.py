"""A database with everything that follows its journal, put together by hand: a test decides what happens when."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from mnemon.access import Access
from mnemon.backends.keeping import plan_keeping
from mnemon.backends.postgres import opening as postgres
from mnemon.backends.sqlite import opening as sqlite
from mnemon.clock import Clock
from mnemon.contents import Contents
from mnemon.coroutines import InlineRunner, LoopRunner, complete
from mnemon.embedders import Embedders
from mnemon.embedding import Embedding
from mnemon.indexing.router import Router
from mnemon.indexing.stores import Outside
from mnemon.indexing.upkeep import Bench, Upkeep
from mnemon.journal import Journal
from mnemon.memories import MemoryService
from mnemon.memories.findable import Findable
from mnemon.memories.writing import Writing
from mnemon.model import Match, Principal, Space
from mnemon.ports import Backend, Embedder, Indexes, Row, Runner, Scope, Store
from mnemon.providers.loading import load
from mnemon.retention.archives import Archives
from mnemon.sessions import SessionService
from mnemon.settings import Settings
from mnemon.sql import Query
from mnemon.testing import ManualClock
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.suite import plant
from mnemon.testing.vector_fakes import FakeVectorMemory
from mnemon.vectors import VectorService
from mnemon.words import analyse

EVERYWHERE = Scope(("",))


class Stores:
    """Vector stores outside the database, whose fakes a test can reach by name and space."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.sleep: Callable[[float], object] = lambda seconds: None
        self.fakes: dict[tuple[str, int], FakeVectorMemory] = {}

    def outside(self, clock: Clock) -> list[Outside]:
        return [Outside(name, lambda space, name=name: self.of(name, space), clock) for name in self.names]

    def of(self, name: str, space: Space) -> FakeVectorMemory:
        fake = FakeVectorMemory(space, sleep=lambda seconds: self.sleep(seconds))
        return self.fakes.setdefault((name, space.id), fake)

    def __getitem__(self, name: str) -> FakeVectorMemory:
        """The fake for the first space."""
        return self.fakes[min(place for place in self.fakes if place[0] == name)]


def _no_consolidation() -> Any:
    raise NotImplementedError("nothing is consolidated here")


class Rig:
    """One face of an open database, its services, and what keeps its indexes in step. Nothing goes on by itself."""

    def __init__(
        self,
        backend: Backend,
        runner: Runner,
        clock: Clock,
        settings: Settings,
        load: Callable[[str], Embedder],
        stores: Stores,
        store: Store | None = None,
    ) -> None:
        self.store = store or backend.store
        self.clock = clock
        self.settings = settings
        self.stores = stores
        self.runner = runner
        self.journal = Journal(self.store, Access())
        self._backend = backend
        self._load = load
        self.indexes: Callable[[], Indexes] = cache(lambda: backend.index(self.store, runner))
        embedders = Embedders(load, clock, settings)
        self.embedding: Callable[[], Embedding] = cache(
            lambda: Embedding(embedders, self.store, runner, clock, settings)
        )
        self.outside = stores.outside(clock)
        self.sessions = SessionService(self.store, clock, settings, Access())
        self.memories = self.memories_of(None)
        used = None if settings.embedder == "none" else self.embedding
        self.bench = Bench(self.store, clock, settings, runner, self.indexes, used, self.outside)
        self.upkeep = Upkeep(self.bench)
        self.router = Router(self.store, self.indexes, runner, self.outside)
        self.archives = Archives(self.store, Contents(plan_keeping(Settings("sqlite://")), runner))
        self.vectors = self.vectors_of(None)

    def over(self, store: Store, **settings: Any) -> "Rig":
        """Another worker beside this one, over a store that stands before the same database."""
        changed = Settings(**{name: getattr(self.settings, name) for name in Settings.__slots__} | settings)
        return Rig(self._backend, self.runner, self.clock, changed, self._load, self.stores, store)

    def writing_of(self, principal: Principal | None) -> Writing:
        used = None if self.settings.embedder == "none" else self.embedding
        return Writing(self.store, self.clock, self.settings, Access(principal), Findable(self.indexes, used))

    def memories_of(self, principal: Principal | None) -> MemoryService:
        access = Access(principal)
        return MemoryService(
            self.store, self.clock, self.settings, access, self.writing_of(principal), _no_consolidation,
            lambda: self.archives,
        )  # fmt: skip

    def vectors_of(self, principal: Principal | None) -> VectorService:
        used = None if self.settings.embedder == "none" else self.embedding
        return VectorService(
            self.store, self.clock, self.settings, Access(principal), self.runner, self.indexes, used,
            self.memories_of(principal), self.writing_of(principal), self.outside,
        )  # fmt: skip

    def inside(self, action: Callable[[], Coroutine[Any, Any, object]]) -> Callable[[object], None]:
        """`action`, to be called from where something outside the database is being asked."""
        if isinstance(self.runner, InlineRunner):
            return lambda _: discard(complete(action()))
        loop = asyncio.get_running_loop()
        return lambda _: discard(asyncio.run_coroutine_threadsafe(action(), loop).result())

    async def hold(self, consumer: str, seconds: float = 10.0) -> None:
        """Let another process be at a consumer's work."""
        await plant(
            self.store,
            "INSERT INTO consumers (name, position, lease_owner, lease_until, updated_at) "
            "VALUES (:name, 0, 'another', :until, 0) "
            "ON CONFLICT (name) DO UPDATE SET lease_owner = 'another', lease_until = :until",
            name=consumer,
            until=self.clock.now() + int(seconds * 1_000_000),
        )

    async def release(self, consumer: str) -> None:
        """The other process is done, or was stopped."""
        text = "UPDATE consumers SET lease_owner = NULL, lease_until = 0 WHERE name = :name"
        await plant(self.store, text, name=consumer)

    # -- what a test asks

    async def add(self, **texts: str) -> None:
        """Memories of alice, by key."""
        for key, text in texts.items():
            await self.memories.add_memory("user:alice", key, text)

    async def work(self, name: str | None = None) -> int:
        """Do all that there is to do, or all that one consumer has to do; how many changes were handled."""
        handled = 0
        while True:
            done = 0
            for duty in await self.upkeep.duties():
                if name in (None, duty.name) and await duty.has_work():
                    done += await duty.step()
            if not done:
                return handled
            handled += done

    async def space(self) -> Space:
        return (await self.embedding().prepare())[0]

    async def near(self, text: str, limit: int = 10, scope: Scope = EVERYWHERE) -> list[str]:
        """The keys of what the database's own vectors find."""
        space = await self.space()
        [vector] = await self.embedding().embed_in(space, [text])
        return await self.keys(await self.indexes().vectors.search(space, vector, scope, limit))

    async def near_with(self, embedder: FakeEmbedder, text: str) -> list[str]:
        """The same, past an embedder that is down."""
        space = await self.space()
        [vector] = FakeEmbedder(embedder.model.dimension, name=embedder.model.name).embed([text])
        return await self.keys(await self.indexes().vectors.search(space, vector, EVERYWHERE, 10))

    async def routed(self, text: str, limit: int = 10, scope: Scope = EVERYWHERE) -> tuple[list[str], str]:
        """The keys of what the router finds, and who found it."""
        space = await self.space()
        [vector] = await self.embedding().embed_in(space, [text])
        found = await self.router.search(space, vector, scope, limit)
        return await self.keys(found.matches), found.served_by

    async def keys(self, matches: Sequence[Match]) -> list[str]:
        known = {row[0]: row[1] for row in await self.peek("SELECT id, key FROM memory_entries")}
        return [known[match.memory_id] for match in matches]

    async def by_words(self, text: str) -> list[str]:
        """The keys of what the database's words find."""
        return sorted(await self.keys(await self.indexes().words.search(analyse(text), EVERYWHERE, 10)))

    async def peek(self, text: str, **params: Any) -> list[Row]:
        return await self.store.fetch(Query("peek", text), params)

    async def position_of(self, consumer: str) -> int:
        rows = await self.peek("SELECT position FROM consumers WHERE name = :name", name=consumer)
        return rows[0][0] if rows else 0


def discard(result: object) -> None:
    """For an action whose result does not matter."""


def fakes(*embedders: FakeEmbedder) -> Callable[[str], Embedder]:
    """Loads embedders by their model's name, and others as the settings would."""
    known = {embedder.model.name: embedder for embedder in embedders}
    return lambda name: known[name] if name in known else load(name, Settings())


@asynccontextmanager
async def rigged(
    backend: str,
    url: str,
    *embedders: FakeEmbedder,
    clock: Clock | None = None,
    stores: Stores | None = None,
    **settings: Any,
) -> AsyncIterator[Rig]:
    """A rig over a backend; the first embedder is the one that is set."""
    name = embedders[0].model.name if embedders else "none"
    chosen = Settings(url=url, **{"embedder": name, "embedding_cache_rows": 0, **settings})
    technology = postgres if backend.startswith("postgres") else sqlite
    if backend.endswith("blocking"):
        opened, runner = technology.open_blocking(chosen), InlineRunner()
    else:
        opened, runner = await technology.open_async(chosen), LoopRunner()
    try:
        yield Rig(opened, runner, clock or ManualClock(), chosen, fakes(*embedders), stores or Stores())
    finally:
        await opened.store.close()
