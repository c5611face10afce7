"""Labelled pairs of memories, as people write them down: JSON Lines, a JSON list, or a table with a heading.

A pair has two sides and a label. A side is a text, a JSON value, or a memory: `{"key": …, "value": …}`, which may have
`occurred_at` and `valid_from` too. Other usual names of columns and labels are understood.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mnemon.consolidation.conflicts import Statement

_SIDES = (
    ("first", "second"), ("a", "b"), ("left", "right"), ("old", "new"), ("text_a", "text_b"), ("text1", "text2"),
    ("memory_a", "memory_b"), ("memory1", "memory2"), ("statement_a", "statement_b"), ("sentence1", "sentence2"),
)  # fmt: skip
_TOGETHER = ("pair", "texts", "memories")
_LABELS = ("label", "kind", "relation", "type", "expected", "category", "class")
_DOMAINS = ("domain", "topic", "source", "group")
_VALUES = ("value", "text", "content")
_MOMENTS = {
    "occurred_at": ("occurred_at", "at", "when", "date", "timestamp", "created_at"),
    "valid_from": ("valid_from",),
}
_SYNONYMS = {
    "duplicate": "exact exact_duplicate identical same duplicates",
    "near_duplicate": "near near_duplicates paraphrase equivalent same_meaning",
    "contradiction": "contradictory contradicts contradictions conflict conflicting",
    "superseded": "supersedes supersede outdated update updated correction changed",
    "none": "neutral look_alike lookalike look_alikes lookalikes distinct unrelated different independent compatible "
    "no_conflict not_a_conflict negative false null 0",
}
_LABEL = {word: label for label, words in _SYNONYMS.items() for word in (label, *words.split())}


class BadPairs(ValueError):
    """The file holds something else than labelled pairs."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Two memories, and what they are to each other."""

    id: str
    domain: str
    label: str
    first: Any
    second: Any

    @property
    def statements(self) -> tuple[Statement, Statement]:
        """As the detector is given them: the only two memories of a namespace."""
        return _statement("a", self.first), _statement("b", self.second)


def read_pairs(path: Path) -> list[Labelled]:
    """Every pair of a file, in order."""
    try:
        rows = _rows(path)
    except (OSError, ValueError, csv.Error) as error:
        raise BadPairs(f"{path}: {error}") from error
    pairs = [_labelled(row, f"{path}, pair {number}", number) for number, row in enumerate(rows, start=1)]
    if not pairs:
        raise BadPairs(f"{path} holds no pairs")
    return pairs


def _rows(path: Path) -> Sequence[Any]:
    text = path.read_text("utf-8-sig")
    if path.suffix in (".csv", ".tsv"):
        return list(csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix == ".tsv" else ","))
    if path.suffix == ".json" or text.lstrip().startswith("["):
        return _listed(json.loads(text))
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _listed(value: Any) -> Sequence[Any]:
    """A list, or the only one in an object."""
    lists = [each for each in value.values() if isinstance(each, list)] if isinstance(value, dict) else [value]
    if len(lists) != 1 or not isinstance(lists[0], list):
        raise ValueError("a JSON file should hold a list of pairs")
    return lists[0]


def _labelled(row: Any, where: str, number: int) -> Labelled:
    if not isinstance(row, Mapping):
        raise BadPairs(f"{where} is no object")
    first, second = _sides(row, where)
    said = _any_of(row, _LABELS, "")
    label = _LABEL.get(str(said).strip().lower().replace(" ", "_").replace("-", "_") or "none")
    if label is None or not any(name in row for name in _LABELS):
        raise BadPairs(f"{where} has the label {said!r}; it should be one of {', '.join(_SYNONYMS)}")
    return Labelled(str(row.get("id") or number), str(_any_of(row, _DOMAINS, "pairs")), label, first, second)


def _sides(row: Mapping[str, Any], where: str) -> tuple[Any, Any]:
    for one, other in _SIDES:
        if one in row and other in row:
            return row[one], row[other]
    for name in _TOGETHER:
        if isinstance(row.get(name), list) and len(row[name]) == 2:
            return row[name][0], row[name][1]
    raise BadPairs(f"{where} should have two sides, as `first` and `second`")


def _any_of(row: Mapping[str, Any], names: Sequence[str], default: Any) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), default)


def _statement(name: str, side: Any) -> Statement:
    """A side as a memory; an object that has no value of its own is a record."""
    told = isinstance(side, Mapping) and any(each in side for each in _VALUES)
    memory: Mapping[str, Any] = side if told else {"value": side}
    since = {name: _moment(when) for name, names in _MOMENTS.items() if told and (when := _any_of(memory, names, None))}
    return Statement(name, "pairs", memory.get("key") or f"note-{name}", _any_of(memory, _VALUES, ""), **since)


def _moment(text: str) -> datetime:
    when = datetime.fromisoformat(text)
    return when if when.tzinfo else when.replace(tzinfo=UTC)
