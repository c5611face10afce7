"""The paths of a workspace: relative, with `/`, and each written in one way only.

A path names a place in a workspace and nowhere else. What could mean another place to some system, now or when the
workspace is exported, is refused; what is only another way to write the same path is put right.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePath
from typing import TypeAlias

from mnemon.errors import InvalidPath
from mnemon.ignoring import Patterns

AnyPath: TypeAlias = str | PurePath

LONGEST_PATH = 1024  # bytes; what file systems allow, or less
LONGEST_NAME = 255
END = "\U0010ffff"  # no path sorts after it

# Control characters, halves of characters, marks that turn the direction of text or break lines, and the last two
# code points of each plane, of which the very last ends the range of a prefix.
_UNUSABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U0010fffe\U0010ffff]"
)
_DRIVE = re.compile(r"[A-Za-z]:")
_WINDOWS = re.compile(r'[<>:"|?*]|[. ]$|^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$', re.IGNORECASE)


def check_path(path: AnyPath) -> str:
    """The path as it is kept: `./a//b` is `a/b`, and accents are one with their letters (NFC)."""
    if isinstance(path, PurePath):
        path = path.as_posix()
    if not isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidPath(f"a path is text such as 'src/main.py', not {path!r:.80}")
    return _normalised(path)


def check_folder(path: AnyPath) -> str:
    """A folder's path, which may end with `/`; `""` and `.` stand for the whole workspace."""
    text = path.as_posix() if isinstance(path, PurePath) else path
    return "" if text in ("", ".", "./") else check_path(text.removesuffix("/") if isinstance(text, str) else text)  # pyright: ignore[reportUnnecessaryIsInstance]


@lru_cache(4096)
def _normalised(path: str) -> str:
    _refuse_other_places(path)
    names = [name for name in unicodedata.normalize("NFC", path).split("/") if name not in ("", ".")]
    if not names:
        raise InvalidPath(f"{path!r:.80} names no file")
    for name in names:
        _check_name(path, name)
    found = "/".join(names)
    if len(found.encode()) > LONGEST_PATH:
        raise InvalidPath(f"the path {path!r:.80}… has more than {LONGEST_PATH} bytes")
    return found


def _refuse_other_places(path: str) -> None:
    if len(path) > LONGEST_PATH:
        raise InvalidPath(f"the path {path!r:.80}… has more than {LONGEST_PATH} bytes")
    if path.startswith("/") or _DRIVE.match(path):
        raise InvalidPath(f"{path!r:.80} is absolute; a path begins at the workspace's own top, as in 'src/main.py'")
    if path.endswith("/"):
        raise InvalidPath(f"{path!r:.80} names a folder; folders are there when they have files")
    if "\\" in path:
        raise InvalidPath(f"{path!r:.80} has a backslash; write '/' between the names")
    if _UNUSABLE.search(path):
        raise InvalidPath(f"{path!r:.80} has a character that no name should have, such as a control character")


def _check_name(path: str, name: str) -> None:
    if name == "..":
        raise InvalidPath(f"{path!r:.80} has '..', which could lead out of the workspace; write the path without it")
    if len(name.encode()) > LONGEST_NAME:
        raise InvalidPath(f"the path {path!r:.80}… has a name of more than {LONGEST_NAME} bytes")


def check_for_windows(path: str) -> None:
    """Refuse what Windows would take for a device, a stream or another name."""
    for name in path.split("/"):
        if _WINDOWS.search(name):
            raise InvalidPath(f"{path!r:.80} cannot be a file on Windows: {name!r:.80} has another meaning there")


def folders_of(path: str) -> Iterator[str]:
    """The folders that a path lies in, the innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def is_within(path: str, folder: str) -> bool:
    """Whether a path is that of the folder, if it were a file, or lies below it."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def bounds(folder: str) -> dict[str, str]:
    """Between which paths, both left out, lies what is below a folder."""
    return {"after": f"{folder}/", "end": f"{folder}0"} if folder else {"after": "", "end": END}


def check_patterns(patterns: str | Iterable[str]) -> Patterns:
    """Patterns of what to leave out, as `.gitignore` has them."""
    given = [patterns] if isinstance(patterns, str) else list(patterns)
    for each in given:
        if not isinstance(each, str) or not each.strip("/"):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidPath(f"{each!r:.80} is not a pattern such as '*.pyc' or 'build/'")
    return Patterns(given)
