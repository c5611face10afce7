"""The commands that remember, recall and forget."""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from mnemon.cli import notes
from mnemon.cli.notes import Note
from mnemon.cli.output import Bar, counted, note, show_json, show_table
from mnemon.cli.request import JSON_OBJECT, MOMENT, Failure, Interrupted, Request, common, pass_request
from mnemon.errors import InvalidInput
from mnemon.model import Hit, Memory
from mnemon.sync import BlockingMemory
from mnemon.texts import text_of

_LONGEST = 2000  # characters of a memory's text that are printed
_MOST_NAMESPACES = 1000

# ---------------------------------------------------------------------------------------------------------- remember


@click.command()
@click.argument("text", required=False)
@click.option("--namespace", "-n", metavar="PATH", help="Where it belongs, as in user:alice:profile.")
@click.option("--key", help="What it is called there; under a key that is there it becomes the next version.")
@click.option("--type", "memory_type", metavar="TYPE", help="semantic (the default), episodic or procedural.")
@click.option("--author", help="Who says so.")
@click.option("--thread", help="The conversation, document or run that it is part of.")
@click.option("--position", type=int, help="Its place in the thread.")
@click.option("--occurred-at", type=MOMENT, metavar="ISO", help="When it happened; UTC if there is no time zone.")
@click.option("--importance", type=float, help="How much it weighs, from 0 to 1.")
@click.option("--trust", type=float, help="How far to trust it, from 0 to 1.")
@click.option("--metadata", type=JSON_OBJECT, metavar="JSON", help="An object to filter by.")
@click.option(
    "--file", "-f", type=click.Path(exists=True, dir_okay=False, allow_dash=True), metavar="FILE",
    help="Remember every line of it: .jsonl, .txt, or - for stdin.",
)  # fmt: skip
@common
@pass_request
def remember(request: Request, text: str | None, file: str | None, **options: Any) -> None:
    """Remember TEXT, or every line of a file; it can be recalled when this ends.

    A line that is a JSON object has the arguments of `remember`: text or value, namespace, key,
    memory_type, author, thread, position, occurred_at, importance, trust, metadata. What it does not say
    comes from the options.

    \b
    Example:
      mnemon remember "Alice lives in Oslo" --namespace user:alice --key city
      mnemon remember --file notes.jsonl --namespace project:web
      git log --format=%s | mnemon remember --file - --namespace project:web:commits
    """
    given = {name: value for name, value in options.items() if value is not None}
    if (text is None) == (file is None):
        raise click.UsageError("Give either TEXT or --file.")
    if file is not None:
        _remember_lines(request, file, given)
        return
    if "namespace" not in given:
        raise click.UsageError("Missing option '--namespace'.")
    with request.opened(create=True) as memory:
        stored = memory.remember(text, **given)
    if request.as_json:
        show_json(stored)
    else:
        click.echo(f"{_place(stored)}  version {stored.version}")


def _remember_lines(request: Request, file: str, usual: dict[str, Any]) -> None:
    alone = sorted(usual.keys() & {"key", "position"})
    if alone:
        raise click.UsageError(f"--{alone[0]} is for one memory; with --file, say it in the lines.")
    done: list[dict[str, Any]] = []
    try:
        with request.opened(create=True) as memory:
            for stored in _stored(memory, file, usual):
                done += [{"namespace": one.namespace, "key": one.key, "version": one.version} for one in stored]
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; remembered: {counted(len(done), 'memory')}") from None
    except InvalidInput as error:
        raise InvalidInput(f"{error}; remembered before that: {counted(len(done), 'memory')}") from error
    if request.as_json:
        show_json({"remembered": len(done), "memories": done})
    else:
        click.echo(f"remembered {len(done)}")


def _stored(memory: BlockingMemory, file: str, usual: dict[str, Any]) -> Iterator[list[Memory]]:
    """What was remembered of a file, batch after batch."""
    size = 0 if file == "-" else Path(file).stat().st_size
    with click.open_file(file, "rb") as opened, Bar("remembering") as bar:
        for batch in notes.batches(opened, notes.form_of(file), usual):
            yield _store(memory, batch)
            if size:
                bar.show(min(batch[-1].end, size), size, f"{batch[-1].line} lines")


def _store(memory: BlockingMemory, batch: list[Note]) -> list[Memory]:
    try:
        return memory.remember_many([each.draft for each in batch])
    except InvalidInput as error:
        raise InvalidInput(f"lines {batch[0].line} to {batch[-1].line}: {error}") from error


