"""Starting: importing the package and opening a file that exists, in fresh processes and again in this one."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mnemon
import mnemon.sync
from benchmarks import sessions
from benchmarks.embedded import url_of
from benchmarks.measuring import Contest, Contestant, Round, below, timed
from benchmarks.options import Options

_IMPORT = "import time; start = time.perf_counter_ns(); import {}; print(time.perf_counter_ns() - start)"
_OPEN = {
    "async": """
        import asyncio, mnemon, sys, time
        async def main():
            start = time.perf_counter_ns()
            async with mnemon.open(f"sqlite:///{sys.argv[1]}"):
                print(time.perf_counter_ns() - start)
        asyncio.run(main())""",
    "blocking": """
        import mnemon.sync, sys, time
        start = time.perf_counter_ns()
        with mnemon.sync.open(f"sqlite:///{sys.argv[1]}"):
            print(time.perf_counter_ns() - start)""",
    "floor": """
        import sqlite3, sys, time
        start = time.perf_counter_ns()
        connection = sqlite3.connect(sys.argv[1])
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
        print(time.perf_counter_ns() - start)""",
}


@contextmanager
def contests(options: Options) -> Iterator[list[Contest]]:
    """Importing is compared with the three modules that everything here needs."""
    path = options.folder / "startup.db"
    sessions.build(path, {"s1": options.scale(5_000, 50)})
    modules = {"async": "mnemon", "blocking": "mnemon.sync", "floor": "asyncio, sqlite3, orjson"}
    imports = {name: _fresh(_IMPORT.format(module)) for name, module in modules.items()}
    first = {name: _fresh(_unindented(code), path) for name, code in _OPEN.items()}
    opening = "sqlite3.connect, with the schema read"
    yield [
        Contest("import", "import mnemon", imports, "import asyncio, sqlite3, orjson", below(0.15)),
        Contest("open_first", "open a file, first in a process", first, opening, below(0.02)),
        Contest("open_again", "open a file, once more", _again(path, options.scale(10, 3)), opening, below(0.02)),
    ]


def _fresh(code: str, *arguments: Path) -> Contestant:
    """Runs the code in a process of its own, which prints the nanoseconds that matter."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run(_: int) -> Round:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        return Round([int(done.stdout)], int(done.stdout))

    return run


def _again(path: Path, times: int) -> dict[str, Contestant]:
    return {
        "async": lambda _: asyncio.run(_open_async(url_of(path), times)),
        "blocking": lambda _: _open_blocking(url_of(path), times),
        "floor": lambda _: timed(_open_raw, [(path,)] * times),
    }


async def _open_async(url: str, times: int) -> Round:
    each = list[int]()
    for _ in range(times):
        start = time.perf_counter_ns()
        async with mnemon.open(url):
            each.append(time.perf_counter_ns() - start)
    return Round(each, sum(each))


def _open_blocking(url: str, times: int) -> Round:
    each = list[int]()
    for _ in range(times):
        start = time.perf_counter_ns()
        with mnemon.sync.open(url):
            each.append(time.perf_counter_ns() - start)
    return Round(each, sum(each))


def _open_raw(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
    connection.close()


def _unindented(code: str) -> str:
    return code.replace("\n        ", "\n").strip()
