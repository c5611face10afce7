"""Artifacts saved by several processes at once, and by processes that are killed at every step."""

import json
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from mnemon import sync
from mnemon.backends.filesystem import FileContents
from tests.robustness.children import FACES, PATIENCE, ROOT, finish_all, save_one_name, start

PROCESSES = 4
TIMES = 8


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this process and its children keep contents."""
    folder = tmp_path / "kept"
    monkeypatch.setenv("MNEMON_CONTENT_URL", f"file://{folder}")
    return folder


def check_that_all_agree(memory: sync.BlockingMemory, root: Path, session_id: str = "shared") -> None:
    """Records, contents, and what people see say the same, and nothing is left over."""
    report = memory.artifacts.verify(grace=timedelta(0))
    assert (report.flaws, report.pending) == ((), 0)
    assert list((root / "content").glob("incoming/*")) == []
    manifest = memory.artifacts.manifest(session_id)
    files = {
        version["file"]: version["sha256"]
        for artifact in manifest["artifacts"]
        for version in artifact["versions"]
        if version["file"]
    }
    folder = root / "artifacts" / session_id
    if not files:
        assert not folder.exists()
        return
    assert {path.name for path in folder.iterdir()} == {*files, "manifest.json"}
    for name, sha256 in files.items():
        assert (folder / name).samefile(root / "content" / sha256[:2] / sha256)
    assert json.loads((folder / "manifest.json").read_bytes())["artifacts"] == manifest["artifacts"]


def test_processes_that_save_the_same_name_lose_no_version(url: str, root: Path) -> None:
    # given a session that all of them share
    with sync.open(url) as memory:
        memory.sessions.create_session("shared", "app", "alice")
    # when several processes save versions of the same two names at once
    finish_all([start(save_one_name, url, f"{number}", TIMES, face=FACES[number % 2]) for number in range(PROCESSES)])
    # then each save is a version of its own, and each can be read
    with sync.open(url) as memory:
        found = memory.artifacts.versions("shared", "report.txt", limit=1000)
        assert [each.version for each in found] == list(range(PROCESSES * TIMES, 0, -1))
        texts = {memory.artifacts.read("shared", "report.txt", each.version).decode() for each in found}
        assert texts == {f"{number} {time}" * 1000 for number in range(PROCESSES) for time in range(TIMES)}
        same = memory.artifacts.versions("shared", "same.txt", limit=1000)
        assert len({each.sha256 for each in same}) == 1
        assert len(same) == PROCESSES * TIMES
        # and what people see is the last state, whoever was the last to show it
        check_that_all_agree(memory, root)


# ---------------------------------------------------------------------------------------- killed at every step


def session_of(step: int) -> str:
    return f"s{step}"


def kill_at(step: int) -> None:
    """From now on, the process dies at the call number `step` of anything that touches the disk."""
    left = step

    def lethal(name: str) -> None:
        real = getattr(os, name)

        def call(*args: object, **kwargs: object) -> object:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), 9)
            return real(*args, **kwargs)

        setattr(os, name, call)

    for name in ("open", "mkdir", "write", "fsync", "replace", "link", "unlink", "utime"):
        lethal(name)


def save_and_die(url: str) -> None:
    """In a process without threads: fork a child for each step at which it is to die, until one survives.

    Each child saves a version with a new content, then one with a content that is there.
    """
    with sync.open(url, background=False, seal_interval=None):
        pass  # now everything is imported, which each child would have to do again
    assert threading.active_count() == 1
    for step in range(1, 1000):
        child = os.fork()
        if child == 0:
            with sync.open(url, background=False, seal_interval=None) as memory:
                memory.sessions.create_session(session_of(step), "app", "alice")
                kill_at(step)
                memory.artifacts.save(session_of(step), "x", f"content {step}" * 50_000)
                memory.artifacts.save(session_of(step), "x", "again and again")
                os._exit(0)
        _, status = os.waitpid(child, 0)
        checking = os.fork()
        if checking == 0:
            check_after_death(url, step)
        _, good = os.waitpid(checking, 0)
        assert good == 0, f"killed at step {step}"
        if status == 0:
            sys.stdout.write(f"{step}\n")
            return
        assert status == 9, status
    raise AssertionError("it never survived")


def check_after_death(url: str, step: int) -> None:
    try:
        root = Path(os.environ["MNEMON_CONTENT_URL"].removeprefix("file://"))
        with sync.open(url, background=False, seal_interval=None) as memory:
            session_id = session_of(step)
            for version in memory.artifacts.versions(session_id, "x"):
                memory.artifacts.read(session_id, "x", version.version)  # no record is without its content
            memory.artifacts.cleanup(grace=timedelta(0))
            check_that_all_agree(memory, root, session_id)
            kept = {each.sha256 for each in FileContents(root).listing()}
            recorded = {each.sha256 for each in memory.artifacts.versions(session_id, "x")}
            assert kept == recorded  # no file is without its record
            memory.sessions.delete_session(session_id)
    except Exception as error:  # noqa: BLE001 - told to the parent by the exit code
        sys.stderr.write(f"step {step}: {error!r}\n")
        os._exit(1)
    os._exit(0)


def test_a_process_killed_at_any_step_leaves_neither_a_dangling_record_nor_a_lost_file(
    sqlite_url: str, root: Path
) -> None:
    with sync.open(sqlite_url):
        pass
    done = subprocess.run(
        [sys.executable, "-m", __name__, sqlite_url],
        cwd=ROOT, env={**os.environ}, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode == 0
    assert int(done.stdout) > 40  # so many steps there were
    assert root.exists()


if __name__ == "__main__":
    save_and_die(sys.argv[1])
