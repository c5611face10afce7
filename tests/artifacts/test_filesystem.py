"""Contents in a folder: who may look, what people see, and that nothing leads out of it."""

import asyncio
import errno
import json
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import mnemon
from mnemon import sync
from mnemon.backends import folders
from mnemon.backends.filesystem import FileContents, FileShowcase
from mnemon.ports import Exhibit
from mnemon.testing import QUIET, ManualClock
from mnemon.testing.contents import ContentStoreSuite, digest_of, listed, put, read
from mnemon.testing.handles import parts_of

NOW = timedelta(0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory.files"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[sync.BlockingMemory]:
    """Keeps its contents beside the database, as is the default."""
    with sync.open(f"sqlite:///{tmp_path}/memory.db", clock=ManualClock(), **QUIET) as memory:
        memory.sessions.create_session("s1", "helpdesk", "alice")
        yield memory


def content_of(root: Path, artifact: mnemon.Artifact) -> Path:
    return root / "content" / artifact.sha256[:2] / artifact.sha256


def shown(root: Path, session: str = "s1") -> dict[str, bytes]:
    """What people see of a session, but for the manifest."""
    folder = root / "artifacts" / session
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "manifest.json"}


def everything_shown(root: Path) -> dict[Path, Any]:
    """Every file that people see; of a manifest what it says, but for the revision."""
    found: dict[Path, Any] = {}
    for path in (root / "artifacts").rglob("*.*"):
        data = path.read_bytes()
        found[path.relative_to(root)] = data if path.name != "manifest.json" else json.loads(data)["artifacts"]
    return found


# ------------------------------------------------------------------------------------------------- what people see


def test_people_find_files_by_time_and_name_and_read_the_manifest(memory: sync.BlockingMemory, root: Path) -> None:
    first = memory.artifacts.save("s1", "reports/q3.pdf", b"first")
    memory.artifacts.save("s1", "reports/q3.pdf", b"second")
    memory.artifacts.save("s1", "Übersicht: alles?.txt", b"third")
    assert shown(root) == {
        "20300101T000000.000000Z_reports_q3.pdf": b"first",
        "20300101T000000.000000Z_reports_q3~2.pdf": b"second",
        "20300101T000000.000000Z_Übersicht_ alles_.txt": b"third",
    }
    manifest = json.loads((root / "artifacts/s1/manifest.json").read_bytes())
    assert manifest == memory.artifacts.manifest("s1") | {"revision": manifest["revision"]}
    assert [each["name"] for each in manifest["artifacts"]] == ["reports/q3.pdf", "Übersicht: alles?.txt"]
    visible = root / "artifacts/s1" / first.file_name
    assert visible.samefile(content_of(root, first))  # not a copy


def test_the_same_content_lies_there_once(memory: sync.BlockingMemory, root: Path) -> None:
    for name in ("a", "b", "c"):
        memory.artifacts.save("s1", name, b"the same" * 1000)
    contents = [each for each in (root / "content").rglob("*") if each.is_file()]
    assert len(contents) == 1
    assert contents[0].stat().st_nlink == 4
    assert len(shown(root)) == 3


def test_what_is_deleted_disappears_and_comes_back(memory: sync.BlockingMemory, root: Path) -> None:
    memory.artifacts.save("s1", "a", b"1")
    memory.artifacts.save("s1", "b", b"2")
    memory.artifacts.delete("s1", "a")
    assert list(shown(root).values()) == [b"2"]
    memory.artifacts.restore("s1", "a")
    assert sorted(shown(root).values()) == [b"1", b"2"]


def test_what_people_see_can_be_made_anew(memory: sync.BlockingMemory, root: Path) -> None:
    saved = memory.artifacts.save("s1", "a", b"1")
    memory.sessions.create_session("S1", "helpdesk", "alice")
    memory.artifacts.save("S1", "a", b"2")
    before = everything_shown(root)
    assert len(before) == 4
    folder = root / "artifacts/s1"
    (folder / saved.file_name).unlink()
    (folder / saved.file_name).write_bytes(b"something else")
    (folder / "20200101T000000.000000Z_stale").write_bytes(b"")
    (folder / ".manifest-00").write_bytes(b"half a man")
    (folder / "manifest.json").write_text('{"revision": 999999999}')
    assert memory.artifacts.rebuild() == 2
    assert everything_shown(root) == before


