"""The contract of `SessionService`: a session's life, its state and the lists it stands in."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from mnemon.errors import (
    ConflictError,
    InvalidCursor,
    InvalidIdentifier,
    InvalidInput,
    InvalidStatus,
    InvalidTransition,
    InvalidValue,
    SessionExists,
    SessionNotFound,
)
from mnemon.hybrid import HybridMemoryService
from mnemon.model import SessionStatus
from mnemon.ports import Store
from mnemon.sessions import TRANSITIONS
from mnemon.testing.clock import ManualClock
from mnemon.testing.eventlog import EventLogSuite
from mnemon.testing.suite import journal_after, last_position, peek, plant, plant_session, refused, unchanged

_OVER = (SessionStatus.TERMINATED, SessionStatus.ARCHIVED)
_BAD_IDS: tuple[Any, ...] = ("", "a:b", " a", "a ", "a\nb", "a\x00", "\ud800", "x" * 257, None, 5)


async def versions(store: Store, session_id: str) -> tuple[str, int]:
    """The status and version of a session, as they stand in the database."""
    [(status, version)] = await peek(store, "SELECT status, version FROM sessions WHERE id = :id", id=session_id)
    return status, version


class SessionSuite(EventLogSuite):
    """Any backend must pass; override the fixture `memory`."""

    # -- creating and reading

    async def test_a_new_session_is_created_empty(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        session = await memory.sessions.create_session("s1", "helpdesk", "alice", "apollo", metadata={"lang": "no"})

        assert (session.id, session.app_name, session.user_id, session.project_id) == (
            "s1",
            "helpdesk",
            "alice",
            "apollo",
        )
        assert (session.status, session.version, session.event_count) == ("created", 1, 0)
        assert session.metadata == {"lang": "no"}
        assert session.created_at == session.last_update_time == clock.moment
        assert session.terminated_at is session.archived_at is None
        assert await peek(store, "SELECT id, app_name, user_id, project_id, status, version FROM sessions") == [
            ("s1", "helpdesk", "alice", "apollo", "created", 1)
        ]
        assert await memory.sessions.get_session("s1") == session

    async def test_initial_state_goes_to_its_owners(self, memory: HybridMemoryService, store: Store) -> None:
        given = {"step": 1, "session:n": 2, "temp:t": 3, "user:city": "Oslo", "app:motd": "hi", "project:p": [1]}

        session = await memory.sessions.create_session("s1", "helpdesk", "alice", "apollo", initial_state=given)

        assert session.state == given
        assert await peek(store, "SELECT namespace, key FROM state ORDER BY namespace, key") == [
            ("app:helpdesk", "app:motd"),
            ("project:apollo", "project:p"),
            ("session:s1", "session:n"),
            ("session:s1", "step"),
            ("temp:s1", "temp:t"),
            ("user:alice:helpdesk", "user:city"),
        ]

    async def test_creating_records_one_entry_for_the_session_and_one_for_each_owner(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.sessions.create_session(
            "s1", "helpdesk", "alice", initial_state={"a": 1, "b": 2, "user:c": 3}, actor="bot"
        )

        assert await journal_after(store) == [
            ("session", "s1", "create", 1, "session:s1"),
            ("state", "session:s1", "merge", None, "session:s1"),
            ("state", "user:alice:helpdesk", "merge", None, "user:alice:helpdesk"),
        ]
        assert await peek(store, "SELECT DISTINCT actor, user_id, session_id FROM journal") == [("bot", "alice", "s1")]

    async def test_a_taken_id_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")

        async with refused(store, SessionExists, "s1"):
            await memory.sessions.create_session("s1", "other", "bob", initial_state={"user:x": 1})

    async def test_ids_that_cannot_be_segments_are_refused(self, memory: HybridMemoryService, store: Store) -> None:
        for bad in _BAD_IDS:
            async with refused(store, InvalidIdentifier, "session_id"):
                await memory.sessions.create_session(bad, "helpdesk", "alice")
            async with refused(store, InvalidIdentifier, "app_name"):
                await memory.sessions.create_session("s1", bad, "alice")
            async with refused(store, InvalidIdentifier, "user_id"):
                await memory.sessions.create_session("s1", "helpdesk", bad)
            if bad is not None:
                async with refused(store, InvalidIdentifier, "project_id"):
                    await memory.sessions.create_session("s1", "helpdesk", "alice", bad)

    async def test_a_session_is_not_created_without_all_of_its_state(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        async with refused(store, InvalidInput, "project_id"):
            await memory.sessions.create_session("s1", "helpdesk", "alice", initial_state={"a": 1, "project:p": 2})
        async with refused(store, InvalidValue, "metadata"):
            await memory.sessions.create_session("s1", "helpdesk", "alice", metadata={"a": float("nan")})
        async with refused(store, InvalidValue, "^a is bytes"):
            await memory.sessions.create_session("s1", "helpdesk", "alice", initial_state={"a": b"bytes"})

    async def test_an_unknown_session_is_none(self, memory: HybridMemoryService) -> None:
        assert await memory.sessions.get_session("nobody") is None

    async def test_reading_shows_what_stands_in_the_database(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await plant_session(
            store, "s1", at=clock.moment, project_id="apollo", status="paused", metadata='{"k":[1]}', version=7
        )
        event = (
            "INSERT INTO events (session_id, sequence, id, body, state_delta, actor, task_id, created_at) "
            "VALUES ('s1', :n, :id, :body, '{\"user:a\":1}', 'bot', 't1', :at)"
        )
        for number in (1, 2, 3):
            await plant(store, event, n=number, id=f"e{number}", body=f'{{"n":{number}}}', at=clock.now() + number)
        entry = "INSERT INTO state (namespace, key, value, updated_at) VALUES (:namespace, :key, '\"v\"', 0)"
        for namespace, key in (("session:s1", "a"), ("user:alice:helpdesk", "user:b"), ("project:apollo", "project:c")):
            await plant(store, entry, namespace=namespace, key=key)

        session = await memory.sessions.get_session("s1")

        assert session is not None
        assert (session.status, session.version, session.metadata) == ("paused", 7, {"k": [1]})
        assert session.state == {"a": "v", "user:b": "v", "project:c": "v"}
        assert [(e.sequence, e.id, e.body) for e in session.events] == [(n, f"e{n}", {"n": n}) for n in (1, 2, 3)]
        last = session.events[-1]
        assert (last.session_id, last.state_delta, last.actor, last.task_id) == ("s1", {"user:a": 1}, "bot", "t1")
        assert last.created_at == clock.moment + timedelta(microseconds=3)

    async def test_a_session_brings_the_part_of_its_log_that_was_asked_for(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.sessions.append_events("s1", [{"n": n} for n in range(1, 6)])

        async def sequences(**window: int) -> list[int]:
            session = await memory.sessions.get_session("s1", **window)
            assert session is not None
            assert session.event_count == 5
            return [event.sequence for event in session.events]

        assert await sequences() == [1, 2, 3, 4, 5]
        assert await sequences(last=2) == [4, 5]
        assert await sequences(last=0) == []
        assert await sequences(after=3) == [4, 5]
        with pytest.raises(InvalidInput, match="not both"):
            await sequences(last=1, after=1)

    # -- the life cycle

    async def test_every_transition_is_as_documented(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for present in SessionStatus:
            for target in SessionStatus:
                session_id = f"{present}-{target}"
                await plant_session(store, session_id, at=clock.moment, status=str(present), version=3)
                if target is present:
                    async with unchanged(store):
                        assert await memory.sessions.update_status(session_id, target) == 3
                elif target in TRANSITIONS[present]:
                    clock.advance()
                    assert await memory.sessions.update_status(session_id, target) == 4
                    assert await versions(store, session_id) == (target, 4)
                else:
                    async with refused(store, InvalidTransition, f"is {present} and cannot become {target}"):
                        await memory.sessions.update_status(session_id, target)

    async def test_a_transition_is_recorded_with_where_it_came_from(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")

        await memory.sessions.update_status("s1", "active", actor="bot", task_id="t1")

        [change] = (await memory.audit(operation="status")).items
        assert (change.entity, change.entity_id, change.version, change.actor) == ("session", "s1", 2, "bot")
        assert (change.task_id, change.session_id, change.user_id) == ("t1", "s1", "alice")
        assert change.payload == {"from": "created", "to": "active"}
        assert len(await journal_after(store)) == 2

    async def test_a_word_that_is_no_status_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")

        async with refused(store, InvalidStatus, "created, active, paused"):
            await memory.sessions.update_status("s1", "asleep")
        async with refused(store, InvalidStatus):
            await memory.sessions.list_sessions(status="asleep")

    async def test_terminating_clears_temporary_state_and_nothing_else(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        state = {"temp:a": 1, "temp:b": 2, "session:c": 3, "d": 4, "user:e": 5, "app:f": 6}
        await memory.sessions.create_session("s1", "helpdesk", "alice", initial_state=state)
        await memory.sessions.create_session("s2", "helpdesk", "alice", initial_state={"temp:a": 9})
        ended = clock.advance(60)

        await memory.sessions.terminate_session("s1", actor="bot")

        session = await memory.sessions.get_session("s1")
        assert session is not None
        assert (session.status, session.terminated_at, session.archived_at) == ("terminated", ended, None)
        assert session.state == {"session:c": 3, "d": 4, "user:e": 5, "app:f": 6}
        assert await peek(store, "SELECT namespace FROM state WHERE key LIKE 'temp:%'") == [("temp:s2",)]
        async with unchanged(store):
            await memory.sessions.terminate_session("s1")

    async def test_archiving_keeps_when_it_ended(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        ended = clock.advance()
        await memory.sessions.terminate_session("s1")
        archived = clock.advance()

        await memory.sessions.update_status("s1", "archived")

        session = await memory.sessions.get_session("s1")
        assert session is not None
        assert (session.status, session.terminated_at, session.archived_at) == ("archived", ended, archived)

    async def test_a_session_that_is_over_takes_no_events_and_no_state_of_its_own(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for status in _OVER:
            session_id = f"s-{status}"
            await plant_session(store, session_id, at=clock.moment, status=str(status))
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda s=session_id: memory.sessions.append_event(s, {"n": 1}),
                lambda s=session_id: memory.sessions.append_event(s, {"id": "e1"}, {"user:a": 1}),
                lambda s=session_id: memory.sessions.append_events(s, [{"n": 1}, {"n": 2}]),
                lambda s=session_id: memory.sessions.set_state(s, "step", 1),
                lambda s=session_id: memory.state.merge({"temp:a": 1, "user:b": 2}, session_id=s),
                lambda s=session_id: memory.state.compare_and_set("session:a", 1, 0, session_id=s),
                lambda s=session_id: memory.state.update("a", lambda _: 1, session_id=s),
                lambda s=session_id: memory.state.delete("a", session_id=s),
            ]
            for call in calls:
                async with refused(store, InvalidTransition, str(status)):
                    await call()

    async def test_a_session_that_is_over_still_reaches_what_its_user_shares(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.sessions.terminate_session("s1")

        await memory.sessions.set_state("s1", "user:city", "Oslo")

        assert await memory.sessions.get_state("s1", "user:city") == "Oslo"

    async def test_metadata_is_replaced_as_a_whole(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice", metadata={"a": 1, "b": 2})

        assert await memory.sessions.update_metadata("s1", {"b": 3}, actor="bot") == 2

        session = await memory.sessions.get_session("s1")
        assert session is not None
        assert (session.metadata, session.version) == ({"b": 3}, 2)
        assert (await journal_after(store))[-1] == ("session", "s1", "metadata", 2, "session:s1")
        bad: Any = [1]
        async with refused(store, InvalidValue, "metadata must be a mapping"):
            await memory.sessions.update_metadata("s1", bad)
        async with refused(store, InvalidValue, "NUL"):
            await memory.sessions.update_metadata("s1", {"a": "\0"})

    async def test_a_stale_version_changes_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        sessions = memory.sessions
        await sessions.create_session("s1", "helpdesk", "alice")
        await sessions.update_metadata("s1", {"a": 1}, expected_version=1)
        await sessions.update_status("s1", "active", expected_version=2)
        await sessions.append_event("s1", {"n": 1}, expected_version=3)
        await sessions.append_events("s1", [{"n": 2}, {"n": 3}], expected_version=4)
        assert await versions(store, "s1") == ("active", 6)

        for stale in (0, 5, 7):
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda v=stale: sessions.append_event("s1", {"n": 4}, {"user:a": 1}, expected_version=v),
                lambda v=stale: sessions.append_event("s1", {"n": 4}, event_id="e", expected_version=v),
                lambda v=stale: sessions.append_events("s1", [{"n": 4}, {"n": 5}], expected_version=v),
                lambda v=stale: sessions.update_status("s1", "paused", expected_version=v),
                lambda v=stale: sessions.update_status("s1", "active", expected_version=v),
                lambda v=stale: sessions.update_metadata("s1", {}, expected_version=v),
            ]
            for call in calls:
                async with refused(store, ConflictError, f"version 6, not {stale}"):
                    await call()

    async def test_a_status_that_it_has_already_needs_the_right_version_too(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")

        assert await memory.sessions.update_status("s1", "created", expected_version=1) == 1

    async def test_an_unknown_session_is_not_found_by_any_method(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        sessions = memory.sessions
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: sessions.append_event("nobody", {}),
            lambda: sessions.append_event("nobody", {"id": "e1"}),
            lambda: sessions.append_events("nobody", [{}, {}]),
            lambda: sessions.events("nobody"),
            lambda: sessions.update_status("nobody", "active"),
            lambda: sessions.update_metadata("nobody", {}),
            lambda: sessions.terminate_session("nobody"),
            lambda: sessions.delete_session("nobody"),
            lambda: sessions.get_state("nobody", "a"),
            lambda: sessions.get_state("nobody", "user:a"),
            lambda: sessions.set_state("nobody", "a", 1),
            lambda: sessions.set_state("nobody", "user:a", 1),
        ]
        for call in calls:
            async with refused(store, SessionNotFound, "nobody"):
                await call()
        assert issubclass(SessionNotFound, LookupError)
        assert issubclass(SessionNotFound, ValueError)

    # -- deleting

    async def test_deleting_takes_the_log_and_its_own_state_and_leaves_the_rest(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        state = {"a": 1, "temp:b": 2, "user:c": 3, "app:d": 4}
        for session_id in ("s1", "s10"):
            await memory.sessions.create_session(session_id, "helpdesk", "alice", initial_state=state)
            await memory.sessions.append_events(session_id, [{"n": 1}, {"n": 2}])
            await memory.tasks.create("job", task_id=f"t-{session_id}", session_id=session_id)
        move = (
            "INSERT INTO archived_events (session_id, sequence, id, body, created_at) VALUES ('s1', 9, 'old', '{}', 0)"
        )
        await plant(store, move)

        await memory.sessions.delete_session("s1", actor="bot", task_id="t9")

        assert await memory.sessions.get_session("s1") is None
        assert await peek(store, "SELECT DISTINCT session_id FROM events") == [("s10",)]
        assert await peek(store, "SELECT COUNT(*) FROM archived_events") == [(0,)]
        assert await peek(store, "SELECT DISTINCT namespace FROM state ORDER BY namespace") == [
            ("app:helpdesk",),
            ("session:s10",),
            ("temp:s10",),
            ("user:alice:helpdesk",),
        ]
        assert await peek(store, "SELECT id, session_id FROM tasks ORDER BY id") == [("t-s1", None), ("t-s10", "s10")]
        assert (await journal_after(store))[-1] == ("session", "s1", "delete", 4, "session:s1")

    async def test_the_id_of_a_deleted_session_can_be_used_again(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice", initial_state={"a": 1})
        await memory.sessions.append_event("s1", {"id": "e1"})
        await memory.sessions.delete_session("s1")

        await memory.sessions.create_session("s1", "helpdesk", "bob")

        session = await memory.sessions.get_session("s1")
        assert session is not None
        assert (session.user_id, session.state, session.events) == ("bob", {}, [])
        assert (await memory.sessions.append_event("s1", {"id": "e1"})).sequence == 1

    # -- state through the session

    async def test_state_of_every_scope_can_be_set_and_got(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice", "apollo")

        for key in ("plain", "session:a", "temp:a", "user:a", "app:a", "project:a"):
            assert await memory.sessions.get_state("s1", key) is None
            assert await memory.sessions.set_state("s1", key, {"of": key}, actor="bot", task_id="t1") == 1
            assert await memory.sessions.set_state("s1", key, {"of": [key]}) == 2
            assert await memory.sessions.get_state("s1", key) == {"of": [key]}

        assert await peek(store, "SELECT COUNT(*) FROM journal WHERE actor = 'bot' AND task_id = 't1'") == [(6,)]

    # -- lists

    async def test_active_sessions_are_listed_with_the_last_used_first(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        for session_id, user in (("s1", "alice"), ("s2", "alice"), ("s3", "bob"), ("s4", "alice"), ("s5", "alice")):
            clock.advance()
            await memory.sessions.create_session(session_id, "helpdesk", user)
            if session_id != "s5":
                await memory.sessions.update_status(session_id, "active")
        clock.advance()
        await memory.sessions.terminate_session("s4")
        clock.advance()
        await memory.sessions.append_event("s1", {"n": 1})

        async def listed(user: str | None = None, **options: int) -> list[str]:
            return [session.id for session in await memory.sessions.list_active_sessions(user, **options)]

        assert await listed() == ["s1", "s3", "s2"]
        assert await listed("alice") == ["s1", "s2"]
        assert await listed("nobody") == []
        assert await listed(limit=1) == ["s1"]
        for limit in (0, -1, 10_001, True):
            with pytest.raises(InvalidInput, match="limit"):
                await listed(limit=limit)

    async def test_sessions_are_listed_newest_first_by_what_they_have(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        rows = [
            ("s1", "alice", "helpdesk", "apollo", "active"),
            ("s2", "alice", "sales", None, "active"),
            ("s3", "bob", "helpdesk", "apollo", "paused"),
            ("s4", "alice", "helpdesk", "gemini", "archived"),
        ]
        for session_id, user, app, project, status in rows:
            await plant_session(
                store, session_id, user=user, app=app, project_id=project, status=status, at=clock.advance()
            )

        async def listed(**wanted: Any) -> str:
            return " ".join(session.id for session in await memory.sessions.list_sessions(**wanted))

        assert await listed() == "s4 s3 s2 s1"
        assert await listed(user_id="alice") == "s4 s2 s1"
        assert await listed(app_name="helpdesk") == "s4 s3 s1"
        assert await listed(app_name="helpdesk", user_id="alice") == "s4 s1"
        assert await listed(project_id="apollo") == "s3 s1"
        assert await listed(status="active") == "s2 s1"
        assert await listed(status="active", user_id="alice", app_name="sales") == "s2"
        assert await listed(user_id="nobody") == ""

    async def test_pages_of_sessions_neither_repeat_nor_skip_while_sessions_come(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for number in range(7):  # all at the same moment: the id decides
            await plant_session(store, f"s{number}", at=clock.moment)
        seen: list[str] = []
        cursor: str | None = None
        for turn in range(10):
            page = await memory.sessions.list_sessions(user_id="alice", limit=3, cursor=cursor)
            seen += [session.id for session in page]
            cursor = page.next_cursor
            if cursor is None:
                break
            await plant_session(store, f"late{turn}", at=clock.advance())

        assert seen == ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]

    async def test_a_cursor_of_something_else_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.tasks.create("job", task_id="t1")
        foreign = (await memory.tasks.list(limit=1)).next_cursor
        assert foreign is not None

        strange: Any = 5
        for cursor in (foreign, "", "!!!", "e30", "WyJzZXNzaW9ucyJd", "é", strange):
            with pytest.raises(InvalidCursor):
                await memory.sessions.list_sessions(cursor=cursor)

    async def test_lists_bring_no_state_and_no_events(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice", initial_state={"a": 1})
        await memory.sessions.append_event("s1", {"n": 1})
        before = await last_position(store)

        [listed] = await memory.sessions.list_sessions()
        [active] = await memory.sessions.list_active_sessions()

        assert listed == active
        assert (listed.state, listed.events, listed.event_count) == ({}, [], 1)
        assert await last_position(store) == before
