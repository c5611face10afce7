"""Workspaces from the command line, with a real folder on either side."""

from pathlib import Path

from mnemon.testing.workspace_folders import contents_of, fill
from tests.cli.conftest import Ask, Run


def test_a_folder_goes_in_is_changed_compared_and_restored(run: Run, ask: Ask, folder: Path) -> None:
    fill(folder / "site", {"index.html": "<h1>One</h1>\n", "css/main.css": "a {}\n", "notes.tmp": "x"})
    assert run("workspaces", "create", "web", "-n", "user:alice").stdout == "web  0 files, in user:alice\n"

    done = run("workspaces", "import", "web", "site", "--ignore", "*.tmp")
    assert done.stdout == "2 added, 0 changed, 0 unchanged, 0 removed, 0 left out\n"
    assert run("workspaces", "snapshot", "web", "-m", "first").stdout == "snapshot 1  2 files, 18 bytes\n"
    assert "version 2" in run("workspaces", "write", "web", "index.html", input="<h1>Two</h1>\n").stdout
    assert ask("workspaces", "write", "web", "run.sh", "site/notes.tmp", "--executable")["is_executable"]
    assert run("workspaces", "read", "web", "index.html").stdout == "<h1>Two</h1>\n"
    assert run("workspaces", "read", "web", "index.html", "--at", "1").stdout == "<h1>One</h1>\n"
    assert run("workspaces", "read", "web", "index.html", "--version", "1").stdout == "<h1>One</h1>\n"

    assert run("workspaces", "diff", "web", "1").stdout == "~ index.html\n+ run.sh\n"
    shown = run("workspaces", "diff", "web", "1", "--text", "--prefix", "index.html").stdout
    assert shown.splitlines()[1:] == [
        "--- a/index.html",
        "+++ b/index.html",
        "@@ -1 +1 @@",
        "-<h1>One</h1>",
        "+<h1>Two</h1>",
    ]
    assert [each["kind"] for each in ask("workspaces", "diff", "web", "1")] == ["changed", "added"]
    assert run("workspaces", "restore", "web", "1").stdout == "~ index.html\n- run.sh\n"
    assert run("workspaces", "export", "web", "out").stdout == "exported 2 files to out\n"
    assert contents_of(folder / "out") == {"index.html": "<h1>One</h1>\n", "css/main.css": "a {}\n"}
    assert run("workspaces", "diff", "web", "1").stdout == ""


def test_what_there_is_can_be_listed(run: Run, ask: Ask) -> None:
    ask("workspaces", "create", "web", "--metadata", '{"for": "bob"}')
    for path in ("a/b", "c"):
        ask("workspaces", "write", "web", path, input="text")
    ask("workspaces", "snapshot", "web")
    ask("workspaces", "clone", "web", "copy", "--at", "1", "-n", "user:bob")

    rows = [line.split() for line in run("workspaces", "list").stdout.splitlines()]
    assert rows[1:] == [["web", "2", "8", "2", "app:workspaces:web"], ["copy", "2", "8", "1", "user:bob"]]
    assert [each["id"] for each in ask("workspaces", "list", "-n", "user:bob")] == ["copy"]
    assert "raise --limit" in run("workspaces", "list", "--limit", "1").stderr
    files = [line.split() for line in run("workspaces", "files", "web").stdout.splitlines()]
    assert files == [["version", "bytes", "run", "path"], ["1", "4", "-", "a/b"], ["2", "4", "-", "c"]]
    assert [each["path"] for each in ask("workspaces", "files", "web", "a", "--at", "1")] == ["a/b"]
    assert ask("workspaces", "read", "web", "c")["version"] == 2
    [taken] = ask("workspaces", "log", "web")
    assert (taken["number"], taken["files"]) == (1, 2)
    assert run("workspaces", "log", "web").stdout.splitlines()[1].split()[0] == "1"
    ask("workspaces", "snapshot", "web")
    assert ask("workspaces", "prune", "web", "--keep", "1") == {"snapshots": 1, "versions": 0}
    assert "forgot 0 snapshots" in run("workspaces", "prune", "web", "--keep", "1").stdout


def test_what_cannot_be_done_has_an_exit_code(run: Run, ask: Ask, folder: Path) -> None:
    ask("workspaces", "create", "web")
    assert run("workspaces", "write", "web", "../x", input="x").exit_code == 2
    assert run("workspaces", "read", "web", "x").exit_code == 1
    assert run("workspaces", "files", "nothing").exit_code == 1
    ask("workspaces", "write", "web", "x", "--expect", "0", input="x")
    assert run("workspaces", "write", "web", "x", "--expect", "0", input="y").exit_code == 1
    fill(folder / "full", {"mine": "m"})
    refused = run("workspaces", "export", "web", "full")
    assert (refused.exit_code, "not empty" in refused.stderr) == (2, True)
    assert ask("workspaces", "export", "web", "full", "--overwrite")["exported"] == 1
    (folder / "full/link").symlink_to(folder)
    imported = run("workspaces", "import", "web", "full", "--mirror", "--prefix", "x/y")
    assert (imported.exit_code, "'x' is a file" in imported.stderr) == (1, True)
    imported = run("workspaces", "import", "web", "full", "--mirror")
    assert "left out link: a link" in imported.stderr
    assert run("workspaces", "delete", "web", input="n\n").exit_code == 1
    assert run("workspaces", "delete", "web", "--yes").stdout == "deleted web\n"
    assert run("workspaces", "list").stdout.splitlines()[1:] == []
