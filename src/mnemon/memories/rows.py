"""Memories as rows of `memory_entries`, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from mnemon.building import builder
from mnemon.clock import micros_or_none, moment
from mnemon.encryption.sealing import Layout
from mnemon.errors import InvalidInput, InvalidStatus
from mnemon.model import Memory, MemoryType, Placement, Provenance
from mnemon.namespaces import check_key, check_label
from mnemon.ports import Row
from mnemon.sql import load
from mnemon.values import decode_all

COLUMNS = (
    "id", "namespace", "key", "value", "memory_type", "version", "is_deleted", "is_current", "metadata",
    "created_by", "updated_by", "task_id", "created_at", "updated_at",
    "session_id", "event_id", "author", "trust", "importance",
    "thread", "position", "occurred_at", "valid_from", "valid_to",
)  # fmt: skip
LAYOUT = Layout("memory_entries", COLUMNS, ("value", "metadata"))
LONGEST_THREAD = 1024
SQL = {name: query.fill(columns=", ".join(COLUMNS)) for name, query in load("memories").items()}


def named(row: Row) -> dict[str, Any]:
    """A row as the parameters that would write it again."""
    return dict(zip(COLUMNS, row, strict=True))


def stored(row: Mapping[str, Any]) -> Row:
    """The parameters that wrote a row, as the row."""
    return tuple(row[column] for column in COLUMNS)


_memory = builder(Memory)
_provenance = builder(Provenance)
_placement = builder(Placement)
_TYPES = {str(kind): kind for kind in MemoryType}


def memories(rows: Sequence[Row]) -> list[Memory]:
    """Rows as the caller sees them."""
    values = decode_all([row[3] for row in rows])
    metadata = decode_all([row[8] for row in rows])
    return [_read(row, value, about) for row, value, about in zip(rows, values, metadata, strict=True)]


def _read(row: Row, value: Any, about: dict[str, Any]) -> Memory:
    (
        identifier, namespace, key, _, memory_type, version, is_deleted, is_current, _,
        created_by, updated_by, task_id, created_at, updated_at,
        session_id, event_id, author, trust, importance,
        thread, position, occurred_at, valid_from, valid_to,
    ) = row  # fmt: skip
    created = moment(created_at)  # the three are the same until a memory is changed
    updated = created if updated_at == created_at else moment(updated_at)
    holds = updated if valid_from == updated_at else moment(valid_from)
    return _memory(
        identifier, namespace, key, value, _TYPES[memory_type], version, bool(is_deleted), bool(is_current), about,
        created_by, updated_by, task_id, created, updated,
        _provenance(session_id, event_id, author, trust, importance),
        _placement(
            thread,
            position,
            None if occurred_at is None else moment(occurred_at),
            holds,
            None if valid_to is None else moment(valid_to),
        ),
    )  # fmt: skip


def provenance_row(provenance: Provenance) -> dict[str, Any]:
    """The columns of a provenance, checked."""
    for name in ("trust", "importance"):
        share = getattr(provenance, name)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise InvalidInput(f"{name} must be between 0 and 1, not {share!r}")
    return {
        **{name: check_label(name, getattr(provenance, name)) for name in ("session_id", "event_id", "author")},
        "trust": float(provenance.trust), "importance": float(provenance.importance),
    }  # fmt: skip


def placement_row(placement: Placement, now: int) -> dict[str, Any]:
    """The columns of a placement, checked; it holds from when it happened, or else from now."""
    if placement.thread is not None:
        check_key("thread", placement.thread, LONGEST_THREAD)
    elif placement.position is not None:
        raise InvalidInput("a memory has a position only in a thread; give the thread too")
    if placement.position is not None and (not isinstance(placement.position, int) or placement.position < 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"position is a whole number from 0, not {placement.position!r}")
    begins = micros_or_none(placement.valid_from or placement.occurred_at)
    valid_from = now if begins is None else begins
    valid_to = micros_or_none(placement.valid_to)
    if valid_to is not None and valid_to <= valid_from:
        raise InvalidInput("valid_to must be later than valid_from")
    return {
        "thread": placement.thread, "position": placement.position,
        "occurred_at": micros_or_none(placement.occurred_at), "valid_from": valid_from, "valid_to": valid_to,
    }  # fmt: skip


def check_type(memory_type: str) -> MemoryType:
    try:
        return MemoryType(memory_type)
    except ValueError:
        raise InvalidStatus(f"{memory_type!r} is not a memory type; use one of {', '.join(MemoryType)}") from None


def check_types(types: str | Sequence[str] | None) -> list[str]:
    """The types that a search is narrowed to: one, several, or none for all."""
    return [str(check_type(each)) for each in ([types] if isinstance(types, str) else types or ())]
