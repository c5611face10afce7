"""Namespaces: paths of segments joined by `:`, below one of five roots.

A prefix matches whole segments: `user:al` covers `user:al` and `user:al:x`, never `user:alice`.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from mnemon.errors import InvalidIdentifier, InvalidNamespace

ROOTS = ("temp", "session", "user", "app", "project")
EVERYTHING = ""

# Control characters, halves of characters, and the last code point, which ends the range of a prefix.
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff\U0010ffff]")
_LONGEST_IDENTIFIER = 256


def check_identifier(what: str, value: object) -> str:
    """The id, if it can be one segment of a namespace; otherwise `InvalidIdentifier`."""
    if not isinstance(value, str) or not value:
        raise InvalidIdentifier(f"{what} must be a non-empty string, not {value!r}")
    if not _is_segment(value):
        raise InvalidIdentifier(
            f"{what} {value[:80]!r} has a ':' or a control character, begins or ends with white space, "
            f"or has more than {_LONGEST_IDENTIFIER} characters"
        )
    return value


def check_key(what: str, value: object, limit: int) -> str:
    """The key, if it is printable text within the limit; otherwise `InvalidIdentifier`."""
    if not isinstance(value, str) or not value:
        raise InvalidIdentifier(f"{what} must be a non-empty string, not {value!r}")
    if len(value) > limit:
        raise InvalidIdentifier(f"{what} has {len(value)} characters; at most {limit} are allowed")
    if not _is_printable(value):
        raise InvalidIdentifier(f"{what} {value[:80]!r} has a control character")
    return value


def check_label(what: str, value: object) -> str | None:
    """A name of somebody or something outside, if it is None or short printable text."""
    return None if value is None else check_key(what, value, _LONGEST_IDENTIFIER)


# The same few ids and keys come again and again.
@lru_cache(4096)
def _is_segment(text: str) -> bool:
    return ":" not in text and text == text.strip() and _is_printable(text) and len(text) <= _LONGEST_IDENTIFIER


@lru_cache(4096)
def _is_printable(text: str) -> bool:
    return not _UNUSABLE.search(text)


def check_namespace(namespace: object, limit: int) -> str:
    """The namespace, if it is a root and at least one segment below it."""
    if not isinstance(namespace, str):
        raise InvalidNamespace(f"a namespace is a string, not {namespace!r}")
    return _check_path(namespace, limit)


@lru_cache(4096)
def _check_path(namespace: str, limit: int) -> str:
    if ":" not in check_prefix(namespace, limit) or namespace.endswith(":"):
        raise InvalidNamespace(f"namespace {namespace!r} must be a root and at least one segment, as in 'user:alice'")
    return namespace


def check_prefix(prefix: object, limit: int) -> str:
    """The prefix without a trailing `:`; `""` stands for everything, `"user"` for all users."""
    if not isinstance(prefix, str):
        raise InvalidNamespace(f"a namespace is a string, not {prefix!r}")
    if len(prefix) > limit:
        raise InvalidNamespace(f"namespace has {len(prefix)} characters; at most {limit} are allowed")
    path = prefix.removesuffix(":")
    if path == EVERYTHING:
        return path
    segments = path.split(":")
    if segments[0] not in ROOTS:
        raise InvalidNamespace(f"namespace {prefix!r} must begin with one of {', '.join(ROOTS)}")
    if not all(segment and _is_segment(segment) for segment in segments):
        raise InvalidNamespace(
            f"namespace {prefix!r} has a segment that is empty, too long, or has white space around it"
        )
    return path


def covers(prefix: str, namespace: str) -> bool:
    """Whether `namespace` is `prefix` itself or lies below it."""
    return prefix == EVERYTHING or namespace == prefix or namespace.startswith(f"{prefix}:")


def meet(requested: str, granted: Iterable[str]) -> list[str]:
    """The parts of `requested` that lie below any of the granted prefixes, none inside another."""
    granted = list(granted)
    if any(covers(grant, requested) for grant in granted):
        return [requested]
    inside = [grant for grant in granted if covers(requested, grant)]
    return sorted({g for g in inside if not any(o != g and covers(o, g) for o in inside)})
