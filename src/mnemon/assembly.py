"""Putting the parts together: the only importer of backends and providers."""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from mnemon.access import Access
from mnemon.backends.keeping import plan_keeping
from mnemon.clock import Clock, SystemClock
from mnemon.config import load_settings
from mnemon.consolidation.worker import FlowWorker
from mnemon.contents import Contents
from mnemon.coroutines import InlineRunner, LoopRunner, complete
from mnemon.encryption.keys import DataKeys
from mnemon.encryption.masters import load_keys
from mnemon.encryption.sealing import Sealing, check_policy
from mnemon.errors import InvalidSettings
from mnemon.housekeeping import Housekeeper, seldom
from mnemon.hybrid import HybridMemoryService
from mnemon.indexing.stores import Outside
from mnemon.indexing.upkeep import Bench, Upkeep
from mnemon.indexing.worker import Worker
from mnemon.language import CheckedModel
from mnemon.memories.findable import Findable
from mnemon.memories.writing import Writing
from mnemon.model import FlowReport, Space
from mnemon.ports import (
    Backend,
    Embedder,
    EmbeddingCache,
    Expander,
    KeyProvider,
    LanguageModel,
    Reranker,
    Runner,
    Store,
    VectorMemory,
)
from mnemon.retention.keeper import Keeper
from mnemon.retention.uses import Uses
from mnemon.seals import Seals
from mnemon.services import Parts
from mnemon.settings import Settings

if TYPE_CHECKING:  # slow to import
    from mnemon.consolidation.suspicion import Embed
    from mnemon.embedders import Embedders
    from mnemon.embedding import Embedding
    from mnemon.retention.service import RetentionService
    from mnemon.working.mirror import Mirror

_OFF = "none"
_PRUNING = 60.0  # seconds between two looks at what has expired
_FLOW_DELAY, _FLOW_PAUSE = 1.0, 5.0  # seconds before the first look at what waits, and between two
_CUSTOM = "custom"  # the specification of an embedder or a language model that the caller brought


class Own(NamedTuple):
    """The parts that a caller brought in place of settings."""

    embedder: Embedder | None = None
    stores: Sequence[Callable[[Space], VectorMemory]] = ()
    language_model: LanguageModel | None = None
    key_provider: KeyProvider | None = None
    """Also one that the settings' keys make."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a caller opens a memory with: settings, and parts of their own in place of those that settings name."""

    url: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    clock: Clock | None = None
    reranker: Reranker | None = None
    expander: Expander | None = None
    key_provider: KeyProvider | None = None

    def read(self) -> tuple[Settings, Own]:
        """The settings in force, and the caller's own parts."""
        named = dict(self.settings)
        embedder = cast("Embedder | None", _brought(named, "embedder"))
        model = cast("LanguageModel | None", _brought(named, "language_model"))
        stores = named.get("vector_stores")
        chosen = cast("Sequence[Any]", stores) if isinstance(stores, list | tuple) else ()
        mine = [cast("Callable[[Space], VectorMemory]", each) for each in chosen if callable(each)]
        if mine:
            named["vector_stores"] = tuple(each for each in chosen if not callable(each))
        settings = load_settings(self.url, named)
        _check_stores(settings.vector_stores)
        if settings.working_store == "redis" and not settings.redis_url:
            raise InvalidSettings("working_store='redis' needs redis_url, as in redis://host:6379/0")
        if settings.language_model is not None and model is None:
            _check_language_model(settings.language_model)
        keys = self.key_provider or load_keys(settings.encryption_keys, settings.encryption_key_file)
        check_policy(settings.encrypted_namespaces, keys)
        return settings, Own(embedder, mine, model, keys)


def _brought(named: dict[str, Any], setting: str) -> object | None:
    """The object that stands where a setting could be, which is then told so."""
    found = named.get(setting)
    if found is None or isinstance(found, str):
        return None
    named[setting] = _CUSTOM
    return found


