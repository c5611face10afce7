"""`python -m benchmarks`: measure, print, keep."""

import argparse
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import feed, measuring, memories, postgres, profiling, recall, report, sessions, startup
from benchmarks.measuring import Result
from benchmarks.options import Options
from benchmarks.progress import Bar

SUITES = {
    "sessions": sessions, "memories": memories, "recall": recall, "feed": feed, "startup": startup,
    "postgres": postgres,
}  # fmt: skip
MEMORY_FOLDER = Path("/dev/shm")
ENOUGH_SPACE = 3 * 2**30
DESCRIPTION = """\
Measure Mnemon beside the raw driver, in the same run. Both take turns in small rounds, so that a noisy
machine troubles them alike; what counts is the multiple, not the time. Targets are printed, not enforced.
"""
SUITES_HELP = """\
suites (all of them, if none is named):
  sessions   append to logs of three lengths, many at once, read the last events and whole sessions
  memories   add, get, update and search in a small store and in a large one
  recall     recall and remember with the static embedder, beside the sum of their parts
  feed       from an append to a follower, in this process and in another
  startup    import the package, open a file
  postgres   the same on PostgreSQL, which is started for it, beside psycopg with the same statements

programs of their own (each has --help):
  python -m benchmarks.vectors   the nearest vectors, by every driver, beside numpy; text search
  python -m benchmarks.reembed   change the embedder under a writer and a reader
  python -m benchmarks.artifacts files saved and read, beside a plain copy and its SHA-256
  python -m benchmarks.documents index a thousand documents, change one in a hundred, index them again
  python -m benchmarks.locomo    how much of what a question needs is recalled

  profile    where the time of one operation goes: python -m benchmarks profile append
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 0, or 2 if it was not understood."""
    parser = _parser()
    given = parser.parse_args(arguments)
    unknown = set(given.what) - (SUITES.keys() | profiling.OPERATIONS.keys() | {"profile"})
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="mnemon-bench-", dir=given.folder) as folder:
        options = Options(Path(folder), given.repeat or (2 if given.quick else 20), given.quick)
        if "profile" in given.what:
            return _profile(given.what, options)
        _measure([name for name in given.what or SUITES if name in SUITES], options, given.json)
    return 0


def _measure(names: Sequence[str], options: Options, path: Path) -> None:
    facts = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(options.folder.parent),
        "quick": options.quick,
        "rounds": options.rounds,
    }
    results = [result for name in names for result in _run(name, options)]
    report.write_json(path, facts, results)
    print(" · ".join(f"{name} {value}" for name, value in facts["machine"].items()), end="\n\n")
    report.show(results)
    print(f"\nWritten to {path}")


def _run(name: str, options: Options) -> list[Result]:
    suite = SUITES[name]
    with Bar(name) as bar, suite.contests(options) as contests:
        gc.collect()
        gc.freeze()  # what was prepared is not to be looked through again and again
        bar.begin(measuring.turns(contests, options.rounds))
        results = measuring.run(contests, options.rounds, bar.tick)
    gc.unfreeze()
    return results + (suite.derived(results) if hasattr(suite, "derived") else [])


def _profile(what: Sequence[str], options: Options) -> int:
    chosen = [name for name in what if name in profiling.OPERATIONS] or ["append"]
    for name in chosen:
        print(profiling.profile(name, options))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description=DESCRIPTION,
        epilog=f"{SUITES_HELP}             (of {', '.join(profiling.OPERATIONS)})",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("what", nargs="*", metavar="suite", help="what to measure; see below")
    add("--quick", action="store_true", help="small sizes and two rounds: to see that it works, not how fast it is")
    add("--repeat", type=_positive, metavar="N", help="rounds of each measure (20)")
    add("--folder", type=Path, metavar="DIR", default=_quick_folder(), help="where the databases lie (%(default)s)")
    add("--json", type=Path, metavar="PATH", default=Path(tempfile.gettempdir(), "mnemon-bench.json"),
        help="where the results are written (%(default)s)")  # fmt: skip
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _quick_folder() -> Path:
    """A file system in memory if there is one with room, so that no disk is measured."""
    roomy = (
        MEMORY_FOLDER.is_dir()
        and os.access(MEMORY_FOLDER, os.W_OK)
        and shutil.disk_usage(MEMORY_FOLDER).free > ENOUGH_SPACE
    )
    return MEMORY_FOLDER if roomy else Path(tempfile.gettempdir())


if __name__ == "__main__":
    sys.exit(main())
