"""What programs take of the machine: memory and disk. Read from Linux' /proc; elsewhere it is not known."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

_PROCESSES = Path("/proc")
_GLANCE = 0.5
_IDLE = 0.05  # of a core


def own_memory() -> int:
    """The bytes that this process has in memory; 0 if nobody tells."""
    return _status(_PROCESSES / "self" / "status", "VmRSS:")


def memory_of_children() -> int:
    """The bytes that all processes below this one have in memory; what they share counts once."""
    return sum(_status(_PROCESSES / str(each) / "smaps_rollup", "Pss:") for each in _descendants(os.getpid()))


def wait_for_children(longest: float) -> float:
    """Wait until the processes below this one have nothing left to do; how many seconds that took."""
    start, busy = time.monotonic(), _processor_of_children()
    while time.monotonic() - start < longest:
        time.sleep(_GLANCE)
        before, busy = busy, _processor_of_children()
        if busy - before < _IDLE * _GLANCE:
            break
    return time.monotonic() - start


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _descendants(process: int) -> Iterator[int]:
    for path in _PROCESSES.glob(f"{process}/task/*/children"):
        for child in map(int, _text(path).split()):
            yield child
            yield from _descendants(child)


def _processor_of_children() -> float:
    """Seconds that they have kept a core busy."""
    ticks = 0
    for each in _descendants(os.getpid()):
        fields = _text(_PROCESSES / str(each) / "stat").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12]) if fields else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def _status(path: Path, name: str) -> int:
    line = next((line for line in _text(path).splitlines() if line.startswith(name)), "0 0")
    return int(line.split()[1]) * 1024


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it has ended meanwhile, or there is no such system
        return ""
