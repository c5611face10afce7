"""Vectors of encrypted memories: none anywhere, unless they are chosen."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import mnemon
from mnemon.encryption.masters import new_master_key
from mnemon.model import Space
from mnemon.ports import VectorRecord
from mnemon.testing import FakeEmbedder
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import peek
from mnemon.testing.vector_fakes import FakeVectorMemory

ALICE, OPEN = "user:alice", "project:open"
KEY = new_master_key("k1")


class Outside:
    """A vector store that outlives those who open it."""

    def __init__(self) -> None:
        self.records: dict[str, VectorRecord] = {}

    def __call__(self, space: Space) -> FakeVectorMemory:
        return FakeVectorMemory(space, self.records)

    @property
    def namespaces(self) -> list[str]:
        return sorted(str(record.about["namespace"]) for record in self.records.values())


def opening(folder: Path, outside: Outside, embedder: Any, **settings: Any):
    chosen: dict[str, Any] = {
        "encrypted_namespaces": ("user",), "encryption_keys": (KEY,), "background": False, "embedder": embedder,
        "vector_stores": [outside], **settings,
    }  # fmt: skip
    return mnemon.open(f"sqlite:///{folder}/m.db", **chosen)


async def owners(memory: mnemon.HybridMemoryService) -> list[tuple[str, str]]:
    """Whose vectors there are, and in the spaces of which models."""
    query = (
        "SELECT memory_entries.namespace, vector_spaces.model FROM memory_vectors "
        "JOIN memory_entries ON memory_entries.id = memory_vectors.memory_id "
        "JOIN vector_spaces ON vector_spaces.id = memory_vectors.space_id ORDER BY 1, 2"
    )
    return [(*row,) for row in await peek(parts_of(memory).store, query)]


async def channels(memory: mnemon.HybridMemoryService, query: str, namespace: str = ALICE) -> set[str]:
    """By what memories are found."""
    return {each for hit in await memory.recall(query, namespaces=namespace) for each in hit.found_by}


async def cached(memory: mnemon.HybridMemoryService) -> int:
    return (await peek(parts_of(memory).store, "SELECT COUNT(*) FROM embedding_cache"))[0][0]


async def write(memory: mnemon.HybridMemoryService) -> None:
    for namespace in (ALICE, OPEN):
        await memory.remember("the tea is green", namespace=namespace, key="tea", metadata={"colour": "green"})
        await memory.remember("the tea is green", namespace=namespace, key="gone")
        await memory.memories.delete_memory(namespace, "gone")
        await memory.memories.restore_memory(namespace, "gone", 1)
        await memory.documents.add("tea.md", namespace=namespace, content="# Tea\n\nGreen tea is tea.")
    await memory.settled(10)


async def test_there_are_none_and_nothing_is_given_to_an_embedder(tmp_path: Path):
    outside, embedder = Outside(), FakeEmbedder(16)
    async with opening(tmp_path, outside, embedder) as memory:
        await write(memory)
        mine = list(embedder.texts)
        assert {namespace for namespace, _ in await owners(memory)} == {OPEN}
        assert set(outside.namespaces) == {OPEN}
        assert await cached(memory) == len(set(mine))
        assert all(mine.count(text) == 1 for text in mine)  # nobody asked for alice's too
        assert await channels(memory, "green leaves") == {"recent"}
        assert await channels(memory, "green leaves", OPEN) == {"recent", "vectors:custom", "words"}
        found = {hit.memory.key: hit.found_by for hit in await memory.recall('"tea"', namespaces=ALICE)}
        assert found["tea"] != ("recent",)  # that is its key
        with pytest.raises(mnemon.InvalidInput, match="encrypted_vectors"):
            await memory.vectors.store("v", [1.0] * 16, namespace=ALICE)


@pytest.mark.parametrize("kept", [False, True])
async def test_the_upkeep_makes_those_that_are_missing_only_if_they_are_chosen(tmp_path: Path, kept: bool):
    outside, embedder = Outside(), FakeEmbedder(16)
    async with opening(tmp_path, outside, embedder, encrypted_vectors=kept) as memory:
        await memory.remember("first", namespace=OPEN, key="first")
        embedder.fail(times=1)
        for namespace in (ALICE, OPEN):  # the first of them, or both, are written without
            await memory.remember("the tea is green", namespace=namespace, key="k")
        embedder.heal()
        await asyncio.sleep(1.1)  # until it is tried again
        await memory.settled(10)
        expected = [OPEN, OPEN, ALICE] if kept else [OPEN, OPEN]
        assert [namespace for namespace, _ in await owners(memory)] == expected
        assert outside.namespaces == expected
        assert await cached(memory) == 2


async def test_chosen_they_are_kept_and_nothing_else_is(tmp_path: Path):
    outside, embedder = Outside(), FakeEmbedder(16)
    async with opening(tmp_path, outside, embedder, encrypted_vectors=True) as memory:
        await memory.remember("the tea is green", namespace=ALICE, key="tea", metadata={"colour": "green"})
        await memory.memories.delete_memory(ALICE, "tea")
        await memory.memories.restore_memory(ALICE, "tea", 1)
        await memory.documents.add("tea.md", namespace=ALICE, content="Green tea is tea.")
        await memory.vectors.store("v", embedder.embed(["black tea"])[0].tolist(), namespace=ALICE)
        await memory.settled(10)
        assert len(await owners(memory)) == 4
        assert await cached(memory) == 0
        [best, *_] = await memory.recall("is it green?", namespaces=ALICE)
        assert "green" in best.memory.value.lower()
        assert "vectors:custom" in best.found_by
        assert all(
            "green" not in str((record.facts, record.words, record.about)) for record in outside.records.values()
        )
        words = await peek(parts_of(memory).store, "SELECT words FROM memory_texts")
        assert all(text in ("", "=tea", "=v") or text.startswith("=") for (text,) in words)
    assert b"green" not in (tmp_path / "m.db").read_bytes().lower()
    async with opening(tmp_path, outside, embedder) as memory:  # and no longer
        assert len(await owners(memory)) == 4
        done = await memory.keys.reseal()
        assert (done.rows, done.scrubbed) == (0, True)
        assert await owners(memory) == []
        await memory.settled(10)
        assert outside.records == {}
        assert await channels(memory, "is it green?") == {"recent"}
        found = await memory.memories.get_memory(ALICE, "tea")
        assert found is not None
        assert found.value == "the tea is green"


async def test_what_is_encrypted_later_keeps_its_vectors_if_they_are_chosen(tmp_path: Path):
    outside, embedder = Outside(), FakeEmbedder(16)
    async with opening(tmp_path, outside, embedder, encrypted_namespaces=()) as memory:
        await memory.remember("the tea is green", namespace=ALICE, key="tea", metadata={"colour": "green"})
        await memory.settled(10)
    assert "green" in str([(record.facts, record.words) for record in outside.records.values()])
    async with opening(tmp_path, outside, embedder, encrypted_vectors=True) as memory:
        await memory.keys.reseal()
        await memory.settled(10)
        assert await owners(memory) == [(ALICE, "fake")]
        assert await cached(memory) == 0
        [record] = outside.records.values()
        assert "green" not in str((record.facts, record.words))
        [hit] = await memory.recall("is it green?", namespaces=ALICE)
        assert hit.found_by == ("recent", "vectors:custom")


async def test_what_is_encrypted_later_loses_its_vectors_everywhere(tmp_path: Path):
    outside, embedder = Outside(), FakeEmbedder(16)
    async with opening(tmp_path, outside, embedder, encrypted_namespaces=()) as memory:
        await write(memory)
        assert ALICE in outside.namespaces
        texts = set(embedder.texts)
        assert await cached(memory) == len(texts)
    async with opening(tmp_path, outside, embedder) as memory:
        await memory.keys.reseal()
        await memory.settled(10)
        assert {namespace for namespace, _ in await owners(memory)} == {OPEN}
        assert set(outside.namespaces) == {OPEN}
        assert await cached(memory) == 0  # both had the same texts
        assert await channels(memory, "green") == {"recent"}
