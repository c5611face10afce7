"""Values of agents and their cycles."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from mnemon.model.memories import Hit


class CycleStatus(StrEnum):
    """What became of an agent's proposal; the words are those of AutoGPT's results."""

    PROPOSED = "proposed"
    SUCCESS = "success"
    ERROR = "error"
    INTERRUPTED = "interrupted_by_human"


@dataclass(frozen=True, slots=True)
class Agent:
    """Who acts: its identity, its directives, and what it overrides of the configuration.

    `version` counts the changes of these; `cycle_count` is the number of its newest cycle, undone or not.
    """

    id: str
    namespace: str
    name: str
    role: str
    directives: Any
    config: dict[str, Any]
    metadata: dict[str, Any]
    workspace_id: str | None
    version: int
    cycle_count: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Cycle:
    """One turn of an agent: what it proposed and, once it was done, what came of it.

    `snapshot` is of the workspace as it was before the action. `undone_at` says when a rewinding undid the cycle.
    """

    agent_id: str
    number: int
    session_id: str | None
    task_id: str | None
    proposal: dict[str, Any]
    status: CycleStatus
    result: dict[str, Any] | None
    summary: str | None
    artifacts: tuple[str, ...]
    workspace_id: str | None
    snapshot: int | None
    proposed_at: datetime
    finished_at: datetime | None
    undone_at: datetime | None

    @property
    def is_pending(self) -> bool:
        """Whether its result is still awaited."""
        return self.status is CycleStatus.PROPOSED and self.undone_at is None


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where an agent stands: all that it needs to go on after it ended in whatever way.

    If there is a `pending` cycle, its action was proposed and may have been done, in part or wholly; `snapshot` is of
    the workspace before it.
    """

    agent: Agent
    last: Cycle | None
    """The newest cycle that has a result and was not undone."""
    pending: Cycle | None
    recent: tuple[Cycle, ...]
    """The newest cycles with a result, the oldest of them first."""
    session_id: str | None
    workspace_id: str | None
    snapshot: int | None

    @property
    def next_cycle(self) -> int:
        """The number that the next proposal will get."""
        return self.agent.cycle_count + 1


@dataclass(frozen=True, slots=True)
class Recollection:
    """What comes back to an agent: a memory that answers, or one of its recent cycles; and what it says, as text."""

    text: str
    hit: "Hit | None" = None
    cycle: Cycle | None = None
