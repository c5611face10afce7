"""The public suites, over every content store and every database."""

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio

import mnemon
from mnemon.backends.keeping import plan_keeping
from mnemon.ports import ContentStore
from mnemon.testing import QUIET, ArtifactSuite, ContentStoreSuite, ManualClock
from tests.artifacts.stores import KINDS, content_url
from tests.conformance.backends import OverEachDatabase


class OverEveryStore:
    """Stands before the suite and runs it over a store of each kind that takes little time to age."""

    @pytest.fixture(params=["memory", "files"])
    def contents(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContentStore]:
        yield from opened(request.param, request, tmp_path)


def opened(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContentStore]:
    store = plan_keeping(mnemon.Settings(content_url=content_url(kind, tmp_path, request)))().store
    yield store
    store.close()
    store.close()


class TestContents(OverEveryStore, ContentStoreSuite): ...


class TestObjects(ContentStoreSuite):
    old, rest, rounds = 1.5, 2.6, 3  # its moments are whole seconds

    @pytest.fixture
    def contents(self, object_server: object, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContentStore]:
        yield from opened("objects", request, tmp_path)


class TestArtifacts(OverEachDatabase, ArtifactSuite):
    settings: ClassVar[Mapping[str, Any]] = {"content_url": "memory://"}


class TestArtifactsOverEveryStore(ArtifactSuite):
    @pytest_asyncio.fixture(params=KINDS)
    async def memory(
        self, clock: ManualClock, tmp_path: Path, request: pytest.FixtureRequest
    ) -> AsyncIterator[mnemon.HybridMemoryService]:
        url = content_url(request.param, tmp_path, request)
        async with mnemon.open("sqlite://", clock=clock, content_url=url, **QUIET) as memory:
            yield memory
