"""The results as a table to read and as JSON to keep."""

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

from benchmarks.measuring import Figures, Result

_HEADS = (
    "measure", "async", "blocking", "floor", "same SQL",
    "async ×", "blocking ×", "same ×", "over same SQL", "target", "met",
)  # fmt: skip
_DETAILS = ("measure", "", "p50", "p99", "ops/s", "processor")
_NONE = "–"
_LEGEND = """\
Times are for one operation: the mean of the middle half of each round (of a whole round, where many run at once), and
the median of the rounds. A multiple is that time ÷ the floor's, and decides whether the target is met. `same SQL` is
the raw driver running Mnemon's own statements on Mnemon's own tables, and `over same SQL` is what Python adds to that,
async and blocking. The floors:"""


def machine(folder: Path) -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "mnemon": version("mnemon"),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "folder": str(folder),
    }


def write_json(path: Path, facts: dict[str, Any], results: Sequence[Result]) -> None:
    document = {**facts, "measures": [result.as_json() for result in results]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")


def show(results: Sequence[Result], out: TextIO = sys.stdout) -> None:
    """The main table, what its columns mean, and the details."""
    print(table(_HEADS, [_row(result) for result in results]), _LEGEND, sep="\n\n", file=out)
    for floor in dict.fromkeys(result.floor for result in results):
        print(f"  {floor}: {', '.join(r.id for r in results if r.floor == floor)}", file=out)
    print("", table(_DETAILS, [row for result in results for row in _detail(result)]), sep="\n", file=out)


def _row(result: Result) -> list[str]:
    met = {True: "yes", False: "NO", None: ""}[result.met]
    times = [_cost(result.figures.get(name)) for name in ("async", "blocking", "floor", "same statements")]
    ratios = [_ratio(result.ratios.get(name)) for name in ("async", "blocking", "same statements")]
    return [result.title, *times, *ratios, _over_same(result), result.target.text if result.target else "", met]


def _over_same(result: Result) -> str:
    same = result.ratios.get("same statements")
    ours = [result.ratios.get(name) for name in ("async", "blocking")]
    return " / ".join(_ratio(ratio and ratio / same) for ratio in ours) if same else _NONE


def _detail(result: Result) -> list[list[str]]:
    rows = [
        [
            name,
            duration(f.percentile(0.5)),
            duration(f.percentile(0.99)),
            _rate(f.rate),
            duration(f.processor) if f.processor else _NONE,
        ]
        for name, f in result.figures.items()
    ]
    return [[result.title if n == 0 else "", *row] for n, row in enumerate(rows)]


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds / size < 100 else f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e6:.2f} µs"


def _cost(figures: Figures | None) -> str:
    return duration(figures.cost) if figures else _NONE


def _ratio(ratio: float | None) -> str:
    return f"{ratio:.2f}" if ratio else _NONE


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[n]) for row in (heads, *rows)) for n in range(len(heads))]
    lines = [heads, ["─" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if n == 0 else cell.rjust(w) for n, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
