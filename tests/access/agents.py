"""Agents and their cycles."""

from typing import Any

from mnemon import HybridMemoryService
from tests.access.world import SECRET, Method, everything

HERS, HIS = "alice-agent", "bob-agent"
STATE = {"agent_id": "alice-autogpt", "ai_profile": {"ai_name": "Scout", "ai_role": "finds"}}
HOME: dict[str, Any] = {"name": "x", "namespace": "user:alice:agents"}

METHODS: dict[str, Method] = {
    "agents.create": Method(
        "write",
        lambda m: m.agents.create("alice-new", **HOME),
        [
            lambda m: m.agents.create("x", name="x", namespace="user:bob:agents"),
            lambda m: m.agents.create("x", name="x"),
            lambda m: m.agents.create(HIS, **HOME),
            lambda m: m.agents.create("x", workspace_id="bob-workspace", **HOME),
        ],
    ),
    "agents.get": Method("read", lambda m: m.agents.get(HERS), [lambda m: m.agents.get(HIS)]),
    "agents.update": Method(
        "write",
        lambda m: m.agents.update(HERS, role="new"),
        [
            lambda m: m.agents.update(HIS, role="new"),
            lambda m: m.agents.update(HIS, expected_version=7),
            lambda m: m.agents.update(HERS, workspace_id="bob-workspace"),
        ],
    ),
    "agents.delete": Method(
        "admin", lambda m: m.agents.delete("alice-spare"), [lambda m: m.agents.delete("bob-spare")]
    ),
    "agents.capture_proposal": Method(
        "write",
        lambda m: m.agents.capture_proposal("alice-spare", {"thoughts": "x"}, session_id="alice-session"),
        [
            lambda m: m.agents.capture_proposal(HIS, {"thoughts": "x"}),
            lambda m: m.agents.capture_proposal(HIS, {"thoughts": "x"}, snapshot=1, expected_cycle=7),
            lambda m: m.agents.capture_proposal("bob-succeed", {"thoughts": "x"}),  # which waits for a result
            lambda m: m.agents.capture_proposal("alice-spare", {"thoughts": "x"}, session_id="bob-session"),
        ],
    ),
    "agents.capture_result": Method(
        "write",
        lambda m: m.agents.capture_result("alice-capture_result", 1, {"status": "success", "outputs": 1}),
        [
            lambda m: m.agents.capture_result("bob-capture_result", 1, {"status": "success", "outputs": 1}),
            lambda m: m.agents.capture_result(HIS, 1, {"status": "success", "outputs": SECRET}),  # as it is already
            lambda m: m.agents.capture_result(HIS, 1, {"status": "success", "outputs": 1}),
        ],
    ),
    "agents.succeed": Method(
        "write", lambda m: m.agents.succeed("alice-succeed", 1), [lambda m: m.agents.succeed("bob-succeed", 1)]
    ),
    "agents.fail": Method(
        "write", lambda m: m.agents.fail("alice-fail", 1, "no"), [lambda m: m.agents.fail("bob-fail", 1, "no")]
    ),
    "agents.interrupt": Method(
        "write",
        lambda m: m.agents.interrupt("alice-interrupt", 1, "stop"),
        [lambda m: m.agents.interrupt("bob-interrupt", 1, "stop")],
    ),
    "agents.summarise": Method(
        "write", lambda m: m.agents.summarise(HERS, 1, "in short"), [lambda m: m.agents.summarise(HIS, 1, "in short")]
    ),
    "agents.record_memory": Method(
        "write",
        lambda m: m.agents.record_memory(HERS, "a new thing"),
        [
            lambda m: m.agents.record_memory(HIS, "x"),
            lambda m: m.agents.record_memory(HIS, "x", cycle=1, key="bob-insight"),
            lambda m: m.agents.record_memory(HIS, "x", namespace="user:alice:agents"),
            lambda m: m.agents.record_memory(HERS, "x", namespace="user:bob:agents"),
        ],
    ),
    "agents.recall": Method(
        "read",
        lambda m: m.agents.recall(HERS, "hers"),
        [
            lambda m: m.agents.recall(HIS, "secret"),
            lambda m: m.agents.recall(HERS, "secret", namespaces="user:bob"),
            lambda m: m.agents.recall(HERS, "secret", 1000, namespaces=["", "user", "session"]),
        ],
    ),
    "agents.cycle": Method("read", lambda m: m.agents.cycle(HERS, 1), [lambda m: m.agents.cycle(HIS, 1)]),
    "agents.cycles": Method(
        "read",
        lambda m: m.agents.cycles(HERS),
        [
            lambda m: m.agents.cycles(HIS),
            lambda m: m.agents.cycles(HIS, session_id="bob-session", include_undone=True),
        ],
    ),
    "agents.resume": Method("read", lambda m: m.agents.resume(HERS), [lambda m: m.agents.resume(HIS)]),
    "agents.rewind": Method(
        "write",
        lambda m: m.agents.rewind(HERS, 0, restore_workspace=True, forget=True),
        [
            lambda m: m.agents.rewind(HIS, 0),
            lambda m: m.agents.rewind(HIS, 0, restore_workspace=True, forget=True),
        ],
    ),
    "agents.export_autogpt": Method(
        "read", lambda m: m.agents.export_autogpt(HERS), [lambda m: m.agents.export_autogpt(HIS)]
    ),
    "agents.import_autogpt": Method(
        "write",
        lambda m: m.agents.import_autogpt(STATE, namespace="user:alice:agents"),
        [
            lambda m: m.agents.import_autogpt(STATE),
            lambda m: m.agents.import_autogpt(STATE, namespace="user:bob:agents"),
            lambda m: m.agents.import_autogpt(STATE, agent_id=HIS, namespace="user:alice:agents"),
            lambda m: m.agents.import_autogpt(STATE, namespace="user:alice:agents", workspace_id="bob-workspace"),
        ],
    ),
    "agents.list": Method(
        "read",
        lambda m: m.agents.list(),
        [
            lambda m: m.agents.list(),
            lambda m: m.agents.list("user"),
            lambda m: m.agents.list("user:bob"),
            lambda m: list_from(m),
        ],
    ),
}


async def list_from(memory: HybridMemoryService) -> Any:
    page = await everything(memory).agents.list("user:bob", limit=1)
    return await memory.agents.list(cursor=page.next_cursor)
