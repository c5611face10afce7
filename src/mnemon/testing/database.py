"""The contract of `ports.Store`: transactions, retries, snapshots, waking and closing."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mnemon.errors import IntegrityError, InvalidInput, StoreClosed, StoreError
from mnemon.ports import Raced, Row, Store, Transaction
from mnemon.sql import Query
from mnemon.testing.crowds import Crowd
from mnemon.testing.suite import Suite, peek

_INSERT = Query("insert", "INSERT INTO consumers (name, position, updated_at) VALUES (:name, :position, 0)")
_RETURNING = Query("returning", f"{_INSERT.text} RETURNING name, position")
_MOVE = Query("move", "UPDATE consumers SET position = position + :by WHERE name >= :name")
_GET = Query("get", "SELECT name, position FROM consumers WHERE name = :name")
_ALL = Query("all", "SELECT name, position FROM consumers ORDER BY name")
_WRONG = Query("wrong", "SELECT nothing FROM nowhere")


class Refusal(Exception):
    """What a unit of work of the caller's may raise."""


def adding(name: str, position: int = 0) -> Callable[[Transaction], Any]:
    """A unit of work that adds one row."""

    async def unit(tx: Transaction) -> str:
        await tx.execute(_INSERT, {"name": name, "position": position})
        return name

    return unit


async def rows(store: Store) -> list[Row]:
    return await store.fetch(_ALL, {})


