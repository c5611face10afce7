"""Waiting until everything that was written can be found."""

import time
from pathlib import Path

import pytest

from mnemon.errors import EmbedderUnavailable, MnemonError, NotSettled
from mnemon.testing import ManualClock, TaskCrowd, ThreadCrowd
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.suite import unchanged
from tests.indexing.rig import Rig, Stores, rigged


@pytest.fixture
def stores() -> Stores:
    return Stores("first", "second")


async def converse(rig: Rig, *texts: str) -> None:
    if await rig.sessions.get_session("s1") is None:
        await rig.sessions.create_session("s1", "helpdesk", "alice")
    await rig.sessions.append_events("s1", [{"text": text} for text in texts])


async def test_everything_written_before_can_be_found_after(rig: Rig) -> None:
    """Given events and memories, when one waits until all is settled, then words, vectors and every store know them."""
    await converse(rig, *(f"event {number} in Oslo" for number in range(130)))
    await rig.add(home="Alice lives in Bergen")

    await rig.upkeep.settled()

    assert await rig.by_words("bergen") == ["home"]
    assert (await rig.near("Bergen"))[0] == "home"
    for name in ("first", "second"):
        assert len(rig.stores[name].records) == 131
        assert (await rig.upkeep.verify(name)).is_none
    assert await rig.routed("Bergen", 1) == (["home"], "first")


async def test_where_nothing_is_left_to_do_nothing_is_written(rig: Rig) -> None:
    await converse(rig, "hello")
    await rig.upkeep.settled()
    async with unchanged(rig.store):
        await rig.upkeep.settled()


async def test_a_store_that_is_down_is_not_waited_for(rig: Rig) -> None:
    await rig.add(a="one")
    await rig.upkeep.settled()
    rig.stores["first"].go_down()
    await rig.add(b="two")
    await rig.upkeep.settled()

    assert len(rig.stores["second"].records) == 2
    assert await rig.routed("two", 1) == (["b"], "second")


async def test_an_embedder_that_is_down_is_said(rig: Rig, embedder: FakeEmbedder, clock: ManualClock) -> None:
    await rig.space()
    embedder.fail(times=2**30)
    await converse(rig, "hello from Oslo")
    with pytest.raises(EmbedderUnavailable):
        await rig.upkeep.settled()
    assert await rig.by_words("oslo") == ["event-0000000001"]  # it can be found by its words

    embedder.heal()
    clock.advance(300)
    await rig.upkeep.settled()
    assert await rig.near("Oslo") == ["event-0000000001"]


@pytest.mark.parametrize("consumer", ["conversations", "embeddings", "store:second:1"])
async def test_what_another_process_is_at_is_waited_for(rig: Rig, backend: str, consumer: str) -> None:
    await rig.add(a="one")
    await rig.upkeep.settled()
    await converse(rig, "hello")
    await rig.hold(consumer)
    crowd = ThreadCrowd() if backend.endswith("blocking") else TaskCrowd()
    async with crowd.meanwhile(lambda: rig.release(consumer), 0.2):
        began = time.monotonic()
        await rig.upkeep.settled(30)
        assert time.monotonic() - began > 0.1
    assert len(rig.stores["second"].records) == 2


async def test_one_who_may_only_read_waits_for_others(tmp_path: Path, embedder: FakeEmbedder) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    async with rigged("sqlite-file", url, embedder) as writer:
        await converse(writer, "hello")
        async with rigged("sqlite-file", f"{url}?mode=ro", embedder) as reader:
            with pytest.raises(NotSettled):
                await reader.upkeep.settled(0.1)
            async with TaskCrowd().meanwhile(writer.upkeep.settled):
                await reader.upkeep.settled(30)
            assert await reader.by_words("hello") == ["event-0000000001"]


async def test_waiting_has_an_end_if_one_wants_it(rig: Rig) -> None:
    await converse(rig, "hello")
    await rig.hold("conversations")
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="conversations") as caught:
        await rig.upkeep.settled(0.2)

    assert 0.15 < time.monotonic() - began < 5
    assert isinstance(caught.value, NotSettled)
    assert isinstance(caught.value, MnemonError)


async def test_a_worker_that_died_is_replaced_when_its_lease_is_over(rig: Rig, clock: ManualClock) -> None:
    await converse(rig, "hello")
    await rig.hold("conversations", 10)
    clock.advance(11)
    await rig.upkeep.settled(30)

    assert await rig.by_words("hello") == ["event-0000000001"]
