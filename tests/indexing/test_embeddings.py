"""Memories get the words and vectors that they lack; the model is changed while everybody goes on."""

import asyncio
import random
from itertools import count
from typing import Any

import pytest

from mnemon.coroutines import InlineRunner
from mnemon.errors import EmbedderUnavailable, InvalidSettings, ModelMismatch
from mnemon.model import Progress, SpaceStatus
from mnemon.testing import FaultyStore, ManualClock, TaskCrowd, ThreadCrowd
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.suite import plant
from tests.indexing.rig import EVERYWHERE, Rig, rigged

NAME = "embeddings"
ALWAYS = 2**30


async def vectors(rig: Rig) -> list[tuple[Any, ...]]:
    """Key, version and space of every vector."""
    return await rig.peek(
        "SELECT key, version, space_id FROM memory_vectors JOIN memory_entries ON id = memory_id ORDER BY key, version"
    )


async def told(rig: Rig) -> list[tuple[str, int]]:
    """The keys and versions that the journal says were embedded later."""
    rows = await rig.peek("SELECT entity_id, version FROM journal WHERE operation = 'embed' ORDER BY position")
    return [(row[0], row[1]) for row in rows]


# ------------------------------------------------------------------------------------------ embedded when possible


async def test_what_was_embedded_when_it_was_written_is_left_alone(rig: Rig, embedder: FakeEmbedder) -> None:
    await rig.add(home="Alice lives in Oslo")
    calls = embedder.calls
    assert await rig.work(NAME) == 1

    assert embedder.calls == calls
    assert await told(rig) == []


async def test_memories_written_while_the_embedder_is_down_are_embedded_when_it_is_back(
    rig: Rig, embedder: FakeEmbedder, clock: ManualClock
) -> None:
    """Given an embedder that is down, when memories are written, then they are found by words; the consumer does not
    move on until the embedder is back, and then they are found by their vectors too, and the journal says so."""
    await rig.add(job="Bob is a baker")
    await rig.work()
    embedder.fail(times=ALWAYS)
    await rig.add(home="Alice lives in Oslo", pet="Alice has a cat")
    assert await rig.by_words("oslo") == ["home"]
    assert "home" not in await rig.near_with(embedder, "Oslo")
    position = await rig.position_of(NAME)

    with pytest.raises(EmbedderUnavailable):
        await rig.work(NAME)
    assert await rig.position_of(NAME) == position

    embedder.heal()
    clock.advance(300)  # for as long as the embedder is left alone after it failed
    await rig.work(NAME)
    assert (await rig.near("Oslo"))[0] == "home"
    assert await told(rig) == [("home", 1), ("pet", 1)]
    assert await rig.position_of(NAME) == await rig.journal.position()


async def test_memories_written_before_the_first_embedding_worked_are_not_forgotten(
    rig: Rig, embedder: FakeEmbedder, clock: ManualClock
) -> None:
    """Given a new database whose embedder has never answered, when it answers at last, then nothing is missing."""
    embedder.model = type(embedder.model)("fake", "1", 0)  # it tells its dimension only when it answers
    embedder.fail(times=ALWAYS)
    await rig.add(home="Alice lives in Oslo")
    ids = [row[0] for row in await rig.peek("SELECT id FROM memory_entries")]
    await rig.store.write(lambda tx: rig.indexes().words.drop(tx, ids))
    with pytest.raises(EmbedderUnavailable):
        await rig.work(NAME)
    assert await rig.by_words("oslo") == ["home"]  # words need no embedder

    embedder.heal()
    embedder.model = FakeEmbedder().model
    clock.advance(300)
    await rig.work(NAME)
    assert await rig.near("Oslo") == ["home"]


async def test_earlier_versions_get_their_vectors_too(rig: Rig, embedder: FakeEmbedder, clock: ManualClock) -> None:
    await rig.space()
    embedder.fail(times=ALWAYS)
    await rig.add(home="Alice lives in Oslo")
    await rig.memories.update_memory("user:alice", "home", "Alice lives in Bergen")
    embedder.heal()
    clock.advance(300)
    await rig.work(NAME)

    assert [row[:2] for row in await vectors(rig)] == [("home", 1), ("home", 2)]
    assert await told(rig) == [("home", 2)]  # only what is current concerns the stores
    assert await rig.near("Oslo") == ["home"]


async def test_what_was_deleted_or_purged_meanwhile_gets_none(
    rig: Rig, embedder: FakeEmbedder, clock: ManualClock
) -> None:
    await rig.space()
    embedder.fail(times=ALWAYS)
    await rig.add(secret="the code is 1234", home="Alice lives in Oslo")
    embedder.heal()
    clock.advance(300)
    faulty = FaultyStore(rig.store)
    other = rig.over(faulty)

    async def purge() -> None:
        await rig.memories.purge_memory("user:alice", "secret")

    faulty.interleave("write", purge, skip=1)  # after the lease was taken and everything read
    await other.work(NAME)

    assert [row[0] for row in await vectors(rig)] == ["home"]
    assert await told(rig) == [("home", 1)]