class DatabaseSuite(Suite):
    """Any store must pass; override the fixture `memory`, or `store` alone."""

    # -- statements

    async def test_a_transaction_answers_in_the_shapes_of_the_port(self, store: Store) -> None:
        async def unit(tx: Transaction) -> None:
            assert await tx.fetch_one(_GET, {"name": "a"}) is None
            assert await tx.fetch_all(_ALL, {}) == []
            assert await tx.execute(_INSERT, {"name": "a", "position": 1}) == 1
            await tx.execute_many(_INSERT, [{"name": "c", "position": 3}, {"name": "b", "position": 2}])
            given = [{"name": "z", "position": 9}, {"name": "y", "position": 8}]
            assert await tx.fetch_each(_RETURNING, given) == [("z", 9), ("y", 8)]
            assert await tx.fetch_one(_GET, {"name": "c"}) == ("c", 3)
            assert await tx.fetch_all(_ALL, {}) == [("a", 1), ("b", 2), ("c", 3), ("y", 8), ("z", 9)]
            assert await tx.execute(_MOVE, {"name": "c", "by": 1}) == 3
            assert await tx.execute(_MOVE, {"name": "zz", "by": 1}) == 0

        await store.write(unit)

        assert await rows(store) == [("a", 1), ("b", 2), ("c", 4), ("y", 9), ("z", 10)]

    async def test_values_come_back_as_they_went_in(self, store: Store) -> None:
        name, position = "naïve 'quote' \"双\" \U0001f600 %s :x \\ {}", -(2**63)

        await store.write(adding(name, position))

        assert await store.fetch(_GET, {"name": name}) == [(name, position)]

    async def test_parameters_that_a_query_does_not_name_are_ignored(self, store: Store) -> None:
        await store.write(adding("a"))

        assert await store.fetch(_GET, {"name": "a", "other": 1}) == [("a", 0)]

    # -- writing

    async def test_a_write_returns_what_its_unit_returns_and_later_reads_see_it(self, store: Store) -> None:
        assert await store.write(adding("a", 7)) == "a"

        assert await store.fetch(_GET, {"name": "a"}) == [("a", 7)]
        assert await store.read(lambda tx: tx.fetch_one(_GET, {"name": "a"})) == ("a", 7)
        assert await store.read(lambda tx: tx.fetch_one(_GET, {"name": "a"}), long=True) == ("a", 7)

    async def test_a_unit_that_raises_leaves_nothing_and_its_error_comes_out(self, store: Store) -> None:
        async def unit(tx: Transaction) -> None:
            await tx.execute(_INSERT, {"name": "a", "position": 1})
            raise Refusal("changed my mind")

        with pytest.raises(Refusal, match="changed my mind"):
            await store.write(unit)

        assert await rows(store) == []
        await store.write(adding("b"))
        assert await rows(store) == [("b", 0)]

    async def test_a_broken_rule_of_the_database_is_an_integrity_error(self, store: Store) -> None:
        await store.write(adding("a", 1))

        with pytest.raises(IntegrityError):
            await store.write(adding("a", 2))

        assert await rows(store) == [("a", 1)]

    async def test_a_failing_statement_is_a_store_error_and_rolls_back(self, store: Store) -> None:
        async def unit(tx: Transaction) -> None:
            await tx.execute(_INSERT, {"name": "a", "position": 1})
            await tx.fetch_all(_WRONG, {})

        with pytest.raises(StoreError):
            await store.write(unit)
        with pytest.raises(StoreError):
            await store.fetch(_WRONG, {})
        with pytest.raises(StoreError):
            await store.read(lambda tx: tx.fetch_all(_WRONG, {}))

        assert await rows(store) == []

    async def test_a_parameter_that_the_database_cannot_carry_is_invalid_input(self, store: Store) -> None:
        for name, position in (("lone \ud800 surrogate", 0), ("beyond 64 bits", 2**63)):
            with pytest.raises(InvalidInput):
                await store.write(adding(name, position))
        with pytest.raises(InvalidInput):
            await store.fetch(_GET, {"name": "\udfff"})
        with pytest.raises(InvalidInput):
            await store.read(lambda tx: tx.fetch_one(_GET, {"name": "\udfff"}))

        assert await rows(store) == []

    async def test_a_unit_that_was_raced_runs_again_from_a_clean_start(self, store: Store) -> None:
        runs: list[int] = []

        async def unit(tx: Transaction) -> int:
            runs.append(1)
            await tx.execute(_INSERT, {"name": f"run {len(runs)}", "position": 0})
            if len(runs) < 4:
                raise Raced
            return len(runs)

        assert await store.write(unit) == 4

        assert await rows(store) == [("run 4", 0)]

    async def test_writers_that_come_together_are_each_whole_or_absent(self, store: Store, crowd: Crowd) -> None:
        def work(number: int) -> Callable[[], Any]:
            async def unit(tx: Transaction) -> None:
                await tx.execute(_INSERT, {"name": f"{number:02}", "position": number})
                if number % 3 == 0:
                    raise Refusal(number)

            async def attempt() -> bool:
                try:
                    await store.write(unit)
                except Refusal as refusal:
                    return refusal.args != (number,)
                return True

            return attempt

        done = await crowd.gather([work(number) for number in range(40)])

        assert done == [number % 3 != 0 for number in range(40)]
        assert await rows(store) == [(f"{number:02}", number) for number in range(40) if number % 3]

    async def test_racing_read_modify_write_units_lose_no_update(self, store: Store, crowd: Crowd) -> None:
        await store.write(adding("counter"))
        swap = Query("swap", "UPDATE consumers SET position = :new WHERE name = 'counter' AND position = :old")

        async def unit(tx: Transaction) -> None:
            row = await tx.fetch_one(_GET, {"name": "counter"})
            assert row is not None
            if not await tx.execute(swap, {"old": row[1], "new": row[1] + 1}):
                raise Raced

        await crowd.gather([lambda: store.write(unit)] * 30)

        assert await rows(store) == [("counter", 30)]

    async def test_units_that_take_rows_in_opposite_order_both_succeed(self, store: Store, crowd: Crowd) -> None:
        for name in ("a", "b"):
            await store.write(adding(name))
        bump = Query("bump", "UPDATE consumers SET position = position + 1 WHERE name = :name")

        def work(*names: str) -> Callable[[], Any]:
            async def unit(tx: Transaction) -> None:
                for name in names:
                    assert await tx.execute(bump, {"name": name}) == 1

            return lambda: store.write(unit)

        await crowd.gather([work("a", "b"), work("b", "a")] * 2)

        assert await rows(store) == [("a", 4), ("b", 4)]

    async def test_a_write_whose_caller_gave_up_is_whole_or_absent(self, store: Store, crowd: Crowd) -> None:
        async def unit(tx: Transaction) -> None:
            await tx.execute(_INSERT, {"name": "a", "position": 0})
            await tx.execute(_INSERT, {"name": "b", "position": 0})

        task = asyncio.create_task(store.write(unit))
        other = asyncio.create_task(store.write(adding("other")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        assert await other == "other"
        assert await rows(store) in ([("a", 0), ("b", 0), ("other", 0)], [("other", 0)])

    # -- reading

    @pytest.mark.parametrize("long", [False, True])
    async def test_a_read_sees_one_snapshot_while_others_write(self, store: Store, crowd: Crowd, long: bool) -> None:
        await store.write(adding("a"))
        await store.write(adding("b"))

        async def write() -> None:
            await store.write(lambda tx: tx.execute(_MOVE, {"name": "a", "by": 1}))

        async def compare(tx: Transaction) -> bool:
            first = await tx.fetch_one(_GET, {"name": "a"})
            second = await tx.fetch_one(_GET, {"name": "b"})
            assert first is not None
            assert second is not None
            return first[1] == second[1]

        async def read() -> None:
            assert await store.read(compare, long=long)

        await crowd.gather([work for _ in range(40) for work in (write, read)])

        assert await rows(store) == [("a", 40), ("b", 40)]

    async def test_an_error_inside_a_read_comes_out_and_the_store_goes_on(self, store: Store) -> None:
        async def unit(tx: Transaction) -> None:
            await tx.fetch_all(_ALL, {})
            raise Refusal

        for long in (False, True):
            with pytest.raises(Refusal):
                await store.read(unit, long=long)

        await store.write(adding("a"))
        assert await store.read(lambda tx: tx.fetch_all(_ALL, {})) == [("a", 0)]

    async def test_scrubbing_keeps_what_is_there(self, store: Store) -> None:
        await store.write(adding("a"))

        assert await store.scrub()

        assert await rows(store) == [("a", 0)]

    # -- waking

    async def test_waiting_ends_at_once_if_a_commit_came_after_the_ticket(self, store: Store) -> None:
        ticket = store.ticket()
        await store.write(adding("a"))

        began = time.monotonic()
        await store.wait(ticket, 30)

        assert time.monotonic() - began < 5

    async def test_waiting_ends_with_the_next_commit(self, store: Store, crowd: Crowd) -> None:
        ticket = store.ticket()

        began = time.monotonic()
        async with crowd.meanwhile(lambda: store.write(adding("a"))):
            await store.wait(ticket, 30)

        assert time.monotonic() - began < 10
        assert await rows(store) == [("a", 0)]

    async def test_waiting_without_a_commit_ends_with_the_timeout(self, store: Store) -> None:
        took: list[float] = []
        while len(took) < 5 and max(took, default=0) < 0.04:  # a false alarm now and then does no harm
            began = time.monotonic()
            await store.wait(store.ticket(), 0.05)
            took.append(time.monotonic() - began)

        assert 0.04 < max(took) < 5

    # -- the dialect

    async def test_what_is_committed_is_safe_to_tail(self, store: Store) -> None:
        append = (
            "INSERT INTO journal (at, entity, entity_id, operation, payload) "
            "VALUES (0, 'x', 'x', 'x', '{}') RETURNING position"
        )
        row = await store.write(lambda tx: tx.fetch_one(Query("append", append), {}))
        assert row is not None

        [(horizon,)] = await store.fetch(store.dialect.horizon, {})

        assert horizon >= row[0]

    # -- closing

    async def test_after_closing_every_call_says_so(self, store: Store) -> None:
        await store.write(adding("a"))
        await store.close()
        await store.close()

        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: store.write(adding("b")),
            lambda: store.read(lambda tx: tx.fetch_all(_ALL, {})),
            lambda: store.read(lambda tx: tx.fetch_all(_ALL, {}), long=True),
            lambda: store.fetch(_ALL, {}),
        ]
        for call in calls:
            with pytest.raises(StoreClosed):
                await call()

    async def test_writes_that_closing_overtakes_are_finished_or_refused(self, store: Store) -> None:
        works = [asyncio.create_task(store.write(adding(f"{number:02}"))) for number in range(20)]
        await asyncio.sleep(0)

        await store.close()

        outcomes = await asyncio.gather(*works, return_exceptions=True)
        for number, outcome in enumerate(outcomes):
            assert outcome == f"{number:02}" or isinstance(outcome, StoreClosed)

    async def test_constraints_of_the_schema_hold_behind_the_services_too(self, store: Store) -> None:
        wrong = {
            "a status": "INSERT INTO sessions (id, app_name, user_id, status, created_at, last_update_time) "
            "VALUES ('s', 'a', 'u', 'asleep', 0, 0)",
            "JSON": "INSERT INTO state (namespace, key, value, updated_at) VALUES ('app:a', 'k', '{no', 0)",
            "a session of an event": "INSERT INTO events (session_id, sequence, id, body, created_at) "
            "VALUES ('nobody', 1, 'e', '{}', 0)",
            "a memory type": "INSERT INTO memory_entries "
            "(namespace, key, value, memory_type, created_at, updated_at, valid_from) "
            "VALUES ('app:a', 'k', '1', 'vague', 0, 0, 0)",
        }
        for what, sql in wrong.items():
            query = Query(what, sql)
            with pytest.raises(IntegrityError):
                await store.write(lambda tx, query=query: tx.execute(query, {}))

        assert await peek(store, "SELECT COUNT(*) FROM sessions") == [(0,)]
