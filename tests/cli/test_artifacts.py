"""The files of sessions from the command line."""

import os
from pathlib import Path

import pytest

from mnemon import sync
from tests.cli.conftest import Ask, Run

URL = "sqlite:///mnemon.db"


@pytest.fixture(autouse=True)
def _session(folder: Path) -> None:
    with sync.open(URL, embedder="none") as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")


def content_of(folder: Path, sha256: str) -> Path:
    return folder / "mnemon.files/content" / sha256[:2] / sha256


def test_files_are_saved_and_read(run: Run, ask: Ask, folder: Path) -> None:
    (folder / "q3.pdf").write_bytes(b"%PDF" * 100_000)
    saved = ask(
        "artifacts", "save", "s1", "reports/q3.pdf", "--file", "q3.pdf", "--metadata", '{"n": 3}', "--actor", "bot"
    )  # fmt: skip
    assert (saved["version"], saved["size"], saved["content_type"]) == (1, 400_000, "application/pdf")
    assert (saved["metadata"], saved["created_by"]) == ({"n": 3}, "bot")
    again = run("artifacts", "save", "s1", "reports/q3.pdf", "--content-type", "text/x-draft", input="from stdin")
    assert again.stdout == "mnemon://artifacts/s1/reports/q3.pdf?version=2  10 bytes\n"

    assert run("artifacts", "cat", "s1", "reports/q3.pdf").stdout_bytes == b"from stdin"
    assert run("artifacts", "cat", "s1", "reports/q3.pdf", "-v", "1").stdout_bytes == b"%PDF" * 100_000
    written = run("artifacts", "cat", saved["url"], "--output", "copy.pdf")
    assert (written.exit_code, written.stdout) == (0, "")
    assert (folder / "copy.pdf").read_bytes() == b"%PDF" * 100_000
    assert ask("artifacts", "get", saved["url"]) == saved
    assert ask("artifacts", "get", "s1", "reports/q3.pdf")["content_type"] == "text/x-draft"
    shown = run("artifacts", "get", "s1", "reports/q3.pdf").stdout
    assert "text/x-draft" in shown
    assert "version=2" in shown


def test_lists_show_names_and_versions(run: Run, ask: Ask) -> None:
    for name in ("b.txt", "a/1.txt", "b.txt"):
        ask("artifacts", "save", "s1", name, input=name)
    assert [(each["name"], each["version"]) for each in ask("artifacts", "list", "s1")] == [
        ("a/1.txt", 1),
        ("b.txt", 2),
    ]
    assert [each["name"] for each in ask("artifacts", "list", "s1", "--prefix", "a/")] == ["a/1.txt"]
    assert [each["version"] for each in ask("artifacts", "versions", "s1", "b.txt")] == [2, 1]
    table = run("artifacts", "list", "s1").stdout.splitlines()
    assert table[0].split() == ["version", "size", "saved", "type", "name"]
    assert len(table) == 3
    assert "--limit" in run("artifacts", "list", "s1", "--limit", "1").stderr
    assert run("artifacts", "list", "s1", "--prefix", "z").stderr == "there are none\n"


def test_what_is_deleted_can_be_restored_until_it_is_cleaned_up(run: Run, ask: Ask, folder: Path) -> None:
    saved = ask("artifacts", "save", "s1", "a", input="some text")
    ask("artifacts", "save", "s1", "a", input="other text")
    assert run("artifacts", "delete", "s1", "a", "--version", "2").stdout == "deleted 1 version\n"
    assert ask("artifacts", "delete", "s1", "a") == {"deleted": 1}
    assert "(deleted)" in run("artifacts", "versions", "s1", "a", "--deleted").stdout
    assert run("artifacts", "cat", "s1", "a").exit_code == 1
    assert run("artifacts", "restore", "s1", "a").stdout == "restored 2 versions\n"
    ask("artifacts", "delete", "s1", "a", "-v", "1")
    told = run("artifacts", "cleanup", "--keep-days", "0", "--grace-minutes", "0", "--dry-run").stdout
    assert told.startswith("would remove 1 deleted versions")
    assert content_of(folder, saved["sha256"]).exists()
    assert ask("artifacts", "cleanup", "--keep-days", "0", "--grace-minutes", "0") == {
        "versions": 1, "contents": 1, "freed": 9, "folders": 0,
    }  # fmt: skip
    assert not content_of(folder, saved["sha256"]).exists()


