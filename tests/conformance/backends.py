"""Every backend that the suites run over, each with an empty database."""

import atexit
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
import pytest_asyncio

import mnemon
import mnemon.sync
from mnemon.assembly import Given, open_blocking
from mnemon.testing import QUIET, Crowd, ManualClock, TaskCrowd, ThreadCrowd

# Coverage is measured over one face of each database: what the others have of their own has tests of its own.
SQLITE = [
    "sqlite-file",
    *(pytest.param(f"sqlite-{face}", marks=pytest.mark.unmeasured) for face in ("memory", "full", "blocking")),
]
POSTGRES = [
    pytest.param("postgres", marks=pytest.mark.servers),
    pytest.param("postgres-blocking", marks=[pytest.mark.servers, pytest.mark.unmeasured]),
]
BACKENDS = [*SQLITE, *POSTGRES]
DATABASES = ["sqlite-file", SQLITE[-1], POSTGRES[0]]
SETTINGS: dict[str, Any] = {**QUIET, "postgres_schema": "conformance"}
TABLES = (
    "events", "archived_events", "tasks", "sessions", "state", "memory_entries", "journal", "consumers", "seals",
    "memory_texts", "memory_vectors", "embedding_cache", "vector_spaces", "agents", "artifacts", "workspaces",
    "document_index", "episodes", "reviews", "data_keys", "memory_uses", "archives", "growth",
)  # fmt: skip

INDEXES_OF_SPACES = """
SELECT relname FROM pg_class
WHERE relnamespace = 'conformance'::regnamespace AND relname LIKE 'idx_memory_vectors_space_%'
"""


def url_of(name: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """The URL of an empty database for the backend of this name; open it with `SETTINGS`."""
    if name.startswith("postgres"):
        server = request.getfixturevalue("postgres_server")
        empty_postgres(server)
        return server
    return "sqlite://" if name == "sqlite-memory" else f"sqlite:///{folder}/mnemon.db"


def empty_postgres(server: str) -> None:
    """Leave nothing of the tests before; to make the schema anew each time would take most of the time."""
    connection = _janitor(server)
    if connection.execute("SELECT to_regclass('journal')").fetchone() == (None,):
        return
    with connection.transaction():
        connection.execute("; ".join(f"DELETE FROM {table}" for table in TABLES))
        for column in ("journal", "position"), ("memory_entries", "id"):
            connection.execute("SELECT setval(pg_get_serial_sequence(%s, %s), 1, FALSE)", column)
        for (index,) in connection.execute(INDEXES_OF_SPACES).fetchall():
            connection.execute(f"DROP INDEX {index}")


@cache
def _janitor(server: str) -> "psycopg.Connection[tuple[Any, ...]]":
    """A connection that stays: each new one has to read what the tables are before it can empty them."""
    connection = psycopg.connect(server, autocommit=True, options="-c search_path=conformance -c lock_timeout=5s")
    atexit.register(connection.close)
    return connection


@asynccontextmanager
async def opened(
    name: str, url: str, clock: mnemon.Clock, **settings: Any
) -> AsyncIterator[mnemon.HybridMemoryService]:
    """The backend, open; nothing happens in the background."""
    chosen = {**SETTINGS, **settings}
    if name.endswith("blocking"):
        memory = open_blocking(Given(url, chosen, clock))
    elif name == "sqlite-full":
        memory = await mnemon.open(url, clock=clock, synchronous="full", **chosen)
    else:
        memory = await mnemon.open(url, clock=clock, **chosen)
    try:
        yield memory
    finally:
        await memory.close()


class OverEveryBackend:
    """Stands before a suite and runs it over everything we ship."""

    settings: ClassVar[Mapping[str, Any]] = {}
    """What the suite needs in place of `SETTINGS`."""

    @pytest.fixture(params=BACKENDS)
    def backend(self, request: pytest.FixtureRequest) -> str:
        return request.param

    @pytest.fixture
    def crowd(self, backend: str) -> Crowd:
        return ThreadCrowd() if backend.endswith("blocking") else TaskCrowd()

    @pytest_asyncio.fixture
    async def memory(
        self, backend: str, clock: ManualClock, tmp_path: Path, request: pytest.FixtureRequest
    ) -> AsyncIterator[mnemon.HybridMemoryService]:
        async with opened(backend, url_of(backend, tmp_path, request), clock, **self.settings) as memory:
            yield memory


class OverEachDatabase(OverEveryBackend):
    """Stands before the suite of a service that uses a database only as others do.

    That its other faces (in memory, with every write synchronous) do the same is shown by the suites of those.
    """

    @pytest.fixture(params=DATABASES)
    def backend(self, request: pytest.FixtureRequest) -> str:
        return request.param


@pytest.fixture(params=["sqlite-file", "sqlite-memory", pytest.param("postgres", marks=pytest.mark.servers)])
def blocking_memory(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[mnemon.sync.BlockingMemory]:
    """One database of each kind, for tests without an event loop; import it to use it."""
    with mnemon.sync.open(url_of(request.param, tmp_path, request), **SETTINGS) as memory:
        yield memory
