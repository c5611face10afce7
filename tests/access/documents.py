"""Documents, whose chunks are memories."""

from typing import Any

from mnemon import HybridMemoryService
from tests.access.world import Method, desk, everything, first

HERS, HIS = "user:alice:docs", "user:bob:docs"

METHODS: dict[str, Method] = {
    "documents.add": Method(
        "write",
        lambda m: m.documents.add("alice-new", namespace=HERS, content="# New\n"),
        [
            lambda m: m.documents.add("x", namespace=HIS, content="# New\n"),
            lambda m: m.documents.add("bob-text", namespace=HIS, content="# New\n"),
            lambda m: m.documents.add(desk(m) / "alice" / "alice.md", namespace=HIS),
        ],
    ),
    "documents.add_folder": Method(
        "write",
        lambda m: m.documents.add_folder(desk(m) / "alice", namespace=HERS),
        [
            lambda m: m.documents.add_folder(desk(m) / "alice", namespace=HIS),
            lambda m: m.documents.add_folder(desk(m) / "bob", namespace=HIS, root=desk(m) / "bob"),
        ],
    ),
    "documents.watch": Method(
        "write",
        lambda m: first(m.documents.watch(desk(m) / "alice", namespace=HERS)),
        [lambda m: first(m.documents.watch(desk(m) / "alice", namespace=HIS))],
    ),
    "documents.get": Method(
        "read",
        lambda m: m.documents.get(HERS, "alice-text"),
        [lambda m: m.documents.get(HIS, "bob-text"), lambda m: m.documents.get(HIS, "bob.md")],
    ),
    "documents.list": Method(
        "read",
        lambda m: m.documents.list(),
        [
            lambda m: m.documents.list(),
            lambda m: m.documents.list("user", recent=True),
            lambda m: m.documents.list("user:bob"),
            lambda m: m.documents.list(status="failed"),
            lambda m: m.documents.list(document_type="markdown"),
            lambda m: list_from(m, recent=False),
            lambda m: list_from(m, recent=True),
        ],
    ),
    "documents.chunks": Method(
        "read", lambda m: m.documents.chunks(HERS, "alice-text"), [lambda m: m.documents.chunks(HIS, "bob-text")]
    ),
    "documents.remove": Method(
        "write", lambda m: m.documents.remove(HERS, "alice-spare"), [lambda m: m.documents.remove(HIS, "bob-spare")]
    ),
    "documents.retry": Method(
        "write",
        lambda m: m.documents.retry("user:alice"),
        [
            lambda m: m.documents.retry(),
            lambda m: m.documents.retry("user", stale=True),
            lambda m: m.documents.retry("user:bob", stale=True),
        ],
    ),
    "documents.check": Method(
        "write",
        lambda m: m.documents.check("user:alice"),
        [
            lambda m: m.documents.check(),
            lambda m: m.documents.check("user"),
            lambda m: m.documents.check("user:bob"),
        ],
    ),
    "documents.mark_stale": Method(
        "write",
        lambda m: m.documents.mark_stale(HERS, "alice-text"),
        [lambda m: m.documents.mark_stale(HIS, "bob-text")],
    ),
}


async def list_from(memory: HybridMemoryService, *, recent: bool) -> Any:
    page = await everything(memory).documents.list("user:bob", limit=1, recent=recent)
    return await memory.documents.list(cursor=page.next_cursor, recent=recent)
