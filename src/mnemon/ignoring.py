"""Patterns of what to leave out, or to take, as Git's `.gitignore` has them."""

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

NEVER = (".git/", ".hg/", ".svn/")
"""What is not taken whatever a `.gitignore` says, as Git itself does not."""

USUALLY = (
    ".*", "node_modules/", "__pycache__/", "*.pyc", "venv/", "*.egg-info/", "*~", "*.min.js", "*.min.css", "*.map",
    "*.lock", "package-lock.json", "id_rsa*", "id_ed25519*",
)  # fmt: skip
"""What nobody wants to read, or should: hidden files and folders, what tools leave behind, keys."""


class _Pattern(NamedTuple):
    regex: re.Pattern[str]
    is_negated: bool
    is_folder: bool


class Patterns:
    """Patterns of one folder: the last that fits a path decides, and one with a `!` takes back what others said."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._patterns: Sequence[_Pattern] = [found for line in lines if (found := _pattern(line))]

    def decide(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether the path, relative to the patterns' folder, is meant; None if they say nothing of it."""
        for pattern in reversed(self._patterns):
            if (is_folder or not pattern.is_folder) and pattern.regex.fullmatch(path):
                return not pattern.is_negated
        return None

    def cover(self, path: str) -> bool:
        """Whether a file, or else a folder that it lies in, is meant."""
        decision = self.decide(path, is_folder=False)
        if decision is not None:
            return decision
        folders = (str(parent) for parent in PurePosixPath(path).parents if parent.name)
        return any(self.decide(each, is_folder=True) for each in folders)


def _pattern(line: str) -> _Pattern | None:
    text = re.sub(r"(?<!\\)\s+$", "", line.rstrip("\r\n"))
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    text = text.removeprefix("!").removeprefix("\\") if text[:2] in ("\\!", "\\#") or is_negated else text
    is_folder = text.endswith("/")
    text = text.rstrip("/") if is_folder else text
    if not text:
        return None
    is_anchored = "/" in text
    regex = _translated(text.removeprefix("/"))
    return _Pattern(re.compile(regex if is_anchored else f"(?:.*/)?{regex}", re.DOTALL), is_negated, is_folder)


_PARTS = re.compile(
    r"(?P<above>^\*\*/|(?<=/)\*\*/)|(?P<below>(?<=/)\*\*$)|\*+|\?|(?P<set>\[[!^]?(?:\\.|[^\\])(?:\\.|[^\]\\])*\])|\\(?P<plain>.)"
)

_SIGNS = re.compile(r"(\\.|.)(?:-(\\.|.))?", re.DOTALL)  # a sign of a set, or the first and last of a range


def _translated(text: str) -> str:
    """The regular expression of a pattern without its slashes at the ends."""
    found: list[str] = []
    end = 0
    for part in _PARTS.finditer(text):
        found.append(re.escape(text[end : part.start()]))
        found.append(_part(part))
        end = part.end()
    return "".join(found) + re.escape(text[end:])


def _part(part: re.Match[str]) -> str:
    if part["above"]:
        return "(?:.*/)?"
    if part["below"]:
        return ".+"
    if part["plain"]:
        return re.escape(part["plain"])
    if part["set"]:
        return _set(part["set"][1:-1])
    return "[^/]" if part[0] == "?" else "[^/]*"


def _set(inside: str) -> str:
    """One of some signs, or none of them, but never a slash."""
    negation = "^" if inside[0] in "!^" else ""
    signs = ""
    for first, last in _SIGNS.findall(inside[1:] if negation else inside):
        low, high = first[-1:], (last or first)[-1:]
        signs += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
    return f"(?!/)[{negation}{signs}]" if signs else "(?!)"
