"""The commands for working memory: what stands in the buffers and on the scratchpads of a session."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import click
import orjson

from mnemon.cli.output import note, printable, show_json, show_table
from mnemon.cli.request import Failure, Request, common, pass_request
from mnemon.errors import InvalidInput
from mnemon.model import Change, WorkingItem
from mnemon.texts import text_of

_LONGEST = 500  # characters of a value that are printed in a table
_buffer = click.option("--buffer", "-b", default="conversation", show_default=True, help="Which of its buffers.")
_ttl = click.option("--ttl", type=float, metavar="SECONDS", help="How long it stays; the settings say so otherwise.")
_version = click.option(
    "--expected-version", type=int, metavar="NUMBER", help="Only if it has this version; 0 if there must be none."
)


@click.group()
def working() -> None:
    """See and change what sessions work with now: their buffers and scratchpads.

    \b
    Example:
      mnemon working buffers s1
      mnemon working recent s1 --last 10
      mnemon working pads set s1 plan '{"step": 2}'
    """


# ---------------------------------------------------------------------------------------------------------- buffers


@working.command()
@click.argument("session_id")
@common
@pass_request
def buffers(request: Request, session_id: str) -> None:
    """List the buffers of a session, and how much is in them.

    \b
    Example:
      mnemon working buffers s1
    """
    with request.opened(background=False) as memory:
        found = memory.working.buffers(session_id)
    if request.as_json:
        show_json(found)
        return
    rows = [
        (each.items, each.tokens, each.last_sequence, f"{each.updated_at:%Y-%m-%d %H:%M:%S}", each.name)
        for each in found
    ]
    show_table(("items", "tokens", "last", "updated", "buffer"), rows)


@working.command()
@click.argument("session_id")
@_buffer
@click.option("--last", type=int, help="How many of the newest at the most; 50 if there is no --budget.")
@click.option("--budget", type=int, metavar="TOKENS", help="How many tokens they may have together.")
@common
@pass_request
def recent(request: Request, session_id: str, buffer: str, last: int | None, budget: int | None) -> None:
    """Show the newest items of a buffer, the oldest of them first.

    \b
    Example:
      mnemon working recent s1 --last 10
      mnemon working recent s1 --budget 2000
    """
    with request.opened(background=False) as memory:
        found = memory.working.recent(session_id, buffer=buffer, last=last, budget=budget)
    if request.as_json:
        show_json(found)
        return
    show_table(("item", "tokens", "by", "value"), [_row(item) for item in found])


@working.command()
@click.argument("session_id")
@click.argument("texts", nargs=-1, metavar="TEXT…")
@_buffer
@_ttl
@click.option(
    "--file", "-f", type=click.Path(exists=True, dir_okay=False, allow_dash=True), metavar="FILE",
    help="Append every line of it; - is stdin.",
)  # fmt: skip
@click.option("--values", is_flag=True, help="Each is JSON, not a text.")
@click.option("--actor", help="Who says so.")
@common
@pass_request
def append(
    request: Request, session_id: str, texts: tuple[str, ...], file: str | None, values: bool, **options: Any
) -> None:
    """Append texts, or the lines of a file, to a buffer: all of them or none.

    \b
    Example:
      mnemon working append s1 "I moved to Oslo"
      mnemon working append s1 --values '{"role": "user", "text": "hello"}'
      mnemon working append s1 --file steps.jsonl --values --buffer steps
    """
    if bool(texts) == (file is not None):
        raise click.UsageError("Give either TEXT or --file.")
    given = list(texts) if file is None else list(_lines(file))
    with request.opened() as memory:
        found = memory.working.append(session_id, [_value(text) for text in given] if values else given, **options)
    if request.as_json:
        show_json(found)
    elif found:
        click.echo(f"appended {len(found)}, the last is item {found[-1].sequence}")
    else:
        click.echo("nothing to append")


@working.command()
@click.argument("session_id")
@click.option("--after", type=int, metavar="POSITION", help="From this journal position; without it, from now on.")
@click.option("--count", type=int, metavar="NUMBER", help="End after so many changes; otherwise with Ctrl-C.")
@common
@pass_request
def follow(request: Request, session_id: str, after: int | None, count: int | None) -> None:
    """Show what changes in a session's working memory while it does; with --json, a line for each change.

    \b
    Example:
      mnemon working follow s1
    """
    with request.opened(background=False) as memory:
        for change in islice(memory.working.follow(session_id, after=after), count):
            click.echo(orjson.dumps(change, default=dict).decode() if request.as_json else _told(change))


# ------------------------------------------------------------------------------------------------------ scratchpads


@working.group()
def pads() -> None:
    """Read and set the scratchpads of a session.

    \b
    Example:
      mnemon working pads list s1
      mnemon working pads get s1 plan
    """


@pads.command("list")
@click.argument("session_id")
@click.option("--limit", type=int, default=50, show_default=True, help="How many at the most.")
@click.option("--cursor", help="Go on after the page that ended with it.")
@common
@pass_request
def list_pads(request: Request, session_id: str, limit: int, cursor: str | None) -> None:
    """List the scratchpads of a session by name.

    \b
    Example:
      mnemon working pads list s1
    """
    with request.opened(background=False) as memory:
        found = memory.working.scratchpads(session_id, limit=limit, cursor=cursor)
    if request.as_json:
        show_json({"scratchpads": found.items, "next_cursor": found.next_cursor})
        return
    rows = [(pad.name, pad.version, pad.updated_by or "", _short(pad.value)) for pad in found]
    show_table(("scratchpad", "version", "by", "value"), rows)
    if found.next_cursor:
        note(f"there are more: --cursor {found.next_cursor}")


@pads.command("get")
@click.argument("session_id")
@click.argument("name")
@common
@pass_request
def get_pad(request: Request, session_id: str, name: str) -> None:
    """Print the value of a scratchpad as JSON; with --json, all that is known of it.

    \b
    Example:
      mnemon working pads get s1 plan
    """
    with request.opened(background=False) as memory:
        pad = memory.working.get(session_id, name)
    if pad is None:
        raise Failure(f"session {session_id!r} has no scratchpad {name!r}")
    show_json(pad if request.as_json else pad.value)


@pads.command("set")
@click.argument("session_id")
@click.argument("name")
@click.argument("value")
@click.option("--text", is_flag=True, help="VALUE is a text, not JSON.")
@_version
@_ttl
@click.option("--actor", help="Who sets it.")
@common
@pass_request
def set_pad(request: Request, session_id: str, name: str, value: str, text: bool, **options: Any) -> None:
    """Set a scratchpad to VALUE, which is JSON.

    \b
    Example:
      mnemon working pads set s1 plan '{"step": 2}'
      mnemon working pads set s1 plan '{"step": 3}' --expected-version 1
      mnemon working pads set s1 note "call back on Monday" --text --ttl 86400
    """
    with request.opened() as memory:
        pad = memory.working.set(session_id, name, value if text else _value(value), **options)
    if request.as_json:
        show_json(pad)
    else:
        click.echo(f"{printable(pad.name)}  version {pad.version}")


@pads.command("delete")
@click.argument("session_id")
@click.argument("name")
@_version
@click.option("--actor", help="Who deletes it.")
@common
@pass_request
def delete_pad(request: Request, session_id: str, name: str, **options: Any) -> None:
    """Delete a scratchpad.

    \b
    Example:
      mnemon working pads delete s1 plan
    """
    with request.opened() as memory:
        deleted = memory.working.delete(session_id, name, **options)
    if request.as_json:
        show_json({"deleted": deleted})
    elif deleted:
        click.echo("deleted")
    else:
        raise Failure(f"session {session_id!r} has no scratchpad {name!r}")


# ---------------------------------------------------------------------------------------------------------- details


def _lines(file: str) -> Iterator[str]:
    with click.open_file(file, encoding="utf-8") as opened:
        lines: Iterable[str] = opened
        yield from (line.strip() for line in lines if line.strip())


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"{text:.80} is not JSON: {error}") from None


def _row(item: WorkingItem) -> tuple[object, ...]:
    return item.sequence, item.tokens, item.created_by or "", _short(item.value)


def _short(value: Any) -> str:
    return text_of(value)[:_LONGEST]


def _told(change: Change) -> str:
    return printable(f"{change.position}  {change.operation} {change.entity} {change.entity_id}")
