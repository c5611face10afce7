"""What artifacts may be called, what people see of that in a file system, and their URLs; all of it pure.

A name is a relative path of plain text, as `reports/q3.pdf`. Refused is whatever could mean another file than it
seems to, or something that is no file at all, wherever the name may be used one day: see `check_name`.
"""

import mimetypes
import re
import unicodedata
from functools import cache, lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from mnemon.clock import moment
from mnemon.errors import InvalidIdentifier, InvalidInput
from mnemon.namespaces import check_identifier, check_key

SCHEME, AUTHORITY = "mnemon", "artifacts"
UNKNOWN_TYPE = "application/octet-stream"
TEXT_TYPE = "text/plain; charset=utf-8"

_LARGEST_VERSION = 2**63 - 1
_LONGEST_SHOWN = 120  # bytes of a name in a file name; 255 is what file systems take
_PLAIN_PLACE = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|clock\$|(com|lpt)[0-9¹²³])[ ]*(\..*)?", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")
_SLASHES = frozenset("\\⁄∕⧵⧶⧸⧹﹨／＼∖╱╲⟋⟍᜵")
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_STRANGE = {"Cc": "a control character", "Cf": "an invisible character", "Cs": "half a character",
            "Zl": "a line separator", "Zp": "a line separator", "Zs": "a space other than the plain one"}  # fmt: skip
_SHOWN_CATEGORIES = ("L", "N", "M")
_SHOWN_MARKS = frozenset(" ._-+=@,()[]~")


# ------------------------------------------------------------------------------------------------------------- names


def check_name(name: object, limit: int) -> str:
    """The name in Unicode's composed form (NFC), if a file may be called so; otherwise `InvalidIdentifier`."""
    text = check_key("an artifact's name", name, limit)
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        normal = text
    else:
        normal = check_key("an artifact's name", unicodedata.normalize("NFC", text), limit)
    problem = _problem(normal)
    if problem:
        raise InvalidIdentifier(f"an artifact cannot be called {text[:80]!r}: {problem}")
    return normal


@lru_cache(4096)
def _problem(name: str) -> str | None:
    return _strange_character(name) or _strange_path(name) or _strange_path(unicodedata.normalize("NFKC", name))


def _strange_character(name: str) -> str | None:
    for char in name:
        if char in _SLASHES:
            return f"{char!r} is, or looks like, a separator of folders; only / is one here"
        kind = "Cf" if char in _UNSEEN else unicodedata.category(char)
        if kind in _STRANGE and char != " ":
            return f"it has {_STRANGE[kind]}, U+{ord(char):04X}"
    return None


def _strange_path(name: str) -> str | None:
    if name.startswith("/") or _DRIVE.match(name):
        return "it must be relative, with no drive and no / in front"
    for segment in name.split("/"):
        if not segment.strip(". "):
            return "a part of it is empty, or has nothing but dots and spaces"
        if segment != segment.strip() or segment.endswith("."):
            return f"its part {segment[:40]!r} begins or ends with a space, or ends with a dot"
        if _DEVICE.fullmatch(segment):
            return f"{segment[:40]!r} is a device on some systems"
    return None


# ------------------------------------------------------------------------------------------------- in a file system


def file_name(name: str, created_at: int, number: int = 1) -> str:
    """What people see of a version: when it was saved, and its name as far as every file system can show it.

    `number` tells apart those that would be called alike.
    """
    stamp = moment(created_at).strftime("%Y%m%dT%H%M%S.%fZ")
    stem, dot, ending = name.rpartition(".")
    if not stem or "/" in ending or len(ending) > 16:
        stem, dot, ending = name, "", ""
    ending = _shown(f"{dot}{ending}", 20)
    again = f"~{number}" if number > 1 else ""
    return f"{stamp}_{_shown(stem, _LONGEST_SHOWN)}{again}{ending}".rstrip(" .")


def place_of(session_id: str) -> str:
    """The name of a session's folder: its id if that is plain, else what can be shown of it and a digest.

    No two ids have the same, even where case does not matter.
    """
    if _PLAIN_PLACE.fullmatch(session_id) and not session_id.endswith(".") and not _DEVICE.fullmatch(session_id):
        return session_id
    shown = _shown(session_id, 60).replace(".", "_").strip(" ~-") or "session"
    return f"{shown}~{sha256(session_id.encode()).hexdigest()[:32]}"


def _shown(text: str, limit: int) -> str:
    """The text with `_` for what a file name cannot have, cut to so many bytes."""
    safe = "".join(
        char if char in _SHOWN_MARKS or unicodedata.category(char)[0] in _SHOWN_CATEGORIES else "_" for char in text
    )
    return safe.encode()[:limit].decode(errors="ignore")


# -------------------------------------------------------------------------------------------------------------- URLs


class Place(NamedTuple):
    """What a URL names; without a version, the current one."""

    session_id: str
    name: str
    version: int | None


def url_of(session_id: str, name: str, version: int) -> str:
    """`mnemon://artifacts/{session}/{name}?version=N`, with everything else than plain characters as %XX."""
    return f"{SCHEME}://{AUTHORITY}/{_segment(session_id)}/{quote(name)}?version={version}"


def _segment(session_id: str) -> str:
    text = quote(session_id, safe="")
    return text if text.strip(".") else text.replace(".", "%2E")  # a path of dots would be walked


def parse_url(url: object, limit: int) -> Place:
    """What the URL of an artifact names; `InvalidInput` if it is none."""
    if not isinstance(url, str):
        raise _not_a_url(url)
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        session, slash, name = parts.path.removeprefix("/").partition("/")
        found = check_identifier("session_id", unquote(session, errors="strict"))
        named = check_name(unquote(name, errors="strict"), limit)
    except ValueError as error:  # so are Mnemon's own
        raise _not_a_url(url) from error
    is_ours = (parts.scheme, parts.netloc, parts.fragment) == (SCHEME, AUTHORITY, "") and slash
    if not is_ours or [key for key, _ in options] not in ([], ["version"]):
        raise _not_a_url(url)
    if not options:
        return Place(found, named, None)
    text = options[0][1]
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise _not_a_url(url)
    return Place(found, named, check_version(int(text)))


def check_version(version: object) -> int:
    """The version, if it is a whole number from 1."""
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= _LARGEST_VERSION:
        raise InvalidInput(f"a version is a whole number from 1, not {version!r}")
    return version


def _not_a_url(url: object) -> InvalidInput:
    return InvalidInput(
        f"{url!r:.200} is not the URL of an artifact, which is {SCHEME}://{AUTHORITY}/session/name?version=1"
    )


# ------------------------------------------------------------------------------------------------------ content types


def content_type_of(name: str, is_text: bool) -> str:
    """What a file of this name most likely is; the same on every machine."""
    guessed, encoding = _types().guess_type(name.rpartition("/")[2], strict=False)
    if encoding:
        return {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz"}.get(
            encoding, UNKNOWN_TYPE
        )
    return guessed or (TEXT_TYPE if is_text else UNKNOWN_TYPE)


@cache
def _types() -> mimetypes.MimeTypes:
    known = mimetypes.MimeTypes()  # Python's own list, without those of the system
    for kind, ending in (
        ("text/markdown", ".md"), ("application/x-ndjson", ".jsonl"), ("application/toml", ".toml"),
        ("application/yaml", ".yaml"), ("application/yaml", ".yml"), ("application/vnd.apache.parquet", ".parquet"),
    ):  # fmt: skip
        known.add_type(kind, ending)
    return known
