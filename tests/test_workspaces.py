"""Workspaces: their paths, real folders, several processes, and a model in plain Python that they always agree with."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import mnemon
from mnemon import sync
from mnemon.errors import InvalidInput, InvalidPath, PathTaken, SnapshotNotFound, WorkspaceFileNotFound
from mnemon.ignoring import Patterns
from mnemon.testing.workspace_files import HOSTILE
from mnemon.testing.workspace_folders import contents_of, fill
from mnemon.workspaces import folders
from mnemon.workspaces.paths import check_folder, check_for_windows, check_path, folders_of, is_within
from mnemon.workspaces.rows import SQL
from tests.conformance.backends import SETTINGS, url_of
from tests.robustness.children import finish_all

# ------------------------------------------------------------------------------------------------------------ paths

PARTS = st.sampled_from(
    [
        "..",
        ".",
        "/",
        "\\",
        "a",
        "b",
        "C:",
        "~",
        "é",
        "e\u0301",
        "\0",
        "\n",
        " ",
        "con",
        "\u202e",
        "..",
        "%2e%2e",
        "．．",
    ]
)
PATHS = st.lists(PARTS, max_size=9).map("".join) | st.text(max_size=40)


@settings(max_examples=600)
@given(PATHS)
@example("a/./b//c")
@example("\u2025/x")
@example("a/．．/b")
def test_a_path_is_refused_or_stays_inside_on_any_system(path: str) -> None:
    try:
        kept = check_path(path)
    except InvalidPath:
        return
    assert check_path(kept) == kept, "it is written in one way only"
    for kind in (PurePosixPath, PureWindowsPath):
        pure = kind(kept)
        assert not pure.is_absolute()
        assert not pure.drive
        assert ".." not in pure.parts
        assert len(pure.parts) == len(kept.split("/"))
    assert os.path.normpath(f"/top/{kept}") == f"/top/{kept}"
    assert kept.encode().decode() == kept
    assert all(character.isprintable() or character.isspace() or ord(character) > 0xA0 for character in kept)
    assert all(is_within(kept, folder) for folder in folders_of(kept))


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_paths_are_refused(path: str) -> None:
    with pytest.raises(InvalidPath):
        check_path(path)


def test_paths_that_people_write_are_taken() -> None:
    assert check_path("./src//main.py") == "src/main.py"
    assert check_path(PurePosixPath("src/main.py")) == "src/main.py"
    assert check_path("2026-03-01T09:30:00 notes (draft) #1.txt") == "2026-03-01T09:30:00 notes (draft) #1.txt"
    assert check_path(".env") == ".env"
    assert check_path("...") == "..."
    assert check_path("👩‍🚀/日本語") == "👩‍🚀/日本語"
    assert check_path("x" * 255) == "x" * 255
    assert [check_folder(each) for each in ("", ".", "./", "a/", "a/b", PurePosixPath("."))] == [
        "",
        "",
        "",
        "a",
        "a/b",
        "",
    ]


@pytest.mark.parametrize("path", ["a/NUL", "con.txt", "COM1", "lpt9.log", "a:b/c", "what?", "end.", "end ", "a/b|c"])
def test_what_windows_would_take_for_something_else_is_not_written_there(path: str) -> None:
    with pytest.raises(InvalidPath, match="Windows"):
        check_for_windows(path)


# ------------------------------------------------------------------------------------------------------ real folders


@pytest.fixture(params=["by number", "by path"])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[folders.Target]:
    """A target that may be overwritten, on a system that can hold folders by number and on one that cannot."""
    if request.param == "by path":
        monkeypatch.setattr(folders, "_HAS_FOLDERS_BY_NUMBER", False)
    made = folders.Target(tmp_path / "target", overwrite=True)
    made.open()
    yield made
    made.close()


def test_files_are_written_below_the_target(target: folders.Target, tmp_path: Path) -> None:
    for path in ("a/b/c", "a/b/d", "a/e", "f", "a/b/c"):
        target.write(path, [path.encode(), b"!"], is_executable=path == "f")
    assert contents_of(tmp_path / "target") == {path: f"{path}!" for path in ("a/b/c", "a/b/d", "a/e", "f")}
    assert os.access(tmp_path / "target/f", os.X_OK)


def test_a_link_in_the_target_is_never_followed(target: folders.Target, tmp_path: Path) -> None:
    outside = fill(tmp_path / "outside", {"victim": "v"})
    (tmp_path / "target/folder").symlink_to(outside, target_is_directory=True)
    (tmp_path / "target/file").symlink_to(outside / "victim")
    (tmp_path / "target/dangling").symlink_to(outside / "new")
    for path in ("folder/victim", "folder/new", "folder/deep/er", "file/x"):
        with pytest.raises(PathTaken):
            target.write(path, [b"stolen"], is_executable=False)
    for path in ("file", "dangling"):
        target.write(path, [b"replaced"], is_executable=False)
    assert contents_of(outside) == {"victim": "v"}
    assert contents_of(tmp_path / "target")["dangling"] == "replaced"
    for path in ("../outside/victim", "/etc/passwd", "a/../../x"):
        with pytest.raises(InvalidPath):
            target.write(path, [b"stolen"], is_executable=False)


def test_what_fails_in_the_middle_leaves_nothing(target: folders.Target, tmp_path: Path) -> None:
    fill(tmp_path / "target", {"a": "before"})

    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise mnemon.StoreUnavailable("gone")

    with pytest.raises(mnemon.StoreUnavailable):
        target.write("a", pieces(), is_executable=False)
    assert contents_of(tmp_path / "target") == {"a": "before"}


def test_names_that_differ_only_in_case_do_not_overwrite_each_other(tmp_path: Path) -> None:
    target = folders.Target(tmp_path / "target", overwrite=False)
    target.open()
    target.write("a", [b"1"], is_executable=False)
    with pytest.raises(PathTaken, match="something else"):  # as a file system without cases would have it
        target.write("a", [b"2"], is_executable=False)
    target.close()
    assert contents_of(tmp_path / "target") == {"a": "1"}


def test_a_file_that_became_a_link_is_not_read(tmp_path: Path) -> None:
    fill(tmp_path, {"secret": "s", "folder/plain": "p"})
    [source] = folders.listing(tmp_path / "folder", Patterns([]), "").sources
    (tmp_path / "folder/plain").unlink()
    (tmp_path / "folder/plain").symlink_to(tmp_path / "secret")
    with pytest.raises(folders.Unreadable):
        list(source)


def test_a_file_that_vanishes_meanwhile_is_left_out(tmp_path: Path) -> None:
    source = fill(tmp_path / "source", {f"{number:03}": f"{number}" for number in range(501)})
    with sync.open("sqlite://", **SETTINGS) as memory:
        memory.workspaces.create("w")
        done = memory.workspaces.import_folder(
            "w", source, progress=lambda told: (source / "500").unlink() if told.done == 500 else None
        )
        assert (done.added, done.unchanged, done.skipped) == (500, 0, ("500: No such file or directory",))
        workspace = memory.workspaces.get("w")
        assert workspace is not None
        assert (workspace.files, workspace.revision) == (500, 1)


# ----------------------------------------------------------------------------------------------------- what it takes


def test_a_difference_is_found_by_what_changed_and_not_by_walking_through_all(tmp_path: Path) -> None:
    with sync.open(f"sqlite:///{tmp_path}/m.db", **SETTINGS) as memory:
        memory.workspaces.create("w")
    params = {"workspace_id": "w", "earlier": 1, "later": 2, "since": 1}
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        plans = {
            name: [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {SQL[name].text}", params)]
            for name in ("begun", "ended", "clash_below")
        }
    assert plans["begun"] == [
        "SEARCH workspace_files USING INDEX idx_workspace_files_since (workspace_id=? AND since>? AND since<?)"
    ]
    assert plans["ended"] == [
        "SEARCH workspace_files USING INDEX idx_workspace_files_until (workspace_id=? AND until>? AND until<?)"
    ]
    walks = [line for line in plans["clash_below"] if re.search(r"^SCAN|\(workspace_id=\?\)", line)]
    assert walks == []
    assert any("idx_workspace_files_since (workspace_id=? AND since=?)" in line for line in plans["clash_below"])
    assert any("(workspace_id=? AND path>? AND path<?)" in line for line in plans["clash_below"])


# -------------------------------------------------------------------------------------------------- several processes

WRITER = """
import sys
from mnemon import ConflictError, sync
with sync.open(sys.argv[1], content_url=sys.argv[2]) as memory:
    for number in range(10):
        memory.workspaces.write("w", f"{sys.argv[3]}/{number}", f"{sys.argv[3]} {number}")
        while True:
            known = memory.workspaces.stat("w", "counter")
            value = int(memory.workspaces.read("w", "counter", version=known.version))
            try:
                memory.workspaces.write("w", "counter", str(value + 1), expected_version=known.version)
                break
            except ConflictError:
                pass