async def test_texts_that_say_nothing_have_no_vector_and_hold_up_nothing(rig: Rig) -> None:
    await rig.memories.add_memory("user:alice", "empty", "")
    await rig.memories.add_memory("user:alice", "odd", "!?!")
    await rig.add(home="Alice lives in Oslo")
    await rig.work(NAME)

    assert [row[0] for row in await vectors(rig)] == ["home"]
    assert await rig.position_of(NAME) == await rig.journal.position()


async def test_without_an_embedder_only_words_are_kept(backend: str, url: str, options: dict[str, str]) -> None:
    async with rigged(backend, url, **options) as rig:
        await rig.add(home="Alice lives in Oslo")
        await rig.work()
        assert await rig.by_words("oslo") == ["home"]
        assert await rig.peek("SELECT * FROM vector_spaces") == []
        with pytest.raises(InvalidSettings, match="switched off"):
            await rig.upkeep.reembed("other")


async def test_memories_of_an_older_schema_become_findable(rig: Rig, embedder: FakeEmbedder) -> None:
    """Given memories without words and vectors, as a migration leaves them, when the consumer has worked, then they
    are found by both; while the embedder is down, by words."""
    await rig.add(home="Alice lives in Oslo", old="Alice was in Rome")
    await rig.memories.update_memory("user:alice", "old", "Alice was in Paris")
    await rig.memories.add_memory("user:alice", "gone", "Alice was in Oslo")
    await rig.memories.delete_memory("user:alice", "gone")
    ids = [row[0] for row in await rig.peek("SELECT id FROM memory_entries")]
    await rig.store.write(lambda tx: rig.indexes().words.drop(tx, ids))
    await plant(rig.store, "DELETE FROM memory_vectors")
    assert await rig.by_words("oslo") == []

    embedder.fail(times=ALWAYS)
    with pytest.raises(EmbedderUnavailable):
        await rig.work(NAME)
    assert await rig.by_words("oslo") == ["home"]
    assert await rig.by_words("paris") == ["old"]
    assert await rig.by_words("rome") == []
    embedder.heal()
    rig.clock.advance(300)  # type: ignore[attr-defined]
    await rig.work(NAME)
    assert (await rig.near("Paris"))[0] == "old"
    assert [row[:2] for row in await vectors(rig)] == [("gone", 1), ("home", 1), ("old", 1), ("old", 2)]


