"""`python -m benchmarks.vectors`: how fast and how exact the nearest vectors are found, by every driver.

Beside each driver, in the same rounds, numpy multiplies all vectors by the question on one thread and picks the ten
best; under the filter, which leaves one namespace of a hundred, it is given just these, side by side. `embedded` is
SQLite through its port, from the question to ids that were checked to be live; `bare` is the index in memory alone.
The indexes are warm, as in a program that has run for a while. Vectors are clustered as those of sentences are, and
noise, which has no structure that an index could use. Before that, text search: common words beside rare ones.
"""

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import planting, report, resources, words
from benchmarks.embedded import url_of
from benchmarks.measuring import Contest, Contestant, Result, Round, Target, run, timed, turns
from benchmarks.progress import Bar
from mnemon.backends.stores import load_store
from mnemon.facts import facts_of, filter_for
from mnemon.indexing.stores import record_id
from mnemon.model import EmbeddingModel, Space, SpaceStatus
from mnemon.ports import VectorQuery, VectorRecord
from mnemon.settings import Settings
from mnemon.sql import chunks
from mnemon.vectorindex import VectorIndex
from tests import servers

K = 10
QUESTIONS = 40
SIZES = (10_000, 100_000, 1_000_000)
SERVERS = ("pgvector", "qdrant", "weaviate", "chroma")
DRIVERS = ("sqlite", *SERVERS)
KINDS = ("sentences", "noise")
RECALL = 0.99
_FILTERED = 4  # namespaces that are asked about
_RECORDS = 1_000
_PATIENCE = 600.0
_CLUSTER_SIZE = 50
_ALIKE = 1e-5

Search = Callable[[Any, Sequence[str], int], Sequence[int]]
"""The ids of the nearest at or below some namespaces."""


# -- the vectors


