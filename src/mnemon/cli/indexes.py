"""The commands that look after what finds memories: vector spaces, vector stores and consumers of the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import click

from mnemon.cli.output import Bar, note, show_json, show_table
from mnemon.cli.request import Failure, Interrupted, Request, common, pass_request
from mnemon.model import Drift, Space, StoreDescription


@click.group()
def index() -> None:
    """See how the indexes are, and put them right.

    \b
    Example:
      mnemon index status
    """


# ------------------------------------------------------------------------------------------------------------ status


@index.command()
@common
@pass_request
def status(request: Request) -> None:
    """Show the vector spaces, the stores that hold vectors, and how far each consumer has come.

    \b
    Example:
      mnemon index status --json
    """
    with request.opened(background=False) as memory:
        spaces = memory.index.spaces()
        stores = memory.vectors.describe()
        position = memory.position()
        consumers = [{**asdict(each), "lag": max(0, position - each.position)} for each in memory.consumers()]
    if request.as_json:
        show_json({"spaces": spaces, "stores": stores, "position": position, "consumers": consumers})
        return
    _show_spaces(spaces)
    _show_stores(stores)
    if consumers:
        click.echo()
        rows = [(each["name"], each["position"], each["lag"]) for each in consumers]
        show_table(("consumer", "position", "lag"), rows)


def _show_spaces(spaces: Sequence[Space]) -> None:
    if not spaces:
        click.echo("no memory has a vector yet")
        return
    rows = [(each.id, each.status, each.model.dimension, each.provider, each.model.name) for each in spaces]
    show_table(("space", "status", "dimension", "embedder", "model"), rows)


def _show_stores(stores: list[StoreDescription]) -> None:
    if stores:
        click.echo()
        rows = [(each.name, each.vectors, each.lag, "up" if each.is_up else "down", each.location) for each in stores]
        show_table(("store", "vectors", "lag", "is", "at"), rows)


# ---------------------------------------------------------------------------------------------- verify and rebuild


@index.command()
@click.argument("store", required=False)
@click.option("--mend", is_flag=True, help="Put right what differs.")
@common
@pass_request
@click.pass_context
def verify(ctx: click.Context, request: Request, store: str | None, mend: bool) -> None:
    """Compare the vector stores beside the database, or STORE, with it; exit code 1 if one differs.

    With --mend what differs is put right, and the exit code is 0.

    \b
    Example:
      mnemon index verify
      mnemon index verify qdrant --mend
    """
    with request.opened(background=False) as memory:
        found = memory.index.verify(store, mend=mend)
    _show_drift(request, found)
    if not mend and not all(drift.is_none for drift in found.values()):
        ctx.exit(Failure.exit_code)


@index.command()
@click.argument("store", required=False)
@common
@pass_request
def rebuild(request: Request, store: str | None) -> None:
    """Give the vector stores beside the database, or STORE, everything again.

    Everybody may go on meanwhile. What is shown is how they still differed after that, which is mended too.

    \b
    Example:
      mnemon index rebuild qdrant
    """
    with request.opened() as memory, Bar("rebuilding") as bar:
        found = memory.index.rebuild(store, progress=bar.follow)
    _show_drift(request, found)


def _show_drift(request: Request, found: Mapping[str, Drift]) -> None:
    if request.as_json:
        show_json({name: {**asdict(drift), "is_none": drift.is_none} for name, drift in found.items()})
    elif not found:
        note("there is no vector store beside the database (setting vector_stores), so there is nothing to compare")
    else:
        headings = ("store", "missing", "stale", "surplus", "pending", "holds")
        rows = [(name, one.missing, one.stale, one.surplus, one.pending, one.checked) for name, one in found.items()]
        show_table(headings, rows)


# ---------------------------------------------------------------------------------------------- reembed and settle


@index.command()
@click.argument("to")
@common
@pass_request
def reembed(request: Request, to: str) -> None:
    """Change to the embedder TO while everybody goes on; interrupted, run it again to go on.

    \b
    Example:
      mnemon index reembed onnx
    """
    with request.opened() as memory:
        try:
            with Bar("embedding") as bar:
                space = memory.index.reembed(to, progress=bar.follow)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted; nothing is lost: the embedder in use stays, and `mnemon index reembed {to}` "
                "goes on where this ended"
            ) from None
    if request.as_json:
        show_json(space)
    else:
        click.echo(f"the vectors are of {space.model} now, made by {space.provider}")


@index.command()
@click.option("--timeout", type=float, metavar="SECONDS", help="How long to wait at the most.")
@common
@pass_request
def settle(request: Request, timeout: float | None) -> None:
    """Index what was written and is not indexed yet: events, texts without vectors, vector stores.

    \b
    Example:
      mnemon index settle --timeout 60
    """
    with request.opened(background=False) as memory:
        memory.settled(timeout)
    if request.as_json:
        show_json({"settled": True})
    else:
        click.echo("everything that was written can be found")
