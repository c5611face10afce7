"""The contestants on SQLite, each on a copy of its own of the same database."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mnemon
import mnemon.sync
from benchmarks.lean import Lean
from benchmarks.measuring import Contest, Contestant, Round, Target, timed, timed_async
from benchmarks.recording import Statement, Tape, replay

LEAN = "lean tables, raw sqlite3"


@dataclass(frozen=True, slots=True)
class Operation:
    """One call, as each contestant makes it. `ours` gets either face, `floor` the lean tables."""

    id: str
    title: str
    ours: Callable[..., Any]
    floor: Callable[..., Any]
    inputs: Callable[[int], list[tuple[Any, ...]]]
    """The arguments of every call of the round with this number."""
    target: Target | None = None


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


class Field:
    """Both faces of Mnemon, the lean floor, and the bare driver that runs Mnemon's statements again."""

    def __init__(self, stack: ExitStack, base: Path, lean: Lean) -> None:
        self._stack = stack
        self._base = base
        self.lean = lean
        self.runner = stack.enter_context(asyncio.Runner())
        self.asynchronous = self._open_async("async")
        self.blocking = stack.enter_context(mnemon.sync.open(self._copy("blocking")))
        self._tape = Tape()
        with self._tape.on():
            self._recorded = stack.enter_context(
                mnemon.sync.open(self._copy("recorded"), seal_interval=None, background=False)
            )
        self.play = replay(self._driver())

    def contest(self, operation: Operation) -> Contest:
        contestants: dict[str, Contestant] = {
            "async": lambda number: self.runner.run(
                timed_async(bound(operation.ours, self.asynchronous), operation.inputs(number))
            ),
            "blocking": lambda number: timed(bound(operation.ours, self.blocking), operation.inputs(number)),
            "floor": lambda number: timed(bound(operation.floor, self.lean), operation.inputs(number)),
            "same statements": lambda number: self._replayed(operation, number),
        }
        return Contest(operation.id, operation.title, contestants, LEAN, operation.target)

    def recorded_async(self) -> tuple[mnemon.HybridMemoryService, Tape]:
        """An asynchronous memory on one more copy, and the tape that it writes."""
        tape = Tape()
        with tape.on():
            memory = self._open_async("recorded-async", seal_interval=None, background=False)
        tape.take()
        return memory, tape

    def _replayed(self, operation: Operation, number: int) -> Round:
        return timed(self.play, [self._script(operation, arguments) for arguments in operation.inputs(number)])

    def _script(self, operation: Operation, arguments: tuple[Any, ...]) -> tuple[Statement, ...]:
        with self._tape.on():  # reading may open another connection
            operation.ours(self._recorded, *arguments)
        return tuple(self._tape.take())

    def _driver(self) -> sqlite3.Connection:
        """A connection with the settings that Mnemon gives its own."""
        connection = sqlite3.connect(self._copy_path("replayed"), isolation_level=None, cached_statements=512)
        self._stack.callback(connection.close)
        for _, sql, _ in self._tape.statements:
            if sql.startswith("PRAGMA"):
                connection.execute(sql).fetchall()
        self._tape.take()
        return connection

    def _open_async(self, name: str, **settings: Any) -> mnemon.HybridMemoryService:
        memory = self.runner.run(_opened(self._copy(name), **settings))
        self._stack.callback(lambda: self.runner.run(memory.close()))
        return memory

    def _copy(self, name: str) -> str:
        return url_of(self._copy_path(name))

    def _copy_path(self, name: str) -> Path:
        return Path(shutil.copyfile(self._base, self._base.with_name(f"{self._base.stem}-{name}.db")))


def bound(call: Callable[..., Any], subject: object) -> Callable[..., Any]:
    """The call with its first argument given."""
    return lambda *arguments: call(subject, *arguments)


async def _opened(url: str, **settings: Any) -> mnemon.HybridMemoryService:
    return await mnemon.open(url, **settings)