@dataclass(frozen=True, slots=True)
class Data:
    """Vectors, the ids of which are their places and one more, and questions near some of them."""

    kind: str
    matrix: Any
    questions: Any
    shares: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The vectors of some namespaces, copied so that they lie side by side."""

    @classmethod
    def make(cls, kind: str, size: int, dimension: int) -> "Data":
        chance = np.random.default_rng(size)
        matrix = _sentences(chance, size, dimension) if kind == "sentences" else _noise(chance, size, dimension)
        near = matrix[chance.integers(size, size=QUESTIONS)] + 0.5 * _noise(chance, QUESTIONS, dimension)
        names = [planting.namespace_of(number) for number in range(_FILTERED)]
        shares = {name: np.ascontiguousarray(matrix[n :: planting.NAMESPACES]) for n, name in enumerate(names)}
        return cls(kind, matrix, _unit(near), shares)

    def asked(self, question: int, *, filtered: bool) -> tuple[Any, list[str]]:
        """A question and the namespaces that it is about."""
        return self.questions[question], [planting.namespace_of(question % _FILTERED)] if filtered else [""]

    def among(self, prefixes: Sequence[str]) -> Any:
        return self.shares.get(prefixes[0], self.matrix)

    def brute_force(self, question: Any, prefixes: Sequence[str], k: int) -> Any:
        """The places of the best, best first."""
        scores = self.among(prefixes) @ question
        best = np.argpartition(scores, -k)[-k:]
        return best[np.argsort(-scores[best])]

    def recall(self, search: Search, *, filtered: bool) -> float:
        """The share of the ten nearest that were found; what is as near is as good."""
        shares: list[float] = []
        for number in range(QUESTIONS):
            question, prefixes = self.asked(number, filtered=filtered)
            least = np.sort(self.among(prefixes) @ question)[-K]
            found = self.matrix[np.asarray(search(question, prefixes, K), np.int64) - 1] @ question
            shares.append(float((found >= least - _ALIKE).sum()) / K)
        return float(np.mean(shares))


def _unit(vectors: Any) -> Any:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _noise(chance: np.random.Generator, rows: int, dimension: int) -> Any:
    vectors = chance.standard_normal((rows, dimension), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _sentences(chance: np.random.Generator, rows: int, dimension: int) -> Any:
    """Around centres, with more spread in some directions than in others, as a model of language gives them."""
    spread = (np.arange(1, dimension + 1) ** -0.25).astype(np.float32)
    centres = chance.standard_normal((max(10, rows // _CLUSTER_SIZE), dimension), np.float32) * spread
    vectors = np.empty((rows, dimension), np.float32)
    for some in chunks(range(rows), 50_000):
        part = chance.standard_normal((len(some), dimension), np.float32) * spread
        part += centres[chance.integers(len(centres), size=len(some))]
        vectors[some.start : some.stop] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


# -- the drivers


@dataclass(frozen=True, slots=True)
class Driver:
    """A filled store, and what it took to fill it."""

    search: Mapping[str, Search]
    """By the name of the way to ask."""
    insert_rate: float
    ready: float
    """Seconds from the last insert until it answers as fast as it will."""
    memory: int
    disk: int


@contextmanager
def open_driver(name: str, data: Data, folder: Path) -> Iterator[Driver]:
    if name == "sqlite":
        opened = _sqlite(data, folder)
    elif name == "pgvector":
        opened = _pgvector(data)
    else:
        opened = _outside(name, data)
    with opened as driver:
        yield driver


@contextmanager
def _sqlite(data: Data, folder: Path) -> Iterator[Driver]:
    settings = Settings(url=url_of(folder / "vectors.db"))
    with planting.ground(settings, "bench", _model(data)) as ground, Bar("sqlite") as bar:
        start = time.perf_counter()
        ground.plant(None, data.matrix, bar)
        rate = len(data.matrix) / (time.perf_counter() - start)
    bare = _bare(data)
    gc.collect()
    before = resources.own_memory()
    with planting.ground(settings, "bench", _model(data)) as ground:
        start = time.perf_counter()
        ground.search(data.questions[0], [""], K)
        ready = time.perf_counter() - start
        memory = resources.own_memory() - before
        ways = {"embedded": _ids_of(ground), "bare": bare}
        yield Driver(ways, rate, ready, memory, sum(path.stat().st_size for path in folder.glob("vectors.db*")))
    for path in folder.glob("vectors.db*"):
        path.unlink()


def _bare(data: Data) -> Search:
    """The index without a database; floats that it has no room for are taken from the matrix."""
    index = VectorIndex(data.matrix.shape[1])
    for some in chunks(range(len(data.matrix)), 20_000):
        names = [planting.namespace_of(number) for number in some]
        index.put(np.arange(some.start, some.stop) + 1, names, data.matrix[some.start : some.stop])

    def search(question: Any, prefixes: Sequence[str], k: int) -> Sequence[int]:
        return index.search(question, prefixes, k, fetch=lambda ids: data.matrix[ids - 1])[0]

    return search


@contextmanager
def _pgvector(data: Data) -> Iterator[Driver]:
    with servers.stoppable_postgres() as server:
        before, disk = resources.memory_of_children(), resources.size_of(server.directory)
        with planting.ground(Settings(url=server.url), "bench", _model(data)) as ground, Bar("pgvector") as bar:
            start = time.perf_counter()
            ground.plant(None, data.matrix, bar)
            rate = len(data.matrix) / (time.perf_counter() - start)
            start = time.perf_counter()
            ground.prepare()
            ground.search(data.questions[0], [""], K)
            ready = time.perf_counter() - start
            memory = resources.memory_of_children() - before
            ways = {"pgvector": _ids_of(ground)}
            yield Driver(ways, rate, ready, memory, resources.size_of(server.directory) - disk)


@contextmanager
def _outside(name: str, data: Data) -> Iterator[Driver]:
    start_server = {"qdrant": servers.qdrant, "weaviate": servers.weaviate, "chroma": servers.chroma}[name]
    with start_server() as server, Bar(name) as bar:
        before, disk = resources.memory_of_children(), resources.size_of(server.directory)
        grpc = f"?grpc_port={server.grpc_port}" if server.grpc_port else ""
        url = f"{name}://{server.url.removeprefix('http://')}{grpc}"
        space = Space(1, "bench", _model(data), SpaceStatus.ACTIVE, datetime.now(UTC))
        store = load_store(url, space, Settings(vector_timeout=_PATIENCE))
        numbers = range(len(data.matrix))
        bar.begin(-(-len(numbers) // _RECORDS))
        start = time.perf_counter()
        for some in chunks(numbers, _RECORDS):
            store.store([_record(number, data, space) for number in some])
            bar.tick(f"{some[-1] + 1:,} of {len(numbers):,}")
        rate = len(numbers) / (time.perf_counter() - start)
        ready = resources.wait_for_children(_PATIENCE)

        def search(question: Any, prefixes: Sequence[str], k: int) -> list[int]:
            found = store.query(VectorQuery(question, k, filter_for(prefixes, (), None)))
            return [match.memory_id for match in found]

        memory = resources.memory_of_children() - before
        yield Driver({name: search}, rate, ready, memory, resources.size_of(server.directory) - disk)
        store.close()


def _record(number: int, data: Data, space: Space) -> VectorRecord:
    namespace, key = planting.namespace_of(number), planting.key_of(number)
    model = space.model
    about: dict[str, str | int] = {
        "namespace": namespace, "key": key, "version": 1,
        "model": model.name, "model_version": model.version, "dimension": model.dimension,
    }  # fmt: skip
    facts = facts_of(namespace, "semantic", {})
    return VectorRecord(record_id(namespace, key), number + 1, data.matrix[number], facts, 1.0, (), about)


def _model(data: Data) -> EmbeddingModel:
    return EmbeddingModel("bench", "1", data.matrix.shape[1])


def _ids_of(ground: planting.Ground) -> Search:
    return lambda question, prefixes, k: [match.memory_id for match in ground.search(question, prefixes, k)]


# -- the contest


@dataclass(frozen=True, slots=True)
class Finding:
    """What one driver did with one kind and number of vectors, in one scope."""

    data: str
    size: int
    scope: str
    driver: str
    numpy_p50: float
    p50: float
    p99: float
    ratio: float
    recall: float
    insert_rate: float | None
    ready: float | None
    memory: int | None
    disk: int | None
    target: str
    met: bool | None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": f"{self.data}_{self.size}_{self.scope}_{self.driver}",
            "data": self.data, "size": self.size, "scope": self.scope, "driver": self.driver,
            "numpy_p50_us": round(self.numpy_p50 * 1e6, 1), "p50_us": round(self.p50 * 1e6, 1),
            "p99_us": round(self.p99 * 1e6, 1), "ratio": round(self.ratio, 3), "recall_10": round(self.recall, 4),
            "insert_per_second": self.insert_rate and round(self.insert_rate),
            "ready_seconds": self.ready and round(self.ready, 3),
            "memory_bytes": self.memory, "disk_bytes": self.disk, "target": self.target or None, "met": self.met,
        }  # fmt: skip


def target_of(driver: str, size: int, *, filtered: bool) -> Target | None:
    """What the embedded driver is to reach, as a multiple of numpy's time."""
    limit = 2.0 if filtered else {100_000: 0.5, 1_000_000: 0.4}.get(size)
    return Target(f"≤ {limit:g} ×", {driver: limit}) if driver == "embedded" and limit else None


