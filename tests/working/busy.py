"""A process that writes, reads and drains a session's working memory on three threads until its input ends.

It prints what was appended and what was drained, each once that is sure. All such processes share a file with the
newest value that each has written, so that whoever reads knows what must be there at the least.
"""

import mmap
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mnemon import sync

PROCESSES = 2


class Board:
    """The newest value that each process has written for sure."""

    def __init__(self, file: Path) -> None:
        with file.open("r+b") as opened:
            self._numbers = memoryview(mmap.mmap(opened.fileno(), 8 * PROCESSES)).cast("q")

    @staticmethod
    def make(file: Path) -> None:
        file.write_bytes(bytes(8 * PROCESSES))

    def __getitem__(self, process: int) -> int:
        return self._numbers[process]

    def __setitem__(self, process: int, number: int) -> None:
        self._numbers[process] = number


def write(memory: sync.BlockingMemory, board: Board, me: int) -> None:
    number = board[me] + 1
    memory.working.append("s1", [f"{me}-{number}"])
    sys.stdout.write(f"appended {me}-{number}\n")
    memory.working.set("s1", f"pad-{me}", number)
    memory.working.append("s1", [number], buffer=f"kept-{me}")
    board[me] = number


def read(memory: sync.BlockingMemory, board: Board) -> None:
    for process in range(PROCESSES):
        known = board[process]
        pad = memory.working.get("s1", f"pad-{process}")
        assert (pad.value if pad else 0) >= known, f"the scratchpad {pad} is older than {known}"
        kept = [item.value for item in memory.working.recent("s1", buffer=f"kept-{process}", last=20)]
        assert (kept[-1] if kept else 0) >= known, f"the buffer {kept} is older than {known}"
        assert kept == list(range(kept[0], kept[0] + len(kept))) if kept else True, f"{kept} has gaps"


def drain(memory: sync.BlockingMemory) -> None:
    batch = memory.working.drain("s1", limit=5)
    if batch:
        memory.working.acknowledge(batch)
        sys.stdout.write("".join(f"drained {item.value}\n" for item in batch))


def main(url: str, redis_url: str, file: str, me: int) -> None:
    board, over = Board(Path(file)), threading.Event()

    def repeat(work: Callable[[], None]) -> None:
        try:
            while not over.wait(0.003):
                work()
        except BaseException:
            over.set()
            raise

    with sync.open(url, working_store="redis", redis_url=redis_url, embedder="none") as memory:
        works = [lambda: write(memory, board, me), lambda: read(memory, board), lambda: drain(memory)]
        with ThreadPoolExecutor(len(works)) as threads:
            done = [threads.submit(repeat, work) for work in works]
            sys.stdin.read()
            over.set()
        for each in done:
            each.result()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
