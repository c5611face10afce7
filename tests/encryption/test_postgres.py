"""The same over PostgreSQL: keys are bytes there, and rows are locked."""

import asyncio

import psycopg
import pytest

import mnemon
from mnemon.encryption.envelope import is_sealed
from mnemon.encryption.keys import DataKeys
from mnemon.encryption.masters import MasterKeys, new_master_key
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import peek

KEY = new_master_key("k1")
SCHEMA = "encryption"
ALICE = "user:alice"


@pytest.mark.servers
async def test_memories_are_sealed_and_keys_rotated(postgres_server: str):
    with psycopg.connect(postgres_server) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
    async with mnemon.open(
        postgres_server, postgres_schema=SCHEMA, background=False, embedder="none",
        encrypted_namespaces=("user",), encryption_keys=(KEY,),
    ) as memory:  # fmt: skip
        parts = parts_of(memory)
        await asyncio.gather(*(memory.memories.add_memory(ALICE, f"k{n}", n, metadata={"n": n}) for n in range(20)))
        assert await peek(parts.store, "SELECT COUNT(*) FROM data_keys") == [(1,)]
        await DataKeys(parts.store, parts.clock, MasterKeys([KEY]), parts.runner).rotate(ALICE)
        await memory.memories.update_memory(ALICE, "k7", "seven")
        await memory.memories.delete_memory(ALICE, "k7")
        await memory.memories.restore_memory(ALICE, "k7", 1)
        history = await memory.memories.get_memory_history(ALICE, "k7")
        assert [(each.value, each.metadata) for each in history] == [
            (7, {"n": 7}), ("seven", {"n": 7}), ("seven", {"n": 7}), (7, {"n": 7}),
        ]  # fmt: skip
        rows = await peek(parts.store, "SELECT value, metadata FROM memory_entries")
        assert all(is_sealed(text) for row in rows for text in row)
        assert len((await memory.memories.search_memories(ALICE)).items) == 20
        with pytest.raises(mnemon.InvalidInput, match="is encrypted"):
            await memory.memories.search_memories(ALICE, where={"n": 7})
