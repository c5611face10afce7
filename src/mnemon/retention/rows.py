"""Archives as rows of `archives`, memories as lines of an archive, and versions as what is told to the decision."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, NamedTuple

import orjson

from mnemon.clock import moment, moment_or_none
from mnemon.episodes.rows import EpisodeRow
from mnemon.errors import ContentCorrupt
from mnemon.memories.rows import COLUMNS
from mnemon.model import Archive, Content
from mnemon.ports import Row
from mnemon.retention.decide import Footprint, VersionSize
from mnemon.sql import load
from mnemon.values import decode

FORMAT = 1
"""What the first line of an archive says, so that an older program refuses a newer one."""
STANDS_FOR = "stands_for"
"""What the metadata of a version has that stands for others: the last of them."""

_KEPT = tuple(column for column in COLUMNS if column != "id")
_NOTHING = "{}"  # as it mostly is
_FLAGS = ("is_deleted", "is_current")


class ArchiveRow(NamedTuple):
    """A row of `archives`, as every query selects it."""

    id: int
    kind: Literal["memories", "episodes"]
    namespace: str
    policy: str
    sha256: str
    size: int
    memories: int
    versions: int
    first_at: int | None
    last_at: int | None
    created_at: int
    restored_at: int | None
    replaced: str | None
    """A content that it had before something was erased from it, and that may still be there."""


SQL = {name: query.fill(columns=", ".join(ArchiveRow._fields)) for name, query in load("retention").items()}


def archive_of(row: ArchiveRow, content: Content) -> Archive:
    """A row as the caller sees it, with its content as that may be told."""
    return Archive(
        row.id,
        row.namespace,
        row.policy,
        content,
        row.memories,
        row.versions,
        moment_or_none(row.first_at),
        moment_or_none(row.last_at),
        moment(row.created_at),
        moment_or_none(row.restored_at),
        row.kind,
    )


class Told(NamedTuple):
    """A row of the query `footprints`."""

    namespace: str
    key: str
    version: int
    memory_type: str
    size: int
    updated_at: int
    importance: float
    metadata: str
    uses: int | None
    used_at: int | None
    restored_at: int | None

    @property
    def place(self) -> tuple[str, str]:
        return self.namespace, self.key


class ToldEpisode(NamedTuple):
    """A row of the query `consolidated_episodes`."""

    id: int
    namespace: str
    size: int
    metadata: str
    consolidated_at: int
    restored_at: int | None

    @property
    def is_pinned(self) -> bool:
        return _is_pinned(self.metadata)

    @property
    def standing_since(self) -> int:
        """When its age begins."""
        return max(self.consolidated_at, self.restored_at or 0)


def footprint_of(versions: Sequence[Told]) -> Footprint:
    """What is told of a memory by all its versions, the oldest first."""
    newest = versions[-1]
    return Footprint(
        newest.namespace,
        newest.key,
        newest.memory_type,
        tuple(VersionSize(each.version, each.size, is_stand_in(each.metadata)) for each in versions),
        newest.updated_at,
        newest.importance,
        _is_pinned(newest.metadata),
        newest.uses or 0,
        newest.used_at,
        newest.restored_at,
    )


def _is_pinned(metadata: str) -> bool:
    return metadata != _NOTHING and decode(metadata).get("pinned") is True


def is_stand_in(metadata: str) -> bool:
    """Whether a version's metadata says that it stands for others."""
    told = None if metadata == _NOTHING else decode(metadata)
    return isinstance(told, dict) and STANDS_FOR in told


# ------------------------------------------------------------------------------------------------------ JSON Lines


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory as an archive has it: its versions, the oldest first, as rows without their ids."""

    namespace: str
    key: str
    versions: tuple[Mapping[str, Any], ...]

    @property
    def is_whole(self) -> bool:
        """Whether the newest version is among them."""
        return bool(self.versions[-1]["is_current"])


def heading(about: Mapping[str, Any]) -> bytes:
    """The first line of an archive, which says what it is."""
    return orjson.dumps({"mnemon_archive": FORMAT, **about}, option=orjson.OPT_APPEND_NEWLINE)


def lines_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """The other lines: each version as it stood in the database."""
    for row in rows:
        kept = {column: row[column] for column in _KEPT} | {flag: bool(row[flag]) for flag in _FLAGS}
        yield orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE)


def read_lines(content: bytes) -> list[Kept]:
    """The memories of an archive; `ContentCorrupt` if it is none, or one of a newer program."""
    rows = _rows(content, set(_KEPT))
    groups = groupby(rows, key=lambda row: (row["namespace"], row["key"]))
    return [Kept(*place, tuple(versions)) for place, versions in groups]


def read_episodes(content: bytes) -> list[dict[str, Any]]:
    """The episodes of an archive, the same way."""
    return _rows(content, set(EpisodeRow._fields))


def _rows(content: bytes, columns: Set[str]) -> list[dict[str, Any]]:
    first, *lines = content.splitlines() or [b""]
    try:
        told = orjson.loads(first)
        rows: list[dict[str, Any]] = [orjson.loads(line) for line in lines]
        if told["mnemon_archive"] != FORMAT or any(row.keys() != columns for row in rows):
            raise ContentCorrupt("the archive was made by another program, or by a newer Mnemon")
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ContentCorrupt(f"this is not an archive: {error}") from None
    return rows


def lines_but(content: bytes, places: Collection[tuple[str, str]]) -> list[bytes]:
    """The lines of an archive without those of some memories."""
    read_lines(content)  # so that nothing is taken for an archive that is none
    first, *lines = content.splitlines(keepends=True)
    told = [orjson.loads(line) for line in lines]
    kept = [line for line, row in zip(lines, told, strict=True) if (row["namespace"], row["key"]) not in places]
    return [first, *kept]


def same(before: Sequence[Row], now: Sequence[Row]) -> bool:
    """Whether rows are as they were."""
    return list(before) == list(now)
