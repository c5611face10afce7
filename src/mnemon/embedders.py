"""The embedders of a program: loaded when first needed, each standing in for those before it while they are down."""

import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from mnemon.breaker import Breaker
from mnemon.clock import Clock
from mnemon.embedding_cache import CacheCounts
from mnemon.errors import DimensionMismatch, EmbedderUnavailable, InvalidSettings, ModelMismatch, StoreUnavailable
from mnemon.model import EmbeddingModel, Space
from mnemon.ports import Embedder, Vector
from mnemon.settings import Settings

T = TypeVar("T")

_LOG = logging.getLogger("mnemon.embedding")
_DEFAULT = "static"
_GIVEN = "given:"
_CUSTOM = "custom"  # brought by the caller, so that no command line can name it
_PROBE = ["dimension"]  # any word will do

Loader = Callable[[str], Embedder]


class Embedders:
    """Every embedder that the settings or the vector spaces name. Its methods may block; every thread may use it.

    The setting `embedder` is about one space, its home, and so are the fallbacks. Any other space is
    embedded by what it was made with.
    """

    def __init__(self, load: Loader, clock: Clock, settings: Settings) -> None:
        self.counts = CacheCounts()
        self._load = load
        self._clock = clock
        self._settings = settings
        self._sources: dict[str, _Source] = {}
        self._chains: dict[int, tuple[_Source, ...]] = {}

    def preferred(self, active: Space | None) -> str:
        """The embedder that the settings choose, given what the database has at present."""
        return self._settings.embedder or (active.provider if active else _DEFAULT)

    def model(self, specification: str) -> EmbeddingModel:
        """The model of an embedder, with its dimension, for which a remote one has to be asked."""
        return self._source(specification).model()

    def settle(self, spaces: Sequence[Space]) -> None:
        """Find the space that the settings are about, once it is known which there are; the active one comes first.

        `ModelMismatch` if there is none, `InvalidSettings` if a fallback is of another model.
        """
        specification = self.preferred(spaces[0])
        model = self._source(specification).ready().model
        home = next((space for space in spaces if _is_same(model, space.model)), None)
        if home is None:
            raise _mismatch(specification, model, spaces[0])
        for fallback in self._settings.embedder_fallbacks:
            self._check_fallback(fallback, home)
        self._chains[home.id] = self._chain(specification, *self._settings.embedder_fallbacks)

    def makes_vectors(self, space: Space) -> bool:
        """Whether texts can be embedded in the space at all, or vectors are only given."""
        return not all(source.is_given for source in self._sources_of(space))

    def is_quick(self, space: Space) -> bool:
        """Whether a short text is embedded in no time at present; not before the embedder was loaded."""
        embedder = self._sources_of(space)[0].embedder
        return embedder is not None and embedder.is_quick

    def embed(self, space: Space, texts: Sequence[str]) -> Vector:
        """A row of length 1 for each text; of zeros if the text has no direction, as where there is no word in it.

        `EmbedderUnavailable` if every embedder of the space is down, `DimensionMismatch` if one
        answers with vectors that do not fit.
        """
        reasons: list[str] = []
        for source in self._sources_of(space):
            try:
                vectors = source.embed(texts, space)
            except EmbedderUnavailable as error:
                reasons.append(f"{source.specification!r}: {error}")
            else:
                return _normalised(vectors)
        raise EmbedderUnavailable(f"nothing can embed in the space of {space.model} now ({'; '.join(reasons)})")

    def close(self) -> None:
        """Let go of every embedder; idempotent."""
        for source in list(self._sources.values()):
            source.close()

    def _check_fallback(self, fallback: str, home: Space) -> None:
        try:
            model = self._source(fallback).ready().model
        except EmbedderUnavailable:
            return  # it is looked at again when it is used
        if not _is_same(model, home.model):
            raise InvalidSettings(
                f"the fallback {fallback!r} is the model {model}, and what it is to stand in for is {home.model}: "
                "vectors of different models cannot be compared"
            )

    def _sources_of(self, space: Space) -> "tuple[_Source, ...]":
        chain = self._chains.get(space.id)
        return chain or self._chains.setdefault(space.id, self._chain(space.provider))

    def _chain(self, *specifications: str) -> "tuple[_Source, ...]":
        return tuple(map(self._source, dict.fromkeys(specifications)))

    def _source(self, specification: str) -> "_Source":
        source = self._sources.get(specification)
        return source or self._sources.setdefault(specification, _Source(specification, self._load, self._clock))


