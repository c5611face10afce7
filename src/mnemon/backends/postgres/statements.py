"""Statements as psycopg wants them: `:name` as `%(name)s`, and many rows inserted by one statement."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mnemon.ports import Params

_PARAMETER = re.compile(r"'(?:[^']|'')*'|%|(?<![:\w]):(?P<name>\w+)")
_INSERT = re.compile(r"(?P<head>INSERT INTO .*?\sVALUES\s*)(?P<row>\([^()]*\))(?P<tail>.*)", re.DOTALL)
_UPSERT = re.compile(r"ON CONFLICT \((?P<columns>[^()]*)\) DO UPDATE")
_MOST_ROWS = 50


@lru_cache(4096)
def translate(text: str, suffix: str = "") -> bytes:
    """The statement with its parameters in psycopg's style, their names ending in `suffix`."""

    def replace(found: re.Match[str]) -> str:
        name = found["name"]
        return f"%({name}{suffix})s" if name else found[0].replace("%", "%%")

    return _PARAMETER.sub(replace, text).encode()


def grouped(text: str, rows: Sequence[Params]) -> Iterator[tuple[bytes, Params]]:
    """Statements that together do what `text` does for each of `rows`, in order.

    One statement inserts many rows: a round trip and its work on both sides are saved for each.
    """
    insert = _parse(text)
    if insert is None or len(rows) == 1:
        statement = translate(text)
        yield from ((statement, row) for row in rows)
    else:
        for group in insert.groups(rows):
            params = {f"{name}_{n}": value for n, row in enumerate(group) for name, value in row.items()}
            yield _repeat(text, len(group)), params


@dataclass(frozen=True, slots=True)
class _Insert:
    """An INSERT of one row, taken apart."""

    head: str
    row: str
    tail: str
    keys: tuple[str, ...]

    def groups(self, rows: Sequence[Params]) -> Iterator[Sequence[Params]]:
        """Rows that one statement may insert: it cannot update what it has inserted itself."""
        group: list[Params] = []
        seen: set[tuple[object, ...]] = set()
        for row in rows:
            key = tuple(row[name] for name in self.keys)
            if len(group) == _MOST_ROWS or (self.keys and key in seen):
                yield group
                group, seen = [], set()
            group.append(row)
            seen.add(key)
        if group:
            yield group


@lru_cache(256)
def _parse(text: str) -> _Insert | None:
    found = _INSERT.fullmatch(text)
    if found is None or any(parameter["name"] for parameter in _PARAMETER.finditer(found["tail"])):
        return None
    upsert = _UPSERT.search(found["tail"])
    keys = tuple(re.findall(r"\w+", upsert["columns"])) if upsert else ()
    if any(f":{key}" not in found["row"] for key in keys):
        return None
    return _Insert(found["head"], found["row"], found["tail"], keys)


@lru_cache(1024)
def _repeat(text: str, count: int) -> bytes:
    insert = _parse(text)
    assert insert is not None
    rows = b", ".join(translate(insert.row, f"_{n}") for n in range(count))
    return translate(insert.head) + rows + translate(insert.tail)