def test_what_people_put_there_is_left_alone(memory: sync.BlockingMemory, root: Path) -> None:
    memory.artifacts.save("s1", "a", b"1")
    (root / "artifacts/s1/my notes.txt").write_text("mine")
    memory.artifacts.save("s1", "b", b"2")
    memory.artifacts.rebuild("s1")
    memory.sessions.delete_session("s1")
    memory.artifacts.cleanup(grace=NOW)
    assert shown(root) == {"my notes.txt": b"mine"}


def test_the_folder_of_a_deleted_session_goes(memory: sync.BlockingMemory, root: Path) -> None:
    memory.sessions.create_session("s2", "helpdesk", "alice")
    memory.artifacts.save("s1", "a", b"1")
    memory.artifacts.save("s2", "a", b"2")
    memory.sessions.delete_session("s1")
    assert memory.artifacts.cleanup(grace=NOW, dry_run=True) == mnemon.Cleanup(0, 1, 1, 1)
    assert (root / "artifacts/s1").exists()
    assert memory.artifacts.cleanup(grace=NOW) == mnemon.Cleanup(0, 1, 1, 1)
    assert [each.name for each in (root / "artifacts").iterdir()] == ["s2"]
    assert listed(FileContents(root)).keys() == {digest_of(b"2")}


def test_a_later_state_is_not_replaced_by_an_earlier_one(root: Path) -> None:
    kept = put(FileContents(root), b"content")
    showcase = FileShowcase(root)
    assert showcase.show(Exhibit("s1", 7, {"20300101T000000.000000Z_a": kept.sha256}, b'{"revision": 7}'))
    assert not showcase.show(Exhibit("s1", 6, {}, b'{"revision": 6}'))
    assert not showcase.remove("s1", 6)
    assert shown(root) == {"20300101T000000.000000Z_a": b"content"}
    assert showcase.remove("s1", 7)
    assert list(showcase.places()) == []
    assert showcase.remove("s1")


def test_what_cannot_be_shown_is_saved_all_the_same(
    memory: sync.BlockingMemory, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root.mkdir()
    (root / "artifacts").write_text("somebody's file")
    saved = memory.artifacts.save("s1", "a", b"1")
    assert memory.artifacts.read("s1", "a") == b"1"
    assert "rebuild" in caplog.text
    (root / "artifacts").unlink()
    memory.artifacts.rebuild("s1")
    assert shown(root) == {saved.file_name: b"1"}


def test_symbolic_links_show_what_cannot_have_two_names(
    memory: sync.BlockingMemory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    saved = memory.artifacts.save("s1", "a", b"1")
    memory.artifacts.save("s1", "b", b"2")
    visible = root / "artifacts/s1" / saved.file_name
    assert visible.is_symlink()
    assert not visible.readlink().is_absolute()
    assert sorted(shown(root).values()) == [b"1", b"2"]


# ------------------------------------------------------------------------------------------------------ who may look


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_only_the_owner_may_look_whatever_the_umask(memory: sync.BlockingMemory, root: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        memory.artifacts.save("s1", "a", b"1")
        memory.artifacts.save("s1", "a", b"2")
    finally:
        os.umask(before)
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (root, *root.rglob("*"))}
    assert modes == {(True, 0o700), (False, 0o600)}


def test_a_folder_that_was_there_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    put(FileContents(tmp_path / "shared"), b"x")
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "shared/content").stat().st_mode) == 0o700


# ------------------------------------------------------------------------------------------- what was planted there


def planted(root: Path, outside: Path, saved: mnemon.Artifact) -> dict[str, Callable[[], Path]]:
    """Ways to lead whoever writes or reads out of the root; each says what it replaced."""

    def link(path: Path) -> Path:
        if path.is_dir() and not path.is_symlink():
            path.rename(path.with_name(f"{path.name}-away"))
        elif path.exists():
            path.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(outside)
        return path

    shard = digest_of(b"new content")[:2]
    return {
        "artifacts": lambda: link(root / "artifacts"),
        "session": lambda: link(root / "artifacts/s1"),
        "content": lambda: link(root / "content"),
        "incoming": lambda: link(root / "content/incoming"),
        "shard": lambda: link(root / "content" / shard),
        "locks": lambda: link(root / "locks"),
        "lock": lambda: link(root / "locks" / shard),
        "manifest": lambda: link(root / "artifacts/s1/manifest.json"),
        "shown": lambda: link(root / "artifacts/s1" / saved.file_name),
        "kept": lambda: link(root / "content" / shard / digest_of(b"new content")),
    }


