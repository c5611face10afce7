"""Agents and cycles as rows, and back."""

from typing import Any, NamedTuple

from mnemon.clock import moment, moment_or_none
from mnemon.encryption.sealing import Layout
from mnemon.model import Agent, Cycle, CycleStatus
from mnemon.sql import load
from mnemon.values import decode


class AgentRow(NamedTuple):
    """A row of `agents`, as every query selects it."""

    id: str
    namespace: str
    name: str
    role: str
    directives: str
    config: str
    metadata: str
    workspace_id: str | None
    version: int
    cycle_count: int
    created_at: int
    updated_at: int


class CycleRow(NamedTuple):
    """A row of `agent_cycles`, as every query selects it."""

    agent_id: str
    cycle: int
    session_id: str | None
    task_id: str | None
    proposal: str
    status: str
    result: str | None
    summary: str | None
    artifacts: str
    workspace_id: str | None
    snapshot: int | None
    proposed_at: int
    finished_at: int | None
    undone_at: int | None


AGENT = Layout("agents", AgentRow._fields)
CYCLE = Layout("agent_cycles", CycleRow._fields)
SQL = {
    name: query.fill(agent=", ".join(AgentRow._fields), cycle=", ".join(CycleRow._fields))
    for name, query in load("agents").items()
}


def agent_of(row: AgentRow) -> Agent:
    """The row as the caller sees it."""
    return Agent(
        row.id,
        row.namespace,
        row.name,
        row.role,
        decode(row.directives),
        decode(row.config),
        decode(row.metadata),
        row.workspace_id,
        row.version,
        row.cycle_count,
        moment(row.created_at),
        moment(row.updated_at),
    )


def cycle_of(row: CycleRow) -> Cycle:
    """The row as the caller sees it."""
    result: dict[str, Any] | None = None if row.result is None else decode(row.result)
    return Cycle(
        row.agent_id,
        row.cycle,
        row.session_id,
        row.task_id,
        decode(row.proposal),
        CycleStatus(row.status),
        result,
        row.summary,
        tuple(decode(row.artifacts)),
        row.workspace_id,
        row.snapshot,
        moment(row.proposed_at),
        moment_or_none(row.finished_at),
        moment_or_none(row.undone_at),
    )