class Opening:
    """A memory that is about to be opened: await it, or enter it with `async with`."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._service: HybridMemoryService | None = None

    def __await__(self) -> Generator[Any, None, HybridMemoryService]:
        return self._open().__await__()

    async def __aenter__(self) -> HybridMemoryService:
        self._service = await self._open()
        return self._service

    async def __aexit__(self, *_: object) -> None:
        if self._service:
            await self._service.close()

    async def _open(self) -> HybridMemoryService:
        settings, own = self._given.read()
        backend = await _technology(settings.url).open_async(settings)
        return _Assembly(backend, settings, self._given, own, LoopRunner()).service()


def open_memory(
    url: str | None = None,
    *,
    clock: Clock | None = None,
    reranker: Reranker | None = None,
    expander: Expander | None = None,
    key_provider: KeyProvider | None = None,
    **settings: Any,
) -> Opening:
    """Open the memory at `url`: `sqlite:///file.db`, `sqlite://` (in memory) or `postgresql://…`.

    Without a URL, `MNEMON_URL` or the settings file says where; at last, `./mnemon.db`. Await the
    result or enter it with `async with`. `settings` are those of `mnemon.settings.Settings`;
    `embedder` and `language_model` may also be an `Embedder` and a `LanguageModel` of your own, and `vector_stores`
    may have functions among them that open a `VectorMemory` of your own for a space. `reranker` and `expander` help
    to recall. `key_provider` holds the master keys of what is encrypted, in place of settings.
    """
    return Opening(Given(url, settings, clock, reranker, expander, key_provider))


def open_blocking(given: Given) -> HybridMemoryService:
    """The same, over a store whose coroutines never suspend."""
    settings, own = given.read()
    backend = _technology(settings.url).open_blocking(settings)
    return _Assembly(backend, settings, given, own, InlineRunner()).service()


class _Assembly:
    """One open memory. What takes long to load is loaded when it is first needed, and shared by all who need it."""

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        given: Given,
        own: Own,
        runner: Runner,
    ) -> None:
        self._backend = backend
        self._settings = settings
        self._given = given
        self._clock = given.clock or SystemClock()
        self._own = own
        self._runner = runner
        self._outside = _outside(settings, own.stores, self._clock)
        self._contents = Contents(plan_keeping(settings), runner, self._sealing(backend.store, runner))
        self._embedders: Embedders | None = None
        self._closers: list[Callable[[], None]] = []
        self._uses = Uses(self._clock) if settings.count_uses and not backend.read_only else None
        self._housekeeper = self._make_housekeeper()
        self._worker = Worker(backend.upkeep, self._upkeep().duties, settings.index_delay)
        self._keeper = Keeper(self._retention)
        self._consolidator = FlowWorker(self._turn, _FLOW_PAUSE, delay=_FLOW_DELAY)

    def service(self) -> HybridMemoryService:
        """Start what goes on in the background, and hand out the memory."""
        self._backend.attach(self._housekeeper.poke)
        if not self._backend.read_only:
            self._housekeeper.start()
            if self._settings.background:
                self._worker.start()
                if self._settings.retention_interval:
                    self._keeper.start()
                if self._settings.consolidate_after:
                    self._consolidator.start()
        return HybridMemoryService(self._parts(self._backend.store, self._runner))

    def _parts(self, store: Store, runner: Runner) -> Parts:
        """What a memory on one face of the database is put together from."""
        return Parts(
            store=store,
            clock=self._clock,
            settings=self._settings,
            closing=self._close,
            runner=runner,
            index=self._backend.index,
            embedding=None if self._settings.embedder == _OFF else self._embedding,
            contents=self._contents,
            outside=self._outside,
            reranker=self._given.reranker,
            expander=self._given.expander,
            language=self._language,
            words=None if self._settings.embedder == _OFF else self._words,
            mirror=self._mirror,
            sealing=self._sealing(store, runner),
            uses=self._uses,
        )

    def _turn(self) -> FlowReport:
        """Let something of working memory flow into long-term memory, on the consolidator's thread."""
        return complete(self._beside().consolidation.flow(None, rounds=1))

    @cache  # noqa: B019
    def _beside(self) -> HybridMemoryService:
        """The same memory on the face of the database that threads of the background use."""
        return HybridMemoryService(self._parts(self._backend.upkeep, InlineRunner()))

    def _make_housekeeper(self) -> Housekeeper:
        chores: list[Callable[[], object]] = []
        if self._settings.seal_interval:
            seals = Seals(self._backend.upkeep, self._clock, self._settings.seal_key)
            chores.append(lambda: complete(seals.seal()))
        uses = self._uses
        if uses is not None:
            chores.append(lambda: complete(uses.flush(self._backend.upkeep)))
        if self._settings.background:
            chores.append(seldom(self._prune, _PRUNING))
        every = self._settings.seal_interval or (_PRUNING if self._settings.background else None)
        return Housekeeper(chores, every, self._backend.chores)

    def _prune(self) -> None:
        from mnemon.working.pruning import prune  # noqa: PLC0415 - seldom needed

        complete(prune(self._backend.upkeep, self._clock.now()))

    @cache  # noqa: B019 - an assembly lives as long as its memory
    def _upkeep(self) -> Upkeep:
        """What the worker does, on its own thread and its own face of the database."""
        store, runner = self._backend.upkeep, InlineRunner()
        return Upkeep(
            Bench(
                store,
                self._clock,
                self._settings,
                runner,
                cache(lambda: self._backend.index(store, runner)),
                None if self._settings.embedder == _OFF else cache(lambda: self._embedding(store, runner)),
                self._outside,
                self._sealing(store, runner),
                mirror=cache(lambda: self._mirror(store, runner)),
            )
        )

    def _retention(self, interrupted: Callable[[], bool]) -> "RetentionService":
        """What the keeper does, on its own thread."""
        from mnemon.retention.service import RetentionService  # noqa: PLC0415 - seldom needed

        store, runner, access = self._backend.upkeep, InlineRunner(), Access()
        sealing = self._sealing(store, runner)
        findable = Findable(cache(lambda: self._backend.index(store, runner)), None, sealing)
        arguments = (store, self._clock, self._settings, access)
        contents = self._contents.run_by(runner, sealing)
        return RetentionService(*arguments, contents, Writing(*arguments, findable), self._uses, interrupted)

    @cache  # noqa: B019 - one for each face of the database
    def _sealing(self, store: Store, runner: Runner) -> Sealing:
        """What encrypts on one face of the database."""
        provider = self._own.key_provider
        keys = None if provider is None else DataKeys(store, self._clock, provider, runner)
        settings = self._settings
        return Sealing(settings.encrypted_namespaces, keys, keeps_vectors=settings.encrypted_vectors)

    @cache  # noqa: B019 - one for each face of the database, whoever the principal is
    def _embedding(self, store: Store, runner: Runner) -> "Embedding":
        from mnemon.embedding import Embedding  # noqa: PLC0415 - needs numpy

        if self._embedders is None:
            self._embedders = self._load_embedders()
        return Embedding(self._embedders, store, runner, self._clock, self._settings, self._cache(store, runner))

    def _load_embedders(self) -> "Embedders":
        from mnemon.embedders import Embedders  # noqa: PLC0415 - needs numpy
        from mnemon.providers.loading import load  # noqa: PLC0415

        def choose(specification: str) -> Embedder:
            if specification == _CUSTOM and self._own.embedder is not None:
                return self._own.embedder
            return load(specification, self._settings)

        return Embedders(choose, self._clock, self._settings)

    @cache  # noqa: B019
    def _words(self) -> "Embed":
        """The vectors of the embedder `static`, whichever is set: it is quick, and what is suspected rests on it."""
        from mnemon.providers.loading import load  # noqa: PLC0415 - needs numpy

        return load("static", self._settings).embed

    @cache  # noqa: B019
    def _language(self) -> CheckedModel | None:
        specification = self._settings.language_model
        if specification is None:
            return None
        model = self._own.language_model
        if model is None:
            from mnemon.providers.loading import load_language_model  # noqa: PLC0415

            model = load_language_model(specification, self._settings)
        checked = CheckedModel(model, self._clock, self._settings)
        self._closers.append(checked.close)
        return checked

    @cache  # noqa: B019 - one for each face of the database
    def _mirror(self, store: Store, runner: Runner) -> "Mirror | None":
        settings = self._settings
        if settings.working_store != "redis":
            return None
        from mnemon.backends.rediscopy import RedisCopy  # noqa: PLC0415 - only what is used is loaded
        from mnemon.working.mirror import Mirror  # noqa: PLC0415

        copy = RedisCopy(settings.redis_url or "", settings.redis_copy_ttl)
        self._closers.append(copy.close)
        return Mirror(copy, store, self._clock, runner, reads=settings.working_reads == "redis")

    def _cache(self, store: Store, runner: Runner) -> EmbeddingCache | None:
        if self._settings.redis_url:
            from mnemon.backends.redis import RedisCache  # noqa: PLC0415

            kept = RedisCache(self._settings.redis_url, runner, self._clock)
            self._closers.append(kept.close)
            return kept
        if not self._settings.embedding_cache_rows:
            return None
        from mnemon.embedding_cache import DatabaseCache  # noqa: PLC0415

        return DatabaseCache(store, self._clock, self._settings.embedding_cache_rows)

    async def _close(self) -> None:
        await self._runner.aside(self._stop)
        await self._backend.store.close()

    def _stop(self) -> None:
        if not self._backend.read_only:
            self._consolidator.stop()
            self._keeper.stop()
            self._worker.stop()
            self._consolidator.join()
            self._housekeeper.stop()
        for outside in self._outside:
            outside.close()
        self._contents.close()
        if self._embedders is not None:
            self._embedders.close()
        for close in self._closers:
            close()


