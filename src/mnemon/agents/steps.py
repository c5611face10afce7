"""The steps of an agent's life: each is for inside a transaction, and looks no further than the caller may."""

from collections.abc import Mapping, Sequence
from typing import Any

from mnemon import journal
from mnemon.access import Access, under
from mnemon.agents.drafts import Outcome
from mnemon.agents.rows import AGENT, CYCLE, SQL, AgentRow, CycleRow, agent_of, cycle_of
from mnemon.encryption.keys import Fetch
from mnemon.encryption.sealing import Sealing
from mnemon.errors import (
    AgentExists,
    AgentNotFound,
    ConflictError,
    CycleNotFound,
    CyclePending,
    SessionNotFound,
    WorkspaceNotFound,
)
from mnemon.journal import Origin
from mnemon.model import CycleStatus, Level, Resumption
from mnemon.namespaces import check_identifier
from mnemon.ports import Row, Store, Transaction
from mnemon.sql import Fragment, equal, load, params_of

_SESSIONS = load("sessions")
_LAST = 2**63 - 1  # no cycle has a higher number


class Steps:
    """Reads and changes the rows of agents and cycles, and writes the journal of it."""

    def __init__(self, store: Store, access: Access, sealing: Sealing) -> None:
        self._store = store
        self._access = access
        self._sealing = sealing

    # -- agents

    async def find(self, tx: Transaction, agent_id: str, level: Level = "read", *, lock: bool = False) -> AgentRow:
        """The agent, if it is open to the caller; `AgentNotFound` otherwise."""
        conditions = self.open(level)
        params = {"id": check_identifier("agent_id", agent_id), **params_of(conditions)}
        query = SQL["get_agent"].where(conditions, self._store.dialect.row_lock if lock else "")
        row = await tx.fetch_one(query, params)
        if row is None:
            raise AgentNotFound(f"no agent {agent_id!r}; create it with agents.create")
        return (await self.agents(tx.fetch_all, [row]))[0]

    async def add(
        self, tx: Transaction, origin: Origin, row: AgentRow, cycles: Sequence[CycleRow] = (), operation: str = "create"
    ) -> None:
        """A new agent, and what it did elsewhere before."""
        await self.require_workspace(tx, row.workspace_id)
        written = await self._sealing.sealed(tx, AGENT, row._asdict())
        if not await tx.execute(SQL["insert_agent"], {**written, "now": origin.now}):
            raise AgentExists(f"agent {row.id!r} exists already; choose another id")
        await tx.execute_many(SQL["insert_cycle"], await self._sealed(tx, row, cycles))
        imported = [cycle_entry(origin, row, each.cycle, operation, {"status": each.status}) for each in cycles]
        await journal.record(tx, [agent_entry(origin, row, operation), *imported])

    async def change(self, tx: Transaction, row: AgentRow) -> None:
        """Write what an agent is to be."""
        await tx.execute(SQL["set_agent"], await self._sealing.sealed(tx, AGENT, row._asdict()))

    async def agents(self, fetch: Fetch, rows: Sequence[Row]) -> list[AgentRow]:
        """Rows of agents as they were before they were encrypted, if they were."""
        return [AgentRow(*row) for row in await self._sealing.opened(fetch, AGENT, rows)]

    async def require_workspace(self, tx: Transaction, workspace_id: str | None) -> None:
        """`WorkspaceNotFound` unless there is no need of one, or the caller may write it."""
        if workspace_id is None:
            return
        conditions = self.open("write")
        params = {"id": check_identifier("workspace_id", workspace_id), **params_of(conditions)}
        if await tx.fetch_one(SQL["find_workspace"].where(conditions), params) is None:
            raise WorkspaceNotFound(f"no workspace {workspace_id!r}; create it with workspaces.create")

    def open(self, level: Level) -> list[Fragment]:
        """The conditions that keep a query on `agents` or `workspaces` to what is open to the caller."""
        prefixes = self._access.prefixes(level)
        return [] if "" in prefixes else [under("namespace", prefixes, "open")]

    async def is_there(self, tx: Transaction, agent_id: str) -> bool:
        """Whether the id is taken, whoever may know of it."""
        return await tx.fetch_one(SQL["get_agent"].where([]), {"id": agent_id}) is not None

    # -- cycles

    async def newest(
        self,
        tx: Transaction,
        agent_id: str,
        limit: int,
        *,
        before: int | None = None,
        session_id: str | None = None,
        include_undone: bool = False,
    ) -> list[CycleRow]:
        """Some of the agent's cycles, the newest first."""
        conditions = [] if include_undone else [Fragment("undone_at IS NULL")]
        if session_id is not None:
            query = SQL["list_of_session"].where(conditions)
        else:
            query = SQL["list_cycles" if include_undone else "list_standing"].where([])
        params = {
            "agent_id": agent_id, "limit": limit, "before": _LAST if before is None else before,
            **params_of(equal(session_id=session_id)),
        }  # fmt: skip
        return await self._cycles(tx, await tx.fetch_all(query, params))

    async def cycle(self, tx: Transaction, agent_id: str, number: int) -> CycleRow | None:
        found = await self._cycles(tx, await tx.fetch_all(SQL["get_cycle"], {"agent_id": agent_id, "cycle": number}))
        return found[0] if found else None

    async def require_cycle(self, tx: Transaction, agent_id: str, number: int) -> CycleRow:
        row = await self.cycle(tx, agent_id, number)
        if row is None:
            raise CycleNotFound(f"agent {agent_id!r} has no cycle {number}")
        return row

    async def require_standing(self, tx: Transaction, agent_id: str, number: int) -> None:
        """Refuse what an agent cannot go back to: only a cycle that was not undone, or 0."""
        row = await self.require_cycle(tx, agent_id, number) if number else None
        if row is not None and row.undone_at is not None:
            raise ConflictError(f"cycle {number} of agent {agent_id!r} was undone, so there is no going back to it")

    async def first_after(self, tx: Transaction, agent_id: str, number: int) -> CycleRow | None:
        """The first standing cycle after one."""
        found = await self._cycles(tx, await tx.fetch_all(SQL["first_after"], {"agent_id": agent_id, "cycle": number}))
        return found[0] if found else None

    async def source(self, tx: Transaction, agent_id: str, number: int | None) -> tuple[AgentRow, CycleRow | None]:
        """The agent, and the cycle that an insight is of: the newest, unless another is named."""
        agent = await self.find(tx, agent_id)
        if number is not None:
            return agent, await self.require_cycle(tx, agent_id, number)
        newest = await self.newest(tx, agent_id, 1)
        return agent, newest[0] if newest else None

    async def standing(self, tx: Transaction, agent_id: str, recent: int) -> Resumption:
        """Where the agent stands."""
        agent = await self.find(tx, agent_id)
        newest = [cycle_of(row) for row in await self.newest(tx, agent_id, recent + 1)]
        pending = newest[0] if newest and newest[0].is_pending else None
        finished = [each for each in newest if not each.is_pending][:recent]
        current = newest[0] if newest else None
        return Resumption(
            agent_of(agent),
            finished[0] if finished else None,
            pending,
            tuple(reversed(finished)),
            current.session_id if current else None,
            agent.workspace_id,
            next((each.snapshot for each in newest if each.snapshot is not None), None),
        )

    async def ready(self, tx: Transaction, agent_id: str) -> AgentRow:
        """The agent, if it may make a proposal."""
        agent = await self.find(tx, agent_id, "write")
        await self.refuse_pending(tx, agent_id)
        return agent

    async def refuse_pending(self, tx: Transaction, agent_id: str) -> None:
        """`CyclePending` if the agent's newest proposal has no result."""
        newest = await self.newest(tx, agent_id, 1)
        if newest and newest[0].status == CycleStatus.PROPOSED:
            raise CyclePending(
                f"cycle {newest[0].cycle} of agent {agent_id!r} has no result yet: record it, interrupt it, or undo it "
                f"with rewind"
            )

    async def propose(self, tx: Transaction, origin: Origin, row: CycleRow, expected: int | None) -> CycleRow:
        """Begin the agent's next cycle; `row` has everything but its number."""
        agent = await self.find(tx, row.agent_id, "write", lock=True)
        await self.refuse_pending(tx, agent.id)
        number = agent.cycle_count + 1
        if expected not in (None, number):
            raise ConflictError(f"the next cycle of agent {agent.id!r} is {number}, not {expected}: resume it again")
        await self.require_session(tx, row.session_id)
        row = row._replace(cycle=number)
        await tx.execute_many(SQL["insert_cycle"], await self._sealed(tx, agent, [row]))
        await tx.execute(SQL["count_cycle"], {"id": agent.id, "cycle": number, "now": origin.now})
        about = {} if row.snapshot is None else {"snapshot": row.snapshot}
        await journal.record(tx, [cycle_entry(origin, agent, number, "propose", about)])
        return row

    async def require_session(self, tx: Transaction, session_id: str | None) -> None:
        """`SessionNotFound` unless there is no need of one, or the caller may write it."""
        if session_id is None:
            return
        conditions = self._access.sessions("write")
        params = {"id": check_identifier("session_id", session_id), **params_of(conditions)}
        if await tx.fetch_one(_SESSIONS["get_session"].where(conditions), params) is None:
            raise SessionNotFound(f"no session {session_id!r}; create it with create_session")

    async def finish(self, tx: Transaction, origin: Origin, agent_id: str, number: int, outcome: Outcome) -> CycleRow:
        """Record what came of a cycle; the same again changes nothing, and anything else is a conflict."""
        agent = await self.find(tx, agent_id, "write", lock=True)
        row = await self.require_cycle(tx, agent_id, number)
        if row.result is not None:
            if outcome.agrees_with(row):
                return row
            raise ConflictError(f"cycle {number} of agent {agent_id!r} has another result: it is {row.status}")
        if row.undone_at is not None:
            raise ConflictError(f"cycle {number} of agent {agent_id!r} was undone: resume the agent again")
        row = row._replace(
            status=outcome.status, result=outcome.result, summary=outcome.summary,
            artifacts=outcome.artifacts or row.artifacts, finished_at=origin.now,
        )  # fmt: skip
        await tx.execute_many(SQL["set_result"], await self._sealed(tx, agent, [row]))
        origin = origin._replace(session_id=row.session_id, task_id=origin.task_id or row.task_id)
        await journal.record(tx, [cycle_entry(origin, agent, number, "result", {"status": row.status})])
        return row

    async def summarise(self, tx: Transaction, agent: AgentRow, row: CycleRow) -> None:
        """Write the summary of a cycle."""
        await tx.execute_many(SQL["set_summary"], await self._sealed(tx, agent, [row]))

    async def _sealed(self, tx: Transaction, agent: AgentRow, rows: Sequence[CycleRow]) -> Sequence[Mapping[str, Any]]:
        """Cycles as they are to be written: encrypted, if what lies in the agent's namespace is."""
        scope = await self._sealing.scope_at(tx.fetch_all, agent.namespace)
        return await self._sealing.sealed_in(tx, scope, CYCLE, [row._asdict() for row in rows])

    async def _cycles(self, tx: Transaction, rows: Sequence[Row]) -> list[CycleRow]:
        return [CycleRow(*row) for row in await self._sealing.opened(tx.fetch_all, CYCLE, rows)]

    async def undo(self, tx: Transaction, origin: Origin, agent: AgentRow, number: int) -> int:
        """Undo every standing cycle after one; how many."""
        undone = await tx.execute(SQL["undo_cycles"], {"agent_id": agent.id, "cycle": number, "now": origin.now})
        if undone:
            await journal.record(tx, [agent_entry(origin, agent, "rewind", {"to": number, "undone": undone})])
        return undone


def agent_entry(
    origin: Origin, agent: AgentRow, operation: str, payload: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The journal entry of a change of an agent."""
    return journal.entry(
        origin, "agent", agent.id, operation, namespace=agent.namespace, version=agent.version, payload=payload
    )


def cycle_entry(
    origin: Origin, agent: AgentRow, number: int, operation: str, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """The journal entry of a change of a cycle; whose session it was in is for those who may read that."""
    about = {"cycle": number, **payload}
    identifier = f"{agent.id}:{number}"
    return journal.entry(origin, "cycle", identifier, operation, namespace=agent.namespace, payload=about, shared=True)
