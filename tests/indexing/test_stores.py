"""Vector stores outside the database are kept in step, compared and filled anew."""

import uuid
from dataclasses import replace

import pytest

from mnemon.errors import LeaseLost, NotFound, StoreUnavailable
from mnemon.facts import facts_of
from mnemon.indexing.stores import record_id
from mnemon.model import Drift, Progress
from mnemon.testing import ManualClock
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.vector_fakes import FakeVectorMemory
from tests.indexing.rig import Rig, Stores, rigged

FEED = "store:first:1"


async def drift(rig: Rig, *, mend: bool = False) -> Drift:
    return await rig.upkeep.verify("first", mend=mend)


def held(rig: Rig) -> dict[str, int]:
    """The keys and versions that the store holds."""
    return {str(r.about["key"]): int(r.about["version"]) for r in rig.stores["first"].records.values()}


async def fed(rig: Rig, **texts: str) -> FakeVectorMemory:
    """The store, after it was fed with some memories."""
    await rig.add(**texts)
    await rig.work()
    return rig.stores["first"]


# ---------------------------------------------------------------------------------------------------------- feeding


async def test_a_record_has_all_that_filters_and_people_ask_for(rig: Rig) -> None:
    await rig.memories.add_memory("user:alice:home", "city", "Alice lives in Oslo", metadata={"source": "chat", "n": 2})
    await rig.work()

    [record] = rig.stores["first"].records.values()
    space = await rig.space()
    [(memory_id,)] = await rig.peek("SELECT id FROM memory_entries")
    assert (record.id, record.memory_id) == (record_id("user:alice:home", "city"), memory_id)
    assert uuid.UUID(record.id).version == 5
    assert record.facts == facts_of("user:alice:home", "semantic", {"source": "chat", "n": 2})
    assert record.trust == 1.0
    assert "oslo" in record.words
    assert record.about == {
        "namespace": "user:alice:home", "key": "city", "version": 1,
        "model": "fake", "model_version": "1", "dimension": space.model.dimension,
    }  # fmt: skip
    assert record.embedding == pytest.approx((await rig.indexes().vectors.vectors_of(space, [memory_id]))[memory_id])


async def test_a_store_holds_the_current_version_of_what_is_live(rig: Rig) -> None:
    await fed(rig, a="one", b="two", c="three", d="four")
    await rig.memories.update_memory("user:alice", "a", "another")
    await rig.memories.delete_memory("user:alice", "b")
    await rig.memories.purge_memory("user:alice", "c")
    await rig.memories.delete_memory("user:alice", "d")
    await rig.memories.restore_memory("user:alice", "d")
    await rig.work()

    assert held(rig) == {"a": 2, "d": 3}
    assert await drift(rig) == Drift(0, 0, 0, checked=2)


async def test_memories_without_a_vector_come_when_they_have_one(
    rig: Rig, embedder: FakeEmbedder, clock: ManualClock
) -> None:
    await fed(rig, a="one")
    embedder.fail(times=2**30)
    await rig.add(b="two")
    await rig.work(FEED)
    assert held(rig) == {"a": 1}

    embedder.heal()
    clock.advance(300)
    await rig.work()
    assert held(rig) == {"a": 1, "b": 1}


async def test_a_store_that_was_down_catches_up_by_itself(rig: Rig) -> None:
    store = await fed(rig, a="one")
    store.go_down()
    await rig.add(b="two", c="three")
    await rig.memories.delete_memory("user:alice", "a")
    with pytest.raises(StoreUnavailable):
        await rig.work(FEED)
    store.heal()
    await rig.work(FEED)

    assert held(rig) == {"b": 1, "c": 1}
    assert (await drift(rig)).is_none


async def test_a_batch_that_was_stored_in_part_is_stored_whole_the_next_time(rig: Rig) -> None:
    store = await fed(rig, a="one")
    store.store_part(2)
    await rig.add(b="two", c="three", d="four")
    with pytest.raises(StoreUnavailable):
        await rig.work(FEED)
    assert len(held(rig)) == 3
    await rig.work(FEED)

    assert held(rig) == dict.fromkeys("abcd", 1)


