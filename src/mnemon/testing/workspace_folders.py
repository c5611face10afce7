"""The contract of `WorkspaceService` for real folders: what is imported, and what is exported."""

import os
import stat
from pathlib import Path

import pytest

from mnemon.errors import (
    InvalidInput,
    InvalidPath,
    PathTaken,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Progress
from mnemon.ports import Store
from mnemon.testing.suite import Suite, plant, unchanged
from mnemon.testing.workspace_files import tree


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


class WorkspaceFolderSuite(Suite):
    """Any backend must pass, with any store for contents; override the fixture `memory`."""

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
