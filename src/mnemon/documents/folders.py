"""The files of a folder: which of them are documents, and when they change. Everything here may block."""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mnemon.documents.reading import may_be_read
from mnemon.errors import InvalidInput, InvalidSettings
from mnemon.ignoring import NEVER, USUALLY, Patterns

IGNORE_FILE = ".gitignore"
_PATIENCE = 200  # milliseconds that one look for changes takes at the most

Rules = Sequence[tuple[str, Patterns]]
"""Patterns with the folder that they are of, as it begins a path; the first that says something decides."""


@dataclass(frozen=True, slots=True)
class Found:
    """The files below a folder that are documents, relative to it and in order, and how many others there are."""

    files: Sequence[str]
    skipped: int


def find_files(folder: Path, patterns: Sequence[str] | None, ignore: Iterable[str]) -> Found:
    """Look through a folder. Links are not followed, so that nothing from elsewhere is taken in.

    With `patterns` those files are taken that fit one of them, otherwise those whose names tell that they can be read.
    """
    wanted = None if patterns is None else Patterns(patterns)
    files: list[str] = []
    skipped = 0
    for path in _walk(folder, "", [("", Patterns([*NEVER, *ignore]))]):
        if wanted.cover(path) if wanted else may_be_read(path):
            files.append(path)
        else:
            skipped += 1
    return Found(sorted(files), skipped)


def _walk(folder: Path, below: str, rules: Rules) -> Iterator[str]:
    """The files that are not ignored; git's own rules count, the deepest first, after those of the caller."""
    here = (rules[0], *_own_rules(folder / below, below), *rules[1:])
    try:
        with os.scandir(folder / below) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except PermissionError:
        return
    for entry in entries:
        path = f"{below}{entry.name}"
        is_folder = entry.is_dir(follow_symlinks=False)
        if _is_ignored(here, path, is_folder=is_folder):
            continue
        if is_folder:
            yield from _walk(folder, f"{path}/", here)
        elif entry.is_file(follow_symlinks=False):
            yield path


def _own_rules(folder: Path, below: str) -> Rules:
    try:
        lines = (folder / IGNORE_FILE).read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    return ((below, Patterns(lines)),)


_USUAL = Patterns(USUALLY)


def _is_ignored(rules: Rules, path: str, *, is_folder: bool) -> bool:
    for below, patterns in (*rules, ("", _USUAL)):
        decision = patterns.decide(path.removeprefix(below), is_folder=is_folder)
        if decision is not None:
            return decision
    return False


class Watch:
    """Waits for changes below a folder. Only one thread may wait at a time; any may close it."""

    def __init__(self, folder: Path) -> None:
        try:
            from watchfiles import watch  # noqa: PLC0415 - an extra
        except ImportError:
            raise InvalidSettings("to watch a folder, install watchfiles: pip install 'mnemon[watch]'") from None
        self._stop = threading.Event()
        self._changes = watch(
            folder, watch_filter=None, stop_event=self._stop, rust_timeout=_PATIENCE, yield_on_timeout=True
        )

    def wait(self) -> set[str] | None:
        """The paths that have changed, or none after a moment; None once it is closed. The first call begins it."""
        found = next(self._changes, None)
        return None if found is None else {path for _, path in found}

    def close(self) -> None:
        """Let whoever waits return, and watch no longer; idempotent."""
        self._stop.set()


def existing_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, with nothing relative in its path."""
    try:
        path = Path(folder).expanduser().resolve()
        is_there = path.is_dir()
    except (OSError, ValueError) as error:  # as with a name that no file can have
        raise InvalidInput(f"{str(folder)!r} is no folder: {error}") from None
    if not is_there:
        raise InvalidInput(f"there is no folder {str(folder)!r}; use add for a file")
    return path
