"""The contract of `WorkspaceService` for snapshots: differences, restoring, clones, pruning."""

from typing import Any

import pytest

from mnemon.errors import (
    InvalidInput,
    InvalidValue,
    SnapshotNotFound,
    WorkspaceExists,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.suite import Suite, journal_after, peek, refused, unchanged
from mnemon.testing.workspace_files import tree


def told(differences: Any) -> list[tuple[str, str]]:
    """The kinds and paths of differences."""
    return [(each.kind, each.path) for each in differences]


class WorkspaceSnapshotSuite(Suite):
    """Any backend must pass, with any store for contents; override the fixture `memory`."""

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
