"""The file trees of agents."""

from typing import Any

from mnemon import FileDraft, HybridMemoryService
from tests.access.world import SECRET, Method, collect, desk, everything

HERS, HIS = "alice-workspace", "bob-workspace"

METHODS: dict[str, Method] = {
    "workspaces.create": Method(
        "write",
        lambda m: m.workspaces.create("alice-new", namespace="user:alice:work"),
        [
            lambda m: m.workspaces.create("x", namespace="user:bob:work"),
            lambda m: m.workspaces.create(HIS, namespace="user:alice:work"),
            lambda m: m.workspaces.create("x"),
        ],
    ),
    "workspaces.get": Method("read", lambda m: m.workspaces.get(HERS), [lambda m: m.workspaces.get(HIS)]),
    "workspaces.list": Method(
        "read",
        lambda m: m.workspaces.list(),
        [
            lambda m: m.workspaces.list(),
            lambda m: m.workspaces.list("user"),
            lambda m: m.workspaces.list("user:bob"),
            lambda m: list_from(m),
        ],
    ),
    "workspaces.update_metadata": Method(
        "write",
        lambda m: m.workspaces.update_metadata(HERS, {"m": 2}),
        [lambda m: m.workspaces.update_metadata(HIS, {"m": 2})],
    ),
    "workspaces.delete": Method(
        "admin", lambda m: m.workspaces.delete("alice-spare"), [lambda m: m.workspaces.delete("bob-spare")]
    ),
    "workspaces.clone": Method(
        "write",
        lambda m: m.workspaces.clone(HERS, "alice-clone", namespace="user:alice:work"),
        [
            lambda m: m.workspaces.clone(HIS, "x", namespace="user:alice:work"),
            lambda m: m.workspaces.clone(HIS, "x", at=1, namespace="user:alice:work"),
            lambda m: m.workspaces.clone(HERS, "x", namespace="user:bob:work"),
            lambda m: m.workspaces.clone(HERS, "bob-spare", namespace="user:alice:work"),
            lambda m: clone_at_his_snapshot(m),
        ],
    ),
    "workspaces.write": Method(
        "write",
        lambda m: m.workspaces.write(HERS, "new.txt", "new"),
        [
            lambda m: m.workspaces.write(HIS, "new.txt", "new"),
            lambda m: m.workspaces.write(HIS, "bob.txt", f"{SECRET} again"),
        ],
    ),
    "workspaces.write_many": Method(
        "write",
        lambda m: m.workspaces.write_many(HERS, {"one": "1", "two": "2"}),
        [
            lambda m: m.workspaces.write_many(HIS, {"one": "1", "bob.txt": "2"}),
            lambda m: m.workspaces.write_many(HIS, [FileDraft("bob.txt", "2")]),
        ],
    ),
    "workspaces.set_metadata": Method(
        "write",
        lambda m: m.workspaces.set_metadata(HERS, "alice.txt", {"n": 1}),
        [lambda m: m.workspaces.set_metadata(HIS, "bob.txt", {"n": 1}, is_executable=True)],
    ),
    "workspaces.remove": Method(
        "write",
        lambda m: m.workspaces.remove(HERS, "alice-spare.txt"),
        [lambda m: m.workspaces.remove(HIS, "bob.txt"), lambda m: m.workspaces.remove(HIS, "")],
    ),
    "workspaces.move": Method(
        "write",
        lambda m: m.workspaces.move(HERS, "src", "lib"),
        [
            lambda m: m.workspaces.move(HIS, "src", "lib"),
            lambda m: m.workspaces.move(HIS, "bob.txt", "bob-spare.txt", overwrite=True),
        ],
    ),
    "workspaces.stat": Method(
        "read",
        lambda m: m.workspaces.stat(HERS, "alice.txt"),
        [
            lambda m: m.workspaces.stat(HIS, "bob.txt"),
            lambda m: m.workspaces.stat(HIS, "bob.txt", at=1),
            lambda m: m.workspaces.stat(HIS, "bob.txt", version=1),
        ],
    ),
    "workspaces.read": Method(
        "read",
        lambda m: m.workspaces.read(HERS, "alice.txt"),
        [
            lambda m: m.workspaces.read(HIS, "bob.txt"),
            lambda m: m.workspaces.read(HIS, "bob.txt", at=1),
            lambda m: m.workspaces.read(HIS, "bob.txt", version=1),
        ],
    ),
    "workspaces.open": Method(
        "read",
        lambda m: collect(m.workspaces.open(HERS, "alice.txt")),
        [
            lambda m: collect(m.workspaces.open(HIS, "bob.txt")),
            lambda m: collect(m.workspaces.open(HIS, "bob.txt", version=1)),
        ],
    ),
    "workspaces.list_files": Method(
        "read",
        lambda m: m.workspaces.list_files(HERS),
        [
            lambda m: m.workspaces.list_files(HIS),
            lambda m: m.workspaces.list_files(HIS, "src", at=1),
            lambda m: list_files_from(m),
        ],
    ),
    "workspaces.history": Method(
        "read", lambda m: m.workspaces.history(HERS, "alice.txt"), [lambda m: m.workspaces.history(HIS, "bob.txt")]
    ),
    "workspaces.snapshot": Method(
        "write", lambda m: m.workspaces.snapshot(HERS, "now"), [lambda m: m.workspaces.snapshot(HIS, "now")]
    ),
    "workspaces.get_snapshot": Method(
        "read", lambda m: m.workspaces.get_snapshot(HERS, 1), [lambda m: m.workspaces.get_snapshot(HIS, 1)]
    ),
    "workspaces.log": Method("read", lambda m: m.workspaces.log(HERS), [lambda m: m.workspaces.log(HIS)]),
    "workspaces.diff": Method(
        "read",
        lambda m: m.workspaces.diff(HERS, 1, text=True),
        [lambda m: m.workspaces.diff(HIS, 1), lambda m: m.workspaces.diff(HIS, 1, text=True)],
    ),
    "workspaces.restore": Method(
        "write",
        lambda m: m.workspaces.restore(HERS, 1),
        [lambda m: m.workspaces.restore(HIS, 1), lambda m: m.workspaces.restore(HIS, 1, prefix="bob.txt")],
    ),
    "workspaces.prune": Method(
        "admin", lambda m: m.workspaces.prune(HERS, keep=1), [lambda m: m.workspaces.prune(HIS, keep=1)]
    ),
    "workspaces.import_folder": Method(
        "write",
        lambda m: m.workspaces.import_folder(HERS, desk(m) / "alice"),
        [lambda m: m.workspaces.import_folder(HIS, desk(m) / "alice", mirror=True)],
    ),
    "workspaces.export_folder": Method(
        "read",
        lambda m: m.workspaces.export_folder(HERS, desk(m) / "alice-export"),
        [
            lambda m: m.workspaces.export_folder(HIS, desk(m) / "stolen"),
            lambda m: m.workspaces.export_folder(HIS, desk(m) / "stolen", at=1, prefix="src"),
        ],
    ),
}


async def list_from(memory: HybridMemoryService) -> Any:
    page = await everything(memory).workspaces.list("user:bob", limit=1)
    return await memory.workspaces.list(cursor=page.next_cursor)


async def list_files_from(memory: HybridMemoryService) -> Any:
    page = await everything(memory).workspaces.list_files(HIS, limit=1)
    return await memory.workspaces.list_files(HIS, cursor=page.next_cursor)


async def clone_at_his_snapshot(memory: HybridMemoryService) -> Any:
    at = await everything(memory).workspaces.get_snapshot(HIS, 1)
    return await memory.workspaces.clone(HERS, "x", at=at, namespace="user:alice:work")
