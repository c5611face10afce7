"""The files of sessions."""

from typing import Any

from mnemon import HybridMemoryService
from tests.access.world import Method, everything

METHODS: dict[str, Method] = {
    "artifacts.save": Method(
        "write",
        lambda m: m.artifacts.save("alice-session", "new.txt", "new"),
        [
            lambda m: m.artifacts.save("bob-session", "new.txt", "new"),
            lambda m: m.artifacts.save("bob-session", "bob.txt", "new"),
        ],
    ),
    "artifacts.get": Method(
        "read",
        lambda m: m.artifacts.get("alice-session", "alice.txt"),
        [
            lambda m: m.artifacts.get("bob-session", "bob.txt"),
            lambda m: m.artifacts.get("bob-session", "bob.txt", 1),
        ],
    ),
    "artifacts.list": Method(
        "read",
        lambda m: m.artifacts.list("alice-session"),
        [
            lambda m: m.artifacts.list("bob-session"),
            lambda m: m.artifacts.list("bob-session", prefix="bob"),
            lambda m: list_from(m),
        ],
    ),
    "artifacts.recent": Method(
        "read", lambda m: m.artifacts.recent("alice-session"), [lambda m: m.artifacts.recent("bob-session", 100)]
    ),
    "artifacts.versions": Method(
        "read",
        lambda m: m.artifacts.versions("alice-session", "alice.txt"),
        [
            lambda m: m.artifacts.versions("bob-session", "bob.txt"),
            lambda m: m.artifacts.versions("bob-session", "bob-gone.txt", deleted=True),
        ],
    ),
    "artifacts.resolve": Method(
        "read", lambda m: resolve(m, "alice"), [lambda m: resolve(m, "bob"), lambda m: resolve(m, "bob", 1)]
    ),
    "artifacts.manifest": Method(
        "read", lambda m: m.artifacts.manifest("alice-session"), [lambda m: m.artifacts.manifest("bob-session")]
    ),
    "artifacts.open": Method("read", lambda m: stream(m, "alice"), [lambda m: stream(m, "bob")]),
    "artifacts.read": Method(
        "read",
        lambda m: m.artifacts.read("alice-session", "alice.txt"),
        [
            lambda m: m.artifacts.read("bob-session", "bob.txt"),
            lambda m: m.artifacts.read("bob-session", "bob.txt", 1),
        ],
    ),
    "artifacts.delete": Method(
        "write",
        lambda m: m.artifacts.delete("alice-session", "alice.txt", 1),
        [
            lambda m: m.artifacts.delete("bob-session", "bob.txt"),
            lambda m: m.artifacts.delete("bob-session", "bob.txt", 1),
        ],
    ),
    "artifacts.restore": Method(
        "write",
        lambda m: m.artifacts.restore("alice-session", "alice-gone.txt"),
        [
            lambda m: m.artifacts.restore("bob-session", "bob-gone.txt"),
            lambda m: m.artifacts.restore("bob-session", "bob-gone.txt", 1),
        ],
    ),
    "artifacts.rebuild": Method(
        "write",
        lambda m: m.artifacts.rebuild("alice-session"),
        [lambda m: m.artifacts.rebuild(), lambda m: m.artifacts.rebuild("bob-session")],
    ),
    "artifacts.verify": Method(
        "root",
        lambda m: m.artifacts.verify(),
        [lambda m: m.artifacts.verify(), lambda m: m.artifacts.verify(deep=False)],
    ),
    "artifacts.cleanup": Method(
        "root",
        lambda m: m.artifacts.cleanup(),
        [lambda m: m.artifacts.cleanup(), lambda m: m.artifacts.cleanup(dry_run=True)],
    ),
}


async def list_from(memory: HybridMemoryService) -> Any:
    """Go on from a cursor that an all-seeing handle got among Bob's."""
    page = await everything(memory).artifacts.list("bob-session", limit=1)
    return await memory.artifacts.list("bob-session", cursor=page.next_cursor)


async def resolve(memory: HybridMemoryService, user: str, version: int | None = None) -> Any:
    saved = await everything(memory).artifacts.get(f"{user}-session", f"{user}.txt", version)
    assert saved is not None
    return await memory.artifacts.resolve(saved.url)


async def stream(memory: HybridMemoryService, user: str) -> bytes:
    async with memory.artifacts.open(f"{user}-session", f"{user}.txt") as content:
        return await content.read()
