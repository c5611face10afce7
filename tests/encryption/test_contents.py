"""Encrypted contents: read from anywhere, whole or not at all, and telling nothing where they lie."""

import asyncio
import hashlib
import http.client
import os
import re
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import mnemon
from mnemon.encryption.contents import CHUNK, ContentKey, is_sealed_name, key_id_of_name
from mnemon.encryption.envelope import DataKey
from mnemon.encryption.masters import new_master_key
from mnemon.errors import ContentCorrupt
from mnemon.model import Content
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import peek, plant
from tests.artifacts.stores import KINDS, content_url

KEY = new_master_key("k1")
SECRET = b"zanzibar quixotic marzipan"
OURS = ContentKey(DataKey("k1", bytes(range(32))))
STORED = CHUNK + 16
SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7]

# ------------------------------------------------------------------------------------------------- the bytes themselves


def sealed(data: bytes, key: ContentKey = OURS, piece: int = 50_000) -> tuple[str, bytes]:
    """The name and the bytes of a content."""
    encryptor = key.encryptor()
    body = b"".join(encryptor.add(data[at : at + piece]) for at in range(0, len(data), piece))
    name = key.name(Content(hashlib.sha256(data).hexdigest(), len(data)))
    return name, body + encryptor.finish(name)


def opened(body: bytes, name: str, offset: int = 0, key: ContentKey = OURS) -> bytes:
    def read(start: int) -> Iterator[bytes]:
        return (body[at : at + 100_000] for at in range(start, len(body), 100_000))

    return b"".join(key.pieces(read, name, offset))


