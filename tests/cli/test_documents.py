"""Documents from the command line: indexed, listed, compared with their files, and followed."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mnemon.testing.pdfs import pdf
from tests.cli.conftest import Ask, Run
from tests.cli.test_program import on_terminal

HERE = ("--namespace", "project:web:docs")
PLAIN = ("--set", "embedder=none")
PATIENCE = 120.0  # seconds; how long a child may take on a machine that is busy with other things


@pytest.fixture
def docs(folder: Path) -> Path:
    docs = folder / "docs"
    (docs / "sub").mkdir(parents=True)
    (docs / "ships.md").write_text("# Ships\n\nA sloop has one mast.\n")
    (docs / "sub" / "tea.txt").write_text("Tea is drunk at four.\n")
    (docs / "picture.png").write_bytes(b"\x89PNG\0")
    return docs


def add(ask: Ask, *arguments: str, **options: Any) -> Any:
    return ask("documents", "add", *arguments, *HERE, "--root", ".", **options)


def test_a_folder_is_indexed_recalled_and_cited(run: Run, ask: Ask, docs: Path) -> None:
    report = add(ask, "docs")["folders"]["docs"]
    assert (report["added"], report["skipped"]) == (["docs/ships.md", "docs/sub/tea.txt"], 1)
    assert report["chunks_embedded"] == 2
    [hit, *_] = ask("recall", "how many masts?", *HERE)
    assert (hit["memory"]["metadata"]["path"], hit["memory"]["metadata"]["first_line"]) == ("docs/ships.md", 1)
    (docs / "ships.md").write_text("# Ships\n\nA brig has two masts.\n")
    said = run("documents", "add", "docs", *HERE, "--root", ".")
    assert (said.exit_code, said.stdout) == (0, "docs: 1 changed, 1 unchanged, 1 skipped; 1 of 1 chunk embedded\n")
    assert "(docs/ships.md:1-3)" in run("context", "masts", *HERE).stdout


def test_a_folder_has_a_progress_bar_on_a_terminal(docs: Path) -> None:
    said, code = on_terminal("documents", "add", "docs", *HERE, *PLAIN)
    assert code == 0
    assert "indexing [##############################] 100%  2/2" in said


def test_files_standard_input_and_options(run: Run, ask: Ask, docs: Path) -> None:
    found = add(ask, "docs/ships.md", "-", "--name", "given.md", "--metadata", '{"a": 1}', *PLAIN, input="# Given\n")
    assert [(each["path"], each["title"], each["metadata"]) for each in found["documents"]] == [
        ("docs/ships.md", "Ships", {"a": 1}),
        ("given.md", "Given", {"a": 1}),
    ]
    [typed] = add(ask, "docs/sub/tea.txt", "--type", "markdown", "--title", "Tea", "--chunk-tokens", "99")["documents"]
    assert (typed["title"], typed["document_type"]) == ("Tea", "markdown")
    assert run("documents", "add", "-", *HERE).exit_code == 2
    assert run("documents", "add", "docs", *HERE, "--title", "x").exit_code == 2
    assert run("documents", "add", "none.md", *HERE).exit_code == 2
    assert run("documents", "add", "docs", "-n", "nowhere").exit_code == 2


def test_patterns_and_files_that_are_gone(ask: Ask, docs: Path) -> None:
    only = add(ask, "docs", "--pattern", "*.txt", *PLAIN)["folders"]["docs"]
    assert only["added"] == ["docs/sub/tea.txt"]
    report = add(ask, "docs", "--ignore", "sub/", "--keep-missing", *PLAIN)["folders"]["docs"]
    assert (report["added"], report["removed"]) == (["docs/ships.md"], [])
    assert add(ask, "docs", "--ignore", "sub/", *PLAIN)["folders"]["docs"]["removed"] == ["docs/sub/tea.txt"]


def test_documents_are_listed_and_shown(run: Run, ask: Ask, docs: Path) -> None:
    add(ask, "docs", *PLAIN)
    page = ask("documents", "list", "--limit", "1")
    rest = ask("documents", "list", "--cursor", page["next_cursor"])
    assert [each["path"] for each in (*page["documents"], *rest["documents"])] == ["docs/ships.md", "docs/sub/tea.txt"]
    assert [each["path"] for each in ask("documents", "list", "--type", "text", "--recent")["documents"]] == [
        "docs/sub/tea.txt"
    ]
    table = run("documents", "list", "--limit", "1")
    assert table.stdout.splitlines()[1].split() == ["synced", "markdown", "1", "project:web:docs", "docs/ships.md"]
    assert "--cursor" in table.stderr
    assert "there are none" in run("documents", "list", "--status", "failed").stderr
    assert run("documents", "list", "--status", "lost").exit_code == 2

    assert ask("documents", "show", "docs/ships.md", *HERE)["status"] == "synced"
    assert "chunk count" in run("documents", "show", "docs/ships.md", *HERE).stdout
    assert run("documents", "show", "none", *HERE).exit_code == 1
    [chunk] = ask("documents", "chunks", "docs/ships.md", *HERE)
    assert (chunk["text"], chunk["headings"]) == ("# Ships\n\nA sloop has one mast.\n", ["Ships"])
    shown = run("documents", "chunks", "docs/ships.md", *HERE).stdout.splitlines()
    assert shown[1].split()[:3] == ["0", "1-3", "Ships"]


def test_one_that_cannot_be_read_and_another_try(run: Run, ask: Ask, docs: Path) -> None:
    (docs / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    failed = run("documents", "add", "docs", *HERE, "--root", ".", *PLAIN)
    assert failed.exit_code == 1
    assert failed.stdout == "docs: 2 added, 1 failed, 1 skipped; 0 of 2 chunks embedded\n"
    assert "docs/bad.pdf: the PDF file is damaged" in failed.stderr
    assert run("documents", "add", "docs/bad.pdf", *HERE, "--root", ".", *PLAIN).exit_code == 1
    assert run("documents", "retry", *PLAIN).exit_code == 1
    (docs / "bad.pdf").write_bytes(pdf(["Whales sing."]))
    assert ask("documents", "retry", *HERE, *PLAIN)["added"] == ["docs/bad.pdf"]
    assert run("documents", "retry", *PLAIN).stdout == "nothing to do\n"
    assert run("documents", "chunks", "docs/bad.pdf", *HERE).stdout.splitlines()[1].split()[1:3] == ["page", "1"]


def test_documents_are_compared_with_their_files_and_removed(run: Run, ask: Ask, docs: Path) -> None:
    add(ask, "docs", *PLAIN)
    fine = run("documents", "check")
    assert (fine.exit_code, fine.stdout) == (0, "every document is as its file\n")
    (docs / "ships.md").write_text("Other.\n")
    stale = run("documents", "check", "--json")
    assert stale.exit_code == 1
    assert [each["error"] for each in json.loads(stale.stdout)["stale"]] == ["the file has changed"]
    assert "the file has changed" in run("documents", "check").stdout
    assert ask("documents", "retry", "--stale", *PLAIN)["changed"] == ["docs/ships.md"]

    assert run("documents", "remove", "docs/ships.md", *HERE).stdout == "removed docs/ships.md, 1 chunk\n"
    assert ask("documents", "remove", "docs/sub/tea.txt", *HERE) == {"removed": {"docs/sub/tea.txt": 1}}
    assert run("documents", "remove", "docs/ships.md", *HERE).exit_code == 1


@pytest.mark.parametrize("as_json", [True, False])
def test_a_folder_is_followed_until_it_is_interrupted(ask: Ask, docs: Path, folder: Path, as_json: bool) -> None:
    command = [sys.executable, "-m", "mnemon", "documents", "watch", "docs", *HERE, "--root", ".", *PLAIN]
    command += ["--json"] if as_json else []
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            first = child.stdout.readline()
            (docs / "new.md").write_text("Rain.\n")
            second = child.stdout.readline()
            child.send_signal(signal.SIGINT)
            _, complaint = child.communicate(timeout=PATIENCE)
        finally:
            child.kill()
    assert (child.returncode, complaint) == (130, "Error: interrupted; what was indexed stays\n")
    if as_json:
        assert json.loads(first)["added"] == ["docs/ships.md", "docs/sub/tea.txt"]
        assert json.loads(second)["added"] == ["docs/new.md"]
    else:
        assert first == "2 added, 1 skipped; 0 of 2 chunks embedded\n"
        assert second == "1 added; 0 of 1 chunk embedded\n"
    assert len(ask("documents", "list")["documents"]) == 3