class _Source:
    """One embedder: loaded when it is first used, and left alone while it keeps failing."""

    def __init__(self, specification: str, load: Loader, clock: Clock) -> None:
        self.specification = specification
        self.is_given = specification.startswith(_GIVEN)
        self.embedder: Embedder | None = None
        self._load = load
        self._loading = threading.Lock()
        self._breaker = Breaker(clock)

    def ready(self) -> Embedder:
        """The embedder, which may have to be loaded first."""
        if self.embedder is None:
            with self._loading:
                if self.embedder is None:
                    self.embedder = self._watched(lambda: self._load(self.specification))
        return self.embedder

    def model(self) -> EmbeddingModel:
        embedder = self.ready()
        if not embedder.model.dimension:
            self._watched(lambda: embedder.embed(_PROBE))
        return embedder.model

    def embed(self, texts: Sequence[str], space: Space) -> Vector:
        """The vectors, checked to be of the space."""
        embedder = self.embedder or self._ready_for(space)
        if not _is_named(embedder.model, space.model):
            raise EmbedderUnavailable(f"it is now {embedder.model}")
        vectors = self._watched(lambda: embedder.embed(texts))
        if vectors.shape[1] != space.model.dimension:
            raise DimensionMismatch(
                f"the embedder {self.specification!r} answers with {vectors.shape[1]} dimensions, and the database's "
                f"vectors are of {space.model}: is it still the same model?"
            )
        return vectors

    def close(self) -> None:
        with self._loading:
            if self.embedder is not None:
                self.embedder.close()

    def _ready_for(self, space: Space) -> Embedder:
        """The embedder of a space that another process may have made; this one need not have what it takes."""
        try:
            return self.ready()
        except InvalidSettings as error:
            raise EmbedderUnavailable(f"it cannot be loaded here: {error}") from error

    def _watched(self, work: Callable[[], T]) -> T:
        if self.is_given:
            return work()  # that it makes no vectors is no outage
        if not self._breaker.allows():
            raise EmbedderUnavailable(
                f"it failed {self._breaker.failures} times in a row and is left alone for a while"
            )
        try:
            result = work()
        except StoreUnavailable as error:
            if self._breaker.failed():
                _LOG.warning("the embedder %r cannot be used: %s", self.specification, error)
            if isinstance(error, EmbedderUnavailable):
                raise
            raise EmbedderUnavailable(str(error)) from error
        if self._breaker.succeeded():
            _LOG.warning("the embedder %r can be used again", self.specification)
        return result


def _is_named(model: EmbeddingModel, wanted: EmbeddingModel) -> bool:
    return model.name == wanted.name and model.version == wanted.version


def _is_same(model: EmbeddingModel, wanted: EmbeddingModel) -> bool:
    """Whether they share a space, as far as is known: a remote model tells its dimension only when it answers."""
    return _is_named(model, wanted) and model.dimension in (0, wanted.dimension)


def _mismatch(specification: str, model: EmbeddingModel, active: Space) -> ModelMismatch:
    remedy = (
        "install the version that made them"
        if specification == active.provider
        else f"set embedder={active.provider!r} or leave it out"
    )
    command = "" if specification == _CUSTOM else f" or `mnemon index reembed {specification}`"
    return ModelMismatch(
        f"the database's vectors are of {active.model}, and the embedder {specification!r} is {model}: "
        f"{remedy}, or change the model with memory.reembed({specification!r}){command}"
    )


def _normalised(vectors: Vector) -> Vector:
    """The rows brought to length 1; where there is no length, or one that is no number, to zeros."""
    rows = np.array(vectors, np.float32)  # a copy: what the embedder returned may be its own
    for row in rows:
        length = math.sqrt(row.dot(row))
        if 0 < length < math.inf:
            row /= length
        else:
            row[:] = 0
    return rows