"""


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def test_processes_lose_nothing_of_each_other(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Given processes that write files of their own and count in a shared one, then all is there and counted."""
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else f"sqlite:///{tmp_path}/m.db"
    place = (tmp_path / "contents").as_uri()
    with sync.open(url, content_url=place) as memory:
        memory.workspaces.create("w")
        memory.workspaces.write("w", "counter", "0")
        children = [
            subprocess.Popen([sys.executable, "-c", WRITER, url, place, name], stderr=subprocess.PIPE, text=True)
            for name in ("one", "two", "three")
        ]
        finish_all(children)
        assert memory.workspaces.read("w", "counter") == b"30"
        for name in ("one", "two", "three"):
            assert len(memory.workspaces.list_files("w", name)) == 10
        workspace = memory.workspaces.get("w")
        assert workspace is not None
        assert (workspace.files, workspace.revision) == (31, 61)


# ---------------------------------------------------------------------------------------------------------- the model

RUNS = count()
paths = st.sampled_from(["a", "b", "a/b", "a/c", "d/e/f", "d/e", "d", "z"])
texts = st.sampled_from(["", "one", "two", "three"])
Files = dict[str, tuple[str, bool]]


class Model:
    """A workspace as a dictionary, and its snapshots as copies of it."""

    def __init__(self) -> None:
        self.files: Files = {}
        self.snapshots: list[Files] = []

    def change(self, wanted: dict[str, tuple[str, bool] | None]) -> None:
        """Make some paths what they are to be, or raise and change nothing."""
        after = {**self.files, **wanted}
        left = {path: file for path, file in after.items() if file is not None}
        for path in left:
            if any(other.startswith(f"{path}/") for other in left):
                raise PathTaken
        self.files = left

    def below(self, path: str) -> Files:
        found = {each: file for each, file in self.files.items() if is_within(each, path)}
        if not found:
            raise WorkspaceFileNotFound
        return found

    def move(self, path: str, target: str, overwrite: bool) -> None:
        if target != path and is_within(target, path):
            raise PathTaken
        found = self.below(path)
        moved = {target + each[len(path) :]: file for each, file in found.items()}
        if not overwrite and any(each in self.files and each not in found for each in moved):
            raise PathTaken
        self.change({**dict.fromkeys(found), **moved})

    def at(self, number: int) -> Files:
        if not 1 <= number <= len(self.snapshots) or self.snapshots[number - 1] is None:
            raise SnapshotNotFound
        return self.snapshots[number - 1]