def measure(name: str, data: Data, rounds: int, folder: Path) -> list[Finding]:
    size = len(data.matrix)
    calls = 20 if size <= 100_000 else 5
    with open_driver(name, data, folder) as driver:
        main = next(iter(driver.search))
        contests = [
            Contest(scope, f"{data.kind}, {size:,}, {scope}", _contestants(driver, data, calls, filtered=filtered),
                    "numpy", target_of(main, size, filtered=filtered))
            for scope, filtered in (("all", False), ("1%", True))
        ]  # fmt: skip
        recalls = {
            (scope, way): data.recall(search, filtered=scope != "all")
            for scope in ("all", "1%")
            for way, search in driver.search.items()
        }
        gc.collect()
        with Bar(name) as bar:
            bar.begin(turns(contests, rounds))
            results = run(contests, rounds, bar.tick)
        return [
            _finding(data, result, way, recalls[result.id, way], driver if way == main else None)
            for result in results
            for way in driver.search
        ]


def _contestants(driver: Driver, data: Data, calls: int, *, filtered: bool) -> dict[str, Contestant]:
    def asking(search: Callable[..., object]) -> Contestant:
        def contestant(number: int) -> Round:
            places = [(number * calls + n) % QUESTIONS for n in range(calls)]
            return timed(search, [(*data.asked(place, filtered=filtered), K) for place in places])

        return contestant

    return {"floor": asking(data.brute_force), **{way: asking(search) for way, search in driver.search.items()}}


def _finding(data: Data, result: Result, way: str, recall: float, driver: Driver | None) -> Finding:
    figures, ratio = result.figures[way], result.ratios[way]
    fast = result.target.met(way, figures, ratio) if result.target else None
    asked = way == "embedded"
    return Finding(
        data.kind, len(data.matrix), result.id, way,
        result.figures["floor"].percentile(0.5), figures.percentile(0.5), figures.percentile(0.99), ratio, recall,
        driver and driver.insert_rate, driver and driver.ready, driver and driver.memory, driver and driver.disk,
        ", ".join([*([result.target.text] if result.target and asked else []), f"recall ≥ {RECALL}"]) if asked else "",
        (fast is not False and recall >= RECALL) if asked else None,
    )  # fmt: skip


# -- the report

_HEADS = (
    "vectors", "size", "scope", "driver", "p50", "p99", "numpy p50", "÷ numpy", "recall@10", "insert/s", "ready",
    "memory", "disk", "target", "met",
)  # fmt: skip


