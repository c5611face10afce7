"""`python -m benchmarks.reembed`: change the embedder of many memories while a writer and a reader go on.

The database begins with vectors of another model, a projection of the static embedder's to fewer dimensions, and is
changed to `static`. The writer remembers new memories, changes some and forgets some. The reader asks without end:
for memories that were there and for new ones by a word that only they have, for memories by most of what they say,
and for some by a question that shares no word with them. Each has a handle of its own, as three programs would.

What is asked for and not among the first ten is missing. A hit that was forgotten, or says what was changed before the
question was asked, is wrong. The only memory that has a word is displaced if another comes before it, which is told for
each phase too. All of these must be 0. Questions by meaning are put to the memory's namespace, and only those that a
database that stands still answers among its first five with either model.
"""

import argparse
import json
import os
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import mnemon.sync
from benchmarks import planting, recall, report, texts
from benchmarks.embedded import url_of
from benchmarks.measuring import Figures, Round
from benchmarks.progress import Bar
from mnemon.model import EmbeddingModel, Hit, Progress
from mnemon.ports import Embedder, Vector
from mnemon.providers.loading import load
from mnemon.settings import Settings

COUNT = 100_000
QUICK_COUNT = 400
K = 10
PHASES = ("before", "during", "after")
_DIMENSION = 128
_PAUSE = 0.005
_LITTLE = 1_000
_UNEMBEDDED = """
    SELECT COUNT(*) FROM memory_entries WHERE is_current = TRUE AND is_deleted = FALSE AND id NOT IN (
        SELECT memory_id FROM memory_vectors
        WHERE space_id = (SELECT id FROM vector_spaces WHERE status = 'active'))
"""
MEANINGS = (
    ("The physician prescribed antibiotics against the infection", "doctor gave medicine to cure a disease"),
    ("Our puppy chased a kitten around the garden", "dog running after cat on the lawn"),
    ("She bakes sourdough loaves every Sunday morning", "making bread on weekends"),
    ("The airplane landed late because of the thunderstorm", "flight delayed by bad weather"),
    ("His automobile broke down on the motorway", "car trouble while driving on a highway"),
    ("They married in a small chapel by the sea", "wedding ceremony at a church near the ocean"),
    ("The violinist rehearsed a concerto with the orchestra", "musician practising classical music"),
    ("He purchased an apartment and signed the mortgage", "buying a flat with a bank loan"),
    ("The chef grilled salmon with lemon and herbs", "cooking fish for dinner in the kitchen"),
    ("Heavy snow closed every school in town", "children stay home from classes in winter weather"),
    ("She was promoted and now earns a higher salary", "career raise with more pay at her job"),
    ("He plays tennis against his brother twice weekly", "sport match with a sibling, racket and ball"),
    ("The museum exhibits paintings by Dutch masters", "art gallery showing old pictures from Holland"),
    ("Grandmother knitted woollen socks as presents", "handmade clothes gifts from an old relative"),
    ("The server crashed when its disk was full", "computer failure, no storage space left"),
    ("They hiked through the mountains and camped by a lake", "outdoor trekking trip with a tent near water"),
)
"""What is remembered, and a question about it that has none of its words."""


class Projected:
    """The static embedder seen from elsewhere: a space of its own, as quick to embed in."""

    is_quick = True

    def __init__(self) -> None:
        self._static = load("static", Settings())
        whole = self._static.model.dimension
        self._turn = np.random.default_rng(1).standard_normal((whole, _DIMENSION)).astype(np.float32)
        self.model = EmbeddingModel("projected-static", "1", _DIMENSION)

    def embed(self, texts: Sequence[str]) -> Vector:
        return self._static.embed(texts) @ self._turn

    def close(self) -> None:
        self._static.close()


