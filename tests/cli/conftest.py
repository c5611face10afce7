"""The command line over a real SQLite file in a folder of its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mnemon.cli import cli

Run = Callable[..., Result]
Ask = Callable[..., Any]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run() -> Run:
    """Runs a command; an exception that is no exit fails the test."""

    def run(*arguments: str, **options: Any) -> Result:
        # A worker of pytest-xdist has COLUMNS, and tables would be cut to that.
        return CliRunner(env={"COLUMNS": None}).invoke(cli, arguments, catch_exceptions=False, **options)

    return run


@pytest.fixture
def ask(run: Run) -> Ask:
    """Runs a command that must end well; what it says as JSON."""

    def ask(*arguments: str, **options: Any) -> Any:
        result = run(*arguments, "--json", **options)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return ask
