"""How well duplicates and contradictions are found, on labelled pairs, and how long it takes among many memories.

A pair counts as found if it is called by its family: `duplicate` (exact or near), or `conflict` (a contradiction, or
one that supersedes the other). Precision is of all that was found, recall of all that should be. The held-out sets are
of other domains than the one that the detector was written with.
"""

import argparse
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mnemon.consolidation.conflicts import Statement, find

DATA = Path(__file__).parent.parent / "tests" / "data" / "conflicts"
FAMILIES = {
    "duplicate": "duplicate", "near_duplicate": "duplicate", "contradiction": "conflict", "superseded": "conflict",
    "none": "none",
}  # fmt: skip
PRECISION, RECALL = 0.95, 0.85


@dataclass(frozen=True, slots=True)
class Judged:
    """A labelled pair and what the detector said."""

    id: str
    domain: str
    label: str
    found: str
    reason: str
    first: Any
    second: Any

    @property
    def expected(self) -> str:
        return FAMILIES[self.label]

    @property
    def is_right(self) -> bool:
        return self.expected == FAMILIES[self.found]


@dataclass(frozen=True, slots=True)
class Scores:
    """Counts of a set of pairs, and what follows from them."""

    pairs: int
    hits: int
    found: int
    expected: int

    @property
    def precision(self) -> float:
        return self.hits / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.hits / self.expected if self.expected else 1.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def judged(path: Path) -> list[Judged]:
    """Every pair of a file, each as the only two memories of a namespace."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [_judge(row) for row in rows]


def _judge(row: dict[str, Any]) -> Judged:
    findings = find([_statement("a", row["first"]), _statement("b", row["second"])])
    kind, reason = (findings[0].kind, findings[0].reason) if findings else ("none", "")
    return Judged(row["id"], row["domain"], row["label"], kind, reason, row["first"], row["second"])


def _statement(name: str, side: Any) -> Statement:
    keyed = side if isinstance(side, dict) else {"key": f"note-{name}", "value": side}
    return Statement(name, "pairs", keyed["key"], keyed["value"])


def scores(pairs: Iterable[Judged], family: str | None = None) -> Scores:
    """Of one family, or of both."""
    kept = list(pairs)

    def counts(name: str) -> bool:
        return name != "none" and family in (None, name)

    return Scores(
        len(kept),
        sum(pair.is_right and counts(pair.expected) for pair in kept),
        sum(counts(FAMILIES[pair.found]) for pair in kept),
        sum(counts(pair.expected) for pair in kept),
    )


def table(pairs: Sequence[Judged]) -> Iterator[tuple[str, Scores]]:
    yield "all", scores(pairs)
    for family in ("duplicate", "conflict"):
        yield family, scores(pairs, family)
    domains: dict[str, list[Judged]] = defaultdict(list)
    for pair in pairs:
        domains[pair.domain].append(pair)
    for domain, members in domains.items():
        yield f"  {domain}", scores(members)


def timed(count: int) -> dict[str, float]:
    """How long it takes to go through memories of many people and services, of which some repeat or deny others."""
    statements = [Statement(number, "many", f"note-{number}", text) for number, text in enumerate(_texts(count))]
    start, busy = time.perf_counter(), time.process_time()
    found = find(statements)
    seconds, processor = time.perf_counter() - start, time.process_time() - busy
    return {"memories": count, "findings": len(found), "seconds": seconds, "processor_seconds": processor}


def _texts(count: int) -> Iterator[str]:
    chance = random.Random(5)
    names = [f"{first}{last}" for first in "Al Be Ca Do El Fi Ga Ha Iv Jo".split() for last in _LAST]  # noqa: SIM905
    for _ in range(count):
        yield chance.choice(_TEMPLATES).format(
            name=chance.choice(names), other=chance.choice(names), city=chance.choice(_CITIES),
            color=chance.choice(_COLORS), small=chance.randint(1, 9), large=chance.randint(1000, 9999),
        )  # fmt: skip


_LAST = [
    f"{one}{two}"
    for one in ("ra", "to", "vi", "me", "di")
    for two in ("n", "lek", "sum", "pia", "gor", "nah", "dis", "")
]
_CITIES = ("Oslo", "Bergen", "Paris", "Rome", "Madrid", "Berlin", "Vienna", "Prague", "Dublin", "Lisbon")
_COLORS = ("red", "blue", "green", "black", "white")
_TEMPLATES = (
    "{name} lives in {city}.", "{name} works with {other}.", "{name}'s favorite color is {color}.",
    "{name} likes {color} shirts.", "The {color} service of {name} listens on port {large}.",
    "{name} has {small} children.", "The meeting of {name} and {other} is at {small}:00.", "{name} visited {city}.",
    "The budget of project {name} is ${large}.", "{name} does not like {city}.",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None, show: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.conflicts", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("files", nargs="*", type=Path, help="labelled pairs (all of tests/data/conflicts)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results there too")
    parser.add_argument("--misses", action="store_true", help="list every pair that was judged wrongly")
    parser.add_argument(
        "--memories", type=int, default=10_000, metavar="N", help="how many to time; 0 for none (10000)"
    )
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {}
    for path in options.files or sorted(DATA.glob("*.jsonl")):
        results[path.stem] = _show_set(path, options.misses, show)
    if options.memories:
        results["time"] = timing = timed(options.memories)
        took = f"{timing['seconds']:.1f} s ({timing['processor_seconds']:.1f} s of one processor)"
        show(f"\n{timing['memories']:,} memories: {timing['findings']:,} findings in {took}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), "utf-8")
    return 0


def _show_set(path: Path, misses: bool, show: Callable[[str], object]) -> dict[str, Any]:
    pairs = judged(path)
    rows = list(table(pairs))
    show(f"\n{path.stem}: {len(pairs)} pairs (wanted: precision {PRECISION}, recall {RECALL})")
    show(f"{'':24}{'pairs':>7}{'precision':>11}{'recall':>8}{'F1':>7}")
    for name, score in rows:
        show(f"{name:24}{score.pairs:7}{score.precision:11.3f}{score.recall:8.3f}{score.f1:7.3f}")
    wrong = [pair for pair in pairs if not pair.is_right]
    for pair in wrong if misses else ():
        show(f"{pair.id}: {pair.label}, found {pair.found} {pair.reason}\n    {pair.first}\n    {pair.second}")
    figures = {name.strip(): asdict(s) | {"precision": s.precision, "recall": s.recall, "f1": s.f1} for name, s in rows}
    return {"scores": figures, "misses": [asdict(pair) for pair in wrong]}


if __name__ == "__main__":
    sys.exit(main())
