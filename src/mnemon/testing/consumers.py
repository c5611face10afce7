"""The contract of a journal consumer: position, lease, exactly once inside, at least once outside."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemon.access import Access
from mnemon.consumers import Consumer
from mnemon.errors import InvalidIdentifier, InvalidInput, LeaseLost, NotFound
from mnemon.hybrid import HybridMemoryService
from mnemon.journal import Journal
from mnemon.model import Change
from mnemon.ports import Store, Transaction, Unit
from mnemon.sql import Query
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.faults import with_faults
from mnemon.testing.suite import Suite, peek, unchanged

_NOTE = Query("note", "INSERT INTO state (namespace, key, value, updated_at) VALUES ('app:copy', :key, :value, 0)")


async def copy_down(tx: Transaction, changes: Sequence[Change]) -> None:
    """A handler that writes each change to the database once, and fails if it is there already."""
    for change in changes:
        await tx.execute(_NOTE, {"key": f"{change.position:09}", "value": f'"{change.entity_id}"'})


async def copied(store: Store) -> list[str]:
    rows = await peek(store, "SELECT value FROM state WHERE namespace = 'app:copy' ORDER BY key")
    return [value.strip('"') for (value,) in rows]


async def make_changes(memory: HybridMemoryService, *keys: str) -> list[str]:
    for key in keys:
        await memory.memories.add_memory("user:alice", key, 1)
    return list(keys)


class ConsumerSuite(Suite):
    """Part of `JournalSuite`."""

    async def test_every_change_is_handled_once_and_in_order(self, memory: HybridMemoryService, store: Store) -> None:
        keys = await make_changes(memory, *"abcdefg")
        consumer = memory.consumer("copier", batch=3)

        assert [await consumer.process(copy_down) for _ in range(4)] == [3, 3, 1, 0]
        assert await copied(store) == keys

        keys += await make_changes(memory, "h")
        assert await memory.consumer("copier").process(copy_down) == 0  # the first worker has the lease
        assert await consumer.process(copy_down) == 1
        assert await copied(store) == keys

    async def test_a_handler_that_fails_moves_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        keys = await make_changes(memory, "a", "b")
        consumer = memory.consumer("copier")

        async def fail(tx: Transaction, changes: Sequence[Change]) -> None:
            await copy_down(tx, changes)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await consumer.process(fail)

        assert await copied(store) == []
        assert (await consumer.status()).position == 0
        assert await consumer.process(copy_down) == 2
        assert await copied(store) == keys

    async def test_one_worker_at_a_time_has_the_lease(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        keys = await make_changes(memory, "a", "b", "c")
        first, second = (memory.consumer("copier", lease=10, batch=1) for _ in range(2))

        assert await first.process(copy_down) == 1
        assert await second.process(copy_down) == 0
        clock.advance(10)
        assert await second.process(copy_down) == 0  # the lease runs until then, and was renewed
        clock.advance(0.001)
        assert await second.process(copy_down) == 1
        assert await first.process(copy_down) == 0
        await second.release()
        assert await first.process(copy_down) == 1

        assert await copied(store) == keys

    async def test_a_worker_keeps_its_lease_by_working(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await make_changes(memory, *"abcd")
        first, second = (memory.consumer("copier", lease=10, batch=1) for _ in range(2))

        for _ in range(4):
            assert await first.process(copy_down) == 1
            clock.advance(8)
            assert await second.process(copy_down) == 0

        status = await first.status()
        assert (status.lease_until - clock.moment).total_seconds() == 2

    async def test_a_worker_that_was_overtaken_does_nothing(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        keys = await make_changes(memory, "a", "b")
        slow_memory, faults = with_faults(memory)
        slow, quick = slow_memory.consumer("copier", lease=10), memory.consumer("copier", lease=10)

        async def overtake() -> None:
            clock.advance(11)
            assert await quick.process(copy_down) == 2

        faults.interleave("write", overtake, skip=1)  # after the lease was taken, before the batch is written

        with pytest.raises(LeaseLost, match="copier"):
            await slow.process(copy_down)
        assert await copied(store) == keys

    async def test_a_lease_that_ran_out_but_was_not_taken_still_holds(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        keys = await make_changes(memory, "a")
        slow, faults = with_faults(memory)

        async def dawdle() -> None:
            clock.advance(99)

        faults.interleave("write", dawdle, skip=1)

        assert await slow.consumer("copier", lease=10).process(copy_down) == 1
        assert await copied(store) == keys

    async def test_workers_that_come_together_repeat_and_skip_nothing(
        self, memory: HybridMemoryService, store: Store, crowd: Crowd
    ) -> None:
        keys = await make_changes(memory, *(f"k{number:02}" for number in range(30)))
        workers = [memory.consumer("copier", batch=2) for _ in range(4)]

        async def work(number: int) -> int:
            try:
                return await workers[number % 4].process(copy_down)
            except LeaseLost:  # somebody was quicker with this batch
                return 0

        handled = await crowd.gather([lambda n=n: work(n) for n in range(40)])
        while batch := sum([await worker.process(copy_down) for worker in workers]):
            handled.append(batch)

        assert sum(handled) == 30
        assert await copied(store) == keys

    async def test_outside_deliveries_are_repeated_until_they_succeed(self, memory: HybridMemoryService) -> None:
        keys = await make_changes(memory, "a", "b", "c")
        consumer = memory.consumer("sender", batch=2)
        delivered: list[str] = []

        async def deliver(changes: Sequence[Change]) -> None:
            delivered.extend(change.entity_id for change in changes)
            if len(delivered) == 2:
                raise ConnectionError

        with pytest.raises(ConnectionError):
            await consumer.deliver(deliver)
        assert [await consumer.deliver(deliver) for _ in range(3)] == [2, 1, 0]
        assert delivered == ["a", "b", *keys]

    async def test_a_delivery_that_took_too_long_does_not_move_the_position(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await make_changes(memory, "a")
        slow, quick = (memory.consumer("sender", lease=10) for _ in range(2))
        delivered: list[str] = []

        async def deliver(changes: Sequence[Change]) -> None:
            delivered.extend(change.entity_id for change in changes)

        async def dawdle(changes: Sequence[Change]) -> None:
            if delivered:
                return
            clock.advance(11)
            assert await quick.deliver(deliver) == 1

        with pytest.raises(LeaseLost):
            await slow.deliver(dawdle)
        assert await slow.deliver(deliver) == 0
        assert delivered == ["a"]

    async def test_a_delivery_that_arrives_late_leaves_nothing_old_outside(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await make_changes(memory, "a")
        slow, quick = (memory.consumer("sender", lease=10) for _ in range(2))
        outside: dict[str, Any] = {}

        async def deliver(changes: Sequence[Change]) -> None:
            for change in changes:
                found = await memory.memories.get_memory("user:alice", change.entity_id)
                assert found is not None
                outside[change.entity_id] = found.value

        async def dawdle(changes: Sequence[Change]) -> None:
            late = [await memory.memories.get_memory("user:alice", change.entity_id) for change in changes]
            if not outside:
                clock.advance(11)
                await memory.memories.update_memory("user:alice", "a", 2)
                assert await quick.deliver(deliver) == 2
            outside.update({found.key: found.value for found in late if found})

        with pytest.raises(LeaseLost):
            await slow.deliver(dawdle)
        assert outside == {"a": 2}

    async def test_a_delivery_that_failed_is_made_up_for_after_another_worker_took_over(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await make_changes(memory, "a")
        slow, quick = (memory.consumer("sender", lease=10) for _ in range(2))
        delivered: list[str] = []

        async def fail(changes: Sequence[Change]) -> None:
            raise ConnectionError

        async def deliver(changes: Sequence[Change]) -> None:
            delivered.extend(change.entity_id for change in changes)

        with pytest.raises(ConnectionError):
            await slow.deliver(fail)
        clock.advance(11)
        assert await quick.deliver(deliver) == 1
        assert await slow.has_work()
        with pytest.raises(ConnectionError):
            await slow.deliver(fail)
        assert await slow.deliver(deliver) == 0
        assert not await slow.has_work()
        assert delivered == ["a", "a"]

    async def test_a_worker_that_lost_the_lease_before_its_delivery_delivers_nothing(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await make_changes(memory, "a")
        slow_memory, faults = with_faults(memory)
        slow, quick = slow_memory.consumer("sender", lease=10), memory.consumer("sender", lease=10)

        async def deliver(changes: Sequence[Change]) -> None:
            pass

        async def never(changes: Sequence[Change]) -> None:
            raise AssertionError

        async def overtake() -> None:
            clock.advance(11)
            assert await quick.deliver(deliver) == 1

        faults.interleave("fetch", overtake, skip=2)  # after the journal's horizon and its rows were read

        with pytest.raises(LeaseLost):
            await slow.deliver(never)
        assert not await slow.has_work()  # nothing that it did has to be made up for

    async def test_a_consumer_can_be_rewound(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        keys = await make_changes(memory, *"abc")
        consumer = memory.consumer("sender")
        delivered: list[str] = []

        async def deliver(changes: Sequence[Change]) -> None:
            delivered.extend(change.entity_id for change in changes)

        await consumer.deliver(deliver)
        await consumer.rewind()
        await consumer.deliver(deliver)
        middle = (await memory.audit(entity_id="b")).items[0].position
        await consumer.rewind(middle)
        assert (await consumer.status()).position == middle
        await consumer.deliver(deliver)

        assert delivered == [*keys, *keys, "c"]
        for bad in (-1, -5):
            with pytest.raises(InvalidInput, match="position"):
                await consumer.rewind(bad)

    async def test_rewinding_takes_the_lease_from_a_worker_in_a_batch(self, memory: HybridMemoryService) -> None:
        await make_changes(memory, "a")
        consumer = memory.consumer("sender")

        async def rewound(changes: Sequence[Change]) -> None:
            await memory.consumer("sender").rewind()

        with pytest.raises(LeaseLost):
            await consumer.deliver(rewound)
        assert (await consumer.status()).position == 0

    async def test_a_consumer_can_begin_in_the_middle(self, memory: HybridMemoryService, store: Store) -> None:
        await make_changes(memory, "a")
        await memory.consumer("copier").rewind(await memory.position())
        keys = await make_changes(memory, "b")

        assert await memory.consumer("copier").process(copy_down) == 1
        assert await copied(store) == keys

    async def test_the_status_says_where_a_consumer_stands(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        first, second = memory.consumer("b", lease=10), memory.consumer("a")
        with pytest.raises(NotFound, match="'b'"):
            await first.status()
        assert await memory.consumers() == []
        await make_changes(memory, "x")

        await first.process(copy_down)
        status = await first.status()
        assert (status.name, status.position) == ("b", await memory.position())
        assert (status.lease_until - clock.moment).total_seconds() == 10
        assert status.updated_at == clock.moment
        assert status.lease_owner is not None
        await second.rewind(0)
        assert [found.name for found in await memory.consumers()] == ["a", "b"]
        await first.release()
        released = await first.status()
        assert (released.lease_owner, released.lease_until) == (None, datetime(1970, 1, 1, tzinfo=UTC))
        async with unchanged(store):
            await second.release()  # it never had the lease
            assert released == await first.status()

    async def test_a_running_consumer_handles_what_comes(
        self, memory: HybridMemoryService, store: Store, crowd: Crowd
    ) -> None:
        await make_changes(memory, "a")
        consumer = memory.consumer("copier", batch=1)

        async def until_b(tx: Transaction, changes: Sequence[Change]) -> None:
            if any(change.entity_id == "b" for change in changes):
                raise Enough
            await copy_down(tx, changes)

        async with crowd.meanwhile(lambda: make_changes(memory, "b")):
            with pytest.raises(Enough):
                await consumer.run(until_b)
        assert await copied(store) == ["a"]

    async def test_a_running_consumer_waits_for_the_lease(
        self, memory: HybridMemoryService, store: Store, crowd: Crowd
    ) -> None:
        await make_changes(memory, "a", "b")
        first, second = memory.consumer("copier", batch=1), memory.consumer("copier")
        await first.process(copy_down)

        async def stop(tx: Transaction, changes: Sequence[Change]) -> None:
            raise Enough([change.entity_id for change in changes])

        async with crowd.meanwhile(first.release):
            with pytest.raises(Enough, match="b"):
                await second.run(stop)
        assert await copied(store) == ["a"]

    async def test_work_is_prepared_outside_the_transaction_that_finishes_it(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        keys = await make_changes(memory, *"abc")
        consumer = memory.consumer("copier", batch=2)
        failing = True

        async def prepare(changes: Sequence[Change]) -> Unit[None]:
            if failing:
                raise ConnectionError
            await memory.memories.get_memory("user:alice", changes[0].entity_id)  # it may wait for anything

            return lambda tx: copy_down(tx, changes)

        with pytest.raises(ConnectionError):
            await consumer.prepare(prepare)
        assert (await consumer.status()).position == 0
        failing = False
        assert [await consumer.prepare(prepare) for _ in range(3)] == [2, 1, 0]
        assert await copied(store) == keys

    async def test_work_whose_preparation_took_too_long_is_left_to_others(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        keys = await make_changes(memory, "a")
        slow, quick = (memory.consumer("copier", lease=10) for _ in range(2))

        async def dawdle(changes: Sequence[Change]) -> Unit[None]:
            clock.advance(11)
            assert await quick.process(copy_down) == 1
            return lambda tx: copy_down(tx, changes)

        with pytest.raises(LeaseLost):
            await slow.prepare(dawdle)
        assert await copied(store) == keys

    async def test_a_consumer_follows_only_the_entities_that_it_asked_for(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        keys = await make_changes(memory, "a", "b")
        await memory.sessions.append_event("s1", {"text": "hi"})
        keys += await make_changes(memory, "c")
        await memory.tasks.create("job", task_id="t1")
        consumer = memory.consumer("copier", entities=["memory"], batch=2)

        assert [await consumer.process(copy_down) for _ in range(3)] == [2, 1, 0]
        assert await copied(store) == keys
        assert (await consumer.status()).position == await memory.position()  # past what comes after the last

        others = memory.consumer("others", entities=["session", "event", "task"])
        assert await others.process(copy_down) == 3
        assert sorted(set(await copied(store)) - set(keys)) == ["s1", "s1#1", "t1"]

    async def test_a_consumer_moves_past_what_it_does_not_follow_now_and_then(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await make_changes(memory, "a")
        consumer = memory.consumer("copier", entities=["memory"])
        await consumer.process(copy_down)
        reached = (await consumer.status()).position

        await memory.sessions.create_session("s1", "helpdesk", "alice")
        async with unchanged(store):
            assert not await consumer.has_work()  # not worth a write that wakes every follower
        assert await consumer.has_reached(await memory.position())
        clock.advance(5)
        assert await consumer.has_work()
        assert await consumer.process(copy_down) == 0
        assert (await consumer.status()).position == await memory.position() == reached + 1
        assert not await consumer.has_work()

        await memory.sessions.append_events("s1", [{"text": "hi"}] * 999)
        assert not await consumer.has_work()
        await memory.sessions.append_event("s1", {"text": "hi"})
        assert await consumer.has_work()  # so far behind that its position would say nothing
        assert await consumer.process(copy_down) == 0
        assert (await consumer.status()).position == await memory.position()
        assert await copied(store) == ["a"]

    async def test_one_can_ask_whether_a_consumer_has_come_far_enough(self, memory: HybridMemoryService) -> None:
        await make_changes(memory, "a")
        first = await memory.position()
        await make_changes(memory, "b")
        consumer = memory.consumer("sender", batch=1)

        async def deliver(changes: Sequence[Change]) -> None:
            pass

        assert await consumer.has_work()
        assert not await consumer.has_reached(first)
        await consumer.deliver(deliver)
        assert await consumer.has_reached(first)
        assert not await consumer.has_reached(await memory.position())
        await consumer.deliver(deliver)
        assert await consumer.has_reached(await memory.position())
        assert not await consumer.has_work()

    async def test_what_another_worker_is_at_is_no_work(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await make_changes(memory, "a", "b")
        first, second = (memory.consumer("copier", lease=10, batch=1) for _ in range(2))
        await first.process(copy_down)

        assert await first.has_work()
        assert not await second.has_work()
        clock.advance(11)
        assert await second.has_work()

    async def test_a_lease_need_not_be_kept_between_batches(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        journal = Journal(store, Access())
        first, second = (Consumer(store, journal, clock, "copier", batch=1, keep_lease=False) for _ in range(2))
        keys = await make_changes(memory, "a", "b", "c")

        async def fail(tx: Transaction, changes: Sequence[Change]) -> None:
            raise ConnectionError

        assert await first.process(copy_down) == 1
        assert await second.process(copy_down) == 1
        with pytest.raises(ConnectionError):
            await second.process(fail)
        assert await first.process(copy_down) == 1
        assert await first.process(copy_down) == 0
        assert (await first.status()).lease_owner is None
        assert await copied(store) == keys

    async def test_a_consumer_that_cannot_be_is_refused(self, memory: HybridMemoryService) -> None:
        strange: Any = 5
        for name in ("", "a\nb", "x" * 257, strange):
            with pytest.raises(InvalidIdentifier, match="name"):
                memory.consumer(name)
        refused: list[dict[str, Any]] = [{"lease": 0}, {"lease": -1}, {"batch": 0}]
        for options in refused:
            with pytest.raises(InvalidInput, match="above zero"):
                memory.consumer("copier", **options)
        with pytest.raises(InvalidInput, match="at least one"):
            memory.consumer("copier", entities=[])


class Enough(Exception):
    """Ends a consumer that would run for ever."""
