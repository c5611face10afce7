"""Whether a JSON value is of a JSON schema, for the small schemas that a language model is asked to keep to.

Known are `type` (one), `enum`, `properties`, `required`, `additionalProperties: false`, `items`, `minLength`,
`maxLength` and `maxItems`. A schema with any other word is refused, so that nothing goes unchecked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}  # fmt: skip
_BOUNDS = {"minLength", "maxLength", "maxItems"}
_WORDS = {"type", "enum", "properties", "required", "additionalProperties", "items", *_BOUNDS}


def flaw(value: object, schema: Mapping[str, Any], place: str = "the answer") -> str | None:
    """The first thing in which a value is not of the schema, in words; None if it is."""
    return next(_flaws(value, schema, place), None)


def structure(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without bounds of lengths and numbers, which not every endpoint takes."""
    bare = {word: value for word, value in schema.items() if word not in _BOUNDS}
    if "properties" in bare:
        bare["properties"] = {name: structure(each) for name, each in schema["properties"].items()}
    if "items" in bare:
        bare["items"] = structure(schema["items"])
    return bare


def _flaws(value: object, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    unknown = schema.keys() - _WORDS
    if unknown:
        raise NotImplementedError(f"the schema of {place} has {', '.join(sorted(unknown))}, which cannot be checked")
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is none of {', '.join(map(repr, schema['enum']))}"
    if "type" in schema and not _is_of(value, schema["type"]):
        yield f"{place} is no {schema['type']}"
    elif isinstance(value, str):
        yield from _flaws_of_text(value, schema, place)
    elif isinstance(value, list):
        yield from _flaws_of_list(cast("Sequence[object]", value), schema, place)
    elif isinstance(value, dict):
        yield from _flaws_of_object(cast("Mapping[str, object]", value), schema, place)


def _flaws_of_text(value: str, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    if len(value) < schema.get("minLength", 0):
        yield f"{place} is too short"
    if len(value) > schema.get("maxLength", len(value)):
        yield f"{place} is longer than {schema['maxLength']} characters"


def _flaws_of_list(value: Sequence[object], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{place} has more than {schema['maxItems']} items"
    for number, item in enumerate(value):
        yield from _flaws(item, schema.get("items", {}), f"{place}[{number}]")


def _flaws_of_object(value: Mapping[str, object], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    known: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place} has no {name!r}"
    for name, child in value.items():
        if name in known:
            yield from _flaws(child, known[name], f"{place}.{name}")
        elif schema.get("additionalProperties") is False:
            yield f"{place} has {name[:40]!r}, which nobody asked for"


def _is_of(value: object, name: str) -> bool:
    is_number_by_accident = isinstance(value, bool) and name in ("integer", "number")
    return isinstance(value, _TYPES[name]) and not is_number_by_accident
