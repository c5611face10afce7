"""Databases with an embedder that tests can take down, and vector stores in memory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mnemon.testing import ManualClock
from mnemon.testing.embedders import FakeEmbedder
from tests.indexing.rig import Rig, Stores, rigged

FACES = [
    "sqlite-file",
    "sqlite-memory",
    "sqlite-blocking",
    pytest.param("postgres", marks=pytest.mark.servers),
    pytest.param("postgres-blocking", marks=pytest.mark.servers),
]


@pytest.fixture(params=FACES)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of an empty database."""
    if backend.startswith("postgres"):
        return request.getfixturevalue("postgres_url")
    return "sqlite://" if backend == "sqlite-memory" else f"sqlite:///{tmp_path}/mnemon.db"


@pytest.fixture
def options(backend: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """The settings without which the URL would name another database."""
    return {"postgres_schema": request.getfixturevalue("postgres_schema")} if backend.startswith("postgres") else {}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def stores() -> Stores:
    """One vector store outside the database."""
    return Stores("first")


@pytest.fixture
async def rig(
    backend: str, url: str, options: dict[str, str], clock: ManualClock, embedder: FakeEmbedder, stores: Stores
) -> AsyncIterator[Rig]:
    async with rigged(backend, url, embedder, clock=clock, stores=stores, **options) as rig:
        yield rig
