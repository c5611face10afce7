"""Removing, archiving and restoring what the policies say."""

from typing import Any

from mnemon import HybridMemoryService, RetentionPolicy
from mnemon.testing.handles import with_settings
from tests.access.world import Method, everything

HERS, HIS = "user:alice:attic", "user:bob:attic"

METHODS: dict[str, Method] = {
    "retention.plan": Method(
        "read",
        lambda m: m.retention.plan(HERS),
        [lambda m: m.retention.plan(HIS), lambda m: m.retention.plan("user"), lambda m: m.retention.plan()],
    ),
    "retention.apply": Method(
        "admin",
        lambda m: m.retention.apply(HERS),
        [
            lambda m: m.retention.apply(HIS),
            lambda m: m.retention.apply(HIS, True),
            lambda m: m.retention.apply("user"),
            lambda m: m.retention.apply(),
        ],
    ),
    "retention.apply_if_due": Method(
        "root", lambda m: m.retention.apply_if_due(), [lambda m: m.retention.apply_if_due()]
    ),
    "retention.archives": Method(
        "read",
        lambda m: m.retention.archives(),
        [lambda m: m.retention.archives(HIS), lambda m: m.retention.archives("user")],
    ),
    "retention.restore": Method("admin", lambda m: restore(m, HERS), [lambda m: restore(m, HIS)]),
    "retention.discard": Method("admin", lambda m: discard(m, HERS), [lambda m: discard(m, HIS)]),
    "retention.growth": Method("root", lambda m: m.retention.growth(), [lambda m: m.retention.growth()]),
    "retention.prune": Method("root", lambda m: m.retention.prune(), [lambda m: m.retention.prune()]),
}


async def settle(memory: HybridMemoryService, user: str, said: str) -> None:
    """Something that a user remembered is in an archive."""
    namespace = f"user:{user}:attic"
    await memory.remember(said, namespace=namespace, key="old")
    policy = RetentionPolicy(name="none", namespace=namespace, max_size=0)
    await with_settings(memory, retention=(policy,)).retention.apply(namespace)


async def archive_in(memory: HybridMemoryService, namespace: str) -> int:
    [archive] = await everything(memory).retention.archives(namespace)
    return archive.id


async def restore(memory: HybridMemoryService, namespace: str) -> Any:
    return await memory.retention.restore(await archive_in(memory, namespace))


async def discard(memory: HybridMemoryService, namespace: str) -> Any:
    return await memory.retention.discard(await archive_in(memory, namespace))
