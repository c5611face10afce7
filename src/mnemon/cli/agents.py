"""The commands that show agents and what they did, and bring them in and out."""

from collections.abc import Sequence
from pathlib import Path

import click

from mnemon.agents.shapes import action_of, outcome_of
from mnemon.cli.output import note, show_json, show_table
from mnemon.cli.request import Failure, Request, common, pass_request
from mnemon.model import Agent, Cycle, Resumption
from mnemon.texts import text_of

_LONGEST = 2000  # characters of what a cycle says that are printed


@click.group()
def agents() -> None:
    """See which agents there are and what they did; take them back, bring them in and out.

    \b
    Example:
      mnemon agents list
    """


# ---------------------------------------------------------------------------------------------------- what there is


@agents.command(name="list")
@click.option("--namespace", "-n", default="", metavar="PREFIX", help="Only those at or below it.")
@click.option("--limit", type=int, default=50, show_default=True, help="How many at the most.")
@common
@pass_request
def list_agents(request: Request, namespace: str, limit: int) -> None:
    """List the agents, in order of their namespaces.

    \b
    Example:
      mnemon agents list --namespace project:web
    """
    with request.opened(background=False) as memory:
        page = memory.agents.list(namespace, limit=limit)
    if request.as_json:
        show_json(page.items)
        return
    if page:
        rows = [(each.id, each.cycle_count, each.namespace, each.name) for each in page]
        show_table(("agent", "cycles", "namespace", "name"), rows)
    else:
        note("there are no agents")
    if page.next_cursor:
        note(f"there are more; raise --limit above {limit}")


@agents.command()
@click.argument("agent_id")
@common
@pass_request
def show(request: Request, agent_id: str) -> None:
    """Show who AGENT_ID is: its role, directives and configuration.

    \b
    Example:
      mnemon agents show scout
    """
    with request.opened(background=False) as memory:
        agent = memory.agents.get(agent_id)
    if agent is None:
        raise Failure(f"no agent {agent_id!r}")
    if request.as_json:
        show_json(agent)
    else:
        _show_agent(agent)


def _show_agent(agent: Agent) -> None:
    rows = [
        ("agent", agent.id),
        ("name", agent.name),
        ("role", agent.role),
        ("namespace", agent.namespace),
        ("workspace", agent.workspace_id or "none"),
        ("cycles", agent.cycle_count),
        ("version", agent.version),
        *(
            (f"{name}", line)
            for name in ("directives", "config")
            for line in text_of(getattr(agent, name)).splitlines()
        ),
    ]
    show_table(("what", "is"), rows)


@agents.command()
@click.argument("agent_id")
@click.option("--last", type=int, default=20, show_default=True, help="How many of the newest.")
@click.option("--before", type=int, metavar="CYCLE", help="Only those before this one.")
@click.option("--session", "session_id", metavar="ID", help="Only those of a session.")
@click.option("--undone", "include_undone", is_flag=True, help="Also those that were undone.")
@common
@pass_request
def cycles(
    request: Request, agent_id: str, last: int, before: int | None, session_id: str | None, include_undone: bool
) -> None:
    """Show what AGENT_ID did, cycle by cycle, the newest last.

    \b
    Example:
      mnemon agents cycles scout --last 5
      mnemon agents cycles scout --undone --json
    """
    with request.opened(background=False) as memory:
        found = memory.agents.cycles(
            agent_id, last=last, before=before, session_id=session_id, include_undone=include_undone
        )
    if request.as_json:
        show_json(found)
    elif found:
        _show_cycles(found)
    else:
        note("there are no cycles")


def _show_cycles(cycles: Sequence[Cycle]) -> None:
    rows = [(each.number, f"{each.status}{', undone' if each.undone_at else ''}", _told(each)) for each in cycles]
    show_table(("cycle", "status", "what"), rows)


def _told(cycle: Cycle) -> str:
    if cycle.summary:
        return cycle.summary
    came = "" if cycle.result is None else outcome_of(cycle.result)[:_LONGEST]
    return f"{action_of(cycle.proposal)} -> {came}" if came else action_of(cycle.proposal)


# --------------------------------------------------------------------------------------------- going on, going back


@agents.command()
@click.argument("agent_id")
@click.option("--recent", type=int, default=5, show_default=True, help="How many of the newest cycles.")
@common
@pass_request
def resume(request: Request, agent_id: str, recent: int) -> None:
    """Show where AGENT_ID stands: its last cycles, and the proposal whose result is not known.

    \b
    Example:
      mnemon agents resume scout
    """
    with request.opened(background=False) as memory:
        stand = memory.agents.resume(agent_id, recent=recent)
    _show_stand(request, stand)


@agents.command()
@click.argument("agent_id")
@click.argument("to_cycle", type=int)
@click.option("--workspace", "restore_workspace", is_flag=True, help="Put the workspace back to what it was then, too.")
@click.option("--forget", is_flag=True, help="Forget, softly, what was remembered of the cycles that are undone.")
@common
@pass_request
def rewind(request: Request, agent_id: str, to_cycle: int, restore_workspace: bool, forget: bool) -> None:
    """Undo every cycle of AGENT_ID after TO_CYCLE; 0 undoes all. Nothing is erased.

    \b
    Example:
      mnemon agents rewind scout 7 --workspace
    """
    with request.opened() as memory:
        stand = memory.agents.rewind(agent_id, to_cycle, restore_workspace=restore_workspace, forget=forget)
    _show_stand(request, stand)


def _show_stand(request: Request, stand: Resumption) -> None:
    if request.as_json:
        show_json({**{name: getattr(stand, name) for name in stand.__slots__}, "next_cycle": stand.next_cycle})
        return
    shown = [*stand.recent, *([stand.pending] if stand.pending else [])]
    if shown:
        _show_cycles(shown)
    waits = f"cycle {stand.pending.number} waits for its result" if stand.pending else "nothing is pending"
    where = "" if stand.snapshot is None else f"; the workspace before the last is snapshot {stand.snapshot}"
    note(f"{waits}; the next cycle is {stand.next_cycle}{where}")


# --------------------------------------------------------------------------------------------------------- AutoGPT


@agents.command(name="import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--id", "agent_id", help="What the agent is to be called; otherwise as the file says.")
@click.option("--namespace", "-n", metavar="PATH", help="Where it belongs; otherwise app:agents:<id>.")
@click.option("--workspace", "workspace_id", metavar="ID", help="A workspace for it that is there already.")
@common
@pass_request
def import_agent(
    request: Request, path: Path, agent_id: str | None, namespace: str | None, workspace_id: str | None
) -> None:
    """Make an agent of a state file of AutoGPT's classic agent, or of the folder that it is in.

    \b
    Example:
      mnemon agents import data/agents/OrderGPT-1f2e3d4c
      mnemon agents import state.json --id clerk --namespace project:orders:clerk
    """
    with request.opened(create=True) as memory:
        agent = memory.agents.import_autogpt(path, agent_id=agent_id, namespace=namespace, workspace_id=workspace_id)
    if request.as_json:
        show_json(agent)
    else:
        click.echo(f"{agent.id}  {agent.cycle_count} cycles")


@agents.command(name="export")
@click.argument("agent_id")
@common
@pass_request
def export_agent(request: Request, agent_id: str) -> None:
    """Print AGENT_ID and its cycles as a state file of AutoGPT's classic agent.

    \b
    Example:
      mnemon agents export scout > state.json
    """
    with request.opened(background=False) as memory:
        show_json(memory.agents.export_autogpt(agent_id))
