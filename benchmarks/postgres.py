"""PostgreSQL: the same calls, beside psycopg running the very same statements; a server is started for it.

Each face is compared with the driver in its own colour: the asynchronous one with `AsyncConnection`.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.types.numeric import Int8Dumper

import mnemon
import mnemon.sync
from benchmarks import feed, memories, sessions
from benchmarks.embedded import Operation, bound
from benchmarks.measuring import Contest, Contestant, Round, Target, timed, timed_async, within
from benchmarks.options import Options
from benchmarks.recording import Statement
from tests import servers

POOL = 10
_SAME = "psycopg, same statements"
_LISTEN = "a bare NOTIFY"
_CONCURRENT = Target("≤ 2 ×", {"async": 2.0})


@contextmanager
def contests(options: Options) -> Iterator[list[Contest]]:
    """Sessions, memories and the feed, each contestant in a schema of its own."""
    length, count = options.scale(1_000, 50), options.scale(1_000, 60)
    with ExitStack() as stack:
        url = stack.enter_context(servers.postgres())
        field = Field(stack, url, length, count)
        calls, crowd = options.scale(25, 5), options.scale(5, 1)
        followers = stack.enter_context(field.followers(options.scale(10, 5)))
        yield [
            *(field.contest(operation) for operation in operations(length, count, calls)),
            field.concurrent(crowd),
            Contest("postgres_feed", "PostgreSQL: commit → follower, other process",
                    followers.across(_notified(url, options.scale(10, 5))), _LISTEN, feed.TARGET),
        ]  # fmt: skip


def operations(length: int, count: int, calls: int) -> Iterator[Operation]:
    """Those of SQLite that are measured here too."""
    wanted = [sessions.append("medium", length, calls), sessions.last_events(length, calls)]
    wanted += memories.operations("small", count, calls)
    for operation in wanted:
        name = operation.id.removesuffix("_medium").removesuffix("_small")
        target = operation.target and within(2)
        yield replace(operation, id=f"postgres_{name}", title=f"PostgreSQL: {operation.title}", target=target)


class Field:
    """Both faces of Mnemon, and the driver in both colours, which runs what a third Mnemon ran."""

    def __init__(self, stack: ExitStack, url: str, length: int, count: int) -> None:
        self._stack = stack
        self._url = url
        crowd = {f"crowd-{n}": 1 for n in range(sessions.CROWD)}
        for schema in ("async", "recorded_crowd", "replayed_crowd"):
            with self._open(schema) as memory:
                sessions.fill(memory, crowd)
        for schema in ("async", "blocking", "recorded", "replayed", "replayed_async"):
            with self._open(schema) as memory:
                sessions.fill(memory, {"medium": length, "read": length})
                memories.fill(memory, count)
        self._runner = stack.enter_context(asyncio.Runner())
        self._blocking = stack.enter_context(self._open("blocking"))
        self._recorded = stack.enter_context(self._open("recorded", seal_interval=None, background=False))
        self._recorded_crowd = stack.enter_context(self._open("recorded_crowd", seal_interval=None, background=False))
        self._async = self._runner.run(self._opened("async"))
        stack.callback(lambda: self._runner.run(self._async.close()))
        self._raw = stack.enter_context(psycopg.connect(self._conninfo("replayed"), autocommit=True))
        self._raw.adapters.register_dumper(int, Int8Dumper)  # one type for all sizes, so that it is prepared once
        self._raw_async = self._connect("replayed_async")
        self._raw_crowd = [self._connect("replayed_crowd") for _ in range(POOL)]

    def contest(self, operation: Operation) -> Contest:
        ours, inputs, run = operation.ours, operation.inputs, self._runner.run
        scripts = _Scripts(self._recorded, operation)
        contestants: dict[str, Contestant] = {
            "async": lambda number: run(timed_async(bound(ours, self._async), inputs(number))),
            "blocking": lambda number: timed(bound(ours, self._blocking), inputs(number)),
            "floor": lambda number: timed(self._play, scripts.of(number)),
            "async floor": lambda number: run(timed_async(bound(_play_async, self._raw_async), scripts.of(number))),
        }
        return Contest(operation.id, operation.title, contestants, _SAME, operation.target)

    def concurrent(self, each: int) -> Contest:
        """Many tasks that append at once; the floor has as many connections as Mnemon's pool."""
        title = f"PostgreSQL: {sessions.CROWD} tasks × {each} appends"
        contestants: dict[str, Contestant] = {
            "async": lambda number: self._runner.run(sessions.append_all(self._async, number, each)),
            "floor": lambda number: self._replay_crowd(number, each),
        }
        return Contest("postgres_append_concurrent", title, contestants, f"{_SAME}, {POOL} connections", _CONCURRENT)

    def followers(self, count: int) -> feed.Followers:
        settings = {name: {"postgres_schema": f"feed_{name}"} for name in ("async", "blocking")}
        return feed.Followers(dict.fromkeys(settings, self._url), count, settings)

    def _replay_crowd(self, number: int, each: int) -> Round:
        lanes: list[list[tuple[Statement, ...]]] = [[] for _ in range(POOL)]
        for n in range(number * each, (number + 1) * each):
            for c in range(sessions.CROWD):
                with _recording() as statements:
                    self._recorded_crowd.sessions.append_event(f"crowd-{c}", *sessions.turn(n))
                lanes[c % POOL].append(tuple(statements))
        return self._runner.run(_play_lanes(self._raw_crowd, lanes))

    def _play(self, *statements: Statement) -> None:
        for method, query, params in statements:
            cursor = self._raw.cursor()
            getattr(cursor, method)(query, params)
            if cursor.description:
                cursor.fetchall()

    def _open(self, schema: str, **settings: Any) -> mnemon.sync.BlockingMemory:
        return mnemon.sync.open(self._url, postgres_schema=f"bench_{schema}", **settings)

    async def _opened(self, schema: str) -> mnemon.HybridMemoryService:
        return await mnemon.open(self._url, postgres_schema=f"bench_{schema}", pool_size=POOL)

    def _connect(self, schema: str) -> psycopg.AsyncConnection[Any]:
        connecting = psycopg.AsyncConnection.connect(self._conninfo(schema), autocommit=True)
        connection = self._runner.run(connecting)
        connection.adapters.register_dumper(int, Int8Dumper)
        self._stack.callback(lambda: self._runner.run(connection.close()))
        return connection

    def _conninfo(self, schema: str) -> str:
        return make_conninfo(self._url, options=f"-c search_path=bench_{schema},public")


