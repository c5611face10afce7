"""Putting the parts together: the only importer of backends."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol

from mnemon.clock import Clock, SystemClock
from mnemon.config import load_settings
from mnemon.coroutines import complete
from mnemon.errors import InvalidSettings
from mnemon.housekeeping import Housekeeper
from mnemon.hybrid import HybridMemoryService, Parts
from mnemon.ports import Backend
from mnemon.seals import Seals
from mnemon.settings import Settings


class Opening:
    """A memory that is about to be opened: await it, or enter it with `async with`."""

    def __init__(self, url: str | None, clock: Clock | None, settings: dict[str, Any]) -> None:
        self._arguments = (url, clock, settings)
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
        url, clock, given = self._arguments
        settings = load_settings(url, given)
        backend = await _technology(settings.url).open_async(settings)
        return _assemble(backend, clock or SystemClock(), settings, off_loop=True)


def open_memory(url: str | None = None, *, clock: Clock | None = None, **settings: Any) -> Opening:
    """Open the memory at `url`: `sqlite:///file.db`, `sqlite://` (in memory) or `postgresql://…`.

    Without a URL, `MNEMON_URL` or the settings file says where; at last, `./mnemon.db`. Await the
    result or enter it with `async with`. `settings` are those of `mnemon.settings.Settings`.
    """
    return Opening(url, clock, settings)


def open_blocking(url: str | None, clock: Clock | None, given: dict[str, Any]) -> HybridMemoryService:
    """The same, over a store whose coroutines never suspend."""
    settings = load_settings(url, given)
    backend = _technology(settings.url).open_blocking(settings)
    return _assemble(backend, clock or SystemClock(), settings, off_loop=False)


def _assemble(backend: Backend, clock: Clock, settings: Settings, *, off_loop: bool) -> HybridMemoryService:
    chores: list[Callable[[], object]] = []
    if settings.seal_interval:
        seals = Seals(backend.upkeep, clock, settings.seal_key)
        chores.append(lambda: complete(seals.seal()))
    housekeeper = Housekeeper(chores, settings.seal_interval or None, backend.chores)
    backend.attach(housekeeper.poke)
    if not backend.read_only:
        housekeeper.start()
    return HybridMemoryService(Parts(backend.store, clock, settings, _closing(backend, housekeeper, off_loop)))


def _closing(backend: Backend, housekeeper: Housekeeper, off_loop: bool) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        if not backend.read_only:
            await asyncio.to_thread(housekeeper.stop) if off_loop else housekeeper.stop()
        await backend.store.close()

    return close


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
