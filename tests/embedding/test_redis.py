"""The cache in Redis: shared by databases, forgotten in time, and missed by nobody while it is down."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import redis

import mnemon
from mnemon import InvalidSettings, StoreUnavailable
from mnemon.backends.redis import RedisCache
from mnemon.clock import moment
from mnemon.coroutines import InlineRunner, LoopRunner
from mnemon.embedding_cache import CacheStatistics
from mnemon.model import EmbeddingModel, Space, SpaceStatus
from mnemon.testing import FakeEmbedder, ManualClock
from tests.embedding.conftest import Make
from tests.servers import Server

SPACE = Space(7, "fake", EmbeddingModel("some model", "2", 3), SpaceStatus.ACTIVE, moment(0))
VECTOR = np.array([0.5, -1.5, 2.0], np.float32)


@pytest.fixture(params=[LoopRunner, InlineRunner])
def cache(request: pytest.FixtureRequest, valkey_server: Server, clock: ManualClock) -> Iterator[RedisCache]:
    cache = RedisCache(valkey_server.url, request.param(), clock)
    yield cache
    cache.close()
    cache.close()


@pytest.fixture
def client(valkey_server: Server) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(valkey_server.url) as client:
        client.flushdb()
        yield client


async def test_what_it_holds_is_as_documented(cache: RedisCache, client: "redis.Redis") -> None:
    await cache.put(SPACE, {"abc": VECTOR})
    key = b"mnemon:embedding:some model:2:3:abc"
    assert client.keys() == [key]
    assert client.get(key) == VECTOR.astype("<f4").tobytes()
    assert 29 * 86400 < client.ttl(key) <= 30 * 86400


async def test_what_is_used_stays(cache: RedisCache, client: "redis.Redis") -> None:
    await cache.put(SPACE, {"abc": VECTOR})
    client.expire("mnemon:embedding:some model:2:3:abc", 100)
    assert (await cache.get(SPACE, ["abc"])).keys() == {"abc"}
    assert client.ttl("mnemon:embedding:some model:2:3:abc") > 86400


async def test_rubbish_is_not_found(cache: RedisCache, client: "redis.Redis") -> None:
    client.set("mnemon:embedding:some model:2:3:abc", b"12345")
    client.lpush("mnemon:embedding:some model:2:3:def", "a list")
    assert await cache.get(SPACE, ["abc"]) == {}
    assert await cache.get(SPACE, ["def"]) == {}


async def test_while_it_is_down_it_has_nothing_and_says_so_once(
    cache: RedisCache, valkey_server: Server, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await cache.put(SPACE, {"abc": VECTOR})
    with caplog.at_level(logging.WARNING, "mnemon.embedding"):
        with valkey_server.outage():
            for _ in range(3):
                assert await cache.get(SPACE, ["abc"]) == {}
                await cache.put(SPACE, {"abc": VECTOR})
                clock.advance(40)
            with pytest.raises(StoreUnavailable, match="cannot be erased now"):
                await cache.drop(SPACE, ["abc"])
        clock.advance(40)
        await cache.put(SPACE, {"abc": VECTOR})
        assert (await cache.get(SPACE, ["abc"])).keys() == {"abc"}
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert messages[0].startswith("Redis cannot be used, and vectors are made anew meanwhile: ")
    assert messages[1] == "Redis can be used again"


async def test_while_it_is_down_it_is_left_alone(
    cache: RedisCache, valkey_server: Server, clock: ManualClock, client: "redis.Redis"
) -> None:
    with valkey_server.outage():
        assert await cache.get(SPACE, ["abc"]) == {}
    await cache.put(SPACE, {"abc": VECTOR})
    assert client.keys() == [], "asked again before its pause was over"
    clock.advance(1)
    await cache.put(SPACE, {"abc": VECTOR})
    assert len(client.keys()) == 1


def test_a_url_that_cannot_be_used_is_refused(clock: ManualClock) -> None:
    with pytest.raises(InvalidSettings, match="redis_url cannot be used") as caught:
        RedisCache("redis://:secret@host:port", InlineRunner(), clock)
    assert "secret" not in str(caught.value)


def test_without_the_client_library_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['redis'] = None; import mnemon.backends.redis"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "InvalidSettings: redis_url needs the client library: pip install 'mnemon[redis]'" in done.stderr


async def test_databases_share_what_is_in_redis(
    cache: RedisCache, client: "redis.Redis", make: Make, valkey_server: Server
) -> None:
    embedding = make(cache)
    (wanted,) = await embedding.embed_texts(["one"])
    other = make(cache)
    (found,) = await other.embed_texts(["one"])
    assert (embedding.statistics(), other.statistics()) == (CacheStatistics(0, 1), CacheStatistics(1, 0))
    assert all(np.array_equal(vector, found[space_id]) for space_id, vector in wanted.items())
    await embedding.forget(["one"])
    assert client.keys() == []
    with valkey_server.outage():
        assert all(await embedding.embed_texts(["one", "two"]))


async def test_an_open_memory_uses_redis_and_leaves_no_connection(valkey_server: Server, client: "redis.Redis") -> None:
    before = len(client.client_list())
    settings = {"embedder": FakeEmbedder(), "redis_url": valkey_server.url}
    async with mnemon.open("sqlite://", **settings) as memory:
        await memory.remember("Alice lives in Oslo", namespace="user:alice")
        for number in range(5):
            handle = memory.as_principal(mnemon.Principal(f"p{number}", {"user:alice": "read"}))
            assert await handle.recall("where does Alice live?", namespaces=["user:alice"])
        assert len(client.keys("mnemon:embedding:fake:1:32:*")) == 2
        assert len(client.client_list()) <= before + 2, "each principal has a connection of its own"
    assert len(client.client_list()) == before


def read_all(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_while_it_is_down_everything_else_is_erased(
    valkey_server: Server, client: "redis.Redis", tmp_path: Path
) -> None:
    """Given memories whose vectors are in Redis, when they are purged while it is down, then it says what is left."""
    settings = {"embedder": FakeEmbedder(), "redis_url": valkey_server.url, "background": False}
    async with mnemon.open(f"sqlite:///{tmp_path}/memory.db", **settings) as memory:
        for key in ("one", "two", "three"):
            await memory.remember(f"SECRET {key}", namespace="user:alice", key=key)
        with valkey_server.outage():
            with pytest.raises(StoreUnavailable, match=r"1 memory purged .* left in the embedder's cache"):
                await memory.memories.purge_memory("user:alice", "one")
            found = read_all(tmp_path)
            assert b"SECRET one" not in found
            assert b"SECRET two" in found
            with pytest.raises(StoreUnavailable, match=r"2 memories purged .* cannot be erased now"):
                await memory.forget("user:alice", erase=True)
            assert b"SECRET" not in read_all(tmp_path)
        assert [change.operation for change in (await memory.audit(entity="memory", limit=3)).items] == ["purge"] * 3
        with pytest.raises(mnemon.MemoryNotFound):
            await memory.memories.purge_memory("user:alice", "one")
