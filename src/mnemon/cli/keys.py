"""The commands that look after keys."""

from dataclasses import asdict

import click

from mnemon.cli.output import Bar, counted, note, show_json, show_table
from mnemon.cli.request import Failure, Interrupted, Request, common, pass_request
from mnemon.encryption.masters import new_master_key
from mnemon.model import DataKeyUse

_prefix = click.option("--namespace", "-n", "prefix", default="", metavar="PREFIX", help="Only at or below it.")


@click.group()
def keys() -> None:
    """Make master keys, rotate keys, and encrypt what is there already.

    Give the master keys by MNEMON_ENCRYPTION_KEYS or MNEMON_ENCRYPTION_KEY_FILE rather than by --set, as others on
    the machine can see the arguments of a command.

    \b
    Example:
      mnemon keys status
      mnemon keys rotate --namespace user:alice
      mnemon keys reseal --namespace user:alice
    """


@keys.command()
@click.argument("name")
@common
@pass_request
def generate(request: Request, name: str) -> None:
    """Make a new random master key called NAME. It is kept nowhere: keep it well, what it encrypts is lost without it.

    \b
    Example:
      mnemon keys generate 2026 >> master.keys
    """
    key = new_master_key(name)
    if request.as_json:
        show_json({"name": name, "key": key})
    else:
        click.echo(key)


@keys.command()
@_prefix
@common
@pass_request
def status(request: Request, prefix: str) -> None:
    """Show the data keys, what they encrypt, and what should be encrypted and is not.

    \b
    Example:
      mnemon keys status --namespace user:alice
    """
    with request.opened(background=False) as memory:
        found = memory.keys.status(prefix)
    if request.as_json:
        told = [{**asdict(each), "rows": each.rows, "outdated": each.outdated} for each in found.namespaces]
        show_json({"master_key": found.master_key, "is_settled": found.is_settled, "namespaces": told})
        return
    rows = [_told(key) for each in found.namespaces for key in each.keys]
    if rows:
        show_table(("key", "state", "master", "rows", "contents", "namespace"), rows)
    for each in found.namespaces:
        if each.plain or each.plain_contents:
            plain = f"{counted(each.plain, 'row')}, {counted(each.plain_contents, 'content')}"
            note(f"not encrypted yet in {each.namespace}: {plain}")
        if each.outdated:
            note(f"under retired keys in {each.namespace}: {each.outdated} rows and contents")
    master = f"the master key is {found.master_key}" if found.master_key else "there is no master key"
    settled = "everything is encrypted by current keys" if found.is_settled else "there is something to do"
    click.echo(f"{master}; {settled}")


@keys.command()
@common
@pass_request
def rewrap(request: Request) -> None:
    """Wrap all data keys by the first master key that is given, so that the others are not needed any more.

    \b
    Example:
      mnemon keys rewrap
    """
    with request.opened(background=False) as memory:
        done = memory.keys.rewrap()
    if request.as_json:
        show_json({"rewrapped": done})
    else:
        click.echo(f"{done} data keys wrapped anew")


@keys.command()
@_prefix
@common
@pass_request
def rotate(request: Request, prefix: str) -> None:
    """Make new data keys, by which everything is encrypted from now on. `reseal` brings the rest over.

    \b
    Example:
      mnemon keys rotate --namespace user:alice
    """
    with request.opened(background=False) as memory:
        _show_keys(request, memory.keys.rotate(prefix), "new data keys")


@keys.command()
@_prefix
@common
@pass_request
def reseal(request: Request, prefix: str) -> None:
    """Encrypt everything by the current data keys, also what was written before; exit code 1 if something cannot be.

    Everybody may go on meanwhile. Interrupted, run it again to go on.

    \b
    Example:
      mnemon keys reseal
    """
    with request.opened(background=False) as memory:
        try:
            with Bar("encrypting") as bar:
                done = memory.keys.reseal(prefix, progress=bar.follow)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; nothing is lost: `mnemon keys reseal` goes on where this ended") from None
    if request.as_json:
        show_json(done)
    else:
        for flaw in done.flaws:
            note(f"left as it was, {flaw.table} {flaw.place}: {flaw.reason}")
        if done.kept_contents:
            note(f"{done.kept_contents} old contents are left, for `mnemon artifacts cleanup` to remove in an hour")
        if not done.scrubbed:
            note("the files may still hold what was not encrypted before, as they were in use: run it again")
        click.echo(f"{counted(done.rows, 'row')} and {counted(done.contents, 'content')} encrypted anew")
    if done.flaws:
        click.get_current_context().exit(Failure.exit_code)


@keys.command()
@_prefix
@common
@pass_request
def drop(request: Request, prefix: str) -> None:
    """Forget retired data keys that encrypt nothing any more; backups of the database have them still.

    \b
    Example:
      mnemon keys drop
    """
    with request.opened(background=False) as memory:
        _show_keys(request, memory.keys.drop(prefix), "retired data keys forgotten")


def _show_keys(request: Request, found: tuple[DataKeyUse, ...], what: str) -> None:
    if request.as_json:
        show_json(found)
        return
    if found:
        show_table(("key", "namespace"), [(key.id, key.namespace) for key in found])
    click.echo(f"{len(found)} {what}")


def _told(key: DataKeyUse) -> tuple[object, ...]:
    state = "current" if key.retired_at is None else f"retired {key.retired_at:%Y-%m-%d}"
    return key.id, state, key.master_key, key.rows, key.contents, key.namespace
