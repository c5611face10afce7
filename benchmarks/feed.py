"""The change feed: how long after an append has returned, and so was committed, a follower has the change.

`python -m benchmarks.feed URL COUNT SETTINGS` is the other process: it appends, and prints when each append returned.
"""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager
from typing import Any, cast

import mnemon
import mnemon.sync
from benchmarks import workload
from benchmarks.embedded import url_of
from benchmarks.measuring import Contest, Contestant, Round, below
from benchmarks.options import Options

SESSION = "feed"
TARGET = below(0.020)
_PATIENCE = 60


@contextmanager
def contests(options: Options) -> Iterator[list[Contest]]:
    """A follower in the process that writes, and one in another process, on SQLite."""
    count = options.scale(10, 5)
    urls = {name: url_of(options.folder / f"feed-{name}.db") for name in ("async", "blocking")}
    with Followers(urls, count) as followers:
        yield [
            Contest("feed_in_process", "commit → follower, same process", followers.in_process(),
                    "an asyncio.Queue", TARGET),
            Contest("feed_across", "commit → follower, other process", followers.across(_lines_of_child(count)),
                    "a line through a pipe", TARGET),
        ]  # fmt: skip


class Followers:
    """Both faces of Mnemon, each with a session to follow."""

    def __init__(self, urls: dict[str, str], count: int, settings: Mapping[str, dict[str, Any]] | None = None) -> None:
        self._urls = urls
        self._count = count
        self._settings = settings or {"async": {}, "blocking": {}}
        self._stack = ExitStack()

    def __enter__(self) -> "Followers":
        self._runner = self._stack.enter_context(asyncio.Runner())
        self._blocking = self._stack.enter_context(
            mnemon.sync.open(self._urls["blocking"], **self._settings["blocking"])
        )
        self._blocking.sessions.create_session(SESSION, "bench", "alice")
        self._async = self._runner.run(_opened(self._urls["async"], **self._settings["async"]))
        self._stack.callback(lambda: self._runner.run(self._async.close()))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def in_process(self) -> dict[str, Contestant]:
        return {
            "async": lambda _: self._runner.run(
                follow_async(self._async, self._count, lambda: append_async(self._async, self._count))
            ),
            "blocking": lambda _: follow_blocking(
                self._blocking, self._count, lambda: append_blocking(self._blocking, self._count)
            ),
            "floor": lambda _: self._runner.run(_through_queue(self._count)),
        }

    def across(self, floor: Contestant) -> dict[str, Contestant]:
        return {
            "async": lambda _: self._runner.run(
                follow_async(self._async, self._count, lambda: asyncio.to_thread(self._write, "async"))
            ),
            "blocking": lambda _: follow_blocking(self._blocking, self._count, lambda: self._write("blocking")),
            "floor": floor,
        }

    def _write(self, name: str) -> dict[str, int]:
        given = [self._urls[name], str(self._count), json.dumps(self._settings[name])]
        command = [sys.executable, "-m", "benchmarks.feed", *given]
        done = subprocess.run(command, check=True, timeout=_PATIENCE, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout)


async def follow_async(
    memory: mnemon.HybridMemoryService, count: int, write: Callable[[], Awaitable[dict[str, int]]]
) -> Round:
    """Follow until `count` events came, while `write` appends them and notes when each was there."""
    position, seen = await memory.position(), dict[str, int]()

    async def follow() -> None:
        following = cast("AsyncGenerator[mnemon.Change]", memory.changes(position, follow=True, entity="event"))
        async with aclosing(following) as changes:
            async for change in changes:
                seen[change.entity_id] = time.monotonic_ns()
                if len(seen) == count:
                    return

    following = asyncio.create_task(follow())
    written = await write()
    await asyncio.wait_for(following, _PATIENCE)
    return _delays(written, seen)


def follow_blocking(memory: mnemon.sync.BlockingMemory, count: int, write: Callable[[], dict[str, int]]) -> Round:
    """The same on a thread."""
    position, seen = memory.position(), dict[str, int]()

    def follow() -> None:
        for change in memory.changes(position, follow=True, entity="event"):
            seen[change.entity_id] = time.monotonic_ns()
            if len(seen) == count:
                return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    written = write()
    thread.join(_PATIENCE)
    if thread.is_alive():
        raise TimeoutError(f"of {count} changes the follower saw {len(seen)}")
    return _delays(written, seen)


def _delays(written: dict[str, int], seen: dict[str, int]) -> Round:
    """A follower may even be quicker than the return of the call; that is no time at all."""
    each = [max(seen[event_id] - moment, 1) for event_id, moment in written.items()]
    return Round(each, sum(each))


async def append_async(memory: mnemon.HybridMemoryService, count: int) -> dict[str, int]:
    written: dict[str, int] = {}
    for number in range(count):
        await asyncio.sleep(pause(number))
        event = await memory.sessions.append_event(SESSION, workload.event(number))
        written[event.id] = time.monotonic_ns()
    return written


def append_blocking(memory: mnemon.sync.BlockingMemory, count: int) -> dict[str, int]:
    written: dict[str, int] = {}
    for number in range(count):
        time.sleep(pause(number))
        event = memory.sessions.append_event(SESSION, workload.event(number))
        written[event.id] = time.monotonic_ns()
    return written


def pause(number: int) -> float:
    """Uneven, so that no rhythm of the follower is met by chance."""
    return 0.005 + workload.scattered(number + 1, 1000) / 100_000


async def _through_queue(count: int) -> Round:
    queue, delays = asyncio.Queue[int](), list[int]()

    async def fill() -> None:
        for number in range(count):
            await asyncio.sleep(pause(number))
            queue.put_nowait(time.monotonic_ns())

    filling = asyncio.create_task(fill())
    for _ in range(count):
        sent = await queue.get()
        delays.append(time.monotonic_ns() - sent)
    await filling
    return Round(delays, sum(delays))


def _lines_of_child(count: int) -> Contestant:
    script = (
        "import time; from benchmarks.feed import pause\n"
        f"for n in range({count}): time.sleep(pause(n)); print(time.monotonic_ns(), flush=True)"
    )

    def run(_: int) -> Round:
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as child:
            lines: Any = child.stdout
            delays = [time.monotonic_ns() - int(line) for line in lines]
        return Round(delays, sum(delays))

    return run


async def _opened(url: str, **settings: Any) -> mnemon.HybridMemoryService:
    memory = await mnemon.open(url, **settings)
    await memory.sessions.create_session(SESSION, "bench", "alice")
    return memory


def main(url: str, count: str, settings: str) -> None:
    with mnemon.sync.open(url, **json.loads(settings)) as memory:
        written = append_blocking(memory, int(count))
    print(json.dumps(written))


if __name__ == "__main__":
    main(*sys.argv[1:])
