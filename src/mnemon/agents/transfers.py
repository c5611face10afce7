"""Agents that come from AutoGPT, and go back there."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from mnemon.agents import autogpt
from mnemon.agents.drafts import Drafts
from mnemon.agents.rows import AgentRow, CycleRow, agent_of, cycle_of
from mnemon.agents.steps import Steps
from mnemon.errors import AgentExists, WorkspaceExists
from mnemon.journal import Origin
from mnemon.model import Agent
from mnemon.ports import Runner, Store, Transaction
from mnemon.workspaces import WorkspaceService

_ALL = 2**62


class Transfers:
    """Brings agents in and out."""

    def __init__(
        self, store: Store, runner: Runner, steps: Steps, drafts: Drafts, workspaces: WorkspaceService
    ) -> None:
        self._store = store
        self._runner = runner
        self._steps = steps
        self._drafts = drafts
        self._workspaces = workspaces

    async def bring(
        self,
        source: "str | PathLike[str] | Mapping[str, Any]",
        origin: Origin,
        agent_id: str | None,
        namespace: str | None,
        workspace_id: str | None,
    ) -> Agent:
        """Make an agent of what a state file says, all of it or nothing."""
        found = autogpt.Found(source) if isinstance(source, Mapping) else await self._load(Path(source))
        state = autogpt.read_state(found.told)
        agent = self._drafts.agent(
            agent_id or state.agent_id, namespace, workspace_id, origin.now,
            name=state.name, role=state.role, directives=state.directives, config=state.config,
            metadata={autogpt.KEPT: state.rest} if state.rest else {},
        )._replace(cycle_count=len(state.episodes))  # fmt: skip
        cycles = [self._cycle(agent, number, state, origin.now) for number in range(1, len(state.episodes) + 1)]
        if found.workspace is not None and workspace_id is None:
            agent = agent._replace(workspace_id=await self._bring_workspace(agent, found.workspace, origin))
        await self._store.write(lambda tx: self._steps.add(tx, origin, agent, cycles, "import"))
        return agent_of(agent)

    async def deliver(self, agent_id: str) -> dict[str, Any]:
        """The agent and its standing cycles, as a state file would have them."""

        async def unit(tx: Transaction) -> dict[str, Any]:
            agent = await self._steps.find(tx, agent_id)
            rows = await self._steps.newest(tx, agent_id, _ALL)
            return autogpt.write_state(agent_of(agent), [cycle_of(row) for row in reversed(rows)])

        return await self._store.read(unit, long=True)

    async def _load(self, path: Path) -> autogpt.Found:
        return await self._runner.aside(lambda: autogpt.load(path))

    def _cycle(self, agent: AgentRow, number: int, state: autogpt.State, now: int) -> CycleRow:
        """An episode as a cycle."""
        episode = state.episodes[number - 1]
        row = self._drafts.cycle(agent, number, episode.proposal, episode.result, now)
        is_lost = episode.result is None and number < len(state.episodes)
        summary = None if episode.summary is None else self._drafts.text("the summary", episode.summary)
        return row._replace(summary=summary, undone_at=now if is_lost else None)

    async def _bring_workspace(self, agent: AgentRow, folder: Path, origin: Origin) -> str:
        """The files of a folder as a workspace of the agent's; what an import that was cut off left is gone on with."""
        if await self._store.read(lambda tx: self._steps.is_there(tx, agent.id)):
            raise AgentExists(f"agent {agent.id!r} exists already; choose another id")
        present = await self._workspaces.get(agent.id)
        if present is None:
            await self._workspaces.create(agent.id, namespace=agent.namespace, actor=origin.actor)
        elif present.namespace != agent.namespace:
            raise WorkspaceExists(f"workspace {agent.id!r} exists already, and is not the agent's; say which to use")
        await self._workspaces.import_folder(agent.id, folder, mirror=True, actor=origin.actor)
        return agent.id