# ------------------------------------------------------------------------------------------------------------ recall


@click.command()
@click.argument("question")
@click.option(
    "--namespace", "-n", "namespaces", multiple=True, required=True, metavar="PREFIX",
    help='Search at or below it; repeatable. "" is everything.',
)  # fmt: skip
@click.option("-k", type=int, default=10, show_default=True, help="How many at the most.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only memories of this type; repeatable.")
@click.option("--where", type=JSON_OBJECT, metavar="JSON", help="Only those whose metadata passes this filter.")
@click.option("--as-of", type=MOMENT, metavar="ISO", help="What was known at a moment.")
@click.option("--min-trust", type=float, help="Only what is trusted so far, from 0 to 1.")
@click.option("--offset", type=int, default=0, help="Skip so many of the first.")
@click.option("--explain", is_flag=True, help="Show what each score is the sum of.")
@common
@pass_request
def recall(
    request: Request,
    question: str,
    namespaces: tuple[str, ...],
    k: int,
    types: tuple[str, ...],
    where: dict[str, Any] | None,
    as_of: datetime | None,
    min_trust: float | None,
    offset: int,
    explain: bool,
) -> None:
    """Find the memories that answer QUESTION best, best first.

    \b
    Example:
      mnemon recall "where does Alice live?" --namespace user:alice -k 3
      mnemon recall "failed deployments" -n project:web --where '{"env": "production"}' --json
    """
    with request.opened(background=False) as memory:
        hits = memory.recall(
            question, namespaces=list(namespaces), k=k, types=list(types) or None, where=where,
            as_of=as_of, min_trust=min_trust, offset=offset, explain=explain,
        )  # fmt: skip
    if request.as_json:
        show_json(hits)
    elif hits:
        rows = [(f"{hit.score:.3f}", _place(hit.memory), text_of(hit.memory.value, _LONGEST)) for hit in hits]
        show_table(("score", "memory", "text"), rows, [_explained(hit) for hit in hits] if explain else ())
    else:
        note("nothing was found")


def _explained(hit: Hit) -> str:
    signals = sorted(hit.signals.items(), key=lambda signal: -abs(signal[1]))
    told = ", ".join(f"{name} {value:+.3f}" for name, value in signals if round(value, 3))
    return f"{told}; found by {', '.join(hit.found_by) or 'nothing'}"


def _place(memory: Memory) -> str:
    return f"{memory.namespace}/{memory.key}"


# ------------------------------------------------------------------------------------------------------------ forget


@click.command()
@click.argument("namespace")
@click.argument("key", required=False)
@click.option("--erase", is_flag=True, help="Purge every version for good; without a KEY the episodes too.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@common
@pass_request
def forget(request: Request, namespace: str, key: str | None, erase: bool, yes: bool) -> None:
    """Forget the memory KEY of NAMESPACE, or without a KEY all at or below NAMESPACE.

    It asks before it forgets more than one, or erases; without a terminal it refuses to, unless told --yes.

    \b
    Example:
      mnemon forget user:alice city
      mnemon forget user:alice --erase --yes
    """
    with request.opened() as memory:
        if not yes:
            _ask(memory, namespace, key, erase)
        forgotten = memory.forget(namespace, key, erase=erase)
    if request.as_json:
        show_json({"forgotten": forgotten, "erased": erase})
    else:
        click.echo(f"{'erased' if erase else 'forgot'} {forgotten}")


def _ask(memory: BlockingMemory, namespace: str, key: str | None, erase: bool) -> None:
    what = f"{namespace}/{key}"
    if key is None:
        found = memory.memories.list_namespaces(namespace, limit=_MOST_NAMESPACES)
        count = sum(each.memories for each in found)
        episodes = sum(memory.episodes.counts(namespace).values()) if erase else 0
        if not (count + episodes) or (count == 1 and not erase):
            return
        least = "at least " if len(found) == _MOST_NAMESPACES else ""
        also = f" and {counted(episodes, 'episode')}" if episodes else ""
        what = f"{least}{counted(count, 'memory')}{also} at and below {namespace}"
    elif not erase:
        return
    question = f"{'erase' if erase else 'forget'} {what}{', for good' if erase else ''}"
    if not sys.stdin.isatty():
        raise click.UsageError(f"This would {question}: there is no terminal to ask at, so say --yes.")
    if not click.confirm(question[0].upper() + question[1:] + "?", err=True):
        raise Failure("nothing was forgotten")
