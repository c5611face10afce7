"""The program itself: as a process, on a terminal, and as its page describes it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import mnemon
from mnemon.cli import cli
from tests.cli.conftest import Run

pty = pytest.importorskip("pty", reason="there are pseudo-terminals on Unix only")

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def test_help_and_version_load_nothing_slow() -> None:
    program = (
        "import sys; from mnemon.cli import cli; cli(['index', '--help'], standalone_mode=False); "
        "print([name for name in ('numpy', 'wordllama', 'pydantic', 'alembic', 'psycopg') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_installed_script_is_the_program() -> None:
    script = Path(sys.executable).with_name("mnemon")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"mnemon, version {mnemon.__version__}\n"


def test_a_terminal_is_asked_and_gets_colour_unless_told_otherwise(run: Run) -> None:
    run("remember", "-f", "-", "-n", "user:alice", "--set", "embedder=none", input="one\ntwo\n")
    recall = ("recall", "one", "-n", "user:alice", "--set", "embedder=none")
    assert "\x1b[1m" in on_terminal(*recall)[0]
    assert "\x1b" not in on_terminal(*recall, env={"NO_COLOR": "1"})[0]
    said, code = on_terminal("forget", "user:alice", answer="n\n")
    assert "Forget 2 memories at and below user:alice? [y/N]" in said
    assert (code, "nothing was forgotten" in said) == (1, True)
    said, code = on_terminal("forget", "user:alice", answer="y\n")
    assert (code, said.endswith("forgot 2\n")) == (0, True)


def test_lines_of_a_file_have_a_progress_bar_on_a_terminal(folder: Path) -> None:
    (folder / "notes.txt").write_text("one\ntwo\n")
    said, code = on_terminal("remember", "-f", "notes.txt", "-n", "app:notes", "--set", "embedder=none")
    assert code == 0
    assert "remembering [##############################] 100%  2 lines" in said
    assert said.splitlines()[-1] == "remembered 2"


def on_terminal(*arguments: str, answer: str = "", env: dict[str, str] | None = None) -> tuple[str, int]:
    """What a command says on a terminal of its own, and its exit code."""
    outer, inner = pty.openpty()
    surroundings = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | (env or {})
    command = [sys.executable, "-m", "mnemon", *arguments]
    with subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, env=surroundings) as child:
        os.close(inner)
        os.write(outer, answer.encode())
        said = b""
        while True:
            try:
                piece = os.read(outer, 4096)
            except OSError:  # how Linux says that nobody is there any more
                break
            if not piece:
                break
            said += piece
        os.close(outer)
    return said.decode().replace("\r\n", "\n"), child.returncode


def test_a_pipe_that_is_closed_early_is_no_traceback(run: Run) -> None:
    run("remember", "one", "-n", "user:alice", "--set", "embedder=none")
    child = [sys.executable, "-m", "mnemon", "recall", "one", "-n", "", "--json", "--set", "embedder=none"]
    with subprocess.Popen(child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()


# -------------------------------------------------------------------------------------------------------- the page


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its name as it is written."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def options_of(command: click.Command) -> set[str]:
    return {name for each in command.params if isinstance(each, click.Option) for name in each.opts}


def described(title: str) -> set[str]:
    """The options in the first column of the table under a heading of the page."""
    section = re.search(rf"^#+ {re.escape(title)}$(.*?)(?=^#|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert section, f"{title} has no heading on the page"
    rows = re.findall(r"^\| (`-.*?) \|", section[1], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(--?[a-z][a-z-]*)", row)}


COMMANDS = dict(commands(cli))
COMMON = {"--url", "--set", "--json"}


def test_the_page_has_every_command() -> None:
    headings = set(re.findall(r"^#{2,3} ([a-z][a-z ]+)$", PAGE.read_text(), re.MULTILINE))
    groups = {name for name, command in cli.commands.items() if isinstance(command, click.Group)}
    assert headings - groups == set(COMMANDS)
    assert described("Options of every command") == COMMON | {"--help", "-h"}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_every_option_of_a_command(name: str) -> None:
    assert options_of(COMMANDS[name]) >= COMMON
    assert described(name) == options_of(COMMANDS[name]) - COMMON


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(run: Run, name: str) -> None:
    shown = run(*name.split(), "--help").output
    assert re.search(rf"Example:\n.*mnemon {name}\b", shown)
