"""Servers that are killed, collections that vanish, keys that are refused: what a driver says, and how it recovers."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mnemon.backends.stores import load_store
from mnemon.errors import MnemonError, StoreError, StoreUnavailable
from mnemon.facts import EVERY_FACT, filter_for
from mnemon.ports import VectorMemory, VectorQuery, VectorRecord
from mnemon.settings import Settings
from mnemon.testing.vector_samples import axis, every_call, ids_found, pages, record_of, some_records, space_of, vectors
from tests.servers import Server
from tests.stores.servers import TIMEOUT, own_collections, remove_collections, url_of

SPACE = space_of("first")
WAYS = ["qdrant-http", "qdrant-grpc", "weaviate", "chroma"]


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


@pytest.fixture
def store(way: str, server: Server, own: Settings) -> Iterator[VectorMemory]:
    store = load_store(url_of(server, grpc=way != "qdrant-http"), SPACE, own)
    yield store
    store.close()


def patiently(call: Callable[[], object]) -> None:
    """Do it as soon as the server, which is there again, can be reached again."""
    deadline = time.monotonic() + 20
    while True:
        try:
            call()
            return
        except StoreUnavailable:
            assert time.monotonic() < deadline, "the driver does not find the server again"
            time.sleep(0.1)


def found_by_vector(store: VectorMemory) -> set[int]:
    """Everything, by a question that no store answers approximately: with a filter, each compares all that meet it."""
    found = store.query(VectorQuery(axis(0), store.describe().vectors + 10, filter_for(["user:alice"], (), None)))
    return {match.memory_id for match in found}


# ------------------------------------------------------------------------------------------------------------ kills


def test_a_killed_server_is_reported_at_once_and_found_again(server: Server, store: VectorMemory) -> None:
    """Given a store in use, when its server is killed, then every call says so quickly; when the server is back,
    then the same driver goes on, and everything that was stored is there."""
    store.store(some_records(300))
    with server.outage():
        for call in every_call(store):
            begun = time.monotonic()
            with pytest.raises(StoreUnavailable, match="check that the server runs"):
                call()
            assert time.monotonic() - begun < TIMEOUT + 1
    patiently(store.describe)
    assert store.describe().vectors == 300
    assert len(ids_found(store, EVERY_FACT)) == 300
    store.store([record_of(1000, axis(0))])
    assert store.describe().vectors == 301


def test_a_store_that_is_opened_while_its_server_is_down_works_later(server: Server, store: VectorMemory) -> None:
    with server.outage(), pytest.raises(StoreUnavailable):
        store.store(some_records(1))
    patiently(lambda: store.store(some_records(5)))
    assert ids_found(store, EVERY_FACT) == set(range(5))


def test_a_kill_in_the_middle_of_writes_loses_nothing_that_was_accepted(server: Server, store: VectorMemory) -> None:
    """Given threads that write and ask, when the server is killed under them, then they see `StoreUnavailable` and
    nothing else, and what `store` had accepted is found afterwards. What it had not can be stored again, or deleted,
    whatever is left of it."""
    directions = vectors(50_000, seed=8)
    accepted: list[VectorRecord] = []
    refused: list[VectorRecord] = []

    def work(first: int) -> None:
        for number in range(first, first + 10_000, 5):
            batch = [record_of(n, directions[n]) for n in range(number, number + 5)]
            try:
                store.query(VectorQuery(axis(1), 3, EVERY_FACT))
                store.store(batch)
            except StoreUnavailable:
                refused.extend(batch)
                return
            accepted.extend(batch)

    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(work, 10_000 * number) for number in range(4)]
        deadline = time.monotonic() + 30
        while len(accepted) < 200 and time.monotonic() < deadline:
            time.sleep(0.01)
        with server.outage():
            for each in done:
                each.result(30)
    patiently(store.describe)
    assert len(accepted) >= 200
    assert found_by_vector(store) >= {record.memory_id for record in accepted}
    store.store(refused[::2])
    store.delete([record.id for record in refused[1::2]])
    everything = {record.memory_id for record in [*accepted, *refused[::2]]}
    assert found_by_vector(store) == everything
    assert {memory_id for _, memory_id in pages(store, 500)} == everything


# ------------------------------------------------------------------------------------------------ collections, keys


def test_a_collection_that_vanished_is_reported_and_made_anew(
    server: Server, store: VectorMemory, own: Settings
) -> None:
    """Given a collection that somebody deletes, when the store is used, then each kind of call reports it, and the
    next one finds a new, empty collection."""
    for number in range(5):
        store.store(some_records(3))
        remove_collections(server, own)
        with pytest.raises(StoreError, match="the collection is gone"):
            every_call(store)[number]()
        assert store.describe().vectors == 0
    store.store([record_of(1, axis(0), namespace="user:al")])
    assert ids_found(store, EVERY_FACT) == {1}


class Doorkeeper(BaseHTTPRequestHandler):
    """Lets nobody in, and remembers the keys that were shown."""

    keys: list[str]

    def refuse(self) -> None:
        self.keys += [value for name, value in self.headers.items() if "key" in name.lower() or "auth" in name.lower()]
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(401)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = refuse  # noqa: N815 - names that the standard library asks for

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def doorkeeper() -> Iterator[ThreadingHTTPServer]:
    Doorkeeper.keys = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Doorkeeper) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
@pytest.mark.parametrize("technology", ["qdrant", "weaviate", "chroma"])
@pytest.mark.parametrize("place", ["password", "variable"])
def test_the_key_is_sent_and_never_shown(
    doorkeeper: ThreadingHTTPServer, technology: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_KEY", "hush/hush")
    host = f"127.0.0.1:{doorkeeper.server_address[1]}"
    url = {
        "password": f"{technology}://:hush%2Fhush@{host}",
        "variable": f"{technology}://{host}?api_key_env=STORE_KEY",
    }[place]
    store = load_store(url, SPACE, Settings())
    with pytest.raises(MnemonError) as refused:
        store.describe()
    assert any("hush/hush" in key for key in Doorkeeper.keys)
    assert not isinstance(refused.value, StoreUnavailable)
    assert "check the key" in str(refused.value)
    assert "hush" not in f"{refused.value} {store!r} {vars(store)}"
    store.close()
