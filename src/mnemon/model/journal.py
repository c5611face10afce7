"""Values of the journal: changes, and whether they are as they were sealed."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Change:
    """One journal entry. It says what changed, never the content: read that from the entity."""

    position: int
    at: datetime
    actor: str | None
    entity: str
    entity_id: str
    operation: str
    version: int | None
    namespace: str | None
    user_id: str | None
    session_id: str | None
    task_id: str | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Flaw:
    """A range of the journal that is not as it was sealed."""

    first: int
    last: int
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What checking the journal's seals found. `head` can be kept elsewhere as an anchor."""

    sealed: int
    unsealed: int
    head: str | None
    flaws: tuple[Flaw, ...]

    @property
    def intact(self) -> bool:
        return not self.flaws
