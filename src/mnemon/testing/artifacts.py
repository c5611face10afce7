"""What artifacts promise, over every database and every content store."""

import hashlib
import io
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from mnemon.errors import (
    AccessDenied,
    ArtifactNotFound,
    ContentMissing,
    InvalidCursor,
    InvalidIdentifier,
    InvalidInput,
    InvalidValue,
    SessionNotFound,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Principal
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import Suite, journal_after, last_position, peek, plant, refused

NOW = timedelta(0)

TRICKS = [
    "", ".", "..", "...", "a/../b", "../up", "/etc/passwd", "a//b", "a/", "C:\\x", "c:x", "a\\b", "nul\0", "new\nline",
    "CON", "con", "NUL.txt", "a/com1.log", "LPT9", "COM¹", "aux ", "trailing.", " lead", "a/ b", "half\ud800",
    "rtl\u202egpj.exe", "zero\u200bwidth", "bom\ufeff", "soft\u00adhyphen", "wide／slash", "wide＼back", "frac⁄slash",
    "．．/x", "․․", "line\u2028sep", "no\u00a0break", "filler\u3164", "x" * 513, "tag\U000e0041", "joiner\u034f",
]  # fmt: skip
"""Names that could mean another file than they seem to, or none."""

PLAIN = [
    "a", "report.pdf", "reports/2026/q3.pdf", "Q3: plan?", "naïve café.txt", "日本語.txt", "смета.xlsx", "100 %",
    "a&b=c#d", "x" * 512, "é" * 300, ".hidden", "..almost", "a..b", "console", "emoji 🎉.txt",
    "it's (final) [2].tar.gz", "~user", "-rf", "version=3", "*.*", "“quoted”", "…and so on.txt", "½", "a+b",
]  # fmt: skip
"""Names that are only unusual."""


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    """Parts as they come."""
    for part in parts:
        yield part


class ArtifactSuite(Suite):
    """Needs `memory` with a `content_url`, or a database that has a place for contents beside it."""

    @pytest.fixture(autouse=True)
    async def _session(self, memory: HybridMemoryService) -> None:  # pyright: ignore[reportUnusedFunction]
        await memory.sessions.create_session("s1", "helpdesk", "alice")

    # -------------------------------------------------------------------------------------------------------- saving

    async def test_an_artifact_is_saved_found_and_read(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        before = await last_position(store)
        saved = await memory.artifacts.save(
            "s1", "reports/q3.csv", b"a,b\n1,2\n", metadata={"quarter": 3}, actor="bot", task_id="t1"
        )
        assert (saved.session_id, saved.name, saved.version, saved.size) == ("s1", "reports/q3.csv", 1, 8)
        assert saved.sha256 == hashlib.sha256(b"a,b\n1,2\n").hexdigest()
        assert (saved.content_type, saved.metadata) == ("text/csv", {"quarter": 3})
        assert (saved.created_by, saved.task_id, saved.is_deleted) == ("bot", "t1", False)
        assert saved.url == "mnemon://artifacts/s1/reports/q3.csv?version=1"
        assert saved.created_at == clock.moment
        assert await memory.artifacts.get("s1", "reports/q3.csv") == saved
        assert await memory.artifacts.get("s1", "reports/q3.csv", 1) == saved
        assert await memory.artifacts.read("s1", "reports/q3.csv") == b"a,b\n1,2\n"
        assert await journal_after(store, before) == [("artifact", "reports/q3.csv", "save", 1, "session:s1")]

    @pytest.mark.parametrize("kind", ["data", "text", "buffer", "file", "pieces", "coming", "path"])
    async def test_content_comes_in_many_forms(self, memory: HybridMemoryService, tmp_path: Any, kind: str) -> None:
        data = b"a line of text, " * 100_000
        (tmp_path / "given").write_bytes(data)
        forms: dict[str, dict[str, Any]] = {
            "data": {"data": data},
            "text": {"data": data.decode()},
            "buffer": {"data": memoryview(data)},
            "file": {"stream": io.BytesIO(data)},
            "pieces": {"stream": [data[:10], b"", data[10:]]},
            "coming": {"stream": pieces(data[:10], b"", data[10:])},
            "path": {"path": tmp_path / "given"},
        }
        saved = await memory.artifacts.save("s1", "x", **forms[kind])
        assert saved.size == len(data)
        assert await memory.artifacts.read("s1", "x") == data

    async def test_content_is_given_once_and_in_a_form_that_can_be_kept(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        wrong: list[tuple[type[Exception], dict[str, Any]]] = [
            (InvalidInput, {}),
            (InvalidInput, {"data": b"", "stream": [b""]}),
            (InvalidInput, {"data": 5}),
            (InvalidInput, {"data": ["pieces"]}),
            (InvalidInput, {"stream": "text"}),
            (InvalidValue, {"stream": ["text"]}),
            (InvalidValue, {"stream": io.StringIO("text")}),
            (InvalidValue, {"stream": 5}),
            (InvalidValue, {"data": "half \ud800"}),
            (InvalidValue, {"data": b"", "metadata": {"a": float("nan")}}),
            (InvalidIdentifier, {"data": b"", "content_type": "a\nb"}),
            (FileNotFoundError, {"path": "/nonexistent/file"}),
        ]
        for error, given in wrong:
            async with refused(store, error):
                await memory.artifacts.save("s1", "x", **given)

    async def test_a_name_has_versions(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        for number in range(1, 4):
            clock.advance()
            assert (await memory.artifacts.save("s1", "x", f"text {number}")).version == number
        assert await memory.artifacts.read("s1", "x") == b"text 3"
        assert await memory.artifacts.read("s1", "x", 1) == b"text 1"
        assert [each.version for each in await memory.artifacts.versions("s1", "x")] == [3, 2, 1]
        page = await memory.artifacts.versions("s1", "x", limit=2)
        rest = await memory.artifacts.versions("s1", "x", limit=2, cursor=page.next_cursor)
        assert [each.version for each in (*page, *rest)] == [3, 2, 1]
        assert await memory.artifacts.get("s1", "x", 4) is None

    async def test_many_save_the_same_name_at_once(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        async def save(number: int) -> None:
            await memory.artifacts.save("s1", "x", f"by {number}")

        await crowd.gather([lambda number=number: save(number) for number in range(12)])
        versions = await memory.artifacts.versions("s1", "x")
        assert [each.version for each in versions] == list(range(12, 0, -1))
        texts = {await memory.artifacts.read("s1", "x", each.version) for each in versions}
        assert texts == {f"by {number}".encode() for number in range(12)}
        assert len({each.file_name for each in versions}) == 12

    async def test_what_is_interrupted_is_not_saved(self, memory: HybridMemoryService, store: Store) -> None:
        async def broken() -> AsyncIterator[bytes]:
            yield b"the beginning" * 200_000
            raise ConnectionResetError("the sender has gone")

        async with refused(store, ConnectionResetError):
            await memory.artifacts.save("s1", "x", stream=broken())
        report = await memory.artifacts.verify(grace=NOW)
        assert (report.stored, report.flaws) == (0, ())

    async def test_no_session_no_artifact(self, memory: HybridMemoryService, store: Store) -> None:
        async with refused(store, SessionNotFound, "nobody"):
            await memory.artifacts.save("nobody", "x", b"")
        assert await memory.artifacts.get("nobody", "x") is None
        assert list(await memory.artifacts.list("nobody")) == []
        with pytest.raises(SessionNotFound):
            await memory.artifacts.manifest("nobody")
        assert (await memory.artifacts.verify()).stored == 0

    # --------------------------------------------------------------------------------------------------------- names

    async def test_names_that_are_tricks_are_refused(self, memory: HybridMemoryService, store: Store) -> None:
        for name in TRICKS:
            async with refused(store, InvalidIdentifier):
                await memory.artifacts.save("s1", name, b"")
            with pytest.raises(InvalidIdentifier):
                await memory.artifacts.get("s1", name)

    async def test_names_that_are_only_unusual_are_kept(self, memory: HybridMemoryService) -> None:
        for name in PLAIN:
            saved = await memory.artifacts.save("s1", name, name)
            assert saved.name == name
            assert await memory.artifacts.read("s1", name) == name.encode()
            assert saved.url.isascii()
            assert await memory.artifacts.resolve(saved.url) == saved
        found = await memory.artifacts.list("s1", limit=100)
        assert {each.name for each in found} == set(PLAIN)

    async def test_both_forms_of_an_accent_are_one_name(self, memory: HybridMemoryService) -> None:
        composed, decomposed = "caf\u00e9.txt", "cafe\u0301.txt"
        await memory.artifacts.save("s1", composed, b"1")
        assert (await memory.artifacts.save("s1", decomposed, b"2")).version == 2
        assert await memory.artifacts.read("s1", decomposed, 1) == b"1"

    async def test_urls_resolve(self, memory: HybridMemoryService) -> None:
        first = await memory.artifacts.save("s1", "a/b c.txt", b"1")
        second = await memory.artifacts.save("s1", "a/b c.txt", b"2")
        assert first.url == "mnemon://artifacts/s1/a/b%20c.txt?version=1"
        assert await memory.artifacts.resolve(first.url) == first
        assert await memory.artifacts.resolve("mnemon://artifacts/s1/a/b%20c.txt") == second
        assert await memory.artifacts.resolve("mnemon://artifacts/s1/a%2Fb%20c.txt?version=2") == second
        for url in ("mnemon://artifacts/s1/none", "mnemon://artifacts/s2/a?version=1", f"{first.url}7"):
            with pytest.raises(ArtifactNotFound):
                await memory.artifacts.resolve(url)
        for url in (
            "", "s1/a", "https://artifacts/s1/a", "mnemon://memories/s1/a", "mnemon://artifacts/s1", "mnemon://artifacts/s1/",
            "mnemon://artifacts/s1/a?version=0", "mnemon://artifacts/s1/a?version=x", "mnemon://artifacts/s1/a?v=1",
            "mnemon://artifacts/s1/a?version=1&version=2", "mnemon://artifacts/s1/a#b", "mnemon://artifacts/s1/%ff",
            "mnemon://artifacts/s1/..%2Fa", "mnemon://artifacts/s1/a?version=99999999999999999999", "mnemon://[",
        ):  # fmt: skip
            with pytest.raises(InvalidInput):
                await memory.artifacts.resolve(url)

    @pytest.mark.parametrize("session_id", ["..", ".", "a/b", "CON", "S1", "é" * 200, "-rf", "~", "a?b#c", "x" * 256])
    async def test_sessions_may_be_called_anything(self, memory: HybridMemoryService, session_id: str) -> None:
        await memory.sessions.create_session(session_id, "helpdesk", "alice")
        await memory.artifacts.save("s1", "x", b"another's")
        saved = await memory.artifacts.save(session_id, "x", b"mine")
        assert await memory.artifacts.resolve(saved.url) == saved
        assert await memory.artifacts.read(session_id, "x") == b"mine"
        assert await memory.artifacts.read("s1", "x") == b"another's"

    # -------------------------------------------------------------------------------------------- listing and reading

    async def test_current_versions_are_listed_by_name(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session("s2", "helpdesk", "alice")
        for name in ("b", "a/2", "a/1", "c", "b"):
            await memory.artifacts.save("s1", name, name)
        await memory.artifacts.save("s2", "other", b"")
        found = [(each.name, each.version) for each in await memory.artifacts.list("s1")]
        assert found == [("a/1", 1), ("a/2", 1), ("b", 2), ("c", 1)]
        assert [each.name for each in await memory.artifacts.list("s1", prefix="a/")] == ["a/1", "a/2"]
        page = await memory.artifacts.list("s1", limit=3)
        rest = await memory.artifacts.list("s1", limit=3, cursor=page.next_cursor)
        assert [each.name for each in (*page, *rest)] == ["a/1", "a/2", "b", "c"]
        with pytest.raises(InvalidCursor):
            await memory.artifacts.list("s1", cursor="nonsense")
        with pytest.raises(InvalidInput):
            await memory.artifacts.list("s1", limit=0)

    async def test_the_newest_come_first_among_the_recent(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        for name in ("b", "a", "c", "b"):
            clock.advance()
            await memory.artifacts.save("s1", name, name)
        found = [(each.name, each.version) for each in await memory.artifacts.recent("s1", 2)]
        assert found == [("b", 2), ("c", 1)]

    async def test_content_is_read_as_a_stream(self, memory: HybridMemoryService) -> None:
        data = bytes(range(256)) * 20_000
        await memory.artifacts.save("s1", "x", data)
        async with memory.artifacts.open("s1", "x") as stream:
            assert stream.artifact.size == len(data)
            assert await stream.read(10) == data[:10]
            assert stream.position == 10
            assert await stream.read(3_000_000) == data[10:3_000_010]
            await stream.seek(5)
            assert await stream.read(3) == data[5:8]
            assert await stream.read() == data[8:]
            assert await stream.read() == b""
        assert b"".join([piece async for piece in memory.artifacts.open("s1", "x")]) == data
        assert (
            b"".join([piece async for piece in memory.artifacts.open("s1", "x", offset=4_000_000)]) == data[4_000_000:]
        )
        async with memory.artifacts.open("s1", "x", offset=len(data) + 5) as stream:
            assert await stream.read() == b""

    async def test_what_is_not_there_cannot_be_opened(self, memory: HybridMemoryService) -> None:
        with pytest.raises(ArtifactNotFound, match="'none'"):
            async with memory.artifacts.open("s1", "none"):
                pass
        with pytest.raises(ArtifactNotFound, match="version 2"):
            await memory.artifacts.read("s1", "none", 2)
        with pytest.raises(InvalidInput):
            memory.artifacts.open("s1", "none", offset=-1)
        with pytest.raises(InvalidInput):
            await memory.artifacts.get("s1", "x", 0)

    # ------------------------------------------------------------------------------------- deleting and bringing back

    async def test_deleting_is_soft_and_can_be_undone(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for number in (1, 2, 3):
            await memory.artifacts.save("s1", "x", f"text {number}")
        before = await last_position(store)

        assert await memory.artifacts.delete("s1", "x", 3, actor="bot") == 1
        current = await memory.artifacts.get("s1", "x")
        assert current is not None
        assert current.version == 2
        assert await memory.artifacts.get("s1", "x", 3) is None
        assert await memory.artifacts.delete("s1", "x") == 2
        assert await memory.artifacts.get("s1", "x") is None
        assert list(await memory.artifacts.list("s1")) == []
        assert list(await memory.artifacts.versions("s1", "x")) == []
        gone = await memory.artifacts.versions("s1", "x", deleted=True)
        assert [(each.version, each.is_deleted, each.deleted_at) for each in gone] == [
            (3, True, clock.moment), (2, True, clock.moment), (1, True, clock.moment),
        ]  # fmt: skip

        assert (await memory.artifacts.save("s1", "x", "text 4")).version == 4
        assert await memory.artifacts.restore("s1", "x", 2) == 1
        assert await memory.artifacts.restore("s1", "x") == 2
        assert await memory.artifacts.read("s1", "x", 2) == b"text 2"
        assert [row[2:4] for row in await journal_after(store, before)] == [
            ("delete", 3), ("delete", None), ("save", 4), ("restore", 2), ("restore", None),
        ]  # fmt: skip

    async def test_what_is_not_there_cannot_be_deleted(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.artifacts.save("s1", "x", b"")
        for call in (
            lambda: memory.artifacts.delete("s1", "y"),
            lambda: memory.artifacts.delete("s1", "x", 2),
            lambda: memory.artifacts.restore("s1", "x"),
        ):
            async with refused(store, ArtifactNotFound):
                await call()

    # -------------------------------------------------------------------------------------------------------- access

    async def test_an_artifact_is_open_to_whoever_may_use_its_session(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.artifacts.save("s1", "x", b"secret")
        await memory.artifacts.save("s1", "gone", b"secret")
        await memory.artifacts.delete("s1", "gone")
        stranger = memory.as_principal(Principal("mallory", {"user:bob": "admin"}))
        reader = memory.as_principal(Principal("reader", {"session:s1": "read"}))
        owner = memory.as_principal(Principal("alice", {"user:alice": "write"}))
        url = "mnemon://artifacts/s1/x?version=1"

        assert await stranger.artifacts.get("s1", "x") is None
        assert list(await stranger.artifacts.list("s1")) == []
        assert list(await stranger.artifacts.recent("s1")) == []
        assert list(await stranger.artifacts.versions("s1", "x")) == []
        for handle, error in ((stranger, SessionNotFound), (reader, SessionNotFound)):
            for call in (
                lambda handle=handle: handle.artifacts.save("s1", "x", b"mine"),
                lambda handle=handle: handle.artifacts.delete("s1", "x"),
                lambda handle=handle: handle.artifacts.restore("s1", "gone"),
                lambda handle=handle: handle.artifacts.rebuild("s1"),
            ):
                async with refused(store, error):
                    await call()
            for call in (
                lambda handle=handle: handle.artifacts.verify(),
                lambda handle=handle: handle.artifacts.cleanup(grace=NOW, keep_deleted=NOW),
                lambda handle=handle: handle.artifacts.rebuild(),
            ):
                async with refused(store, AccessDenied):
                    await call()
        for call in (
            lambda: stranger.artifacts.read("s1", "x"),
            lambda: stranger.artifacts.resolve(url),
            lambda: stranger.artifacts.open("s1", "x").read(),
        ):
            async with refused(store, ArtifactNotFound):
                await call()
        async with refused(store, SessionNotFound):
            await stranger.artifacts.manifest("s1")
        assert await reader.artifacts.read("s1", "x") == b"secret"
        assert (await reader.artifacts.resolve(url)).name == "x"
        assert (await owner.artifacts.save("s1", "x", b"mine", actor="somebody else")).created_by == "alice"

    # -------------------------------------------------------------------------------------------------------- upkeep

    async def test_the_manifest_tells_of_every_version(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await memory.artifacts.save("s1", "b", b"1", metadata={"n": 1})
        second = await memory.artifacts.save("s1", "b", b"22")
        await memory.artifacts.save("s1", "a", b"333")
        await memory.artifacts.delete("s1", "b", 2)
        manifest = await memory.artifacts.manifest("s1")
        assert manifest["session_id"] == "s1"
        assert [(each["name"], [v["version"] for v in each["versions"]]) for each in manifest["artifacts"]] == [
            ("a", [1]), ("b", [1, 2]),
        ]  # fmt: skip
        told = manifest["artifacts"][1]["versions"]
        assert (told[0]["metadata"], told[0]["deleted_at"]) == ({"n": 1}, None)
        assert (told[1]["url"], told[1]["file"]) == (second.url, None)
        assert told[1]["deleted_at"] == clock.moment.isoformat()

    async def test_what_was_deleted_long_ago_is_cleaned_up(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.artifacts.save("s1", "old", b"old content")
        await memory.artifacts.save("s1", "kept", b"kept content")
        await memory.artifacts.save("s1", "shared", b"shared content")
        await memory.artifacts.save("s1", "also", b"shared content")
        await memory.artifacts.delete("s1", "old")
        await memory.artifacts.delete("s1", "shared")
        clock.advance(seconds=3600)
        await memory.artifacts.save("s1", "lately", b"lately deleted")
        await memory.artifacts.delete("s1", "lately")
        before = await last_position(store)

        would = await memory.artifacts.cleanup(keep_deleted=timedelta(minutes=30), grace=NOW, dry_run=True)
        assert would.versions == 2
        done = await memory.artifacts.cleanup(keep_deleted=timedelta(minutes=30), grace=NOW, actor="janitor")

        assert (done.versions, done.contents, done.freed) == (2, 1, len(b"old content"))
        assert await memory.artifacts.read("s1", "also") == b"shared content"
        assert await memory.artifacts.restore("s1", "lately") == 1
        assert sorted(row[:4] for row in (await journal_after(store, before))[:2]) == [
            ("artifact", "old", "purge", 1), ("artifact", "shared", "purge", 1),
        ]  # fmt: skip
        with pytest.raises(ArtifactNotFound):
            await memory.artifacts.restore("s1", "old")
        assert (await memory.artifacts.verify(grace=NOW)).flaws == ()

    async def test_artifacts_go_with_their_session(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s2", "helpdesk", "alice")
        await memory.artifacts.save("s1", "x", b"in the first")
        await memory.artifacts.save("s1", "y", b"in both")
        await memory.artifacts.save("s2", "y", b"in both")

        await memory.sessions.delete_session("s1")

        assert await peek(store, "SELECT session_id, name FROM artifacts") == [("s2", "y")]
        report = await memory.artifacts.verify(grace=NOW)
        assert [flaw.kind for flaw in report.flaws] == ["orphaned"]
        assert (await memory.artifacts.cleanup(grace=NOW)).freed == len(b"in the first")
        assert await memory.artifacts.read("s2", "y") == b"in both"

    async def test_content_without_a_record_stays_for_a_while(self, memory: HybridMemoryService) -> None:
        contents = parts_of(memory).contents
        kept = await contents.put(b"the record is still to come", "app:tests")
        report = await memory.artifacts.verify()
        assert (report.pending, report.flaws) == (1, ())
        assert (await memory.artifacts.cleanup()).contents == 0
        assert await contents.whole(kept.sha256) == b"the record is still to come"
        assert (await memory.artifacts.cleanup(grace=NOW)).contents == 1

    async def test_content_of_workspaces_is_nobody_s_orphan(self, memory: HybridMemoryService, store: Store) -> None:
        kept = await parts_of(memory).contents.put(b"of a workspace", "app:tests")
        await plant(store, "INSERT INTO workspaces (id, namespace, created_at, updated_at) VALUES ('w', 'app:w', 1, 1)")
        await plant(
            store,
            "INSERT INTO workspace_files (workspace_id, path, since, sha256, size, updated_at)"
            " VALUES ('w', 'a.txt', 1, :sha256, 14, 1)",
            sha256=kept.sha256,
        )
        assert (await memory.artifacts.verify(grace=NOW)).flaws == ()
        assert (await memory.artifacts.cleanup(grace=NOW)).contents == 0
        parts_of(memory).contents.store.delete(kept.sha256, 0)
        report = await memory.artifacts.verify(grace=NOW)
        assert [(flaw.kind, flaw.used_by) for flaw in report.flaws] == [("missing", ("a.txt in workspace w",))]

    async def test_missing_content_is_found_and_said(self, memory: HybridMemoryService) -> None:
        saved = await memory.artifacts.save("s1", "x", b"soon gone")
        await memory.artifacts.save("s1", "y", b"stays")
        parts_of(memory).contents.store.delete(saved.sha256, 0)

        for deep in (True, False):
            seen: list[int] = []
            report = await memory.artifacts.verify(deep=deep, progress=lambda now, seen=seen: seen.append(now.done))
            assert [(f.kind, f.sha256, f.used_by) for f in report.flaws] == [("missing", saved.sha256, (saved.url,))]
            assert (report.is_good, report.checked, report.stored, seen) == (False, 2, 1, [1, 2])
        with pytest.raises(ContentMissing, match=saved.sha256):
            await memory.artifacts.read("s1", "x")
        with pytest.raises(ContentMissing):
            await memory.artifacts.open("s1", "x").read()

        assert (await memory.artifacts.save("s1", "x", b"soon gone")).version == 2
        assert await memory.artifacts.read("s1", "x", 1) == b"soon gone"

    async def test_upkeep_takes_spans_of_time(self, memory: HybridMemoryService) -> None:
        wrong: Any
        for wrong in (timedelta(-1), 5, "1h"):
            with pytest.raises(InvalidInput):
                await memory.artifacts.verify(grace=wrong)
            with pytest.raises(InvalidInput):
                await memory.artifacts.cleanup(keep_deleted=wrong)

    async def test_a_context_names_the_session_s_files(self, memory: HybridMemoryService) -> None:
        first = await memory.artifacts.save("s1", "plan.md", "# Plan")
        saved = await memory.artifacts.save("s1", "plan.md", "# Plan B")
        context = await memory.context("what is the plan?", session_id="s1")
        assert saved.url in context.text
        assert first.url not in context.text
        assert [(item.section, item.name) for item in context.items] == [("artifacts", "plan.md")]

    async def test_giving_up_in_the_middle_of_reading_harms_nothing(self, memory: HybridMemoryService) -> None:
        await memory.artifacts.save("s1", "x", bytes(5_000_000))

        async def look() -> int:
            async with memory.artifacts.open("s1", "x") as stream:
                async for piece in stream:
                    return len(piece)
            return 0

        assert await look() > 0
        assert len(await memory.artifacts.read("s1", "x")) == 5_000_000
