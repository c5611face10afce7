"""`python -m benchmarks.workspaces`: snapshots of small and large workspaces, and folders beside plain copies.

In workspaces of several sizes one file is changed at a time, and a snapshot taken. What that takes, and what it takes
to see the difference to the snapshot before, to go back to it and to add a file, must not grow with the number of
files: the slowest size may take twice as long as the fastest. Each change must store one row, one content and nothing
else.

Then a folder is imported, imported again unchanged, and exported, beside copies of it: a plain one, and one that hashes
each file and has it on the disk before it goes on, as an import does.
"""

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import mnemon.sync
from benchmarks import report
from benchmarks.embedded import url_of
from mnemon.sync import BlockingMemory

SIZES = (100, 1_000, 10_000)
QUICK_SIZES = (20, 100)
LIMIT = 2.0
STEPS = ("write", "snapshot", "diff", "restore", "add")
_BYTES = 2_000


def make_folder(folder: Path, count: int) -> Path:
    """Files of some size, a hundred in each folder, no two alike."""
    for number in range(count):
        file = folder / f"{number // 100:03}" / f"{number:05}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number} " + f"line {number * 7919}\n" * (_BYTES // 16))
    return folder


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def copy_durably(source: Path, target: Path) -> None:
    """Hash each file while it is copied, and have it on the disk before the next."""
    for file in sorted(source.rglob("*")):
        place = target / file.relative_to(source)
        if file.is_dir():
            place.mkdir(parents=True)
            continue
        data = file.read_bytes()
        hashlib.sha256(data).hexdigest()
        with place.open("wb") as copy:
            copy.write(data)
            copy.flush()
            os.fsync(copy.fileno())


def stored(database: Path) -> tuple[int, int]:
    """How many versions of files there are, and how many contents."""
    with closing(sqlite3.connect(database)) as connection:
        versions, contents = connection.execute(
            "SELECT COUNT(*), COUNT(DISTINCT sha256) FROM workspace_files"
        ).fetchone()
    return versions, contents


class Rounds:
    """Workspaces of all sizes, in which everything is done in turn, so that a busy machine is unfair to none."""

    def __init__(self, memory: BlockingMemory, database: Path, sizes: Sequence[int]) -> None:
        self._memory = memory
        self._database = database
        self.seconds: dict[int, dict[str, list[float]]] = {size: {step: [] for step in STEPS} for size in sizes}
        self.surplus = 0

    def run(self, rounds: int) -> None:
        for number in range(rounds):
            for size in self.seconds:
                self._change_one(f"w{size}", size, number)

    def _change_one(self, name: str, size: int, number: int) -> None:
        spaces, path, text = self._memory.workspaces, f"{0:03}/{number:05}.txt", f"changed {size} {number}"
        first = spaces.snapshot(name).number
        before = stored(self._database)
        steps: dict[str, Callable[[], Any]] = {
            "write": lambda: spaces.write(name, path, text),
            "snapshot": lambda: spaces.snapshot(name),
            "diff": lambda: spaces.diff(name, first, first + 1),
            "restore": lambda: spaces.restore(name, first),
            "add": lambda: spaces.write(name, f"new/{number:05}.txt", text),
        }
        for step, work in steps.items():
            self.seconds[size][step].append(timed(work))
            if step == "snapshot":
                after = stored(self._database)
                self.surplus += after[0] - before[0] - 1 + after[1] - before[1] - 1

    def medians(self) -> dict[str, dict[int, float]]:
        return {step: {size: statistics.median(each[step]) for size, each in self.seconds.items()} for step in STEPS}


def run(folder: Path, sizes: Sequence[int], rounds: int) -> dict[str, Any]:
    database = folder / "workspaces.db"
    sources = {size: make_folder(folder / f"source{size}", size) for size in sizes}
    largest = max(sizes)
    transfers: dict[str, float] = {}
    with mnemon.sync.open(url_of(database), background=False, embedder="none") as memory:
        spaces = memory.workspaces
        for size, source in sources.items():
            spaces.create(f"w{size}")
            taken = timed(lambda: spaces.import_folder(f"w{size}", source))  # noqa: B023 - called at once
            if size == largest:
                transfers["import"] = taken
        source = sources[largest]
        transfers["import again, unchanged"] = timed(lambda: spaces.import_folder(f"w{largest}", source))
        transfers["export"] = timed(lambda: spaces.export_folder(f"w{largest}", folder / "exported"))
        transfers["clone"] = timed(lambda: spaces.clone(f"w{largest}"))
        transfers["plain copy"] = timed(lambda: shutil.copytree(source, folder / "copied"))
        transfers["copy, hashed and durable"] = timed(lambda: copy_durably(source, folder / "durable"))
        measured = Rounds(memory, database, sizes)
        measured.run(rounds)
    medians = measured.medians()
    return {
        "files": list(sizes),
        "microseconds": {step: {size: round(each * 1e6, 1) for size, each in found.items()}
                         for step, found in medians.items()},
        "ratios": {step: round(max(found.values()) / min(found.values()), 2) for step, found in medians.items()},
        "surplus": measured.surplus,
        "transfers": {"files": largest, "seconds": {name: round(each, 3) for name, each in transfers.items()}},
    }  # fmt: skip


def show(results: dict[str, Any]) -> None:
    sizes = results["files"]
    rows = [
        [step, *(report.duration(found[size] / 1e6) for size in sizes), f"{results['ratios'][step]:.2f}",
         f"≤ {LIMIT:g}", "yes" if results["ratios"][step] <= LIMIT else "NO"]
        for step, found in results["microseconds"].items()
    ]  # fmt: skip
    print(report.table(("one of n files changed", *(f"{size:,}" for size in sizes), "ratio", "target", "met"), rows))
    print(f"Rows and contents stored beyond one each for a change: {results['surplus']}\n")
    transfers = results["transfers"]
    rows = [[name, report.duration(each)] for name, each in transfers["seconds"].items()]
    print(report.table((f"{transfers['files']:,} files of {_BYTES / 1000:g} kB", "time"), rows))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.workspaces", description=(__doc__ or "").partition("\n\n")[2]
    )
    add = parser.add_argument
    add("--rounds", type=int, metavar="N", help="how often one file is changed, in each size (40)")
    add("--quick", action="store_true", help="few files: to see that it works, not how fast it is")
    add("--folder", type=Path, metavar="DIR", help="where everything lies (the folder for temporary files)")
    add("--json", type=Path, metavar="PATH", default=Path(tempfile.gettempdir(), "mnemon-workspaces.json"),
        help="where the results are written (%(default)s)")  # fmt: skip
    given = parser.parse_args(arguments)
    facts = {"started": datetime.now(UTC).isoformat(timespec="seconds"), "load_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="mnemon-workspaces-", dir=given.folder) as folder:
        sizes = QUICK_SIZES if given.quick else SIZES
        results = run(Path(folder), sizes, given.rounds or (3 if given.quick else 40))
        machine = report.machine(Path(folder).parent)
    show(results)
    document = {**facts, "load_after": os.getloadavg()[0], "machine": machine, **results}
    given.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(f"Written to {given.json}")
    return 1 if results["surplus"] or (max(results["ratios"].values()) > LIMIT and not given.quick) else 0


if __name__ == "__main__":
    sys.exit(main())
