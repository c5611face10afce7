"""Episodes, each in a namespace."""

from typing import Any

from mnemon import HybridMemoryService
from tests.access.world import Method, everything

HERS, HIS = "user:alice", "user:bob"


def storing(door: str) -> Method:
    """The method of this name, which is the same for both doors."""

    async def store(memory: HybridMemoryService, **told: Any) -> Any:
        service, _, name = door.rpartition(".")
        return await getattr(getattr(memory, service) if service else memory, name)(["new"], **told)

    return Method(
        "write",
        lambda m: store(m, session_id="alice-session"),
        [
            lambda m: store(m, session_id="bob-session"),
            lambda m: store(m, namespace=HIS),
            lambda m: store(m, namespace=HERS, session_id="bob-session"),
            lambda m: store(m, namespace=HIS, session_id="alice-session"),
        ],
    )


METHODS: dict[str, Method] = {
    **{door: storing(door) for door in ("store_episode", "episodes.store")},
    "episodes.get": Method("read", lambda m: one(m, HERS, "get"), [lambda m: one(m, HIS, "get")]),
    "episodes.list": Method(
        "read",
        lambda m: m.episodes.list(),
        [
            lambda m: m.episodes.list(),
            lambda m: m.episodes.list(namespace="user"),
            lambda m: m.episodes.list(namespace=HIS),
            lambda m: m.episodes.list(session_id="bob-session"),
            lambda m: m.episodes.list(status="pending"),
            lambda m: list_from(m),
        ],
    ),
    "episodes.counts": Method(
        "read", lambda m: m.episodes.counts(), [lambda m: m.episodes.counts(HIS), lambda m: m.episodes.counts("user")]
    ),
    "episodes.retry": Method(
        "write",
        lambda m: m.episodes.retry(),
        [lambda m: m.episodes.retry(), lambda m: m.episodes.retry(namespace=HIS), lambda m: one(m, HIS, "retry")],
    ),
    "episodes.delete": Method("write", lambda m: one(m, HERS, "delete"), [lambda m: one(m, HIS, "delete")]),
    "episodes.erase": Method(
        "admin",
        lambda m: m.episodes.erase(HERS),
        [lambda m: m.episodes.erase(HIS), lambda m: m.episodes.erase(f"{HIS}:work")],
    ),
}


async def settle(memory: HybridMemoryService, user: str, said: str) -> None:
    """Give a user episodes, of which one is in a session."""
    for where in ({"session_id": f"{user}-session"}, {"namespace": f"user:{user}:work"}):
        await memory.store_episode([said], title=said, participants=[user], outcome=said, actor=user, **where)


async def one(memory: HybridMemoryService, namespace: str, method: str) -> Any:
    """Call a method with the id of an episode of the namespace, whoever may know it."""
    newest = (await everything(memory).episodes.list(namespace=namespace, limit=1))[0]
    return await getattr(memory.episodes, method)(newest.id)


async def list_from(memory: HybridMemoryService) -> Any:
    page = await everything(memory).episodes.list(limit=1)
    return await memory.episodes.list(cursor=page.next_cursor)
