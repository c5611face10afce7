"""The commands for the files of sessions."""

import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import click

from mnemon.cli.output import Bar, counted, note, show_json, show_table
from mnemon.cli.request import JSON_OBJECT, Failure, Request, common, pass_request
from mnemon.errors import InvalidInput
from mnemon.model import Artifact, ContentReport, Page
from mnemon.sync import BlockingArtifact, BlockingMemory

_PIECE = 1 << 18
_SCHEME = "mnemon:"


@click.group()
def artifacts() -> None:
    """Save, read and look after the files of sessions.

    \b
    Example:
      mnemon artifacts save s1 report.pdf --file out/report.pdf
      mnemon artifacts list s1
    """


def _version(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--version", "-v", type=int, help="Which version; the current one otherwise.")(command)


# ------------------------------------------------------------------------------------------------- saving and reading


@artifacts.command()
@click.argument("session")
@click.argument("name")
@click.option(
    "--file", "-f", type=click.Path(exists=True, dir_okay=False, allow_dash=True), default="-", metavar="FILE",
    help="What to save; - is stdin, which is the default.",
)  # fmt: skip
@click.option("--content-type", metavar="TYPE", help="As in application/pdf; guessed from NAME otherwise.")
@click.option("--metadata", type=JSON_OBJECT, metavar="JSON", help="An object to keep with it.")
@click.option("--actor", help="Who saves it.")
@common
@pass_request
def save(request: Request, session: str, name: str, file: str, **options: Any) -> None:
    """Save a file, or stdin, as the next version of NAME in SESSION.

    \b
    Example:
      mnemon artifacts save s1 reports/q3.pdf --file q3.pdf
      pg_dump web | mnemon artifacts save s1 web.sql
    """
    size = 0 if file == "-" else Path(file).stat().st_size
    with request.opened() as memory, click.open_file(file, "rb") as opened, Bar("saving") as bar:
        saved = memory.artifacts.save(session, name, stream=_followed(opened, size, bar), **options)
    if request.as_json:
        show_json(saved)
    else:
        click.echo(f"{saved.url}  {saved.size} bytes")


def _followed(file: Any, size: int, bar: Bar) -> Iterator[bytes]:
    done = 0
    while piece := file.read(_PIECE):
        yield piece
        done += len(piece)
        if size:
            bar.show(min(done, size), size, f"{done >> 20} MB")


@artifacts.command()
@click.argument("session_or_url")
@click.argument("name", required=False)
@_version
@common
@pass_request
def get(request: Request, session_or_url: str, name: str | None, version: int | None) -> None:
    """Show what is known of an artifact, by its session and NAME or by its URL.

    \b
    Example:
      mnemon artifacts get s1 reports/q3.pdf
      mnemon artifacts get "mnemon://artifacts/s1/reports/q3.pdf?version=2" --json
    """
    with request.opened(background=False) as memory:
        found = _find(memory, session_or_url, name, version)
    if request.as_json:
        show_json(found)
        return
    for label, value in (
        ("url", found.url), ("type", found.content_type), ("size", found.size), ("sha256", found.sha256),
        ("saved", f"{found.created_at:%Y-%m-%d %H:%M:%S} UTC"), ("by", found.created_by or "-"),
        ("file", found.file_name), ("metadata", found.metadata),
    ):  # fmt: skip
        click.echo(f"{label:10}{value}")


@artifacts.command()
@click.argument("session_or_url")
@click.argument("name", required=False)
@_version
@click.option("--output", "-o", type=click.Path(dir_okay=False), metavar="FILE", help="Write there, not to stdout.")
@common
@pass_request
def cat(request: Request, session_or_url: str, name: str | None, version: int | None, output: str | None) -> None:
    """Write the content of an artifact to stdout, or to a file; it is verified on the way.

    If the content turns out to be damaged, its end is not written, no file is made, and the exit code is 1.

    \b
    Example:
      mnemon artifacts cat s1 reports/q3.pdf > q3.pdf
      mnemon artifacts cat s1 web.sql --version 1 --output web.sql
    """
    with request.opened(background=False) as memory:
        found = _find(memory, session_or_url, name, version)
        with memory.artifacts.open(found.session_id, found.name, found.version) as source:
            if output is None:
                _copy(source, sys.stdout.buffer)
                return
            _write(source, Path(output), found.size)
    if request.as_json:
        show_json(found)
    else:
        note(f"{output}: {found.size} bytes")


def _write(source: BlockingArtifact, target: Path, size: int) -> None:
    """The whole file or none: it gets its name when it is complete."""
    draft = target.with_name(f".{target.name[:200]}.part")
    try:
        with draft.open("xb") as file, Bar("reading") as bar:
            _copy(source, file, lambda done: bar.show(done, size, f"{done >> 20} MB"))
        draft.replace(target)
    except FileExistsError:
        raise InvalidInput(f"{draft} is there: somebody else writes it, or was interrupted; remove it first") from None
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _copy(source: BlockingArtifact, target: BinaryIO, told: Callable[[int], object] = lambda done: None) -> None:
    done = 0
    while piece := source.read(_PIECE):
        target.write(piece)
        done += len(piece)
        told(done)


def _find(memory: BlockingMemory, session_or_url: str, name: str | None, version: int | None) -> Artifact:
    if name is None:
        if not session_or_url.startswith(_SCHEME):
            raise click.UsageError("Give a session and a name, or a URL.")
        if version is not None:
            raise click.UsageError("A URL says the version itself.")
        return memory.artifacts.resolve(session_or_url)
    found = memory.artifacts.get(session_or_url, name, version)
    if found is None:
        which = "" if version is None else f" in version {version}"
        raise Failure(f"session {session_or_url!r} has no artifact {name!r}{which}")
    return found


# ------------------------------------------------------------------------------------------------------------ lists


@artifacts.command("list")
@click.argument("session")
@click.option("--prefix", help="Only names that begin so, as reports/.")
@click.option("--limit", type=int, default=100, show_default=True, help="How many at the most.")
@common
@pass_request
def list_(request: Request, session: str, prefix: str | None, limit: int) -> None:
    """List the artifacts of SESSION in their current versions.

    \b
    Example:
      mnemon artifacts list s1 --prefix reports/
    """
    with request.opened(background=False) as memory:
        _show(request, memory.artifacts.list(session, prefix=prefix, limit=limit))


@artifacts.command()
@click.argument("session")
@click.argument("name")
@click.option("--deleted", is_flag=True, help="Show those that were deleted too.")
@click.option("--limit", type=int, default=100, show_default=True, help="How many at the most.")
@common
@pass_request
def versions(request: Request, session: str, name: str, deleted: bool, limit: int) -> None:
    """List the versions of an artifact, the newest first.

    \b
    Example:
      mnemon artifacts versions s1 reports/q3.pdf
    """
    with request.opened(background=False) as memory:
        _show(request, memory.artifacts.versions(session, name, deleted=deleted, limit=limit))


def _show(request: Request, found: Page[Artifact]) -> None:
    if request.as_json:
        show_json(list(found))
    elif found:
        rows = [
            (each.version, each.size, f"{each.created_at:%Y-%m-%d %H:%M}", each.content_type,
             f"{each.name} (deleted)" if each.is_deleted else each.name)
            for each in found
        ]  # fmt: skip
        show_table(("version", "size", "saved", "type", "name"), rows)
        if found.next_cursor:
            note("there are more: raise --limit")
    else:
        note("there are none")


# --------------------------------------------------------------------------------------------------------- deleting


@artifacts.command()
@click.argument("session")
@click.argument("name")
@click.option("--version", "-v", type=int, help="Which version; all otherwise.")
@common
@pass_request
def delete(request: Request, session: str, name: str, version: int | None) -> None:
    """Delete an artifact, or one version of it, softly: `restore` brings it back until `cleanup` removes it.

    \b
    Example:
      mnemon artifacts delete s1 reports/q3.pdf --version 2
    """
    with request.opened() as memory:
        _tell(request, "deleted", memory.artifacts.delete(session, name, version))


@artifacts.command()
@click.argument("session")
@click.argument("name")
@click.option("--version", "-v", type=int, help="Which version; all otherwise.")
@common
@pass_request
def restore(request: Request, session: str, name: str, version: int | None) -> None:
    """Bring back what was deleted.

    \b
    Example:
      mnemon artifacts restore s1 reports/q3.pdf
    """
    with request.opened() as memory:
        _tell(request, "restored", memory.artifacts.restore(session, name, version))


def _tell(request: Request, done: str, count: int) -> None:
    if request.as_json:
        show_json({done: count})
    else:
        click.echo(f"{done} {counted(count, 'version')}")


# ----------------------------------------------------------------------------------------------------------- upkeep


@artifacts.command()
@click.option("--quick", is_flag=True, help="Only look whether each content is there, rather than read it.")
@common
@pass_request
@click.pass_context
def verify(ctx: click.Context, request: Request, quick: bool) -> None:
    """Look for contents that are missing, corrupt or orphaned, of workspaces too; exit code 1 if any is.

    Orphaned content has no record; `cleanup` removes it.

    \b
    Example:
      mnemon artifacts verify
    """
    with request.opened(background=False) as memory, Bar("verifying") as bar:
        report = memory.artifacts.verify(deep=not quick, progress=bar.follow)
    if request.as_json:
        show_json(report)
    else:
        _show_report(report)
    if report.flaws:
        ctx.exit(Failure.exit_code)


def _show_report(report: ContentReport) -> None:
    if report.flaws:
        rows: Sequence[Sequence[object]] = [
            (flaw.kind, flaw.sha256, ", ".join(flaw.used_by) or "nothing") for flaw in report.flaws
        ]
        show_table(("is", "content", "used by"), rows)
    pending = f", {report.pending} without a record yet" if report.pending else ""
    click.echo(f"{report.checked} contents in use, {report.stored} kept in {report.size} bytes{pending}")


@artifacts.command()
@click.option("--keep-days", type=float, default=30.0, show_default=True, help="How long what was deleted stays.")
@click.option("--grace-minutes", type=float, default=60.0, show_default=True, help="… and content without a record.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@common
@pass_request
def cleanup(request: Request, keep_days: float, grace_minutes: float, dry_run: bool) -> None:
    """Remove what was deleted long ago, and content that nothing refers to, for good.

    \b
    Example:
      mnemon artifacts cleanup --dry-run
      mnemon artifacts cleanup --keep-days 7
    """
    with request.opened(background=False) as memory:
        done = memory.artifacts.cleanup(
            keep_deleted=_span("--keep-days", days=keep_days),
            grace=_span("--grace-minutes", minutes=grace_minutes),
            dry_run=dry_run,
        )
    if request.as_json:
        show_json(done)
    else:
        verb = "would remove" if dry_run else "removed"
        click.echo(
            f"{verb} {done.versions} deleted versions, {done.contents} contents ({done.freed} bytes) "
            f"and {done.folders} folders"
        )


def _span(option: str, **parts: float) -> timedelta:
    try:
        return timedelta(**parts)
    except (OverflowError, ValueError):
        raise click.UsageError(f"{option} is too much.") from None


@artifacts.command()
@click.argument("session", required=False)
@common
@pass_request
def rebuild(request: Request, session: str | None) -> None:
    """Make the folder and the manifest of SESSION, or of all sessions, anew from the database.

    \b
    Example:
      mnemon artifacts rebuild
    """
    with request.opened(background=False) as memory:
        count = memory.artifacts.rebuild(session)
    if request.as_json:
        show_json({"rebuilt": count})
    else:
        click.echo(f"rebuilt {counted(count, 'session')}")
