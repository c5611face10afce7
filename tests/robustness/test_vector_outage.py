"""Vector servers killed in the middle of writes and questions: nobody notices, and the server catches up by itself."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mnemon import sync
from mnemon.settings import Settings
from mnemon.testing.embedders import FakeEmbedder
from tests.servers import Server
from tests.stores.servers import own_collections, url_of

pytestmark = pytest.mark.unmeasured

WAYS = ["qdrant-http", "qdrant-grpc", "weaviate", "chroma"]
PATIENCE = 120.0
MIRROR = "mirror"


@pytest.fixture(params=[pytest.param(way, marks=pytest.mark.servers) for way in WAYS])
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server(way: str, request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(f"{way.partition('-')[0]}_server")


@pytest.fixture
def own(server: Server) -> Iterator[Settings]:
    with own_collections(server) as settings:
        yield settings


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else f"sqlite:///{tmp_path}/memory.db"


@pytest.fixture
def memory(database: str, way: str, server: Server, own: Settings) -> Iterator[sync.BlockingMemory]:
    with sync.open(
        database,
        embedder=FakeEmbedder(),
        vector_stores=[url_of(server, grpc=way != "qdrant-http")],
        vector_collection_prefix=own.vector_collection_prefix,
        vector_timeout=2.0,
        seal_interval=None,
    ) as memory:
        yield memory


class Traffic:
    """Threads that write and ask without a pause; what went wrong, and who answered."""

    def __init__(self, memory: sync.BlockingMemory) -> None:
        self.memory = memory
        self.written = 0
        self.served: Counter[str] = Counter()
        self.faults: list[BaseException] = []
        self.slowest = 0.0
        self._stopped = threading.Event()

    @contextmanager
    def going_on(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._run, args=[work]) for work in (self.write, self.ask, self.ask)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()

    def write(self) -> None:
        number = self.written
        self.memory.memories.add_memory("user:alice", f"k{number}", f"the colour of boat {number} is v{number}")
        self.written += 1
        if number % 7 == 3:
            self.memory.memories.update_memory(
                "user:alice", f"k{number - 1}", f"boat {number - 1} was sold: v{number - 1}"
            )
        if number % 11 == 5:
            self.memory.memories.delete_memory("user:alice", f"k{number - 2}")
        time.sleep(0.002)

    def ask(self) -> None:
        """Look for what was written last: a question must see it, whoever answers."""
        number = self.written - 1
        if number < 0:
            return
        [vector] = FakeEmbedder().embed([f"the colour of boat {number} is v{number}"])
        began = time.monotonic()
        matches = self.memory.vectors.query(vector, top_k=5)
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.served[matches.served_by] += 1
        present = self.memory.memories.get_memory("user:alice", f"k{number}")
        if present and present.version == 1:
            assert f"k{number}" in [match.id for match in matches]
        time.sleep(0.002)

    def _run(self, work: Callable[[], None]) -> None:
        while not self._stopped.is_set():
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - it is what the test looks for
                self.faults.append(error)
                return


def eventually(happens: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_server_is_never_noticed_and_catches_up(memory: sync.BlockingMemory, server: Server, way: str) -> None:
    """Given threads that write and ask, when the vector server is killed under them and comes back, then no write
    fails, every question is answered with the newest, and without any help nothing differs in the end."""
    name = way.partition("-")[0]
    traffic = Traffic(memory)
    with traffic.going_on():
        eventually(lambda: traffic.served[name] or traffic.faults)
        with server.outage():
            before = traffic.served[MIRROR], traffic.written
            eventually(
                lambda: (traffic.served[MIRROR] > before[0] + 20 and traffic.written > before[1] + 20) or traffic.faults
            )
        answered = traffic.served[name]
        eventually(lambda: traffic.served[name] > answered or traffic.faults)

    assert traffic.faults == []
    assert traffic.slowest < 30
    eventually(lambda: memory.vectors.describe()[0].lag == 0)
    [drift] = memory.index.verify().values()
    assert (drift.missing, drift.stale, drift.surplus, drift.pending) == (0, 0, 0, 0)
    live = len(list_all(memory))
    assert drift.checked == live > 40
    assert memory.vectors.describe()[0].vectors == live


def list_all(memory: sync.BlockingMemory) -> list[str]:
    keys: list[str] = []
    cursor = None
    while True:
        page = memory.memories.search_memories("user:alice", limit=1000, cursor=cursor)
        keys += [found.key for found in page]
        cursor = page.next_cursor
        if cursor is None:
            return keys
