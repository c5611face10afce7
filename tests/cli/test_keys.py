"""Keys from the command line: make them, look at them, rotate them, encrypt what is there."""

import re
import sqlite3
from pathlib import Path

import pytest

from mnemon.encryption.masters import keys_in_file
from tests.cli.conftest import Ask, Run

HERS = ("--namespace", "user:alice")


@pytest.fixture(autouse=True)
def file(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A master key in a file, and a memory that was written before anything was encrypted."""
    monkeypatch.setenv("MNEMON_EMBEDDER", "none")
    assert run("remember", "zanzibar", *HERS, "--key", "k").exit_code == 0
    made = run("keys", "generate", "2026")
    assert made.exit_code == 0
    (folder / "master.keys").write_text(made.stdout)
    monkeypatch.setenv("MNEMON_ENCRYPTION_KEY_FILE", "master.keys")
    monkeypatch.setenv("MNEMON_ENCRYPTED_NAMESPACES", "user")
    return folder / "master.keys"


def test_what_is_there_is_encrypted_and_rotated(run: Run, ask: Ask, folder: Path) -> None:
    before = run("keys", "status")
    assert "not encrypted yet in user:alice: 1 row, 0 contents" in before.stderr
    assert before.stdout == "the master key is 2026; there is something to do\n"
    assert b"zanzibar" in (folder / "mnemon.db").read_bytes()
    assert run("keys", "reseal").stdout == "1 row and 0 contents encrypted anew\n"
    assert b"zanzibar" not in (folder / "mnemon.db").read_bytes()
    shown = run("keys", "status", *HERS).stdout
    assert re.search(r"^[0-9a-f]{32}  current  2026    1     0         user:alice$", shown, re.MULTILINE)
    assert shown.endswith("the master key is 2026; everything is encrypted by current keys\n")

    [new] = ask("keys", "rotate", *HERS)
    assert new["namespace"] == "user:alice"
    assert "under retired keys in user:alice: 1 rows and contents" in run("keys", "status").stderr
    done = ask("keys", "reseal", *HERS)
    assert (done["rows"], done["contents"], done["flaws"], done["scrubbed"]) == (1, 0, [], True)
    status = ask("keys", "status")
    [alice] = status["namespaces"]
    assert (status["is_settled"], alice["rows"], alice["outdated"], len(alice["keys"])) == (True, 1, 0, 2)
    assert run("keys", "drop").stdout == "0 retired data keys forgotten\n"  # it was retired a moment ago
    assert "zanzibar" in run("recall", "k", *HERS).stdout


def test_a_new_master_key(run: Run, ask: Ask, file: Path) -> None:
    run("keys", "reseal")
    made = ask("keys", "generate", "2027")
    assert made["key"].startswith("2027:")
    file.write_text(f"{made['key']}\n{file.read_text()}")
    assert ask("keys", "rewrap") == {"rewrapped": 1}
    assert run("keys", "rewrap").stdout == "0 data keys wrapped anew\n"
    file.write_text(keys_in_file(file)[0])
    assert "zanzibar" in run("recall", "k", *HERS).stdout


def test_what_cannot_be_is_told(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("keys", "generate", "with spaces").exit_code == 2
    run("keys", "reseal")
    file.write_text(run("keys", "generate", "other").stdout)
    failed = run("keys", "reseal")
    assert (failed.exit_code, "'2026' is needed, and only other is given" in failed.stderr) == (1, True)
    monkeypatch.delenv("MNEMON_ENCRYPTION_KEY_FILE")
    assert "needs a master key" in run("keys", "status").stderr
    monkeypatch.delenv("MNEMON_ENCRYPTED_NAMESPACES")
    assert run("keys", "status").stdout.endswith("there is no master key; there is something to do\n")
    refused = run("keys", "rotate")
    assert (refused.exit_code, "there is no master key" in refused.stderr) == (2, True)


def test_what_was_tampered_with_is_told_and_ends_with_1(run: Run, ask: Ask) -> None:
    run("keys", "reseal")
    with sqlite3.connect("mnemon.db") as connection:
        connection.execute("UPDATE memory_entries SET version = 9")
    connection.close()
    ask("keys", "rotate")
    failed = run("keys", "reseal")
    assert failed.exit_code == 1
    assert "left as it was, memory_entries 1: " in failed.stderr
