"""Where contents are kept, by the settings; and what the blocking face makes of a stream."""

import io
import zipfile
from pathlib import Path

import pytest

import mnemon
from mnemon import sync
from mnemon.backends.contentmemory import MemoryContents
from mnemon.backends.filesystem import FileContents
from mnemon.backends.keeping import plan_keeping
from mnemon.backends.objectstore import ObjectContents
from mnemon.testing import QUIET
from mnemon.testing.contents import put
from tests.servers import Server


def kept_at(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if len(path.name) == 64}


@pytest.mark.parametrize(
    ("url", "content_url", "folder"),
    [
        ("sqlite:///notes.db", None, "notes.files"),
        ("sqlite:///sub/notes", None, "sub/notes.files"),
        ("sqlite:///n%20otes.db", None, "n otes.files"),
        ("sqlite://", "file://./else%20where", "else where"),
        ("postgresql://nowhere", "file://./a/b", "a/b"),
    ],
)
def test_contents_lie_beside_the_database_or_where_the_setting_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, content_url: str | None, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    opening = plan_keeping(mnemon.Settings(url=url, content_url=content_url))
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")  # the folder is the one that was meant before
    store = opening().store
    assert isinstance(store, FileContents)
    assert not (tmp_path / folder).exists()
    kept = put(store, b"x")
    assert kept_at(tmp_path / folder) == {kept.sha256}


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_has_its_contents_there(url: str) -> None:
    keeping = plan_keeping(mnemon.Settings(url=url))()
    assert isinstance(keeping.store, MemoryContents)
    assert keeping.showcase is None


@pytest.mark.parametrize("url", ["s3://bucket/prefix", "s3://bucket", "az://container/prefix"])
def test_object_stores_are_reached_only_when_they_are_used(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "nobody")
    assert isinstance(plan_keeping(mnemon.Settings(content_url=url))().store, ObjectContents)


@pytest.mark.parametrize(
    "url",
    ["ftp://x", "file://host/x", "file://", "file:///", "file:///a?b=c", "file:///a%00", "s3://b?colour=red", "s3://"],
)
def test_urls_that_cannot_be_used_are_refused(url: str) -> None:
    with pytest.raises(mnemon.InvalidSettings):
        plan_keeping(mnemon.Settings(content_url=url))()


def test_a_wrong_url_is_refused_on_opening() -> None:
    with pytest.raises(mnemon.InvalidSettings, match="content_url"):
        sync.open("sqlite://", content_url="nonsense")
    with pytest.raises(mnemon.InvalidSettings, match="file:///folder"):
        sync.open("sqlite://", content_url="file://host/folder")


def test_postgres_needs_to_be_told_where(postgres_url: str) -> None:
    with sync.open(postgres_url, **QUIET) as memory:
        memory.sessions.create_session("s1", "app", "alice")
        with pytest.raises(mnemon.InvalidSettings, match="set content_url"):
            memory.artifacts.save("s1", "a", b"1")
        assert list(memory.artifacts.list("s1")) == []


def test_an_object_store_that_is_down_is_said_and_comes_back(
    object_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.artifacts.stores import bucket_of  # noqa: PLC0415

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
    url = bucket_of(object_server)
    missing = ObjectContents(url.replace("s3://bucket", "s3://no-bucket"))
    with pytest.raises(mnemon.StoreUnavailable, match="does not exist"):
        put(missing, b"x")
    with sync.open("sqlite://", content_url=url, **QUIET) as memory:
        memory.sessions.create_session("s1", "app", "alice")
        with object_server.outage(), pytest.raises(mnemon.StoreUnavailable):
            memory.artifacts.save("s1", "a", b"1")
        assert memory.artifacts.get("s1", "a") is None


# ------------------------------------------------------------------------------------------------- the blocking face


def test_an_artifact_is_a_binary_file(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("inside.txt", "text " * 10_000)
    with sync.open(f"sqlite:///{tmp_path}/x.db", **QUIET) as memory:
        memory.sessions.create_session("s1", "app", "alice")
        memory.artifacts.save("s1", "a.zip", archive.getvalue())
        memory.artifacts.save("s1", "lines", "one\ntwo\nthree\n")
        with memory.artifacts.open("s1", "a.zip") as file, zipfile.ZipFile(file) as zipped:  # which seeks
            assert zipped.read("inside.txt") == b"text " * 10_000
        with memory.artifacts.open("s1", "lines", offset=4) as file:
            assert (file.artifact.name, file.readable(), file.seekable(), file.writable()) == (
                "lines",
                True,
                True,
                False,
            )
            assert list(file) == [b"two\n", b"three\n"]
            assert file.seek(-6, io.SEEK_END) == 8
            assert file.read() == b"three\n"
            with pytest.raises(ValueError, match="before the first byte"):
                file.seek(-1)
        assert file.closed
        with pytest.raises(ValueError, match="closed"):
            file.read()
        with pytest.raises(mnemon.ArtifactNotFound):
            memory.artifacts.open("s1", "none")