@pytest.mark.parametrize("size", SIZES)
def test_what_was_sealed_comes_back_from_any_byte_on(size: int):
    data = os.urandom(size)
    name, body = sealed(data)
    assert OURS.content(name) == Content(hashlib.sha256(data).hexdigest(), size)
    for offset in {0, 1, CHUNK - 1, CHUNK, CHUNK + 1, size // 2, max(size - 1, 0), size, size + 9}:
        assert opened(body, name, offset) == data[offset:]


def test_the_same_content_has_the_same_name_and_never_the_same_bytes():
    (name, body), (again, others) = sealed(SECRET), sealed(SECRET)
    assert name == again
    assert body != others
    assert name != sealed(SECRET, ContentKey(DataKey("k1", bytes(32))))[0]
    assert hashlib.sha256(SECRET).hexdigest() not in name


@pytest.mark.parametrize("size", SIZES)
def test_a_changed_byte_is_noticed(size: int):
    name, body = sealed(os.urandom(size))
    for at in {0, 1, STORED - 1, STORED, len(body) // 2, *range(len(body) - 56, len(body), 5)}:
        if at < len(body):
            flipped = bytes([*body[:at], body[at] ^ 1, *body[at + 1 :]])
            with pytest.raises(ContentCorrupt, match=re.escape(name)):
                opened(flipped, name)


def test_what_is_cut_off_left_out_or_added_is_noticed():
    name, body = sealed(os.urandom(3 * CHUNK + 7))
    last = 3 * STORED
    for other in (
        b"",
        body[:-1],
        body[:last],  # everything but the last chunk and the end
        body[:last] + body[-56:],  # …but the last chunk
        body[STORED:],
        body[:STORED] + body[2 * STORED :],
        body[:STORED] + body,
        body + b"\0",
        body + body,
    ):
        for offset in (0, 1, 2 * CHUNK, 3 * CHUNK + 6):
            with pytest.raises(ContentCorrupt):
                opened(other, name, offset)


def test_chunks_in_another_order_are_noticed():
    name, body = sealed(os.urandom(3 * CHUNK + 7))
    first, second, rest = body[:STORED], body[STORED : 2 * STORED], body[2 * STORED :]
    for offset in (0, CHUNK):
        with pytest.raises(ContentCorrupt, match="in chunk"):
            opened(second + first + rest, name, offset)


def test_another_content_in_its_place_is_noticed_wherever_reading_begins():
    one, two = os.urandom(2 * CHUNK), os.urandom(2 * CHUNK)
    (name, body), (_, other) = sealed(one), sealed(two)
    for planted in (other, other[: 2 * STORED] + body[-56:], body[:STORED] + other[STORED : 2 * STORED] + body[-56:]):
        for offset in (0, CHUNK, 2 * CHUNK - 1):
            if (planted, offset) != (body, 0):
                with pytest.raises(ContentCorrupt):
                    opened(planted, name, offset)


def test_another_key_or_a_name_that_was_changed_is_refused():
    name, body = sealed(SECRET)
    with pytest.raises(ContentCorrupt):
        opened(body, name, key=ContentKey(DataKey("k1", bytes(32))))
    changed = ("1" if name[0] == "0" else "0") + name[1:]
    for other in (changed, name.replace(".k1", ".k2"), name + "x"):
        with pytest.raises(ContentCorrupt):
            OURS.content(other)
    for nonsense in ("a.b", "../..", f"{name}/x"):
        with pytest.raises(ContentCorrupt, match="not the name"):
            key_id_of_name(nonsense)


def test_nothing_of_it_shows():
    name, body = sealed(SECRET * 1000)
    assert SECRET not in body
    assert SECRET[:8] not in body
    assert is_sealed_name(name)
    assert not is_sealed_name(hashlib.sha256(SECRET).hexdigest())


# ---------------------------------------------------------------------------------------------- where contents are kept


def opening(folder: Path, contents: str | None = None, **settings: Any):
    chosen = {
        "encrypted_namespaces": ("user",), "encryption_keys": (KEY,), "background": False, "embedder": "none",
        "content_url": contents, **settings,
    }  # fmt: skip
    return mnemon.open(f"sqlite:///{folder}/m.db", **chosen)


async def fill(memory: mnemon.HybridMemoryService) -> None:
    """An artifact, a file of a workspace and an archive that say the secret."""
    await memory.sessions.create_session("s1", "chat", "alice")
    await memory.artifacts.save("s1", "note.txt", SECRET, metadata={"about": SECRET.decode()})
    await memory.workspaces.create("w1", namespace="user:alice:work")
    await memory.workspaces.write("w1", "src/main.py", SECRET)
    await memory.remember(SECRET.decode(), namespace="user:alice", key="old", memory_type="episodic")
    await memory.retention.apply("user:alice")


def bytes_in(folder: Path, url: str) -> dict[str, bytes]:
    """Everything that lies in files, or in the bucket."""
    found = {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    if url.startswith("s3:"):
        parts = urlsplit(url)
        host = urlsplit(parse_qs(parts.query)["endpoint"][0]).netloc
        listed = _asked(host, f"/{parts.netloc}?list-type=2").decode()
        for key in re.findall("<Key>(.*?)</Key>", listed):
            found[key] = _asked(host, f"/{parts.netloc}/{key}")
    return found


def files_in(folder: Path, name: str) -> list[Path]:
    return list(folder.rglob(name))


def _asked(host: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


OLD = {"retention": [{"name": "all", "namespace": "user:alice", "max_size": 0}]}


@pytest.mark.parametrize("kind", KINDS[1:])
async def test_what_lies_there_gives_nothing_up(kind: str, tmp_path: Path, request: pytest.FixtureRequest):
    url = content_url(kind, tmp_path, request)
    async with opening(tmp_path, url, **OLD) as memory:
        await fill(memory)
        files = bytes_in(tmp_path, url)
        digest = hashlib.sha256(SECRET).hexdigest()
        assert sum(is_sealed_name(name.rpartition("/")[2]) and "content/" in name for name in files) >= 2
        for name, content in files.items():
            for told in (SECRET[:8], SECRET[9:17], digest.encode(), bytes.fromhex(digest)):
                assert told not in content, f"{told!r} is in {name}"
            assert digest not in name
    async with opening(tmp_path, url, **OLD) as memory:
        saved = await memory.artifacts.get("s1", "note.txt")
        assert saved is not None
        assert (saved.sha256, saved.size, saved.metadata["about"]) == (digest, len(SECRET), SECRET.decode())
        assert await memory.artifacts.read("s1", "note.txt") == SECRET
        assert await memory.workspaces.read("w1", "src/main.py") == SECRET
        [archive] = await memory.retention.archives("user:alice")
        assert re.fullmatch("[0-9a-f]{64}", archive.content.sha256)
        assert (await memory.retention.restore(archive.id)).memories == 1
        found = await memory.memories.get_memory("user:alice", "old")
        assert found is not None
        assert found.value == SECRET.decode()
        assert (await memory.artifacts.verify(grace=timedelta(0))).flaws == ()
        assert (await memory.artifacts.cleanup(grace=timedelta(0))).contents == 0
        assert (await memory.artifacts.verify(grace=timedelta(0))).flaws == ()


async def test_the_search_would_find_what_is_not_encrypted(tmp_path: Path):
    async with opening(tmp_path, encrypted_namespaces=(), **OLD) as memory:
        await fill(memory)
        found = [name for name, content in bytes_in(tmp_path, "").items() if SECRET in content]
        assert sum("content" in name for name in found) == 2
        assert any("artifacts" in name for name in found)


async def test_people_see_that_there_is_something_and_not_what(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await fill(memory)
        [manifest] = files_in(tmp_path, "manifest.json")
        assert [file.name for file in manifest.parent.iterdir()] == ["manifest.json"]
        assert '"is_encrypted": true' in manifest.read_text()
        assert '"name": "note.txt"' in manifest.read_text()
        told = (await memory.artifacts.manifest("s1"))["artifacts"][0]["versions"][0]
        assert (told["sha256"], told["metadata"]) == (hashlib.sha256(SECRET).hexdigest(), {"about": SECRET.decode()})
        await memory.artifacts.rebuild()
        assert [file.name for file in manifest.parent.iterdir()] == ["manifest.json"]


async def test_streams_of_any_size_take_little_memory(tmp_path: Path):
    total = 24 << 20
    block = os.urandom(1 << 18)
    async with opening(tmp_path) as memory:
        await memory.sessions.create_session("s1", "chat", "alice")
        await memory.artifacts.save("s1", "small", b"so that everything is loaded")
        tracemalloc.start()
        saved = await memory.artifacts.save("s1", "large", stream=(block for _ in range(total >> 18)))
        digest = hashlib.sha256()
        async with memory.artifacts.open("s1", "large") as stream:
            async for piece in stream:
                digest.update(piece)
            assert stream.artifact.sha256 == saved.sha256
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert (digest.hexdigest(), saved.size) == (saved.sha256, total)
        assert peak < 8 << 20
        async with memory.artifacts.open("s1", "large", offset=total - 10) as stream:
            assert await stream.read() == block[-10:]
            await stream.seek(CHUNK - 5)
            assert await stream.read(10) == (block * 2)[CHUNK - 5 : CHUNK + 5]


async def test_a_content_is_kept_once_for_each_user_and_not_known_to_others(tmp_path: Path):
    async with opening(tmp_path) as memory:
        for user in ("alice", "bob"):
            await memory.sessions.create_session(user, "chat", user)
            await memory.artifacts.save(user, "one", SECRET)
            await memory.artifacts.save(user, "two", SECRET)
        rows = await peek(parts_of(memory).store, "SELECT session_id, sha256 FROM artifacts")
        assert len({name for _, name in rows}) == 2
        assert len({name for _, name in rows} & {name for user, name in rows if user == "bob"}) == 1
        assert len(list(parts_of(memory).contents.store.listing())) == 2


async def test_putting_it_again_never_disturbs_who_reads_it(tmp_path: Path):
    data = os.urandom(3 * CHUNK)
    async with opening(tmp_path) as memory:
        await memory.sessions.create_session("s1", "chat", "alice")
        await memory.artifacts.save("s1", "a", data)

        async def save() -> None:
            for _ in range(6):
                await memory.artifacts.save("s1", "a", data)

        async def read() -> None:
            for _ in range(20):
                assert await memory.artifacts.read("s1", "a") == data

        await asyncio.gather(save(), read(), read())


async def test_files_of_a_workspace_are_imported_compared_and_exported(tmp_path: Path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").write_bytes(SECRET)
    async with opening(tmp_path) as memory:
        await memory.workspaces.create("w1", namespace="user:alice:work")
        assert (await memory.workspaces.import_folder("w1", source)).added == 1
        assert (await memory.workspaces.import_folder("w1", source)).unchanged == 1
        before = await memory.workspaces.snapshot("w1")
        await memory.keys.rotate("user:alice")
        assert (await memory.workspaces.write("w1", "a.txt", SECRET)).version == 1  # it is so already
        await memory.workspaces.write("w1", "a.txt", SECRET + b"!")
        [difference] = await memory.workspaces.diff("w1", before, text=True)
        assert difference.after is not None
        assert difference.after.sha256 == hashlib.sha256(SECRET + b"!").hexdigest()
        assert "marzipan!" in (difference.text or "")
        [back] = await memory.workspaces.restore("w1", before)
        assert back.after is not None
        assert back.after.sha256 == hashlib.sha256(SECRET).hexdigest()
        assert await memory.workspaces.export_folder("w1", tmp_path / "target") == 1
        assert (tmp_path / "target" / "a.txt").read_bytes() == SECRET
        [file] = await memory.workspaces.list_files("w1")
        assert (await memory.workspaces.history("w1", "a.txt"))[0] == file
        assert (await memory.workspaces.set_metadata("w1", "a.txt", {"x": 1})).sha256 == file.sha256


async def test_a_clone_is_encrypted_as_its_own_namespace_is(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await memory.workspaces.create("open", namespace="project:open")
        await memory.workspaces.write("open", "a.txt", SECRET)
        await memory.workspaces.clone("open", "alice", namespace="user:alice")
        await memory.workspaces.clone("alice", "bob", namespace="user:bob")
        await memory.workspaces.clone("alice", "again", namespace="user:alice:again")
        rows = await peek(parts_of(memory).store, "SELECT workspace_id, sha256 FROM workspace_files")
        names: dict[str, str] = dict(rows)  # pyright: ignore[reportArgumentType]
        assert not is_sealed_name(names["open"])
        assert names["alice"] == names["again"] != names["bob"]
        assert is_sealed_name(names["alice"])
        assert is_sealed_name(names["bob"])
        for workspace in names:
            assert await memory.workspaces.read(workspace, "a.txt") == SECRET
        assert (await memory.keys.status()).is_settled


async def test_a_content_that_was_changed_or_swapped_is_told(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await memory.sessions.create_session("s1", "chat", "alice")
        for name in ("one", "two"):
            await memory.artifacts.save("s1", name, SECRET + name.encode())
        await plant(
            parts_of(memory).store,
            "UPDATE artifacts SET sha256 = (SELECT sha256 FROM artifacts WHERE name = 'two'), size = 4 "
            "WHERE name = 'one'",
        )
        assert await memory.artifacts.read("s1", "one") == SECRET + b"two"  # a record may be changed, not its content
        first, second = sorted(path for path in (tmp_path / "m.files" / "content").glob("??/*"))
        mine, yours = first.read_bytes(), second.read_bytes()
        first.write_bytes(yours)
        second.write_bytes(mine)
        with pytest.raises(ContentCorrupt):
            await memory.artifacts.read("s1", "two")
        async with memory.artifacts.open("s1", "two", offset=5) as stream:
            with pytest.raises(ContentCorrupt):
                await stream.read(3)
        report = await memory.artifacts.verify(grace=timedelta(0))
        assert {flaw.kind for flaw in report.flaws} == {"corrupt", "orphaned"}


async def test_without_the_key_nothing_is_read(tmp_path: Path):
    async with opening(tmp_path) as memory:
        await fill(memory)
    async with opening(tmp_path, encrypted_namespaces=(), encryption_keys=()) as memory:
        for reading in (memory.artifacts.read("s1", "note.txt"), memory.workspaces.read("w1", "src/main.py")):
            with pytest.raises(mnemon.KeyUnavailable, match="master key"):
                await reading
        with pytest.raises(mnemon.KeyUnavailable):
            await memory.artifacts.verify()
        assert (await memory.artifacts.verify(deep=False)).is_good
    async with opening(tmp_path, encryption_keys=(new_master_key("k1"),)) as memory:
        with pytest.raises(mnemon.WrongKey):
            await memory.workspaces.read("w1", "src/main.py")
    async with opening(tmp_path, encrypted_namespaces=()) as memory:  # what was encrypted stays readable
        assert await memory.artifacts.read("s1", "note.txt") == SECRET
