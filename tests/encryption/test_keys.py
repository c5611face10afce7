"""Data keys: made once, rotated and wrapped anew while others go on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import mnemon
from mnemon.encryption.envelope import DataKey, Place, key_id_of
from mnemon.encryption.keys import DataKeys
from mnemon.encryption.masters import MasterKeys, new_master_key
from mnemon.errors import KeyUnavailable, WrongKey
from mnemon.testing import QUIET
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import journal_after, peek, plant

OLD, NEW = new_master_key("2025"), new_master_key("2026")
PLACE = Place("memory_entries", "value", "user:alice", "diet", 1)


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[mnemon.HybridMemoryService]:
    async with mnemon.open(f"sqlite:///{tmp_path}/m.db", **QUIET) as opened:
        yield opened


def keys_of(memory: mnemon.HybridMemoryService, *masters: str) -> DataKeys:
    """The keys as another process would come to know them."""
    parts = parts_of(memory)
    return DataKeys(parts.store, parts.clock, MasterKeys(masters or [OLD]), parts.runner)


async def current(memory: mnemon.HybridMemoryService, keys: DataKeys, scope: str = "user:alice") -> DataKey:
    return await parts_of(memory).store.write(lambda tx: keys.current(tx, scope))


async def test_a_scope_has_one_key_whoever_asks(memory: mnemon.HybridMemoryService):
    found = await asyncio.gather(*(current(memory, keys_of(memory)) for _ in range(20)))
    assert len({(key.id, key.secret) for key in found}) == 1
    assert (await current(memory, keys_of(memory), "user:bob")).secret != found[0].secret
    assert [row[:3] for row in await journal_after(parts_of(memory).store) if row[0] == "data_key"] == [
        ("data_key", found[0].id, "create"),
        ("data_key", (await current(memory, keys_of(memory), "user:bob")).id, "create"),
    ]


async def test_preparing_makes_the_key_and_is_done_once(memory: mnemon.HybridMemoryService):
    keys = keys_of(memory)
    await asyncio.gather(*(each.prepare("user:alice") for each in (keys, keys_of(memory), keys_of(memory))))
    assert await peek(parts_of(memory).store, "SELECT COUNT(*) FROM data_keys") == [(1,)]
    assert (await current(memory, keys)).id == (await current(memory, keys_of(memory))).id


async def test_a_transaction_that_fails_leaves_no_key(memory: mnemon.HybridMemoryService):
    keys, store = keys_of(memory), parts_of(memory).store

    async def unit(tx: mnemon.Transaction) -> None:
        await keys.current(tx, "user:alice")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await store.write(unit)
    assert await peek(store, "SELECT * FROM data_keys") == []
    made = await current(memory, keys)
    assert await keys_of(memory).find(store.fetch, [made.id]) == {made.id: made}


async def test_rotation_is_known_to_all_at_once_and_the_old_key_still_opens(memory: mnemon.HybridMemoryService):
    here, there, store = keys_of(memory), keys_of(memory), parts_of(memory).store
    before = await current(memory, there)
    sealed = before.seal("text", PLACE)
    rotated = await here.rotate("user:alice", "admin")
    assert (await current(memory, there)).id == rotated != before.id
    [opener] = (await keys_of(memory).find(store.fetch, [key_id_of(sealed)])).values()
    assert opener.open(sealed, PLACE) == "text"
    assert [row[2] for row in await journal_after(store)] == ["create", "retire", "create"]


async def test_a_new_master_key_takes_over_without_a_pause(memory: mnemon.HybridMemoryService):
    old, store = keys_of(memory, OLD), parts_of(memory).store
    sealers = [await current(memory, old, f"user:{number}") for number in range(250)]
    both = keys_of(memory, NEW, OLD)
    assert (await current(memory, both, "user:1")).secret == sealers[1].secret
    assert await both.rewrap() == 250
    assert await both.rewrap() == 0
    found = await keys_of(memory, NEW).find(store.fetch, [key.id for key in sealers])
    assert {key.secret for key in found.values()} == {key.secret for key in sealers}
    assert (await current(memory, old, "user:2")).id == sealers[2].id  # a process that has not heard of it yet
    with pytest.raises(KeyUnavailable, match="'2026' is needed"):
        await keys_of(memory, OLD).find(store.fetch, [sealers[0].id])


async def test_a_wrong_master_key_is_told(memory: mnemon.HybridMemoryService):
    made = await current(memory, keys_of(memory, OLD))
    with pytest.raises(WrongKey):
        await current(memory, keys_of(memory, new_master_key("2025")))
    with pytest.raises(KeyUnavailable, match="no data key 'gone'"):
        await keys_of(memory).find(parts_of(memory).store.fetch, ["gone", made.id])


async def test_a_wrapped_key_cannot_be_given_to_another_scope(memory: mnemon.HybridMemoryService):
    store = parts_of(memory).store
    await current(memory, keys_of(memory), "user:mallory")
    await plant(store, "UPDATE data_keys SET namespace = 'user:alice'")
    with pytest.raises(WrongKey):
        await current(memory, keys_of(memory))


async def test_no_key_is_in_the_database_as_it_is(memory: mnemon.HybridMemoryService):
    made = await current(memory, keys_of(memory))
    [(wrapped,)] = await peek(parts_of(memory).store, "SELECT wrapped FROM data_keys")
    assert made.secret not in wrapped
    assert len(wrapped) == 12 + 32 + 16
