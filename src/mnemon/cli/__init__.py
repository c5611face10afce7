"""The command line `mnemon`: a thin layer over the blocking face, with one module for each noun.

A new noun is a module beside this one that has its commands, each with `@request.common`; they are listed in
`_COMMANDS` below and described in `docs/reference/command-line.md`.
"""

import os

import click

import mnemon
from mnemon.cli import (
    agents,
    artifacts,
    consolidation,
    contexts,
    documents,
    episodes,
    indexes,
    keys,
    memories,
    request,
    retention,
    worker,
    working,
    workspaces,
)
from mnemon.errors import MnemonError

_COMMANDS: tuple[click.Command, ...] = (
    memories.remember,
    memories.recall,
    memories.forget,
    consolidation.consolidate,
    consolidation.reviews,
    worker.worker,
    episodes.episodes,
    retention.retention,
    keys.keys,
    contexts.context,
    working.working,
    artifacts.artifacts,
    documents.documents,
    indexes.index,
    agents.agents,
    workspaces.workspaces,
)


class _CommandLine(click.Group):
    """All commands; says in one line what went wrong, and ends with the exit code for it."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except MnemonError as error:
            raise request.failure_of(error) from error
        except KeyboardInterrupt:
            raise request.Interrupted("interrupted") from None


@click.group(cls=_CommandLine, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(mnemon.__version__, prog_name="mnemon")
@request.common
@click.pass_context
def cli(ctx: click.Context) -> None:
    """The memory of AI agents: remember, recall, and look after the indexes.

    The database is the one of --url, of MNEMON_URL or of the settings file, and otherwise ./mnemon.db.

    \b
    Example:
      mnemon remember "Alice lives in Oslo" --namespace user:alice
      mnemon recall "where does Alice live?" --namespace user:alice

    Exit codes: 0 all is well, 1 it failed or a check found something, 2 the input cannot be used, 3 the
    database or a store that is needed cannot be reached or is not there, 130 interrupted.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False


for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command that this process was called with."""
    cli(prog_name="mnemon")
