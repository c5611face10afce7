"""What vector stores outside the database hold of spaces that are no longer in use is followed, and then removed."""

from collections.abc import AsyncIterator

import pytest

from mnemon.errors import LeaseLost, StoreUnavailable
from mnemon.indexing.embeddings import Embeddings
from mnemon.model import Space
from mnemon.testing import ManualClock
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.vector_fakes import FakeVectorMemory
from tests.indexing.rig import Rig, Stores, rigged

LONG = 11.0  # seconds after which nobody asks a retired space any more
OLD = "store:first:1"


@pytest.fixture(autouse=True)
def _no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of the model need not wait until others know of it."""
    monkeypatch.setattr("mnemon.indexing.reembedding._SPREAD", 0.0)


@pytest.fixture
async def changing(
    backend: str, url: str, options: dict[str, str], clock: ManualClock, embedder: FakeEmbedder, stores: Stores
) -> AsyncIterator[Rig]:
    """A rig that can change to another model."""
    another = FakeEmbedder(48, name="another")
    async with rigged(backend, url, embedder, another, clock=clock, stores=stores, embedder=None, **options) as rig:
        await rig.upkeep.reembed(embedder.model.name)
        yield rig


async def changed(rig: Rig, to: str = "another", **texts: str) -> tuple[FakeVectorMemory, Space]:
    """What the store holds of the old space after a change of the model, and that space."""
    await rig.add(**texts)
    await rig.work()
    old = await rig.space()
    await rig.upkeep.reembed(to)
    assert isinstance(rig.clock, ManualClock)
    rig.clock.advance(2)  # everybody knows of it
    await rig.work()
    return rig.stores.of("first", old), old


def keys(store: FakeVectorMemory) -> list[str]:
    return sorted(str(record.about["key"]) for record in store.records.values())


async def fed(rig: Rig) -> list[str]:
    return [row[0] for row in await rig.peek("SELECT name FROM consumers WHERE name LIKE 'store:%' ORDER BY name")]


async def test_what_is_purged_goes_from_a_retired_space_too(changing: Rig) -> None:
    old, _ = await changed(changing, a="one", b="two")
    assert keys(old) == ["a", "b"]
    await changing.memories.purge_memory("user:alice", "a")
    await changing.upkeep.settled()
    assert keys(old) == ["b"]


async def test_a_retired_space_is_removed_when_nobody_asks_it_any_more(changing: Rig, clock: ManualClock) -> None:
    old, _ = await changed(changing, a="one", b="two")
    new = changing.stores.of("first", await changing.space())
    clock.advance(LONG)
    assert await changing.work() > 0
    assert (old.calls["drop"], keys(old)) == (1, [])
    assert keys(new) == ["a", "b"]
    assert await fed(changing) == ["store:first:2"]
    await changing.work()
    await changing.upkeep.settled()
    assert old.calls["drop"] == 1, "removed again"


async def test_a_store_that_is_down_removes_it_when_it_is_back(changing: Rig, clock: ManualClock) -> None:
    old, space = await changed(changing, a="one")
    clock.advance(LONG)
    old.go_down()
    await changing.upkeep.drop_space(space)
    await changing.upkeep.settled()
    assert keys(old) == ["a"]
    assert OLD in await fed(changing)
    old.heal()
    await changing.upkeep.settled()
    assert keys(old) == []
    assert OLD not in await fed(changing)


async def test_a_space_that_is_dropped_goes_from_the_store_at_once(changing: Rig, clock: ManualClock) -> None:
    old, space = await changed(changing, a="one")
    clock.advance(LONG)
    await changing.upkeep.drop_space(space)
    assert keys(old) == []
    assert await fed(changing) == ["store:first:2"]


async def test_who_goes_back_to_a_model_has_everything_in_the_store(changing: Rig, clock: ManualClock) -> None:
    old, _ = await changed(changing, a="one", b="two")
    clock.advance(LONG)
    await changing.work()
    await changing.memories.purge_memory("user:alice", "a")
    await changing.add(c="three")
    await changed(changing, "fake")
    assert keys(old) == ["b", "c"]
    assert await changing.routed("two", 1) == (["b"], "first")


async def test_a_space_that_is_in_use_again_is_not_removed(changing: Rig, clock: ManualClock) -> None:
    """Given a worker that believes a space to be retired, when it was begun again meanwhile, then it stays."""
    old, space = await changed(changing, a="one")
    clock.advance(LONG)
    [late] = [duty for duty in await changing.upkeep.duties() if duty.is_due]
    await changing.embedding().spaces.begin("fake", space.model)
    assert await late.step() == 0
    assert (old.calls["drop"], keys(old)) == (0, ["a"])


async def dropped_while_down(rig: Rig, clock: ManualClock) -> tuple[FakeVectorMemory, Space]:
    """A space that was dropped while its store was down."""
    old, space = await changed(rig, a="one", b="two")
    clock.advance(LONG)
    old.go_down()
    await rig.upkeep.drop_space(space)
    old.heal()
    old.calls.clear()
    return old, space


async def begin_again(rig: Rig, old: FakeVectorMemory, space: Space) -> None:
    """Begin another space of the same model, which is kept in the same place of the store."""
    begun = await rig.embedding().spaces.begin("fake", space.model)
    rig.stores.fakes["first", begun.id] = old
    filling = Embeddings(rig.store, rig.journal, rig.clock, rig.indexes, rig.embedding, begun).duty
    while await filling.has_work():
        await filling.step()
    await rig.over(rig.store).work(f"store:first:{begun.id}")


async def test_a_model_that_comes_back_before_it_was_removed_keeps_what_it_has(
    changing: Rig, clock: ManualClock
) -> None:
    old, space = await dropped_while_down(changing, clock)
    await changing.memories.purge_memory("user:alice", "a")
    await begin_again(changing, old, space)
    await changing.work()
    assert await fed(changing) == ["store:first:2", "store:first:3"]
    assert (old.calls["drop"], keys(old)) == (0, ["b"])


async def test_a_model_that_comes_back_while_it_is_removed_is_filled_again(changing: Rig, clock: ManualClock) -> None:
    old, space = await dropped_while_down(changing, clock)
    again = changing.inside(lambda: begin_again(changing, old, space))
    changing.stores.sleep = again
    old.delay("drop", 1)
    await changing.work(OLD)
    assert (old.calls["drop"], keys(old)) == (1, [])
    clock.advance(2)
    await changing.work()
    assert await fed(changing) == ["store:first:2", "store:first:3"]
    assert keys(old) == ["a", "b"]


async def test_only_one_worker_removes(changing: Rig, clock: ManualClock) -> None:
    old, _ = await changed(changing, a="one")
    clock.advance(LONG)
    await changing.hold(OLD)
    assert await changing.work(OLD) == 0
    assert keys(old) == ["a"]
    await changing.release(OLD)
    old.fail("drop")
    with pytest.raises(StoreUnavailable):
        await changing.work(OLD)
    another = changing.over(changing.store)
    assert await another.work(OLD) == 1, "the lease was kept"
    assert keys(old) == []


async def test_a_worker_that_is_overtaken_while_it_removes_is_told(changing: Rig, clock: ManualClock) -> None:
    old, _ = await changed(changing, a="one")
    clock.advance(LONG)
    changing.stores.sleep = changing.inside(lambda: changing.hold(OLD))
    old.delay("drop", 1)
    with pytest.raises(LeaseLost):
        await changing.work(OLD)
    await changing.release(OLD)
    assert await changing.work(OLD) == 1
    assert OLD not in await fed(changing)


async def test_a_consumer_of_another_program_is_left_alone(changing: Rig, clock: ManualClock) -> None:
    await changed(changing, a="one")
    for name in ("store:first:99", "store:other:1", "store:mine"):
        await changing.hold(name)
    clock.advance(LONG)
    await changing.work()
    assert await fed(changing) == ["store:first:2", "store:first:99", "store:mine", "store:other:1"]
