"""The contract of `RetentionService`: policies are kept, by themselves too, and growth is measured."""

import pytest

from mnemon.clock import micros
from mnemon.hybrid import HybridMemoryService
from mnemon.model import MemoryType, RetentionPolicy
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.handles import with_settings
from mnemon.testing.retention_archives import ANN, DAY, RetentionArchiveSuite, ruled, say
from mnemon.testing.suite import journal_after, last_position, peek, plant, unchanged


class RetentionSuite(RetentionArchiveSuite):
    """Any backend must pass; override the fixture `memory`, opened with contents in `memory://`."""

    # -- planning

    async def test_episodes_are_kept_for_ninety_days(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await say(memory, "fact", "The sky is blue.")
        await say(memory, "episode", "We talked about the sky.", memory_type=MemoryType.EPISODIC)
        clock.advance(90 * DAY)
        assert (await memory.retention.plan()).actions == ()
        clock.advance(1)
        plan = await memory.retention.plan()
        [action] = plan.actions
        assert (action.namespace, action.key, action.policy, action.reason) == (ANN, "episode", "episodes", "age")
        assert (plan.is_dry_run, plan.at, plan.namespace, plan.archives) == (True, clock.moment, "", ())
        assert {use.policy: (use.memories, use.versions) for use in plan.policies} == {"": (1, 1), "episodes": (1, 1)}

    async def test_a_dry_run_changes_nothing(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await say(memory, "k", "one", "two")
        clock.advance(DAY)
        old = ruled(memory, max_age_days=0.5)
        async with unchanged(store):
            plan = await old.retention.apply(dry_run=True)
        assert plan == await old.retention.plan()
        assert [action.status for action in plan.actions] == ["planned"]

    async def test_only_what_is_below_the_prefix_is_looked_at(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        for namespace in ("user:ann", "user:ann:x", "user:anna", "user:ann-2", "app:y"):
            await say(memory, "k", "words", namespace=namespace)
        clock.advance(DAY)
        old = ruled(memory, max_age_days=0)
        plan = await old.retention.plan("user:ann")
        assert [action.namespace for action in plan.actions] == ["user:ann", "user:ann:x"]
        assert len((await old.retention.plan()).actions) == 5

    async def test_there_may_be_more_than_a_page(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await memory.remember_many([{"text": f"word {n}", "key": f"k{n}"} for n in range(1203)], namespace=ANN)
        clock.advance(DAY)
        plan = await ruled(memory, max_age_days=0).retention.apply()
        assert (plan.applied, len(plan.archives)) == (1203, 25)
        assert not await memory.memories.search_memories(ANN)

    # -- by itself

    async def test_it_is_applied_when_it_is_time(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        daily = with_settings(
            memory, retention=(RetentionPolicy(name="rule", max_age_days=0.5),), retention_interval=DAY
        )
        await say(memory, "k", "one")
        clock.advance(DAY - 1)
        async with unchanged(store):
            assert await daily.retention.apply_if_due() is None
        clock.advance(1)
        position = await last_position(store)
        plan = await daily.retention.apply_if_due(actor="keeper")
        assert plan is not None
        assert (plan.applied, plan.growth is not None) == (1, True)
        *_, run = await journal_after(store, position)
        assert (run[0], run[2]) == ("retention", "apply")
        async with unchanged(store):
            assert await daily.retention.apply_if_due() is None
            clock.advance(DAY)
            assert await with_settings(memory, retention_interval=None).retention.apply_if_due() is None
        assert await daily.retention.apply_if_due() is not None
        assert await memory.consumers() == []

    async def test_one_process_applies_it_at_a_time(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        daily = with_settings(memory, retention_interval=DAY)
        await say(memory, "k", "one")
        until = micros(clock.advance(2 * DAY)) + 60_000_000
        await plant(  # a process that was killed, or is at it
            store,
            "INSERT INTO consumers (name, position, lease_owner, lease_until, updated_at) "
            f"VALUES ('retention', 0, 'other', {until}, 0)",
        )
        assert await daily.retention.apply_if_due() is None
        clock.advance(61)
        assert await daily.retention.apply_if_due() is not None
        assert await memory.consumers() == []

    # -- episodes

    async def test_old_episodes_go_and_come_back(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        kinds = ("done", "pending", "pinned", "other")
        made = {
            kind: await memory.store_episode(
                [f"We talked about the {kind}."], namespace=ANN if kind != "other" else "user:bob",
                metadata={"pinned": kind == "pinned"},
            )
            for kind in kinds
        }  # fmt: skip
        for kind in ("done", "pinned"):
            at = micros(clock.moment)
            await plant(
                store,
                f"UPDATE episodes SET status = 'consolidated', consolidated_at = {at} WHERE id = {made[kind].id}",
            )
        before = await memory.episodes.get(made["done"].id)
        clock.advance(90 * DAY + 1)
        plan = await memory.retention.apply(ANN)
        assert [(each.kind, each.key, each.status) for each in plan.actions] == [
            ("episode", str(made["done"].id), "applied")
        ]
        assert [(use.policy, use.episodes) for use in plan.policies] == [("episodes", 2)]
        assert await memory.episodes.get(made["done"].id) is None
        [archive] = await memory.retention.archives(ANN)
        assert (archive.kind, archive.memories) == ("episodes", 1)
        report = await memory.retention.restore(archive.id)
        assert (report.memories, report.skipped) == (1, ())
        assert await memory.episodes.get(made["done"].id) == before
        assert (await memory.retention.plan()).actions == ()
        assert (await memory.retention.restore(archive.id)).skipped == ((ANN, str(made["done"].id)),)
        clock.advance(90 * DAY + 1)
        assert len((await memory.retention.plan()).actions) == 1

    # -- uses

    async def test_uses_are_counted(self, memory: HybridMemoryService, store: Store, clock: ManualClock) -> None:
        await say(memory, "sky", "The sky is blue.")
        await say(memory, "sea", "The sea is deep.")
        for _ in range(3):
            await memory.recall("sky", namespaces=ANN, k=1)
        async with unchanged(store):
            await memory.recall("sea", namespaces=ANN, k=1)
        clock.advance(100 * DAY)
        await memory.recall("sky", namespaces=ANN, k=1)
        judging = ruled(memory, min_relevance=0.3)
        async with unchanged(store):
            plan = await judging.retention.plan()
        assert [action.key for action in plan.actions] == ["sea"]
        assert (await judging.retention.apply()).applied == 1
        assert await peek(store, "SELECT key, uses FROM memory_uses") == [("sky", 4)]

    async def test_counts_of_what_is_gone_are_pruned(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await say(memory, "sky", "The sky is blue.")
        await memory.recall("sky", namespaces=ANN, k=1)
        await memory.retention.apply()
        assert await peek(store, "SELECT key FROM memory_uses") == [("sky",)]
        await memory.forget(ANN, "sky", erase=True)
        await memory.retention.prune()
        assert await peek(store, "SELECT key FROM memory_uses") == []

    # -- growth

    async def test_growth_is_measured(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        first = await memory.retention.growth()
        assert (first.weekly, first.is_alarming, first.samples, first.limit) == (0, False, (), 1_000_000_000)
        assert first.now.size == sum(first.now.detail[name] for name in ("database", "contents")) > 0
        clock.advance(DAY)
        await plant(store, "UPDATE growth SET bytes = bytes - 2000")
        watchful = with_settings(memory, growth_alert=1000)
        position = await last_position(store)
        second = await watchful.retention.growth(actor="ann")
        assert second.weekly >= 2000
        assert (second.is_alarming, len(second.samples)) == (True, 1)
        assert [(row[0], row[2]) for row in await journal_after(store, position)] == [("growth", "alert")]
        assert "grew by" in caplog.text
        async with unchanged(store):
            silent = await memory.retention.growth(record=False)
        assert (silent.is_alarming, len(silent.samples)) == (False, 2)
