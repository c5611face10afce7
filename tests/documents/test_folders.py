"""Which files of a folder are documents: Git itself is asked what its patterns mean."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemon.documents.folders import Watch, existing_folder, find_files
from mnemon.errors import InvalidInput, InvalidSettings
from mnemon.ignoring import Patterns

FILES = [
    "a.md", "b.txt", "docs/a.md", "docs/deep/a.md", "docs/deep/b.txt", "build/x.md", "src/build/y.md", "x/y/z.txt",
    "#odd.md", "!odd.md", "sp ace.md", "a[1].md", "foo", "docs/foo", "abc.md", "abd.md",
]  # fmt: skip
PATTERNS = st.lists(
    st.sampled_from([
        "*.md", "!a.md", "build/", "/build", "docs/", "docs/*", "docs/**", "**/deep", "**/deep/", "docs/**/a.md",
        "/a.md", "a.md", "deep/a.md", "x/", "!x/y/z.txt", "x/*", "\\#odd.md", "\\!odd.md", "# comment", "", "ab[cd].md",
        "ab[!c].md",
        "a\\[1\\].md", "a[[]1].md", "sp ace.md", "foo", "foo/", "!docs/foo", "*", "!*.txt", "?.md", "**", "a*",
        "x/**/z.txt",
        "docs/deep/", "*.txt   ", "/**/foo", "[a-b].*", "ab[^d].md", "do*/a.md",
    ]),
    max_size=5,
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for file in FILES:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("x")
    if shutil.which("git"):
        subprocess.run(["git", "init", "-q", str(folder)], check=True, env={**os.environ, "GIT_TEMPLATE_DIR": ""})
    return folder


def files_of_git(folder: Path) -> list[str]:
    """The files that Git would take, by its own rules and no others."""
    listed = subprocess.run(
        ["git", "-C", str(folder), "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "-o", "--exclude-standard"],
        check=True, capture_output=True,
    )  # fmt: skip
    return sorted(path for path in listed.stdout.decode().split("\0") if path and not path.endswith(".gitignore"))


def taken(folder: Path, *ignore: str) -> list[str]:
    return [path for path in find_files(folder, ["*"], ignore).files if not path.endswith(".gitignore")]


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PATTERNS, PATTERNS)
def test_patterns_mean_what_git_takes_them_for(tree: Path, outer: list[str], inner: list[str]) -> None:
    (tree / ".gitignore").write_text("\n".join(outer) + "\n")
    (tree / "docs" / ".gitignore").write_text("\n".join(inner) + "\n")
    assert taken(tree) == files_of_git(tree)


def test_the_caller_has_the_last_word(tmp_path: Path) -> None:
    for file in ("a.md", "b.md", "node_modules/c.md", "__pycache__/d.md", ".git/e.md", ".env", "id_rsa"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("x")
    assert taken(tmp_path) == ["a.md", "b.md"]
    (tmp_path / ".gitignore").write_text("*\n!*\n")
    assert taken(tmp_path) == [".env", "__pycache__/d.md", "a.md", "b.md", "id_rsa", "node_modules/c.md"]
    (tmp_path / ".gitignore").write_text("b.md\n")
    assert taken(tmp_path) == ["a.md"]
    assert taken(tmp_path, "!.git/") == [".git/e.md", "a.md"]
    assert taken(tmp_path, "!b.md", "a.md", "!node_modules/") == ["b.md", "node_modules/c.md"]


def test_only_what_can_be_read_is_taken_unless_patterns_say_so(tmp_path: Path) -> None:
    for file in ("a.md", "b.png", "c.html", "LICENSE", "sub/d.png", "sub/e.rst"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("x")
    found = find_files(tmp_path, None, ())
    assert (list(found.files), found.skipped) == (["LICENSE", "a.md", "c.html", "sub/e.rst"], 2)
    assert find_files(tmp_path, ["*.png", "!sub/"], ()).files == ["b.png", "sub/d.png"]
    assert find_files(tmp_path, ["sub/"], ()).files == ["sub/d.png", "sub/e.rst"]
    assert find_files(tmp_path, [], ()).files == []


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    for each in (folder, outside):
        each.mkdir()
    (outside / "secret.md").write_text("x")
    (folder / "file.md").symlink_to(outside / "secret.md")
    (folder / "links").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.md")
    assert find_files(folder, None, ()).files == []


def test_a_folder_has_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    for missing in (tmp_path / "none", tmp_path / "a.md"):
        with pytest.raises(InvalidInput, match="no folder"):
            existing_folder(missing)


@pytest.mark.parametrize(
    "line", ["[", "[]", "[!]", "a[", "\\", "***", "/", "//", "!", "[z-a]", "[--]", "[a--b]", "[&&]", "x[\\", "**/**/**"]
)
def test_an_odd_pattern_harms_nobody(line: str) -> None:
    Patterns([line]).decide("a/b", is_folder=False)


@given(st.text(max_size=20), st.text(max_size=20))
def test_no_pattern_raises(line: str, path: str) -> None:
    Patterns([line]).decide(path, is_folder=True)


def test_a_watch_ends_when_it_is_closed(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert watch.wait() == set()
    (tmp_path / "a.md").write_text("x")
    seen: set[str] = set()
    while not seen:
        seen = watch.wait() or set()
    assert str(tmp_path / "a.md") in seen
    watch.close()
    watch.close()
    assert watch.wait() is None


def test_without_watchfiles_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "watchfiles", None)
    with pytest.raises(InvalidSettings, match=r"mnemon\[watch\]"):
        Watch(tmp_path)
