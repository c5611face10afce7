"""The cache in the database: what was embedded once is not embedded again, and the least used goes first."""

import numpy as np

from mnemon import Settings, StoreUnavailable
from mnemon.backends.redis import RedisCache
from mnemon.backends.sqlite import opening as sqlite
from mnemon.coroutines import InlineRunner, complete
from mnemon.embedders import Embedders
from mnemon.embedding import Embedding
from mnemon.embedding_cache import CacheStatistics, DatabaseCache
from mnemon.ports import Store
from mnemon.testing import FaultyStore, ManualClock
from mnemon.testing.suite import peek
from tests.embedding.conftest import Make, Shelf
from tests.servers import Server


async def rows(store: Store) -> int:
    return (await peek(store, "SELECT COUNT(*) FROM embedding_cache"))[0][0]


async def test_a_text_is_embedded_once(make: Make, shelf: Shelf, store: Store, clock: ManualClock) -> None:
    embedding = make(DatabaseCache(store, clock, 100))
    first = await embedding.embed_texts(["one", "two", "one"])
    assert shelf.fake().texts == ["one", "two"]
    assert embedding.statistics() == CacheStatistics(hits=0, misses=3)
    second = await embedding.embed_texts(["two", "three"])
    assert shelf.fake().texts == ["one", "two", "three"]
    assert embedding.statistics() == CacheStatistics(hits=1, misses=4)
    assert await rows(store) == 3
    for space_id, vector in first[1].items():
        assert np.array_equal(vector, second[0][space_id])
    other = make(DatabaseCache(store, clock, 100))
    await other.embed_question("one")
    assert other.statistics() == CacheStatistics(hits=1, misses=0)


async def test_that_a_text_got_no_vector_is_not_kept(
    make: Make, shelf: Shelf, store: Store, clock: ManualClock
) -> None:
    embedding = make(DatabaseCache(store, clock, 100))
    assert await embedding.embed_texts(["..."]) == [{}]
    assert await rows(store) == 0
    await embedding.embed_texts(["..."])
    assert shelf.fake().texts == ["...", "..."]


async def test_a_quick_embedder_needs_no_cache(make: Make, store: Store, clock: ManualClock) -> None:
    embedding = make(DatabaseCache(store, clock, 100), embedder="quick")
    await embedding.embed_texts(["one", "word " * 1000])
    assert await rows(store) == 0
    assert embedding.statistics() == CacheStatistics(0, 0)


async def test_a_cached_vector_needs_no_embedder(make: Make, shelf: Shelf, store: Store, clock: ManualClock) -> None:
    embedding = make(DatabaseCache(store, clock, 100))
    (wanted,) = await embedding.embed_texts(["one"])
    shelf.fake().fail(times=100)
    (found,) = await embedding.embed_texts(["one"])
    assert found.keys() == wanted.keys()
    assert await embedding.embed_texts(["another"]) == [{}]


async def test_the_cache_keeps_what_was_used_last(make: Make, shelf: Shelf, store: Store, clock: ManualClock) -> None:
    embedding = make(DatabaseCache(store, clock, 10))
    for number in range(10):
        await embedding.embed_texts([f"text {number}"])
        clock.advance(3600)
    await embedding.embed_texts(["text 0"])  # used again, so it is not the oldest any more
    clock.advance(3600)
    await embedding.embed_texts(["text 10"])
    assert await rows(store) == 10
    shelf.fake().texts.clear()
    await embedding.embed_texts(["text 0", "text 2", "text 1"])
    assert shelf.fake().texts == ["text 1"]


async def test_a_large_cache_is_not_counted_at_every_turn(store: Store, clock: ManualClock, make: Make) -> None:
    faulty = FaultyStore(store)
    embedding = make(DatabaseCache(faulty, clock, 100))
    for number in range(30):
        await embedding.embed_texts([f"text {number}"])
    assert 3 <= faulty.statements["trim_cache"] <= 7


async def test_a_hit_is_seldom_a_write(make: Make, store: Store, clock: ManualClock) -> None:
    faulty = FaultyStore(store)
    embedding = make(DatabaseCache(faulty, clock, 100))
    await embedding.embed_texts(["one"])
    for _ in range(10):
        await embedding.embed_texts(["one"])
    assert faulty.calls["write"] == 1
    clock.advance(3600)
    await embedding.embed_texts(["one"])
    assert faulty.calls["write"] == 2


async def test_a_cache_that_fails_is_as_if_it_had_nothing(make: Make, store: Store, clock: ManualClock) -> None:
    faulty = FaultyStore(store)
    embedding = make(DatabaseCache(faulty, clock, 100))
    faulty.fail("write", StoreUnavailable("down"), times=2)
    faulty.fail("fetch", StoreUnavailable("down"), times=1)
    assert all(await embedding.embed_texts(["one"]))
    assert all(await embedding.embed_texts(["one"]))
    assert await rows(store) == 0
    clock.advance(3600)
    assert all(await embedding.embed_texts(["one"]))
    clock.advance(3600)
    faulty.fail("write", StoreUnavailable("read-only"))
    assert all(await embedding.embed_texts(["one"])), "it was found, though its use could not be noted"
    assert embedding.statistics() == CacheStatistics(1, 3)


async def test_what_is_forgotten_is_in_no_cache(make: Make, store: Store, clock: ManualClock) -> None:
    embedding = make(DatabaseCache(store, clock, 100), max_embedded_chars=10)
    await embedding.embed_texts(["a secret that is long", "other"])
    await embedding.spaces.activate(await embedding.begin("other"))
    await embedding.embed_texts(["a secret that is long", "other"])
    assert await rows(store) == 4
    await embedding.forget(["a secret that is long", "unknown"])
    assert await rows(store) == 2
    await make().forget(["without a cache"])


def test_without_an_event_loop_nothing_waits_for_one(valkey_server: Server, shelf: Shelf, clock: ManualClock) -> None:
    """Given the blocking face, when texts are embedded in two spaces, with caches, then no coroutine suspends."""
    store = sqlite.open_blocking(Settings(url="sqlite://")).store
    settings = Settings(embedder="fake", embedder_fallbacks=("second",))
    redis = RedisCache(valkey_server.url, InlineRunner(), clock)
    for cache in (DatabaseCache(store, clock, 10), redis):
        embedders = Embedders(shelf.load, clock, settings)
        embedding = Embedding(embedders, store, InlineRunner(), clock, settings, cache)
        complete(embedding.begin("other"))
        complete(embedding.spaces.ensure("fake", shelf.fake().model))
        (vectors,) = complete(embedding.embed_texts([f"some text {clock.new_id()}"]))
        assert len(vectors) == 2
        assert len(complete(embedding.embed_question("some text"))) == 2
        complete(embedding.forget(["some text"]))
    redis.close()
    complete(store.close())
