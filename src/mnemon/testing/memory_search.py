"""The contract of finding memories: prefixes, kinds, metadata, order, pages, threads, namespaces."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from mnemon.errors import InvalidCursor, InvalidFilter, InvalidInput, InvalidNamespace, InvalidStatus
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Memory, NamespaceCount, Page, Placement
from mnemon.testing.clock import ManualClock
from mnemon.testing.suite import Suite


async def add(memory: HybridMemoryService, *places: str, **said: Any) -> None:
    """One memory for each `namespace/key`."""
    for place in places:
        namespace, key = place.split("/")
        await memory.memories.add_memory(namespace, key, place, **said)


def places(memories: "Page[Memory] | list[Memory]") -> list[str]:
    return [f"{memory.namespace}/{memory.key}" for memory in memories]


class MemorySearchSuite(Suite):
    """Part of `MemorySuite`."""

    async def test_a_prefix_matches_whole_segments(self, memory: HybridMemoryService) -> None:
        everything = [
            "app:x/a", "user:1/a", "user:10/a", "user:1:b/a", "user:al/a", "user:al-x/a", "user:al:x/a",
            "user:al:x/b", "user:al:x:y/a", "user:al;x/a", "user:alice/a", "user:alice:x/a",
        ]  # fmt: skip
        await add(memory, *reversed(everything))

        async def found(prefix: str) -> list[str]:
            return places(await memory.memories.search_memories(prefix))

        assert await found("user:al") == ["user:al/a", "user:al:x/a", "user:al:x/b", "user:al:x:y/a"]
        assert await found("user:al:") == await found("user:al")
        assert await found("user:alice") == ["user:alice/a", "user:alice:x/a"]
        assert await found("user:1") == ["user:1/a", "user:1:b/a"]
        assert await found("user:al:x") == ["user:al:x/a", "user:al:x/b", "user:al:x:y/a"]
        assert await found("user:a") == []
        assert await found("app") == ["app:x/a"]
        assert await found("user") == sorted(everything[1:], key=lambda place: place.split("/"))
        assert await found("") == sorted(everything, key=lambda place: place.split("/"))
        assert places(await memory.memories.search_memories()) == await found("")

    async def test_a_prefix_that_cannot_be_is_refused(self, memory: HybridMemoryService) -> None:
        strange: Any = 5
        for prefix in ("users", "user::a", "::", "user: a", "user:a\n", "\ud800", "user:" + "x" * 1024, strange):
            with pytest.raises(InvalidNamespace):
                await memory.memories.search_memories(prefix)
            with pytest.raises(InvalidNamespace):
                await memory.memories.list_namespaces(prefix)

    async def test_only_the_live_newest_versions_are_found(self, memory: HybridMemoryService) -> None:
        await add(memory, "user:a/kept", "user:a/gone", "user:a/changed")
        await memory.memories.update_memory("user:a", "changed", "new")
        await memory.memories.delete_memory("user:a", "gone")

        for order in ("namespace", "recent"):
            for prefix in ("user:a", "user"):  # at the prefix itself, and below it
                found = await memory.memories.search_memories(prefix, order=order)
                assert {(m.key, m.value, m.version) for m in found} == {
                    ("kept", "user:a/kept", 1),
                    ("changed", "new", 2),
                }

    async def test_memories_are_found_by_kind_creator_and_time(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        start = clock.moment
        await add(memory, "user:a/1", memory_type="semantic", created_by="bot")
        clock.advance()
        await add(memory, "user:a/2", memory_type="episodic", created_by="bot")
        clock.advance()
        await add(memory, "user:a/3", memory_type="episodic", created_by="eve")
        second = timedelta(seconds=1)

        async def found(**wanted: Any) -> str:
            by_namespace = await memory.memories.search_memories("user", **wanted)
            recent = await memory.memories.search_memories("user", order="recent", **wanted)
            assert [m.key for m in recent] == [m.key for m in by_namespace][::-1]
            return " ".join(m.key for m in by_namespace)

        assert await found() == "1 2 3"
        assert await found(memory_type="episodic") == "2 3"
        assert await found(created_by="bot") == "1 2"
        assert await found(created_by="bot", memory_type="episodic") == "2"
        assert await found(memory_type="procedural") == ""
        assert await found(updated_after=start) == "2 3"
        assert await found(updated_before=start + 2 * second) == "1 2"
        assert await found(updated_after=start, updated_before=start + 2 * second) == "2"
        assert await found(updated_after=datetime(1900, 1, 1), created_by="eve") == "3"  # noqa: DTZ001 - taken as UTC
        with pytest.raises(InvalidStatus, match="semantic, episodic, procedural"):
            await found(memory_type="vague")

    async def test_memories_are_found_by_their_metadata(self, memory: HybridMemoryService) -> None:
        await add(memory, "user:a/1", metadata={"lang": "en", "size": 3, "tags": ["x", "y"], "by": {"name": "bob"}})
        await add(memory, "user:a/2", metadata={"lang": "no", "size": 10.5, "tags": [], "draft": True})
        await add(memory, "user:a/3", metadata={"lang": "english", "size": "3", "draft": None})

        async def found(where: Any) -> str:
            by_namespace = await memory.memories.search_memories("user:a", where=where)
            recent = await memory.memories.search_memories("user:a", where=where, order="recent")
            assert {m.key for m in recent} == {m.key for m in by_namespace}
            return " ".join(m.key for m in by_namespace)

        cases: list[tuple[dict[str, Any], str]] = [
            ({}, "1 2 3"),
            ({"lang": "en"}, "1"),
            ({"lang": {"ne": "en"}}, "2 3"),
            ({"size": {"gt": 3}}, "2"),
            ({"size": {"gte": 3, "lt": 10.5}}, "1"),
            ({"size": {"lte": "3"}}, "3"),
            ({"size": 3.0}, "1"),
            ({"lang": {"in": ["no", "en"]}}, "1 2"),
            ({"lang": {"in": []}}, ""),
            ({"lang": {"contains": "en"}}, "1 3"),
            ({"tags": {"contains": "x"}}, "1"),
            ({"by.name": "bob"}, "1"),
            ({"draft": None}, "3"),
            ({"draft": True}, "2"),
            ({"draft": 1}, ""),
            ({"or": [{"draft": True}, {"by.name": {"eq": "bob"}}]}, "1 2"),
            ({"not": {"lang": "en"}, "size": 10.5}, "2"),
            ({"and": []}, "1 2 3"),
            ({"or": []}, ""),
        ]
        for where, expected in cases:
            assert await found(where) == expected, where
        with pytest.raises(InvalidFilter, match="unknown operator"):
            await found({"lang": {"like": "e%"}})

    async def test_pages_in_order_of_namespace_are_stable(self, memory: HybridMemoryService) -> None:
        expected = [
            "user:a/1", "user:a/2", "user:a/3", "user:a:x/1", "user:a:x/2", "user:a:y/1", "user:a:z/1",
        ]  # fmt: skip
        await add(memory, *expected, "user:a-b/1", "user:b/1")

        for limit in range(1, 9):
            seen: list[str] = []
            cursor: str | None = None
            for turn in range(20):
                page = await memory.memories.search_memories("user:a", limit=limit, cursor=cursor)
                seen += places(page)
                cursor = page.next_cursor
                if cursor is None:
                    break
                await add(memory, f"user:a/0-{limit}-{turn}")  # before the cursor: never seen
            assert seen == expected
            for late in await memory.memories.search_memories("user:a"):
                if late.key.startswith("0-"):
                    await memory.memories.delete_memory(late.namespace, late.key)

    async def test_pages_of_everything_and_by_kind_are_stable(self, memory: HybridMemoryService) -> None:
        await add(memory, "app:a/1", "project:p/1", "user:a/1", "user:a/2", "user:a:b/1", memory_type="episodic")
        await add(memory, "user:a/9")

        for prefix in ("", "user"):
            seen: list[str] = []
            cursor: str | None = None
            while True:
                page = await memory.memories.search_memories(prefix, "episodic", limit=2, cursor=cursor)
                seen += places(page)
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert seen == [
                place
                for place in ("app:a/1", "project:p/1", "user:a/1", "user:a/2", "user:a:b/1")
                if place.startswith(prefix)
            ]

    async def test_pages_of_the_most_recent_are_stable(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        for number in range(6):
            await add(memory, f"user:a/{number}")
            clock.advance(number % 2)  # some at the same moment: the id decides
        seen: list[str] = []
        cursor: str | None = None
        for turn in range(10):
            page = await memory.memories.search_memories("user:a", order="recent", limit=2, cursor=cursor)
            seen += [m.key for m in page]
            cursor = page.next_cursor
            if cursor is None:
                break
            clock.advance()
            await add(memory, f"user:a/late{turn}")

        assert seen == ["5", "4", "3", "2", "1", "0"]

    async def test_a_search_that_has_no_meaning_is_refused(self, memory: HybridMemoryService) -> None:
        await add(memory, "user:a/1", "user:b/1")
        recent = (await memory.memories.search_memories(order="recent", limit=1)).next_cursor
        by_namespace = (await memory.memories.search_memories("user:a", limit=1)).next_cursor
        strange: Any = "random"
        cases: list[tuple[type[Exception], dict[str, Any]]] = [
            (InvalidInput, {"order": strange}),
            (InvalidInput, {"limit": 0}),
            (InvalidInput, {"limit": 10_001}),
            (InvalidCursor, {"cursor": recent}),
            (InvalidCursor, {"cursor": by_namespace, "order": "recent"}),
            (InvalidCursor, {"cursor": by_namespace, "namespace_prefix": "user:b"}),
            (InvalidCursor, {"cursor": "nonsense"}),
        ]
        for error, wanted in cases:
            with pytest.raises(error):
                await memory.memories.search_memories(**wanted)

    # -- threads

    async def test_a_thread_is_read_by_position(self, memory: HybridMemoryService) -> None:
        for number in (3, 1, 2, 0):
            await add(memory, f"user:a/{number}", placement=Placement("chat", number))
        await add(memory, "user:b/2b", placement=Placement("chat", 2))
        await add(memory, "user:a/other", placement=Placement("chatter", 1))
        await add(memory, "user:a/unplaced", placement=Placement("chat"))
        await memory.memories.update_memory("user:a", "1", "changed")
        await memory.memories.delete_memory("user:a", "0")

        async def read(**part: int) -> str:
            return " ".join(m.key for m in await memory.memories.get_thread("chat", **part))

        assert await read() == "1 2 2b 3"
        assert await read(first=2) == "2 2b 3"
        assert await read(last=1) == "1"
        assert await read(first=1, last=2, limit=2) == "1 2"
        assert await memory.memories.get_thread("nothing") == []
        for part in ({"limit": 0}, {"first": -1}, {"last": -1}):
            with pytest.raises(InvalidInput):
                await read(**part)

    # -- namespaces

    async def test_namespaces_are_listed_with_what_lives_in_them(self, memory: HybridMemoryService) -> None:
        await add(memory, "user:a/1", "user:a/2", "user:a:x/1", "user:a1/1", "user:b:y/1", "app:z/1", "user:a:dead/1")
        await memory.memories.delete_memory("user:a:dead", "1")
        await memory.memories.update_memory("user:a", "1", "changed")

        async def listed(prefix: str = "", **options: int) -> list[NamespaceCount]:
            return await memory.memories.list_namespaces(prefix, **options)

        everything = [
            NamespaceCount("app:z", 1),
            NamespaceCount("user:a", 2),
            NamespaceCount("user:a1", 1),
            NamespaceCount("user:a:x", 1),
            NamespaceCount("user:b:y", 1),
        ]
        assert await listed() == everything
        assert await listed("user:a") == [NamespaceCount("user:a", 2), NamespaceCount("user:a:x", 1)]
        assert await listed("user:b") == [NamespaceCount("user:b:y", 1)]
        assert await listed("project") == []
        assert await listed(limit=2) == everything[:2]
        with pytest.raises(InvalidInput, match="limit"):
            await listed(limit=0)
