"""Files that are not what they should be: refused with a reason, and never made worse."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import mnemon
from mnemon import sync
from tests.robustness.behind import SqliteDatabase, contents

PAGE = 4096


def refuse(file: Path, error: type[mnemon.StoreError], message: str, options: str = "") -> None:
    """Both faces refuse to open the file, and leave every byte of it and its folder as it was."""
    before = {path.name: path.read_bytes() for path in file.parent.iterdir() if path.is_file()}
    with pytest.raises(error, match=message) as caught:
        sync.open(f"sqlite:///{file}{options}")
    assert str(file) in str(caught.value)
    after = {path.name: path.read_bytes() for path in file.parent.iterdir() if path.is_file()}
    assert after == before


@pytest.mark.parametrize("content", [b"Dear diary,\n" * 500, os.urandom(3 * PAGE), b"SQLite format 3\0" + b"x" * 9000])
async def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "memory.db"
    file.write_bytes(content)
    refuse(file, mnemon.StoreCorrupt, "backup")
    with pytest.raises(mnemon.StoreCorrupt, match="backup"):
        await mnemon.open(f"sqlite:///{file}")


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "accounts.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE accounts (id INTEGER)")
    refuse(file, mnemon.SchemaMismatch, "another file")


def test_a_newer_schema_is_refused(file: SqliteDatabase) -> None:
    # given a file that a newer program has made: its schema is unlike ours
    file.query("DROP TABLE tasks")
    file.query("UPDATE mnemon_schema SET version_num = '9999'")
    # then ours leaves it alone
    refuse(file.path, mnemon.SchemaTooNew, "upgrade the package")


def test_a_missing_folder_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(mnemon.StoreUnavailable, match="create it first"):
        sync.open(f"sqlite:///{tmp_path}/nowhere/memory.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(mnemon.StoreUnavailable, match="check the path"):
        sync.open(f"sqlite:///{tmp_path}")


def test_a_missing_file_cannot_be_opened_for_reading(tmp_path: Path) -> None:
    with pytest.raises(mnemon.StoreUnavailable, match="does not exist"):
        sync.open(f"sqlite:///{tmp_path}/memory.db?mode=ro")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------- damaged inside


def update_all(memory: sync.BlockingMemory) -> None:
    for number in range(500):
        memory.memories.update_memory("user:alice", f"k{number}", "new")


def test_a_damaged_page_is_noticed_by_those_who_need_it(file: SqliteDatabase) -> None:
    # given a file whose middle was overwritten
    with sync.open(file.url) as memory:
        for number in range(500):
            memory.memories.add_memory("user:alice", f"k{number}", "value" * 50)
    size = file.path.stat().st_size
    with file.path.open("r+b") as raw:
        raw.seek(size // 3 // PAGE * PAGE)
        raw.write(b"\xff" * (size // 3 // PAGE * PAGE))
    # when it is used, then what needs the damaged part says so
    with sync.open(file.url, seal_interval=None) as memory:
        with pytest.raises(mnemon.StoreCorrupt, match="backup"):
            memory.memories.search_memories(limit=1000)
        with pytest.raises(mnemon.StoreCorrupt, match="backup"):
            update_all(memory)
        # and what does not goes on
        assert memory.sessions.get_session("shared") is not None


# --------------------------------------------------------------------------------------------------------- read-only

WRITES = (
    lambda m: m.sessions.create_session("s2", "app", "alice"),
    lambda m: m.sessions.append_event("shared", {"n": 1}),
    lambda m: m.state.set("x", 1, session_id="shared"),
    lambda m: m.tasks.create("step"),
    lambda m: m.memories.add_memory("user:alice", "new", 1),
    lambda m: m.memories.purge_memory("user:alice", "k"),
    lambda m: m.consumer("c").process(None),
)


def read_but_not_write(memory: sync.BlockingMemory) -> None:
    session = memory.sessions.get_session("shared")
    assert session is not None
    assert [change.entity_id for change in memory.changes(entity="session")] == ["shared"]
    assert memory.verify().intact
    for write in WRITES:
        with pytest.raises(mnemon.StoreReadOnly, match="cannot be written"):
            write(memory)


def test_a_file_opened_for_reading_is_never_written(file: SqliteDatabase) -> None:
    with sync.open(file.url) as memory:
        memory.memories.add_memory("user:alice", "k", "v")
    before = contents(file)
    with sync.open(f"{file.url}?mode=ro") as memory:
        read_but_not_write(memory)
    assert contents(file) == before


async def test_a_file_opened_for_reading_shows_what_others_write(file: SqliteDatabase) -> None:
    async with mnemon.open(f"{file.url}?mode=ro") as reader, mnemon.open(file.url) as writer:
        changes = reader.changes(await reader.position(), True)
        await writer.sessions.append_event("shared", {"n": 1})
        assert (await anext(changes)).entity == "event"
        with pytest.raises(mnemon.StoreReadOnly):
            await reader.sessions.append_event("shared", {"n": 2})


UNPRIVILEGED = """
import os, pwd, sys
import mnemon
from mnemon import sync
sync.open("sqlite://", seal_interval=None).close()  # imports all that somebody without rights could not
if os.getuid() == 0:
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
try:
    with sync.open(sys.argv[1], seal_interval=None) as memory:
        print(len(memory.sessions.list_sessions()), flush=True)
        memory.sessions.create_session("s2", "app", "bob")
except mnemon.StoreError as error:
    print(type(error).__name__, error)
"""


def without_rights(url: str) -> list[str]:
    """What somebody without rights is told who lists the sessions and then creates one."""
    command = [sys.executable, "-c", UNPRIVILEGED, url]
    # Nobody may write the file in which coverage would count this process, and it says so at the end.
    uncounted = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(command, cwd="/", env=uncounted, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture
def public_file(file: SqliteDatabase) -> Iterator[Path]:
    """A file that everybody may read and nobody may write, in a folder that everybody can reach."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "memory.db"
        shutil.copy(file.path, copy)
        copy.chmod(0o444)
        copy.parent.chmod(0o755)
        yield copy
        copy.parent.chmod(0o755)


@pytest.mark.parametrize("mode", [0o555, 0o777])
def test_a_file_without_write_permission_can_be_read(public_file: Path, mode: int) -> None:
    public_file.parent.chmod(mode)
    before = public_file.read_bytes()
    for options in ("", "?mode=ro"):
        seen = without_rights(f"sqlite:///{public_file}{options}")
        assert seen[0] == "1"
        assert seen[1].startswith("StoreReadOnly")
        assert str(public_file) in seen[1]
    assert public_file.read_bytes() == before


def test_a_file_that_may_not_be_read_is_unavailable(public_file: Path) -> None:
    public_file.chmod(0o000)
    public_file.parent.chmod(0o555)
    [complaint] = without_rights(f"sqlite:///{public_file}")
    assert complaint.startswith("StoreUnavailable")
    assert "permissions" in complaint
