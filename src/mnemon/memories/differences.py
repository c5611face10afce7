"""How two JSON values differ, part by part."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, cast

from mnemon.model import Difference

_MISSING = object()


def compare(before: Any, after: Any, path: str = "$") -> Iterator[Difference]:
    """The smallest parts that were added, removed or changed, in order."""
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        for key in [*old, *(key for key in new if key not in old)]:
            yield from compare(old.get(key, _MISSING), new.get(key, _MISSING), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list):
        pairs = zip_longest(cast("list[Any]", before), cast("list[Any]", after), fillvalue=_MISSING)
        for index, (old, new) in enumerate(pairs):
            yield from compare(old, new, f"{path}[{index}]")
    elif before is _MISSING:
        yield Difference(path, None, after, "added")
    elif after is _MISSING:
        yield Difference(path, before, None, "removed")
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield Difference(path, before, after, "changed")
