"""Vectors that were made before, kept in Redis by the model and the digest of their text.

A key is `mnemon:embedding:<model>:<version>:<dimension>:<digest>`, its value the vector as 32-bit floats, the
lowest byte first. Programs with different databases can share a Redis: what a text is embedded to depends on
the model alone. A vector that was not used for 30 days is forgotten.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from mnemon.breaker import Breaker
from mnemon.clock import Clock
from mnemon.embedding_cache import from_bytes, to_bytes
from mnemon.errors import InvalidSettings, StoreUnavailable
from mnemon.model import Space
from mnemon.ports import Runner, Vector
from mnemon.sql import chunks

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ModuleNotFoundError:
    raise InvalidSettings("redis_url needs the client library: pip install 'mnemon[redis]'") from None

T = TypeVar("T")

_LOG = logging.getLogger("mnemon.embedding")
_LIFETIME = 30 * 24 * 3600  # seconds
_PATIENCE = 0.5  # seconds: to embed again takes not much longer


class RedisCache:
    """An `EmbeddingCache` in Redis, or what speaks its protocol. While it is down, it is as if it had nothing."""

    def __init__(self, url: str, runner: Runner, clock: Clock) -> None:
        try:
            self._client: Any = cast("Any", redis).Redis.from_url(
                url, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE, retry=Retry(NoBackoff(), 1)
            )
        except ValueError as error:
            raise InvalidSettings(f"redis_url cannot be used: {error}") from None  # with the password in it
        self._runner = runner
        self._breaker = Breaker(clock, failures=1, longest=30.0)

    async def get(self, space: Space, digests: Sequence[str]) -> dict[str, Vector]:
        stored = await self._try(lambda: self._get([_key(space, digest) for digest in digests]), [])
        found = ((digest, from_bytes(value, space)) for digest, value in zip(digests, stored, strict=False) if value)
        return {digest: vector for digest, vector in found if vector is not None}

    async def put(self, space: Space, vectors: Mapping[str, Vector]) -> None:
        values = {_key(space, digest): to_bytes(vector) for digest, vector in vectors.items()}
        await self._try(lambda: self._put(values), None)

    async def drop(self, space: Space, digests: Sequence[str]) -> None:
        try:
            await self._runner.aside(lambda: self._drop([_key(space, digest) for digest in digests]))
        except redis.RedisError as error:
            raise StoreUnavailable(f"what Redis keeps of these texts cannot be erased now: {error}") from error

    def close(self) -> None:
        """Let go of every connection; idempotent."""
        self._client.close()

    async def _try(self, work: Callable[[], T], otherwise: T) -> T:
        if not self._breaker.allows():
            return otherwise
        try:
            result = await self._runner.aside(work)
        except redis.RedisError as error:
            if self._breaker.failed():
                _LOG.warning("Redis cannot be used, and vectors are made anew meanwhile: %s", error)
            return otherwise
        if self._breaker.succeeded():
            _LOG.warning("Redis can be used again")
        return result

    def _get(self, keys: Sequence[str]) -> list[bytes | None]:
        with self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.getex(key, ex=_LIFETIME)  # what is used stays
            return pipeline.execute()

    def _put(self, values: Mapping[str, bytes]) -> None:
        with self._client.pipeline(transaction=False) as pipeline:
            for key, value in values.items():
                pipeline.set(key, value, ex=_LIFETIME)
            pipeline.execute()

    def _drop(self, keys: Sequence[str]) -> None:
        for piece in chunks(keys):
            self._client.delete(*piece)


def _key(space: Space, digest: str) -> str:
    model = space.model
    return f"mnemon:embedding:{model.name}:{model.version}:{model.dimension}:{digest}"