def test_verify_finds_what_is_missing_corrupt_and_orphaned(run: Run, ask: Ask, folder: Path) -> None:
    missing, corrupt, orphaned = (ask("artifacts", "save", "s1", name, input=name * 10) for name in ("mm", "cc", "oo"))
    assert run("artifacts", "verify").stdout == "3 contents in use, 3 kept in 60 bytes\n"
    content_of(folder, missing["sha256"]).unlink()
    content_of(folder, corrupt["sha256"]).write_bytes(b"damaged")
    stray = content_of(folder, orphaned["sha256"]).with_name(orphaned["sha256"][:2] + "0" * 62)
    stray.write_bytes(b"stray")
    os.utime(stray, (0, 0))

    found = run("artifacts", "verify", "--json")
    assert found.exit_code == 1
    result = run("artifacts", "verify")
    assert result.exit_code == 1
    lines = [line.split() for line in result.stdout.splitlines()]
    assert {line[0]: line[1] for line in lines[1:4]} == {
        "missing": missing["sha256"], "corrupt": corrupt["sha256"], "orphaned": stray.name,
    }  # fmt: skip
    assert missing["url"] in result.stdout
    assert run("artifacts", "verify", "--quick").stdout.count("corrupt") == 0

    damaged = run("artifacts", "cat", "s1", "cc", "--output", "out")
    assert (damaged.exit_code, "damaged" in damaged.stderr) == (1, True)
    assert not (folder / "out").exists()
    assert not list(folder.glob(".out*"))
    ask("artifacts", "cleanup")
    assert not stray.exists()


def test_rebuild_makes_the_folders_anew(run: Run, ask: Ask, folder: Path) -> None:
    saved = ask("artifacts", "save", "s1", "a", input="text")
    visible = folder / "mnemon.files/artifacts/s1" / saved["file_name"]
    visible.unlink()
    assert run("artifacts", "rebuild").stdout == "rebuilt 1 session\n"
    assert visible.read_text() == "text"
    assert ask("artifacts", "rebuild", "s1") == {"rebuilt": 1}


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("save", "s1", "../up"), 2, "cannot be called"),
        (("save", "nobody", "a"), 1, "no session"),
        (("save", "s1", "a", "--file", "none"), 2, "does not exist"),
        (("get", "s1", "none"), 1, "no artifact 'none'"),
        (("get", "s1", "none", "-v", "3"), 1, "version 3"),
        (("get", "s1"), 2, "session and a name"),
        (("get", "mnemon://artifacts/s1/none"), 1, "no artifact"),
        (("get", "mnemon://wrong"), 2, "not the URL"),
        (("cat", "mnemon://artifacts/s1/a", "-v", "1"), 2, "says the version"),
        (("delete", "s1", "none"), 1, "no artifact"),
        (("cleanup", "--keep-days", "-1"), 2, "timedelta"),
        (("cleanup", "--keep-days", "1e300"), 2, "too much"),
        (("rebuild", "nobody"), 1, "no session"),
    ],
)
def test_what_is_wrong_is_said(run: Run, arguments: tuple[str, ...], code: int, told: str) -> None:
    result = run("artifacts", *arguments)
    assert (result.exit_code, told in result.stderr) == (code, True), result.stderr


def test_a_copy_that_is_being_written_is_not_disturbed(run: Run, ask: Ask, folder: Path) -> None:
    ask("artifacts", "save", "s1", "a", input="text")
    (folder / ".out.part").write_text("somebody else's")
    assert run("artifacts", "cat", "s1", "a", "-o", "out").exit_code == 2
    assert (folder / ".out.part").read_text() == "somebody else's"
