"""The contract of `DocumentService`: what a file says can be recalled, and only what changed is embedded again."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mnemon.errors import (
    AccessDenied,
    DocumentNotFound,
    InvalidCursor,
    InvalidIdentifier,
    InvalidInput,
    InvalidNamespace,
    InvalidStatus,
    InvalidValue,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Document, DocumentReport, Principal
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.document_folders import HERE, SHIPS, TOPICS, DocumentFolderSuite, guide, live, section, write
from mnemon.testing.embedders import FakeEmbedder, cosine
from mnemon.testing.handles import parts_of
from mnemon.testing.pdfs import pdf
from mnemon.testing.suite import journal_after, last_position, peek, refused, unchanged
from mnemon.values import decode


class DocumentSuite(DocumentFolderSuite):
    """Any backend must pass; override the fixture `memory`."""

    # -- one document

    async def test_a_document_is_kept_as_chunks_that_are_memories(
        self, embedding: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        text = guide(["anchors", "bells"])
        document = await embedding.documents.add(
            "guide.md", namespace=HERE, content=text, metadata={"team": "sea"}, chunk_tokens=80, actor="bot"
        )

        assert document == Document(
            document.id, HERE, "guide.md", "The guide", document.document_type, document.status,
            document.content_hash, len(text), 2, "fake", {"team": "sea"}, None, None,
            clock.moment, clock.moment, clock.moment,
        )  # fmt: skip
        assert (document.document_type, document.status) == ("markdown", "synced")
        assert await embedding.documents.get(HERE, "guide.md") == document
        rows = await peek(store, "SELECT value, thread, position, memory_type FROM memory_entries ORDER BY position")
        assert [row[1:] for row in rows] == [(f"document:{document.id}", n, "semantic") for n in range(2)]
        chunks = await embedding.documents.chunks(HERE, "guide.md")
        assert "".join(chunk.text for chunk in chunks) == text
        assert [chunk.headings for chunk in chunks] == [("The guide",), ("The guide", "On bells")]
        assert [(chunk.first_line, chunk.last_line, chunk.page) for chunk in chunks] == [(1, 5, None), (7, 9, None)]
        found = await embedding.memories.get_memory(HERE, chunks[1].key)
        assert found is not None
        assert (found.value, found.source, found.created_by) == (chunks[1].text, "guide.md:7-9", "bot")
        assert found.metadata == {
            "team": "sea", "path": "guide.md", "title": "The guide", "document_type": "markdown",
            "headings": ["The guide", "On bells"], "first_line": 7, "last_line": 9,
        }  # fmt: skip
        assert await peek(store, "SELECT COUNT(*) FROM memory_vectors") == [(2,)]

    async def test_every_step_is_in_the_journal_and_no_content(self, memory: HybridMemoryService, store: Store) -> None:
        document = await memory.documents.add("a.md", namespace=HERE, content=SHIPS, actor="bot", task_id="t1")
        await memory.documents.mark_stale(HERE, "a.md")
        await memory.documents.remove(HERE, "a.md")

        entries = [entry for entry in await journal_after(store) if entry[0] == "document"]
        assert entries == [("document", str(document.id), name, None, HERE) for name in (
            "create", "status", "status", "delete",
        )]  # fmt: skip
        told = list(reversed((await memory.audit(entity="document")).items))
        assert [(each.payload.get("from"), each.payload.get("to")) for each in told] == [
            (None, None), ("pending", "synced"), ("synced", "stale"), (None, None),
        ]  # fmt: skip
        assert (told[0].actor, told[0].task_id, told[1].payload["chunks"]) == ("bot", "t1", 1)
        assert "mast" not in str(await peek(store, "SELECT payload FROM journal"))

    async def test_what_has_not_changed_costs_nothing(
        self, embedding: HybridMemoryService, store: Store, clock: ManualClock, embedder: FakeEmbedder
    ) -> None:
        first = await embedding.documents.add("a.md", namespace=HERE, content=SHIPS)
        calls = embedder.calls
        clock.advance()

        async with unchanged(store):
            again = await embedding.documents.add("a.md", namespace=HERE, content=SHIPS.encode())
            report = await embedding.documents.retry()

        assert (again, embedder.calls, report) == (first, calls, DocumentReport())

    async def test_only_chunks_that_changed_are_embedded_again(
        self, embedding: HybridMemoryService, store: Store, embedder: FakeEmbedder
    ) -> None:
        """Given a document of many parts, when one is edited, one added and one removed, no other is embedded."""
        add = embedding.documents.add
        await add("guide.md", namespace=HERE, content=guide(TOPICS), chunk_tokens=80)
        embedder.texts.clear()

        edited = guide(["zephyrs", *TOPICS[:3], *TOPICS[4:]], keels="how they are laid")
        document = await add("guide.md", namespace=HERE, content=edited, chunk_tokens=80)

        assert len(embedder.texts) == 3, "the new part, the edited one, and the one that is no longer the first"
        assert [text for text in embedder.texts if "zephyrs" in text or "laid" in text or "anchors" in text] == (
            embedder.texts
        )
        assert document.chunk_count == len(TOPICS)
        assert "".join(chunk.text for chunk in await embedding.documents.chunks(HERE, "guide.md")) == edited
        assert [position for _, position in await live(store)] == list(range(len(TOPICS)))
        vectors = await peek(
            store,
            "SELECT COUNT(*) FROM memory_vectors JOIN memory_entries ON memory_entries.id = memory_id "
            "WHERE is_current = TRUE AND is_deleted = FALSE",
        )
        assert vectors == [(len(TOPICS),)], "those that only moved have kept theirs"

    @pytest.mark.parametrize("seed", range(3))
    async def test_through_any_edits_each_chunk_has_its_vector_and_none_is_embedded_twice(
        self, embedding: HybridMemoryService, store: Store, embedder: FakeEmbedder, seed: int
    ) -> None:
        chance = random.Random(seed)
        given: list[str] = []
        for turn in range(12):
            topics = [chance.choice(TOPICS) for _ in range(chance.randrange(12))]
            text = guide(topics, **dict.fromkeys(topics[:1], f"turn {turn}"))
            embedder.texts.clear()
            document = await embedding.documents.add("g.md", namespace=HERE, content=text, chunk_tokens=80)
            given += embedder.texts
            chunks = await embedding.documents.chunks(HERE, "g.md")
            assert "".join(chunk.text for chunk in chunks) == text
            assert [chunk.position for chunk in chunks] == list(range(document.chunk_count))

        assert len(given) == len(set(given))
        rows = await peek(store, "SELECT id, value FROM memory_entries WHERE is_current = TRUE AND is_deleted = FALSE")
        parts = parts_of(embedding)
        [space] = await embedding.index.spaces()
        mirror = parts.index(parts.store, parts.runner).vectors
        vectors = await mirror.vectors_of(space, [identifier for identifier, _ in rows])
        assert len(vectors) == len(rows)
        for identifier, value in rows:
            assert cosine(vectors[identifier], embedder.embed([decode(value)])[0]) > 0.999

    async def test_a_chunk_that_moved_can_be_recalled_at_its_new_place(self, embedding: HybridMemoryService) -> None:
        await embedding.documents.add("g.md", namespace=HERE, content=guide(TOPICS), chunk_tokens=80)
        await embedding.documents.add("g.md", namespace=HERE, content=guide(["x", "y", *TOPICS]), chunk_tokens=80)

        [hit] = await embedding.recall("what sailors say of lanterns", namespaces=HERE, k=1)

        assert hit.memory.value == section("lanterns")
        assert (hit.memory.placement.position, hit.memory.metadata["first_line"]) == (13, 55)
        assert hit.memory.version == 2

    async def test_what_comes_back_is_not_embedded_again(
        self, embedding: HybridMemoryService, embedder: FakeEmbedder
    ) -> None:
        """As when a branch is checked out, and then the other one again."""
        add = embedding.documents.add
        await add("g.md", namespace=HERE, content=guide(TOPICS), chunk_tokens=80)
        await add("g.md", namespace=HERE, content=guide(TOPICS[:4]), chunk_tokens=80)
        embedder.texts.clear()
        await add("g.md", namespace=HERE, content=guide(TOPICS), chunk_tokens=80)
        assert embedder.texts == []

        await embedding.documents.remove(HERE, "g.md")
        await add("g.md", namespace=HERE, content=guide(TOPICS), chunk_tokens=80)
        assert embedder.texts == []
        [hit] = await embedding.recall("lanterns", namespaces=HERE, k=1)
        assert hit.memory.value == section("lanterns")

    async def test_equal_chunks_of_a_document_are_kept_apart(
        self, embedding: HybridMemoryService, store: Store, embedder: FakeEmbedder
    ) -> None:
        twice = guide(["bells", "bells", "bells"])
        await embedding.documents.add("g.md", namespace=HERE, content=twice, chunk_tokens=80)
        chunks = await embedding.documents.chunks(HERE, "g.md")
        assert "".join(chunk.text for chunk in chunks) == twice
        assert len({chunk.key for chunk in chunks}) == 3
        assert embedder.texts.count(section("bells")) == 1

        await embedding.documents.add("g.md", namespace=HERE, content=guide(["bells", "bells"]), chunk_tokens=80)
        assert [position for _, position in await live(store)] == [0, 1]

    async def test_without_an_embedder_chunks_are_found_by_their_words(self, memory: HybridMemoryService) -> None:
        document = await memory.documents.add("a.md", namespace=HERE, content=SHIPS)
        assert (document.status, document.embedding_model) == ("synced", None)
        assert (await memory.recall("sloop", namespaces=HERE))[0].memory.source == "a.md:1-7"

    async def test_what_could_not_be_embedded_is_embedded_later(
        self, embedding: HybridMemoryService, store: Store, embedder: FakeEmbedder, clock: ManualClock
    ) -> None:
        await embedding.documents.add("a.md", namespace=HERE, content="An anchor holds.")
        embedder.fail()
        document = await embedding.documents.add("b.md", namespace=HERE, content=SHIPS)
        assert document.status == "synced"
        assert await peek(store, "SELECT COUNT(*) FROM memory_vectors") == [(1,)]
        assert len(await embedding.recall("sloop", namespaces=HERE, where={"path": "b.md"})) == 1

        clock.advance(300)
        await embedding.settled()
        assert await peek(store, "SELECT COUNT(*) FROM memory_vectors") == [(2,)]

    async def test_another_limit_title_type_or_metadata_is_a_change(
        self, embedding: HybridMemoryService, embedder: FakeEmbedder
    ) -> None:
        add = embedding.documents.add
        text = guide(TOPICS[:6])
        await add("g", namespace=HERE, content=text)
        small = await add("g", namespace=HERE, content=text, document_type="markdown", chunk_tokens=32)
        assert small.chunk_count > 6
        embedder.texts.clear()

        told = await add("g", namespace=HERE, content=text, document_type="markdown", chunk_tokens=32,
                         title="Told", metadata={"a": 1})  # fmt: skip

        assert embedder.texts == []
        assert (told.title, told.metadata, told.document_type) == ("Told", {"a": 1}, "markdown")
        [hit] = await embedding.recall("anchors", namespaces=HERE, k=1, where={"a": 1})
        assert hit.memory.metadata["title"] == "Told"
        kept = await add("g", namespace=HERE, content=text, document_type="markdown", chunk_tokens=32)
        assert kept.metadata == {"a": 1}

    async def test_a_document_of_many_chunks(
        self, embedding: HybridMemoryService, store: Store, embedder: FakeEmbedder
    ) -> None:
        text = "\n\n".join(f"Paragraph {n} is about the matter {n}, and about nothing else." for n in range(500))
        document = await embedding.documents.add("a.txt", namespace=HERE, content=text, chunk_tokens=16)
        assert document.chunk_count > 400
        assert "".join(chunk.text for chunk in await embedding.documents.chunks(HERE, "a.txt")) == text
        assert len(embedder.texts) == document.chunk_count

        assert await embedding.documents.remove(HERE, "a.txt") == document.chunk_count
        assert (await live(store), await embedding.documents.get(HERE, "a.txt")) == ([], None)

    async def test_a_long_path_and_an_empty_text(self, memory: HybridMemoryService) -> None:
        path = "/".join(["folder"] * 140) + "/æøå.md"
        document = await memory.documents.add(path, namespace=HERE, content=SHIPS)
        [chunk] = await memory.documents.chunks(HERE, path)
        assert (document.path, chunk.text) == (path, SHIPS)
        empty = await memory.documents.add("empty.txt", namespace=HERE, content=" \n\n ")
        assert (empty.status, empty.chunk_count, empty.title) == ("synced", 0, "empty.txt")

    # -- recall

    async def test_a_hit_and_a_context_say_file_and_place(self, embedding: HybridMemoryService, folder: Path) -> None:
        write(folder, {"guide.md": guide(TOPICS), "paper.pdf": pdf(["About nothing.", "Whales sing below."])})
        await embedding.documents.add_folder(folder, namespace=HERE, root=folder, chunk_tokens=80)

        [hit] = await embedding.recall("what do whales do?", namespaces=HERE, k=1)
        assert hit.memory.source == "paper.pdf, page 2"
        context = await embedding.context("what sailors say of lanterns", namespaces=HERE, budget=400)
        [first, *_] = context.citations
        assert first.source == "guide.md:47-49"
        assert "[m1] (guide.md:47-49) ## On lanterns\n  This part tells of lanterns" in context.text

    async def test_neighbours_in_the_document_are_recalled_too(self, embedding: HybridMemoryService) -> None:
        text = guide(["anchors"]) + "## A word\n\n" + "The password of the harbour is swordfish today. " * 2 + "\n\n"
        await embedding.documents.add("g.md", namespace=HERE, content=text + section("bells"), chunk_tokens=80)
        hits = await embedding.recall("swordfish", namespaces=HERE)
        assert {hit.memory.placement.position for hit in hits} == {0, 1, 2}
        assert "swordfish" in hits[0].memory.value

    # -- removing

    async def test_a_removed_document_takes_its_chunks_with_it(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.documents.add("a.md", namespace=HERE, content=SHIPS)
        await memory.remember("unrelated", namespace=HERE, key="mine")
        [chunk] = await memory.documents.chunks(HERE, "a.md")

        assert await memory.documents.remove(HERE, "a.md", actor="bot") == 1

        assert await live(store) == [('"unrelated"', None)]
        history = await memory.memories.get_memory_history(HERE, chunk.key)
        assert [(each.version, each.is_deleted, each.updated_by) for each in history] == [
            (1, False, None), (2, True, "bot"),
        ]  # fmt: skip
        for call in (memory.documents.remove, memory.documents.chunks, memory.documents.mark_stale):
            async with refused(store, DocumentNotFound, "a.md"):
                await call(HERE, "a.md")

    # -- reading

    async def test_documents_are_listed_by_what_they_have(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        add = memory.documents.add
        for name, namespace in (
            ("a.md", HERE),
            ("b.txt", "user:bob"),
            ("c.md", f"{HERE}:more"),
            ("d.md", "project:we"),
        ):
            await add(name, namespace=namespace, content=name)
            clock.advance()
        await add("a.md", namespace=HERE, content=b"\0")

        async def listed(*args: Any, **wanted: Any) -> str:
            return " ".join(each.path for each in await memory.documents.list(*args, **wanted))

        assert await listed() == "a.md b.txt c.md d.md"
        assert await listed(recent=True) == "a.md d.md c.md b.txt"
        assert await listed("project:web") == "a.md c.md"
        assert await listed(status="failed") == await listed(HERE, status="failed", recent=True) == "a.md"
        assert await listed(status="synced", document_type="markdown") == "c.md d.md"
        assert await listed(document_type="text") == "b.txt"
        for recent in (False, True):
            seen: list[str] = []
            cursor: str | None = None
            while True:
                page = await memory.documents.list(recent=recent, limit=1, cursor=cursor)
                seen += [each.path for each in page]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert " ".join(seen) == await listed(recent=recent)
        with pytest.raises(InvalidStatus, match="pending"):
            await listed(status="lost")
        with pytest.raises(InvalidCursor):
            await listed(cursor="nonsense")

    # -- access

    async def test_a_principal_sees_and_changes_its_own(
        self, memory: HybridMemoryService, store: Store, folder: Path
    ) -> None:
        write(folder, {"a.md": SHIPS})
        await memory.documents.add("a.md", namespace="user:alice", content=SHIPS)
        await memory.documents.add("b.md", namespace="user:bob", content=SHIPS)
        alice = memory.as_principal(Principal("alice", {"user:alice": "write", "project:web": "read"})).documents
        reader = memory.as_principal(Principal("reader", {"user:alice": "read"})).documents

        assert [each.path for each in await alice.list()] == [each.path for each in await reader.list()] == ["a.md"]
        assert len(await reader.chunks("user:alice", "a.md")) == 1
        refusals: list[Callable[[], Awaitable[object]]] = [
            lambda: alice.get("user:bob", "b.md"),
            lambda: alice.chunks("user:bob", "b.md"),
            lambda: alice.list("user:bob"),
            lambda: alice.add("x", namespace=HERE, content="x"),
            lambda: alice.add_folder(folder, namespace=HERE),
            lambda: anext(alice.watch(folder, namespace=HERE)),
            lambda: alice.remove("user:bob", "b.md"),
            lambda: alice.mark_stale("user:bob", "b.md"),
            lambda: alice.check("user:bob"),
            lambda: alice.retry("user:bob"),
            lambda: reader.add("a.md", namespace="user:alice", content="x"),
            lambda: reader.remove("user:alice", "a.md"),
            lambda: reader.check(),
            lambda: reader.retry(),
        ]
        for refusal in refusals:
            async with refused(store, AccessDenied):
                await refusal()
        await alice.mark_stale("user:alice", "a.md", actor="somebody else")
        assert (await memory.audit(entity="document")).items[0].actor == "alice"
        await memory.documents.mark_stale("user:bob", "b.md")
        assert (await alice.retry(stale=True)).failed.keys() == {"a.md"}

    # -- what cannot be

    async def test_what_cannot_be_a_document_is_refused(
        self, memory: HybridMemoryService, store: Store, folder: Path
    ) -> None:
        write(folder, {"a.md": SHIPS})
        documents = memory.documents
        strange: Any = 5
        calls: list[tuple[type[Exception], str, Callable[[], Awaitable[object]]]] = [
            (InvalidIdentifier, "path", lambda: documents.add("", namespace=HERE, content="x")),
            (InvalidIdentifier, "path", lambda: documents.add("a\0b", namespace=HERE, content="x")),
            (InvalidIdentifier, "path", lambda: documents.add("x" * 1025, namespace=HERE, content="x")),
            (InvalidIdentifier, "bytes", lambda: documents.add("日" * 400, namespace=HERE, content="x")),
            (InvalidInput, "content", lambda: documents.add("a", namespace=HERE, content=strange)),
            (InvalidNamespace, "nowhere", lambda: documents.add("a", namespace="nowhere", content="x")),
            (InvalidStatus, "markdown", lambda: documents.add("a", namespace=HERE, content="x", document_type="doc")),
            (InvalidIdentifier, "title", lambda: documents.add("a", namespace=HERE, content="x", title="")),
            (InvalidValue, "metadata", lambda: documents.add("a", namespace=HERE, content="x", metadata=strange)),
            (InvalidInput, "chunk_tokens", lambda: documents.add("a", namespace=HERE, content="x", chunk_tokens=3)),
            (InvalidInput, "not there", lambda: documents.add(folder / "none.md", namespace=HERE)),
            (InvalidInput, "add_folder", lambda: documents.add(folder, namespace=HERE)),
            (InvalidInput, "no folder", lambda: documents.add_folder(folder / "none", namespace=HERE)),
            (InvalidInput, "a list", lambda: documents.add_folder(folder, namespace=HERE, ignore="*.md")),
            (InvalidInput, "root", lambda: documents.add_folder(folder, namespace=HERE, root=folder / "sub")),
            (InvalidInput, "root", lambda: documents.add(folder / "a.md", namespace=HERE, root=folder / "sub")),
            (DocumentNotFound, "none", lambda: documents.remove(HERE, "none")),
        ]
        for error, match, call in calls:
            async with refused(store, error, match):
                await call()
        assert await documents.get(HERE, "none") is None
        assert await last_position(store) == 0
