"""The commands that show episodes, and how far consolidation has come with them."""

import click

from mnemon.cli.output import note, show_json, show_table
from mnemon.cli.request import Request, common, pass_request
from mnemon.model import Episode
from mnemon.texts import text_of

_LONGEST = 2000  # characters of an episode that are printed


@click.group()
def episodes() -> None:
    """See what happened, and how far consolidation has come with it.

    \b
    Example:
      mnemon episodes counts
      mnemon episodes list --status failed
      mnemon episodes retry
    """


@episodes.command("list")
@click.option("--namespace", "-n", default="", metavar="PREFIX", help="Only at or below it.")
@click.option("--status", help="Only pending, working, consolidated or failed ones.")
@click.option("--kind", help="Only conversations, task_logs or negotiations: conversation, task_log, negotiation.")
@click.option("--session", "session_id", metavar="ID", help="Only of this session.")
@click.option("--limit", type=int, default=20, show_default=True, help="How many at the most.")
@click.option("--cursor", help="Go on after the page that ended with it.")
@common
@pass_request
def list_episodes(
    request: Request,
    namespace: str,
    status: str | None,
    kind: str | None,
    session_id: str | None,
    limit: int,
    cursor: str | None,
) -> None:
    """List episodes, the newest first.

    \b
    Example:
      mnemon episodes list --namespace user:alice --status failed
    """
    with request.opened(background=False) as memory:
        page = memory.episodes.list(
            status=status, kind=kind, namespace=namespace, session_id=session_id, limit=limit, cursor=cursor
        )
    if request.as_json:
        show_json({"episodes": page.items, "next_cursor": page.next_cursor})
        return
    if not page:
        note("there are none")
        return
    rows = [(each.id, each.status, each.kind, each.namespace, _told(each)) for each in page]
    errors = [f"{each.attempts} attempts: {each.error}" if each.error else "" for each in page]
    show_table(("id", "status", "kind", "namespace", "what"), rows, errors)
    if page.next_cursor:
        note(f"there are more: --cursor {page.next_cursor}")


def _told(episode: Episode) -> str:
    first = text_of(episode.entries[0].value, _LONGEST) if episode.entries else ""
    return f"{episode.title or first} ({len(episode.entries)} entries)"


@episodes.command()
@click.option("--namespace", "-n", default="", metavar="PREFIX", help="Only at or below it.")
@common
@pass_request
def counts(request: Request, namespace: str) -> None:
    """Count episodes by how far consolidation has come.

    \b
    Example:
      mnemon episodes counts
    """
    with request.opened(background=False) as memory:
        found = memory.episodes.counts(namespace)
    if request.as_json:
        show_json({str(status): count for status, count in found.items()})
    else:
        show_table(("status", "episodes"), [(str(status), count) for status, count in found.items()])


@episodes.command()
@click.argument("episode_id", type=int, required=False)
@click.option("--namespace", "-n", default="", metavar="PREFIX", help="Without an id: all at or below it.")
@common
@pass_request
def retry(request: Request, episode_id: int | None, namespace: str) -> None:
    """Let the failed episode EPISODE_ID be consolidated again, or all that have failed.

    \b
    Example:
      mnemon episodes retry 12
      mnemon episodes retry
    """
    with request.opened(background=False) as memory:
        number = memory.episodes.retry(episode_id, namespace=namespace)
    if request.as_json:
        show_json({"retried": number})
    else:
        click.echo(f"{number} will be tried again")
