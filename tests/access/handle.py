"""The handle itself."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mnemon import MemoryDraft
from tests.access.world import SECRET, VECTOR, Method, collect

METHODS: dict[str, Method] = {
    "remember": Method(
        "write",
        lambda m: m.remember("a new thing", namespace="user:alice:new"),
        [
            lambda m: m.remember("x", namespace="user:bob:notes"),
            lambda m: m.remember([SECRET], namespace="user:bob:notes", key="bob-key"),
            lambda m: m.remember("x", namespace="session:bob-session"),
            lambda m: m.remember("x", namespace="app:helpdesk"),
        ],
    ),
    "remember_many": Method(
        "write",
        lambda m: m.remember_many(["one", "two"], namespace="user:alice:new"),
        [lambda m: m.remember_many(["one", MemoryDraft("two", "user:bob:notes")], namespace="user:alice:new")],
    ),
    "recall": Method(
        "read",
        lambda m: m.recall("hers", namespaces="user:alice"),
        [
            lambda m: m.recall("secret", namespaces=""),
            lambda m: m.recall("secret", namespaces="user", k=1000, explain=True),
            lambda m: m.recall("secret", namespaces="user:bob"),
            lambda m: m.recall("secret", namespaces=["user:alice", "user:bob:notes", "session", "app:helpdesk"]),
            lambda m: m.recall("what is in bob-key?", namespaces="user", where={"shared": 1}, min_trust=0.1),
            lambda m: m.recall("secret", namespaces="", as_of=datetime(2040, 1, 1, tzinfo=UTC)),
            lambda m: m.recall("secret", namespaces="", offset=2),
        ],
    ),
    "context": Method(
        "read",
        lambda m: m.context("hers", session_id="alice-session"),
        [
            lambda m: m.context("secret"),
            lambda m: m.context("secret", session_id="bob-session"),
            lambda m: m.context("secret", session_id="alice-session"),
            lambda m: m.context("secret", session_id="alice-session", namespaces=["user:bob"]),
            lambda m: m.context("secret", namespaces=["user", "session", "app"]),
        ],
    ),
    "fetch_recent_context": Method(
        "read",
        lambda m: m.fetch_recent_context("alice-session"),
        [
            lambda m: m.fetch_recent_context("bob-session"),
            lambda m: m.fetch_recent_context("alice-session", limit=100, budget=5000),
        ],
    ),
    "upsert_vector": Method(
        "write",
        lambda m: m.upsert_vector("u", VECTOR, namespace="user:alice:vectors"),
        [
            lambda m: m.upsert_vector("u", VECTOR),
            lambda m: m.upsert_vector("bob-key", VECTOR, namespace="user:bob:notes"),
        ],
    ),
    "forget": Method(
        "write",
        lambda m: m.forget("user:alice:new"),
        [
            lambda m: m.forget("user:bob"),
            lambda m: m.forget("user:bob:notes", "bob-key"),
            lambda m: m.forget("session:bob-session", erase=True),
            lambda m: m.forget("user:bob:work", erase=True),
            lambda m: m.forget("app:helpdesk", "app-key", erase=True),
        ],
    ),
    "settled": Method("none", lambda m: m.settled()),
    "reembed": Method("root", lambda m: m.reembed("custom"), [lambda m: m.reembed("custom")]),
    "changes": Method(
        "read",
        lambda m: collect(m.changes()),
        [
            lambda m: collect(m.changes()),
            lambda m: collect(m.changes(namespace="user:bob")),
            lambda m: collect(m.changes(namespace="session")),
            lambda m: collect(m.changes(session_id="bob-session")),
            lambda m: collect(m.changes(entity="state")),
        ],
    ),
    "audit": Method(
        "read",
        lambda m: m.audit(),
        [
            lambda m: m.audit(limit=1000),
            lambda m: m.audit(actor="bob"),
            lambda m: m.audit(entity="session", entity_id="bob-session"),
            lambda m: m.audit(namespace="user:bob"),
            lambda m: m.audit(session_id="bob-session"),
            lambda m: m.audit(task_id="bob-session-task"),
            lambda m: m.audit(since=datetime(2020, 1, 1, tzinfo=UTC), limit=1000),
        ],
    ),
    "position": Method("none", lambda m: m.position()),  # how much has changed, and nothing of what
    "close": Method("none", lambda m: m.close()),  # does nothing: the store is not the principal's
    "consumer": Method(
        "root", lambda m: awaited(lambda: m.consumer("x")), [lambda m: awaited(lambda: m.consumer("x"))]
    ),
    "consumers": Method("root", lambda m: m.consumers(), [lambda m: m.consumers()]),
    "seal": Method("root", lambda m: m.seal(), [lambda m: m.seal()]),
    "verify": Method("root", lambda m: m.verify(), [lambda m: m.verify()]),
}
NEVER = {"as_principal"}  # a handle that is bound to a principal cannot become another


async def awaited(call: Callable[[], Any]) -> Any:
    return call()