@pytest.mark.parametrize(
    "where",
    ["artifacts", "session", "content", "incoming", "shard", "locks", "lock", "manifest", "shown", "kept"],
)
@pytest.mark.parametrize("target", ["folder", "file"])
def test_links_that_were_planted_are_not_followed(
    memory: sync.BlockingMemory, root: Path, tmp_path: Path, where: str, target: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir() if target == "folder" else outside.write_text("precious")
    (outside / "precious").write_text("precious") if target == "folder" else None
    before = sorted((path, path.read_bytes() if path.is_file() else None) for path in (outside, *outside.rglob("*")))
    saved = memory.artifacts.save("s1", "a", b"1")
    link = planted(root, outside, saved)[where]()

    try:
        memory.artifacts.save("s1", "b", b"new content")
    except mnemon.StoreError:
        assert memory.artifacts.get("s1", "b") is None
    else:
        assert memory.artifacts.read("s1", "b") == b"new content"
    for upkeep in (
        lambda: memory.artifacts.cleanup(grace=NOW),
        lambda: memory.artifacts.rebuild(),
        lambda: memory.artifacts.verify(grace=NOW),
    ):
        with suppress(mnemon.StoreError):
            upkeep()

    after = sorted((path, path.read_bytes() if path.is_file() else None) for path in (outside, *outside.rglob("*")))
    assert after == before
    if link.is_symlink():
        link.unlink()
        for away in root.rglob("*-away"):
            away.rename(away.with_name(away.name.removesuffix("-away")))
    memory.artifacts.save("s1", "b", b"new content")
    memory.artifacts.rebuild()
    assert sorted(set(shown(root).values())) == [b"1", b"new content"]
    assert memory.artifacts.verify(grace=NOW).is_good


def test_what_is_no_file_is_not_read(root: Path) -> None:
    contents = FileContents(root)
    kept = put(contents, b"1")
    path = root / "content" / kept.sha256[:2] / kept.sha256
    path.unlink()
    os.mkfifo(path)  # whoever opens it would wait for a writer
    with pytest.raises(mnemon.ContentCorrupt, match="no file of its own"):
        read(contents, kept.sha256)
    assert put(contents, b"1") == kept
    assert read(contents, kept.sha256) == b"1"


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", "\0"])
def test_only_single_names_reach_the_file_system(root: Path, name: str) -> None:
    showcase = FileShowcase(root)
    kept = put(FileContents(root), b"1")
    with pytest.raises(mnemon.StoreError):
        showcase.show(Exhibit(name, 1, {}, b"{}"))
    with pytest.raises(mnemon.StoreError):
        showcase.show(Exhibit("s1", 1, {name: kept.sha256}, b"{}"))
    for sha256 in (name, "../../x", "A" * 64):
        with pytest.raises(mnemon.ContentMissing):
            read(FileContents(root), sha256)


# -------------------------------------------------------------------------------------------------------- what rots


def spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_damage_is_found_on_reading_and_healed_by_saving_again(memory: sync.BlockingMemory, root: Path) -> None:
    data = os.urandom(2_000_000)
    saved = memory.artifacts.save("s1", "a", data)
    memory.artifacts.save("s1", "b", b"intact")
    spoil(content_of(root, saved))

    with pytest.raises(mnemon.ContentCorrupt, match=saved.sha256):
        memory.artifacts.read("s1", "a")
    got = bytearray()
    with memory.artifacts.open("s1", "a") as file, pytest.raises(mnemon.ContentCorrupt):
        got.extend(piece for chunk in iter(lambda: file.read(1000), b"") for piece in chunk)
    assert len(got) < len(data)  # nobody takes the whole for good
    report = memory.artifacts.verify(grace=NOW)
    assert [(flaw.kind, flaw.used_by) for flaw in report.flaws] == [("corrupt", (saved.url,))]
    assert memory.artifacts.verify(deep=False).flaws == ()

    memory.artifacts.save("s1", "c", data)
    assert memory.artifacts.read("s1", "a") == data
    assert memory.artifacts.verify(grace=NOW).flaws == ()
    memory.artifacts.rebuild("s1")
    assert shown(root)[saved.file_name] == data


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b""])
def test_other_lengths_are_damage_too(
    memory: sync.BlockingMemory, root: Path, change: Callable[[bytes], bytes]
) -> None:
    saved = memory.artifacts.save("s1", "a", b"0123456789" * 100_000)
    path = content_of(root, saved)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(mnemon.ContentCorrupt):
        memory.artifacts.read("s1", "a")


