"""Memories, their vectors, and the indexes that find them."""

from datetime import UTC, datetime
from typing import Any

from mnemon import HybridMemoryService, MemoryDraft, VectorDraft
from tests.access.world import SECRET, VECTOR, Method, everything

METHODS: dict[str, Method] = {
    "memories.add_memory": Method(
        "write",
        lambda m: m.memories.add_memory("user:alice:new", "k", 1),
        [
            lambda m: m.memories.add_memory("user:bob:notes", "x", 1),
            lambda m: m.memories.add_memory("user:bob:notes", "bob-gone", 1),
            lambda m: m.memories.add_memory("app:helpdesk", "x", 1),
            lambda m: m.memories.add_memory("user:alice2", "x", 1),
        ],
    ),
    "memories.get_memory": Method(
        "read",
        lambda m: m.memories.get_memory("user:alice:notes", "alice-key"),
        [
            lambda m: m.memories.get_memory("user:bob:notes", "bob-key"),
            lambda m: m.memories.get_memory("user:bob:notes", "bob-key", 1),
            lambda m: m.memories.get_memory("user:bob:notes", "bob-key", as_of=datetime(2040, 1, 1, tzinfo=UTC)),
            lambda m: m.memories.get_memory("session:bob-session", "bob-key"),
            lambda m: m.memories.get_memory("app:helpdesk", "app-key"),
        ],
    ),
    "memories.update_memory": Method(
        "write",
        lambda m: m.memories.update_memory("user:alice:notes", "alice-key", 1),
        [lambda m: m.memories.update_memory("user:bob:notes", "bob-key", 1)],
    ),
    "memories.delete_memory": Method(
        "write",
        lambda m: m.memories.delete_memory("user:alice:notes", "alice-key"),
        [lambda m: m.memories.delete_memory("user:bob:notes", "bob-key")],
    ),
    "memories.restore_memory": Method(
        "write",
        lambda m: m.memories.restore_memory("user:alice:notes", "alice-gone"),
        [
            lambda m: m.memories.restore_memory("user:bob:notes", "bob-gone"),
            lambda m: m.memories.restore_memory("user:bob:notes", "bob-key", 1),
        ],
    ),
    "memories.purge_memory": Method(
        "admin",
        lambda m: m.memories.purge_memory("user:alice:notes", "alice-spare"),
        [lambda m: m.memories.purge_memory("user:bob:notes", "bob-key")],
    ),
    "memories.search_memories": Method(
        "read",
        lambda m: m.memories.search_memories(),
        [
            lambda m: m.memories.search_memories(),
            lambda m: m.memories.search_memories("user"),
            lambda m: m.memories.search_memories("user:bob"),
            lambda m: m.memories.search_memories(created_by="bob"),
            lambda m: m.memories.search_memories(where={"shared": 1}),
            lambda m: m.memories.search_memories("user", order="recent"),
            lambda m: m.memories.search_memories("user", "semantic", order="recent", where={"m": SECRET}),
            lambda m: search_from(m),
        ],
    ),
    "memories.get_memory_history": Method(
        "read",
        lambda m: m.memories.get_memory_history("user:alice:notes", "alice-key"),
        [lambda m: m.memories.get_memory_history("user:bob:notes", "bob-key")],
    ),
    "memories.diff_memory": Method(
        "read",
        lambda m: m.memories.diff_memory("user:alice:notes", "alice-gone", 1, 2),
        [lambda m: m.memories.diff_memory("user:bob:notes", "bob-key", 1, 2)],
    ),
    "memories.get_thread": Method(
        "read",
        lambda m: m.memories.get_thread("thread"),
        [lambda m: m.memories.get_thread("thread"), lambda m: m.memories.get_thread("thread", first=1, last=1)],
    ),
    "memories.list_namespaces": Method(
        "read",
        lambda m: m.memories.list_namespaces(),
        [
            lambda m: m.memories.list_namespaces(),
            lambda m: m.memories.list_namespaces("user"),
            lambda m: m.memories.list_namespaces("user:bob"),
        ],
    ),
    "memories.put_memories": Method(
        "write",
        lambda m: m.memories.put_memories([MemoryDraft("x", "user:alice:new", "put")]),
        [
            lambda m: m.memories.put_memories([MemoryDraft("x", "user:bob:notes", "x")]),
            lambda m: m.memories.put_memories([MemoryDraft([SECRET], "user:bob:notes", "bob-key")]),
            lambda m: m.memories.put_memories([MemoryDraft(1, "user:alice:x"), MemoryDraft(1, "user:bob:notes")]),
        ],
    ),
    "memories.forget_memories": Method(
        "write",
        lambda m: m.memories.forget_memories("user:alice:new"),
        [
            lambda m: m.memories.forget_memories("user:bob"),
            lambda m: m.memories.forget_memories("user:bob:notes", "bob-key"),
            lambda m: m.memories.forget_memories("app:helpdesk", erase=True),
        ],
    ),
    "vectors.store": Method(
        "write",
        lambda m: m.vectors.store("v", VECTOR, namespace="user:alice:vectors"),
        [
            lambda m: m.vectors.store("v", VECTOR),
            lambda m: m.vectors.store("bob-key", VECTOR, namespace="user:bob:notes"),
        ],
    ),
    "vectors.store_many": Method(
        "write",
        lambda m: m.vectors.store_many([VectorDraft("w", VECTOR, namespace="user:alice:vectors")]),
        [
            lambda m: m.vectors.store_many(
                [VectorDraft("w", VECTOR, namespace=f"user:{user}:notes") for user in ("alice", "bob")]
            )
        ],
    ),
    "vectors.query": Method(
        "read",
        lambda m: m.vectors.query(VECTOR),
        [
            lambda m: m.vectors.query(VECTOR, 1000),
            lambda m: m.vectors.query(VECTOR, namespaces="user:bob"),
            lambda m: m.vectors.query(VECTOR, namespaces=["user:alice", "user:bob", "session", "app"]),
            lambda m: m.vectors.query(VECTOR, 1000, {"shared": 1}, min_trust=0.1, types=["semantic"]),
        ],
    ),
    "vectors.delete": Method(
        "write",
        lambda m: m.vectors.delete("v", namespace="user:alice:vectors"),
        [lambda m: m.vectors.delete("bob-key", namespace="user:bob:notes")],
    ),
    "vectors.describe": Method("root", lambda m: m.vectors.describe(), [lambda m: m.vectors.describe()]),
    "index.settled": Method("none", lambda m: m.index.settled()),  # how long it takes, and nothing of what
    "index.spaces": Method("root", lambda m: m.index.spaces(), [lambda m: m.index.spaces()]),
    "index.verify": Method(
        "root", lambda m: m.index.verify(mend=True), [lambda m: m.index.verify(), lambda m: m.index.verify("shelf")]
    ),
    "index.rebuild": Method("root", lambda m: m.index.rebuild("shelf"), [lambda m: m.index.rebuild()]),
    "index.reembed": Method("root", lambda m: m.index.reembed("custom"), [lambda m: m.index.reembed("custom")]),
    "index.drop_space": Method("root", lambda m: drop_old_space(m), [lambda m: drop_old_space(m)]),
}


async def search_from(memory: HybridMemoryService) -> Any:
    """Go on from a cursor that an all-seeing handle got among Bob's."""
    page = await everything(memory).memories.search_memories("user:bob", limit=1)
    return await memory.memories.search_memories("", cursor=page.next_cursor)


async def drop_old_space(memory: HybridMemoryService) -> Any:
    return await memory.index.drop_space((await everything(memory).index.spaces())[-1])
