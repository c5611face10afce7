"""Fixtures that every suite may use."""

import os
from collections.abc import Generator, Iterator
from uuid import uuid4

import coverage
import hypothesis
import psycopg
import pytest

from tests import servers

pytest.register_assert_rewrite("mnemon.testing")

# How long one example takes depends on the machine, and says nothing about the code.
hypothesis.settings.register_profile("mnemon", deadline=None)
hypothesis.settings.load_profile("mnemon")


SERVERS = {f"{name}_server" for name in ("chroma", "language", "object", "postgres", "qdrant", "weaviate")}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for a server by a fixture, so that `-m servers` finds it."""
    for item in items:
        if not SERVERS.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.servers)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Do not measure the coverage of what is marked so: under measurement, everything takes half as long again."""
    measuring = coverage.Coverage.current() if item.get_closest_marker("unmeasured") else None
    if measuring is None:
        return (yield)
    measuring.stop()
    try:
        return (yield)
    finally:
        measuring.start()


@pytest.fixture(scope="session", autouse=True)
def _children_are_not_measured() -> None:
    """Measure what runs tests, not what they start: that would take twice as long, and the killed tell nothing."""
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("MNEMON_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a real PostgreSQL that lives as long as the test session."""
    with servers.postgres() as url:
        yield url


@pytest.fixture(scope="session")
def qdrant_server() -> Iterator[servers.Server]:
    """A real Qdrant that lives as long as the test session."""
    with servers.qdrant() as server:
        yield server


@pytest.fixture(scope="session")
def weaviate_server() -> Iterator[servers.Server]:
    """A real Weaviate that lives as long as the test session."""
    with servers.weaviate() as server:
        yield server


@pytest.fixture(scope="session")
def chroma_server() -> Iterator[servers.Server]:
    """A real Chroma that lives as long as the test session."""
    with servers.chroma() as server:
        yield server


@pytest.fixture(scope="session")
def object_server() -> Iterator[servers.Server]:
    """A real S3 endpoint that lives as long as the test session."""
    with servers.objects() as server:
        yield server


@pytest.fixture(scope="session")
def language_server() -> Iterator[servers.Server]:
    """A real, tiny language model that lives as long as the test session."""
    with servers.language_model() as server:
        yield server


@pytest.fixture
def postgres_schema(postgres_server: str) -> Iterator[str]:
    """The name of a schema that no other test uses; dropped afterwards."""
    schema = f"test_{uuid4().hex}"
    yield schema
    # A transaction that the test left open holds locks: say so instead of waiting for it.
    with psycopg.connect(postgres_server, autocommit=True, options="-c lock_timeout=5s") as connection:
        connection.execute(f'SET client_min_messages = warning; DROP SCHEMA IF EXISTS "{schema}" CASCADE')


@pytest.fixture
def postgres_url(postgres_server: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of PostgreSQL; what is opened there, in child processes too, goes to `postgres_schema`."""
    monkeypatch.setenv("MNEMON_POSTGRES_SCHEMA", postgres_schema)
    return postgres_server
