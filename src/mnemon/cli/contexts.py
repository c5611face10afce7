"""The command that hands an agent what it needs to know."""

import sys
from dataclasses import asdict

import click

from mnemon.cli.output import note, printable, show_json
from mnemon.cli.request import Request, common, pass_request


@click.command()
@click.argument("question")
@click.option("--session", metavar="ID", help="Take its state and its recent events too.")
@click.option("--namespace", "-n", "namespaces", multiple=True, metavar="PREFIX", help="Memories at or below it.")
@click.option("--budget", type=int, default=2000, show_default=True, help="Tokens at the most.")
@click.option("--messages", is_flag=True, help="Print chat messages, as JSON, instead of a text.")
@common
@pass_request
def context(
    request: Request, question: str, session: str | None, namespaces: tuple[str, ...], budget: int, messages: bool
) -> None:
    """Pack what an agent needs to know for QUESTION into a budget of tokens.

    Without --namespace these are memories of the session, its user, app and project; without --session
    either, all memories.

    \b
    Example:
      mnemon context "where does Alice live?" --session s1 --budget 1000
    """
    with request.opened(background=False) as memory:
        found = memory.context(question, session_id=session, namespaces=list(namespaces) or None, budget=budget)
    if request.as_json:
        show_json({**asdict(found), "tokens": found.tokens, "messages": found.messages()})
        return
    if messages:
        show_json(found.messages())
    else:
        click.echo(printable(found.text, keep="\n\t") if sys.stdout.isatty() else found.text)
    if sys.stderr.isatty():
        counted = "" if found.exact else "about "
        note(f"{counted}{found.tokens} of {budget} tokens, {len(found.items)} things, {len(found.dropped)} dropped")
