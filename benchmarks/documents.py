"""Index real documents, change one in a hundred, index them again: only the chunks that changed are embedded.

    python -m benchmarks.documents docs /usr/share/doc

The files are copied first, so that nothing but the copies is changed. How many texts came to the embedder is counted
by the embedder itself, and how many chunks changed by comparing the texts of all chunks before and after.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import mnemon.sync
from mnemon.documents.folders import find_files
from mnemon.documents.reading import may_be_read
from mnemon.model import DocumentReport, EmbeddingModel
from mnemon.ports import Vector
from mnemon.providers.loading import load
from mnemon.settings import Settings

NAMESPACE = "project:documents"
TYPES = ["*.md", "*.txt", "*.rst", "*.html", "*.htm", "*.pdf", "copyright", "README", "NEWS", "TODO", "AUTHORS"]
LARGEST = 400_000  # bytes; a few licences and changelogs would outweigh all the others
EDIT = "This paragraph was written by the benchmark, and stands nowhere else: edit number {}."


class CountingEmbedder:
    """The static embedder, and how many texts it was given."""

    def __init__(self) -> None:
        self._embedder = load("static", Settings())
        self.texts = 0

    @property
    def model(self) -> EmbeddingModel:
        return self._embedder.model

    @property
    def is_quick(self) -> bool:
        return self._embedder.is_quick

    def embed(self, texts: Sequence[str]) -> Vector:
        self.texts += len(texts)
        return self._embedder.embed(texts)

    def close(self) -> None:
        self._embedder.close()


def collect(folders: Sequence[Path], count: int, into: Path) -> int:
    """Copy so many documents, evenly taken from all that there are; how many there were."""
    found = [folder / file for folder in folders for file in find_files(folder.resolve(), TYPES, ()).files]
    chosen = [file for file in found if may_be_read(file.name) and 0 < file.stat().st_size <= LARGEST]
    taken = sorted(random.Random(1).sample(chosen, min(count, len(chosen))))
    for file in taken:
        target = into / "/".join(file.resolve().parts[1:])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    return len(taken)


def edit(folder: Path, paths: Sequence[str]) -> None:
    """Write a paragraph of its own into the middle of each file, where there is a gap between two others."""
    for number, path in enumerate(paths):
        text = (folder / path).read_bytes()
        gap = text.find(b"\n\n", len(text) // 2)
        place = len(text) if gap < 0 else gap
        added = f"\n\n{EDIT.format(number)}".encode()
        (folder / path).write_bytes(text[:place] + added + text[place:])


class Trial:
    """A folder that is indexed again and again, with what that cost."""

    def __init__(self, memory: mnemon.sync.BlockingMemory, embedder: CountingEmbedder, folder: Path) -> None:
        self._memory = memory
        self._embedder = embedder
        self._folder = folder

    def chunks(self) -> dict[str, list[str]]:
        """The texts of all chunks, by document."""
        found: dict[str, list[str]] = {}
        cursor = None
        while True:
            page = self._memory.documents.list(NAMESPACE, limit=1000, cursor=cursor)
            for document in page:
                chunks = self._memory.documents.chunks(NAMESPACE, document.path)
                found[document.path] = [chunk.text for chunk in chunks]
            cursor = page.next_cursor
            if cursor is None:
                return found

    def run(self, name: str) -> tuple[DocumentReport, int]:
        """Index the folder; the report, and how many texts were embedded."""
        before, began = self._embedder.texts, time.perf_counter()
        report = self._memory.documents.add_folder(self._folder, namespace=NAMESPACE, root=self._folder)
        seconds, embedded = time.perf_counter() - began, self._embedder.texts - before
        print(
            f"{name:<28} {len(report.added):>6} {len(report.changed):>8} {report.unchanged:>10} "
            f"{len(report.removed):>8} {len(report.failed):>7} {report.chunks_written:>8} {embedded:>9} {seconds:>8.2f}"
        )
        assert embedded == report.chunks_embedded, "the report says what the embedder saw"
        return report, embedded


def new_texts(before: dict[str, list[str]], after: dict[str, list[str]]) -> int:
    """How many chunks say something that no chunk of the same document said before."""
    return sum(len(set(texts) - set(before.get(path, ()))) for path, texts in after.items())


def measure(trial: Trial, folder: Path, share: float) -> bool:
    """Show what each change costs; whether nothing was embedded but what changed."""
    print(f"{'':<28} {'added':>6} {'changed':>8} {'unchanged':>10} {'removed':>8} {'failed':>7} {'chunks':>8} "
          f"{'embedded':>9} {'seconds':>8}")  # fmt: skip
    trial.run("the first time")
    first = trial.chunks()
    _, idle = trial.run("again, nothing changed")
    paths = sorted(path for path, texts in first.items() if texts and not path.endswith(".pdf"))
    chosen = sorted(random.Random(2).sample(paths, max(1, round(len(first) * share))))
    edit(folder, chosen)
    _, embedded = trial.run(f"{len(chosen)} files edited")
    second = trial.chunks()
    wanted = new_texts(first, second)
    for path in chosen:
        (folder / path).rename((folder / path).with_name(f"moved-{Path(path).name}"))
    _, moved = trial.run(f"{len(chosen)} files renamed")
    total = sum(map(len, second.values()))
    print(f"\n{len(second):,} documents in {total:,} chunks; {len(chosen)} edited: {wanted} chunks have a new text, "
          f"{embedded} were embedded ({embedded / total:.2%} of all)")  # fmt: skip
    return idle == 0 and embedded == wanted and moved == 0


def main(arguments: Sequence[str] | None = None, show: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.documents", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[Path("docs"), Path("/usr/share/doc")])
    parser.add_argument("--count", type=int, default=1000, help="how many documents (1000)")
    parser.add_argument("--share", type=float, default=0.01, help="how many of them are edited (0.01)")
    parser.add_argument("--url", help="a database of its own, instead of a SQLite file that is thrown away")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mnemon-bench-") as place:
        folder = Path(place).resolve() / "documents"
        folder.mkdir()
        taken = collect([each for each in given.folders if each.is_dir()], given.count, folder)
        if not taken:
            parser.error("there is no document in these folders")
        show(f"{taken} documents of {', '.join(map(str, given.folders))}\n")
        embedder = CountingEmbedder()
        url = given.url or f"sqlite:///{place}/mnemon.db"
        with mnemon.sync.open(url, embedder=embedder, background=False) as memory:
            is_right = measure(Trial(memory, embedder, folder), folder, given.share)
    show("only what changed was embedded" if is_right else "MORE WAS EMBEDDED THAN CHANGED")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
