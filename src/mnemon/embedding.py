"""Turning texts into vectors, in every vector space where they are needed, with a cache for what is slow to make."""

import logging
from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np

from mnemon.clock import Clock
from mnemon.embedders import Embedders
from mnemon.embedding_cache import CacheStatistics, digest_of
from mnemon.errors import EmbedderUnavailable, ModelMismatch, StoreError
from mnemon.model import Space
from mnemon.ports import EmbeddingCache, Runner, Store, Vector
from mnemon.settings import Settings
from mnemon.spaces import Spaces
from mnemon.sql import chunks

_LOG = logging.getLogger("mnemon.embedding")
_OFF = "none"
_BATCH = 256
_FEW_CHARS = 1000  # what a quick embedder takes less than a millisecond for


class Embedding:
    """Embeds texts for one store. Memories are embedded before their transaction, questions before their search.

    A text is cut after `max_embedded_chars`. A vector has length 1; a text without a direction, such as
    an empty one, has no vector. All that have the same `embedders` share what was loaded, and their counts.
    """

    def __init__(
        self,
        embedders: Embedders,
        store: Store,
        runner: Runner,
        clock: Clock,
        settings: Settings,
        cache: EmbeddingCache | None = None,
    ) -> None:
        self.spaces = Spaces(store, clock)
        self._embedders = embedders
        self._runner = runner
        self._settings = settings
        self._cache = cache
        self._is_settled = False
        self._is_upkeep = False

    def for_upkeep(self) -> "Embedding":
        """The same for what has to be done to the vectors that there are, whatever embedder the settings choose.

        Another process may have changed the model since. Who writes or asks here has to be told so; the
        upkeep goes on, with what each space was made with.
        """
        other = copy(self)
        other._is_upkeep = True
        return other

    async def prepare(self) -> tuple[Space, ...]:
        """The spaces in use, the active one first. A new database gets its first one.

        There are none if embedding is switched off, or as long as nothing can tell the model's dimension.
        `ModelMismatch` if the settings choose another model than the database has vectors of, and
        `InvalidSettings` if what they choose cannot be loaded.
        """
        return await self._ready(create=True)

    async def embed_texts(self, texts: Sequence[str], *, cached: bool = True) -> list[dict[int, Vector]]:
        """For each text its vector in every space that is written to, by the space's id.

        A space whose embedders are all down is left out; the consumer `embeddings` sees to it later. What must leave
        nothing behind is not `cached`.
        """
        return await self._everywhere(await self._ready(create=True), texts, cached=cached)

    async def embed_question(self, text: str, *, cached: bool = True) -> dict[int, Vector]:
        """The vector of a question in every space that is read, by the space's id; none where it cannot be made."""
        found = await self._everywhere(await self._ready(create=False), [text], cached=cached)
        return found[0]

    async def embed_in(self, space: Space, texts: Sequence[str], *, cached: bool = True) -> Vector:
        """A row for each text, in one space; a row of zeros for a text without a direction.

        `EmbedderUnavailable` if it cannot be done now.
        """
        cut = self._cut(texts)
        if self._embedders.is_quick(space) and all(map(str.strip, cut)) and sum(map(len, cut)) <= _FEW_CHARS:
            return self._embedders.embed(space, cut)
        vectors = np.zeros((len(cut), space.model.dimension), np.float32)
        for piece in chunks([number for number, text in enumerate(cut) if text.strip()], _BATCH):
            vectors[piece] = await self._embed_batch(space, [cut[number] for number in piece], cached=cached)
        return vectors

    def makes_vectors(self, space: Space) -> bool:
        """Whether texts can be embedded in the space at all, or vectors are given."""
        return self._embedders.makes_vectors(space)

    async def begin(self, specification: str) -> Space:
        """A space of the model that an embedder has, to be filled: see `Spaces.begin`."""
        model = await self._runner.aside(lambda: self._embedders.model(specification))
        return await self.spaces.begin(specification, model)

    async def forget(self, texts: Sequence[str]) -> None:
        """Leave nothing of these texts in the cache, of any space."""
        if self._cache is not None:
            digests = [digest_of(text) for text in self._cut(texts)]
            for space in await self.spaces.all():
                await self._cache.drop(space, digests)

    def statistics(self) -> CacheStatistics:
        """How often the cache helped since the program began."""
        return self._embedders.counts.statistics()

    # -- which spaces

    async def _ready(self, *, create: bool) -> tuple[Space, ...]:
        if self._settings.embedder == _OFF:
            return ()
        spaces = await self.spaces.readable()
        if self._is_settled or not (spaces or create):
            return spaces
        try:
            spaces = spaces or await self._create()
            await self._runner.aside(lambda: self._embedders.settle(spaces))
        except EmbedderUnavailable:
            return ()
        except ModelMismatch:
            if not self._is_upkeep:
                raise
            return spaces
        self._is_settled = True
        return spaces

    async def _create(self) -> tuple[Space, ...]:
        specification = self._embedders.preferred(None)
        model = await self._runner.aside(lambda: self._embedders.model(specification))
        await self.spaces.ensure(specification, model)
        return await self.spaces.readable()

    # -- embedding

    def _cut(self, texts: Sequence[str]) -> list[str]:
        limit = self._settings.max_embedded_chars
        return [_encodable(text[:limit]) for text in texts]

    async def _everywhere(
        self, spaces: Sequence[Space], texts: Sequence[str], *, cached: bool = True
    ) -> list[dict[int, Vector]]:
        found: list[dict[int, Vector]] = [{} for _ in texts]
        if len(spaces) == 1:  # nearly always, and then there is nothing to do at once
            made = [await self._try_to_embed(spaces[0], texts, cached)]
        else:
            made = await self._runner.together(*(self._try_to_embed(space, texts, cached) for space in spaces))
        for space, vectors in zip(spaces, made, strict=True):
            for number, vector in enumerate(vectors):
                if vector.dot(vector) > 0.5:  # it has a direction, and so the length 1
                    found[number][space.id] = vector
        return found

    async def _try_to_embed(self, space: Space, texts: Sequence[str], cached: bool) -> "Sequence[Vector]":
        """A vector for each text, or none at all if it cannot be done now."""
        try:
            return tuple(await self.embed_in(space, texts, cached=cached))
        except EmbedderUnavailable:
            return ()

    async def _embed_batch(self, space: Space, texts: Sequence[str], *, cached: bool) -> Vector:
        if self._cache is None or not cached or self._embedders.is_quick(space):
            return await self._runner.aside(lambda: self._embedders.embed(space, texts))
        digests = [digest_of(text) for text in texts]
        known = await self._look_up(self._cache, space, list(dict.fromkeys(digests)))
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        self._embedders.counts.add(len(texts), sum(digest in missing for digest in digests))
        if missing:
            made = await self._runner.aside(lambda: self._embedders.embed(space, list(missing.values())))
            new = dict(zip(missing, made, strict=True))
            await self._keep(self._cache, space, {digest: vector for digest, vector in new.items() if vector.any()})
            known = {**known, **new}
        return np.stack([known[digest] for digest in digests])

    async def _look_up(self, cache: EmbeddingCache, space: Space, digests: Sequence[str]) -> Mapping[str, Vector]:
        try:
            return await cache.get(space, digests)
        except StoreError as error:
            _LOG.debug("the cache of vectors cannot be read: %s", error)
            return {}

    async def _keep(self, cache: EmbeddingCache, space: Space, vectors: Mapping[str, Vector]) -> None:
        try:
            await cache.put(space, vectors)
        except StoreError as error:  # as where the database is read-only
            _LOG.debug("the cache of vectors cannot be written: %s", error)


def _encodable(text: str) -> str:
    """The text, with a question mark for halves of characters, which no embedder takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
