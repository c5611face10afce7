"""The contract of `MemoryService`: versions, deletion, restoration, as-of reads, erasure."""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemon.errors import (
    ConflictError,
    InvalidIdentifier,
    InvalidInput,
    InvalidNamespace,
    InvalidStatus,
    InvalidValue,
    MemoryExists,
    MemoryNotFound,
    ValueTooLarge,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Difference, Memory, MemoryType, Placement, Provenance
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.faults import with_faults
from mnemon.testing.handles import with_settings
from mnemon.testing.memory_search import MemorySearchSuite
from mnemon.testing.suite import journal_after, last_position, long_name, peek, plant, refused

ALICE = "user:alice:profile"


async def current(memory: HybridMemoryService, key: str = "city") -> Memory:
    """The memory, which must be there."""
    found = await memory.memories.get_memory(ALICE, key)
    assert found is not None
    return found


async def history(memory: HybridMemoryService, key: str = "city") -> list[tuple[int, Any, bool]]:
    """Version, value and whether it is a deletion, of every version."""
    return [(m.version, m.value, m.is_deleted) for m in await memory.memories.get_memory_history(ALICE, key)]


class MemorySuite(MemorySearchSuite):
    """Any backend must pass; override the fixture `memory`."""

    # -- adding and getting

    async def test_a_memory_is_kept_with_all_that_was_said_about_it(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        provenance = Provenance("s1", "e1", "bob", trust=0.25, importance=1)
        happened = datetime(2020, 2, 3, 4, 5, 6, 789012, UTC)
        placement = Placement("chat", 7, happened, happened - timedelta(1), happened + timedelta(1))

        identifier = await memory.memories.add_memory(
            ALICE, "city", {"name": "Oslo"}, "episodic", "bot", "t1", {"lang": "no"},
            provenance=provenance, placement=placement,
        )  # fmt: skip

        found = await current(memory)
        assert (found.id, found.namespace, found.key, found.value) == (identifier, ALICE, "city", {"name": "Oslo"})
        assert (found.memory_type, found.metadata, found.task_id) == (MemoryType.EPISODIC, {"lang": "no"}, "t1")
        assert (found.version, found.is_current, found.is_deleted) == (1, True, False)
        assert (found.created_by, found.updated_by) == ("bot", "bot")
        assert found.created_at == found.updated_at == clock.moment
        assert (found.provenance, found.placement) == (provenance, placement)
        assert await peek(store, "SELECT id, value, valid_from FROM memory_entries") == [
            (identifier, '{"name":"Oslo"}', 1580616306789012)
        ]
        assert await journal_after(store) == [("memory", "city", "add", 1, ALICE)]

    async def test_what_was_not_said_has_a_default(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await memory.memories.add_memory(ALICE, "city", "Oslo")

        found = await current(memory)
        assert (found.memory_type, found.metadata, found.created_by, found.task_id) == ("semantic", {}, None, None)
        assert found.provenance == Provenance(None, None, None, 1.0, 0.5)
        assert found.placement == Placement(None, None, None, clock.moment, None)

    async def test_a_memory_holds_from_when_it_happened(self, memory: HybridMemoryService) -> None:
        epoch = datetime(1970, 1, 1, tzinfo=UTC)

        for key, placement in {
            "happened": Placement(occurred_at=epoch),
            "valid": Placement(valid_from=epoch, occurred_at=epoch + timedelta(1)),
        }.items():
            await memory.memories.add_memory(ALICE, key, 1, placement=placement)
            assert (await current(memory, key)).placement.valid_from == epoch

    async def test_reading_shows_what_stands_in_the_database(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        insert = (
            "INSERT INTO memory_entries (namespace, key, value, memory_type, version, is_current, metadata, "
            "created_at, updated_at, valid_from) "
            "VALUES (:namespace, 'city', :value, 'procedural', :version, {current}, '{{\"a\":1}}', :at, :at, :at)"
        )
        for version, namespace, is_current in ((1, ALICE, False), (2, ALICE, True), (3, "user:alice", True)):
            await plant(
                store, insert.format(current=str(is_current).upper()),
                namespace=namespace, value=f"[{version}]", version=version, at=clock.now(),
            )  # fmt: skip

        found = await current(memory)

        assert (found.value, found.version, found.memory_type, found.metadata) == ([2], 2, "procedural", {"a": 1})
        assert await history(memory) == [(1, [1], False), (2, [2], False)]

    async def test_a_taken_key_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.memories.add_memory(ALICE, "city", "Oslo")

        async with refused(store, MemoryExists, "city"):
            await memory.memories.add_memory(ALICE, "city", "Bergen")
        await memory.memories.add_memory("user:alice", "city", "elsewhere")
        await memory.memories.add_memory(ALICE, "City", "another key")

    async def test_what_cannot_be_a_memory_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        small = with_settings(memory, max_key_length=20, max_namespace_length=20, max_value_bytes=50).memories
        moment = datetime(2030, 1, 1, tzinfo=UTC)
        strange: Any = "very"
        cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
            (InvalidNamespace, "must be a root and at least one segment", {"namespace": "user"}),
            (InvalidNamespace, "must be a root and at least one segment", {"namespace": "user:alice:"}),
            (InvalidNamespace, "must begin with one of", {"namespace": "users:alice"}),
            (InvalidNamespace, "a segment that is empty", {"namespace": "user::a"}),
            (InvalidNamespace, "at most 20", {"namespace": "user:" + "a" * 16}),
            (InvalidIdentifier, "a memory's key", {"key": ""}),
            (InvalidIdentifier, "at most 20 are allowed", {"key": "k" * 21}),
            (InvalidIdentifier, "control character", {"key": "a\tb"}),
            (InvalidStatus, "semantic, episodic, procedural", {"memory_type": "vague"}),
            (InvalidValue, "the memory's value is nan", {"value": float("nan")}),
            (ValueTooLarge, "max_value_bytes allows 50", {"value": "x" * 50}),
            (InvalidValue, "metadata must be a mapping", {"metadata": [1]}),
            (InvalidValue, "NUL", {"metadata": {"a": {"b\0": 1}}}),
            (ValueTooLarge, "metadata", {"metadata": {"a": "x" * 50}}),
            (InvalidInput, "trust must be between 0 and 1", {"provenance": Provenance(trust=1.1)}),
            (InvalidInput, "trust must be between 0 and 1", {"provenance": Provenance(trust=True)}),
            (InvalidInput, "importance must be between 0 and 1", {"provenance": Provenance(importance=-0.1)}),
            (InvalidInput, "importance must be between 0 and 1", {"provenance": Provenance(importance=strange)}),
            (InvalidInput, "only in a thread", {"placement": Placement(position=1)}),
            (InvalidIdentifier, "thread", {"placement": Placement(thread="")}),
            (InvalidInput, "position is a whole number", {"placement": Placement(thread="chat", position=-1)}),
            (InvalidInput, "position is a whole number", {"placement": Placement(thread="chat", position=strange)}),
            (InvalidInput, "later than valid_from", {"placement": Placement(valid_from=moment, valid_to=moment)}),
        ]  # fmt: skip
        await small.add_memory("user:alice", "there", 1)
        for error, message, change in cases:
            given: dict[str, Any] = {"namespace": "user:alice", "key": "city", "value": 1, **change}
            async with refused(store, error, message):
                await small.add_memory(**given)
            if not {"namespace", "key"} & change.keys():
                there: dict[str, Any] = {**given, "key": "there"}
                async with refused(store, error, message):
                    await small.update_memory(**there)

    async def test_names_may_be_as_long_as_the_limits(self, memory: HybridMemoryService) -> None:
        namespace = ":".join(["user", *(long_name(253, str(number)) for number in range(4))])
        key, name, thread = long_name(512, "key"), long_name(256, "name"), long_name(1024, "thread")
        assert len(namespace) == 1020

        await memory.memories.add_memory(
            namespace, key, 1, created_by=name, task_id=name,
            provenance=Provenance(name, name, name), placement=Placement(thread, 1),
        )  # fmt: skip
        await memory.memories.update_memory(namespace, key, 2, name, name)

        [found] = await memory.memories.search_memories(namespace, created_by=name)
        assert (found.key, found.value) == (key, 2)
        assert await memory.memories.get_thread(thread) == [found]
        assert [n.namespace for n in await memory.memories.list_namespaces()] == [namespace]
        assert len(await memory.audit(namespace=namespace, actor=name, task_id=name, entity_id=key)) == 2

    async def test_nothing_is_none_and_an_unknown_version_too(self, memory: HybridMemoryService) -> None:
        await memory.memories.add_memory(ALICE, "city", "Oslo")

        assert await memory.memories.get_memory(ALICE, "nothing") is None
        assert await memory.memories.get_memory(ALICE, "city", 2) is None
        assert await memory.memories.get_memory(ALICE, "city", as_of=datetime(1999, 1, 1, tzinfo=UTC)) is None
        assert await memory.memories.get_memory_history(ALICE, "nothing") == []
        with pytest.raises(InvalidInput, match="not both"):
            await memory.memories.get_memory(ALICE, "city", 1, datetime(2030, 1, 1, tzinfo=UTC))
        strange: tuple[Any, ...] = (-1, True, "1", 1.5)
        for version in strange:
            with pytest.raises(InvalidInput, match="version is a whole number"):
                await memory.memories.get_memory(ALICE, "city", version)
            with pytest.raises(InvalidInput, match="version is a whole number"):
                await memory.memories.restore_memory(ALICE, "city", version)

    # -- versions

    async def test_an_update_is_a_new_version_that_keeps_what_was_not_given(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        provenance, placement = Provenance(author="bob", trust=0.5), Placement("chat", 3, clock.moment)
        added = clock.moment
        await memory.memories.add_memory(
            ALICE, "city", "Oslo", "episodic", "bot", "t1", {"a": 1}, provenance=provenance, placement=placement
        )
        before = await last_position(store)
        updated = clock.advance()

        assert await memory.memories.update_memory(ALICE, "city", "Bergen", "eve", "t2") == 2

        found = await current(memory)
        assert (found.value, found.version, found.memory_type, found.metadata) == ("Bergen", 2, "episodic", {"a": 1})
        assert (found.created_by, found.updated_by, found.task_id) == ("bot", "eve", "t2")
        assert (found.created_at, found.updated_at) == (added, updated)
        assert found.provenance == provenance
        assert found.placement == Placement("chat", 3, added, updated, None)
        assert await journal_after(store, before) == [("memory", "city", "update", 2, ALICE)]
        assert await peek(store, "SELECT version, is_current FROM memory_entries ORDER BY version") == [
            (1, False),
            (2, True),
        ]

    async def test_an_update_can_change_everything(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await memory.memories.add_memory(ALICE, "city", "Oslo", metadata={"a": 1})
        provenance, placement = Provenance("s1", trust=0), Placement(valid_from=clock.moment, thread="chat", position=0)

        await memory.memories.update_memory(
            ALICE, "city", None, metadata={}, memory_type="procedural", provenance=provenance, placement=placement
        )

        found = await current(memory)
        assert (found.value, found.metadata, found.memory_type) == (None, {}, "procedural")
        assert (found.provenance, found.placement) == (provenance, placement)

    async def test_every_version_can_be_read(self, memory: HybridMemoryService) -> None:
        await memory.memories.add_memory(ALICE, "city", 1)
        for value in (2, 3):
            await memory.memories.update_memory(ALICE, "city", value)
        await memory.memories.delete_memory(ALICE, "city")

        assert await history(memory) == [(1, 1, False), (2, 2, False), (3, 3, False), (4, 3, True)]
        for version, value, is_deleted in await history(memory):
            found = await memory.memories.get_memory(ALICE, "city", version)
            assert found is not None
            assert (found.value, found.is_deleted, found.is_current) == (value, is_deleted, version == 4)

    async def test_a_stale_version_changes_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.memories.add_memory(ALICE, "city", 1)
        await memory.memories.update_memory(ALICE, "city", 2, expected_version=1)

        for stale in (0, 1, 3):
            async with refused(store, ConflictError, f"version 2, not {stale}"):
                await memory.memories.update_memory(ALICE, "city", 3, expected_version=stale)
            async with refused(store, ConflictError, f"version 2, not {stale}"):
                await memory.memories.delete_memory(ALICE, "city", expected_version=stale)
        await memory.memories.delete_memory(ALICE, "city", expected_version=2)

    async def test_what_is_not_there_cannot_be_changed(self, memory: HybridMemoryService, store: Store) -> None:
        memories = memory.memories
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: memories.update_memory(ALICE, "city", 1),
            lambda: memories.delete_memory(ALICE, "city"),
        ]
        for call in calls:
            async with refused(store, MemoryNotFound, "city"):
                await call()
        await memories.add_memory(ALICE, "city", 1)
        await memories.delete_memory(ALICE, "city")
        for call in calls:
            async with refused(store, MemoryNotFound, "is deleted"):
                await call()

    async def test_updates_that_come_together_are_each_a_version(
        self, memory: HybridMemoryService, store: Store, crowd: Crowd
    ) -> None:
        await memory.memories.add_memory(ALICE, "city", 0)

        taken = await crowd.gather([lambda: memory.memories.update_memory(ALICE, "city", 1)] * 20)

        assert sorted(taken) == list(range(2, 22))
        assert await peek(store, "SELECT version FROM memory_entries WHERE is_current = TRUE") == [(21,)]
        assert await peek(store, "SELECT COUNT(*) FROM journal WHERE operation = 'update'") == [(20,)]

    async def test_of_many_that_add_one_key_one_does(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        async def add() -> bool:
            try:
                await memory.memories.add_memory(ALICE, "city", "Oslo")
            except MemoryExists:
                return False
            return True

        for version in (1, 3):  # a new key, and then one that was deleted
            assert sum(await crowd.gather([add] * 10)) == 1
            assert (await current(memory)).version == version
            await memory.memories.delete_memory(ALICE, "city")

    async def test_a_change_that_was_overtaken_runs_again(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.memories.add_memory(ALICE, "city", 1)
        raced, faults = with_faults(memory)

        faults.race("insert_memory", times=2)
        assert await raced.memories.update_memory(ALICE, "city", 2) == 2

        assert await history(memory) == [(1, 1, False), (2, 2, False)]
        assert await peek(store, "SELECT version FROM memory_entries WHERE is_current = TRUE") == [(2,)]
        assert faults.statements["insert_memory"] >= 3

    # -- differences

    async def test_two_versions_can_be_compared(self, memory: HybridMemoryService) -> None:
        first = {"name": "Oslo", "tags": ["a", "b"], "gone": 1, "same": {"x": [1]}, "flag": 1}
        second = {"name": "Bergen", "tags": ["a", "c", "d"], "same": {"x": [1]}, "flag": True, "new": None}
        await memory.memories.add_memory(ALICE, "city", first)
        await memory.memories.update_memory(ALICE, "city", second)
        await memory.memories.update_memory(ALICE, "city", [1])
        await memory.memories.update_memory(ALICE, "city", [])

        async def compared(before: int, after: int) -> list[Difference]:
            return await memory.memories.diff_memory(ALICE, "city", before, after)

        assert await compared(1, 2) == [
            Difference("$.name", "Oslo", "Bergen", "changed"),
            Difference("$.tags[1]", "b", "c", "changed"),
            Difference("$.tags[2]", None, "d", "added"),
            Difference("$.gone", 1, None, "removed"),
            Difference("$.flag", 1, True, "changed"),
            Difference("$.new", None, None, "added"),
        ]
        assert await compared(2, 2) == []
        assert await compared(2, 3) == [Difference("$", second, [1], "changed")]
        assert await compared(3, 4) == [Difference("$[0]", 1, None, "removed")]
        for before, after in ((9, 1), (1, 9)):
            with pytest.raises(MemoryNotFound, match="no version 9"):
                await compared(before, after)

    # -- deleting and restoring

    async def test_a_deleted_memory_is_gone_but_not_lost(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.memories.add_memory(ALICE, "city", "Oslo", created_by="bot")
        deleted = clock.advance()

        await memory.memories.delete_memory(ALICE, "city", "eve", "t1")

        assert await memory.memories.get_memory(ALICE, "city") is None
        assert list(await memory.memories.search_memories(ALICE)) == []
        tombstone = await memory.memories.get_memory(ALICE, "city", 2)
        assert tombstone is not None
        assert (tombstone.is_deleted, tombstone.updated_by, tombstone.task_id) == (True, "eve", "t1")
        assert (tombstone.created_by, tombstone.updated_at) == ("bot", deleted)
        assert (await journal_after(store))[-1] == ("memory", "city", "delete", 2, ALICE)

    async def test_a_deleted_key_can_be_added_again_and_its_history_goes_on(self, memory: HybridMemoryService) -> None:
        await memory.memories.add_memory(ALICE, "city", "Oslo", metadata={"a": 1}, created_by="bot")
        await memory.memories.delete_memory(ALICE, "city")

        await memory.memories.add_memory(ALICE, "city", "Bergen", created_by="eve")

        found = await current(memory)
        assert (found.version, found.value, found.metadata, found.created_by) == (3, "Bergen", {}, "eve")
        assert await history(memory) == [(1, "Oslo", False), (2, "Oslo", True), (3, "Bergen", False)]

    async def test_restoring_brings_back_the_last_version_or_a_certain_one(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        old = clock.moment
        await memory.memories.add_memory(ALICE, "city", "Oslo", "episodic", "bot", metadata={"a": 1})
        await memory.memories.update_memory(ALICE, "city", "Bergen", metadata={"b": 2}, memory_type="semantic")
        await memory.memories.delete_memory(ALICE, "city")
        restored = clock.advance()

        assert await memory.memories.restore_memory(ALICE, "city", restored_by="eve", task_id="t1") == 4
        found = await current(memory)
        assert (found.value, found.metadata, found.memory_type) == ("Bergen", {"b": 2}, "semantic")
        assert (found.created_by, found.updated_by, found.task_id) == ("bot", "eve", "t1")
        assert (found.created_at, found.updated_at) == (old, restored)
        assert found.placement.valid_from == restored

        assert await memory.memories.restore_memory(ALICE, "city", 1) == 5
        found = await current(memory)
        assert (found.value, found.metadata, found.memory_type) == ("Oslo", {"a": 1}, "episodic")
        assert (await journal_after(store))[-1] == ("memory", "city", "restore", 5, ALICE)

    async def test_what_was_never_there_cannot_be_restored(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.memories.add_memory(ALICE, "city", "Oslo")
        await memory.memories.delete_memory(ALICE, "city")

        for key, version in (("nothing", None), ("nothing", 1), ("city", 9), ("city", 2)):
            async with refused(store, MemoryNotFound, key):
                await memory.memories.restore_memory(ALICE, key, version)

    # -- as of

    async def test_what_held_at_a_moment_can_be_asked(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        start = clock.moment
        hour = timedelta(hours=1)
        await memory.memories.add_memory(ALICE, "city", "Oslo")
        clock.advance(3600)
        await memory.memories.update_memory(ALICE, "city", "Bergen")
        clock.advance(3600)
        await memory.memories.delete_memory(ALICE, "city")
        clock.advance(3600)
        await memory.memories.restore_memory(ALICE, "city", 1)

        async def held(moment: datetime) -> Any:
            found = await memory.memories.get_memory(ALICE, "city", as_of=moment)
            return found and found.value

        tick = timedelta(microseconds=1)
        assert await held(start - tick) is None
        assert await held(start) == "Oslo"
        assert await held(start + hour - tick) == "Oslo"
        assert await held(start + hour) == "Bergen"
        assert await held(start + 2 * hour) is None
        assert await held(start + 3 * hour - tick) is None
        assert await held(start + 3 * hour) == "Oslo"
        assert await held((start + 9 * hour).replace(tzinfo=None)) == "Oslo"

    async def test_a_validity_interval_ends_before_its_end(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        day = timedelta(days=1)
        start = clock.moment - 10 * day
        await memory.memories.add_memory(ALICE, "city", "Oslo", placement=Placement(valid_from=start))
        visit = Placement(valid_from=start + 2 * day, valid_to=start + 4 * day)
        await memory.memories.update_memory(ALICE, "city", "Paris", placement=visit)

        found = [await memory.memories.get_memory(ALICE, "city", as_of=start + n * day) for n in range(-1, 6)]

        assert [m and m.value for m in found] == [None, "Oslo", "Oslo", "Paris", "Paris", "Oslo", "Oslo"]
        assert (await current(memory)).value == "Paris"
        await memory.memories.update_memory(ALICE, "city", "Rome")
        assert (await current(memory)).placement == Placement(valid_from=clock.moment)

    # -- erasing

    async def test_purging_erases_every_version_and_gives_a_receipt(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.memories.add_memory(ALICE, "city", "a secret")
        await memory.memories.update_memory(ALICE, "city", ["another secret"])
        await memory.memories.delete_memory(ALICE, "city")
        await memory.memories.add_memory(ALICE, "country", "kept")
        erased = clock.advance()

        receipt = await memory.memories.purge_memory(ALICE, "city", "eve", "t1")

        assert (receipt.namespace, receipt.key, receipt.versions) == (ALICE, "city", 3)
        assert (receipt.purged_by, receipt.purged_at, receipt.scrubbed) == ("eve", erased, True)
        text = '"a secret"\n["another secret"]\n["another secret"]'
        assert receipt.digest == hashlib.sha256(text.encode()).hexdigest()
        assert await memory.memories.get_memory_history(ALICE, "city") == []
        assert await peek(store, "SELECT key FROM memory_entries WHERE namespace <> ''") == [("country",)]
        for table in ("memory_entries", "journal"):
            assert "secret" not in str(await peek(store, f"SELECT * FROM {table}"))
        [change] = (await memory.audit(operation="purge")).items
        assert (change.position, change.actor, change.task_id) == (receipt.position, "eve", "t1")
        assert change.payload == {"versions": 3, "digest": receipt.digest}

    async def test_a_purged_key_begins_anew_and_cannot_be_purged_twice(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.memories.add_memory(ALICE, "city", "Oslo")
        await memory.memories.purge_memory(ALICE, "city")

        async with refused(store, MemoryNotFound, "city"):
            await memory.memories.purge_memory(ALICE, "city")
        async with refused(store, MemoryNotFound, "city"):
            await memory.memories.restore_memory(ALICE, "city")
        await memory.memories.add_memory(ALICE, "city", "Bergen")
        assert (await current(memory)).version == 1
