"""Memories: adding, getting, changing and searching, in a small store and in a large one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import mnemon.sync
from benchmarks import workload
from benchmarks.embedded import Field, Operation, url_of
from benchmarks.lean import Lean
from benchmarks.measuring import Contest, below, within
from benchmarks.options import Options

LIMIT = 50


@contextmanager
def contests(options: Options) -> Iterator[list[Contest]]:
    """The same operations over a small and over a large database, in turn."""
    sizes = {"small": options.scale(1_000, 200), "large": options.scale(100_000, 1_000)}
    with ExitStack() as stack:
        found: list[Contest] = []
        for name, count in sizes.items():
            base = options.folder / f"memories-{name}.db"
            lean = Lean(options.folder / f"memories-{name}-lean.db")
            stack.callback(lean.close)
            build(base, count)
            build_lean(lean, count)
            field = Field(stack, base, lean)
            found += [field.contest(operation) for operation in operations(name, count, options.scale(100, 10))]
        yield found


def prepare(path: Path, options: Options) -> list[Operation]:
    """A small database at `path`, and the operations that can be run on it."""
    count = options.scale(1_000, 200)
    build(path, count)
    return list(operations("small", count, options.scale(100, 10)))


def operations(size: str, count: int, calls: int) -> Iterator[Operation]:
    """What is measured in a store of `count` memories."""
    yield Operation(
        f"add_{size}", f"add a memory to {count:,}", _add, Lean.add,
        lambda number: [_new(count, number * calls + n) for n in range(calls)], within(3),
    )  # fmt: skip
    yield Operation(
        f"get_{size}", f"get one of {count:,}",
        lambda memory, *place: memory.memories.get_memory(*place), Lean.get,
        lambda number: [_place(workload.scattered(number * calls + n, count)) for n in range(calls)], within(3),
    )  # fmt: skip
    yield Operation(
        f"update_{size}", f"update one of {count:,}",
        lambda memory, *change: memory.memories.update_memory(*change, "bench"), Lean.update,
        lambda number: [
            (*_place(workload.scattered(number * calls + n, count)), workload.value(n)) for n in range(calls)
        ],
    )  # fmt: skip
    yield Operation(
        f"search_{size}", f"{LIMIT} of a namespace, of {count:,}", _search, Lean.search,
        lambda number: [
            (workload.namespace(workload.scattered(number * calls + n, count)), LIMIT) for n in range(calls // 5)
        ],
        within(3),
    )  # fmt: skip
    if size == "large":
        yield Operation(
            "search_all", f"{LIMIT} below user:, of {count:,}", _search, Lean.search_below,
            lambda number: [("user", LIMIT)] * (calls // 5), below(0.003),
        )  # fmt: skip


def _add(memory: Any, namespace: str, key: str, value: Any, metadata: Any) -> Any:
    return memory.memories.add_memory(namespace, key, value, "semantic", "bench", metadata=metadata)


def _search(memory: Any, prefix: str, limit: int) -> Any:
    return memory.memories.search_memories(prefix, limit=limit)


def _place(number: int) -> tuple[str, str]:
    return workload.namespace(number), workload.key(number)


def _new(count: int, number: int) -> tuple[Any, ...]:
    """A memory that is not there yet, somewhere among the others."""
    place = workload.namespace(workload.scattered(number, count)), workload.key(count + number)
    return (*place, workload.value(number), workload.metadata(number))


def build(path: Path, count: int) -> None:
    with mnemon.sync.open(url_of(path)) as memory:
        fill(memory, count)


def fill(memory: mnemon.sync.BlockingMemory, count: int) -> None:
    for number in range(count):
        _add(memory, *_place(number), workload.value(number), workload.metadata(number))


def build_lean(lean: Lean, count: int) -> None:
    lean.connection.execute("BEGIN")
    for number in range(count):
        lean.write_memory(*_place(number), workload.value(number), workload.metadata(number))
    lean.connection.execute("COMMIT")
