"""Making one of memories, through each of the doors to it."""

from typing import Any

from mnemon import HybridMemoryService
from tests.access.world import Method, everything

HERS, HIS = "user:alice:homes", "user:bob:homes"


def consolidating(door: str) -> Method:
    """The method of this name, which is the same everywhere; a dry run needs no more than `read`."""

    async def consolidate(memory: HybridMemoryService, *args: Any) -> Any:
        service, _, name = door.rpartition(".")
        return await getattr(getattr(memory, service) if service else memory, name)(*args)

    return Method(
        "write",
        lambda m: consolidate(m, HERS, "merge"),
        [
            lambda m: consolidate(m, HIS, "latest_wins"),
            lambda m: consolidate(m, HIS, "review"),
            lambda m: consolidate(m, HIS, "merge", True),
            lambda m: consolidate(m, "user:bob"),
            lambda m: consolidate(m, "session:bob-session", "merge", True),
            lambda m: consolidate(m, "user", "merge"),
            lambda m: consolidate(m, "", "highest_trust"),
            lambda m: consolidate(m, "", "merge", True),
        ],
    )


METHODS: dict[str, Method] = {
    "consolidation.reviews": Method(
        "read",
        lambda m: m.consolidation.reviews(),
        [
            lambda m: m.consolidation.reviews(None),
            lambda m: m.consolidation.reviews(namespace_prefix="user"),
            lambda m: m.consolidation.reviews(namespace_prefix="user:bob"),
            lambda m: reviews_from(m),
        ],
    ),
    "consolidation.flow": Method("root", lambda m: m.consolidation.flow(rounds=1), [lambda m: m.consolidation.flow()]),
    "consolidation.decide": Method(
        "write",
        lambda m: decide(m, HERS, "second"),
        [
            lambda m: decide(m, HIS, "first"),
            lambda m: decide(m, HIS, "both"),
            lambda m: decide(m, HIS, "merge", "Bob is gone."),
        ],
    ),
    **{
        door: consolidating(door)
        for door in ("consolidate", "consolidation.consolidate", "memories.consolidate_memories")
    },
}


async def reviews_from(memory: HybridMemoryService) -> Any:
    page = await everything(memory).consolidation.reviews(limit=1)
    return await memory.consolidation.reviews(cursor=page.next_cursor)


async def decide(memory: HybridMemoryService, namespace: str, choice: str, value: Any = None) -> Any:
    [review] = await everything(memory).consolidation.reviews(namespace_prefix=namespace)
    return await memory.consolidation.decide(review.id, choice, value)
