"""What the commands print: JSON, tables and progress bars."""

import shutil
import sys
import time
from collections.abc import Sequence
from itertools import zip_longest

import click
import orjson

from mnemon.model import Progress

_GAP = "  "
_NARROWEST = 20  # columns that the last column has at the least
_BAR = 30
_PAUSE = 0.1  # seconds between two pictures of a bar


def show_json(value: object) -> None:
    """Print one JSON document: dataclasses are objects, moments ISO 8601."""
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=dict).decode())


def note(text: str) -> None:
    """Say something that is not the answer."""
    click.echo(printable(text), err=True)


def show_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], below: Sequence[str] = (), *, err: bool = False
) -> None:
    """Print rows under headings; the last column is cut to the terminal's width, if there is a terminal.

    Of `below`, each is a line that belongs to the row of the same place. `err` where it is not the answer.
    """
    texts = [[printable(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*[list(headings), *texts], strict=True)]
    room = _room(widths)
    click.secho(_line(headings, widths, room), bold=True, err=err)
    for row, more in zip_longest(texts, below):
        click.echo(_line(row, widths, room), err=err)
        if more:
            click.secho(_GAP + printable(more), dim=True, err=err)


def _line(cells: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    *first, last = cells
    padded = [cell.ljust(width) for cell, width in zip(first, widths, strict=False)]
    cut = last if room is None or len(last) <= room else last[: room - 1] + "…"
    return _GAP.join([*padded, cut]).rstrip()


def _room(widths: Sequence[int]) -> int | None:
    """How wide the last column may be: `COLUMNS` or the terminal says so; None if there is neither."""
    columns = shutil.get_terminal_size((0, 0)).columns
    taken = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    return max(columns - taken, _NARROWEST) if columns else None


def counted(number: int, noun: str) -> str:
    """So many things: 1 memory, 2 memories."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else several}"


def printable(text: str, keep: str = "") -> str:
    """The text on one line, without anything that a terminal would obey; `keep` names characters that stay."""
    tamed = "".join(each if each.isprintable() or each in keep else " " for each in text)
    return tamed if keep else " ".join(tamed.split())


class Bar:
    """A progress bar on stderr, if that is a terminal; leave its block to end its line."""

    def __init__(self, label: str) -> None:
        self._label = label
        self.is_shown = sys.stderr.isatty()
        self._is_open = False
        self._next = 0.0

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            click.echo(err=True)

    def follow(self, progress: Progress) -> None:
        """Show how far a long piece of work has come, and how fast."""
        left = (progress.total - progress.done) / progress.rate if progress.rate else 0.0
        self.show(progress.done, progress.total, f"{progress.done}/{progress.total}, {left:.0f} s left")

    def show(self, done: int, total: int, told: str) -> None:
        """Show a part of a whole, with some words."""
        if not self.is_shown or (done < total and time.monotonic() < self._next):
            return
        full = _BAR * done // total if total else _BAR
        percent = 100 * done // total if total else 100
        text = f"{self._label} [{'#' * full}{'-' * (_BAR - full)}] {percent:3d}%  {told}"
        click.echo(f"\r{text}\033[K", nl=False, err=True)
        self._is_open, self._next = True, time.monotonic() + _PAUSE
