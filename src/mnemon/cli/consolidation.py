"""The commands that consolidate memories, and decide what is left to a person."""

from typing import Any

import click

from mnemon.cli.output import Bar, counted, note, show_json, show_table
from mnemon.cli.request import Request, common, pass_request
from mnemon.cli.worker import sentence_of
from mnemon.model import (
    ConsolidationReport,
    ConsolidationStrategy,
    EpisodeStatus,
    FlowReport,
    MemoryConflict,
    MemoryVersion,
    Review,
)
from mnemon.texts import text_of

_LONGEST = 2000  # characters of a memory's text that are printed
_STRATEGIES = [str(each) for each in ConsolidationStrategy]

# ------------------------------------------------------------------------------------------------------- consolidate


@click.command()
@click.argument("namespace", required=False)
@click.option(
    "--strategy", type=click.Choice(_STRATEGIES), help="Which memory is to stay; llm_based if it is not said."
)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only memories of this type; repeatable.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option(
    "--idle", type=float, metavar="SECONDS",
    help="Without NAMESPACE: leave buffers alone that were used since; 0 if it is not said.",
)  # fmt: skip
@common
@pass_request
def consolidate(
    request: Request,
    namespace: str | None,
    strategy: str | None,
    types: tuple[str, ...],
    dry_run: bool,
    idle: float | None,
) -> None:
    """Make one of memories at or below NAMESPACE that say the same or deny each other.

    What is given up is deleted softly, and can be restored. Without NAMESPACE everything that waits in working memory
    flows into long-term memory, once, as `mnemon worker` does it for ever.

    \b
    Example:
      mnemon consolidate user:alice --strategy latest_wins --dry-run
      mnemon consolidate user:alice --strategy review
      mnemon consolidate
    """
    if namespace is None:
        if strategy or types or dry_run:
            raise click.UsageError("--strategy, --type and --dry-run are for the memories of a NAMESPACE.")
        _flow(request, idle or 0.0)
        return
    if idle is not None:
        raise click.UsageError("--idle is for what waits in working memory: leave NAMESPACE out.")
    with request.opened() as memory:
        report = memory.consolidate(namespace, strategy or "llm_based", dry_run, types=list(types) or None)
    if request.as_json:
        show_json({**_fields(report), "applied": report.applied, "skipped": report.skipped})
        return
    if report.steps:
        rows = [
            (step.status, step.kept.key, ", ".join(each.key for each in step.retired), text_of(step.value, _LONGEST))
            for step in report.steps
        ]
        show_table(("status", "kept", "given up", "text"), rows, [step.reason for step in report.steps])
    for each in report.for_review:
        click.echo(f"to be decided: {_place(each.first)} and {_place(each.second)}, {each.kind}{_doubt(each)}")
    for each in report.suspected:
        click.echo(f"suspected: {_place(each.first)} and {_place(each.second)}, {each.kind} ({each.score:.2f})")
    for reason, times in report.fallbacks.items():
        note(f"the language model did not decide about {times}: {reason}")
    planned = sum(step.status == "planned" for step in report.steps)
    told = f"{planned} planned" if dry_run else f"{report.applied} applied, {report.skipped} skipped"
    click.echo(
        f"{counted(report.examined, 'memory')}, {counted(report.findings, 'finding')}: {told}, "
        f"{len(report.for_review)} for review{_suspects(report)} ({report.strategy_used})"
    )


def _flow(request: Request, idle: float) -> None:
    """Let everything that waits flow into long-term memory."""
    with request.opened(consolidate_after=None) as memory, Bar("consolidating") as bar:

        def show(report: FlowReport) -> None:
            done = report.summaries + report.failed
            waiting = memory.episodes.counts()
            left = waiting[EpisodeStatus.PENDING] + waiting[EpisodeStatus.WORKING]
            bar.show(done, done + left, sentence_of(report))

        report = memory.consolidation.flow(idle, progress=show if bar.is_shown else None)
    if request.as_json:
        show_json(report)
    else:
        click.echo(sentence_of(report))


def _fields(report: ConsolidationReport) -> dict[str, Any]:
    return {name: getattr(report, name) for name in report.__slots__}


def _doubt(conflict: MemoryConflict) -> str:
    return "" if conflict.certainty == "certain" else " (suspected)"


def _suspects(report: ConsolidationReport) -> str:
    return f", {len(report.suspected)} suspected" if report.suspected else ""


def _place(version: MemoryVersion) -> str:
    return f"{version.namespace}/{version.key}"


# ----------------------------------------------------------------------------------------------------------- reviews


@click.group()
def reviews() -> None:
    """Decide which of two memories is right.

    \b
    Example:
      mnemon reviews list
      mnemon reviews decide 3 second
    """


@reviews.command("list")
@click.option("--namespace", "-n", "prefix", default="", metavar="PREFIX", help="Only at or below it.")
@click.option("--status", default="open", show_default=True, help="open, applied, rejected, outdated or all.")
@click.option("--limit", type=int, default=50, show_default=True, help="How many at the most.")
@click.option("--cursor", help="Go on after the page that ended with it.")
@common
@pass_request
def list_reviews(request: Request, prefix: str, status: str, limit: int, cursor: str | None) -> None:
    """List what is to be decided, or was.

    \b
    Example:
      mnemon reviews list --namespace user:alice
    """
    wanted = None if status == "all" else status
    with request.opened(background=False) as memory:
        page = memory.consolidation.reviews(wanted, namespace_prefix=prefix, limit=limit, cursor=cursor)
    if request.as_json:
        show_json({"reviews": page.items, "next_cursor": page.next_cursor})
        return
    if not page:
        note("there are none")
        return
    rows = [(each.id, each.status, each.kind, each.namespace, _told(each, "first")) for each in page]
    show_table(("id", "status", "kind", "namespace", "memories"), rows, [_told(each, "second") for each in page])
    if page.next_cursor:
        note(f"there are more: --cursor {page.next_cursor}")


def _told(review: Review, which: str) -> str:
    memory = review.first if which == "first" else review.second
    return f"{which}: " + ("(erased)" if memory is None else f"{memory.key}: {text_of(memory.value, _LONGEST)}")


@reviews.command()
@click.argument("review_id", type=int)
@click.argument("choice", type=click.Choice(("first", "second", "both", "merge")))
@click.argument("text", required=False)
@common
@pass_request
def decide(request: Request, review_id: int, choice: str, text: str | None) -> None:
    """Decide REVIEW_ID: the first is right, or the second, both stay, or merge them into TEXT.

    \b
    Example:
      mnemon reviews decide 3 second
      mnemon reviews decide 4 merge "Alice lived in Bergen and now lives in Oslo"
    """
    if (choice == "merge") != (text is not None):
        raise click.UsageError("Give TEXT with merge, and only then.")
    with request.opened() as memory:
        review = memory.consolidation.decide(review_id, choice, text)
    if request.as_json:
        show_json(review)
    else:
        click.echo(f"review {review.id}: {review.status}")
