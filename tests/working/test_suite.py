"""The suite of working memory, over every database, with a copy in Redis and without."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import mnemon
from mnemon.testing import ManualClock, WorkingSuite
from tests.conformance.backends import OverEachDatabase, opened, url_of
from tests.servers import Server


class TestInTheDatabase(OverEachDatabase, WorkingSuite): ...


class TestWithACopyInRedis(OverEachDatabase, WorkingSuite):
    @pytest_asyncio.fixture
    async def memory(
        self, backend: str, clock: ManualClock, tmp_path: Path, request: pytest.FixtureRequest, valkey: Server
    ) -> AsyncIterator[mnemon.HybridMemoryService]:
        settings = {"working_store": "redis", "redis_url": valkey.url}
        async with opened(backend, url_of(backend, tmp_path, request), clock, **settings) as memory:
            yield memory


class TestReadingTheDatabaseFirst(TestWithACopyInRedis):
    @pytest.fixture(params=["sqlite-file"])
    def backend(self, request: pytest.FixtureRequest) -> str:
        return request.param

    @pytest_asyncio.fixture
    async def memory(
        self, backend: str, clock: ManualClock, tmp_path: Path, request: pytest.FixtureRequest, valkey: Server
    ) -> AsyncIterator[mnemon.HybridMemoryService]:
        settings = {"working_store": "redis", "redis_url": valkey.url, "working_reads": "database"}
        async with opened(backend, url_of(backend, tmp_path, request), clock, **settings) as memory:
            yield memory
