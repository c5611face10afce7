"""Values of working memory: buffers and scratchpads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, overload


@dataclass(frozen=True, slots=True)
class WorkingItem:
    """Something that stands in a session's buffer until it is drained. `tokens` is its length."""

    sequence: int
    value: Any
    tokens: int
    created_by: str | None
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class DrainedBatch(Sequence[WorkingItem]):
    """Items that were handed out to one worker; nobody else gets them before `until`. See `acknowledge`."""

    session_id: str
    buffer: str
    token: str
    items: tuple[WorkingItem, ...]
    until: datetime

    @overload
    def __getitem__(self, index: int) -> WorkingItem: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[WorkingItem, ...]: ...
    def __getitem__(self, index: int | slice) -> WorkingItem | tuple[WorkingItem, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class BufferStatus:
    """A session's buffer: how much is in it, handed out or not."""

    session_id: str
    name: str
    items: int
    tokens: int
    last_sequence: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Scratchpad:
    """A value that a session works with for now."""

    name: str
    value: Any
    version: int
    updated_by: str | None
    updated_at: datetime
    expires_at: datetime | None
