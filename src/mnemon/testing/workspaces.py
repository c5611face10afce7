"""The contract of `WorkspaceService`: files and their versions, snapshots, clones, real folders, and who may."""

import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from mnemon.errors import (
    AccessDenied,
    ConflictError,
    InvalidCursor,
    InvalidIdentifier,
    InvalidInput,
    InvalidNamespace,
    InvalidPath,
    InvalidValue,
    PathTaken,
    SnapshotNotFound,
    WorkspaceExists,
    WorkspaceFileNotFound,
    WorkspaceNotFound,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import FileDraft, Principal, Progress
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.suite import Suite, journal_after, last_position, peek, plant, refused, unchanged

HOSTILE = (
    "", ".", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "a\\b", "..\\x", "C:\\x", "C:x", "c:/x", "nul\0",
    "a\nb", "a/\x1b[2J", "\ud800", "a\u202eb", "x" * 256, "y/" * 600, "ü" * 200, "a\U0010ffff", "a/",
)  # fmt: skip
"""Paths that no call may take."""


async def tree(memory: HybridMemoryService, workspace_id: str = "w", **wanted: Any) -> dict[str, bytes]:
    """All files of a workspace with what is in them."""
    files = await memory.workspaces.list_files(workspace_id, **wanted)
    at = wanted.get("at")
    return {file.path: await memory.workspaces.read(workspace_id, file.path, at=at) for file in files}


def told(differences: Any) -> list[tuple[str, str]]:
    """The kinds and paths of differences."""
    return [(each.kind, each.path) for each in differences]


def fill(folder: Path, files: dict[str, str]) -> Path:
    """Write real files below a folder."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def contents_of(folder: Path) -> dict[str, str]:
    """The real files below a folder; a link shows where it leads."""
    return {
        str(each.relative_to(folder)): f"-> {each.readlink()}" if each.is_symlink() else each.read_text()
        for each in sorted(folder.rglob("*"))
        if each.is_symlink() or each.is_file()
    }


class WorkspaceSuite(Suite):
    """Any backend must pass, with any store for contents; override the fixture `memory`."""

    # -- workspaces

    async def test_a_new_workspace_is_empty(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        made = await memory.workspaces.create("w", metadata={"for": "a"}, actor="bot", task_id="t1")

        assert (made.id, made.namespace, made.metadata) == ("w", "app:workspaces:w", {"for": "a"})
        assert (made.revision, made.files, made.size, made.created_by) == (0, 0, 0, "bot")
        assert (made.created_at, made.updated_at) == (clock.moment, clock.moment)
        assert await memory.workspaces.get("w") == made
        assert await memory.workspaces.get("other") is None
        assert await tree(memory) == {}
        assert await journal_after(store) == [("workspace", "w", "create", 0, "app:workspaces:w")]
        [change] = await memory.audit(task_id="t1")
        assert change.actor == "bot"

    async def test_what_cannot_be_a_workspace_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.workspaces.create("w")

        async with refused(store, WorkspaceExists, "w"):
            await memory.workspaces.create("w", namespace="user:alice")
        for bad in ("", "a:b", "x" * 257):
            async with refused(store, InvalidIdentifier, "workspace_id"):
                await memory.workspaces.create(bad)
        async with refused(store, InvalidNamespace):
            await memory.workspaces.create("v", namespace="nowhere:x")
        async with refused(store, InvalidValue, "metadata"):
            await memory.workspaces.create("v", metadata={"x": {1}})
        assert (await memory.workspaces.create()).id != (await memory.workspaces.create()).id

    async def test_workspaces_are_listed_by_namespace(self, memory: HybridMemoryService) -> None:
        for name, namespace in (
            ("b", "user:al"),
            ("a", "user:alice"),
            ("c", "user:al:x"),
            ("d", "user:al!"),
            ("e", None),
        ):
            await memory.workspaces.create(name, namespace=namespace)

        async def listed(prefix: str, limit: int = 2) -> str:
            found, cursor = list[str](), None
            while True:
                page = await memory.workspaces.list(prefix, limit=limit, cursor=cursor)
                found += [each.id for each in page]
                cursor = page.next_cursor
                if cursor is None:
                    return " ".join(found)

        assert await listed("") == "e b d c a"
        assert await listed("user:al") == "b c"
        assert await listed("user") == "b d c a"
        assert await listed("project:p") == ""
        scoped = memory.as_principal(Principal("p", {"user:al": "read", "user:al!": "read"}))
        assert [each.id for each in await scoped.workspaces.list()] == ["b", "d", "c"]
        with pytest.raises(InvalidCursor):
            await memory.workspaces.list(cursor="nonsense")

    async def test_metadata_of_a_workspace_is_replaced(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.workspaces.create("w", metadata={"a": 1})

        changed = await memory.workspaces.update_metadata("w", {"b": 2}, actor="bot")

        assert (changed.metadata, changed.revision) == ({"b": 2}, 0)
        assert await memory.workspaces.get("w") == changed
        assert (await journal_after(store))[-1] == ("workspace", "w", "metadata", 0, "app:workspaces:w")

    async def test_a_deleted_workspace_leaves_nothing_but_its_journal(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write("w", "a", "1")
        await memory.workspaces.write("w", "a", "2")
        await memory.workspaces.snapshot("w")

        await memory.workspaces.delete("w", actor="bot")

        for table in ("workspaces", "workspace_files", "workspace_snapshots"):
            assert await peek(store, f"SELECT COUNT(*) FROM {table}") == [(0,)]
        assert (await journal_after(store))[-1] == ("workspace", "w", "delete", 2, "app:workspaces:w")
        assert (await memory.workspaces.create("w")).revision == 0

    async def test_an_unknown_workspace_is_not_found_by_any_method(
        self, memory: HybridMemoryService, store: Store, tmp_path: Path
    ) -> None:
        spaces = memory.workspaces
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: spaces.update_metadata("x", {}), lambda: spaces.delete("x"), lambda: spaces.clone("x"),
            lambda: spaces.write("x", "a", ""), lambda: spaces.write_many("x", {"a": ""}),
            lambda: spaces.set_metadata("x", "a", {}), lambda: spaces.remove("x", "a"),
            lambda: spaces.move("x", "a", "b"), lambda: spaces.stat("x", "a"), lambda: spaces.read("x", "a"),
            lambda: spaces.list_files("x"), lambda: spaces.history("x", "a"), lambda: spaces.snapshot("x"),
            lambda: spaces.get_snapshot("x", 1), lambda: spaces.log("x"), lambda: spaces.diff("x", 1),
            lambda: spaces.restore("x", 1), lambda: spaces.prune("x", keep=1),
            lambda: spaces.import_folder("x", tmp_path), lambda: spaces.export_folder("x", tmp_path / "new"),
        ]  # fmt: skip
        for call in calls:
            async with refused(store, WorkspaceNotFound, "no workspace 'x'"):
                await call()

    # -- files

    async def test_what_is_written_is_read(self, memory: HybridMemoryService, store: Store, clock: ManualClock) -> None:
        await memory.workspaces.create("w")
        clock.advance()

        file = await memory.workspaces.write(
            "w", "src/main.py", "print('hé')\n", metadata={"by": "llm"}, is_executable=True, actor="bot", task_id="t1"
        )

        assert (file.workspace_id, file.path, file.version, file.until, file.size) == ("w", "src/main.py", 1, None, 13)
        assert (file.metadata, file.is_executable, file.updated_by) == ({"by": "llm"}, True, "bot")
        assert file.updated_at == clock.moment
        assert await memory.workspaces.stat("w", "src/main.py") == file
        assert await memory.workspaces.read("w", PurePosixPath("src/main.py")) == "print('hé')\n".encode()
        assert [piece async for piece in memory.workspaces.open("w", "src/main.py", offset=10)] == [b"')\n"]
        workspace = await memory.workspaces.get("w")
        assert workspace is not None
        assert (workspace.revision, workspace.files, workspace.size) == (1, 1, 13)
        assert workspace.updated_at == clock.moment
        assert (await journal_after(store))[-1] == ("workspace", "w", "write", 1, "app:workspaces:w")
        [change] = await memory.audit(task_id="t1")
        assert change.payload == {"files": 1, "paths": ["src/main.py"]}

    async def test_every_kind_of_data_can_be_written(self, memory: HybridMemoryService, tmp_path: Path) -> None:
        await memory.workspaces.create("w")
        real = tmp_path / "real"
        real.write_bytes(b"abc")

        async def pieces() -> AsyncIterator[bytes]:
            yield b"ab"
            yield b"c"

        with real.open("rb") as opened:
            for number, data in enumerate((b"abc", bytearray(b"abc"), "abc", real, opened, [b"a", b"bc"], pieces())):
                file = await memory.workspaces.write("w", f"{number}", data)
                assert await memory.workspaces.read("w", file.path) == b"abc"
        assert (await memory.workspaces.write("w", "empty", b"")).size == 0
        assert await memory.workspaces.read("w", "empty") == b""
        nothing: Any = 5
        with pytest.raises(InvalidValue):
            await memory.workspaces.write("w", "a", nothing)

    async def test_every_write_is_a_version_that_can_be_read(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.workspaces.create("w")
        first = await memory.workspaces.write("w", "a", "one", metadata={"n": 1}, is_executable=True)
        await memory.workspaces.write("w", "b", "other")
        second = await memory.workspaces.write("w", "a", "two")

        assert (first.version, second.version) == (1, 3)
        assert (second.metadata, second.is_executable) == ({"n": 1}, True)
        assert [(each.version, each.until) for each in await memory.workspaces.history("w", "a")] == [(3, None), (1, 3)]
        assert await memory.workspaces.read("w", "a", version=1) == b"one"
        assert await memory.workspaces.read("w", "a", version=3) == b"two"
        assert await memory.workspaces.stat("w", "a", version=2) is None
        assert await memory.workspaces.history("w", "c") == []
        with pytest.raises(WorkspaceFileNotFound, match="no file 'a'"):
            await memory.workspaces.read("w", "a", version=2)

        before = await last_position(store)
        async with unchanged(store):
            assert await memory.workspaces.write("w", "a", b"two") == second
        assert await last_position(store) == before
        plain = await memory.workspaces.write("w", "a", "two", metadata={}, is_executable=False)
        assert (plain.version, plain.metadata, plain.is_executable, plain.sha256) == (4, {}, False, second.sha256)

    async def test_a_file_that_is_not_there_is_none_or_not_found(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write("w", "dir/a", "1")

        assert await memory.workspaces.stat("w", "dir") is None
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: memory.workspaces.read("w", "dir"),
            lambda: anext(memory.workspaces.open("w", "dir/b")),
            lambda: memory.workspaces.remove("w", "b"),
            lambda: memory.workspaces.move("w", "b", "c"),
            lambda: memory.workspaces.set_metadata("w", "dir", {}),
        ]
        for call in calls:
            async with refused(store, WorkspaceFileNotFound, "workspace 'w' has no file"):
                await call()
        with pytest.raises(FileNotFoundError):
            await memory.workspaces.read("w", "b")

    async def test_a_stale_version_changes_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write("w", "a", "1", expected_version=0)

        for stale in (0, 2):
            async with refused(store, ConflictError, f"'a' has version 1, not {stale}"):
                await memory.workspaces.write("w", "a", "2", expected_version=stale)
        async with refused(store, ConflictError, "'b' has version 0, not 1"):
            await memory.workspaces.write("w", "b", "2", expected_version=1)
        async with refused(store, ConflictError):
            await memory.workspaces.remove("w", "a", expected_version=2)
        async with refused(store, ConflictError):
            await memory.workspaces.set_metadata("w", "a", {"x": 1}, expected_version=2)
        assert (await memory.workspaces.write("w", "a", "2", expected_version=1)).version == 2
        assert await memory.workspaces.remove("w", "a", expected_version=2) == 1

    async def test_several_files_are_one_revision_or_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.workspaces.create("w")

        written = await memory.workspaces.write_many("w", {"a/1": "x", "a/2": b"y", "b": "z"}, actor="bot")

        assert [(file.path, file.version, file.updated_by) for file in written] == [
            ("a/1", 1, "bot"),
            ("a/2", 1, "bot"),
            ("b", 1, "bot"),
        ]
        drafts = [FileDraft("c", "new"), FileDraft("b", "other", expected_version=9)]
        async with refused(store, ConflictError, "'b'"):
            await memory.workspaces.write_many("w", drafts)
        async with refused(store, PathTaken, "twice"):
            await memory.workspaces.write_many("w", {"c": "1", "./c": "2"})
        for clash in ({"d": "1", "d/e": "2"}, {"d/e": "2", "d": "1"}, {"b/c": "1"}, {"a": "1"}):
            async with refused(store, PathTaken):
                await memory.workspaces.write_many("w", clash)
        strange: Any = ["c"]
        async with refused(store, InvalidValue, "drafts"):
            await memory.workspaces.write_many("w", strange)
        assert await memory.workspaces.write_many("w", {}) == []

    async def test_a_path_is_a_file_or_a_folder(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write_many("w", {"a/b/c": "1", "a-b": "2", "a.txt": "3", "d": "4"})

        for path in ("a", "a/b", "a/b/c/d", "d/e/f"):
            async with refused(store, PathTaken, "folder|nothing can be below"):
                await memory.workspaces.write("w", path, "x")
        async with refused(store, PathTaken):
            await memory.workspaces.move("w", "d", "a")
        async with refused(store, PathTaken):
            await memory.workspaces.move("w", "a", "d", overwrite=True)
        assert await memory.workspaces.remove("w", "a/") == 1
        await memory.workspaces.write("w", "a", "now a file")
        assert await tree(memory) == {"a": b"now a file", "a-b": b"2", "a.txt": b"3", "d": b"4"}

    async def test_names_that_only_look_different_are_one_file(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write("w", "cafe\u0301/./x//y", "1")

        file = await memory.workspaces.write("w", "caf\xe9/x/y", "2")

        assert (file.path, file.version) == ("caf\xe9/x/y", 2)
        assert await tree(memory) == {"caf\xe9/x/y": b"2"}

    async def test_hostile_paths_are_refused_everywhere(
        self, memory: HybridMemoryService, store: Store, tmp_path: Path
    ) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write("w", "a", "1")
        await memory.workspaces.snapshot("w")
        spaces = memory.workspaces
        for path in HOSTILE:
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda path=path: spaces.write("w", path, "x"), lambda path=path: spaces.write_many("w", {path: "x"}),
                lambda path=path: spaces.set_metadata("w", path, {}), lambda path=path: spaces.stat("w", path),
                lambda path=path: spaces.read("w", path), lambda path=path: anext(spaces.open("w", path)),
                lambda path=path: spaces.history("w", path), lambda path=path: spaces.move("w", "a", f"{path}/x"),
            ]  # fmt: skip
            if path not in ("", ".", "a/"):  # which are folders
                calls += [
                    lambda path=path: spaces.remove("w", path), lambda path=path: spaces.list_files("w", path),
                    lambda path=path: spaces.move("w", path, "b"), lambda path=path: spaces.move("w", "a", path),
                    lambda path=path: spaces.diff("w", 1, prefix=path),
                    lambda path=path: spaces.restore("w", 1, prefix=path),
                    lambda path=path: spaces.import_folder("w", tmp_path, prefix=path),
                    lambda path=path: spaces.export_folder("w", tmp_path / "new", prefix=path),
                ]  # fmt: skip
            for number, call in enumerate(calls):
                if number == 7 and path in ("", ".", "a/"):
                    continue  # "a//x" is a fine path
                async with refused(store, InvalidPath):
                    await call()
        strange: Any = 5
        async with refused(store, InvalidPath):
            await spaces.write("w", strange, "x")

    async def test_files_and_folders_are_removed(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write_many("w", {"a/1": "x", "a/b/2": "y", "a0": "z", "c": "é"})

        assert await memory.workspaces.remove("w", "a", actor="bot") == 2
        assert await tree(memory) == {"a0": b"z", "c": "é".encode()}
        workspace = await memory.workspaces.get("w")
        assert workspace is not None
        assert (workspace.revision, workspace.files, workspace.size) == (2, 2, 3)
        assert await memory.workspaces.read("w", "a/1", version=1) == b"x"
        [change] = await memory.audit(operation="remove")
        assert (change.actor, change.version, change.payload) == ("bot", 2, {"files": 2, "paths": ["a/1", "a/b/2"]})
        assert await memory.workspaces.remove("w", "") == 2
        assert await tree(memory) == {}

    async def test_files_and_folders_are_moved(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write("w", "a/1", "x", metadata={"n": 1}, is_executable=True)
        await memory.workspaces.write_many("w", {"a/b/2": "y", "a0": "z"})

        assert await memory.workspaces.move("w", "a", "deep/er") == 2
        assert await tree(memory) == {"a0": b"z", "deep/er/1": b"x", "deep/er/b/2": b"y"}
        moved = await memory.workspaces.stat("w", "deep/er/1")
        assert moved is not None
        assert (moved.metadata, moved.is_executable, moved.version) == ({"n": 1}, True, 3)
        async with refused(store, PathTaken, "overwrite=True"):
            await memory.workspaces.move("w", "a0", "deep/er/1")
        assert await memory.workspaces.move("w", "a0", "deep/er/1", overwrite=True) == 1
        async with refused(store, PathTaken, "into itself"):
            await memory.workspaces.move("w", "deep", "deep/er/est")
        assert await memory.workspaces.move("w", "deep/er", "deep") == 2
        assert await tree(memory) == {"deep/1": b"z", "deep/b/2": b"y"}
        assert await memory.workspaces.move("w", "deep", "deep/") == 0
        [change] = await memory.audit(operation="move", limit=1)
        assert (change.payload["from"], change.payload["to"]) == ("deep/er", "deep")
        async with refused(store, InvalidPath):
            await memory.workspaces.move("w", "deep", "y/" * 510 + "z")

    async def test_what_is_noted_of_a_file_is_replaced(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w")
        first = await memory.workspaces.write("w", "a", "1", metadata={"x": 1})

        noted = await memory.workspaces.set_metadata("w", "a", {"y": 2}, actor="bot")
        run = await memory.workspaces.set_metadata("w", "a", {"y": 2}, is_executable=True)

        assert (noted.metadata, noted.version, noted.updated_by, noted.sha256) == ({"y": 2}, 2, "bot", first.sha256)
        assert (run.is_executable, run.version) == (True, 3)

    async def test_files_are_listed_by_folder_in_order_page_by_page(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w")
        names = ["src/a", "src/b/c", "src/é", "src-old", "src.txt", "srd", "0"]
        await memory.workspaces.write_many("w", dict.fromkeys(names, "x"))
        await memory.workspaces.snapshot("w")
        await memory.workspaces.remove("w", "src")

        async def listed(prefix: str, limit: int = 2, at: int | None = 1) -> list[str]:
            found, cursor = list[str](), None
            while True:
                page = await memory.workspaces.list_files("w", prefix, at=at, limit=limit, cursor=cursor)
                found += [file.path for file in page]
                cursor = page.next_cursor
                if cursor is None:
                    return found

        assert await listed("") == sorted(names)
        assert await listed("src") == await listed("src/", 3) == ["src/a", "src/b/c", "src/é"]
        assert await listed("src/b/c") == ["src/b/c"]
        assert await listed("sr") == await listed("src", at=None) == []
        assert await listed(".", at=None) == ["0", "src-old", "src.txt", "srd"]
        with pytest.raises(InvalidInput, match="limit"):
            await listed("", 0)
        with pytest.raises(InvalidCursor):
            await memory.workspaces.list_files("w", cursor="nonsense")

    # -- snapshots

    async def test_a_snapshot_is_one_row_and_a_changed_file_another(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write_many("w", {f"{number}": "same" for number in range(50)})

        async def rows() -> tuple[int, int]:
            [(files,)] = await peek(store, "SELECT COUNT(*) FROM workspace_files")
            [(snapshots,)] = await peek(store, "SELECT COUNT(*) FROM workspace_snapshots")
            return files, snapshots

        first = await memory.workspaces.snapshot("w", "first\nof all", actor="bot", task_id="t1")
        assert (first.workspace_id, first.number, first.revision, first.message) == ("w", 1, 1, "first\nof all")
        assert (first.files, first.size, first.created_by, first.task_id) == (50, 200, "bot", "t1")
        assert first.created_at == clock.moment
        assert await rows() == (50, 1)
        await memory.workspaces.write("w", "7", "changed")
        assert (await memory.workspaces.snapshot("w")).number == 2
        assert await rows() == (51, 2)
        assert await memory.workspaces.get_snapshot("w", 1) == first
        assert await memory.workspaces.get_snapshot("w", 3) is None
        assert (await journal_after(store))[-1] == ("workspace", "w", "snapshot", 2, "app:workspaces:w")
        strange: Any = 5
        for bad in ("nul\0", "\ud800", strange):
            async with refused(store, InvalidValue, "message"):
                await memory.workspaces.snapshot("w", bad)

    async def test_the_log_has_the_newest_snapshot_first(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w")
        taken = [await memory.workspaces.snapshot("w", f"{number}") for number in range(5)]

        page = await memory.workspaces.log("w", limit=3)
        rest = await memory.workspaces.log("w", limit=3, cursor=page.next_cursor)

        assert [*page, *rest] == taken[::-1]
        assert rest.next_cursor is None

    async def test_what_a_snapshot_had_can_be_read_whatever_happens_after(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write_many("w", {"a": "1", "b/c": "2"})
        first = await memory.workspaces.snapshot("w")
        await memory.workspaces.write("w", "a", "changed")
        await memory.workspaces.remove("w", "b")
        await memory.workspaces.write("w", "b", "now a file")
        await memory.workspaces.snapshot("w")
        await memory.workspaces.remove("w", "")

        assert await tree(memory, at=first) == {"a": b"1", "b/c": b"2"}
        assert await tree(memory, at=2) == {"a": b"changed", "b": b"now a file"}
        assert await tree(memory) == {}
        stated = await memory.workspaces.stat("w", "b/c", at=1)
        assert stated is not None
        assert (stated.version, stated.until) == (1, 3)
        for wrong in (0, 3, 2**62):
            with pytest.raises(SnapshotNotFound, match=f"no snapshot {wrong}"):
                await memory.workspaces.read("w", "a", at=wrong)
        await memory.workspaces.create("other")
        with pytest.raises(SnapshotNotFound, match="of workspace 'w'"):
            await memory.workspaces.list_files("other", at=first)
        strange: Any = "1"
        with pytest.raises(InvalidInput, match="number"):
            await memory.workspaces.list_files("w", at=strange)

    async def test_a_difference_says_what_became_of_each_file(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write_many(
            "w",
            {"kept": "k", "gone": "g", "changed": "a\nb\n", "old/name": "same", "back": "1", "empty": "", "run": "r"},
        )
        await memory.workspaces.snapshot("w")
        await memory.workspaces.remove("w", "gone")
        await memory.workspaces.write("w", "changed", "a\nc")
        await memory.workspaces.move("w", "old/name", "new/name")
        await memory.workspaces.write("w", "back", "2")
        await memory.workspaces.write("w", "back", "1")
        await memory.workspaces.move("w", "empty", "void")
        await memory.workspaces.write("w", "run", "r", is_executable=True)
        await memory.workspaces.write("w", "passing", "x")
        await memory.workspaces.remove("w", "passing")
        await memory.workspaces.snapshot("w")

        forward = await memory.workspaces.diff("w", 1, 2)

        assert told(forward) == [
            ("changed", "changed"), ("removed", "empty"), ("removed", "gone"), ("renamed", "new/name"),
            ("changed", "run"), ("added", "void"),
        ]  # fmt: skip
        assert await memory.workspaces.diff("w", 1) == forward
        assert await memory.workspaces.diff("w", 2) == []
        assert told(await memory.workspaces.diff("w", 2, 1)) == [
            ("changed", "changed"), ("added", "empty"), ("added", "gone"), ("renamed", "old/name"),
            ("changed", "run"), ("removed", "void"),
        ]  # fmt: skip
        renamed = forward[3]
        assert renamed.before is not None
        assert renamed.after is not None
        assert (renamed.before.path, renamed.after.path) == ("old/name", "new/name")
        assert told(await memory.workspaces.diff("w", 1, prefix="new")) == [("added", "new/name")]

    async def test_a_difference_of_texts_can_be_shown_as_one(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write_many("w", {"t": "a\nb\n", "binary": b"\0\1", "latin": b"\xff"})
        await memory.workspaces.snapshot("w")
        await memory.workspaces.write_many("w", {"t": "a\nc", "binary": b"\0\2", "latin": b"\xfe", "n": "new\n"})
        await memory.workspaces.write("w", "large", b"x" * 1_048_577)

        found = {each.path: each.text for each in await memory.workspaces.diff("w", 1, text=True)}

        assert found["t"] == "--- a/t\n+++ b/t\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"
        assert found["n"] == "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+new\n"
        assert (found["binary"], found["latin"], found["large"]) == (None, None, None)

    async def test_restoring_is_a_change_that_loses_nothing(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write("w", "a", "1", metadata={"n": 1}, is_executable=True)
        await memory.workspaces.write_many("w", {"b/c": "2", "same": "s"})
        await memory.workspaces.snapshot("w")
        then = await memory.workspaces.stat("w", "same")
        await memory.workspaces.write("w", "a", "changed", metadata={}, is_executable=False)
        await memory.workspaces.remove("w", "b")
        await memory.workspaces.write_many("w", {"b": "now a file", "d": "new"})
        await memory.workspaces.snapshot("w")
        clock.advance()

        done = await memory.workspaces.restore("w", 1, actor="bot")

        assert told(done) == [("changed", "a"), ("removed", "b"), ("added", "b/c"), ("removed", "d")]
        assert await tree(memory) == {"a": b"1", "b/c": b"2", "same": b"s"}
        restored = await memory.workspaces.stat("w", "a")
        assert restored is not None
        assert (restored.metadata, restored.is_executable, restored.updated_by) == ({"n": 1}, True, "bot")
        assert restored.updated_at == clock.moment
        assert await memory.workspaces.stat("w", "same") == then
        assert await tree(memory, at=2) == {"a": b"changed", "b": b"now a file", "d": b"new", "same": b"s"}
        workspace = await memory.workspaces.get("w")
        assert workspace is not None
        assert (workspace.revision, workspace.files, workspace.size) == (6, 3, 3)
        [change] = await memory.audit(operation="restore")
        assert (change.version, change.payload["snapshot"], change.payload["files"]) == (6, 1, 4)
        async with unchanged(store):
            assert await memory.workspaces.restore("w", 1) == []
        assert told(await memory.workspaces.restore("w", 2)) == [
            ("changed", "a"), ("added", "b"), ("removed", "b/c"), ("added", "d"),
        ]  # fmt: skip
        async with refused(store, SnapshotNotFound):
            await memory.workspaces.restore("w", 3)

    async def test_a_folder_can_be_restored_alone(self, memory: HybridMemoryService) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write_many("w", {"src/a": "1", "src/b": "2", "notes": "3"})
        await memory.workspaces.snapshot("w")
        await memory.workspaces.write_many("w", {"src/a": "x", "notes": "y", "src/new": "z"})

        done = await memory.workspaces.restore("w", 1, prefix="src")

        assert told(done) == [("changed", "src/a"), ("removed", "src/new")]
        assert await tree(memory) == {"src/a": b"1", "src/b": b"2", "notes": b"y"}

    async def test_a_clone_has_the_same_files_and_goes_its_own_way(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.workspaces.create("w", metadata={"m": 1})
        await memory.workspaces.write("w", "a", "1", metadata={"n": 1}, is_executable=True)
        await memory.workspaces.write("w", "b", "22")
        await memory.workspaces.snapshot("w")
        await memory.workspaces.remove("w", "b")

        now = await memory.workspaces.clone("w", "now", namespace="user:bob", actor="bob")
        then = await memory.workspaces.clone("w", "then", at=1, metadata={})

        assert (now.namespace, now.metadata, now.created_by) == ("user:bob", {"m": 1}, "bob")
        assert (now.files, now.size, now.revision) == (1, 1, 1)
        assert (then.files, then.size, then.metadata) == (2, 3, {})
        assert await memory.workspaces.get("now") == now
        assert await tree(memory, "then") == {"a": b"1", "b": b"22"}
        file = await memory.workspaces.stat("now", "a")
        assert file is not None
        assert (file.metadata, file.is_executable, file.version) == ({"n": 1}, True, 1)
        await memory.workspaces.write("now", "a", "mine")
        assert (await tree(memory, "now"), await tree(memory)) == ({"a": b"mine"}, {"a": b"1"})
        assert not await memory.workspaces.log("now")
        [change] = await memory.audit(entity="workspace", entity_id="now", operation="create")
        assert change.payload == {"cloned_from": "w", "revision": 3}
        async with refused(store, WorkspaceExists):
            await memory.workspaces.clone("w", "now")
        await memory.workspaces.create("empty")
        assert (await memory.workspaces.clone("empty")).revision == 0

    async def test_pruning_forgets_what_nobody_sees(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.workspaces.create("w")
        for number in range(4):
            await memory.workspaces.write("w", "a", f"passing {number}")
            await memory.workspaces.write("w", "a", f"seen {number}")
            await memory.workspaces.snapshot("w")
        await memory.workspaces.write("w", "a", "now")
        await memory.workspaces.create("other")
        await memory.workspaces.write("other", "a", "1")
        await memory.workspaces.write("other", "a", "2")

        pruned = await memory.workspaces.prune("w", keep=2, actor="bot")

        assert (pruned.snapshots, pruned.versions) == (2, 6)
        assert [each.number for each in await memory.workspaces.log("w")] == [4, 3]
        assert await tree(memory, at=3) == {"a": b"seen 2"}
        assert await tree(memory, at=4) == {"a": b"seen 3"}
        assert await tree(memory) == {"a": b"now"}
        assert len(await memory.workspaces.history("other", "a")) == 2
        [change] = await memory.audit(operation="prune")
        assert (change.actor, change.payload) == ("bot", {"snapshots": 2, "versions": 6})
        async with unchanged(store):
            assert (await memory.workspaces.prune("w", keep=2)).versions == 0
        assert (await memory.workspaces.snapshot("w")).number == 5
        strange: Any = True
        for bad in (0, -1, 2**40, strange):
            async with refused(store, InvalidInput, "keep"):
                await memory.workspaces.prune("w", keep=bad)

    # -- real folders

    async def test_a_folder_comes_in_and_goes_out_as_it_is(self, memory: HybridMemoryService, tmp_path: Path) -> None:
        source = fill(
            tmp_path / "source", {"a.txt": "1", "b/c": "2", "b/d/é": "3", "run.sh": "#!/bin/sh\n", "empty": ""}
        )
        (source / "run.sh").chmod(0o755)
        (source / "nothing").mkdir()
        await memory.workspaces.create("w")
        heard: list[Progress] = []

        done = await memory.workspaces.import_folder("w", source, progress=heard.append, actor="bot")
        count = await memory.workspaces.export_folder("w", tmp_path / "new/target", progress=heard.append)

        assert (done.added, done.changed, done.unchanged, done.removed, done.skipped) == (5, 0, 0, 0, ())
        assert count == 5
        assert contents_of(tmp_path / "new/target") == contents_of(source)
        modes = [(tmp_path / "new/target" / name).stat().st_mode & stat.S_IXUSR for name in ("run.sh", "a.txt")]
        assert modes == [stat.S_IXUSR, 0]
        assert [(each.done, each.total) for each in heard] == [(5, 5), (5, 5)]
        [change] = await memory.audit(operation="import")
        assert (change.actor, change.payload["files"]) == ("bot", 5)

    async def test_importing_again_writes_only_what_changed(
        self, memory: HybridMemoryService, store: Store, tmp_path: Path
    ) -> None:
        source = fill(tmp_path / "source", {"a": "1", "b": "2", "c": "3", "cache/x": "4", "keep.log": "5"})
        await memory.workspaces.create("w")
        await memory.workspaces.import_folder("w", source)
        await memory.workspaces.set_metadata("w", "b", {"noted": True})
        await memory.workspaces.write("w", "mine", "m")

        async with unchanged(store):
            again = await memory.workspaces.import_folder("w", source)
        assert (again.added, again.changed, again.unchanged) == (0, 0, 5)
        fill(source, {"b": "X", "new": "n"})
        (source / "a").chmod(0o755)
        for name in ("c", "cache/x", "keep.log"):
            (source / name).unlink()
        some = await memory.workspaces.import_folder("w", source)
        assert (some.added, some.changed, some.unchanged, some.removed) == (1, 2, 0, 0)
        noted = await memory.workspaces.stat("w", "b")
        assert noted is not None
        assert noted.metadata == {"noted": True}
        exact = await memory.workspaces.import_folder("w", source, ignore=["*.log"], mirror=True)
        assert (exact.unchanged, exact.removed) == (3, 3)
        assert sorted(await tree(memory)) == ["a", "b", "keep.log", "new"]

    async def test_an_import_can_have_a_place_and_leave_things_out(
        self, memory: HybridMemoryService, tmp_path: Path
    ) -> None:
        names = [
            "a.py",
            "a.pyc",
            "x/a.pyc",
            "x/b.py",
            ".git/config",
            "build/out",
            "x/build/in",
            "docs/1.md",
            "docs/s/2.md",
        ]
        source = fill(tmp_path / "source", dict.fromkeys(names, "x"))
        await memory.workspaces.create("w")
        await memory.workspaces.write_many("w", {"in/old": "o", "else": "e"})

        done = await memory.workspaces.import_folder(
            "w", str(source), prefix="in", ignore=["*.pyc", ".git/", "/build", "docs/*.md"], mirror=True
        )

        assert sorted(await tree(memory)) == ["else", "in/a.py", "in/docs/s/2.md", "in/x/b.py", "in/x/build/in"]
        assert (done.added, done.removed) == (4, 1)
        count = await memory.workspaces.export_folder("w", tmp_path / "part", prefix="in/x")
        assert (count, sorted(contents_of(tmp_path / "part"))) == (2, ["b.py", "build/in"])
        await memory.workspaces.export_folder("w", tmp_path / "one", prefix="in/x/b.py")
        assert contents_of(tmp_path / "one") == {"b.py": "x"}

    async def test_an_import_follows_no_link_and_says_what_it_left_out(
        self, memory: HybridMemoryService, tmp_path: Path
    ) -> None:
        secret = fill(tmp_path / "outside", {"secret": "s"})
        source = fill(tmp_path / "source", {"fine": "f", "back\\slash": "x", "e\u0301": "1", "\xe9": "2"})
        (source / "link").symlink_to(secret / "secret")
        (source / "folder").symlink_to(secret, target_is_directory=True)
        os.mkfifo(source / "pipe")
        (source / os.fsdecode(b"half-\xff")).write_text("x")
        await memory.workspaces.create("w")

        done = await memory.workspaces.import_folder("w", source)

        assert await tree(memory) == {"fine": b"f", "\xe9": b"1"}
        assert (done.added, len(done.skipped)) == (2, 6)
        reasons = "\n".join(sorted(done.skipped))
        for said in (
            "link: a link",
            "folder: a link",
            "pipe: not a plain file",
            "backslash",
            "other accents",
            "half-?",
        ):
            assert said in reasons
        with pytest.raises(InvalidInput, match="not a folder"):
            await memory.workspaces.import_folder("w", source / "fine")
        with pytest.raises(InvalidPath, match="pattern"):
            await memory.workspaces.import_folder("w", source, ignore=[""])

    async def test_an_export_needs_an_empty_folder_or_leave_to_overwrite(
        self, memory: HybridMemoryService, tmp_path: Path
    ) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write_many("w", {"a": "1", "b/c": "2"})
        await memory.workspaces.snapshot("w")
        await memory.workspaces.write("w", "a", "changed")
        target = fill(tmp_path / "target", {"a": "mine", "other": "o"})

        with pytest.raises(InvalidInput, match="not empty"):
            await memory.workspaces.export_folder("w", target)
        assert contents_of(target) == {"a": "mine", "other": "o"}
        assert await memory.workspaces.export_folder("w", target, at=1, overwrite=True) == 2
        assert contents_of(target) == {"a": "1", "b/c": "2", "other": "o"}
        with pytest.raises(InvalidInput, match="not a folder"):
            await memory.workspaces.export_folder("w", target / "other")

    async def test_an_export_writes_nothing_outside_its_folder(
        self, memory: HybridMemoryService, store: Store, tmp_path: Path
    ) -> None:
        outside = fill(tmp_path / "outside", {"victim": "v"})
        target = fill(tmp_path / "target", {"x": "x"})
        (target / "folder").symlink_to(outside, target_is_directory=True)
        (target / "file").symlink_to(outside / "victim")
        await memory.workspaces.create("w")
        await memory.workspaces.write("w", "folder/victim", "stolen")
        with pytest.raises(PathTaken, match="'folder/victim' cannot be written"):
            await memory.workspaces.export_folder("w", target, overwrite=True)
        await memory.workspaces.remove("w", "folder")
        await memory.workspaces.write("w", "file", "new")
        await memory.workspaces.export_folder("w", target, overwrite=True)
        assert contents_of(target) == {"file": "new", "folder": f"-> {outside}", "x": "x"}
        for path in ("../victim", "/tmp/victim", "a/../../outside/victim"):
            await plant(store, "UPDATE workspace_files SET path = :path WHERE path = 'file'", path=path)
            with pytest.raises(InvalidPath):
                await memory.workspaces.export_folder("w", tmp_path / "fresh")
            await plant(store, "UPDATE workspace_files SET path = 'file' WHERE path = :path", path=path)
        assert contents_of(outside) == {"victim": "v"}
        assert contents_of(tmp_path / "fresh") == {}

    # -- who may, and several at once

    async def test_grants_decide_inside_every_query(
        self, memory: HybridMemoryService, store: Store, tmp_path: Path
    ) -> None:
        await memory.workspaces.create("w", namespace="user:alice:w")
        await memory.workspaces.write("w", "a", "1")
        await memory.workspaces.snapshot("w")
        reader = memory.as_principal(Principal("reader", {"user:alice": "read"})).workspaces
        writer = memory.as_principal(Principal("writer", {"user:alice": "write"})).workspaces
        stranger = memory.as_principal(Principal("stranger", {"user:al": "admin"})).workspaces

        assert await reader.read("w", "a") == b"1"
        assert await stranger.get("w") is None
        assert [await reader.diff("w", 1), list(await stranger.list("user"))] == [[], []]
        assert (await writer.write("w", "a", "2", actor="somebody else")).updated_by == "writer"
        fill(tmp_path, {"x": "x"})
        hidden: list[Callable[[], Awaitable[object]]] = [
            lambda: stranger.read("w", "a"), lambda: stranger.list_files("w"), lambda: stranger.log("w"),
            lambda: stranger.clone("w", "v", namespace="user:al"), lambda: reader.write("w", "a", "3"),
            lambda: reader.remove("w", "a"), lambda: reader.move("w", "a", "b"), lambda: reader.snapshot("w"),
            lambda: reader.restore("w", 1), lambda: reader.update_metadata("w", {}),
            lambda: reader.import_folder("w", tmp_path), lambda: writer.delete("w"),
            lambda: writer.prune("w", keep=1),
        ]  # fmt: skip
        for call in hidden:
            async with refused(store, WorkspaceNotFound):
                await call()
        async with refused(store, AccessDenied):
            await writer.create("v")
        async with refused(store, AccessDenied):
            await writer.clone("w", "v", namespace="user:bob")
        owner = memory.as_principal(Principal("owner", {"user:alice": "admin"})).workspaces
        await owner.prune("w", keep=1)
        await owner.delete("w")

    async def test_writers_of_different_files_all_succeed(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        await memory.workspaces.create("w")

        async def write(number: int) -> int:
            return (await memory.workspaces.write("w", f"{number % 3}/{number}", f"{number}")).version

        versions = await crowd.gather([lambda number=number: write(number) for number in range(16)])

        assert sorted(versions) == list(range(1, 17))
        assert await tree(memory) == {f"{number % 3}/{number}": f"{number}".encode() for number in range(16)}
        workspace = await memory.workspaces.get("w")
        assert workspace is not None
        assert (workspace.files, workspace.size) == (16, 22)

    async def test_of_writers_who_expect_the_same_version_one_succeeds(
        self, memory: HybridMemoryService, crowd: Crowd
    ) -> None:
        await memory.workspaces.create("w")
        await memory.workspaces.write("w", "a", "first")

        async def write(number: int) -> bool:
            try:
                await memory.workspaces.write("w", "a", f"{number}", expected_version=1)
            except ConflictError:
                return False
            return True

        assert sum(await crowd.gather([lambda number=number: write(number) for number in range(8)])) == 1
        assert len(await memory.workspaces.history("w", "a")) == 2
