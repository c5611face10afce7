"""What every content store promises."""

import hashlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from mnemon.errors import ContentMissing
from mnemon.model import Content
from mnemon.ports import ContentStore

PIECE = 1 << 20


def digest_of(data: bytes) -> str:
    """The name of a content."""
    return hashlib.sha256(data).hexdigest()


def put(store: ContentStore, *pieces: bytes) -> Content:
    """Write a content in these pieces."""
    whole = b"".join(pieces)
    writer = store.new()
    try:
        for piece in pieces:
            writer.write(piece)
        writer.finish(digest_of(whole))
    finally:
        writer.abort()
    return Content(digest_of(whole), len(whole))


def read(store: ContentStore, sha256: str, offset: int = 0) -> bytes:
    """All of a content."""
    return b"".join(store.read(sha256, offset))


def listed(store: ContentStore) -> dict[str, int]:
    """The size of every content, by its digest."""
    return {found.sha256: found.size for found in store.listing()}


class ContentStoreSuite:
    """Derive from it and override the fixture `contents` to test a content store of your own."""

    old: ClassVar[float] = 0.3
    """How many seconds after it was written a content is surely old; more for a store whose clock is coarse."""
    rest: ClassVar[float] = 0.35
    """How long to wait until it is."""
    rounds: ClassVar[int] = 12

    @pytest.fixture
    def contents(self) -> Iterator[ContentStore]:
        """An empty store, to be closed afterwards."""
        raise NotImplementedError("override `contents`: open an empty store of yours")

    @pytest.mark.parametrize("size", [0, 1, 1000, PIECE, PIECE + 1, 20 * PIECE + 7])
    def test_what_was_written_is_read(self, contents: ContentStore, size: int) -> None:
        data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
        kept = put(contents, *(data[start : start + 300_000] for start in range(0, size, 300_000)))
        assert read(contents, kept.sha256) == data
        assert listed(contents) == {kept.sha256: size}

    @pytest.mark.parametrize("offset", [1, 5, PIECE, 2 * PIECE - 1, 2 * PIECE, 3 * PIECE])
    def test_reading_may_begin_anywhere(self, contents: ContentStore, offset: int) -> None:
        data = b"ab" * PIECE
        kept = put(contents, data)
        assert read(contents, kept.sha256, offset) == data[offset:]

    def test_pieces_are_small_however_large_the_content_is(self, contents: ContentStore) -> None:
        kept = put(contents, bytes(9 * PIECE))
        assert max(len(piece) for piece in contents.read(kept.sha256)) <= PIECE

    def test_reading_may_be_given_up(self, contents: ContentStore) -> None:
        kept = put(contents, bytes(9 * PIECE))
        pieces = contents.read(kept.sha256)
        next(pieces)
        pieces.close()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        assert len(read(contents, kept.sha256)) == 9 * PIECE

    def test_what_is_not_there_is_missing(self, contents: ContentStore) -> None:
        put(contents, b"something else")
        for unknown in (digest_of(b"never written"), "0" * 64):
            with pytest.raises(ContentMissing, match=unknown):
                read(contents, unknown)
            assert contents.delete(unknown, 0) is False

    def test_the_same_content_is_kept_once(self, contents: ContentStore) -> None:
        first, second = put(contents, b"the same"), put(contents, b"the ", b"same")
        assert first == second
        assert listed(contents) == {first.sha256: 8}

    def test_contents_are_listed_in_order(self, contents: ContentStore) -> None:
        kept = [put(contents, f"number {number}".encode()) for number in range(30)]
        found = list(contents.listing())
        assert [each.sha256 for each in found] == sorted(each.sha256 for each in kept)
        lately = datetime.now(UTC) - timedelta(minutes=5)
        assert all(lately < each.written_at < lately + timedelta(minutes=10) for each in found)

    def test_what_was_given_up_leaves_nothing(self, contents: ContentStore) -> None:
        writer = contents.new()
        writer.write(b"not " * 100_000)
        writer.abort()
        writer.abort()
        assert listed(contents) == {}

    def test_giving_up_after_the_end_changes_nothing(self, contents: ContentStore) -> None:
        writer = contents.new()
        writer.write(b"kept")
        writer.finish(digest_of(b"kept"))
        writer.abort()
        assert read(contents, digest_of(b"kept")) == b"kept"

    def test_only_what_is_old_enough_is_deleted(self, contents: ContentStore) -> None:
        young, old = put(contents, b"young"), put(contents, b"old")
        assert contents.delete(young.sha256, 600) is False
        assert contents.delete(old.sha256, 0) is True
        assert contents.delete(old.sha256, 0) is False
        assert listed(contents) == {young.sha256: 5}
        assert put(contents, b"old") == old
        assert read(contents, old.sha256) == b"old"

    def test_what_dead_writers_left_is_swept_when_it_is_old_enough(self, contents: ContentStore) -> None:
        kept = put(contents, b"kept")
        writer = contents.new()
        writer.write(b"x" * 100_000)
        assert contents.sweep(600) == 0
        assert contents.sweep(0) in (0, 100_000)  # a store need not leave anything
        assert listed(contents) == {kept.sha256: 4}
        writer.abort()

    def test_many_write_at_once(self, contents: ContentStore) -> None:
        def work(number: int) -> Content:
            return put(contents, f"content {number % 5}".encode() * 1000)

        with ThreadPoolExecutor(8) as pool:
            kept = list(pool.map(work, range(40)))
        assert listed(contents) == {each.sha256: each.size for each in kept}
        assert len(listed(contents)) == 5

    def test_a_writer_wins_over_whoever_deletes(self, contents: ContentStore) -> None:
        """After `finish` the content is there, though somebody finds at the same time that it is old."""
        data = b"wanted by one, old to the others"
        put(contents, data)
        for _ in range(self.rounds):
            time.sleep(self.rest)
            begin = threading.Barrier(3)

            def delete(begin: threading.Barrier = begin) -> bool:
                begin.wait()
                return contents.delete(digest_of(data), self.old)

            def write(begin: threading.Barrier = begin) -> bytes:
                begin.wait()
                return read(contents, put(contents, data).sha256)

            with ThreadPoolExecutor(3) as pool:
                deleting, writing = [pool.submit(delete), pool.submit(delete)], pool.submit(write)
                assert writing.result() == data
                assert [each.result() for each in deleting] != [True, True]
            assert read(contents, digest_of(data)) == data
