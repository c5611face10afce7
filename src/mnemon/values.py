"""The edge where outside values become JSON text, or are refused with the place that is wrong."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import orjson

from mnemon.errors import InvalidValue, ValueTooLarge

_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_DEEPEST = 254  # as deep as the encoder goes

SEALED = '"\\u0073ealed:'
"""What no text may begin with but an encrypted one; the encoder never writes it."""

decode = orjson.loads


def decode_all(texts: Iterable[str]) -> list[Any]:
    """Many JSON texts at once, which is quicker than one by one."""
    return orjson.loads(f"[{','.join(texts)}]")


def encode(what: str, value: object, limit: int) -> str:
    """`value` as JSON text, if JSON can carry it and it is within `limit` bytes.

    What comes back is what JSON knows: a tuple is a list then, a UUID its text, an enum's member its value.
    """
    try:
        encoded = orjson.dumps(value, option=_OPTIONS)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(_explain(what, value, error)) from None
    if b"null" in encoded:  # orjson writes NaN and infinity as null
        _refuse_nonfinite(what, value)
    if len(encoded) > limit:
        raise ValueTooLarge(
            f"{what} is {len(encoded)} bytes as JSON; max_value_bytes allows {limit}. "
            "Store large content as an artifact and keep a reference."
        )
    return encoded.decode()


def encode_mapping(what: str, value: object, limit: int) -> str:
    """Like `encode`, for what must be a JSON object."""
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{what} must be a mapping of names to values, not {type(value).__name__}")
    mapping = cast("Mapping[str, Any]", value)
    return encode(what, mapping if isinstance(mapping, dict) else dict(mapping), limit)


def encode_metadata(value: object, limit: int) -> str:
    """Metadata as JSON text; every backend can search it, so it may hold no NUL character."""
    text = encode_mapping("metadata", {} if value is None else value, limit)
    if "\\u0000" in text and any(isinstance(leaf, str) and "\0" in leaf for _, leaf in _leaves("", value, True)):
        raise InvalidValue("metadata may not contain a NUL character; PostgreSQL could not search it")
    return text


def check_text(what: str, value: object, limit: int) -> str:
    """Text of any number of lines, if every database can keep it and it is within `limit` bytes."""
    encode(what, value, limit)
    if not isinstance(value, str) or "\0" in value:
        raise InvalidValue(f"{what} must be text without a NUL character, not {value!r:.80}")
    if value.startswith(SEALED):
        raise InvalidValue(f"{what} may not begin as an encrypted text does: {value!r:.80}")
    return value


def _refuse_nonfinite(what: str, value: object) -> None:
    for place, leaf in _leaves(what, value):
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise InvalidValue(f"{place} is {leaf}, which JSON cannot carry")


def _explain(what: str, value: object, error: Exception) -> str:
    """Say which part of `value` made the encoder refuse it."""
    try:
        for place, leaf in _leaves(what, value, True):
            if isinstance(leaf, str) and not leaf.isascii() and any("\ud800" <= char <= "\udfff" for char in leaf):
                return f"{place} has text with a lone surrogate, which is half a character: {leaf[:40]!r}"
            if isinstance(leaf, int) and not -(2**63) <= leaf < 2**64:
                return f"{place} is an integer beyond 64 bits; store it as text"
            if not isinstance(leaf, str | int | float | bool | None):
                return f"{place} is {type(leaf).__name__}, which JSON cannot carry"
    except InvalidValue as found:
        return str(found)
    return f"{what} cannot be stored as JSON: {error}"


def _leaves(place: str, value: object, keys: bool = False) -> Iterator[tuple[str, object]]:
    """Every scalar in `value` with its path; refuses cycles, depth and keys that are not text."""
    pending: list[tuple[str, object, tuple[int, ...]]] = [(place, value, ())]
    while pending:
        where, item, above = pending.pop()
        identity = id(item)
        if not isinstance(item, dict | list | tuple):
            yield where, item
            continue
        if identity in above:
            raise InvalidValue(f"{where} contains itself")
        if len(above) >= _DEEPEST:
            raise InvalidValue(f"{place} is nested more than {_DEEPEST} deep")
        inside = (*above, identity)
        if isinstance(item, dict):
            for key, child in cast("dict[object, object]", item).items():
                if not isinstance(key, str):
                    raise InvalidValue(f"{where} has the key {key!r}, which is not a string")
                if keys:
                    yield where, key
                pending.append((f"{where}.{key}", child, inside))
        else:
            children = cast("Sequence[object]", item)
            pending.extend((f"{where}[{n}]", child, inside) for n, child in enumerate(children))
