"""Steps of writing memories that only a race would reach through the services."""

import asyncio
from pathlib import Path

import pytest

import mnemon
from mnemon import HybridMemoryService, MemoryExists
from mnemon.journal import Origin
from mnemon.testing.faults import with_faults
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import unchanged

ALICE = "user:alice"


async def test_deleting_passes_over_what_is_not_there() -> None:
    async with mnemon.open("sqlite://", embedder="none", background=False, seal_interval=None) as memory:
        await memory.remember("stays", namespace=ALICE, key="here")
        store = parts_of(memory).store
        deleting = memory.memories._writing.deleting([(ALICE, "gone")], Origin(1))
        async with unchanged(store):
            await store.write(deleting)


@pytest.mark.servers
@pytest.mark.parametrize(("statement", "skip"), [("latest_version", 0), ("latest_version", 1), ("retire", 0)])
async def test_of_two_that_add_a_deleted_key_the_second_finds_it(
    postgres_server: str, postgres_schema: str, statement: str, skip: int
) -> None:
    """The second comes before the first one's look at the newest version, before its lock, and after that."""
    settings = {"postgres_schema": postgres_schema, "embedder": "none", "background": False, "seal_interval": None}
    async with mnemon.open(postgres_server, **settings) as memory:
        await memory.memories.add_memory(ALICE, "city", "Oslo")
        await memory.memories.delete_memory(ALICE, "city")
        slow, faults = with_faults(memory)
        quick: list[asyncio.Task[bool]] = []

        async def meanwhile() -> None:
            quick.append(asyncio.create_task(_adds(memory)))
            await asyncio.wait(quick, timeout=0.3)  # it waits for the row, once the slow one holds it

        faults.interleave_statement(statement, meanwhile, skip=skip)
        assert await _adds(slow) + await quick[0] == 1
        history = await memory.memories.get_memory_history(ALICE, "city")
        assert [each.version for each in history] == [1, 2, 3]


async def _adds(memory: HybridMemoryService) -> bool:
    try:
        await memory.memories.add_memory(ALICE, "city", "Bergen")
    except MemoryExists:
        return False
    return True


def read_all(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_an_erasure_that_ends_half_way_leaves_no_byte_of_what_was_purged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    async with mnemon.open(url, embedder="none", background=False, seal_interval=None) as memory:
        for key in ("first", "second"):
            await memory.remember(f"SECRET {key}", namespace=ALICE, key=key)
        broken, faults = with_faults(memory)
        faults.fail_statement("purge", mnemon.StoreError("the disk is gone"), skip=1)
        with pytest.raises(mnemon.StoreError, match="the disk is gone"):
            await broken.forget(ALICE, erase=True)
        found = read_all(tmp_path)
        assert b"SECRET first" not in found
        assert b"SECRET second" in found
        assert await memory.forget(ALICE, erase=True) == 1
