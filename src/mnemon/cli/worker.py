"""The command that lets working memory flow into long-term memory for as long as it runs, in any number of copies."""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click
import orjson

from mnemon.cli.output import counted, note
from mnemon.cli.request import Request, common, pass_request
from mnemon.consolidation.worker import FlowWorker
from mnemon.model import FlowReport

_WORDS = {  # of each number in a report: of what, and what was done with it
    "drained": ("item", "drained"),
    "episodes": ("episode", "made"),
    "summaries": ("episode", "consolidated"),
    "facts": ("fact", "learnt"),
    "conflicts": ("conflict", "settled"),
    "for_review": ("conflict", "for review"),
    "failed": ("episode", "failed"),
    "fallbacks": ("summary", "without the language model"),
}


@click.command()
@click.option("--once", is_flag=True, help="End when nothing waits any more.")
@click.option(
    "--idle", type=float, metavar="SECONDS",
    help="Drain a buffer that was left alone for so long; otherwise the setting consolidate_after says.",
)  # fmt: skip
@click.option(
    "--lease", type=float, metavar="SECONDS",
    help="A piece of work is this copy's alone for so long: 60, and more with a language model.",
)  # fmt: skip
@click.option(
    "--pause", type=click.FloatRange(min=0.01), default=1.0, show_default=True, metavar="SECONDS",
    help="How long to wait before it looks again when nothing waits.",
)  # fmt: skip
@common
@pass_request
def worker(request: Request, once: bool, idle: float | None, lease: float | None, pause: float) -> None:
    """Let working memory flow into long-term memory for as long as it runs.

    Buffers become episodes, episodes summaries and facts, and facts that deny each other are settled. It says what it
    did, and keeps indexes in step too. Any number of copies may run at once, and each may be killed at any moment.
    SIGINT or SIGTERM ends it when the piece of work that it is at is done.

    \b
    Example:
      mnemon worker
      mnemon worker --once --idle 0
    """
    after = request.chosen().consolidate_after or None if idle is None else idle
    with request.opened(consolidate_after=None) as memory:

        def turn() -> FlowReport:
            report = memory.consolidation.flow(after, lease=lease, rounds=1)
            if once and not report.rounds:
                working.stop()
            return report

        working = FlowWorker(turn, pause, told=lambda report: tell(request, report), patient=not once)
        with _stopped_by_signals(working):
            note("at work" if once else "at work; SIGINT or SIGTERM ends it")
            working.run()


def tell(request: Request, report: FlowReport) -> None:
    """One line of what was done, if anything was."""
    done = {name: value for name in _WORDS if (value := getattr(report, name))}
    at = datetime.now(UTC)
    if request.as_json and done:
        click.echo(orjson.dumps({"at": at, **fields_of(report)}).decode())
    elif done:
        click.echo(f"{at:%Y-%m-%d %H:%M:%S} {sentence_of(report)}")


def sentence_of(report: FlowReport) -> str:
    """What was done, in words."""
    told = [
        f"{counted(value, noun)} {done}" for name, (noun, done) in _WORDS.items() if (value := getattr(report, name))
    ]
    return ", ".join(told) or "nothing waits"


def fields_of(report: FlowReport) -> dict[str, Any]:
    return asdict(report)


@contextmanager
def _stopped_by_signals(working: FlowWorker) -> Generator[None]:
    """The first signal lets it finish what it is at, a second one ends it at once."""

    def stop(number: int, _: object) -> None:
        signal.signal(number, before[number])
        working.stop()
        note("ending after this piece of work")

    before = {int(number): signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
