"""The contract of `WorkspaceService`: files and their versions, snapshots, clones, real folders, and who may."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mnemon.errors import (
    AccessDenied,
    ConflictError,
    InvalidCursor,
    InvalidIdentifier,
    InvalidNamespace,
    InvalidValue,
    WorkspaceExists,
    WorkspaceNotFound,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Principal
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.suite import journal_after, peek, refused
from mnemon.testing.workspace_files import WorkspaceFileSuite, tree
from mnemon.testing.workspace_folders import WorkspaceFolderSuite, fill
from mnemon.testing.workspace_snapshots import WorkspaceSnapshotSuite


class WorkspaceSuite(WorkspaceFileSuite, WorkspaceSnapshotSuite, WorkspaceFolderSuite):
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
