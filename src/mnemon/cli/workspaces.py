"""The commands for workspaces: their files, snapshots, and the way from and to real folders."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click

from mnemon.cli.output import Bar, counted, note, printable, show_json, show_table
from mnemon.cli.request import JSON_OBJECT, Failure, Interrupted, Request, common, pass_request
from mnemon.model import FileDifference, Page, Snapshot, Workspace, WorkspaceFile
from mnemon.sync import BlockingMemory

_MARKS = {"added": "+", "removed": "-", "changed": "~", "renamed": ">"}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}

_at = click.option("--at", type=int, metavar="NUMBER", help="As it was in this snapshot.")
_prefix = click.option("--prefix", default="", metavar="FOLDER", help="Only this folder of the workspace.")


@click.group()
def workspaces() -> None:
    """Keep an agent's files, with every version of them and snapshots of all.

    \b
    Example:
      mnemon workspaces create web
      mnemon workspaces import web ./site
    """


# ------------------------------------------------------------------------------------------------------- workspaces


@workspaces.command("list")
@click.option("--namespace", "-n", default="", metavar="PREFIX", help="Only those at or below it.")
@click.option("--limit", type=int, default=50, show_default=True, help="How many at the most.")
@common
@pass_request
def list_workspaces(request: Request, namespace: str, limit: int) -> None:
    """List the workspaces, in order of their namespaces.

    \b
    Example:
      mnemon workspaces list --namespace user:alice
    """
    with request.opened(background=False) as memory:
        found = memory.workspaces.list(namespace, limit=limit)
    if request.as_json:
        show_json(found.items)
        return
    rows = [(each.id, each.files, each.size, each.revision, each.namespace) for each in found]
    show_table(("workspace", "files", "bytes", "revision", "namespace"), rows)
    if found.next_cursor:
        note(f"there are more; raise --limit above {limit}")


@workspaces.command()
@click.argument("workspace", required=False)
@click.option("--namespace", "-n", metavar="PATH", help="Where it belongs; without it, app:workspaces:ID.")
@click.option("--metadata", type=JSON_OBJECT, metavar="JSON", help="An object with anything to note.")
@common
@pass_request
def create(request: Request, workspace: str | None, namespace: str | None, metadata: dict[str, Any] | None) -> None:
    """Create an empty workspace; without WORKSPACE it gets an id of its own.

    \b
    Example:
      mnemon workspaces create web --namespace user:alice:web
    """
    with request.opened(create=True, background=False) as memory:
        made = memory.workspaces.create(workspace, namespace=namespace, metadata=metadata)
    _show_workspace(request, made)


@workspaces.command()
@click.argument("workspace")
@click.argument("clone_id", required=False, metavar="[NEW]")
@_at
@click.option("--namespace", "-n", metavar="PATH", help="Where the new one belongs.")
@common
@pass_request
def clone(request: Request, workspace: str, clone_id: str | None, at: int | None, namespace: str | None) -> None:
    """Make a workspace NEW with the files of WORKSPACE; what is in them is not copied.

    \b
    Example:
      mnemon workspaces clone web web-for-bob --at 3
    """
    with request.opened(background=False) as memory:
        made = memory.workspaces.clone(workspace, clone_id, at=at, namespace=namespace)
    _show_workspace(request, made)


@workspaces.command()
@click.argument("workspace")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@common
@pass_request
def delete(request: Request, workspace: str, yes: bool) -> None:
    """Delete WORKSPACE with all versions of its files and its snapshots, for good.

    \b
    Example:
      mnemon workspaces delete web --yes
    """
    with request.opened(background=False) as memory:
        if not yes and not click.confirm(f"Delete workspace {workspace} with its whole history?", err=True):
            raise Failure("nothing was deleted")
        memory.workspaces.delete(workspace)
    if request.as_json:
        show_json({"deleted": workspace})
    else:
        click.echo(f"deleted {printable(workspace)}")


def _show_workspace(request: Request, made: Workspace) -> None:
    if request.as_json:
        show_json(made)
    else:
        click.echo(f"{printable(made.id)}  {counted(made.files, 'file')}, in {printable(made.namespace)}")


# ------------------------------------------------------------------------------------------------------------ files


@workspaces.command()
@click.argument("workspace")
@click.argument("prefix", default="", metavar="[FOLDER]")
@_at
@common
@pass_request
def files(request: Request, workspace: str, prefix: str, at: int | None) -> None:
    """List the files of WORKSPACE, or of a FOLDER in it.

    \b
    Example:
      mnemon workspaces files web src --at 3
    """
    with request.opened(background=False) as memory:
        found = list(_files(memory, workspace, prefix, at))
    if request.as_json:
        show_json(found)
    else:
        rows = [(each.version, each.size, "x" if each.is_executable else "-", each.path) for each in found]
        show_table(("version", "bytes", "run", "path"), rows)


def _files(memory: BlockingMemory, workspace: str, prefix: str, at: int | None) -> Iterator[WorkspaceFile]:
    cursor: str | None = None
    while True:
        page: Page[WorkspaceFile] = memory.workspaces.list_files(workspace, prefix, at=at, cursor=cursor)
        yield from page
        cursor = page.next_cursor
        if cursor is None:
            return


@workspaces.command()
@click.argument("workspace")
@click.argument("path")
@_at
@click.option("--version", type=int, metavar="NUMBER", help="This version of the file.")
@common
@pass_request
def read(request: Request, workspace: str, path: str, at: int | None, version: int | None) -> None:
    """Print what is in the file PATH of WORKSPACE; with --json, what is known of it.

    \b
    Example:
      mnemon workspaces read web index.html --at 3 > old.html
    """
    with request.opened(background=False) as memory:
        if request.as_json:
            show_json(memory.workspaces.stat(workspace, path, at=at, version=version))
            return
        for piece in memory.workspaces.open(workspace, path, at=at, version=version):
            click.echo(piece, nl=False)


@workspaces.command()
@click.argument("workspace")
@click.argument("path")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, allow_dash=True), default="-", metavar="[FILE]")
@click.option("--executable/--plain", default=None, help="Whether it can be run; otherwise as it was.")
@click.option("--metadata", type=JSON_OBJECT, metavar="JSON", help="An object with anything to note of it.")
@click.option("--expect", "expected", type=int, metavar="VERSION", help="Fail if it has another; 0 for a new file.")
@common
@pass_request
def write(
    request: Request,
    workspace: str,
    path: str,
    source: str,
    executable: bool | None,
    metadata: dict[str, Any] | None,
    expected: int | None,
) -> None:
    """Write FILE, or what comes from stdin, to the file PATH of WORKSPACE.

    \b
    Example:
      echo "<h1>Hello</h1>" | mnemon workspaces write web index.html
      mnemon workspaces write web run.sh ./run.sh --executable
    """
    with request.opened(background=False) as memory, click.open_file(source, "rb") as data:
        stream: BinaryIO = data  # pyright: ignore[reportAssignmentType] - open_file does not know the mode
        written = memory.workspaces.write(
            workspace, path, stream, metadata=metadata, is_executable=executable, expected_version=expected
        )
    if request.as_json:
        show_json(written)
    else:
        click.echo(f"{printable(written.path)}  version {written.version}, {written.size} bytes")


# --------------------------------------------------------------------------------------------------------- snapshots


@workspaces.command()
@click.argument("workspace")
@click.option("--message", "-m", default="", help="What to remember of it.")
@common
@pass_request
def snapshot(request: Request, workspace: str, message: str) -> None:
    """Give the present state of WORKSPACE a number.

    \b
    Example:
      mnemon workspaces snapshot web -m "before the redesign"
    """
    with request.opened(background=False) as memory:
        taken = memory.workspaces.snapshot(workspace, message)
    if request.as_json:
        show_json(taken)
    else:
        click.echo(f"snapshot {taken.number}  {counted(taken.files, 'file')}, {counted(taken.size, 'byte')}")


@workspaces.command()
@click.argument("workspace")
@click.option("--limit", type=int, default=20, show_default=True, help="How many at the most.")
@common
@pass_request
def log(request: Request, workspace: str, limit: int) -> None:
    """List the snapshots of WORKSPACE, the newest first.

    \b
    Example:
      mnemon workspaces log web --limit 5
    """
    with request.opened(background=False) as memory:
        found = memory.workspaces.log(workspace, limit=limit)
    if request.as_json:
        show_json(found.items)
    else:
        show_table(("snapshot", "at", "files", "bytes", "message"), [_row(each) for each in found])


def _row(taken: Snapshot) -> tuple[object, ...]:
    return taken.number, f"{taken.created_at:%Y-%m-%d %H:%M:%S}", taken.files, taken.size, taken.message


@workspaces.command()
@click.argument("workspace")
@click.argument("before", type=int)
@click.argument("after", type=int, required=False)
@_prefix
@click.option("--text", "-t", is_flag=True, help="Show what differs in texts, line by line.")
@common
@pass_request
def diff(request: Request, workspace: str, before: int, after: int | None, prefix: str, text: bool) -> None:
    """Show how WORKSPACE differs between snapshot BEFORE and snapshot AFTER, or now.

    \b
    Example:
      mnemon workspaces diff web 3 --text
    """
    with request.opened(background=False) as memory:
        found = memory.workspaces.diff(workspace, before, after, prefix=prefix, text=text)
    _show_differences(request, found)


@workspaces.command()
@click.argument("workspace")
@click.argument("snapshot", type=int)
@_prefix
@common
@pass_request
def restore(request: Request, workspace: str, snapshot: int, prefix: str) -> None:
    """Make the files of WORKSPACE what they were in SNAPSHOT; what was since can still be read.

    \b
    Example:
      mnemon workspaces restore web 3 --prefix src
    """
    with request.opened(background=False) as memory:
        done = memory.workspaces.restore(workspace, snapshot, prefix=prefix)
    _show_differences(request, done)


@workspaces.command()
@click.argument("workspace")
@click.option("--keep", type=int, required=True, metavar="COUNT", help="How many snapshots stay.")
@common
@pass_request
def prune(request: Request, workspace: str, keep: int) -> None:
    """Forget all but the newest snapshots of WORKSPACE, and the versions of files that only those had.

    \b
    Example:
      mnemon workspaces prune web --keep 10
    """
    with request.opened(background=False) as memory:
        done = memory.workspaces.prune(workspace, keep=keep)
    if request.as_json:
        show_json(done)
    else:
        click.echo(f"forgot {counted(done.snapshots, 'snapshot')} and {counted(done.versions, 'version')} of files")


def _show_differences(request: Request, found: Sequence[FileDifference]) -> None:
    if request.as_json:
        show_json(found)
        return
    for each in found:
        old = f"{printable(each.before.path)} " if each.kind == "renamed" and each.before else ""
        mark = _MARKS[each.kind]
        click.secho(f"{old}{mark} {printable(each.path)}" if old else f"{mark} {printable(each.path)}", bold=True)
        for line in (each.text or "").splitlines():
            click.secho(printable(line, keep="\t"), fg=_COLOURS.get(line[:1]))
    if not found and sys.stderr.isatty():
        note("nothing differs")


# ----------------------------------------------------------------------------------------------------- real folders


@workspaces.command("import")
@click.argument("workspace")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--prefix", default="", metavar="FOLDER", help="Where in the workspace.")
@click.option("--ignore", "-i", multiple=True, metavar="PATTERN", help="What to leave out, as in '*.pyc'; repeatable.")
@click.option("--mirror", is_flag=True, help="Remove what the folder does not have.")
@common
@pass_request
def import_folder(
    request: Request, workspace: str, folder: Path, prefix: str, ignore: tuple[str, ...], mirror: bool
) -> None:
    """Write the files of a real FOLDER to WORKSPACE; links are left out.

    \b
    Example:
      mnemon workspaces import web ./site --ignore node_modules --mirror
    """
    with request.opened(background=False) as memory, Bar("importing") as bar:
        try:
            done = memory.workspaces.import_folder(
                workspace, folder, prefix=prefix, ignore=ignore, mirror=mirror, progress=bar.follow
            )
        except KeyboardInterrupt:
            raise Interrupted("interrupted; the same command goes on where this ended") from None
    for each in done.skipped:
        note(f"left out {each}")
    if request.as_json:
        show_json(done)
    else:
        click.echo(
            f"{done.added} added, {done.changed} changed, {done.unchanged} unchanged, {done.removed} removed, "
            f"{len(done.skipped)} left out"
        )


@workspaces.command("export")
@click.argument("workspace")
@click.argument("folder", type=click.Path(path_type=Path))
@_prefix
@_at
@click.option("--overwrite", is_flag=True, help="Write into a folder that is not empty, over files in it.")
@common
@pass_request
def export_folder(request: Request, workspace: str, folder: Path, prefix: str, at: int | None, overwrite: bool) -> None:
    """Write the files of WORKSPACE to a real FOLDER, and nothing outside of it.

    \b
    Example:
      mnemon workspaces export web ./site-of-before --at 3
    """
    with request.opened(background=False) as memory, Bar("exporting") as bar:
        count = memory.workspaces.export_folder(
            workspace, folder, prefix=prefix, at=at, overwrite=overwrite, progress=bar.follow
        )
    if request.as_json:
        show_json({"exported": count, "folder": str(folder)})
    else:
        click.echo(f"exported {counted(count, 'file')} to {printable(str(folder))}")
