"""The contract of `RetentionService` where it removes: what goes is archived, comes back, and can be erased."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mnemon.errors import (
    AccessDenied,
    ArchiveNotFound,
    ContentMissing,
    InvalidNamespace,
    MemoryNotFound,
    StoreError,
    StoreUnavailable,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Memory, Principal, RetentionPolicy
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.faults import with_faults
from mnemon.testing.handles import parts_of, with_settings
from mnemon.testing.suite import Suite, journal_after, last_position, peek, refused

ANN = "user:ann"
DAY = 86_400.0


def ruled(memory: HybridMemoryService, **bounds: Any) -> HybridMemoryService:
    """The memory with one policy for everything."""
    return with_settings(memory, retention=(RetentionPolicy(name="rule", **bounds),))


async def say(memory: HybridMemoryService, key: str, *values: str, **told: Any) -> list[Memory]:
    """Write versions of a memory, one after the other; its history."""
    for value in values:
        given: dict[str, Any] = {"namespace": ANN, **told}
        await memory.remember(value, key=key, **given)
    return await memory.memories.get_memory_history(told.get("namespace", ANN), key)


async def said(memory: HybridMemoryService, key: str, namespace: str = ANN) -> list[Any]:
    """What the versions of a memory say."""
    return [each.value for each in await memory.memories.get_memory_history(namespace, key)]


def without_ids(history: list[Memory]) -> list[Memory]:
    return [replace(each, id=0) for each in history]


class RetentionArchiveSuite(Suite):
    """A part of `RetentionSuite`."""

    # -- removing and restoring

    async def test_what_was_removed_comes_back_with_all_its_versions(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        before = await say(memory, "k", "Bergen", "Oslo", "Rome", importance=0.3, metadata={"a": [1]}, actor="bob")
        gone = await say(memory, "deleted", "Paris")
        await memory.memories.delete_memory(ANN, "deleted")
        gone = await memory.memories.get_memory_history(ANN, "deleted")
        clock.advance(DAY)

        plan = await ruled(memory, max_age_days=0.5).retention.apply(actor="keeper")

        assert (plan.applied, plan.is_dry_run) == (2, False)
        assert await memory.memories.get_memory(ANN, "k") is None
        assert await said(memory, "k") == []
        assert await memory.recall("Rome", namespaces=ANN) == []
        [archive] = await memory.retention.archives()
        assert (archive.namespace, archive.policy, archive.memories, archive.versions) == (ANN, "rule", 2, 5)
        assert (plan.archives, archive.restored_at) == ((archive.id,), None)

        report = await memory.retention.restore(archive.id, actor="keeper")

        assert (report.memories, report.versions, report.skipped) == (2, 5, ())
        assert without_ids(await memory.memories.get_memory_history(ANN, "k")) == without_ids(before)
        assert without_ids(await memory.memories.get_memory_history(ANN, "deleted")) == without_ids(gone)
        [hit] = await memory.recall("Rome", namespaces=ANN)
        assert hit.memory.version == 3
        assert report.archive.restored_at == clock.moment
        assert await memory.memories.get_memory(ANN, "deleted") is None

    async def test_what_was_restored_is_young_again(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await say(memory, "k", "Oslo")
        clock.advance(DAY)
        old = ruled(memory, max_age_days=0.5)
        [archive] = (await old.retention.apply()).archives
        await memory.retention.restore(archive)
        assert (await old.retention.plan()).actions == ()
        clock.advance(DAY)
        assert len((await old.retention.plan()).actions) == 1

    async def test_a_memory_that_was_restored_goes_on(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await say(memory, "k", "Oslo")
        clock.advance(DAY)
        [archive] = (await ruled(memory, max_age_days=0.5).retention.apply()).archives
        await memory.retention.restore(archive)
        await memory.memories.update_memory(ANN, "k", "Rome", expected_version=1)
        assert await said(memory, "k") == ["Oslo", "Rome"]
        assert [hit.memory.value for hit in await memory.recall("Oslo Rome", namespaces=ANN)] == ["Rome"]

    async def test_nothing_comes_back_where_something_else_is_now(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await say(memory, "k", "Oslo")
        await say(memory, "other", "Rome")
        clock.advance(DAY)
        [archive] = (await ruled(memory, max_age_days=0.5).retention.apply()).archives
        await say(memory, "k", "Paris")
        report = await memory.retention.restore(archive)
        assert (report.memories, report.skipped) == (1, ((ANN, "k"),))
        assert await said(memory, "k") == ["Paris"]
        again = await memory.retention.restore(archive)
        assert (again.memories, len(again.skipped)) == (0, 2)

    async def test_old_versions_go_and_come_back(self, memory: HybridMemoryService, store: Store) -> None:
        before = await say(memory, "k", "one", "two", "three", "four")
        position = await last_position(store)
        keeping = ruled(memory, versions_kept=2)
        plan = await keeping.retention.apply(ANN)
        assert await said(memory, "k") == [None, "three", "four"]
        [stub, *_] = await memory.memories.get_memory_history(ANN, "k")
        assert (stub.version, stub.is_deleted, stub.metadata) == (1, True, {"stands_for": 2})
        assert [(row[0], row[2], row[3]) for row in await journal_after(store, position)] == [
            ("archive", "create", None), ("memory", "trim", None),
        ]  # fmt: skip
        assert (await keeping.retention.plan()).actions == ()
        await say(memory, "k", "five")
        await memory.retention.restore(plan.archives[0])
        after = await memory.memories.get_memory_history(ANN, "k")
        assert [each.value for each in after] == ["one", "two", "three", "four", "five"]
        assert without_ids(after[:2]) == without_ids(before[:2])

    async def test_versions_are_squashed_into_a_summary(self, memory: HybridMemoryService) -> None:
        texts = ["Ann lives in Bergen.", "Ann lives in Oslo.", "Ann lives in Rome.", "Ann lives in Paris."]
        before = await say(memory, "home", *texts)
        squashing = ruled(memory, versions_kept=1, squash=True)

        plan = await squashing.retention.apply()

        summary, current = await memory.memories.get_memory_history(ANN, "home")
        assert (summary.version, current.version, current.value) == (1, 4, texts[3])
        assert (summary.metadata, summary.is_deleted) == ({"stands_for": 3}, False)
        assert any(place in summary.value for place in ("Bergen", "Oslo", "Rome"))
        assert [hit.memory.version for hit in await memory.recall("Ann", namespaces=ANN)] == [4]
        assert (await squashing.retention.plan()).actions == ()

        await say(memory, "home", "Ann lives in Madrid.")
        later = await squashing.retention.apply()
        summary, newest = await memory.memories.get_memory_history(ANN, "home")
        assert (summary.version, summary.metadata) == (1, {"stands_for": 4})
        assert newest.version == 5

        await memory.retention.restore(later.archives[0])
        await memory.retention.restore(plan.archives[0])
        after = await memory.memories.get_memory_history(ANN, "home")
        assert [each.version for each in after] == [1, 2, 3, 4, 5]
        assert without_ids(after[:3]) == without_ids(before[:3])

    async def test_pinned_memories_stay(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await say(memory, "k", "one", "two", metadata={"pinned": True})
        await say(memory, "not", "one", metadata={"pinned": "no"})
        clock.advance(DAY)
        plan = await ruled(memory, max_age_days=0, max_size=0).retention.apply()
        assert [action.key for action in plan.actions] == ["not"]
        assert await said(memory, "k") == ["one", "two"]

    async def test_without_an_archive_it_is_gone(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await say(memory, "k", "one")
        clock.advance(DAY)
        plan = await ruled(memory, max_age_days=0, archive=False).retention.apply()
        assert (plan.applied, plan.archives) == (1, ())
        assert not await memory.retention.archives()

    async def test_what_changed_meanwhile_is_left_as_it_is(
        self, memory: HybridMemoryService, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await say(memory, "changed", "one")
        await say(memory, "same", "one")
        clock.advance(DAY)
        contents = parts_of(memory).contents
        keep = contents.put

        async def change_first(data: Any, namespace: str) -> Any:
            kept = await keep(data, namespace)
            if len(await said(memory, "changed")) == 1:
                await say(memory, "changed", "two")
            return kept

        monkeypatch.setattr(contents, "put", change_first)
        plan = await ruled(memory, max_age_days=0.5).retention.apply()
        assert {action.key: action.status for action in plan.actions} == {"changed": "outdated", "same": "applied"}
        assert await said(memory, "changed") == ["one", "two"]
        [archive] = await memory.retention.archives()
        assert archive.memories == 1
        assert (await memory.artifacts.verify(grace=timedelta(0))).flaws == ()  # nothing is left of the first attempt

    @pytest.mark.parametrize("statement", ["insert_archive", "append", "purge", "forget_uses"])
    async def test_if_the_database_fails_nothing_is_removed(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, statement: str
    ) -> None:
        await say(memory, "k", "one", "two")
        clock.advance(DAY)
        faulty, faults = with_faults(ruled(memory, max_age_days=0.5))
        faults.fail_statement(statement, StoreError("out of order"))
        async with refused(store, StoreError, "out of order"):
            await faulty.retention.apply(ANN)
        faults.heal()
        assert (await faulty.retention.apply(ANN)).applied == 1

    @pytest.mark.parametrize("statement", ["restore_version", "append", "note_restored"])
    async def test_if_the_database_fails_nothing_is_restored(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, statement: str
    ) -> None:
        await say(memory, "k", "one", "two")
        clock.advance(DAY)
        faulty, faults = with_faults(ruled(memory, max_age_days=0.5))
        [archive] = (await faulty.retention.apply()).archives
        faults.fail_statement(statement, StoreError("out of order"))
        async with refused(store, StoreError, "out of order"):
            await faulty.retention.restore(archive)
        faults.heal()
        assert (await faulty.retention.restore(archive)).versions == 2

    async def test_an_archive_is_not_cleaned_up_until_it_is_discarded(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await say(memory, "k", "one")
        clock.advance(DAY)
        [archive] = (await ruled(memory, max_age_days=0.5).retention.apply()).archives
        at_once = timedelta(0)
        assert (await memory.artifacts.cleanup(grace=at_once)).contents == 0
        assert (await memory.artifacts.verify(deep=True, grace=at_once)).flaws == ()
        [kept] = await memory.retention.archives()
        await memory.retention.discard(archive)
        with pytest.raises(ContentMissing):
            await parts_of(memory).contents.whole(kept.content.sha256)
        with pytest.raises(ArchiveNotFound):
            await memory.retention.restore(archive)

    # -- archives

    async def test_archives_come_a_page_at_a_time(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        for number in range(3):
            await say(memory, "k", "one", namespace=f"user:u{number}")
        clock.advance(DAY)
        await ruled(memory, max_age_days=0.5).retention.apply()
        page = await memory.retention.archives(limit=2)
        rest = await memory.retention.archives(limit=2, cursor=page.next_cursor)
        assert [each.namespace for each in [*page, *rest]] == ["user:u0", "user:u1", "user:u2"]
        assert [each.namespace for each in await memory.retention.archives("user:u1")] == ["user:u1"]

    @pytest.mark.parametrize("wrong", [0, 7, -1, 2**70])
    async def test_an_archive_that_is_not_there(self, memory: HybridMemoryService, store: Store, wrong: int) -> None:
        async with refused(store, ArchiveNotFound):
            await memory.retention.restore(wrong)
        async with refused(store, ArchiveNotFound):
            await memory.retention.discard(wrong)

    async def test_a_namespace_that_cannot_be(self, memory: HybridMemoryService, store: Store) -> None:
        for call in (memory.retention.plan, memory.retention.apply, memory.retention.archives):
            async with refused(store, InvalidNamespace):
                await call("nowhere:x")

    async def test_grants_are_kept(self, memory: HybridMemoryService, store: Store, clock: ManualClock) -> None:
        await say(memory, "k", "one")
        await say(memory, "k", "one", namespace="user:bob")
        clock.advance(DAY)
        old = ruled(memory, max_age_days=0.5)
        bob = old.as_principal(Principal("bob", {"user:bob": "admin", ANN: "read"}))
        async with refused(store, AccessDenied):
            await bob.retention.apply()
        async with refused(store, AccessDenied):
            await bob.retention.apply(ANN)
        async with refused(store, AccessDenied):
            await bob.retention.growth()
        async with refused(store, AccessDenied):
            await bob.retention.prune()
        assert len((await bob.retention.plan(ANN)).actions) == 1
        assert (await bob.retention.apply("user:bob")).applied == 1
        hers = (await old.retention.apply(ANN)).archives[0]
        async with refused(store, AccessDenied):
            await bob.retention.restore(hers)
        async with refused(store, AccessDenied):
            await bob.retention.discard(hers)
        stranger = memory.as_principal(Principal("eve", {"user:eve": "admin"}))
        async with refused(store, ArchiveNotFound):
            await stranger.retention.restore(hers)
        assert not await stranger.retention.archives()

    # -- erasing what is archived

    async def test_what_is_purged_leaves_its_archives(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await say(memory, "secret", "tuba one", "tuba two")
        await say(memory, "other", "xylophone")
        clock.advance(DAY)
        old = ruled(memory, max_age_days=0.5)
        [archive] = (await old.retention.apply()).archives
        [before] = await memory.retention.archives()
        await say(memory, "secret", "tuba three")

        receipt = await memory.memories.purge_memory(ANN, "secret")

        [after] = await memory.retention.archives()
        assert (receipt.versions, receipt.archives) == (1, (archive,))
        assert (after.id, after.memories, after.versions) == (archive, 1, 1)
        contents = parts_of(memory).contents
        assert b"tuba" not in await contents.whole(after.content.sha256)
        with pytest.raises(ContentMissing):
            await contents.whole(before.content.sha256)
        report = await memory.retention.restore(archive)
        assert (report.memories, report.skipped) == (1, ())
        assert await said(memory, "other") == ["xylophone"]
        assert await said(memory, "secret") == []

        await memory.memories.purge_memory(ANN, "other")
        assert not await memory.retention.archives()
        assert (await memory.artifacts.verify(grace=timedelta(0))).stored == 0

    async def test_what_is_only_in_archives_is_forgotten_too(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for key in ("a", "b"):
            await say(memory, key, "one")
            await say(memory, key, "one", namespace="user:ann:x")
        await say(memory, "c", "one", namespace="user:anna")
        clock.advance(DAY)
        await ruled(memory, max_age_days=0.5).retention.apply()
        await say(memory, "new", "one")
        assert await memory.forget(ANN, erase=True) == 5
        assert [each.namespace for each in await memory.retention.archives()] == ["user:anna"]
        assert await peek(store, "SELECT namespace, key FROM archived_memories") == [("user:anna", "c")]
        async with refused(store, MemoryNotFound):
            await memory.forget(ANN, "a", erase=True)

    @pytest.mark.parametrize("statement", ["rewrite_archive", "forget_replaced"])
    async def test_an_erasure_that_was_cut_short_is_finished_later(
        self, memory: HybridMemoryService, clock: ManualClock, statement: str
    ) -> None:
        await say(memory, "secret", "tuba")
        await say(memory, "other", "xylophone")
        clock.advance(DAY)
        faulty, faults = with_faults(ruled(memory, max_age_days=0.5))
        [archive] = (await faulty.retention.apply()).archives
        faults.fail_statement(statement, StoreError("out of order"))
        with pytest.raises(StoreUnavailable, match=r"1 memory purged .* left in an archive"):
            await faulty.memories.purge_memory(ANN, "secret")
        await memory.retention.restore(archive)
        assert (await said(memory, "secret"), await said(memory, "other")) == ([], ["xylophone"])
        faults.heal()
        await faulty.retention.apply()
        for kept in await memory.retention.archives():
            assert b"tuba" not in await parts_of(memory).contents.whole(kept.content.sha256)
        assert (await memory.artifacts.verify(grace=timedelta(0))).flaws == ()
