"""Other handles on an open memory: with other settings, another embedder or a model, or over a store before its own."""

from dataclasses import replace
from functools import cache
from typing import Any

from mnemon.embedders import Embedders
from mnemon.embedding import Embedding
from mnemon.hybrid import HybridMemoryService
from mnemon.language import CheckedModel
from mnemon.ports import Embedder, LanguageModel, Runner, Store
from mnemon.services import Parts


def parts_of(memory: HybridMemoryService) -> Parts:
    """What the handle is put together from."""
    return memory._parts  # pyright: ignore[reportPrivateUsage] - the suites stand behind the service's back


def with_settings(memory: HybridMemoryService, **settings: Any) -> HybridMemoryService:
    """A handle on the same store with some other settings; closing is left to `memory`."""
    parts = parts_of(memory)
    return HybridMemoryService(replace(parts, settings=replace(parts.settings, **settings), closing=_leave_open))


def over(memory: HybridMemoryService, store: Store) -> HybridMemoryService:
    """A handle like `memory` on another store; closing is left to `memory`."""
    return HybridMemoryService(replace(parts_of(memory), store=store, closing=_leave_open))


def with_embedder(memory: HybridMemoryService, embedder: Embedder) -> HybridMemoryService:
    """A handle on the same store that embeds with this; closing both is left to the caller."""
    parts = parts_of(memory)
    settings = replace(parts.settings, embedder="custom")
    embedders = Embedders(lambda _: embedder, parts.clock, settings)

    @cache
    def embedding(store: Store, runner: Runner) -> Embedding:
        return Embedding(embedders, store, runner, parts.clock, settings)

    return HybridMemoryService(replace(parts, settings=settings, embedding=embedding, closing=_leave_open))


def with_language_model(memory: HybridMemoryService, model: LanguageModel) -> HybridMemoryService:
    """A handle on the same store that asks this model; closing both is left to the caller."""
    parts = parts_of(memory)
    checked = CheckedModel(model, parts.clock, parts.settings)
    return HybridMemoryService(replace(parts, language=lambda: checked, closing=_leave_open))


async def _leave_open() -> None:
    return
