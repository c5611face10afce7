"""The public suites, over every embedder and every cache."""

from collections.abc import AsyncIterator, Iterator
from functools import lru_cache

import pytest
import pytest_asyncio
import redis

from mnemon import Settings
from mnemon.backends.redis import RedisCache
from mnemon.coroutines import InlineRunner, LoopRunner
from mnemon.embedding_cache import DatabaseCache
from mnemon.ports import Embedder, EmbeddingCache, Store
from mnemon.providers.loading import load
from mnemon.testing import ManualClock
from mnemon.testing.embedders import EmbedderSuite, EmbeddingCacheSuite, FakeEmbedder
from tests.embedding import endpoints
from tests.servers import Server


@lru_cache
def loaded(specification: str) -> Embedder:
    """A model on this machine, which takes long to load."""
    return load(specification, Settings())


class TestStatic(EmbedderSuite):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return loaded("static")


class TestMiniLM(EmbedderSuite):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return loaded("onnx")


class TestOpenai(EmbedderSuite):
    @pytest.fixture
    def embedder(self, endpoint: endpoints.Endpoint) -> Iterator[Embedder]:
        embedder = load("openai:static-model", endpoint.settings)
        yield embedder
        embedder.close()


class TestOllama(EmbedderSuite):
    @pytest.fixture
    def embedder(self, endpoint: endpoints.Endpoint) -> Iterator[Embedder]:
        embedder = load("ollama:nomic-embed-text", endpoint.settings)
        yield embedder
        embedder.close()


class TestSentenceTransformers(EmbedderSuite):
    @pytest.fixture
    def embedder(self) -> Embedder:
        pytest.importorskip(
            "sentence_transformers", reason="needs torch, some gigabytes that the other tests do without"
        )
        return loaded("sentence_transformers:all-MiniLM-L6-v2")


class TestFake(EmbedderSuite):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return FakeEmbedder(64)


class TestDatabaseCache(EmbeddingCacheSuite):
    @pytest.fixture
    def cache(self, store: Store, clock: ManualClock) -> EmbeddingCache:
        return DatabaseCache(store, clock, rows=1000)


class TestRedisCache(EmbeddingCacheSuite):
    @pytest_asyncio.fixture(params=[LoopRunner, InlineRunner])
    async def cache(
        self, request: pytest.FixtureRequest, valkey_server: Server, clock: ManualClock
    ) -> AsyncIterator[EmbeddingCache]:
        cache = RedisCache(valkey_server.url, request.param(), clock)
        with redis.Redis.from_url(valkey_server.url) as client:
            client.flushdb()
        yield cache
        cache.close()
