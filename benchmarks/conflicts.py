"""How well duplicates and contradictions are found, on labelled pairs, and how long it takes among many memories.

A pair counts as found if it is called by its family: `duplicate` (exact or near), or `conflict` (a contradiction, or
one that supersedes the other). Precision is of all that was found, recall of all that should be. All figures are of
what rules find, which alone is acted upon, but for the row `with suspected`. The held-out sets are of other domains
than the one that the detector was written with. Give files of your own to have them judged: JSON
Lines, a JSON list, or a table (.csv, .tsv), of pairs with `first`, `second` and `label`.
"""

import argparse
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.pairs import BadPairs, Labelled, read_pairs
from mnemon.consolidation.conflicts import Statement, find
from mnemon.consolidation.suspicion import Embed
from mnemon.providers.loading import load
from mnemon.settings import Settings

DATA = Path(__file__).parent.parent / "tests" / "data" / "conflicts"
FAMILIES = {
    "duplicate": "duplicate", "near_duplicate": "duplicate", "contradiction": "conflict", "superseded": "conflict",
    "none": "none",
}  # fmt: skip
PRECISION, RECALL = 0.95, 0.85
FIRST_LOOKS = {
    "held_out": (0.969, 0.913), "held_out_2": (1.000, 0.869), "blind_1": (0.961, 0.613), "blind_2": (0.947, 0.474),
    "blind_3": (0.987, 0.497), "blind_4": (0.959, 0.686), "blind_5": (0.941, 0.565),
}  # fmt: skip
"""Precision and recall of each set when it was first judged, before the detector was mended by what it showed."""


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
    suspected: str = "none"

    @property
    def expected(self) -> str:
        return FAMILIES[self.label]

    @property
    def is_right(self) -> bool:
        return self.expected == FAMILIES[self.found]

    @property
    def with_suspected(self) -> "Judged":
        """As if what is suspected had been found."""
        return self if self.suspected == "none" else replace(self, found=self.suspected)


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


def static() -> Embed:
    """The vectors that pairs are suspected by."""
    return load("static", Settings()).embed


def judged(path: Path, embed: Embed | None = None) -> list[Judged]:
    """Every pair of a file, each as the only two memories of a namespace."""
    return [_judge(pair, embed) for pair in read_pairs(path)]


def _judge(pair: Labelled, embed: Embed | None) -> Judged:
    findings = find(list(pair.statements), embed)
    found, suspected = ([each for each in findings if each.certainty == name] for name in ("certain", "suspected"))
    kind, reason = (found[0].kind, found[0].reason) if found else ("none", "")
    doubt = suspected[0].kind if suspected else "none"
    return Judged(pair.id, pair.domain, pair.label, kind, reason, pair.first, pair.second, doubt)


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
    yield "with suspected", scores(pair.with_suspected for pair in pairs)
    domains: dict[str, list[Judged]] = defaultdict(list)
    for pair in pairs:
        domains[pair.domain].append(pair)
    for domain, members in domains.items():
        yield f"  {domain}", scores(members)


def timed(count: int, embed: Embed | None = None) -> dict[str, float]:
    """How long it takes to go through memories of many people and services, of which some repeat or deny others."""
    statements = [Statement(number, "many", f"note-{number}", text) for number, text in enumerate(_texts(count))]
    start, busy = time.perf_counter(), time.process_time()
    found = find(statements, embed)
    suspected = sum(each.certainty == "suspected" for each in found)
    seconds, processor = time.perf_counter() - start, time.process_time() - busy
    return {
        "memories": count, "findings": len(found) - suspected, "suspected": suspected,
        "seconds": seconds, "processor_seconds": processor,
    }  # fmt: skip


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
    parser.add_argument(
        "files", nargs="*", type=Path, help="labelled pairs (all of tests/data/conflicts, if none is given)"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the results there too")
    parser.add_argument("--misses", action="store_true", help="list every pair that was judged wrongly")
    parser.add_argument(
        "--memories", type=int, default=10_000, metavar="N", help="how many to time; 0 for none (10000)"
    )
    options = parser.parse_args(arguments)
    results: dict[str, Any] = {}
    embed = static()
    for path in options.files or sorted(DATA.glob("*.jsonl")):
        try:
            results[str(path) if path.stem in results else path.stem] = _show_set(path, embed, options.misses, show)
        except BadPairs as error:
            parser.error(str(error))
    if options.memories:
        results["time"] = timing = timed(options.memories, embed)
        took = f"{timing['seconds']:.1f} s ({timing['processor_seconds']:.1f} s of one processor)"
        counts = f"{timing['findings']:,} findings, {timing['suspected']:,} suspected"
        show(f"\n{timing['memories']:,} memories: {counts}, in {took}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), "utf-8")
    return 0


def _show_set(path: Path, embed: Embed, misses: bool, show: Callable[[str], object]) -> dict[str, Any]:
    pairs = judged(path, embed)
    rows = list(table(pairs))
    show(f"\n{path.stem}: {len(pairs)} pairs (wanted: precision {PRECISION}, recall {RECALL})")
    if path.stem in FIRST_LOOKS:
        show("at the first look: precision {:.3f}, recall {:.3f}".format(*FIRST_LOOKS[path.stem]))
    show(f"{'':24}{'pairs':>7}{'precision':>11}{'recall':>8}{'F1':>7}")
    for name, score in rows:
        show(f"{name:24}{score.pairs:7}{score.precision:11.3f}{score.recall:8.3f}{score.f1:7.3f}")
    wrong = [pair for pair in pairs if not pair.is_right]
    for pair in wrong if misses else ():
        doubt = "" if pair.suspected == "none" else f"(suspected {pair.suspected}) "
        show(f"{pair.id}: {pair.label}, found {pair.found} {doubt}{pair.reason}\n    {pair.first}\n    {pair.second}")
    figures = {name.strip(): asdict(s) | {"precision": s.precision, "recall": s.recall, "f1": s.f1} for name, s in rows}
    return {"scores": figures, "misses": [asdict(pair) for pair in wrong]}


if __name__ == "__main__":
    sys.exit(main())