@pytest.mark.parametrize("moment", range(8))
async def test_a_worker_that_dies_at_any_write_embeds_everything_once(
    rig: Rig, embedder: FakeEmbedder, moment: int
) -> None:
    await rig.space()
    embedder.fail(times=ALWAYS)
    for number in range(120):
        await rig.memories.add_memory("user:alice", f"k{number:03}", f"number {number}")
    embedder.heal()
    rig.clock.advance(300)  # type: ignore[attr-defined]
    faulty = FaultyStore(rig.store)
    faulty.fail("write", ConnectionResetError(), skip=moment // 2, after_effect=bool(moment % 2))
    with pytest.raises(ConnectionResetError):
        await rig.over(faulty).work(NAME)

    rig.clock.advance(60)  # type: ignore[attr-defined]
    await rig.work(NAME)
    assert len(await vectors(rig)) == 120
    assert sorted(await told(rig)) == [(f"k{number:03}", 1) for number in range(120)]


# -------------------------------------------------------------------------------------------------- another model


@pytest.fixture
def other() -> FakeEmbedder:
    return FakeEmbedder(48, name="other")


@pytest.fixture
async def pair(
    backend: str, url: str, options: dict[str, str], clock: ManualClock, embedder: FakeEmbedder, other: FakeEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:  # fmt: skip
    """A rig with two embedders, of which the first is in use."""
    monkeypatch.setattr("mnemon.indexing.reembedding._SPREAD", 0.0)
    async with rigged(backend, url, embedder, other, clock=clock, **options) as rig:
        yield rig


async def test_the_model_is_changed_with_all_that_there_is(pair: Rig, other: FakeEmbedder) -> None:
    await pair.add(home="Alice lives in Oslo", job="Bob is a baker")
    await pair.memories.update_memory("user:alice", "job", "Bob is a butcher")
    first = await pair.space()
    heard: list[Progress] = []

    space = await pair.upkeep.reembed("other", heard.append)

    assert (space.model, space.status) == (other.model, SpaceStatus.ACTIVE)
    assert await pair.space() == space
    assert (await pair.near("Oslo"))[0] == "home"
    assert [row for row in await vectors(pair) if row[2] == space.id] == [
        ("home", 1, space.id), ("job", 1, space.id), ("job", 2, space.id),
    ]  # fmt: skip
    assert (heard[-1].done, heard[-1].total) == (3, 3)
    assert heard[-1].rate > 0
    assert await pair.upkeep.reembed("other", heard.append) == space  # there is nothing left to do
    await pair.upkeep.drop_space(first)
    assert {row[2] for row in await vectors(pair)} == {space.id}


async def test_vectors_that_are_given_cannot_be_made_anew(pair: Rig) -> None:
    with pytest.raises(InvalidSettings, match="given, not made"):
        await pair.upkeep.reembed("given:mine:3")
    assert await pair.peek("SELECT status FROM vector_spaces") == [("retired",)]


async def test_an_interrupted_change_goes_on_where_it_was(pair: Rig, other: FakeEmbedder, clock: ManualClock) -> None:
    """Given a change of the model that was killed half-way, when it is begun again, then nothing is embedded twice."""
    for number in range(450):
        await pair.memories.add_memory("user:alice", f"k{number:03}", f"number {number}")
    faulty = FaultyStore(pair.store)
    faulty.fail("write", ConnectionResetError(), skip=8)
    with pytest.raises(ConnectionResetError):
        await pair.over(faulty).upkeep.reembed("other")
    done = len(other.texts)
    assert 200 <= done < 450
    assert (await pair.space()).model.name == "fake"

    clock.advance(60)
    await pair.upkeep.reembed("other")
    assert len(await vectors(pair)) == 900
    assert len(other.texts) <= 450 + 200  # at most the batch that was being written


async def test_a_change_that_another_process_is_at_is_waited_for(pair: Rig, backend: str) -> None:
    await pair.add(home="Alice lives in Oslo")
    filler = f"space:{(await pair.embedding().begin('other')).id}"
    await pair.hold(filler)
    heard: list[Progress] = []
    crowd = ThreadCrowd() if backend.endswith("blocking") else TaskCrowd()
    async with crowd.meanwhile(lambda: pair.release(filler), 0.2):
        assert (await pair.upkeep.reembed("other", heard.append)).status is SpaceStatus.ACTIVE
    assert [progress.done for progress in (heard[0], heard[-1])] == [0, 1]


class Traffic:
    """A writer and a reader that go on until they are stopped."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.written: list[int] = []
        self.missed: list[str] = []
        self.stopped = False

    async def write(self) -> None:
        for number in count():
            if self.stopped:
                return
            await self.rig.memories.add_memory(
                "user:alice", f"new{number}", f"the colour of boat {number} is v{number}"
            )
            self.written.append(number)
            await asyncio.sleep(0)

    async def read(self) -> None:
        chance = random.Random(1)
        while not self.stopped:
            number = chance.randrange(300)
            await self.look_for(f"old{number}", f"house {number} w{number}")
            if self.written:
                number = chance.choice(self.written[-20:])
                await self.look_for(f"new{number}", f"boat {number} v{number}")
            await asyncio.sleep(0)

    async def look_for(self, key: str, question: str) -> None:
        """In every space that is read."""
        rig, found = self.rig, set[str]()
        for space in await rig.embedding().prepare():
            [vector] = await rig.embedding().embed_in(space, [question])
            found |= set(await rig.keys(await rig.indexes().vectors.search(space, vector, EVERYWHERE, 5)))
        if key not in found:
            self.missed.append(key)


async def test_meanwhile_memories_are_written_to_both_and_read_from_both(pair: Rig) -> None:
    """Given a writer and a reader, when the model is changed under them, then nothing is ever missing."""
    if isinstance(pair.runner, InlineRunner):
        pytest.skip("there is one thread only")
    for number in range(300):
        await pair.memories.add_memory("user:alice", f"old{number}", f"the colour of house {number} is w{number}")
    traffic = Traffic(pair)

    async def change() -> None:
        await pair.upkeep.reembed("other")
        await asyncio.sleep(0.05)
        traffic.stopped = True

    await asyncio.gather(traffic.write(), traffic.read(), change())
    assert (await pair.space()).model.name == "other"
    assert len(traffic.written) > 5
    for number in traffic.written:
        await traffic.look_for(f"new{number}", f"boat {number} v{number}")
    assert traffic.missed == []


async def test_the_upkeep_goes_on_when_the_model_is_another_than_the_settings_choose(
    backend: str, url: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a handle that insists on an embedder and embedded nothing yet, when another changes the model, then who
    writes or asks is told so, and what was written before, or says an event, is still made findable."""
    monkeypatch.setattr("mnemon.indexing.reembedding._SPREAD", 0.0)
    clock = ManualClock()
    old, new = FakeEmbedder(), FakeEmbedder(48, name="another")
    async with rigged(backend, url, old, new, clock=clock, **options) as rig:
        await rig.add(a="one")
        late = rig.over(rig.store)
        await rig.upkeep.reembed("another")
        await rig.over(rig.store, embedder="none").add(b="without a vector")
        await rig.sessions.create_session("s1", "app", "alice")
        await rig.sessions.append_event("s1", {"role": "user", "text": "said meanwhile"})

        for _ in range(2):
            with pytest.raises(ModelMismatch, match=r"another 1 .*'fake' is fake 1 .*`mnemon index reembed fake`"):
                await late.add(c="three")
            with pytest.raises(ModelMismatch):
                await late.embedding().embed_question("three")
            await late.upkeep.settled()

        clock.advance(2)
        following = rig.over(rig.store, embedder=None)
        assert await following.near("without a vector", 1) == ["b"]
        assert await following.near("said meanwhile", 1) == ["event-0000000001"]
        assert await late.work() == 0
