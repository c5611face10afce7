"""The contract of `DocumentService` for folders: files that come, change and go, while others write and fail."""

from pathlib import Path
from typing import Any

import pytest

from mnemon.errors import (
    StoreFull,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import DocumentReport
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.faults import with_faults
from mnemon.testing.handles import with_embedder, with_settings
from mnemon.testing.pdfs import pdf
from mnemon.testing.suite import Suite, peek, unchanged

HERE = "project:web:docs"
SHIPS = "# Ships\n\nA sloop has one mast and sails in any weather.\n\n## Brigs\n\nA brig has two masts.\n"
TOPICS = [
    "anchors", "bells", "cables", "decks", "engines", "flags", "gales", "hulls", "islands", "jibs", "keels", "lanterns",
    "moorings", "nets", "oars", "ports",
]  # fmt: skip


def section(topic: str, about: str = "what sailors say of it") -> str:
    """A part of a document that is a chunk of its own."""
    return f"## On {topic}\n\n" + f"This part tells of {topic}, and of {about}, at some length. " * 3 + "\n\n"


def guide(topics: list[str], **changed: str) -> str:
    return "# The guide\n\n" + "".join(section(topic, changed.get(topic, "what sailors say of it")) for topic in topics)


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


async def live(store: Store) -> list[tuple[str, int]]:
    """The texts that can be found, with their positions."""
    rows = await peek(
        store,
        "SELECT value, position FROM memory_entries WHERE is_current = TRUE AND is_deleted = FALSE "
        "ORDER BY position, key",
    )
    return [(value, position) for value, position in rows]


class DocumentFolderSuite(Suite):
    """Any backend must pass; override the fixture `memory`."""

    @pytest.fixture
    def embedder(self) -> FakeEmbedder:
        """Knows which texts it was given."""
        return FakeEmbedder()

    @pytest.fixture
    def embedding(self, memory: HybridMemoryService, embedder: FakeEmbedder) -> HybridMemoryService:
        """The memory, with an embedder."""
        return with_embedder(memory, embedder)

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path.resolve() / "files"
        folder.mkdir()
        return folder

    # -- folders

    async def test_a_folder_is_kept_in_step(
        self, embedding: HybridMemoryService, store: Store, folder: Path, embedder: FakeEmbedder
    ) -> None:
        write(folder, {
            "a.md": SHIPS, "sub/b.txt": "Tea is drunk at four.", "sub/c.html": "<title>C</title><p>Rain in Bergen.",
            "d.py": "def sail():\n    pass\n", "e.png": b"\x89PNG\0", "LICENSE": "Do what you want.",
            "node_modules/x.md": "never", "tool": b"\x7fELF\0\0",
        })  # fmt: skip
        steps: list[tuple[int, int]] = []
        report = await embedding.documents.add_folder(
            folder, namespace=HERE, root=folder, progress=lambda each: steps.append((each.done, each.total))
        )
        assert report == DocumentReport(
            ("LICENSE", "a.md", "d.py", "sub/b.txt", "sub/c.html"), skipped=2, chunks_written=5, chunks_embedded=5
        )
        assert steps == [(n, 6) for n in range(1, 7)]
        types = {each.path: str(each.document_type) for each in await embedding.documents.list()}
        assert types == {
            "LICENSE": "text",
            "a.md": "markdown",
            "d.py": "code",
            "sub/b.txt": "text",
            "sub/c.html": "html",
        }

        async with unchanged(store):
            again = await embedding.documents.add_folder(folder, namespace=HERE, root=folder)
        assert again == DocumentReport(unchanged=5, skipped=2)

        write(folder, {"a.md": SHIPS.replace("two", "2"), "new.md": "Something new."})
        (folder / "sub" / "b.txt").unlink()
        embedder.texts.clear()
        kept = await embedding.documents.add_folder(folder, namespace=HERE, root=folder, delete_missing=False)
        assert (kept.added, kept.changed, kept.unchanged, kept.removed) == (("new.md",), ("a.md",), 3, ())
        assert len(embedder.texts) == kept.chunks_embedded == 2
        gone = await embedding.documents.add_folder(folder, namespace=HERE, root=folder)
        assert (gone.removed, gone.unchanged, gone.chunks_removed) == (("sub/b.txt",), 5, 1)
        assert await embedding.recall("tea at four", namespaces=HERE, where={"path": "sub/b.txt"}) == []

    async def test_a_file_that_is_moved_is_not_embedded_again(
        self, embedding: HybridMemoryService, folder: Path, embedder: FakeEmbedder
    ) -> None:
        write(folder, {"old.md": guide(TOPICS)})
        await embedding.documents.add_folder(folder, namespace=HERE, root=folder)
        embedder.texts.clear()
        (folder / "old.md").rename(folder / "new.md")

        report = await embedding.documents.add_folder(folder, namespace=HERE, root=folder)

        assert (report.added, report.removed, report.chunks_embedded) == (("new.md",), ("old.md",), 0)
        assert embedder.texts == []
        [hit] = await embedding.recall("lanterns", namespaces=HERE, k=1)
        assert hit.memory.metadata["path"] == "new.md"

    async def test_two_namespaces_may_have_the_same_file(self, embedding: HybridMemoryService, folder: Path) -> None:
        write(folder, {"a.md": SHIPS})
        for namespace in ("user:alice", "user:bob"):
            report = await embedding.documents.add_folder(folder, namespace=namespace)
            assert report.added == ((folder / "a.md").as_posix(),)
        await embedding.documents.remove("user:alice", folder / "a.md")
        assert [each.namespace for each in await embedding.documents.list()] == ["user:bob"]
        assert len(await embedding.recall("sloop", namespaces="user")) == 1

    async def test_a_folder_knows_its_own_files_from_others(self, memory: HybridMemoryService, folder: Path) -> None:
        write(folder, {"one/a.md": "first", "one-more/b.md": "second", "c.md": "third"})
        documents = memory.documents
        await documents.add("given.md", namespace=HERE, content="not a file")
        await documents.add(folder / "c.md", namespace=HERE)
        for name in ("one", "one-more"):
            await documents.add_folder(folder / name, namespace=HERE, root=folder)
        (folder / "one" / "a.md").unlink()
        (folder / "one-more" / "b.md").unlink()

        assert (await documents.add_folder(folder / "one", namespace=HERE, root=folder)).removed == ("one/a.md",)
        assert {each.path for each in await documents.list()} == {
            "given.md", "one-more/b.md", (folder / "c.md").as_posix(),
        }  # fmt: skip
        report = await documents.add_folder(folder, namespace=HERE, root=folder)
        assert (report.added, report.removed) == (("c.md",), ("one-more/b.md",))

    async def test_one_that_cannot_be_read_stops_no_other(
        self, embedding: HybridMemoryService, folder: Path, clock: ManualClock
    ) -> None:
        write(folder, {
            "a.md": SHIPS, "bad.pdf": pdf(["x"])[:120], "big.txt": "long " * 99, "binary.txt": b"a\0b",
            "z.md": "# Last\n",
        })  # fmt: skip
        limited = with_settings(embedding, max_document_bytes=400)
        report = await limited.documents.add_folder(folder, namespace=HERE, root=folder)

        assert report.added == ("a.md", "z.md")
        assert {path: reason.split(":")[0] for path, reason in report.failed.items()} == {
            "bad.pdf": "the PDF file is damaged", "big.txt": "it has 495 bytes; max_document_bytes allows 400",
            "binary.txt": "it is binary, not text",
        }  # fmt: skip
        failed = await embedding.documents.get(HERE, "bad.pdf")
        assert failed is not None
        assert (failed.status, failed.error, failed.last_synced_at) == ("failed", report.failed["bad.pdf"], None)

        clock.advance()
        write(folder, {"bad.pdf": pdf(["Whales sing."]), "binary.txt": "text"})
        mended = await embedding.documents.retry(HERE)
        assert (set(mended.added), mended.failed) == ({"bad.pdf", "big.txt", "binary.txt"}, {})
        assert [each.status for each in await embedding.documents.list()] == ["synced"] * 5
        assert await embedding.documents.retry(HERE) == DocumentReport()

    async def test_a_name_that_no_document_can_have_stops_no_other(
        self, memory: HybridMemoryService, folder: Path
    ) -> None:
        long = "/".join(["d" * 200] * 6) + "/x.md"
        write(folder, {"a.md": SHIPS, "two\nlines.md": SHIPS, long: SHIPS})
        report = await memory.documents.add_folder(folder, namespace=HERE, root=folder)
        assert (report.added, report.failed.keys()) == (("a.md",), {"two\nlines.md", long})

    async def test_the_last_content_that_could_be_read_stays(self, memory: HybridMemoryService) -> None:
        await memory.documents.add("a.txt", namespace=HERE, content="Tea at four.")
        broken = await memory.documents.add("a.txt", namespace=HERE, content=b"a\0b")
        assert (broken.status, broken.error, broken.chunk_count) == ("failed", "it is binary, not text", 1)
        assert len(await memory.recall("tea", namespaces=HERE)) == 1
        assert (await memory.documents.retry()).failed.keys() == {"a.txt"}
        mended = await memory.documents.add("a.txt", namespace=HERE, content="Tea at five.")
        assert (mended.status, mended.error) == ("synced", None)

    # -- stale

    async def test_a_document_that_differs_from_its_file_is_stale(
        self, memory: HybridMemoryService, folder: Path, store: Store
    ) -> None:
        write(folder, {"a.md": SHIPS, "b.md": "Tea.", "c.md": "Rain."})
        documents = memory.documents
        await documents.add_folder(folder, namespace=HERE, root=folder)
        async with unchanged(store):
            assert await documents.check() == []

        write(folder, {"a.md": "Other."})
        (folder / "b.md").unlink()
        [chunk] = await documents.chunks(HERE, "c.md")
        await memory.memories.delete_memory(HERE, chunk.key)
        found = await documents.check(HERE)
        assert len(found) == 3
        assert {each.path: each.error for each in found} == {
            "a.md": "the file has changed", "b.md": "the file is not there", "c.md": "some of its chunks are deleted",
        }  # fmt: skip
        assert [each.path for each in await documents.list(status="stale")] == ["a.md", "b.md", "c.md"]

        write(folder, {"a.md": SHIPS})
        assert {each.path for each in await documents.check()} == {"b.md", "c.md"}
        report = await documents.retry(stale=True)
        assert (report.changed, report.failed) == (("c.md",), {"b.md": "the file is not there"})
        assert [chunk.text for chunk in await documents.chunks(HERE, "c.md")] == ["Rain."]

    async def test_what_was_marked_stale_is_indexed_the_next_time(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await memory.documents.add("a.md", namespace=HERE, content=SHIPS)
        assert (await memory.documents.mark_stale(HERE, "a.md")).status == "stale"
        later = clock.advance()
        again = await memory.documents.add("a.md", namespace=HERE, content=SHIPS)
        assert (again.status, again.last_synced_at) == ("synced", later)

    async def test_chunks_that_somebody_deleted_come_back(self, memory: HybridMemoryService) -> None:
        await memory.documents.add("a.md", namespace=HERE, content=SHIPS)
        await memory.forget(HERE)
        assert await memory.documents.chunks(HERE, "a.md") == []
        await memory.documents.add("a.md", namespace=HERE, content=SHIPS)
        assert [chunk.text for chunk in await memory.documents.chunks(HERE, "a.md")] == [SHIPS]

    # -- interruptions and rivals

    @pytest.mark.parametrize("fatal", range(9))
    async def test_what_was_interrupted_is_finished_by_doing_it_again(
        self, embedding: HybridMemoryService, store: Store, folder: Path, fatal: int, embedder: FakeEmbedder
    ) -> None:
        """Given a folder, when a write fails anywhere on the way, then the next run leaves each chunk once."""
        write(folder, {f"{topic}.md": guide([topic, "bells"]) for topic in ("anchors", "cables", "decks")})
        write(folder, {"long.txt": "\n\n".join(f"Paragraph {n} has its own words." for n in range(450))})
        faulty, faults = with_faults(embedding)
        faults.fail("write", StoreFull("no more"), skip=fatal)
        options: dict[str, Any] = {"namespace": HERE, "root": folder, "chunk_tokens": 16}
        with pytest.raises(StoreFull):
            await faulty.documents.add_folder(folder, **options)

        report = await embedding.documents.add_folder(folder, **options)

        assert len(report.added) + report.unchanged == 4
        for document in await embedding.documents.list():
            chunks = await embedding.documents.chunks(HERE, document.path)
            assert "".join(chunk.text for chunk in chunks) == (folder / document.path).read_text()
            assert [chunk.position for chunk in chunks] == list(range(document.chunk_count))
        assert len(await live(store)) == sum(each.chunk_count for each in await embedding.documents.list())
        assert await peek(store, "SELECT COUNT(*) FROM memory_entries WHERE version > 1") == [(0,)]

    async def test_a_pending_document_is_finished_by_retry(self, memory: HybridMemoryService, folder: Path) -> None:
        write(folder, {"a.md": SHIPS})
        faulty, faults = with_faults(memory)
        faults.fail("write", StoreFull("no more"), skip=1)
        with pytest.raises(StoreFull):
            await faulty.documents.add(folder / "a.md", namespace=HERE, root=folder, chunk_tokens=32)
        [pending] = await memory.documents.list(status="pending")

        report = await memory.documents.retry()

        assert (report.added, pending.chunk_count) == (("a.md",), 0)
        assert len(await memory.documents.chunks(HERE, "a.md")) == 2, "by the limit that it was added with"

    async def test_an_interrupted_removal_is_finished_by_another(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        text = "\n\n".join(f"Paragraph {n} has its own words." for n in range(500))
        await memory.documents.add("a.txt", namespace=HERE, content=text, chunk_tokens=16)
        faulty, faults = with_faults(memory)
        faults.fail("write", StoreFull("no more"), skip=2)
        with pytest.raises(StoreFull):
            await faulty.documents.remove(HERE, "a.txt")
        [left] = await memory.documents.list()
        assert left.status == "pending"
        await memory.documents.remove(HERE, "a.txt")
        assert (await live(store), (await memory.documents.list()).items) == ([], ())

    async def test_many_who_index_the_same_folder_leave_each_chunk_once(
        self, embedding: HybridMemoryService, store: Store, folder: Path, crowd: Crowd
    ) -> None:
        write(folder, {f"{topic}.md": guide([topic, "bells"]) for topic in TOPICS[:4]})
        add = embedding.documents.add_folder
        await crowd.gather([lambda: add(folder, namespace=HERE, root=folder, chunk_tokens=80)] * 4)

        documents = (await embedding.documents.list()).items
        assert [(each.status, each.chunk_count) for each in documents] == [("synced", 2)] * 4
        assert len(await live(store)) == 8
        for each in documents:
            chunks = await embedding.documents.chunks(HERE, each.path)
            assert "".join(chunk.text for chunk in chunks) == (folder / each.path).read_text()

    async def test_of_rivals_with_different_contents_one_wins_wholly(
        self, memory: HybridMemoryService, crowd: Crowd
    ) -> None:
        contents = [guide(TOPICS[n : n + 9], bells=f"rival {n}") for n in range(4)]
        add = memory.documents.add
        await crowd.gather([
            lambda text=text: add("g.md", namespace=HERE, content=text, chunk_tokens=80) for text in contents
        ])  # fmt: skip

        document = await memory.documents.get(HERE, "g.md")
        text = "".join(chunk.text for chunk in await memory.documents.chunks(HERE, "g.md"))
        assert document is not None
        assert text in contents
        assert (document.status, document.chunk_count, document.size) == ("synced", 9, len(text))

    async def test_who_was_overtaken_writes_no_more(self, memory: HybridMemoryService) -> None:
        """Given somebody who is about to write chunks, when other content is added meanwhile, then that stays."""
        faulty, faults = with_faults(memory)

        async def overtake() -> None:
            await memory.documents.add("a.md", namespace=HERE, content="Second.")

        faults.interleave("write", overtake, skip=1)
        found = await faulty.documents.add("a.md", namespace=HERE, content="First.")

        assert found == await memory.documents.get(HERE, "a.md")
        assert [chunk.text for chunk in await memory.documents.chunks(HERE, "a.md")] == ["Second."]

    # -- watching

    async def test_a_folder_is_followed_while_it_changes(self, memory: HybridMemoryService, folder: Path) -> None:
        write(folder, {"a.md": SHIPS})
        reports = memory.documents.watch(folder, namespace=HERE, root=folder)
        assert (await anext(reports)).added == ("a.md",)

        write(folder, {"b.md": "Tea.", "c.png": b"\0"})
        assert (await anext(reports)).added == ("b.md",)
        (folder / "a.md").unlink()
        assert (await anext(reports)).removed == ("a.md",)
        write(folder, {"sub/d.md": "Rain."})
        assert (await anext(reports)).added == ("sub/d.md",)
        write(folder, {"b.md": "Tea at four."})
        assert (await anext(reports)).changed == ("b.md",)

        await reports.aclose()  # type: ignore[attr-defined]
        assert [each.path for each in await memory.documents.list()] == ["b.md", "sub/d.md"]
