"""The contract of a session's log: order, idempotence, atomic batches, windows, archiving."""

from collections.abc import Callable
from typing import Any

import pytest

from mnemon.errors import EventExists, InvalidIdentifier, InvalidInput, InvalidValue, ValueTooLarge
from mnemon.eventlog import SHORT_READ, EventDraft
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Event
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.handles import with_settings
from mnemon.testing.suite import Suite, journal_after, last_position, peek, plant, refused, unchanged


def sequences(events: list[Event]) -> list[int]:
    return [event.sequence for event in events]


async def open_session(memory: HybridMemoryService, session_id: str = "s1", **columns: Any) -> None:
    await memory.sessions.create_session(session_id, "helpdesk", "alice", **columns)


class EventLogSuite(Suite):
    """Part of `SessionSuite`."""

    # -- appending

    async def test_events_are_numbered_from_one_and_read_back_whole(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await open_session(memory)
        body: dict[str, Any] = {"role": "user", "text": "hei ✓ \U0001f600", "parts": [1, 2.5, None, True, {"a": []}]}

        first = await memory.sessions.append_event("s1", body, {"user:city": "Oslo"}, actor="bot", task_id="t1")
        clock.advance()
        second = await memory.sessions.append_event("s1", {})

        assert (first.session_id, first.sequence, first.body) == ("s1", 1, body)
        assert (first.state_delta, first.actor, first.task_id) == ({"user:city": "Oslo"}, "bot", "t1")
        assert (second.sequence, second.body, second.state_delta, second.actor) == (2, {}, None, None)
        assert second.created_at == clock.moment > first.created_at
        assert await memory.sessions.events("s1") == [first, second]

    async def test_an_append_is_one_row_one_entry_and_one_version(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)
        before = await last_position(store)

        event = await memory.sessions.append_event("s1", {"n": 1}, {"a": 1, "b": 2, "user:c": 3})

        assert await peek(store, "SELECT session_id, sequence, body FROM events") == [("s1", 1, '{"n":1}')]
        assert await peek(store, "SELECT event_count, version, status FROM sessions") == [(1, 2, "active")]
        assert await journal_after(store, before) == [
            ("event", event.id, "append", 2, "session:s1"),
            ("state", "user:alice:helpdesk", "merge", None, "user:alice:helpdesk"),
        ]
        told = [change.payload for change in await memory.audit(session_id="s1", limit=2)]
        assert told == [{"keys": ["user:c"]}, {"sequence": 1, "keys": ["a", "b"]}]

    async def test_the_first_event_makes_a_created_session_active_and_leaves_a_paused_one_paused(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)

        await memory.sessions.append_event("s1", {})
        assert await peek(store, "SELECT status FROM sessions") == [("active",)]
        await memory.sessions.update_status("s1", "paused")
        await memory.sessions.append_event("s1", {"id": "e2"})
        assert await peek(store, "SELECT status FROM sessions") == [("paused",)]

    async def test_an_event_is_known_by_the_id_that_was_given_or_its_own_or_a_new_one(
        self, memory: HybridMemoryService
    ) -> None:
        await open_session(memory)
        append = memory.sessions.append_event

        assert (await append("s1", {"id": "inner"}, event_id="outer")).id == "outer"
        assert (await append("s1", {"id": "inner"})).id == "inner"
        [drafted] = await memory.sessions.append_events("s1", [EventDraft({"id": "x"}, id="drafted")])
        assert drafted.id == "drafted"
        for unusable in (5, "", None):
            assert (await append("s1", {"id": unusable})).id not in ("5", "", "None")
        assert len({(await append("s1", {})).id for _ in range(3)}) == 3

    async def test_an_id_that_cannot_be_kept_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)

        for bad in ("", "a\nb", "x" * 257, "s1#1"):
            async with refused(store, InvalidIdentifier, "event_id"):
                await memory.sessions.append_event("s1", {}, event_id=bad)

    async def test_what_is_not_an_event_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        small = with_settings(memory, max_value_bytes=100)

        cases: list[tuple[type[Exception], str, Any, Any]] = [
            (InvalidValue, "an event must be a mapping", [1], None),
            (InvalidValue, "an event.a is nan", {"a": float("nan")}, None),
            (InvalidValue, r"an event.a\[1\] is bytes", {"a": [0, b""]}, None),
            (InvalidValue, "state delta must be a mapping", {}, [1]),
            (InvalidValue, "^a is set", {}, {"a": {1}}),
            (InvalidIdentifier, "a state key", {}, {"": 1}),
            (InvalidInput, "project_id", {}, {"a": 1, "project:p": 1}),
            (ValueTooLarge, "max_value_bytes", {"a": "x" * 100}, None),
            (ValueTooLarge, "max_value_bytes", {}, {"a": "x" * 100}),
        ]
        for error, message, event, delta in cases:
            async with refused(store, error, message):
                await small.sessions.append_event("s1", event, delta)

    async def test_temporary_state_is_merged_but_not_kept_in_the_log(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)

        event = await memory.sessions.append_event("s1", {}, {"temp:secret": "hush", "kept": 1})
        only = await memory.sessions.append_event("s1", {}, {"temp:secret": "hush hush"})

        assert (event.state_delta, only.state_delta) == ({"kept": 1}, {})
        assert await memory.sessions.get_state("s1", "temp:secret") == "hush hush"
        assert await memory.sessions.events("s1") == [event, only]
        assert "hush" not in str(await peek(store, "SELECT * FROM events"))

    # -- the same event again

    async def test_the_same_event_again_changes_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        first = await memory.sessions.append_event("s1", {"id": "e1", "a": 1, "b": 2}, {"x": {"p": 1, "q": 2}, "y": 1})
        await memory.sessions.set_state("s1", "x", "changed since")

        async with unchanged(store):
            again = await memory.sessions.append_event(
                "s1", {"b": 2, "a": 1, "id": "e1"}, {"y": 1, "x": {"q": 2, "p": 1}}
            )

        assert again == first
        assert await memory.sessions.get_state("s1", "x") == "changed since"

    async def test_another_event_under_a_taken_id_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        await memory.sessions.append_event("s1", {"n": 1}, {"x": 1}, event_id="e1")

        others: list[tuple[dict[str, Any], dict[str, Any] | None]] = [
            ({"n": 2}, {"x": 1}),
            ({"n": True}, {"x": 1}),
            ({"n": 1}, {"x": 2}),
            ({"n": 1}, {"x": True}),
            ({"n": 1}, {"x": 1, "y": 1}),
            ({"n": 1}, None),
        ]
        for body, delta in others:
            async with refused(store, EventExists, "e1"):
                await memory.sessions.append_event("s1", body, delta, event_id="e1")

    async def test_an_id_is_taken_in_its_own_session_only(self, memory: HybridMemoryService) -> None:
        for session_id in ("s1", "s2"):
            await open_session(memory, session_id)

        first = await memory.sessions.append_event("s1", {"n": 1}, event_id="e1")
        other = await memory.sessions.append_event("s2", {"n": 2}, event_id="e1")

        assert (first.sequence, other.sequence) == (1, 1)

    async def test_of_a_batch_that_is_partly_known_only_the_rest_is_appended(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)
        known = await memory.sessions.append_event("s1", {"id": "e2"}, {"x": "first"})
        await memory.sessions.set_state("s1", "x", "second")
        before = await last_position(store)

        batch = [{"id": "e1"}, EventDraft({"id": "e2"}, {"x": "first"}), {"no": "id"}]
        appended = await memory.sessions.append_events("s1", batch)

        assert sequences(appended) == [2, 1, 3]
        assert appended[1] == known
        assert await memory.sessions.get_state("s1", "x") == "second"
        assert [row[2] for row in await journal_after(store, before)] == ["append", "append"]
        async with unchanged(store):
            assert await memory.sessions.append_events("s1", batch[:2]) == appended[:2]

    async def test_a_batch_with_one_clashing_id_appends_nothing(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)
        await memory.sessions.append_event("s1", {"id": "e1", "n": 1})

        async with refused(store, EventExists, "e1"):
            await memory.sessions.append_events("s1", [{"id": "e0"}, {"id": "e1", "n": 2}])
        async with refused(store, EventExists, "same id"):
            await memory.sessions.append_events("s1", [{"id": "e3"}, {"id": "e3"}])

    async def test_a_known_event_is_found_even_when_the_session_is_over(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)
        first = await memory.sessions.append_event("s1", {"id": "e1"})
        await memory.sessions.terminate_session("s1")

        async with unchanged(store):
            assert await memory.sessions.append_event("s1", {"id": "e1"}) == first

    async def test_one_event_sent_by_many_at_once_is_appended_once(
        self, memory: HybridMemoryService, store: Store, crowd: Crowd
    ) -> None:
        await open_session(memory)

        sent = await crowd.gather([lambda: memory.sessions.append_event("s1", {"id": "e1"}, {"a": 1})] * 12)

        assert sent == [sent[0]] * 12
        assert await peek(store, "SELECT sequence FROM events") == [(1,)]
        assert await peek(store, "SELECT COUNT(*) FROM journal WHERE entity = 'event'") == [(1,)]

    # -- batches and crowds

    async def test_a_batch_is_appended_in_order_and_its_state_too(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)
        batch = [EventDraft({"n": n}, {"x": n, f"y{n}": n}) for n in range(1, 4)]

        appended = await memory.sessions.append_events("s1", [{"n": 0}, *batch], actor="bot", task_id="t1")

        assert [(event.sequence, event.body) for event in appended] == [(n + 1, {"n": n}) for n in range(4)]
        assert await memory.sessions.get_state("s1", "x") == 3
        assert await memory.state.entry("x", session_id="s1") == (await memory.state.entries("x", session_id="s1"))[0]
        rows = await peek(store, "SELECT version FROM journal WHERE entity = 'event' ORDER BY position")
        assert rows == [(2,), (3,), (4,), (5,)]
        assert {(event.actor, event.task_id) for event in appended} == {("bot", "t1")}

    async def test_a_batch_is_appended_whole_or_not_at_all(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)

        async with refused(store, InvalidValue):
            await memory.sessions.append_events("s1", [{"n": 1}, {"n": float("inf")}])
        async with refused(store, InvalidInput, "project_id"):
            await memory.sessions.append_events("s1", [{"n": 1}, EventDraft({"n": 2}, {"a": 1, "project:p": 1})])

    async def test_an_empty_batch_does_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)

        async with unchanged(store):
            assert await memory.sessions.append_events("s1", []) == []

    async def test_many_writers_of_one_session_leave_no_gap(
        self, memory: HybridMemoryService, store: Store, crowd: Crowd
    ) -> None:
        await open_session(memory)

        def writer(number: int) -> Callable[[], Any]:
            async def work() -> list[int]:
                single = await memory.sessions.append_event("s1", {"w": number})
                batch = await memory.sessions.append_events(
                    "s1", [{"w": number, "id": f"{number}-{n}"} for n in (1, 2)]
                )
                assert batch[1].sequence == batch[0].sequence + 1
                return sequences([single, *batch])

            return work

        taken = await crowd.gather([writer(number) for number in range(20)])

        assert sorted(sequence for each in taken for sequence in each) == list(range(1, 61))
        assert sequences(await memory.sessions.events("s1")) == list(range(1, 61))
        assert await peek(store, "SELECT event_count, version FROM sessions") == [(60, 61)]

    async def test_sessions_that_share_state_in_any_order_all_get_through(
        self, memory: HybridMemoryService, crowd: Crowd
    ) -> None:
        keys = ["app:a", "user:a", "app:b", "user:b"]
        for number in range(8):
            await open_session(memory, f"s{number}")

        def writer(number: int) -> Callable[[], Any]:
            order = keys if number % 2 else keys[::-1]
            batch = [EventDraft({}, {key: number}) for key in order]
            return lambda: memory.sessions.append_events(f"s{number}", batch)

        await crowd.gather([writer(number) for number in range(8)])

        found = [await memory.state.entry(key, session_id="s0") for key in keys]
        assert [entry.version for entry in found if entry] == [8, 8, 8, 8]

    # -- reading a part

    async def test_the_last_events_and_those_after_a_number(self, memory: HybridMemoryService) -> None:
        await open_session(memory)
        await memory.sessions.append_events("s1", [{} for _ in range(10)])

        async def read(**window: Any) -> list[int]:
            return sequences(await memory.sessions.events("s1", **window))

        assert await read() == list(range(1, 11))
        assert await read(last=3) == [8, 9, 10]
        assert await read(last=0) == []
        assert await read(last=99) == list(range(1, 11))
        assert await read(after=7) == [8, 9, 10]
        assert await read(after=0, limit=2) == [1, 2]
        assert await read(after=4, limit=3) == [5, 6, 7]
        assert await read(after=10) == []
        assert await read(limit=1) == [1]

    async def test_a_window_that_has_no_meaning_is_refused(self, memory: HybridMemoryService) -> None:
        await open_session(memory)
        strange: list[dict[str, Any]] = [
            {"last": 1, "after": 1}, {"last": 1, "limit": 1}, {"last": -1}, {"after": -1}, {"last": True},
            {"after": "1"}, {"last": 1.5}, {"limit": 0}, {"limit": 10_001}, {"limit": True}, {"limit": "1"},
        ]  # fmt: skip

        for window in strange:
            with pytest.raises(InvalidInput):
                await memory.sessions.events("s1", **window)

    async def test_a_long_log_is_read_whole(self, memory: HybridMemoryService) -> None:
        await open_session(memory)
        many = 2 * SHORT_READ + 50
        await memory.sessions.append_events("s1", [{"n": n} for n in range(many)])

        session = await memory.sessions.get_session("s1")
        events = await memory.sessions.events("s1", last=SHORT_READ + 1)

        assert session is not None
        assert sequences(session.events) == list(range(1, many + 1))
        assert sequences(events) == list(range(many - SHORT_READ, many + 1))

    # -- archiving

    async def test_old_events_are_archived_and_nothing_is_lost(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        keeping = with_settings(memory, max_events_kept=10).sessions
        written = [await keeping.append_event("s1", {"n": n}, {"x": n}) for n in range(1, 21)]
        written += await keeping.append_events("s1", [{"n": n} for n in range(21, 36)])

        assert await keeping.events("s1", archived=True) == written
        [(count, archived)] = await peek(store, "SELECT event_count, archived_count FROM sessions")
        assert (count, archived) == (35, 25)
        assert await peek(store, "SELECT MIN(sequence), MAX(sequence), COUNT(*) FROM events") == [(26, 35, 10)]
        assert await peek(store, "SELECT MIN(sequence), MAX(sequence), COUNT(*) FROM archived_events") == [(1, 25, 25)]
        session = await keeping.get_session("s1")
        assert session is not None
        assert sequences(session.events) == list(range(26, 36))
        assert (session.event_count, session.archived_count) == (35, 25)

    async def test_archiving_waits_for_a_tenth_and_is_recorded(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        keeping = with_settings(memory, max_events_kept=20).sessions
        for _ in range(26):
            await keeping.append_event("s1", {})

        moves = [change.payload for change in await memory.audit(operation="archive_events")]

        assert moves == [{"first": 4, "last": 6}, {"first": 1, "last": 3}]
        assert await peek(store, "SELECT archived_count FROM sessions") == [(6,)]

    async def test_windows_reach_over_the_edge_of_the_archive(self, memory: HybridMemoryService) -> None:
        await open_session(memory)
        keeping = with_settings(memory, max_events_kept=5).sessions
        await keeping.append_events("s1", [{} for _ in range(12)])

        async def read(**window: Any) -> list[int]:
            return sequences(await keeping.events("s1", archived=True, **window))

        assert await read(last=3) == [10, 11, 12]
        assert await read(last=7) == [6, 7, 8, 9, 10, 11, 12]
        assert await read(last=5) == [8, 9, 10, 11, 12]
        assert await read(after=5, limit=4) == [6, 7, 8, 9]
        assert await read(after=0, limit=3) == [1, 2, 3]
        assert await read(after=9) == [10, 11, 12]
        assert sequences(await keeping.events("s1", after=2)) == [8, 9, 10, 11, 12]

    async def test_an_archived_event_is_still_known(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        keeping = with_settings(memory, max_events_kept=1).sessions
        first = await keeping.append_event("s1", {"id": "e1"}, {"a": 1})
        await keeping.append_event("s1", {"id": "e2"})
        assert await peek(store, "SELECT id FROM archived_events") == [("e1",)]

        async with unchanged(store):
            assert await keeping.append_event("s1", {"id": "e1"}, {"a": 1}) == first
        async with refused(store, EventExists, "e1"):
            await keeping.append_event("s1", {"id": "e1", "other": 1})
        assert sequences(await keeping.append_events("s1", [{"id": "e1"}, {"id": "e3"}][1:])) == [3]

    async def test_a_log_that_was_planted_goes_on_where_it_ended(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)
        await plant(store, "UPDATE sessions SET event_count = 41, version = 50 WHERE id = 's1'")

        assert (await memory.sessions.append_event("s1", {}, expected_version=50)).sequence == 42
