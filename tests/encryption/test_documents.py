"""Documents of encrypted namespaces: neither their rows nor the keys of their chunks tell what they say."""

from pathlib import Path

import pytest

import mnemon
from mnemon.documents.rows import key_of
from mnemon.encryption.keys import DataKeys
from mnemon.encryption.masters import MasterKeys
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import peek, plant
from tests.encryption.test_sessions import KEY, opening, sealed_in

PLACE = "project:web"
TEXT = "# Plans\n\nThe first part.\n\n## Second\n\nThe second part.\n\n## Second\n\nThe second part.\n"


async def test_a_document_is_indexed_changed_and_removed(tmp_path: Path):
    async with opening(tmp_path, PLACE) as memory:
        documents, store = memory.documents, parts_of(memory).store
        first = await documents.add("a.md", namespace=PLACE, content=TEXT, metadata={"m": 1}, chunk_tokens=16)
        assert (first.title, first.status, first.metadata) == ("Plans", "synced", {"m": 1})
        again = await documents.add("a.md", namespace=PLACE, content=TEXT, chunk_tokens=16)
        assert again == first
        assert await sealed_in(store, "document_index") == {"title": 1, "content_hash": 1, "metadata": 1}
        chunks = await documents.chunks(PLACE, "a.md")
        assert "".join(chunk.text for chunk in chunks) == TEXT
        plain = {key_of("a.md#", chunk.text) for chunk in chunks}
        assert not plain & {chunk.key for chunk in chunks}  # nobody can try guesses
        await documents.mark_stale(PLACE, "a.md")
        failed = await documents.add("b.pdf", namespace=PLACE, content=b"%PDF-nonsense")
        assert failed.error
        assert await sealed_in(store, "document_index") == {"title": 2, "content_hash": 2, "metadata": 2, "error": 1}
        assert {each.title for each in (await documents.list(PLACE)).items} == {"Plans", "b.pdf"}
        assert await documents.remove(PLACE, "a.md") == len(chunks)


async def test_chunks_that_stay_keep_their_keys_through_a_rotation(tmp_path: Path):
    async with opening(tmp_path, PLACE) as memory:
        documents, parts = memory.documents, parts_of(memory)
        await documents.add("a.md", namespace=PLACE, content=TEXT, chunk_tokens=16)
        before = {chunk.text: chunk.key for chunk in await documents.chunks(PLACE, "a.md")}
        await DataKeys(parts.store, parts.clock, MasterKeys([KEY]), parts.runner).rotate(PLACE)
        more = f"{TEXT}\n## Third\n\nThe third part.\n\n## Second\n\nThe second part.\n"
        await documents.add("a.md", namespace=PLACE, content=more, chunk_tokens=16)
        chunks = await documents.chunks(PLACE, "a.md")
        assert "".join(chunk.text for chunk in chunks) == more
        assert len({chunk.key for chunk in chunks}) == len(chunks)
        kept = [chunk for chunk in chunks if chunk.text in before]
        assert {before[chunk.text] for chunk in kept} <= {chunk.key for chunk in chunks}
        await memory.memories.update_memory(PLACE, chunks[0].key, {"somebody": "changed it"})
        await documents.mark_stale(PLACE, "a.md")
        await documents.add("a.md", namespace=PLACE, content=more, chunk_tokens=16)
        assert "".join(chunk.text for chunk in await documents.chunks(PLACE, "a.md")) == more


async def test_a_title_that_was_moved_is_noticed(tmp_path: Path):
    async with opening(tmp_path, PLACE) as memory:
        for name in ("a.md", "b.md"):
            await memory.documents.add(name, namespace=PLACE, content=f"# {name}\n")
        await plant(
            parts_of(memory).store,
            "UPDATE document_index SET title = (SELECT title FROM document_index WHERE id = 2) WHERE id = 1",
        )
        with pytest.raises(mnemon.TamperedValue, match=r"title of 'a\.md'"):
            await memory.documents.get(PLACE, "a.md")
    async with opening(tmp_path, keys=()) as memory:
        with pytest.raises(mnemon.KeyUnavailable, match="set encryption_keys"):
            await memory.documents.list()
        with pytest.raises(mnemon.KeyUnavailable, match="set encryption_keys"):
            await memory.documents.get(PLACE, "b.md")


async def test_a_file_cannot_pass_its_title_off_as_sealed(tmp_path: Path):
    async with opening(tmp_path, PLACE) as memory:
        await memory.documents.add("a.md", namespace=PLACE, content="# Plans\n")
        [(sealed,)] = await peek(parts_of(memory).store, "SELECT title FROM document_index")
        taken = await memory.documents.add("b.md", namespace="project:open", content=f"# {sealed}\n")
        assert taken.title == sealed[1:]
        with pytest.raises(mnemon.InvalidValue, match="as an encrypted text does"):
            await memory.documents.add("c.md", namespace="project:open", content="x", title=sealed)
        assert len((await memory.documents.list()).items) == 2


async def test_documents_of_a_session_are_sealed_with_it(tmp_path: Path):
    async with opening(tmp_path, "user:alice", embedder="static") as memory:
        await memory.sessions.create_session("s1", "desk", "alice")
        await memory.documents.add("a.md", namespace="session:s1:files", content="# Zanzibar\n\nA place.\n")
        store = parts_of(memory).store
        assert await sealed_in(store, "document_index") == {"title": 1, "content_hash": 1, "metadata": 1}
        assert await sealed_in(store, "memory_entries") == {"value": 1, "metadata": 1}
        assert await peek(store, "SELECT COUNT(*) FROM memory_vectors") == [(0,)]
        with pytest.raises(mnemon.InvalidInput, match="is encrypted"):
            await memory.vectors.store("v", [1.0] * 256, namespace="session:s1")


async def test_no_filter_looks_into_what_is_encrypted(tmp_path: Path):
    async with opening(tmp_path, PLACE, embedder="static") as memory:
        await memory.remember("a", namespace=PLACE, metadata={"n": 1})
        await memory.remember("b", namespace="project:open", metadata={"n": 1})
        with pytest.raises(mnemon.InvalidInput, match="'project:web' is encrypted"):
            await memory.recall("a", namespaces=PLACE, where={"n": 1})
        with pytest.raises(mnemon.InvalidInput, match="is encrypted"):
            await memory.memories.search_memories(f"{PLACE}:below", where={"n": 1})
        with pytest.raises(mnemon.InvalidInput, match="is encrypted"):
            await memory.vectors.query([1.0] * 256, filter={"n": 1}, namespaces=PLACE)
        found = await memory.memories.search_memories("project", where={"n": 1})
        assert [each.value for each in found.items] == ["b"]