def _outside(settings: Settings, own: Sequence[Callable[[Space], VectorMemory]], clock: Clock) -> tuple[Outside, ...]:
    """The vector stores outside the database, each under a name of its own."""
    opened = [
        (url.partition(":")[0].partition("+")[0], partial(_load_store, url, settings)) for url in settings.vector_stores
    ]
    opened += [(getattr(each, "__name__", _CUSTOM), each) for each in own]
    names: dict[str, int] = {}
    found: list[Outside] = []
    for kind, opener in opened:
        names[kind] = names.get(kind, 0) + 1
        found.append(Outside(kind if names[kind] == 1 else f"{kind}-{names[kind]}", opener, clock))
    return tuple(found)


def _check_stores(urls: Sequence[str]) -> None:
    """Refuse now what could be opened only later, when somebody would have to read the log to learn of it."""
    if urls:
        from mnemon.backends.stores import check_url  # noqa: PLC0415

        for url in urls:
            check_url(url)


def _check_language_model(specification: str) -> None:
    from mnemon.providers.loading import check_language_model  # noqa: PLC0415

    check_language_model(specification)


def _load_store(url: str, settings: Settings, space: Space) -> VectorMemory:
    from mnemon.backends.stores import load_store  # noqa: PLC0415 - only what is used is loaded

    return load_store(url, space, settings)


class _Technology(Protocol):
    """What a package in `backends` that holds a database has to offer."""

    def open_async(self, settings: Settings) -> Awaitable[Backend]: ...
    def open_blocking(self, settings: Settings) -> Backend: ...


def _technology(url: str) -> _Technology:
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        from mnemon.backends.sqlite import opening  # noqa: PLC0415 - only what is used is loaded

        return opening
    if scheme in ("postgresql", "postgres"):
        from mnemon.backends.postgres import opening  # noqa: PLC0415

        return opening
    raise InvalidSettings(f"a URL should begin with sqlite: or postgresql:, not with {scheme[:40]!r}")