def show(findings: Sequence[Finding], text: Result) -> None:
    print(report.table(_HEADS, [_row(finding) for finding in findings]))
    figures = {"rare" if name == "floor" else name: figure for name, figure in text.figures.items()}
    rows = [
        [name, report.duration(f.percentile(0.5)), report.duration(f.percentile(0.99)),
         f"{text.ratios.get(name, 1.0):.2f}", text.target.text if text.target and name == "common" else "",
         _met(text.met) if name == "common" else ""]
        for name, f in figures.items()
    ]  # fmt: skip
    print(f"\n{text.title}, questions of three words")
    print(report.table(("words", "p50", "p99", "÷ rare", "target", "met"), rows))


def _row(f: Finding) -> list[str]:
    return [
        f.data, f"{f.size:,}", f.scope, f.driver, report.duration(f.p50), report.duration(f.p99),
        report.duration(f.numpy_p50), f"{f.ratio:.2f}", f"{f.recall:.3f}",
        f"{f.insert_rate:,.0f}" if f.insert_rate else "", report.duration(f.ready) if f.ready else "",
        _bytes(f.memory), _bytes(f.disk), f.target, _met(f.met),
    ]  # fmt: skip


def _met(met: bool | None) -> str:
    return {True: "yes", False: "NO", None: ""}[met]


def _bytes(number: int | None) -> str:
    return "" if number is None else f"{number / 2**20:,.0f} MB"


def plot(findings: Sequence[Finding], path: Path) -> None:
    """The time of a question by the number of vectors, for every driver."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to import, and needed only here

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    panels = list(dict.fromkeys((f.data, f.scope) for f in findings))
    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 4), sharey=True, squeeze=False)
    for axis, (kind, scope) in zip(axes[0], panels, strict=True):
        mine = [f for f in findings if (f.data, f.scope) == (kind, scope)]
        for driver in dict.fromkeys(f.driver for f in mine):
            line = [(f.size, f.p50 * 1e3) for f in mine if f.driver == driver]
            axis.plot(*zip(*line, strict=True), marker="o", label=driver)
        base = {f.size: f.numpy_p50 * 1e3 for f in mine}
        axis.plot(list(base), list(base.values()), marker="x", linestyle="--", color="grey", label="numpy")
        axis.set(xscale="log", yscale="log", xlabel="vectors", title=f"{kind}, {scope}")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("p50, ms")
    axes[0][-1].legend()
    figure.savefig(path, bbox_inches="tight", dpi=120)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    sizes = given.sizes or ([1_000, 2_000] if given.quick else SIZES)
    rounds = given.repeat or (1 if given.quick else 10)
    drivers = given.drivers or (["sqlite"] if given.quick else DRIVERS)
    if min(sizes) < K * planting.NAMESPACES:
        parser.error(f"a size is at least {K * planting.NAMESPACES}, so that every namespace has {K}")
    findings: list[Finding] = []
    facts = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"), "quick": given.quick, "rounds": rounds,
        "dimension": given.dimension, "load_before": os.getloadavg()[0],
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="mnemon-vectors-", dir=given.folder) as folder:
        facts["machine"] = report.machine(Path(folder).parent)
        text = words.measure(Path(folder), given.texts or (1_000 if given.quick else 100_000), rounds)
        for size in sizes:
            for kind in given.data:
                data = Data.make(kind, size, given.dimension)
                for name in drivers:
                    findings += measure(name, data, rounds, Path(folder))
                    keep(given.json, facts, findings, text)
    show(findings, text)
    print(f"\nWritten to {given.json}")
    if given.plot:
        plot(findings, given.plot)
        print(f"Drawn in {given.plot}")
    return 0


def keep(path: Path, facts: Mapping[str, Any], findings: Sequence[Finding], text: Result) -> None:
    """Write down what is known so far: a run takes hours, and may be cut short."""
    measures = [finding.as_json() for finding in findings]
    document = {**facts, "load_after": os.getloadavg()[0], "measures": measures, "text": text.as_json()}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.vectors", description=(__doc__ or "").partition("\n\n")[2])
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", metavar="N", help="numbers of vectors, at least 1000 (10000 100000 1000000)")
    add("--dimension", type=int, default=384, metavar="N", help="of the vectors (%(default)s)")
    add("--drivers", nargs="+", choices=DRIVERS, help="what is measured (all; with --quick sqlite)")
    add("--data", nargs="+", choices=KINDS, default=KINDS, help="kinds of vectors (both)")
    add("--texts", type=int, metavar="N", help="memories for text search (100000)")
    add("--quick", action="store_true", help="small, one round: to see that it works, not how fast it is")
    add("--repeat", type=int, metavar="N", help="rounds (10)")
    add("--folder", type=Path, metavar="DIR", help="where the database lies (the folder for temporary files)")
    add("--json", type=Path, metavar="PATH", default=Path(tempfile.gettempdir(), "mnemon-vectors.json"),
        help="where the results are written (%(default)s)")  # fmt: skip
    add("--plot", type=Path, metavar="PATH", help="draw a picture there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