# ------------------------------------------------------------------------------------------------- what goes wrong


def test_content_and_its_folder_are_on_the_disk_before_the_record(
    memory: sync.BlockingMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.artifacts.save("s1", "a", b"1")
    done: list[str] = []
    real_sync, real_move = os.fsync, os.replace

    def note_sync(fd: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        real_sync(fd)

    def note_move(*args: Any, **kwargs: Any) -> None:
        assert memory.artifacts.get("s1", "b") is None or "manifest" in str(args[1])
        done.append(f"move {len(str(args[1]))}")
        real_move(*args, **kwargs)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_move)
    memory.artifacts.save("s1", "b", b"new")
    assert [each for each in done if not each.startswith("move 13")] == ["folder", "file", "move 64", "folder"]


def test_a_full_disk_leaves_nothing(memory: sync.BlockingMemory, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in ("write", "fsync", "replace"):
        with monkeypatch.context() as patch:

            def fail(*_: Any, **__: Any) -> None:
                raise OSError(errno.ENOSPC, "no space left")

            patch.setattr(os, step, fail)
            with pytest.raises(mnemon.StoreFull, match="no space"):
                memory.artifacts.save("s1", "a", b"1")
        assert memory.artifacts.get("s1", "a") is None
        assert list((root / "content/incoming").iterdir()) == []
        assert listed(FileContents(root)) == {}


def test_a_folder_that_may_not_be_written_is_said(memory: sync.BlockingMemory, root: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    root.mkdir(mode=0o500)
    with pytest.raises(mnemon.StoreReadOnly):
        memory.artifacts.save("s1", "a", b"1")


async def test_a_save_that_is_cancelled_leaves_nothing(tmp_path: Path, root: Path) -> None:
    async with mnemon.open(f"sqlite:///{tmp_path}/memory.db", **QUIET) as memory:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        begun = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield bytes(100_000)
                begun.set()
                await asyncio.sleep(0)

        saving = asyncio.create_task(memory.artifacts.save("s1", "a", stream=endless()))
        await begun.wait()
        await asyncio.sleep(0.05)
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
        assert await memory.artifacts.get("s1", "a") is None
        assert list((root / "content/incoming").iterdir()) == []


async def test_buffers_may_be_used_again(tmp_path: Path) -> None:
    async with mnemon.open(f"sqlite:///{tmp_path}/memory.db", **QUIET) as memory:
        contents = parts_of(memory).contents
        buffer = bytearray(3)

        async def reusing() -> AsyncIterator[bytes]:
            for number in range(5):
                buffer[:] = bytes([number]) * 3
                yield buffer

        kept = await contents.put(reusing(), "app:tests")
        assert await contents.whole(kept.sha256) == bytes(n for n in range(5) for _ in range(3))


class TestWithoutDescriptors(ContentStoreSuite):
    """As on Windows, where a folder cannot be opened like a file."""

    rounds = 2

    @pytest.fixture
    def contents(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileContents:
        monkeypatch.setattr(folders, "_BY_DESCRIPTOR", False)
        return FileContents(tmp_path / "kept")

    def test_links_are_not_followed_either(self, contents: FileContents, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept/content").symlink_to(tmp_path / "outside")
        with pytest.raises(mnemon.StoreError, match="no folder or file of its own"):
            put(contents, b"1")
        assert list((tmp_path / "outside").iterdir()) == []
