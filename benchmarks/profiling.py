"""Where the time of one operation goes, on the blocking face: by function, and by statement on the bare driver."""

import cProfile
import io
import pstats
import shutil
import sqlite3
import time
from collections import Counter
from pathlib import Path

import mnemon.sync
from benchmarks import memories, sessions
from benchmarks.embedded import Operation, url_of
from benchmarks.options import Options
from benchmarks.recording import Statement, Tape, replay

OPERATIONS = {
    "append": "append_medium",
    "last": "last_events",
    "session": "whole_session",
    "add": "add_small",
    "get": "get_small",
    "update": "update_small",
    "search": "search_small",
}
_ROUNDS = 20
_LINES = 30


def profile(name: str, options: Options) -> str:
    """Both tables, with what one call needs."""
    path = options.folder / f"profile-{name}.db"
    suite = sessions if name in ("append", "last", "session") else memories
    operation = next(o for o in suite.prepare(path, options) if o.id == OPERATIONS[name])
    paths = {use: Path(shutil.copyfile(path, path.with_suffix(f".{use}"))) for use in ("functions", "tape", "replay")}
    functions = _by_function(operation, paths["functions"])
    statements = _by_statement(_recorded(operation, paths["tape"]), paths["replay"])
    return f"{operation.title}, blocking\n\n{statements}\n{functions}"


def _by_function(operation: Operation, path: Path) -> str:
    """The functions in which most time is spent, without those that they call."""
    profiler = cProfile.Profile()
    with mnemon.sync.open(url_of(path)) as memory:
        for number in range(_ROUNDS):
            inputs = operation.inputs(number)
            profiler.enable()
            for arguments in inputs:
                operation.ours(memory, *arguments)
            profiler.disable()
    out = io.StringIO()
    pstats.Stats(profiler, stream=out).strip_dirs().sort_stats("tottime").print_stats(_LINES)
    return out.getvalue()


def _recorded(operation: Operation, path: Path) -> list[list[Statement]]:
    """What each call runs."""
    tape, calls = Tape(), list[list[Statement]]()
    with tape.on(), mnemon.sync.open(url_of(path), seal_interval=None, background=False) as memory:
        tape.take()
        for number in range(_ROUNDS):
            for arguments in operation.inputs(number):
                operation.ours(memory, *arguments)
                calls.append(tape.take())
    return calls


def _by_statement(calls: list[list[Statement]], path: Path) -> str:
    """The driver's own time, for one call."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    run, spent = replay(connection), Counter[str]()
    for call in calls:
        for statement in call:
            start = time.perf_counter_ns()
            run(statement)
            spent[" ".join(statement[1].split())] += time.perf_counter_ns() - start
    connection.close()
    rows = [f"{nanoseconds / len(calls) / 1000:8.1f} µs  {sql[:100]}" for sql, nanoseconds in spent.most_common()]
    return "\n".join([*rows, f"{spent.total() / len(calls) / 1000:8.1f} µs  together\n"])