async def test_an_answer_that_was_lost_leads_to_no_duplicate(rig: Rig) -> None:
    store = await fed(rig, a="one")
    store.fail("store", after_effect=True)
    await rig.add(b="two")
    with pytest.raises(StoreUnavailable):
        await rig.work(FEED)
    await rig.work(FEED)

    assert held(rig) == {"a": 1, "b": 1}
    assert len(store.records) == 2


async def test_a_store_that_lost_everything_is_filled_again(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    store = await fed(rig, a="one", b="two")
    store.records.clear()
    store.fail("store")
    await rig.add(c="three")
    with pytest.raises(StoreUnavailable):
        await rig.work(FEED)
    await rig.work(FEED)

    assert held(rig) == dict.fromkeys("abc", 1)
    assert "holds nothing, though it has been fed before" in caplog.text


async def test_a_worker_that_is_overtaken_leaves_nothing_old_in_the_store(rig: Rig, clock: ManualClock) -> None:
    """Given a worker that read a memory and stalled on its way to the store, when the memory changes and another worker
    stores that, then the first one, whose old version arrives late, puts it right before it gives up."""
    store = await fed(rig, a="one")
    await rig.memories.update_memory("user:alice", "a", "two")
    slow, quick = (rig.over(rig.store) for _ in range(2))
    seen: list[dict[str, int]] = []

    async def overtake() -> None:
        clock.advance(60)
        await rig.memories.update_memory("user:alice", "a", "three")
        await quick.work(FEED)
        seen.append(held(rig))

    rig.stores.sleep = rig.inside(overtake)
    store.delay("store", 1)
    with pytest.raises(LeaseLost):
        await slow.work(FEED)

    assert seen == [{"a": 3}]
    assert held(rig) == {"a": 3}
    assert await rig.work(FEED) == 0
    assert (await drift(rig)).is_none


async def test_a_delivery_that_arrives_after_its_worker_gave_up_is_made_up_for(rig: Rig, clock: ManualClock) -> None:
    """Given a worker whose delivery timed out, yet arrived, when another worker went on, then the first one, at its
    next turn, stores what is there now."""
    store = await fed(rig, a="one")
    await rig.memories.update_memory("user:alice", "a", "two")
    slow, quick = (rig.over(rig.store) for _ in range(2))
    store.fail("store", after_effect=True)
    with pytest.raises(StoreUnavailable):
        await slow.work(FEED)
    old = dict(store.records)
    await rig.memories.update_memory("user:alice", "a", "three")
    clock.advance(60)
    await quick.work(FEED)
    store.records.update(old)  # what was under way arrives now
    assert held(rig) == {"a": 2}

    await slow.work(FEED)
    assert held(rig) == {"a": 3}


async def test_a_memory_that_changes_while_it_is_stored_is_stored_again(rig: Rig) -> None:
    store = await fed(rig, a="one")
    await rig.memories.update_memory("user:alice", "a", "two")

    async def change() -> None:
        await rig.memories.update_memory("user:alice", "a", "three")

    rig.stores.sleep = rig.inside(change)
    store.delay("store", 1)
    [duty] = [each for each in await rig.upkeep.duties() if each.name == FEED]
    assert await duty.step() == 1
    assert held(rig) == {"a": 3}


# -------------------------------------------------------------------------------------------------------- comparing


async def spoil(rig: Rig) -> None:
    """Let the store differ in every way."""
    await fed(rig, a="one", b="two", c="three", d="four", e="five")
    records = rig.stores["first"].records
    old = records[record_id("user:alice", "a")]
    await rig.memories.update_memory("user:alice", "a", "another")
    gone = records[record_id("user:alice", "b")]
    await rig.memories.delete_memory("user:alice", "b")
    purged = records[record_id("user:alice", "c")]
    await rig.memories.purge_memory("user:alice", "c")
    await rig.work()
    strange = uuid.uuid4()
    records |= {old.id: old, gone.id: gone, purged.id: purged, str(strange): replace(old, id=str(strange))}
    del records[record_id("user:alice", "d")]


async def test_a_comparison_finds_what_is_missing_stale_and_too_much(rig: Rig) -> None:
    await spoil(rig)
    assert await drift(rig) == Drift(missing=1, stale=1, surplus=3, checked=5)
    assert held(rig) == {"a": 1, "b": 1, "c": 1, "e": 1}  # it only looked


async def test_a_comparison_can_mend_what_it_finds(rig: Rig) -> None:
    await spoil(rig)
    assert (await drift(rig, mend=True)).missing == 1

    assert held(rig) == {"a": 2, "d": 1, "e": 1}
    assert await drift(rig) == Drift(0, 0, 0, checked=3)


async def test_what_has_not_come_to_the_store_yet_is_no_drift(rig: Rig) -> None:
    await fed(rig, a="one", b="two", c="three", d="four")
    await rig.memories.update_memory("user:alice", "a", "another")
    await rig.memories.delete_memory("user:alice", "b")
    await rig.memories.purge_memory("user:alice", "c")
    await rig.add(e="five")

    found = await drift(rig)
    assert found.is_none
    assert (found.checked, found.pending) == (4, 4)
    await rig.work()
    assert await drift(rig) == Drift(0, 0, 0, checked=3)


async def test_a_comparison_goes_page_by_page(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemon.indexing.drift._PAGE", 7)
    await fed(rig, **{f"k{number}": f"number {number}" for number in range(40)})
    records = rig.stores["first"].records
    lost = sorted(records)[::5]
    for each in lost:
        del records[each]
    assert await drift(rig, mend=True) == Drift(missing=len(lost), stale=0, surplus=0, checked=40 - len(lost))
    assert await drift(rig) == Drift(0, 0, 0, checked=40)
    assert rig.stores["first"].calls["listing"] > 12


async def test_a_store_is_filled_anew(rig: Rig) -> None:
    """Given a store that lost some and has too much, when it is rebuilt, then it holds what it should."""
    await spoil(rig)
    heard: list[Progress] = []
    found = await rig.upkeep.rebuild("first", heard.append)

    assert (found.missing, found.surplus) == (0, 3)
    assert held(rig) == {"a": 2, "d": 1, "e": 1}
    assert (heard[-1].done, heard[-1].total) == (3, 3)
    assert await drift(rig) == Drift(0, 0, 0, checked=3)


async def test_a_new_store_can_be_filled_at_once(rig: Rig) -> None:
    await rig.add(a="one", b="two")
    await rig.upkeep.rebuild("first")

    assert held(rig) == {"a": 1, "b": 1}
    assert await rig.position_of(FEED) == await rig.journal.position()
    assert await rig.work(FEED) == 0


async def test_a_store_that_is_not_set_is_refused_by_name(rig: Rig) -> None:
    with pytest.raises(NotFound, match="'third' is set; there is: first"):
        await rig.upkeep.verify("third")


# ---------------------------------------------------------------------------------------------------- another model


async def test_a_store_follows_a_change_of_the_model(
    backend: str, url: str, options: dict[str, str], clock: ManualClock, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemon.indexing.reembedding._SPREAD", 0.0)
    first, second = FakeEmbedder(), FakeEmbedder(48, name="other")
    async with rigged(backend, url, first, second, clock=clock, stores=stores, **options) as rig:
        await fed(rig, a="one", b="two")
        old = await rig.space()
        stored = stores.of("first", old).calls["store"]
        new = await rig.upkeep.reembed("other")
        rig.upkeep._spaces.forget()
        await rig.work()

        assert {str(record.about["model"]) for record in stores.of("first", new).records.values()} == {"other"}
        assert len(stores.of("first", new).records) == 2
        await rig.add(c="three")
        await rig.work()
        assert len(stores.of("first", new).records) == 3
        assert len(stores.of("first", old).records) == 2  # nobody reads that any more
        assert stores.of("first", old).calls["store"] == stored  # vectors of the other space do not concern it
        clock.advance(11)  # until nobody can be asking it any more
        await rig.upkeep.drop_space(old)
        assert stores.of("first", old).records == {}
        names = [row[0] for row in await rig.peek("SELECT name FROM consumers ORDER BY name")]
        assert names == ["embeddings", f"space:{new.id}", f"store:first:{new.id}"]
