"""`python -m benchmarks.artifacts`: how fast files are saved and read, beside a plain copy and its SHA-256.

Files of several sizes are saved as artifacts and read back, in turn with what a program would do without Mnemon: copy
the file and hash it, or read it and hash it. That leaves the copy in the system's cache, where a power cut takes it,
while a saved artifact is on the disk; so there is also a copy that is synced, with its folder, before it counts. Files
of every size are to be saved and read at 0.7 of the plain copy's throughput or more.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import mnemon.sync
from benchmarks import report
from benchmarks.embedded import url_of
from mnemon.sync import BlockingMemory

MB = 1_000_000
SIZES = {"1 KB": (1_000, 100), "1 MB": (MB, 20), "100 MB": (100 * MB, 1), "1 GB": (1_000 * MB, 1)}
"""How large the files are, and how many of them are a round."""
QUICK_SIZES = {"1 KB": (1_000, 5), "1 MB": (MB, 2), "10 MB": (10 * MB, 1)}
TARGET = 0.7
_PIECE = 1 << 18


class Bench(NamedTuple):
    """A folder to work in, and the memory."""

    folder: Path
    memory: BlockingMemory


def make_files(folder: Path, size: int, count: int) -> list[Path]:
    """New files of this size, no two alike."""
    found: list[Path] = []
    for number in range(count):
        path = folder / f"given-{size}-{number}"
        with path.open("wb") as file:
            for start in range(0, size, MB):
                file.write(os.urandom(min(MB, size - start)))
        found.append(path)
    return found


def refresh(files: Sequence[Path]) -> None:
    """Change the files a little, so that none is known; and let the disk come to rest."""
    for path in files:
        with path.open("r+b") as file:
            file.write(os.urandom(16))
    os.sync()


def hashed(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_plainly(bench: Bench, files: Sequence[Path]) -> None:
    for path in files:
        copy = bench.folder / "copies" / path.name
        shutil.copyfile(path, copy)
        hashed(copy)


def copy_durably(bench: Bench, files: Sequence[Path]) -> None:
    """What it takes at the least to have a copy on the disk under its final name."""
    for path in files:
        copy = bench.folder / "copies" / path.name
        shutil.copyfile(path, copy)
        hashed(copy)
        for place in (copy, copy.parent):
            descriptor = os.open(place, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def save(bench: Bench, files: Sequence[Path]) -> None:
    for path in files:
        bench.memory.artifacts.save("bench", path.name, path=path)


def read_plainly(_: Bench, files: Sequence[Path]) -> None:
    for path in files:
        hashed(path)


def read(bench: Bench, files: Sequence[Path]) -> None:
    for path in files:
        with bench.memory.artifacts.open("bench", path.name) as file:
            while file.read(_PIECE):
                pass


def remove_copies(bench: Bench, files: Sequence[Path]) -> None:
    for path in files:
        (bench.folder / "copies" / path.name).unlink()


def remove_artifacts(bench: Bench, files: Sequence[Path]) -> None:
    for path in files:
        bench.memory.artifacts.delete("bench", path.name)
    bench.memory.artifacts.cleanup(keep_deleted=timedelta(0), grace=timedelta(0))


STEPS: dict[str, Callable[[Bench, Sequence[Path]], None]] = {
    "copy": copy_plainly, "durable copy": copy_durably, "save": save, "plain read": read_plainly, "read": read,
}  # fmt: skip


def one_round(bench: Bench, files: Sequence[Path]) -> dict[str, float]:
    """How long each step took. Each that writes finds the same room: memory that was never used is slow at first."""
    seconds: dict[str, float] = {}

    def timed(*names: str) -> None:
        for name in names:
            start = time.perf_counter()
            STEPS[name](bench, files)
            seconds[name] = time.perf_counter() - start

    for copying in ("copy", "durable copy"):
        refresh(files)
        timed(copying)
        remove_copies(bench, files)
    refresh(files)
    timed("save", "plain read", "read")
    remove_artifacts(bench, files)
    return seconds


def measure(bench: Bench, label: str, size: int, count: int, rounds: int) -> dict[str, Any]:
    """The median throughput of each step, and of the rounds' own ratios, as a machine is not always equally quick."""
    files = make_files(bench.folder, size, count)
    one_round(bench, files[:1])
    taken = [one_round(bench, files) for _ in range(rounds)]
    for path in files:
        path.unlink()
    rate = {name: size * count / MB / statistics.median(each[name] for each in taken) for name in STEPS}
    ratios = {
        "save / copy": statistics.median(each["copy"] / each["save"] for each in taken),
        "save / durable copy": statistics.median(each["durable copy"] / each["save"] for each in taken),
        "read / plain read": statistics.median(each["plain read"] / each["read"] for each in taken),
    }
    met = min(ratios["save / copy"], ratios["read / plain read"]) >= TARGET
    return {"size": label, "bytes": size, "files": count, "mb_per_second": rate, "ratios": ratios, "met": met}


def run(folder: Path, sizes: dict[str, tuple[int, int]], rounds: int) -> list[dict[str, Any]]:
    (folder / "copies").mkdir()
    settings: dict[str, Any] = {"embedder": "none", "background": False}
    with mnemon.sync.open(url_of(folder / "bench.db"), **settings) as memory:
        memory.sessions.create_session("bench", "bench", "bench")
        bench = Bench(folder, memory)
        found: list[dict[str, Any]] = []
        for label, (size, count) in sizes.items():
            sys.stderr.write(f"{label} …\n")
            found.append(measure(bench, label, size, count, rounds))
        return found


def show(results: Sequence[dict[str, Any]]) -> None:
    heads = ("file", *(f"{name}, MB/s" for name in STEPS), *results[0]["ratios"], "target", "met")
    rows = [
        [
            each["size"], *(f"{rate:,.1f}" for rate in each["mb_per_second"].values()),
            *(f"{ratio:.2f}" for ratio in each["ratios"].values()),
            f"≥ {TARGET}", "yes" if each["met"] else "NO",
        ]
        for each in results
    ]  # fmt: skip
    print(report.table(heads, rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser("python -m benchmarks.artifacts", description=(__doc__ or "").partition("\n\n")[2])
    add = parser.add_argument
    add("--rounds", type=int, metavar="N", help="how often everything is done (5)")
    add("--quick", action="store_true", help="small files: to see that it works, not how fast it is")
    add("--folder", type=Path, metavar="DIR", help="where everything lies (the folder for temporary files)")
    add("--json", type=Path, metavar="PATH", default=Path(tempfile.gettempdir(), "mnemon-artifacts.json"),
        help="where the results are written (%(default)s)")  # fmt: skip
    given = parser.parse_args(arguments)
    facts = {"started": datetime.now(UTC).isoformat(timespec="seconds"), "load_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="mnemon-artifacts-", dir=given.folder) as folder:
        sizes = QUICK_SIZES if given.quick else SIZES
        results = run(Path(folder), sizes, given.rounds or (2 if given.quick else 5))
        machine = report.machine(Path(folder).parent)
    show(results)
    document = {**facts, "load_after": os.getloadavg()[0], "machine": machine, "measures": results}
    given.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(f"Written to {given.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
