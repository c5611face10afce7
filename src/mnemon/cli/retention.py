"""The commands that keep the database within its policies."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from mnemon.cli.output import counted, note, show_json, show_table
from mnemon.cli.request import Failure, Request, common, pass_request
from mnemon.model import Archive, GrowthReport, GrowthSample, Page, PolicyUse, RetentionPlan
from mnemon.sync import BlockingMemory

_BAR = 40
_ROWS = 14
_THOUSAND = 1000
_prefix = click.option("--namespace", "-n", "prefix", default="", metavar="PREFIX", help="Only at or below it.")


@click.group()
def retention() -> None:
    """Remove what is too old, too large or of no use any more, as the setting `retention` says.

    \b
    Example:
      mnemon retention plan
      mnemon retention apply --namespace user:alice
      mnemon retention report
    """


@retention.command()
@_prefix
@common
@pass_request
def plan(request: Request, prefix: str) -> None:
    """Show what would be removed, and do nothing.

    \b
    Example:
      mnemon retention plan --namespace user:alice
    """
    with request.opened(background=False) as memory:
        _show(request, memory.retention.plan(prefix))


@retention.command()
@_prefix
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@common
@pass_request
def apply(request: Request, prefix: str, dry_run: bool, yes: bool) -> None:
    """Remove what the policies say; it goes into archives first.

    It shows what and asks before; without a terminal it refuses to, unless told --yes.

    \b
    Example:
      mnemon retention apply --dry-run
      mnemon retention apply --yes
    """
    with request.opened(retention_interval=None) as memory:
        if not yes and not dry_run and not _confirmed(memory, prefix):
            raise Failure("nothing was removed")
        _show(request, memory.retention.apply(prefix, dry_run))


def _confirmed(memory: BlockingMemory, prefix: str) -> bool:
    plan = memory.retention.plan(prefix)
    if not plan.actions:
        return True
    _table(plan, err=True)
    question = f"remove {counted(len(plan.actions), 'memory')}, or old versions, with {told_size(plan.size)}"
    if not sys.stdin.isatty():
        raise click.UsageError(f"This would {question}: there is no terminal to ask at, so say --yes.")
    return click.confirm(question[0].upper() + question[1:] + "?", err=True)


@retention.command()
@click.argument("archive_id", type=int)
@common
@pass_request
def restore(request: Request, archive_id: int) -> None:
    """Bring the memories of ARCHIVE_ID back, with all their versions; `retention report` lists the archives.

    \b
    Example:
      mnemon retention restore 3
    """
    with request.opened(retention_interval=None) as memory:
        report = memory.retention.restore(archive_id)
    if request.as_json:
        show_json(report)
        return
    for namespace, key in report.skipped:
        note(f"left out, as its place is taken: {namespace}/{key}")
    if report.archive.kind == "episodes":
        click.echo(f"{counted(report.memories, 'episode')} restored, {len(report.skipped)} left out")
        return
    restored = f"{counted(report.memories, 'memory')} and {counted(report.versions, 'version')}"
    click.echo(f"{restored} restored, {len(report.skipped)} left out")


@retention.command()
@click.argument("archive_id", type=int)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@common
@pass_request
def discard(request: Request, archive_id: int, yes: bool) -> None:
    """Give up ARCHIVE_ID and what is in it, for good.

    \b
    Example:
      mnemon retention discard 3 --yes
    """
    with request.opened(retention_interval=None) as memory:
        if not yes and not sys.stdin.isatty():
            raise click.UsageError("This cannot be undone: there is no terminal to ask at, so say --yes.")
        if not yes and not click.confirm(f"Discard archive {archive_id}, for good?", err=True):
            raise Failure("nothing was discarded")
        memory.retention.discard(archive_id)
    if request.as_json:
        show_json({"discarded": archive_id})
    else:
        click.echo(f"discarded archive {archive_id}")


@retention.command()
@_prefix
@click.option("--limit", type=int, default=50, show_default=True, help="How many archives at the most.")
@click.option("--cursor", help="Go on after the page of archives that ended with it.")
@common
@pass_request
def report(request: Request, prefix: str, limit: int, cursor: str | None) -> None:
    """Show how much there is under each policy, what archives there are, and how quickly all of it grows.

    Each report is a sample that later ones compare with.

    \b
    Example:
      mnemon retention report
    """
    with request.opened(retention_interval=None) as memory:
        growth = memory.retention.growth()
        archives = memory.retention.archives(prefix, limit=limit, cursor=cursor)
        policies = memory.retention.plan(prefix).policies
        runs = memory.audit(entity="retention", limit=1).items
    last = runs[0].at if runs else None
    if request.as_json:
        told: dict[str, Any] = {"is_alarming": growth.is_alarming, "growth": growth, "applied_at": last}
        show_json({**told, "policies": policies, "archives": archives.items, "next_cursor": archives.next_cursor})
        return
    _show_policies(policies)
    _show_archives(archives)
    _plot(growth)
    when = f"{last:%Y-%m-%d %H:%M}" if last else "never"
    size, weekly = told_size(growth.now.size), told_size(growth.weekly)
    click.echo(
        f"{size}, {weekly} more in a week, {growth.now.detail['memories']} memories; policies last applied: {when}"
    )
    if growth.is_alarming:
        note(f"it grows more quickly than growth_alert allows, which is {told_size(growth.limit or 0)} in a week")


def _show_policies(policies: Sequence[PolicyUse]) -> None:
    rows = [
        (told_size(each.size), each.memories, each.versions, each.pinned, each.episodes, each.policy or "(none)")
        for each in policies
    ]
    if rows:
        show_table(("size", "memories", "versions", "pinned", "episodes", "policy"), rows)
        click.echo()


def _show_archives(archives: Page[Archive]) -> None:
    rows = [
        (
            each.id, each.policy, each.kind, each.memories, each.versions, told_size(each.content.size),
            f"{each.created_at:%Y-%m-%d}", each.namespace,
        )
        for each in archives
    ]  # fmt: skip
    if rows:
        show_table(("archive", "policy", "of", "number", "versions", "size", "made", "namespace"), rows)
        click.echo()
    if archives.next_cursor:
        note(f"there are more: --cursor {archives.next_cursor}")


def _plot(growth: GrowthReport) -> None:
    """How large everything was, day by day or week by week, as bars."""
    samples = spread([*growth.samples, growth.now])
    most = max(each.size for each in samples) or 1
    rows = [
        (f"{each.at:%Y-%m-%d}", told_size(each.size), "#" * max(1, round(_BAR * each.size / most))) for each in samples
    ]
    show_table(("day", "size", "growth"), rows)
    click.echo()


def spread(samples: Sequence[GrowthSample]) -> list[GrowthSample]:
    """The last sample of each day; if those are many, of each week, and of these the last ones."""
    days = {each.at.date(): each for each in samples}
    if len(days) <= _ROWS:
        return list(days.values())
    weeks = {day.isocalendar()[:2]: each for day, each in days.items()}
    return list(weeks.values())[-_ROWS:]


def told_size(size: int) -> str:
    """Bytes as people read them."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(amount) < _THOUSAND:
            return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= _THOUSAND
    return f"{amount:.1f} TB"


def _show(request: Request, plan: RetentionPlan) -> None:
    if request.as_json:
        fields = {name: getattr(plan, name) for name in plan.__slots__}
        show_json({**fields, "applied": plan.applied, "size": plan.size})
        return
    _table(plan)
    done = f"{len(plan.actions)} planned" if plan.is_dry_run else f"{plan.applied} applied"
    memories = sum(use.memories for use in plan.policies)
    archived = "" if plan.is_dry_run else f", {counted(len(plan.archives), 'archive')}"
    click.echo(f"{counted(memories, 'memory')}: {done}, {told_size(plan.size)}{archived}")
    if plan.growth is not None and plan.growth.is_alarming:
        note(f"it grew by {told_size(plan.growth.weekly)} in a week, which is more than growth_alert allows")


def _table(plan: RetentionPlan, *, err: bool = False) -> None:
    rows = [
        (each.status, each.policy, each.reason, each.versions, f"{each.namespace}/{each.key}") for each in plan.actions
    ]
    if rows:
        show_table(("status", "policy", "reason", "versions", "memory"), rows, err=err)
