"""Agents and their cycles: each is a proposal and then its result, kept so that an agent can go on after any end."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol

from mnemon import journal
from mnemon.access import Access, under
from mnemon.agents import shapes
from mnemon.agents.drafts import Drafts, check_number
from mnemon.agents.rows import SQL, AgentRow, CycleRow, agent_of, cycle_of
from mnemon.agents.steps import Steps, agent_entry, cycle_entry
from mnemon.agents.transfers import Transfers
from mnemon.clock import Clock
from mnemon.errors import ConflictError, InvalidInput
from mnemon.journal import Origin, origin_of
from mnemon.memories import MemoryService
from mnemon.memories.drafts import draft
from mnemon.memories.rows import SQL as MEMORIES
from mnemon.memories.rows import named
from mnemon.memories.writing import Writing
from mnemon.model import Agent, Cycle, CycleStatus, Hit, Memory, MemoryType, Page, Recollection, Resumption
from mnemon.namespaces import EVERYTHING, check_identifier, check_prefix
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Runner, Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import params_of
from mnemon.texts import text_of
from mnemon.workspaces import WorkspaceService

KINDS: Mapping[str, MemoryType] = {
    "observation": MemoryType.EPISODIC,
    "result": MemoryType.EPISODIC,
    "reflection": MemoryType.SEMANTIC,
    "plan": MemoryType.PROCEDURAL,
}
"""What kinds of insight `record_memory` knows, and which type of memory each is unless it is told otherwise."""

_ENDLESS = 2**62
_LAST = "\U0010ffff"  # no namespace sorts after it


class Recalling(Protocol):
    """How memories are recalled: see `HybridMemoryService.recall`."""

    def __call__(self, query: str, *, namespaces: Sequence[str], k: int) -> Awaitable[list[Hit]]: ...


class AgentService:
    """Keeps agents, and what each proposed and what came of it, cycle by cycle.

    An agent has one proposal at a time that waits for its result. Nothing of what it did is overwritten.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        runner: Runner,
        memories: MemoryService,
        writing: Writing,
        workspaces: WorkspaceService,
        recall: Recalling,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._memories = memories
        self._writing = writing
        self._workspaces = workspaces
        self._recall = recall
        self._sealing = writing.sealing
        self._steps = Steps(store, access, writing.sealing)
        self._drafts = Drafts(clock, settings, access)
        self._transfers = Transfers(store, runner, self._steps, self._drafts, workspaces)

    # -- agents

    async def create(
        self,
        agent_id: str | None = None,
        *,
        name: str,
        role: str = "",
        directives: Any = None,
        config: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        workspace_id: str | None = None,
        actor: str | None = None,
    ) -> Agent:
        """Create an agent; what belongs to it is in its namespace, by default `app:agents:<agent_id>`."""
        origin = self._origin(actor)
        row = self._drafts.agent(
            agent_id, namespace, workspace_id, origin.now,
            name=name, role=role, directives={} if directives is None else directives, config=config, metadata=metadata,
        )  # fmt: skip
        await self._sealing.prepare([row.namespace])
        await self._store.write(lambda tx: self._steps.add(tx, origin, row))
        return agent_of(row)

    async def get(self, agent_id: str) -> Agent | None:
        """The agent, or None if there is none."""
        conditions = self._steps.open("read")
        params = {"id": check_identifier("agent_id", agent_id), **params_of(conditions)}
        rows = await self._store.fetch(SQL["get_agent"].where(conditions), params)
        return agent_of((await self._steps.agents(self._store.fetch, rows))[0]) if rows else None

    async def update(
        self,
        agent_id: str,
        *,
        name: str | None = None,
        role: str | None = None,
        directives: Any = None,
        config: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        workspace_id: str | None = None,
        expected_version: int | None = None,
        actor: str | None = None,
    ) -> Agent:
        """Change what is given; the rest stays. A cycle changes no version, so agents may be at work meanwhile."""
        changes = self._drafts.columns(name=name, role=role, directives=directives, config=config, metadata=metadata)
        if workspace_id is not None:
            changes["workspace_id"] = workspace_id
        origin = self._origin(actor)

        async def unit(tx: Transaction) -> Agent:
            row = await self._steps.find(tx, agent_id, "write", lock=True)
            if expected_version not in (None, row.version):
                raise ConflictError(
                    f"agent {agent_id!r} has version {row.version}, not {expected_version}: read it again"
                )
            await self._steps.require_workspace(tx, workspace_id)
            row = row._replace(**changes, version=row.version + 1, updated_at=origin.now)
            await self._steps.change(tx, row)
            await journal.record(tx, [agent_entry(origin, row, "update", {"changed": sorted(changes)})])
            return agent_of(row)

        return await self._store.write(unit)

    async def delete(self, agent_id: str, *, actor: str | None = None) -> None:
        """Delete the agent and its cycles, which cannot be brought back; its memories, workspace and sessions stay."""
        origin = self._origin(actor)

        async def unit(tx: Transaction) -> None:
            row = await self._steps.find(tx, agent_id, "admin", lock=True)
            await tx.execute(SQL["delete_agent"], {"id": agent_id})
            await journal.record(tx, [agent_entry(origin, row, "delete", {"cycles": row.cycle_count})])

        await self._store.write(unit)

    # -- the workflow of a cycle

    async def capture_proposal(
        self,
        agent_id: str,
        proposal: Any,
        *,
        session_id: str | None = None,
        task_id: str | None = None,
        snapshot: int | None = None,
        expected_cycle: int | None = None,
        actor: str | None = None,
    ) -> Cycle:
        """Begin the agent's next cycle with what it wants to do: `CyclePending` if another is not finished.

        The proposal is a JSON object of any shape: see `shapes`. If the agent has a workspace, a snapshot of it is
        taken first, unless the number of one is given. With `expected_cycle`, `ConflictError` if somebody was quicker.
        """
        text = self._drafts.proposal(proposal)
        if snapshot is not None:
            check_number(snapshot, "a snapshot's number")
        origin = self._origin(actor, task_id, session_id)
        agent = await self._store.read(lambda tx: self._steps.ready(tx, agent_id))
        await self._sealing.prepare([agent.namespace])
        if snapshot is None and agent.workspace_id is not None:
            snapshot = await self._take_snapshot(agent.workspace_id, agent, origin)
        row = CycleRow(
            agent_id, 0, session_id, origin.task_id, text, str(CycleStatus.PROPOSED), None, None, "[]",
            agent.workspace_id, snapshot, origin.now, None, None,
        )  # fmt: skip
        return cycle_of(await self._store.write(lambda tx: self._steps.propose(tx, origin, row, expected_cycle)))

    async def capture_result(
        self,
        agent_id: str,
        cycle: int,
        result: Any,
        *,
        artifacts: Iterable[Any] | None = None,
        summary: str | None = None,
        actor: str | None = None,
    ) -> Cycle:
        """Record what came of a cycle, once: the same again is fine, another result is a `ConflictError`.

        The result is a success, an error or an interruption: see `shapes`; or an exception. Artifacts are named by
        their URLs, or by what `artifacts.save` returned.
        """
        outcome = self._drafts.outcome(result, artifacts, summary)
        number, origin = check_number(cycle), self._origin(actor)
        return cycle_of(await self._store.write(lambda tx: self._steps.finish(tx, origin, agent_id, number, outcome)))

    async def succeed(
        self,
        agent_id: str,
        cycle: int,
        outputs: Any = None,
        *,
        artifacts: Iterable[Any] | None = None,
        summary: str | None = None,
        actor: str | None = None,
    ) -> Cycle:
        """Record that the action was done, with what it gave."""
        result = shapes.success(outputs)
        return await self.capture_result(agent_id, cycle, result, artifacts=artifacts, summary=summary, actor=actor)

    async def fail(
        self,
        agent_id: str,
        cycle: int,
        reason: str | BaseException,
        error: Any = None,
        *,
        artifacts: Iterable[Any] | None = None,
        summary: str | None = None,
        actor: str | None = None,
    ) -> Cycle:
        """Record that the action failed, and why; an exception tells the details itself, which are else the `error`."""
        result = shapes.error(reason, error)
        return await self.capture_result(agent_id, cycle, result, artifacts=artifacts, summary=summary, actor=actor)

    async def interrupt(
        self, agent_id: str, cycle: int, feedback: str, *, summary: str | None = None, actor: str | None = None
    ) -> Cycle:
        """Record that somebody stopped the action, and what they said; the agent may propose again then."""
        result = shapes.interruption(feedback)
        return await self.capture_result(agent_id, cycle, result, summary=summary, actor=actor)

    async def summarise(self, agent_id: str, cycle: int, summary: str, *, actor: str | None = None) -> Cycle:
        """Put a cycle into few words, for when there is no place for all of it; again replaces them."""
        number, text, origin = check_number(cycle), self._drafts.text("the summary", summary), self._origin(actor)

        async def unit(tx: Transaction) -> Cycle:
            agent = await self._steps.find(tx, agent_id, "write", lock=True)
            row = (await self._steps.require_cycle(tx, agent_id, number))._replace(summary=text)
            await self._steps.summarise(tx, agent, row)
            told = origin._replace(session_id=row.session_id, task_id=row.task_id)
            await journal.record(tx, [cycle_entry(told, agent, number, "summarise", {})])
            return cycle_of(row)

        return await self._store.write(unit)

    async def record_memory(
        self,
        agent_id: str,
        value: Any,
        *,
        cycle: int | None = None,
        kind: str = "observation",
        key: str | None = None,
        memory_type: str | None = None,
        namespace: str | None = None,
        importance: float | None = None,
        trust: float | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
    ) -> Memory:
        """Remember an insight of the agent, of its newest cycle unless another is named.

        It belongs to the agent's namespace, and knows the cycle's session and task; its thread is the agent's run and
        its position the cycle. With a key it may be told again, as after a crash, without becoming two.
        """
        if kind not in KINDS:
            raise InvalidInput(f"{kind!r:.80} is not a kind of insight; use one of {', '.join(KINDS)}")
        number = None if cycle is None else check_number(cycle)
        agent, row = await self._store.read(lambda tx: self._steps.source(tx, agent_id, number))
        about = {
            "agent_id": agent_id,
            "kind": kind,
            **({} if row is None else {"cycle": row.cycle}),
            **(metadata or {}),
        }
        drafted = draft(
            value, namespace=namespace or agent.namespace, key=key, memory_type=memory_type or KINDS[kind],
            thread=_thread(agent_id), position=row.cycle if row else None, author=agent.name,
            importance=importance, trust=trust, metadata=about, session_id=row.session_id if row else None,
        )  # fmt: skip
        [memory] = await self._memories.put_memories([drafted], actor, row.task_id if row else None)
        return memory

    async def recall(
        self, agent_id: str, query: str, k: int = 10, *, recent: int = 5, namespaces: str | Sequence[str] | None = None
    ) -> list[Recollection]:
        """What the agent knows on a question: the best of its memories, best first, then its newest results in order.

        `namespaces` are searched beside the agent's own.
        """
        resumption = await self.resume(agent_id, recent=recent or 1)
        others = [namespaces] if isinstance(namespaces, str) else [*(namespaces or ())]
        hits = await self._recall(query, namespaces=[resumption.agent.namespace, *others], k=k)
        found = [Recollection(text_of(hit.memory.value), hit) for hit in hits]
        known = {each.text for each in found}
        cycles = [] if recent == 0 else [Recollection(shapes.told(each), None, each) for each in resumption.recent]
        return [*found, *(each for each in cycles if each.text not in known)]

    # -- what was done, and where to go on

    async def cycle(self, agent_id: str, number: int) -> Cycle | None:
        """One cycle, undone or not; None if there is none."""
        wanted = check_number(number)

        async def unit(tx: Transaction) -> Cycle | None:
            await self._steps.find(tx, agent_id)
            row = await self._steps.cycle(tx, agent_id, wanted)
            return cycle_of(row) if row else None

        return await self._store.read(unit)

    async def cycles(
        self,
        agent_id: str,
        *,
        last: int = 50,
        before: int | None = None,
        session_id: str | None = None,
        include_undone: bool = False,
    ) -> list[Cycle]:
        """The newest cycles, the oldest of them first; `before` a number, to go back further."""
        check_limit(last)
        until = None if before is None else check_number(before)
        if session_id is not None:
            check_identifier("session_id", session_id)

        async def unit(tx: Transaction) -> list[CycleRow]:
            await self._steps.find(tx, agent_id)
            return await self._steps.newest(
                tx, agent_id, last, before=until, session_id=session_id, include_undone=include_undone
            )

        return [cycle_of(row) for row in reversed(await self._store.read(unit))]

    async def resume(self, agent_id: str, *, recent: int = 10) -> Resumption:
        """Where the agent stands: what it did last, and the proposal whose result is not known, if there is one."""
        check_limit(recent)
        return await self._store.read(lambda tx: self._steps.standing(tx, agent_id, recent))

    async def rewind(
        self,
        agent_id: str,
        to_cycle: int,
        *,
        restore_workspace: bool = False,
        forget: bool = False,
        actor: str | None = None,
    ) -> Resumption:
        """Undo every cycle after one, or all with 0; where the agent stands then. Nothing is erased.

        `restore_workspace` puts the workspace back to what it was before the first of the undone cycles. `forget`
        deletes, softly, what `record_memory` kept of them in the agent's namespace.
        """
        number, origin = check_number(to_cycle), self._origin(actor)
        if restore_workspace:  # before the cycles are undone, so that after a crash the same call does the rest
            await self._restore_workspace(agent_id, number, actor)

        async def unit(tx: Transaction) -> Resumption:
            agent = await self._steps.find(tx, agent_id, "write", lock=True)
            await self._steps.require_standing(tx, agent_id, number)
            await self._steps.undo(tx, origin, agent, number)
            if forget:
                await self._forget_after(tx, origin, agent, number)
            return await self._steps.standing(tx, agent_id, 10)

        return await self._store.write(unit)

    # -- AutoGPT

    async def import_autogpt(
        self,
        source: "str | PathLike[str] | Mapping[str, Any]",
        *,
        agent_id: str | None = None,
        namespace: str | None = None,
        workspace_id: str | None = None,
        actor: str | None = None,
    ) -> Agent:
        """Make an agent of a state file of AutoGPT's, or of its folder, or of what such a file says.

        Its episodes become cycles, with their results and summaries; the last may be one without a result. An episode
        that never ended and was followed by others is undone. A folder `workspace` beside the file becomes the
        agent's workspace, unless another one is named.
        """
        return await self._transfers.bring(source, self._origin(actor), agent_id, namespace, workspace_id)

    async def export_autogpt(self, agent_id: str) -> dict[str, Any]:
        """The agent and its standing cycles, as a state file of AutoGPT's would have them."""
        return await self._transfers.deliver(agent_id)

    async def list(
        self, namespace_prefix: str = EVERYTHING, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Agent]:
        """The agents at or below a namespace, in order of namespace and id, a page at a time."""
        check_limit(limit)
        prefix = check_prefix(namespace_prefix, self._settings.max_namespace_length)
        after, after_id = decode_cursor(cursor, "agents", ("", ""))
        rows: list[AgentRow] = []
        for part in self._access.within(prefix, "read"):
            below = under("namespace", [part], "within")
            params = {
                "first": part, "end": f"{part};" if part else _LAST, "after": after, "after_id": after_id,
                "limit": limit - len(rows), **below.params,
            }  # fmt: skip
            if len(rows) < limit:
                found = await self._store.fetch(SQL["list_agents"].where([below]), params)
                rows += await self._steps.agents(self._store.fetch, found)
        more = encode_cursor("agents", rows[-1].namespace, rows[-1].id) if len(rows) == limit else None
        return Page(tuple(agent_of(row) for row in rows), more)

    # -- inside

    def _origin(self, actor: str | None, task_id: str | None = None, session_id: str | None = None) -> Origin:
        return origin_of(self._access, self._clock.now(), actor, task_id, None, session_id)

    async def _take_snapshot(self, workspace_id: str, agent: AgentRow, origin: Origin) -> int:
        message = f"before cycle {agent.cycle_count + 1} of agent {agent.id}"
        taken = await self._workspaces.snapshot(workspace_id, message, actor=origin.actor, task_id=origin.task_id)
        return taken.number

    async def _restore_workspace(self, agent_id: str, number: int, actor: str | None) -> None:
        async def unit(tx: Transaction) -> CycleRow | None:
            await self._steps.find(tx, agent_id, "write")
            await self._steps.require_standing(tx, agent_id, number)
            return await self._steps.first_after(tx, agent_id, number)

        first = await self._store.read(unit)
        if first is not None and first.workspace_id is not None and first.snapshot is not None:
            await self._workspaces.restore(first.workspace_id, first.snapshot, actor=actor)

    async def _forget_after(self, tx: Transaction, origin: Origin, agent: AgentRow, number: int) -> None:
        """Delete what was remembered of later cycles; whoever may write the agent may write what is below it."""
        below = under("namespace", [agent.namespace], "within")
        params = {"thread": _thread(agent.id), "first": number + 1, "last": _ENDLESS, "limit": _ENDLESS}
        rows = await tx.fetch_all(MEMORIES["search_thread"].where([below]), {**params, **below.params})
        places = [(row["namespace"], row["key"]) for row in map(named, rows)]
        await self._writing.deleting(places, origin)(tx)


def _thread(agent_id: str) -> str:
    """The thread of an agent's memories, in which a cycle's number is the position."""
    return f"agent:{agent_id}"
