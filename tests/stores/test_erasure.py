"""What is purged goes from every collection of a real vector store, and what a space left there goes with it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mnemon import sync
from mnemon.settings import Settings
from mnemon.testing import ManualClock
from mnemon.testing.embedders import FakeEmbedder
from tests.servers import Server
from tests.stores.servers import collections_of, own_collections, url_of

WAYS = ["qdrant-http", "qdrant-grpc", "weaviate", "chroma"]
PATIENCE = 60.0


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
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(
    tmp_path: Path, way: str, server: Server, own: Settings, clock: ManualClock
) -> Iterator[sync.BlockingMemory]:
    with sync.open(
        f"sqlite:///{tmp_path}/memory.db",
        clock=clock,
        embedder=FakeEmbedder(),
        vector_stores=[url_of(server, grpc=way != "qdrant-http")],
        vector_collection_prefix=own.vector_collection_prefix,
        vector_timeout=5.0,
        seal_interval=None,
        background=False,
    ) as memory:
        yield memory


def change_the_model(memory: sync.BlockingMemory, clock: ManualClock) -> None:
    for key in ("a", "b"):
        memory.remember(f"text {key}", namespace="user:alice", key=key)
    memory.settled()
    memory.reembed("static")
    clock.advance(2)
    memory.settled()


def test_a_purge_reaches_the_collection_of_the_old_model(
    memory: sync.BlockingMemory, clock: ManualClock, server: Server, own: Settings
) -> None:
    change_the_model(memory, clock)
    assert sorted(collections_of(server, own).values()) == [2, 2]
    memory.memories.purge_memory("user:alice", "a")
    memory.settled()
    assert sorted(collections_of(server, own).values()) == [1, 1]
    # when nobody asks it any more, it goes
    clock.advance(11)
    memory.settled()
    assert list(collections_of(server, own).values()) == [1]
    assert memory.index.verify()[server.name.lower()].is_none


def test_a_store_that_is_down_when_a_space_is_dropped_removes_it_when_it_is_back(
    memory: sync.BlockingMemory, clock: ManualClock, server: Server, own: Settings
) -> None:
    change_the_model(memory, clock)
    clock.advance(11)
    with server.outage():
        memory.forget("user:alice", "a", erase=True)
        [old] = [space for space in memory.index.spaces() if space.status == "retired"]
        memory.index.drop_space(old)
        memory.settled()
    eventually(lambda: memory.settled() or list(collections_of(server, own).values()) == [1])
    assert [each.name for each in memory.consumers() if each.name.startswith("store:")] == [
        f"store:{server.name.lower()}:2"
    ]


def eventually(holds: Callable[[], bool | None]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)
