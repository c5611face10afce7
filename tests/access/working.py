"""The working memory of sessions."""

from mnemon import DrainedBatch, HybridMemoryService
from mnemon.clock import moment
from tests.access.world import Method, first

METHODS: dict[str, Method] = {
    "working.append": Method(
        "write",
        lambda m: m.working.append("alice-session", ["new"]),
        [lambda m: m.working.append("bob-session", ["new"])],
    ),
    "working.recent": Method(
        "read", lambda m: m.working.recent("alice-session"), [lambda m: m.working.recent("bob-session", budget=99)]
    ),
    "working.buffers": Method(
        "read", lambda m: m.working.buffers("alice-session"), [lambda m: m.working.buffers("bob-session")]
    ),
    "working.drain": Method(
        "write",
        lambda m: m.working.drain("alice-session", limit=1),
        [lambda m: m.working.drain("bob-session")],
    ),
    "working.acknowledge": Method(
        "write",
        lambda m: m.working.acknowledge(forged("alice-session")),
        [lambda m: m.working.acknowledge(forged("bob-session"))],
    ),
    "working.release": Method(
        "write",
        lambda m: m.working.release(forged("alice-session")),
        [lambda m: m.working.release(forged("bob-session"))],
    ),
    "working.get": Method(
        "read", lambda m: m.working.get("alice-session", "pad"), [lambda m: m.working.get("bob-session", "pad")]
    ),
    "working.set": Method(
        "write",
        lambda m: m.working.set("alice-session", "pad", 2),
        [
            lambda m: m.working.set("bob-session", "pad", 2),
            lambda m: m.working.set("bob-session", "new", 2, expected_version=0),
        ],
    ),
    "working.delete": Method(
        "write",
        lambda m: m.working.delete("alice-session", "spare"),
        [lambda m: m.working.delete("bob-session", "spare")],
    ),
    "working.scratchpads": Method(
        "read", lambda m: m.working.scratchpads("alice-session"), [lambda m: m.working.scratchpads("bob-session")]
    ),
    "working.follow": Method(
        "read",
        lambda m: first(m.working.follow("alice-session", after=0)),
        [lambda m: first(m.working.follow("bob-session", after=0))],
    ),
    "working.prune": Method("root", lambda m: m.working.prune(), [lambda m: m.working.prune()]),
}


async def settle(memory: HybridMemoryService, user: str, said: str) -> None:
    """Give a user's session items and scratchpads."""
    await memory.working.append(f"{user}-session", [said, said, said], actor=user)
    for name in ("pad", "spare"):
        await memory.working.set(f"{user}-session", name, said, actor=user)


def forged(session_id: str) -> DrainedBatch:
    return DrainedBatch(session_id, "conversation", "guessed", (), moment(0))