class _Scripts:
    """What Mnemon runs in each call of a round; recorded once for both colours."""

    def __init__(self, memory: mnemon.sync.BlockingMemory, operation: Operation) -> None:
        self._memory = memory
        self._operation = operation
        self._number = -1
        self._scripts: list[tuple[Statement, ...]] = []

    def of(self, number: int) -> list[tuple[Statement, ...]]:
        if number != self._number:
            self._number = number
            self._scripts = [self._record(arguments) for arguments in self._operation.inputs(number)]
        return self._scripts

    def _record(self, arguments: tuple[Any, ...]) -> tuple[Statement, ...]:
        with _recording() as statements:
            self._operation.ours(self._memory, *arguments)
        return tuple(statements)


@contextmanager
def _recording() -> Iterator[list[Statement]]:
    """The statements that this thread runs meanwhile; others are upkeep."""
    statements: list[Statement] = []
    here = threading.get_ident()
    with ExitStack() as stack:
        for method in ("execute", "executemany"):
            original = getattr(psycopg.Cursor, method)

            def noting(
                self: Any, query: Any, params: Any = None, *rest: Any, m: str = method, o: Any = original, **more: Any
            ) -> Any:
                if threading.get_ident() == here:
                    statements.append((m, query, params))
                return o(self, query, params, *rest, **more)

            stack.enter_context(patch.object(psycopg.Cursor, method, noting))
        yield statements


async def _play_async(connection: psycopg.AsyncConnection[Any], *statements: Statement) -> None:
    for method, query, params in statements:
        cursor = connection.cursor()
        await getattr(cursor, method)(query, params)
        if cursor.description:
            await cursor.fetchall()


async def _play_lanes(
    connections: list[psycopg.AsyncConnection[Any]], lanes: list[list[tuple[Statement, ...]]]
) -> Round:
    start, busy = time.perf_counter_ns(), time.process_time_ns()
    played = await asyncio.gather(
        *(timed_async(bound(_play_async, c), lane) for c, lane in zip(connections, lanes, strict=True))
    )
    each = [took for lane in played for took in lane.each]
    return Round(each, time.perf_counter_ns() - start, time.process_time_ns() - busy, together=True)


def _notified(url: str, count: int) -> Contestant:
    """A listener here, and a process that notifies."""
    script = (
        "import sys, time, psycopg; from benchmarks.feed import pause\n"
        "connection = psycopg.connect(sys.argv[1], autocommit=True)\n"
        f"for n in range({count}):\n"
        "    time.sleep(pause(n))\n"
        "    connection.execute(\"SELECT pg_notify('bench', %s)\", [str(time.monotonic_ns())])"
    )

    def run(_: int) -> Round:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("LISTEN bench")
            with subprocess.Popen([sys.executable, "-c", script, url]):
                notes = connection.notifies(timeout=60, stop_after=count)
                delays = [time.monotonic_ns() - int(note.payload) for note in notes]
        return Round(delays, sum(delays))

    return run