@dataclass(slots=True)
class Truth:
    """What every memory says at present, and when it was last touched."""

    said: dict[str, str]
    """By key; what was forgotten is not there."""
    settled: list[str]
    """Keys that nobody will touch."""
    new: list[str] = field(default_factory=list[str])
    """Keys that the writer added and leaves alone."""
    touched: dict[str, float] = field(default_factory=dict[str, float])
    meant: dict[str, str] = field(default_factory=dict[str, str])
    """Questions that share no word with what they are about, and the key of that."""

    def scope_for_meaning(self, key: str) -> str:
        """Where a question by meaning is put: the namespace of what it means, or everything if that is little."""
        return _namespace(key) if len(self.settled) > _LITTLE else "user"

    def touch(self, key: str) -> None:
        self.touched[key] = time.monotonic()

    def is_wrong(self, hit: Hit, asked: float) -> bool:
        """Whether it does not say what it said when it was asked for, if it did not change since."""
        key = hit.memory.key
        return self.touched.get(key, 0.0) < asked and self.said.get(key) != hit.memory.value


def mark(key: str) -> str:
    """A word that only the memory with this key has."""
    return f"zq{int(key.rpartition('-')[2]):x}xv"


def known(count: int) -> Truth:
    """Memories with a word of their own each, and some that are asked for by meaning."""
    said = {planting.key_of(n): text for n, text in enumerate(texts.Writer().texts(count))}
    said = {key: f"{text} {mark(key)}" for key, text in said.items()}
    truth = Truth(said, [key for n, key in enumerate(said) if n % 5])
    for number, (text, question) in enumerate(MEANINGS):
        key = truth.settled[(2 * number + 1) * len(truth.settled) // (2 * len(MEANINGS))]
        said[key], truth.meant[question] = f"{text} {mark(key)}", key
    return truth


# -- those who go on


class Writer:
    """Remembers, changes and forgets, and says so in the truth: before, so that nobody is blamed, and after."""

    def __init__(self, memory: mnemon.sync.BlockingMemory, truth: Truth) -> None:
        self._memory = memory
        self._truth = truth
        self._chance = random.Random(3)
        self._texts = texts.Writer(9)
        self._next = len(truth.said)
        self._loose = sorted(truth.said.keys() - set(truth.settled))
        self.counts = Counter[str]()

    def step(self) -> None:
        action = self._chance.choices(("add", "change", "forget"), (8, 3, 1))[0]
        if action == "add" or not self._loose:
            key = planting.key_of(self._next)
            self._next += 1
            self._write(key)
            self._truth.new.append(key)
        elif action == "change":
            self._write(self._chance.choice(self._loose))
        else:
            key = self._loose.pop(self._chance.randrange(len(self._loose)))
            self._truth.touch(key)
            self._memory.forget(_namespace(key), key)
            self._truth.said.pop(key)
            self._truth.touch(key)
        self.counts[action] += 1

    def _write(self, key: str) -> None:
        text = f"{self._texts.text()} {mark(key)}"
        self._truth.touch(key)
        self._memory.remember(text, namespace=_namespace(key), key=key)
        self._truth.said[key] = text
        self._truth.touch(key)


class Reader:
    """Asks for what it knows to be there, and notes what is missing or wrong."""

    def __init__(self, memory: mnemon.sync.BlockingMemory, truth: Truth) -> None:
        self.phase = PHASES[0]
        self.times: dict[str, list[int]] = {phase: [] for phase in PHASES}
        self.missing: list[str] = []
        self.wrong: list[str] = []
        self.displaced: dict[str, list[bool]] = {phase: [] for phase in PHASES}
        self.asked = Counter[str]()
        self._memory = memory
        self._truth = truth
        self._chance = random.Random(5)
        self._ways: tuple[Callable[[], None], ...] = (self._by_word, self._by_text, self._by_meaning, self._newest)

    def step(self) -> None:
        self._chance.choice(self._ways)()

    def _by_word(self) -> None:
        self._ask("word", mark(key := self._chance.choice(self._truth.settled)), key, first=True)

    def _newest(self) -> None:
        if self._truth.new:
            recent = self._truth.new[-20:]
            self._ask("new", mark(key := self._chance.choice(recent)), key, first=True)

    def _by_text(self) -> None:
        """The vector of the same words is as near as can be, so the vectors must have found it too."""
        key = self._chance.choice(self._truth.settled)
        hits = self._ask("text", self._truth.said[key].rpartition(" ")[0], key)
        if not any(hit.memory.key == key and _by_vectors(hit) for hit in hits):
            self.missing.append(f"{self.phase}: {key} by its vector")

    def _by_meaning(self) -> None:
        if self._truth.meant:
            question, key = self._chance.choice(sorted(self._truth.meant.items()))
            self._ask("meaning", question, key, scope=self._truth.scope_for_meaning(key))

    def _ask(self, way: str, question: str, key: str, *, first: bool = False, scope: str = "user") -> list[Hit]:
        phase, asked, start = self.phase, time.monotonic(), time.perf_counter_ns()
        hits = self._memory.recall(question, namespaces=scope, k=K)
        self.times[phase].append(time.perf_counter_ns() - start)
        self.asked[way] += 1
        found = [hit.memory.key for hit in hits]
        if key not in found:
            self.missing.append(f"{phase}: {key} by {way}")
        elif first:
            self.displaced[phase].append(found[0] != key)
        self.wrong += [
            f"{phase}: {hit.memory.key} is not so any more" for hit in hits if self._truth.is_wrong(hit, asked)
        ]
        return hits


class Going:
    """Somebody who takes step after step on a thread, until told to stop; what goes wrong there is raised here."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._go, daemon=True)

    def __enter__(self) -> "Going":
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None and kind is None:
            raise self._error

    def _go(self) -> None:
        try:
            while not self._stop.is_set():
                self._step()
                self._stop.wait(_PAUSE)
        except BaseException as error:  # noqa: BLE001 - it is raised when the thread is waited for
            self._error = error


# -- the run


def run(folder: Path, count: int, seconds: float) -> dict[str, Any]:
    """Watch for so long before and after; the results."""
    truth, embedder, path = known(count), Projected(), folder / "reembed.db"
    control = folder / "control.db"
    _build(control, truth, load("static", Settings()), "static")
    _keep_understood(control, truth, "static")
    control.unlink()
    _build(path, truth, embedder, "custom")
    _keep_understood(path, truth, embedder)
    with ExitStack() as stack:
        handles = [stack.enter_context(mnemon.sync.open(url_of(path), embedder=embedder)) for _ in range(3)]
        writer, reader = Writer(handles[1], truth), Reader(handles[2], truth)
        for handle in handles:  # reads the index, which is no part of a recall
            handle.recall("warm", namespaces="user")
        with Going(writer.step), Going(reader.step):
            time.sleep(seconds)
            reader.phase = PHASES[1]
            start = time.perf_counter()
            space = _reembed(handles[0])
            took = time.perf_counter() - start
            reader.phase = PHASES[2]
            time.sleep(seconds)
        handles[0].settled()
    return {
        "memories": count, "space": str(space.model), "seconds": round(took, 2),
        "memories_per_second": round(count / took),
        "unembedded": _unembedded(path), "missing": len(reader.missing), "wrong": len(reader.wrong),
        "displaced": sum(map(sum, reader.displaced.values())),
        "examples": (reader.missing + reader.wrong)[:20], "written": dict(writer.counts), "asked": dict(reader.asked),
        "meanings": len(truth.meant),
        "recall": {phase: _figures(times, reader.displaced[phase]) for phase, times in reader.times.items()},
    }  # fmt: skip


def _build(path: Path, truth: Truth, embedder: Embedder, provider: str) -> None:
    written = list(truth.said.values())
    recall.build(path, written, recall.embed(embedder, written), embedder, provider)


def _keep_understood(path: Path, truth: Truth, embedder: Any) -> None:
    """Ask by meaning only what is found so while nothing changes."""
    with mnemon.sync.open(url_of(path), embedder=embedder, background=False) as memory:
        for question, key in list(truth.meant.items()):
            hits = memory.recall(question, namespaces=truth.scope_for_meaning(key), k=K // 2)
            if key not in [hit.memory.key for hit in hits]:
                del truth.meant[question]


def _reembed(memory: mnemon.sync.BlockingMemory) -> Any:
    with Bar("reembed") as bar:

        def tell(progress: Progress) -> None:
            bar.reach(progress.done, progress.total, f"{progress.done:,} of {progress.total:,}")

        return memory.reembed("static", progress=tell)


def _figures(times: Sequence[int], displaced: Sequence[bool]) -> dict[str, Any]:
    figures = Figures([Round(list(times), sum(times))])
    shares = {"p50_us": 0.5, "p99_us": 0.99} if times else {}
    return {
        "count": len(times), **{name: round(figures.percentile(share) * 1e6, 1) for name, share in shares.items()},
        "asked_by_word": len(displaced), "displaced": sum(displaced),
    }  # fmt: skip


def _unembedded(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(_UNEMBEDDED).fetchone()[0]
    finally:
        connection.close()


def _namespace(key: str) -> str:
    return planting.namespace_of(int(key.rpartition("-")[2]))


def _by_vectors(hit: Hit) -> bool:
    return any(channel.startswith("vectors:") for channel in hit.found_by)


def show(results: dict[str, Any]) -> None:
    print(
        f"{results['memories']:,} memories changed to {results['space']} in {results['seconds']} s, "
        f"{results['memories_per_second']:,} a second; meanwhile, before and after: "
        f"written {results['written']}, asked {results['asked']}"
    )
    rows = [
        [phase, f"{f['count']:,}", *(report.duration(f.get(name, 0) / 1e6) for name in ("p50_us", "p99_us")),
         f"{f['displaced']} of {f['asked_by_word']}"]
        for phase, f in results["recall"].items()
    ]  # fmt: skip
    print(report.table(("recall", "questions", "p50", "p99", "displaced"), rows))
    counted = {"missing hits": "missing", "wrong hits": "wrong", "displaced hits": "displaced",
               "left without a vector": "unembedded"}  # fmt: skip
    faults = [[name, str(results[key]), "0", "NO" if results[key] else "yes"] for name, key in counted.items()]
    print(report.table(("", "count", "target", "met"), faults))
    print(*results["examples"], sep="\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.reembed", description=(__doc__ or "").partition("\n\n")[2])
    add = parser.add_argument
    add("--count", type=int, metavar="N", help=f"memories ({COUNT})")
    add("--seconds", type=float, metavar="S", help="to watch before and after (10)")
    add("--quick", action="store_true", help="few memories: to see that it works, not how fast it is")
    add("--folder", type=Path, metavar="DIR", help="where the database lies (the folder for temporary files)")
    add("--json", type=Path, metavar="PATH", default=Path(tempfile.gettempdir(), "mnemon-reembed.json"),
        help="where the results are written (%(default)s)")  # fmt: skip
    given = parser.parse_args(arguments)
    facts = {"started": datetime.now(UTC).isoformat(timespec="seconds"), "load_before": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="mnemon-reembed-", dir=given.folder) as folder:
        count = given.count or (QUICK_COUNT if given.quick else COUNT)
        results = run(Path(folder), count, given.seconds or (0.5 if given.quick else 10))
        machine = report.machine(Path(folder).parent)
    show(results)
    document = {**facts, "load_after": os.getloadavg()[0], "machine": machine, **results}
    given.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print(f"Written to {given.json}")
    return 1 if any(results[fault] for fault in ("missing", "wrong", "displaced", "unembedded")) else 0


if __name__ == "__main__":
    sys.exit(main())
