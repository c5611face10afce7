"""What every command has: where the database is, its settings, how to answer, and the exit codes."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

import click
import orjson

from mnemon import sync
from mnemon.cli.output import printable
from mnemon.config import load_settings
from mnemon.errors import InvalidInput, InvalidSettings, MnemonError, StoreUnavailable
from mnemon.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Failure(click.ClickException):
    """Ends the program with one line on stderr and an exit code."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class BadInput(Failure):
    exit_code = 2


class Unavailable(Failure):
    exit_code = 3


class Interrupted(Failure):
    exit_code = 130  # as shells have it


def failure_of(error: MnemonError) -> Failure:
    """How the program ends after an error of the library."""
    if isinstance(error, StoreUnavailable):
        return Unavailable(str(error))
    return BadInput(str(error)) if isinstance(error, InvalidInput) else Failure(str(error))


@dataclass(slots=True)
class Request:
    """The options that every command has, wherever on the line they were written."""

    url: str | None = None
    settings: dict[str, str] = field(default_factory=dict[str, str])
    as_json: bool = False

    @contextmanager
    def opened(
        self, *, create: bool = False, background: bool = True, **settled: Any
    ) -> Generator[sync.BlockingMemory]:
        """The memory, for as long as the command runs.

        Without `create`, a database that is not there is an error. Without `background`, indexes are left
        as they are, unless the caller asks for it. `settled` are settings that the caller has no say in.
        """
        usual = {"create": create} if background else {"create": create, "background": False}
        settings: dict[str, Any] = {**usual, **self.settings, **settled}
        with sync.open(self.url, **settings) as memory:
            yield memory

    def chosen(self) -> Settings:
        """The settings that are in force, from wherever they come."""
        return load_settings(self.url, dict(self.settings))


# ------------------------------------------------------------------------------------------ options of every command


def _request(ctx: click.Context) -> Request:
    return ctx.ensure_object(Request)


def _take_url(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        _request(ctx).url = value


def _take_settings(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> None:
    for value in values:
        name, is_set, text = value.partition("=")
        if not is_set:
            raise InvalidSettings(f"--set takes name=value, not {value!r}")
        _request(ctx).settings[name.strip()] = text


def _take_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        _request(ctx).as_json = True


_COMMON = (
    click.option(
        "--url", metavar="URL", callback=_take_url, expose_value=False,
        help="The database: sqlite:///file.db or postgresql://…",
    ),
    click.option(
        "--set", metavar="NAME=VALUE", multiple=True, callback=_take_settings, expose_value=False,
        help="Any setting, written as in MNEMON_NAME=VALUE; repeatable.",
    ),
    click.option(
        "--json", is_flag=True, callback=_take_json, expose_value=False, help="Answer with JSON, for scripts.",
    ),
)  # fmt: skip


def common(command: F) -> F:
    """Gives a command the options that all have; the command gets the `Request` with `@pass_request`."""
    for option in reversed(_COMMON):
        command = option(command)
    return command


pass_request = click.make_pass_decorator(Request, ensure=True)


# ------------------------------------------------------------------------------------------------- types of options


def moment_of(text: str) -> datetime:
    """The moment that a text in ISO 8601 names; without a time zone it is taken as UTC."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is not a moment such as 2026-03-01 or 2026-03-01T09:30:00+01:00") from None


def object_of(text: str) -> dict[str, Any]:
    """The JSON object that a text writes down."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"{text:.80} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput(f'{text:.80} is not a JSON object such as {{"topic": "travel"}}')
    return cast("dict[str, Any]", found)


def _option(read: Callable[[str], T]) -> Callable[[str], T]:
    """The type of an option whose text is read so; click would say only that it is wrong, not why."""

    def convert(text: str) -> T:
        try:
            return read(text)
        except InvalidInput as error:
            raise click.BadParameter(str(error)) from None

    return convert


MOMENT, JSON_OBJECT = _option(moment_of), _option(object_of)
