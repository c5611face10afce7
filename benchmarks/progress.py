"""A bar on the terminal that says how far the run is."""

import sys
import time
from types import TracebackType
from typing import TextIO

_WIDTH = 30
_PAUSE = 0.1


class Bar:
    """One line on `out`, drawn again as work goes on; one plain line if it is no terminal."""

    def __init__(self, name: str, out: TextIO = sys.stderr) -> None:
        self._name = name
        self._out = out
        self._shown = out.isatty()
        self._total = 0
        self._done = 0
        self._drawn = 0.0

    def __enter__(self) -> "Bar":
        if not self._shown:
            print(f"{self._name} …", file=self._out, flush=True)
        self._draw("preparing")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._out.write("\r\033[K")
            self._out.flush()

    def begin(self, total: int) -> None:
        self._total = total

    def tick(self, what: str) -> None:
        self._done += 1
        if time.monotonic() - self._drawn > _PAUSE:
            self._draw(what)

    def reach(self, done: int, total: int, what: str) -> None:
        """For work that says itself how far it is."""
        self._done, self._total = done - 1, total
        self.tick(what)

    def _draw(self, what: str) -> None:
        self._drawn = time.monotonic()
        if not self._shown:
            return
        filled = _WIDTH * self._done // self._total if self._total else 0
        bar = "█" * filled + "░" * (_WIDTH - filled)
        self._out.write(f"\r\033[K{self._name:<9} {bar} {what[:40]}")
        self._out.flush()
