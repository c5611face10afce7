"""Recall and remember, end to end with the static embedder, beside the sum of what they cannot do without.

Recall: embed the question, search the bare index of vectors, search the words, read the rows that are shown. The
searches of the floor go as deep as those of `recall` do; `shallow floor` asks for no more than is shown. Remember: add
a memory that is not embedded, and embed its text. All files are copies of one, and the indexes are warm.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mnemon
import mnemon.sync
from benchmarks import planting, texts
from benchmarks.embedded import bound, url_of
from benchmarks.measuring import Contest, Contestant, Round, timed, timed_async, within
from benchmarks.options import Options
from benchmarks.progress import Bar
from mnemon.ports import Embedder, Vector
from mnemon.providers.loading import load
from mnemon.settings import Settings
from mnemon.sql import chunks
from mnemon.vectorindex import VectorIndex
from mnemon.words import analyse

K = 10
DEPTH = 100  # how many each channel of `recall` brings
_SIZES = (10_000, 100_000)
_QUICK_SIZES = (300, 1_000)
_FLOOR = "embed + bare vectors + words + rows"
_ADD = "add without embedding + embed"


@contextmanager
def contests(options: Options) -> Iterator[list[Contest]]:
    """In one namespace of a hundred and in all of them, in a small store and in a large one."""
    embedder = load("static", Settings())
    with ExitStack() as stack:
        found: list[Contest] = []
        for size in _QUICK_SIZES if options.quick else _SIZES:
            field = Field(stack, options.folder, texts.Writer().texts(size), embedder)
            calls = options.scale(10, 5)
            found += [field.recalling(calls, filtered=True), field.recalling(calls, filtered=False)]
            found.append(field.remembering(calls))
        yield found


class Field:
    """Both faces of Mnemon, with embeddings and without, and the parts that the floors are made of."""

    def __init__(self, stack: ExitStack, folder: Path, written: Sequence[str], embedder: Embedder) -> None:
        self._stack = stack
        self._texts = written
        self._embedder = embedder
        self._base = folder / f"recall-{len(written)}.db"
        vectors = embed(embedder, written)
        build(self._base, written, vectors, embedder)
        self._runner = stack.enter_context(asyncio.Runner())
        self._async, self._async_bare = self._open_async("async"), self._open_async("async-bare", embedder="none")
        self._blocking = self._open_blocking("blocking")
        self._blocking_bare = self._open_blocking("blocking-bare", embedder="none")
        self._parts = Parts(stack, self._copy("parts"), embedder, vectors)

    def recalling(self, calls: int, *, filtered: bool) -> Contest:
        size, parts = len(self._texts), self._parts
        scope = "one namespace of 100" if filtered else "everything"

        def inputs(number: int) -> list[tuple[str, str]]:
            return [self._question(number * calls + n, filtered=filtered) for n in range(calls)]

        def part(call: Callable[..., object]) -> Contestant:
            def contestant(number: int) -> Round:
                asked = inputs(number)
                parts.prepare(asked)
                return timed(call, asked)

            return contestant

        contestants: dict[str, Contestant] = {
            "async": lambda number: self._runner.run(timed_async(bound(_recall, self._async), inputs(number))),
            "blocking": lambda number: timed(bound(_recall, self._blocking), inputs(number)),
            "floor": part(parts.everything),
            "shallow floor": part(parts.everything_shallow),
            "embed floor": part(parts.embed),
            "vectors floor": part(parts.vectors),
            "words floor": part(parts.words),
            "rows floor": part(parts.rows),
        }
        name = f"recall_{size}_{'namespace' if filtered else 'all'}"
        return Contest(name, f"recall {K} of {size:,}, {scope}", contestants, _FLOOR, within(3))

    def remembering(self, calls: int) -> Contest:
        size = len(self._texts)

        def inputs(number: int) -> list[tuple[str, str, str]]:
            new = range(size + number * calls, size + (number + 1) * calls)
            return [
                (planting.namespace_of(n * 37), planting.key_of(n), self._texts[n * 7919 % size] + " again")
                for n in new
            ]

        def add(namespace: str, key: str, text: str) -> None:
            self._blocking_bare.memories.add_memory(namespace, key, text, "semantic", None)
            self._embedder.embed([text])

        async def add_async(namespace: str, key: str, text: str) -> None:
            await self._async_bare.memories.add_memory(namespace, key, text, "semantic", None)
            self._embedder.embed([text])

        contestants: dict[str, Contestant] = {
            "async": lambda number: self._runner.run(timed_async(bound(_remember, self._async), inputs(number))),
            "blocking": lambda number: timed(bound(_remember, self._blocking), inputs(number)),
            "floor": lambda number: timed(add, inputs(number)),
            "async floor": lambda number: self._runner.run(timed_async(add_async, inputs(number))),
        }
        return Contest(f"remember_{size}", f"remember one more than {size:,}", contestants, _ADD, within(2))

    def _question(self, number: int, *, filtered: bool) -> tuple[str, str]:
        place = number * 7919 % len(self._texts)
        return texts.question_about(self._texts[place], number), planting.namespace_of(place) if filtered else ""

    def _open_async(self, name: str, **settings: Any) -> mnemon.HybridMemoryService:
        memory = self._runner.run(_opened(url_of(self._copy(name)), **settings))
        self._stack.callback(lambda: self._runner.run(memory.close()))
        return memory

    def _open_blocking(self, name: str, **settings: Any) -> mnemon.sync.BlockingMemory:
        return self._stack.enter_context(mnemon.sync.open(url_of(self._copy(name)), **settings))

    def _copy(self, name: str) -> Path:
        return Path(shutil.copyfile(self._base, self._base.with_name(f"{self._base.stem}-{name}.db")))


@dataclass(frozen=True, slots=True)
class _Known:
    """What a part of the floor is given, so that it need not do the work of another."""

    vector: Vector
    ids: list[int]


class Parts:
    """The bare parts of a recall, each by itself and all of them one after the other."""

    def __init__(self, stack: ExitStack, path: Path, embedder: Embedder, vectors: Vector) -> None:
        self._embedder = embedder
        self._index = VectorIndex(vectors.shape[1])
        names = [planting.namespace_of(number) for number in range(len(vectors))]
        self._index.put(np.arange(len(vectors)) + 1, names, vectors)
        settings = Settings(url=url_of(path))
        self._ground = stack.enter_context(planting.ground(settings, "static", embedder.model))
        self._connection = sqlite3.connect(path)
        stack.callback(self._connection.close)
        self._known: dict[tuple[str, str], _Known] = {}

    def everything(self, question: str, prefix: str) -> None:
        self._everything(question, prefix, DEPTH)

    def everything_shallow(self, question: str, prefix: str) -> None:
        self._everything(question, prefix, K)

    def embed(self, question: str, prefix: str) -> Vector:
        return normalised(self._embedder.embed([question]))[0]

    def vectors(self, question: str, prefix: str) -> None:
        self._index.search(self._know(question, prefix).vector, [prefix], DEPTH)

    def words(self, question: str, prefix: str) -> None:
        self._ground.search_words(analyse(question), [prefix], DEPTH)

    def rows(self, question: str, prefix: str) -> None:
        self._read(self._know(question, prefix).ids)

    def prepare(self, asked: Sequence[tuple[str, str]]) -> None:
        """Learn what the parts that come later are given, before the clock runs."""
        for question, prefix in asked:
            self._know(question, prefix)

    def _everything(self, question: str, prefix: str, depth: int) -> None:
        ids, _ = self._index.search(self.embed(question, prefix), [prefix], depth)
        self._ground.search_words(analyse(question), [prefix], depth)
        self._read(ids[:K].tolist())

    def _know(self, question: str, prefix: str) -> _Known:
        known = self._known.get((question, prefix))
        if known is None:
            vector = self.embed(question, prefix)
            ids, _ = self._index.search(vector, [prefix], K)
            known = self._known[question, prefix] = _Known(vector, ids.tolist())
        return known

    def _read(self, ids: Sequence[int]) -> list[Any]:
        marks = ", ".join("?" * len(ids))
        return self._connection.execute(f"SELECT * FROM memory_entries WHERE id IN ({marks})", ids).fetchall()


def embed(embedder: Embedder, written: Sequence[str]) -> Vector:
    """Vectors of length 1."""
    return np.concatenate([normalised(embedder.embed(some)) for some in chunks(written, 1_000)])


def normalised(vectors: Vector) -> Vector:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)


def build(path: Path, written: Sequence[str], vectors: Vector, embedder: Embedder, provider: str = "static") -> None:
    """A database of these memories, with nothing left to do in the background."""
    settings = Settings(url=url_of(path))
    with planting.ground(settings, provider, embedder.model) as ground, Bar("planting") as bar:
        ground.plant(written, vectors, bar)
    chosen: Any = provider if provider == "static" else embedder
    with mnemon.sync.open(settings.url, embedder=chosen) as memory:
        memory.settled()


def _recall(memory: Any, question: str, prefix: str) -> Any:
    return memory.recall(question, namespaces=[prefix], k=K)


def _remember(memory: Any, namespace: str, key: str, text: str) -> Any:
    return memory.remember(text, namespace=namespace, key=key)


async def _opened(url: str, **settings: Any) -> mnemon.HybridMemoryService:
    return await mnemon.open(url, **settings)
