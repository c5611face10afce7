"""Pagination: limits, and cursors that are opaque to the caller."""

import base64
import binascii
from typing import Any

import orjson

from mnemon.errors import InvalidCursor, InvalidInput

_LARGEST_PAGE = 10_000


def check_limit(limit: object) -> int:
    """The limit, if it is a sensible page size."""
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _LARGEST_PAGE:
        raise InvalidInput(f"limit must be between 1 and {_LARGEST_PAGE}, not {limit!r}")
    return limit


def encode_cursor(kind: str, *place: str | int) -> str:
    """A cursor that says where the last page of a `kind` of listing ended."""
    return base64.urlsafe_b64encode(orjson.dumps([kind, *place])).decode().rstrip("=")


def decode_cursor(cursor: str | None, kind: str, start: tuple[Any, ...]) -> tuple[Any, ...]:
    """Where to go on; `start` without a cursor, and the types that a cursor must have."""
    if cursor is None:
        return start
    try:
        found, *place = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, TypeError, binascii.Error):
        raise InvalidCursor(f"{cursor!r} is not a cursor; pass a page's next_cursor unchanged") from None
    if found != kind or [type(p) for p in place] != [type(s) for s in start]:
        raise InvalidCursor(f"{cursor!r} is a cursor of another listing than {kind!r}")
    return tuple(place)
