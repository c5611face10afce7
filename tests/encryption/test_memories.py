"""Memories of encrypted namespaces: everything works, and the files tell nothing."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mnemon
from mnemon.encryption.envelope import is_sealed, key_id_of
from mnemon.encryption.keys import DataKeys
from mnemon.encryption.masters import MasterKeys, new_master_key
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import peek, plant

KEY = new_master_key("k1")
ALICE = "user:alice"
SECRETS = ["zanzibar", "quixotic", "marzipan", "bergamot", "halcyon", "obsidian", "tamarind"]
ENCRYPTED: dict[str, Any] = {"encrypted_namespaces": ("user",), "encryption_keys": (KEY,)}


def opening(folder: Path, **settings: Any):
    chosen = {**ENCRYPTED, "background": False, "embedder": "static", **settings}
    return mnemon.open(f"sqlite:///{folder}/m.db", **chosen)


def bytes_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file: the database, its write-ahead log, its shared memory, and what lies beside."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file.name, file.read_bytes()


async def live_a_life(memory: mnemon.HybridMemoryService, secrets: list[str], namespace: str = ALICE) -> None:
    """Every way to write a memory, each with a secret of its own."""
    first, second, third, fourth, fifth, sixth, seventh = secrets
    await memory.memories.add_memory(namespace, "a", {"city": first}, metadata={"tag": second})
    await memory.memories.update_memory(namespace, "a", {"city": third})
    await memory.memories.delete_memory(namespace, "a")
    await memory.memories.restore_memory(namespace, "a", 1)
    await memory.remember(f"I like {fourth}", namespace=namespace, key="b", metadata={"tag": fifth})
    await memory.remember(f"I like {sixth}", namespace=namespace, key="b")
    await memory.remember_many([{"text": f"a {seventh} stone", "key": "c"}], namespace=namespace)
    await memory.settled(10)
    await memory.recall(first, namespaces=namespace)


async def test_a_stolen_database_gives_nothing_up(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await live_a_life(memory, SECRETS)
        meanwhile = list(bytes_of(tmp_path))  # with the write-ahead log as it grows
    files = [*meanwhile, *bytes_of(tmp_path)]
    assert {"m.db", "m.db-wal"} <= {name for name, _ in files}
    for name, content in files:
        for secret in SECRETS:
            assert secret.encode() not in content.lower(), f"{secret} is in {name}"
            assert secret[:5].encode() not in content.lower(), f"{secret[:5]} is in {name}"  # nor its stem


async def test_the_search_of_the_bytes_would_find_what_is_not_encrypted(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await live_a_life(memory, SECRETS, "project:open")
        found = {secret for secret in SECRETS for _, content in bytes_of(tmp_path) if secret.encode() in content}
    assert found == set(SECRETS)


async def test_every_way_of_reading_opens_it(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await live_a_life(memory, SECRETS)
    async with opening(tmp_path) as memory:
        first, second, third, _, fifth, sixth, seventh = SECRETS
        found = await memory.memories.get_memory(ALICE, "a")
        assert found is not None
        assert (found.value, found.metadata, found.version) == ({"city": first}, {"tag": second}, 4)
        history = await memory.memories.get_memory_history(ALICE, "a")
        assert [each.value["city"] for each in history] == [first, third, third, first]
        assert [each.is_deleted for each in history] == [False, False, True, False]
        page = await memory.memories.search_memories(ALICE)
        assert [each.value for each in page.items] == [{"city": first}, f"I like {sixth}", f"a {seventh} stone"]
        assert page.items[1].metadata in ({}, {"tag": fifth})
        recent = await memory.memories.search_memories(ALICE, order="recent")
        assert {each.key for each in recent.items} == {"a", "b", "c"}
        assert [change.path for change in await memory.memories.diff_memory(ALICE, "a", 1, 2)]
        hits = await memory.recall("b", namespaces=ALICE)  # by its key, which is no secret
        assert f"I like {sixth}" in [hit.memory.value for hit in hits]


async def test_nothing_is_written_where_nothing_changed(tmp_path: Path):
    async with opening(tmp_path) as memory:
        first = await memory.remember("the same", namespace=ALICE, key="k")
        assert await memory.remember("the same", namespace=ALICE, key="k") == first


async def test_it_has_no_words_but_its_key_and_no_vectors(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await live_a_life(memory, SECRETS)
        store = parts_of(memory).store
        assert await peek(store, "SELECT COUNT(*) FROM memory_vectors") == [(0,)]
        words = await peek(store, "SELECT words FROM memory_texts")
        assert {text for (text,) in words} == {"", "=a", "=b", "=c"}  # nothing of versions that were replaced
        await memory.remember("plain words", namespace="project:open")
        assert (await peek(store, "SELECT COUNT(*) FROM memory_vectors"))[0][0] > 0


async def test_a_vector_of_ones_own_is_refused(tmp_path: Path):
    async with opening(tmp_path) as memory:
        with pytest.raises(mnemon.InvalidInput, match="is encrypted"):
            await memory.vectors.store("v", [1.0] * 256, namespace=ALICE)


async def test_a_row_that_was_moved_or_changed_is_noticed(tmp_path: Path):
    async with opening(tmp_path) as memory:
        store = parts_of(memory).store
        await memory.memories.add_memory(ALICE, "diet", "vegan")
        await memory.memories.add_memory(ALICE, "car", "none")
        await plant(
            store,
            "UPDATE memory_entries SET value = (SELECT value FROM memory_entries WHERE key = 'car') WHERE key = 'diet'",
        )
        with pytest.raises(mnemon.TamperedValue, match="'diet'"):
            await memory.memories.get_memory(ALICE, "diet")
        found = await memory.memories.get_memory(ALICE, "car")
        assert found is not None
        assert found.value == "none"
        await plant(store, "UPDATE memory_entries SET key = 'auto' WHERE key = 'car'")
        with pytest.raises(mnemon.TamperedValue):
            await memory.memories.get_memory(ALICE, "auto")


async def test_without_the_key_it_is_told_what_is_missing(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await memory.memories.add_memory(ALICE, "diet", "vegan")
    async with opening(tmp_path, encrypted_namespaces=(), encryption_keys=()) as memory:
        with pytest.raises(mnemon.KeyUnavailable, match="set encryption_keys"):
            await memory.memories.get_memory(ALICE, "diet")
        await memory.settled(10)  # the background does without
    async with opening(tmp_path, encryption_keys=(new_master_key("k1"),)) as memory:
        with pytest.raises(mnemon.WrongKey):
            await memory.memories.get_memory(ALICE, "diet")
        with pytest.raises(mnemon.WrongKey):
            await memory.memories.add_memory(ALICE, "other", "x")
    with pytest.raises(mnemon.InvalidSettings, match="needs a master key"):
        async with opening(tmp_path, encryption_keys=()):
            pass


async def test_keys_are_rotated_while_memories_are_written(tmp_path: Path):
    newer = new_master_key("k2")
    async with opening(tmp_path) as old, opening(tmp_path, encryption_keys=(newer, KEY)) as new:
        parts = parts_of(new)
        keys = DataKeys(parts.store, parts.clock, MasterKeys([newer, KEY]), parts.runner)
        await old.memories.add_memory(ALICE, "diet", "vegan")
        await keys.rotate(ALICE)
        with pytest.raises(mnemon.KeyUnavailable, match="'k2' is needed"):
            await old.memories.update_memory(ALICE, "diet", "x")  # the new master key has to be given everywhere first
        await new.memories.update_memory(ALICE, "diet", "vegetarian")
        assert await keys.rewrap() == 1
        await new.memories.delete_memory(ALICE, "diet")
    async with opening(tmp_path, encryption_keys=(newer,)) as memory:
        history = await memory.memories.get_memory_history(ALICE, "diet")
        assert [each.value for each in history] == ["vegan", "vegetarian", "vegetarian"]
        rows = await peek(parts_of(memory).store, "SELECT value FROM memory_entries ORDER BY version")
        first, second, third = (key_id_of(text) for (text,) in rows)
        assert first != second == third


async def test_the_policy_may_change_and_all_stays_readable(tmp_path: Path):
    async with opening(tmp_path, encrypted_namespaces=()) as memory:
        await memory.memories.add_memory(ALICE, "diet", "vegan", metadata={"a": 1})
    async with opening(tmp_path) as memory:
        await memory.memories.update_memory(ALICE, "diet", "vegetarian")
    async with opening(tmp_path, encrypted_namespaces=()) as memory:
        await memory.memories.delete_memory(ALICE, "diet")
        history = await memory.memories.get_memory_history(ALICE, "diet")
        assert [each.value for each in history] == ["vegan", "vegetarian", "vegetarian"]
        assert [each.metadata for each in history] == [{"a": 1}] * 3
        rows = await peek(parts_of(memory).store, "SELECT value FROM memory_entries ORDER BY version")
        assert [is_sealed(row[0]) for row in rows] == [False, True, False]


async def test_who_writes_a_sealed_text_as_a_value_gets_it_back(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await memory.memories.add_memory(ALICE, "diet", "vegan")
        [(sealed,)] = await peek(parts_of(memory).store, "SELECT value FROM memory_entries")
        await memory.memories.add_memory("project:open", "copy", sealed)
        found = await memory.memories.get_memory("project:open", "copy")
        assert found is not None
        assert found.value == sealed


async def test_a_purge_works_and_its_digest_tells_nothing(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await memory.memories.add_memory(ALICE, "pin", "1234")
        receipt = await memory.memories.purge_memory(ALICE, "pin")
        assert receipt.versions == 1
        assert receipt.digest != hashlib.sha256(b'"1234"').hexdigest()
        assert await memory.memories.get_memory(ALICE, "pin") is None


async def test_the_blocking_face_and_a_file_of_keys(tmp_path: Path):
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n")
    url, chosen = f"sqlite:///{tmp_path}/m.db", {"encrypted_namespaces": "user", "encryption_key_file": str(keys)}
    with mnemon.sync.open(url, background=False, embedder="none", **chosen) as memory:
        memory.memories.add_memory(ALICE, "diet", "vegan")
        assert memory.memories.get_memory(ALICE, "diet").value == "vegan"
    async with opening(tmp_path) as memory:
        found = await memory.memories.get_memory(ALICE, "diet")
        assert found is not None
        assert found.value == "vegan"
