"""The change feed: a follower sees every change as it is committed, and a consumer handles each exactly once.

Everything happens in a database in memory, so nothing is left behind.
"""

import asyncio
from collections.abc import Sequence

import mnemon
from mnemon import Query, Transaction

ORDERS = 5
CREATE = Query("create_tally", "CREATE TABLE IF NOT EXISTS tally (operation TEXT PRIMARY KEY, number INTEGER NOT NULL)")
COUNT = Query(
    "count_operation",
    "INSERT INTO tally (operation, number) VALUES (:operation, 1) "
    "ON CONFLICT (operation) DO UPDATE SET number = tally.number + 1",
)
READ = Query("read_tally", "SELECT operation, number FROM tally ORDER BY operation")


async def main() -> None:
    async with mnemon.open("sqlite://") as memory:
        follower = asyncio.create_task(follow(memory))
        await write(memory)
        await follower
        await consume(memory)


async def write(memory: mnemon.HybridMemoryService) -> None:
    for number in range(1, ORDERS + 1):
        await memory.memories.add_memory("app:shop:orders", f"order-{number}", {"total": 10 * number})
        await asyncio.sleep(0.01)
    await memory.memories.update_memory("app:shop:orders", "order-1", {"total": 99})


async def follow(memory: mnemon.HybridMemoryService) -> None:
    """Tail the journal until the update comes; a program that resumes would pass the last position it saw."""
    print("A follower, while the writer writes:")
    async for change in memory.changes(after=0, follow=True, namespace="app:shop"):
        print(f"  {change.position}: {change.operation} {change.entity_id}, version {change.version}")
        if change.operation == "update":
            return


async def consume(memory: mnemon.HybridMemoryService) -> None:
    """Count operations in a table of our own; the consumer's position moves in the same transaction."""
    print("A consumer that fails in the middle of its first batch:")
    worker = memory.consumer("tally", batch=4)
    try:
        await worker.process(count_and_fail)
    except ConnectionResetError as error:
        print(f"  {error}: nothing of the batch was kept, it stands at {(await worker.status()).position}")
    while handled := await worker.process(count):
        print(f"  handled {handled} changes, it stands at {(await worker.status()).position}")


async def count(tx: Transaction, changes: Sequence[mnemon.Change]) -> None:
    await tx.execute(CREATE, {})
    await tx.execute_many(COUNT, [{"operation": change.operation} for change in changes])
    print(f"  counted so far: {dict(await tx.fetch_all(READ, {}))}")


async def count_and_fail(tx: Transaction, changes: Sequence[mnemon.Change]) -> None:
    await count(tx, changes)
    raise ConnectionResetError("the worker was cut off")


if __name__ == "__main__":
    asyncio.run(main())
