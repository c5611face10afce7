"""Episodes as rows, and back: the one place that knows how they stand in the database."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from mnemon import journal
from mnemon.clock import micros_or_none, moment, moment_or_none
from mnemon.journal import Origin
from mnemon.model import Episode, EpisodeEntry, EpisodeKind, EpisodeStatus, Offer
from mnemon.sql import load
from mnemon.values import decode


class EpisodeRow(NamedTuple):
    """A row of `episodes`, as every query selects it."""

    id: int
    namespace: str
    kind: str
    title: str
    body: str
    participants: str
    offers: str
    outcome: str | None
    metadata: str
    session_id: str | None
    task_id: str | None
    status: str
    attempts: int
    error: str | None
    claimed_until: int
    started_at: int
    ended_at: int
    created_by: str | None
    created_at: int
    consolidated_at: int | None


SQL = {name: query.fill(columns=", ".join(EpisodeRow._fields)) for name, query in load("episodes").items()}


def new_row(
    origin: Origin,
    *,
    namespace: str,
    kind: str,
    entries: Sequence[EpisodeEntry],
    started_at: int,
    ended_at: int,
    title: str = "",
    participants: str = "[]",
    offers: Sequence[Offer] = (),
    outcome: str | None = None,
    metadata: str = "{}",
) -> EpisodeRow:
    """A pending episode that is to be written; it has no id yet."""
    return EpisodeRow(
        0,
        namespace,
        kind,
        title,
        written([_entry(each) for each in entries]),
        participants,
        written([_offer(each) for each in offers]),
        outcome,
        metadata,
        origin.session_id,
        origin.task_id,
        str(EpisodeStatus.PENDING),
        0,
        None,
        origin.now,
        started_at,
        ended_at,
        origin.actor,
        origin.now,
        None,
    )


def episode_of(row: EpisodeRow) -> Episode:
    """The row as the caller sees it."""
    return Episode(
        row.id,
        row.namespace,
        EpisodeKind(row.kind),
        row.title,
        tuple(EpisodeEntry(each["value"], _moment(each), each.get("author")) for each in decode(row.body)),
        tuple(decode(row.participants)),
        tuple(Offer(each["by"], each["terms"], _moment(each)) for each in decode(row.offers)),
        None if row.outcome is None else decode(row.outcome),
        decode(row.metadata),
        row.session_id,
        row.task_id,
        EpisodeStatus(row.status),
        row.attempts,
        row.error,
        moment(row.started_at),
        moment(row.ended_at),
        row.created_by,
        moment(row.created_at),
        moment_or_none(row.consolidated_at),
    )


def entry_of(origin: Origin, operation: str, namespace: str, episode_id: int, **payload: Any) -> dict[str, Any]:
    """The journal entry of a change of an episode."""
    return journal.entry(origin, "episode", str(episode_id), operation, namespace=namespace, payload=payload)


def written(value: Any) -> str:
    """JSON of what was checked before."""
    return orjson.dumps(value).decode()


def _entry(entry: EpisodeEntry) -> dict[str, Any]:
    return {"value": entry.value, **_told(at=micros_or_none(entry.at), author=entry.author)}


def _offer(offer: Offer) -> dict[str, Any]:
    return {"by": offer.by, "terms": offer.terms, **_told(at=micros_or_none(offer.at))}


def _told(**values: Any) -> dict[str, Any]:
    """Those that are not None: a long episode is mostly this."""
    return {name: value for name, value in values.items() if value is not None}


def _moment(told: Mapping[str, Any]) -> datetime | None:
    return moment_or_none(told.get("at"))