class Workspaces(RuleBasedStateMachine):
    """Does everything to a workspace and to the model; both must agree, also on what they refuse."""

    memory: sync.BlockingMemory

    @initialize()
    def begin(self) -> None:
        self.name = f"w{next(RUNS)}"
        self.model = Model()
        self.memory.workspaces.create(self.name)

    def both(self, ours: Any, theirs: Any) -> None:
        """Do it here and there: it works in both, or fails in both for the same reason."""
        try:
            ours()
        except (InvalidInput, PathTaken, WorkspaceFileNotFound, SnapshotNotFound) as error:
            with pytest.raises(type(error)):
                theirs()
        else:
            theirs()

    @rule(path=paths, text=texts, run=st.booleans())
    def write(self, path: str, text: str, run: bool) -> None:
        self.both(
            lambda: self.model.change({path: (text, run)}),
            lambda: self.memory.workspaces.write(self.name, path, text, is_executable=run),
        )

    @rule(texts=st.dictionaries(paths, texts, min_size=1, max_size=3))
    def write_many(self, texts: dict[str, str]) -> None:
        files = {path: (text, self.model.files.get(path, ("", False))[1]) for path, text in texts.items()}
        self.both(lambda: self.model.change({**files}), lambda: self.memory.workspaces.write_many(self.name, texts))

    @rule(path=paths)
    def remove(self, path: str) -> None:
        self.both(
            lambda: self.model.change(dict.fromkeys(self.model.below(path))),
            lambda: self.memory.workspaces.remove(self.name, path),
        )

    @rule(path=paths, new=paths, overwrite=st.booleans())
    def move(self, path: str, new: str, overwrite: bool) -> None:
        self.both(
            lambda: self.model.move(path, new, overwrite),
            lambda: self.memory.workspaces.move(self.name, path, new, overwrite=overwrite),
        )

    @rule()
    def snapshot(self) -> None:
        self.model.snapshots.append(dict(self.model.files))
        taken = self.memory.workspaces.snapshot(self.name)
        assert taken.number == len(self.model.snapshots)
        assert taken.files == len(self.model.files)

    @rule(number=st.integers(0, 6))
    def restore(self, number: int) -> None:
        self.both(
            lambda: setattr(self.model, "files", dict(self.model.at(number))),
            lambda: self.memory.workspaces.restore(self.name, number),
        )

    @rule(number=st.integers(1, 6))
    def clone(self, number: int) -> None:
        if 1 <= number <= len(self.model.snapshots) and self.model.snapshots[number - 1] is not None:
            made = self.memory.workspaces.clone(self.name, at=number)
            assert self.found(made.id) == self.model.at(number)
            assert made.files == len(self.model.at(number))

    @rule(keep=st.integers(1, 3))
    def prune(self, keep: int) -> None:
        self.memory.workspaces.prune(self.name, keep=keep)
        for number in range(len(self.model.snapshots) - keep):
            self.model.snapshots[number] = None  # type: ignore[call-overload]

    @rule(one=st.integers(1, 6), other=st.none() | st.integers(1, 6))
    def compare(self, one: int, other: int | None) -> None:
        """The differences are those of the two dictionaries; those that were renamed are a removal and an addition."""
        try:
            before, after = self.model.at(one), self.model.files if other is None else self.model.at(other)
        except SnapshotNotFound:
            with pytest.raises(SnapshotNotFound):
                self.memory.workspaces.diff(self.name, one, other)
            return
        gone, new, changed = set[str](), set[str](), set[str]()
        for each in self.memory.workspaces.diff(self.name, one, other):
            if each.before and each.after and each.kind == "changed":
                changed.add(each.path)
                continue
            if each.kind == "renamed":
                assert each.before is not None
                assert each.after is not None
                assert each.before.sha256 == each.after.sha256
            gone |= {each.before.path} if each.before else set()
            new |= {each.after.path} if each.after else set()
        assert gone == before.keys() - after.keys()
        assert new == after.keys() - before.keys()
        assert changed == {path for path in before.keys() & after.keys() if before[path] != after[path]}

    def found(self, name: str, at: int | None = None) -> Files:
        return {
            file.path: (self.memory.workspaces.read(name, file.path, at=at).decode(), file.is_executable)
            for file in self.memory.workspaces.list_files(name, at=at)
        }

    @invariant()
    def the_files_are_those_of_the_model(self) -> None:
        if hasattr(self, "model"):
            assert self.found(self.name) == self.model.files
            workspace = self.memory.workspaces.get(self.name)
            assert workspace is not None
            assert workspace.files == len(self.model.files)
            assert workspace.size == sum(len(text) for text, _ in self.model.files.values())

    @invariant()
    def every_snapshot_is_as_it_was(self) -> None:
        for number, files in enumerate(self.model.snapshots if hasattr(self, "model") else (), 1):
            if files is not None:
                assert self.found(self.name, number) == files


@pytest.mark.parametrize("backend", ["sqlite-memory", pytest.param("postgres", marks=pytest.mark.servers)])
def test_a_workspace_always_agrees_with_a_dictionary(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with sync.open(url_of(backend, tmp_path, request), content_url="memory://", **SETTINGS) as memory:
        machine = type("Machine", (Workspaces,), {"memory": memory})
        chosen = settings(
            max_examples=40 if backend == "sqlite-memory" else 8,
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(machine, settings=chosen)
