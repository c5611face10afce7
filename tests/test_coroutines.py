"""A unit of work that waits for anything but its transaction is refused, not left hanging."""

import asyncio

import pytest

import mnemon
from mnemon import Query, Transaction
from mnemon.coroutines import complete


async def add(left: int, right: int) -> int:
    return left + right


def test_what_never_waits_is_run_to_its_end() -> None:
    assert complete(add(1, 2)) == 3


def test_what_waits_is_refused() -> None:
    with pytest.raises(RuntimeError, match="only its transaction"):
        complete(asyncio.sleep(0))


async def test_a_handler_that_waits_for_something_else_leaves_nothing_behind() -> None:
    async with mnemon.open("sqlite://") as memory:
        await memory.sessions.create_session("s1", "app", "alice")
        consumer = memory.consumer("sleepy")

        async def sleepy(tx: Transaction, changes: object) -> None:
            await tx.execute(Query("rename", "UPDATE sessions SET user_id = :name"), {"name": "bob"})
            await asyncio.sleep(0)

        with pytest.raises(RuntimeError, match="only its transaction"):
            await consumer.process(sleepy)
        session = await memory.sessions.get_session("s1")
        assert session is not None
        assert (session.user_id, (await consumer.status()).position) == ("alice", 0)
