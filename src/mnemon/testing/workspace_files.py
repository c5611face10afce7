"""The contract of `WorkspaceService` for files: their versions, their paths, and how they are listed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from mnemon.errors import (
    ConflictError,
    InvalidCursor,
    InvalidInput,
    InvalidPath,
    InvalidValue,
    PathTaken,
    WorkspaceFileNotFound,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import FileDraft
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.suite import Suite, journal_after, last_position, refused, unchanged

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


class WorkspaceFileSuite(Suite):
    """Any backend must pass, with any store for contents; override the fixture `memory`."""

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
