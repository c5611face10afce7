"""Sessions: appending at any length of the log, many at once, and reading."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import mnemon.sync
from benchmarks import workload
from benchmarks.embedded import LEAN, Field, Operation, url_of
from benchmarks.lean import Lean
from benchmarks.measuring import Contest, Result, Round, Target, timed, within
from benchmarks.options import Options

CROWD = 50
_BATCH = 500
_FACES = ("async", "blocking")
_CONCURRENT = Target("≥ 15 000/s or ≤ 2 ×", {"async": 2.0}, rate=15_000)


@contextmanager
def contests(options: Options) -> Iterator[list[Contest]]:
    """Everything about sessions, over one database that holds sessions of all lengths."""
    lengths = _lengths(options)
    plan = _plan(options, *lengths)
    with ExitStack() as stack:
        base = options.folder / "sessions.db"
        lean = Lean(options.folder / "sessions-lean.db")
        stack.callback(lean.close)
        build(base, plan)
        build_lean(lean, plan)
        field = Field(stack, base, lean)
        yield [
            *(field.contest(operation) for operation in operations(options, *lengths)),
            concurrent(field, options.scale(40, 4)),
        ]


def prepare(path: Path, options: Options) -> list[Operation]:
    """A database at `path`, and the operations that can be run on it."""
    short, medium, _ = _lengths(options)
    build(path, _plan(options, short, medium, medium))
    return operations(options, *_lengths(options))


def derived(results: list[Result]) -> list[Result]:
    """How much dearer an append to the longest log is than one to the shortest."""
    found = {result.id: result for result in results}
    short, long = found["append_short"], found["append_long"]
    figures = {**{name: long.figures[name] for name in _FACES}, "floor": short.figures["async"]}
    ratios = {name: long.figures[name].cost / short.figures[name].cost for name in _FACES}
    title = f"{long.title} beside {short.title.removeprefix('append at ')}"
    return [Result("append_growth", title, "each beside itself (shown: async)", figures, ratios, within(1.3))]


def _lengths(options: Options) -> tuple[int, int, int]:
    return options.scale(100, 20), options.scale(5_000, 100), options.scale(100_000, 400)


def _plan(options: Options, short: int, medium: int, long: int) -> dict[str, int]:
    """Sessions and their lengths. A short one would not stay short, so each round has its own."""
    fresh = {f"short-{number}": short for number in range(options.rounds + 1)}
    crowd = {f"crowd-{number}": 1 for number in range(CROWD)}
    return {**fresh, **crowd, "medium": medium, "long": long, "read": medium}


def operations(options: Options, *lengths: int) -> list[Operation]:
    """Everything that one caller does after another."""
    names = zip(("short", "medium", "long"), lengths, strict=True)
    calls = options.scale(100, 10)
    appends = [append(name, length, calls) for name, length in names]
    return [*appends, last_events(lengths[1], calls), whole_session(lengths[1], options.scale(3, 2))]


def append(name: str, length: int, calls: int) -> Operation:
    """To the session of this name, which has about `length` events."""
    return Operation(
        f"append_{name}", f"append at {length:,} events",
        lambda memory, *arguments: memory.sessions.append_event(*arguments), Lean.append,
        lambda number: [
            (f"short-{number}" if name == "short" else name, *turn(n))
            for n in range(number * calls, (number + 1) * calls)
        ],
        within(3, 2),
    )  # fmt: skip


def last_events(length: int, calls: int) -> Operation:
    return Operation(
        "last_events", f"last 20 of {length:,} events",
        lambda memory, session_id: memory.sessions.events(session_id, last=20),
        lambda lean, session_id: lean.last_events(session_id, 20),
        lambda number: [("read",)] * calls, within(3),
    )  # fmt: skip


def whole_session(length: int, calls: int) -> Operation:
    return Operation(
        "whole_session", f"whole session of {length:,}",
        lambda memory, session_id: memory.sessions.get_session(session_id), Lean.session,
        lambda number: [("read",)] * calls, within(2),
    )  # fmt: skip


def concurrent(field: Field, each: int) -> Contest:
    """Many tasks that append to sessions of their own at the same time."""
    recorded, tape = field.recorded_async()

    def replayed(number: int) -> Round:
        field.runner.run(append_all(recorded, number, each))
        return _spread(timed(field.play, [tuple(tape.take())]), CROWD * each)

    def grouped(number: int) -> Round:
        groups = [[(f"crowd-{c}", *turn(number * each + n)) for c in range(CROWD)] for n in range(each)]
        return _spread(timed(field.lean.append_group, [(group,) for group in groups]), CROWD * each)

    contestants = {
        "async": lambda number: field.runner.run(append_all(field.asynchronous, number, each)),
        "floor": grouped,
        "same statements": replayed,
    }
    return Contest("append_concurrent", f"{CROWD} tasks × {each} appends", contestants,
                   f"{LEAN}, {CROWD} to a commit", _CONCURRENT)  # fmt: skip


async def append_all(memory: mnemon.HybridMemoryService, number: int, count: int) -> Round:
    clock, each = time.perf_counter_ns, list[int]()

    async def append_own(session_id: str) -> None:
        for n in range(number * count, (number + 1) * count):
            start = clock()
            await memory.sessions.append_event(session_id, *turn(n))
            each.append(clock() - start)

    start, busy = clock(), time.process_time_ns()
    await asyncio.gather(*(append_own(f"crowd-{c}") for c in range(CROWD)))
    return Round(each, clock() - start, time.process_time_ns() - busy, together=True)


def turn(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    return workload.event(number), workload.delta(number)


def _spread(measured: Round, count: int) -> Round:
    """A round that was timed in larger pieces, as what each single operation needed."""
    share = count // len(measured.each)
    each = [time // share for time in measured.each for _ in range(share)]
    return replace(measured, each=each, together=True)


def build(path: Path, plan: Mapping[str, int]) -> None:
    with mnemon.sync.open(url_of(path)) as memory:
        fill(memory, plan)


def fill(memory: mnemon.sync.BlockingMemory, plan: Mapping[str, int]) -> None:
    for session_id, length in plan.items():
        memory.sessions.create_session(session_id, "bench", workload.user(session_id))
        for start in range(0, length, _BATCH):
            numbers = range(start, min(start + _BATCH, length))
            memory.sessions.append_events(session_id, [mnemon.EventDraft(*turn(n)) for n in numbers])


def build_lean(lean: Lean, plan: Mapping[str, int]) -> None:
    lean.connection.execute("BEGIN")
    for session_id, length in plan.items():
        lean.create_session(session_id, workload.user(session_id))
        for number in range(length):
            lean.write_event(session_id, *turn(number))
    lean.connection.execute("COMMIT")
