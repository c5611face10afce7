"""Values of episodes: what happened, as it was told, until consolidation makes memories of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class EpisodeKind(StrEnum):
    """What kind of thing happened."""

    CONVERSATION = "conversation"
    TASK_LOG = "task_log"
    NEGOTIATION = "negotiation"


class EpisodeStatus(StrEnum):
    """How far consolidation has come with an episode."""

    PENDING = "pending"
    WORKING = "working"
    CONSOLIDATED = "consolidated"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class EpisodeEntry:
    """One thing that was said or done, by whom and when, as far as that is known."""

    value: Any
    at: datetime | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """What one participant of a negotiation proposed to the others."""

    by: str
    terms: Any
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """Something that happened, with its entries in order.

    `error` says why consolidation failed the last time; `attempts` counts how often it was begun.
    """

    id: int
    namespace: str
    kind: EpisodeKind
    title: str
    entries: tuple[EpisodeEntry, ...]
    participants: tuple[str, ...]
    offers: tuple[Offer, ...]
    outcome: Any
    metadata: Mapping[str, Any]
    session_id: str | None
    task_id: str | None
    status: EpisodeStatus
    attempts: int
    error: str | None
    started_at: datetime
    ended_at: datetime
    created_by: str | None
    created_at: datetime
    consolidated_at: datetime | None
