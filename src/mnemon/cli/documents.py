"""The commands that index documents and keep them in step with their files."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import orjson

from mnemon.cli.output import Bar, counted, note, show_json, show_table
from mnemon.cli.request import JSON_OBJECT, Failure, Interrupted, Request, common, pass_request
from mnemon.errors import DocumentNotFound
from mnemon.model import Document, DocumentReport, DocumentStatus

_LONGEST = 2000  # characters of a chunk that are printed
_NAMESPACE = click.option("--namespace", "-n", required=True, metavar="PATH", help="Where the documents belong.")
_PREFIX = click.option(
    "--namespace", "-n", "prefix", default="", metavar="PREFIX", help="Only at or below it; everything without it."
)
_FOLDER = (
    click.option("--root", type=click.Path(), metavar="FOLDER", help="Call files by their paths from it."),
    click.option("--pattern", "patterns", multiple=True, metavar="PATTERN", help="Only these files; repeatable."),
    click.option("--ignore", multiple=True, metavar="PATTERN", help="Leave these out, as in .gitignore; repeatable."),
    click.option("--keep-missing", is_flag=True, help="Keep documents whose files are gone."),
    click.option("--metadata", type=JSON_OBJECT, metavar="JSON", help="An object to filter by."),
    click.option("--chunk-tokens", type=int, metavar="TOKENS", help="How long a chunk is at the most."),
)  # fmt: skip


def _of_folders(command: Any) -> Any:
    """Gives a command the options that say which files of a folder are taken, and how."""
    for option in reversed(_FOLDER):
        command = option(command)
    return command


@click.group()
def documents() -> None:
    """Index files, so that they can be recalled and cited by their place.

    \b
    Example:
      mnemon documents add docs --namespace project:web:docs
      mnemon recall "how do we deploy?" --namespace project:web:docs
    """


# --------------------------------------------------------------------------------------------------------------- add


@documents.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True))
@_NAMESPACE
@click.option("--name", help="What standard input is called, if a path is -.")
@click.option("--title", help="The title of one file; otherwise it is found in it.")
@click.option(
    "--type", "document_type", metavar="TYPE", help="text, markdown, html, pdf or code, whatever the name says."
)
@_of_folders
@common
@pass_request
def add(
    request: Request, paths: tuple[str, ...], namespace: str, name: str | None, title: str | None,
    document_type: str | None, **options: Any,
) -> None:  # fmt: skip
    """Index files and folders; what has not changed is left alone. Exit code 1 if one cannot be read.

    \b
    Example:
      mnemon documents add README.md docs --namespace project:web:docs --root .
      curl -s https://example.org | mnemon documents add - --name example.html -n project:web:pages
    """
    one = {"title": title, "document_type": document_type}
    if any(one.values()) and (len(paths) > 1 or any(Path(path).is_dir() for path in paths)):
        raise click.UsageError("--title and --type are for one file.")
    if "-" in paths and name is None:
        raise click.UsageError("Say with --name what standard input is called.")
    chosen = _chosen(options)
    single: dict[str, Any] = {**{key: chosen[key] for key in ("root", "metadata", "chunk_tokens")}, **one}
    found: list[Document] = []
    folders: dict[str, DocumentReport] = {}
    with request.opened(create=True) as memory, Bar("indexing") as bar:
        for path in paths:
            if path == "-":
                with click.open_file(path, "rb") as stdin:
                    content = stdin.read()
                found.append(memory.documents.add(name or "", namespace=namespace, content=content, **single))
            elif Path(path).is_dir():
                done = memory.documents.add_folder(path, namespace=namespace, progress=bar.follow, **chosen)
                folders[path] = done
            else:
                found.append(memory.documents.add(path, namespace=namespace, **single))
    if request.as_json:
        show_json({"documents": found, "folders": folders})
    else:
        for document in found:
            click.echo(f"{document.path}: {document.status}, {counted(document.chunk_count, 'chunk')}")
        for path, report in folders.items():
            click.echo(f"{path}: {_told(report)}")
    failed = {document.path: document.error for document in found if document.status is DocumentStatus.FAILED}
    _end(failed | {path: reason for report in folders.values() for path, reason in report.failed.items()})


def _chosen(options: dict[str, Any]) -> dict[str, Any]:
    """The options of folders as the library takes them."""
    return {
        "root": options["root"], "patterns": options["patterns"] or None, "ignore": options["ignore"],
        "delete_missing": not options["keep_missing"], "metadata": options["metadata"],
        "chunk_tokens": options["chunk_tokens"],
    }  # fmt: skip


def _told(report: DocumentReport) -> str:
    counts = {
        "added": len(report.added), "changed": len(report.changed), "unchanged": report.unchanged,
        "removed": len(report.removed), "failed": len(report.failed), "skipped": report.skipped,
    }  # fmt: skip
    told = [f"{number} {name}" for name, number in counts.items() if number] or ["nothing to do"]
    embedded = f"; {report.chunks_embedded} of {counted(report.chunks_written, 'chunk')} embedded"
    return ", ".join(told) + (embedded if report.chunks_written else "")


def _end(failed: Mapping[str, str | None]) -> None:
    """Say what could not be read, if anything, and end accordingly."""
    for path, reason in failed.items():
        note(f"{path}: {reason}")
    if failed:
        raise Failure(f"{len(failed)} could not be read")


# -------------------------------------------------------------------------------------------------- list, show, chunks


@documents.command("list")
@_PREFIX
@click.option("--status", help="Only those that are pending, synced, failed or stale.")
@click.option("--type", "document_type", metavar="TYPE", help="Only text, markdown, html, pdf or code.")
@click.option("--recent", is_flag=True, help="The last changed first.")
@click.option("--limit", type=int, default=50, show_default=True, help="How many at the most.")
@click.option("--cursor", help="Go on after the page that ended with it.")
@common
@pass_request
def list_documents(request: Request, prefix: str, **options: Any) -> None:
    """List documents, with their status.

    \b
    Example:
      mnemon documents list --namespace project:web --status failed
    """
    with request.opened(background=False) as memory:
        page = memory.documents.list(prefix, **options)
    if request.as_json:
        show_json({"documents": page.items, "next_cursor": page.next_cursor})
        return
    if not page:
        note("there are none")
        return
    _show_documents(page.items)
    if page.next_cursor:
        note(f"there are more: --cursor {page.next_cursor}")


def _show_documents(found: Sequence[Document]) -> None:
    rows = [(each.status, each.document_type, each.chunk_count, each.namespace, each.path) for each in found]
    show_table(("status", "type", "chunks", "namespace", "path"), rows, [each.error or "" for each in found])


@documents.command()
@click.argument("path")
@_NAMESPACE
@common
@pass_request
def show(request: Request, path: str, namespace: str) -> None:
    """Show what is known of the document PATH.

    \b
    Example:
      mnemon documents show docs/guide.md --namespace project:web:docs
    """
    with request.opened(background=False) as memory:
        document = memory.documents.get(namespace, path)
    if document is None:
        raise DocumentNotFound(f"{namespace!r} has no document {path!r}")
    if request.as_json:
        show_json(document)
    else:
        show_table(("", ""), [(name.replace("_", " "), value) for name, value in asdict(document).items()])


@documents.command()
@click.argument("path")
@_NAMESPACE
@common
@pass_request
def chunks(request: Request, path: str, namespace: str) -> None:
    """Show the chunks of the document PATH, in order.

    \b
    Example:
      mnemon documents chunks docs/guide.md --namespace project:web:docs
    """
    with request.opened(background=False) as memory:
        found = memory.documents.chunks(namespace, path)
    if request.as_json:
        show_json(found)
        return
    rows = [
        (
            each.position,
            f"page {each.page}" if each.page is not None else f"{each.first_line}-{each.last_line}",
            " > ".join(each.headings),
            each.text[:_LONGEST],
        )
        for each in found
    ]
    show_table(("chunk", "place", "headings", "text"), rows)


# ----------------------------------------------------------------------------------------------- remove, retry, check


@documents.command()
@click.argument("paths", nargs=-1, required=True)
@_NAMESPACE
@common
@pass_request
def remove(request: Request, paths: tuple[str, ...], namespace: str) -> None:
    """Forget the documents PATHS, and delete their chunks softly.

    \b
    Example:
      mnemon documents remove docs/old.md --namespace project:web:docs
    """
    with request.opened() as memory:
        removed = {path: memory.documents.remove(namespace, path) for path in paths}
    if request.as_json:
        show_json({"removed": removed})
    else:
        for path, number in removed.items():
            click.echo(f"removed {path}, {counted(number, 'chunk')}")


@documents.command()
@_PREFIX
@click.option("--stale", is_flag=True, help="Also those that differ from their files.")
@common
@pass_request
def retry(request: Request, prefix: str, stale: bool) -> None:
    """Index again what failed or was interrupted; exit code 1 if something cannot be read still.

    \b
    Example:
      mnemon documents retry --stale
    """
    with request.opened() as memory, Bar("indexing") as bar:
        report = memory.documents.retry(prefix, stale=stale, progress=bar.follow)
    if request.as_json:
        show_json(report)
    else:
        click.echo(_told(report))
    _end(report.failed)


@documents.command()
@_PREFIX
@common
@pass_request
@click.pass_context
def check(ctx: click.Context, request: Request, prefix: str) -> None:
    """Compare documents with their files, and mark those that differ as stale; exit code 1 if there are any.

    \b
    Example:
      mnemon documents check --namespace project:web
    """
    with request.opened(background=False) as memory:
        stale = memory.documents.check(prefix)
    if request.as_json:
        show_json({"stale": stale})
    elif stale:
        _show_documents(stale)
    else:
        click.echo("every document is as its file")
    if stale:
        ctx.exit(Failure.exit_code)


# ------------------------------------------------------------------------------------------------------------- watch


@documents.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False))
@_NAMESPACE
@_of_folders
@common
@pass_request
def watch(request: Request, folder: str, namespace: str, **options: Any) -> None:
    """Index FOLDER, and then whatever changes in it, until Ctrl-C; with --json, a line for each report.

    \b
    Example:
      mnemon documents watch docs --namespace project:web:docs --root .
    """
    with request.opened(create=True) as memory:
        try:
            for report in memory.documents.watch(folder, namespace=namespace, **_chosen(options)):
                if request.as_json:
                    click.echo(orjson.dumps(report, default=dict).decode())
                else:
                    click.echo(_told(report))
                    for path, reason in report.failed.items():
                        note(f"{path}: {reason}")
        except KeyboardInterrupt:
            raise Interrupted("interrupted; what was indexed stays") from None
