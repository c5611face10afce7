"""The suite of workspaces, over every database and every store for contents."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio

import mnemon
from mnemon.testing import ManualClock, WorkspaceSuite
from tests.artifacts.stores import content_url
from tests.conformance.backends import OverEachDatabase, opened, url_of


class TestWorkspaces(OverEachDatabase, WorkspaceSuite):
    settings: ClassVar[Mapping[str, Any]] = {"content_url": "memory://"}


@pytest.mark.parametrize(
    ("backend", "contents"),
    [
        ("sqlite-file", "files"),
        pytest.param("sqlite-file", "objects", marks=pytest.mark.servers),
    ],
)
class TestWorkspacesWithContentsElsewhere(OverEachDatabase, WorkspaceSuite):
    @pytest_asyncio.fixture
    async def memory(
        self, backend: str, contents: str, clock: ManualClock, tmp_path: Path, request: pytest.FixtureRequest
    ) -> AsyncIterator[mnemon.HybridMemoryService]:
        place = content_url(contents, tmp_path, request)
        async with opened(backend, url_of(backend, tmp_path, request), clock, content_url=place) as memory:
            yield memory
