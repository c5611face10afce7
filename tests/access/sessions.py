"""Sessions, their state and their tasks."""

from typing import Any

from mnemon import EventDraft, HybridMemoryService
from tests.access.world import BOB, SECRET, Method, everything, first

METHODS: dict[str, Method] = {
    "sessions.create_session": Method(
        "write",
        lambda m: m.sessions.create_session("alice-new", "helpdesk", "alice", initial_state={"user:new": 1}),
        [
            lambda m: m.sessions.create_session("x", "helpdesk", "bob"),
            lambda m: m.sessions.create_session("bob-session", "helpdesk", "alice"),
            lambda m: m.sessions.create_session("x", "helpdesk", "alice", initial_state={"app:k": "stolen"}),
            lambda m: m.sessions.create_session(
                "x", "helpdesk", "alice", "bob-project", initial_state={"project:k": "stolen"}
            ),
        ],
    ),
    "sessions.get_session": Method(
        "read",
        lambda m: m.sessions.get_session("alice-session"),
        [
            lambda m: m.sessions.get_session("bob-session"),
            lambda m: m.sessions.get_session("bob-session", last=1),
        ],
    ),
    "sessions.append_event": Method(
        "write",
        lambda m: m.sessions.append_event("alice-session", {"n": 1}, {"user:k": 1, "k": 1}),
        [
            lambda m: m.sessions.append_event("bob-session", {"n": 1}),
            lambda m: m.sessions.append_event(
                "bob-session", {"text": SECRET}, {"user:k": SECRET}, event_id="bob-event"
            ),
            lambda m: m.sessions.append_event("alice-session", {"n": 1}, {"app:k": "stolen"}),
            lambda m: m.sessions.append_event("alice-session", {"n": 1}, {"project:k": "stolen"}),
        ],
    ),
    "sessions.append_events": Method(
        "write",
        lambda m: m.sessions.append_events("alice-session", [{"n": 1}, {"n": 2}]),
        [
            lambda m: m.sessions.append_events("bob-session", [{"n": 1}, {"n": 2}]),
            lambda m: m.sessions.append_events("alice-session", [{"n": 1}, EventDraft({}, {"app:k": "stolen"})]),
        ],
    ),
    "sessions.events": Method(
        "read",
        lambda m: m.sessions.events("alice-session"),
        [
            lambda m: m.sessions.events("bob-session"),
            lambda m: m.sessions.events("bob-session", last=5),
            lambda m: m.sessions.events("bob-session", after=0, limit=5, archived=True),
        ],
    ),
    "sessions.update_status": Method(
        "write",
        lambda m: m.sessions.update_status("alice-session", "paused"),
        [
            lambda m: m.sessions.update_status("bob-session", "paused"),
            lambda m: m.sessions.update_status("bob-session", "active"),
        ],
    ),
    "sessions.update_metadata": Method(
        "write",
        lambda m: m.sessions.update_metadata("alice-session", {"m": 2}),
        [lambda m: m.sessions.update_metadata("bob-session", {"m": 2})],
    ),
    "sessions.terminate_session": Method(
        "write",
        lambda m: m.sessions.terminate_session("alice-spare"),
        [lambda m: m.sessions.terminate_session("bob-spare")],
    ),
    "sessions.delete_session": Method(
        "write",
        lambda m: m.sessions.delete_session("alice-spare"),
        [lambda m: m.sessions.delete_session("bob-spare")],
    ),
    "sessions.get_state": Method(
        "read",
        lambda m: m.sessions.get_state("alice-session", "k"),
        [lambda m, key=key: m.sessions.get_state("bob-session", key) for key in ("k", "temp:t", "user:k", "project:k")]
        + [lambda m, key=key: m.sessions.get_state("alice-session", key) for key in ("app:k", "project:k")],
    ),
    "sessions.set_state": Method(
        "write",
        lambda m: m.sessions.set_state("alice-session", "user:k", 1),
        [lambda m, key=key: m.sessions.set_state("bob-session", key, 1) for key in ("k", "user:k", "app:k")]
        + [lambda m, key=key: m.sessions.set_state("alice-session", key, 1) for key in ("app:k", "project:k")],
    ),
    "sessions.list_active_sessions": Method(
        "read",
        lambda m: m.sessions.list_active_sessions(),
        [
            lambda m: m.sessions.list_active_sessions(),
            lambda m: m.sessions.list_active_sessions("bob"),
        ],
    ),
    "sessions.list_sessions": Method(
        "read",
        lambda m: m.sessions.list_sessions(),
        [
            lambda m: m.sessions.list_sessions(),
            lambda m: m.sessions.list_sessions(user_id="bob"),
            lambda m: m.sessions.list_sessions(project_id="bob-project"),
            lambda m: m.sessions.list_sessions(app_name="helpdesk", status="active"),
            lambda m: list_sessions_from(m),
        ],
    ),
    "state.get": Method(
        "read",
        lambda m: m.state.get("user:k", session_id="alice-session"),
        [
            lambda m: m.state.get("k", session_id="bob-session"),
            lambda m: m.state.get("user:k", session_id="bob-session"),
            lambda m: m.state.get("user:k", **BOB),
            lambda m: m.state.get("app:k", app_name="helpdesk"),
            lambda m: m.state.get("project:k", project_id="bob-project"),
            lambda m: m.state.get("project:k", session_id="alice-session"),
        ],
    ),
    "state.entry": Method(
        "read",
        lambda m: m.state.entry("k", session_id="alice-session"),
        [lambda m: m.state.entry("temp:t", session_id="bob-session"), lambda m: m.state.entry("user:k", **BOB)],
    ),
    "state.set": Method(
        "write",
        lambda m: m.state.set("user:k", 1, app_name="helpdesk", user_id="alice"),
        [
            lambda m: m.state.set("k", 1, session_id="bob-session"),
            lambda m: m.state.set("user:k", 1, **BOB),
            lambda m: m.state.set("app:k", 1, session_id="alice-session"),
            lambda m: m.state.set("project:k", 1, project_id="bob-project"),
        ],
    ),
    "state.merge": Method(
        "write",
        lambda m: m.state.merge({"k": 1, "user:k": 2}, session_id="alice-session"),
        [
            lambda m: m.state.merge({"k": 1, "user:k": 2}, session_id="bob-session"),
            lambda m: m.state.merge({"k": 1, "app:k": 2}, session_id="alice-session"),
        ],
    ),
    "state.compare_and_set": Method(
        "write",
        lambda m: m.state.compare_and_set("new", 1, 0, session_id="alice-session"),
        [
            lambda m: m.state.compare_and_set("k", 1, 1, session_id="bob-session"),
            lambda m: m.state.compare_and_set("user:k", 1, 1, **BOB),
            lambda m: m.state.compare_and_set("user:unset", 1, 0, **BOB),
        ],
    ),
    "state.update": Method(
        "write",
        lambda m: m.state.update("k", lambda _: 1, session_id="alice-session"),
        [
            lambda m: m.state.update("k", lambda value: value, session_id="bob-session"),
            lambda m: m.state.update("user:k", lambda value: value, **BOB),
        ],
    ),
    "state.delete": Method(
        "write",
        lambda m: m.state.delete("k", session_id="alice-session"),
        [
            lambda m: m.state.delete("k", session_id="bob-session"),
            lambda m: m.state.delete("user:k", **BOB),
            lambda m: m.state.delete("user:k", expected_version=1, **BOB),
        ],
    ),
    "state.entries": Method(
        "read",
        lambda m: m.state.entries("user:", session_id="alice-session"),
        [
            lambda m: m.state.entries("", session_id="bob-session"),
            lambda m: m.state.entries("user:", **BOB),
            lambda m: m.state.entries("project:", project_id="bob-project"),
            lambda m: m.state.entries("app:", session_id="alice-session"),
        ],
    ),
    "state.watch": Method(
        "read",
        lambda m: first(m.state.watch("user:", after=0, session_id="alice-session")),
        [
            lambda m: first(m.state.watch("", after=0, session_id="bob-session")),
            lambda m: first(m.state.watch("user:", after=0, **BOB)),
            lambda m: first(m.state.watch("app:", after=0, app_name="helpdesk")),
        ],
    ),
    "tasks.create": Method(
        "write",
        lambda m: m.tasks.create("job", session_id="alice-session", parent_id="alice-session-task"),
        [
            lambda m: m.tasks.create("job", session_id="bob-session"),
            lambda m: m.tasks.create("job", session_id="alice-session", parent_id="bob-session-task"),
            lambda m: m.tasks.create("job", session_id="alice-session", task_id="bob-session-task"),
            lambda m: m.tasks.create("job"),
        ],
    ),
    "tasks.get": Method(
        "read", lambda m: m.tasks.get("alice-session-task"), [lambda m: m.tasks.get("bob-session-task")]
    ),
    "tasks.update": Method(
        "write",
        lambda m: m.tasks.update("alice-session-task", "running"),
        [lambda m: m.tasks.update("bob-session-task", "running")],
    ),
    "tasks.delete": Method(
        "write",
        lambda m: m.tasks.delete("alice-session-task-2"),
        [lambda m: m.tasks.delete("bob-session-task-2")],
    ),
    "tasks.list": Method(
        "read",
        lambda m: m.tasks.list(),
        [
            lambda m: m.tasks.list(),
            lambda m: m.tasks.list(session_id="bob-session"),
            lambda m: m.tasks.list(parent_id="bob-session-task"),
            lambda m: m.tasks.list(status="pending"),
        ],
    ),
}


async def list_sessions_from(memory: HybridMemoryService) -> Any:
    """Go on from a cursor that an all-seeing handle got among Bob's."""
    page = await everything(memory).sessions.list_sessions(user_id="bob", limit=1)
    return await memory.sessions.list_sessions(cursor=page.next_cursor)
