"""Values of sessions, their events and state, and tasks."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class SessionStatus(StrEnum):
    """Where a session is in its life; `sessions.TRANSITIONS` says what may follow what."""

    CREATED = "created"
    ACTIVE = "active"
    PAUSED = "paused"
    TERMINATED = "terminated"
    ARCHIVED = "archived"


class TaskStatus(StrEnum):
    """Where a task is in its life; `tasks.TRANSITIONS` says what may follow what."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a session's log. `sequence` counts from 1 within the session."""

    session_id: str
    sequence: int
    id: str
    body: dict[str, Any]
    state_delta: dict[str, Any] | None
    actor: str | None
    task_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """A session; `state` and `events` are filled where the call says so."""

    id: str
    app_name: str
    user_id: str
    project_id: str | None
    status: SessionStatus
    metadata: dict[str, Any]
    version: int
    event_count: int
    archived_count: int
    created_at: datetime
    last_update_time: datetime
    terminated_at: datetime | None
    archived_at: datetime | None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[Event] = field(default_factory=list[Event])


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One state key. `version` grows by one with every change, also over a deletion.

    Only `watch` shows deletions, with `is_deleted` set.
    """

    key: str
    value: Any
    version: int
    updated_at: datetime
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A unit of work; `session_id` is None once its session was deleted."""

    id: str
    session_id: str | None
    parent_id: str | None
    name: str
    status: TaskStatus
    input: Any
    result: Any
    error: str | None
    version: int
    created_at: datetime
    updated_at: datetime
