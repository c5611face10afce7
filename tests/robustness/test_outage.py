"""PostgreSQL that cannot be reached, goes away under an open store, and comes back."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest

import mnemon
from mnemon import sync
from tests import servers
from tests.robustness.children import PATIENCE
from tests.robustness.conftest import Heartbeat
from tests.servers import Server


@pytest.fixture(scope="module")
def stoppable() -> Iterator[Server]:
    with servers.stoppable_postgres() as server:
        yield server


@pytest.fixture
def server(stoppable: Server) -> Server:
    """A server that runs, whatever an earlier test did to it."""
    stoppable.start()
    return stoppable


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    url = f"postgresql://mnemon:hushhush@127.0.0.1:{closed_port()}/postgres"
    began = time.monotonic()
    with pytest.raises(mnemon.StoreUnavailable, match="check that the server runs") as caught:
        await mnemon.open(url, connect_timeout=2)
    assert "hushhush" not in str(caught.value)
    with pytest.raises(ConnectionError, match="check that the server runs"):
        sync.open(url, connect_timeout=2)
    assert time.monotonic() - began < 20


async def until_it_works(memory: mnemon.HybridMemoryService) -> mnemon.Event:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return await memory.sessions.append_event("s1", {"n": "back"})
        except mnemon.StoreUnavailable:
            assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


@pytest.mark.servers
async def test_a_server_may_go_and_come_back_under_an_open_store(server: Server, heartbeat: Heartbeat) -> None:
    async with mnemon.open(server.url, connect_timeout=1, postgres_schema="gone_and_back") as memory:
        await memory.sessions.create_session("s1", "app", "alice")
        await memory.sessions.append_event("s1", {"n": "before"})
        changes = memory.changes(await memory.position(), True)
        # given a server that is stopped
        await asyncio.to_thread(server.stop)
        # when one writes or reads, then one is told, and the loop is not held up
        async with heartbeat:
            for request in (
                memory.sessions.append_event("s1", {"n": "lost"}),
                memory.sessions.get_session("s1"),
                memory.memories.search_memories(),
                anext(changes),
            ):
                with pytest.raises(mnemon.StoreUnavailable, match="check that the server"):
                    await request
        assert heartbeat.longest_pause < 0.5
        # and when it is back, the same store works again, with all that was there
        await asyncio.to_thread(server.start)
        event = await until_it_works(memory)
        bodies = [found.body["n"] for found in await memory.sessions.events("s1")]
        assert bodies == ["before", "back"]
        assert event.sequence == 2
        following = memory.changes(0, True)
        assert [(await anext(following)).entity for _ in range(3)] == ["session", "event", "event"]
        waiting = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0.05)
        await memory.sessions.append_event("s1", {"n": "later"})
        assert (await asyncio.wait_for(waiting, PATIENCE)).payload["sequence"] == 3


@pytest.mark.servers
def test_what_was_acknowledged_before_an_outage_is_kept(server: Server) -> None:
    # given writers on threads of the blocking face
    with sync.open(server.url, connect_timeout=1, postgres_schema="acknowledged") as memory:
        memory.sessions.create_session("s1", "app", "alice")
        acknowledged: list[int] = []
        outages: list[mnemon.StoreUnavailable] = []

        def write() -> None:
            for number in range(100_000):
                try:
                    acknowledged.append(memory.sessions.append_event("s1", {"n": number}).sequence)
                except mnemon.StoreUnavailable as error:
                    outages.append(error)
                    return

        writers = [threading.Thread(target=write) for _ in range(4)]
        for writer in writers:
            writer.start()
        time.sleep(0.5)
        # when the server goes in the middle of it
        server.stop()
        for writer in writers:
            writer.join(PATIENCE)
        assert len(outages) == 4
        # then every acknowledged write is there when it is back, and the log has no gap
        server.start()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                events = memory.sessions.events("s1")
                break
            except mnemon.StoreUnavailable:
                assert time.monotonic() < deadline
        sequences = [event.sequence for event in events]
        assert sequences == list(range(1, len(sequences) + 1))
        assert len(acknowledged) > 10
        assert set(acknowledged) <= set(sequences)
        assert memory.verify().intact
