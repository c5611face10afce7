"""The contract of `StateStore`: five scopes, versions, merging, comparing, updating, watching."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from mnemon.errors import ConflictError, InvalidIdentifier, InvalidInput, InvalidValue, SessionNotFound, ValueTooLarge
from mnemon.hybrid import HybridMemoryService
from mnemon.model import StateEntry
from mnemon.ports import Store
from mnemon.state import Owner
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd
from mnemon.testing.faults import with_faults
from mnemon.testing.handles import with_settings
from mnemon.testing.suite import Suite, journal_after, last_position, long_name, peek, plant, refused, unchanged

S1: Owner = {"session_id": "s1"}
SCOPES = {
    "plain": "session:s1",
    "odd:key": "session:s1",
    "session:a": "session:s1",
    "temp:a": "temp:s1",
    "user:a": "user:alice:helpdesk",
    "app:a": "app:helpdesk",
    "project:a": "project:apollo",
}


async def open_session(
    memory: HybridMemoryService,
    session_id: str = "s1",
    user: str = "alice",
    app: str = "helpdesk",
    project: str | None = "apollo",
) -> None:
    await memory.sessions.create_session(session_id, app, user, project)


async def plant_state(store: Store, namespace: str, key: str, value: Any, version: int = 1) -> None:
    sql = (
        "INSERT INTO state (namespace, key, value, version, updated_at) VALUES (:namespace, :key, :value, :version, 0)"
    )
    await plant(store, sql, namespace=namespace, key=key, value=json.dumps(value), version=version)


class StateSuite(Suite):
    """Any backend must pass; override the fixture `memory`."""

    # -- scopes

    async def test_each_key_stands_with_its_owner(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)

        for number, (key, namespace) in enumerate(SCOPES.items()):
            assert await memory.state.set(key, {"n": number}, **S1) == 1
            rows = await peek(store, "SELECT key, value, version FROM state WHERE namespace = :n", n=namespace)
            assert (key, f'{{"n":{number}}}', 1) in rows

    async def test_what_stands_with_an_owner_is_read(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await open_session(memory)
        for key, namespace in SCOPES.items():
            await plant_state(store, namespace, key, ["planted", key], version=4)
            await plant_state(store, f"{namespace}x", key, "of another")

        for key in SCOPES:
            assert await memory.state.get(key, **S1) == ["planted", key]
            entry = await memory.state.entry(key, **S1)
            assert entry is not None
            assert (entry.key, entry.value, entry.version, entry.is_deleted) == (key, ["planted", key], 4, False)
            assert entry.updated_at < clock.moment

    async def test_scopes_are_shared_as_far_as_they_should_be(self, memory: HybridMemoryService) -> None:
        await open_session(memory)
        await open_session(memory, "same-user", project=None)
        await open_session(memory, "other-user", user="bob")
        await open_session(memory, "other-app", app="sales", project=None)
        for key in SCOPES:
            await memory.state.set(key, "mine", **S1)

        async def shared(session_id: str) -> set[str]:
            session = await memory.sessions.get_session(session_id)
            assert session is not None
            return set(session.state)

        assert await shared("s1") == set(SCOPES)
        assert await shared("same-user") == {"user:a", "app:a"}
        assert await shared("other-user") == {"app:a", "project:a"}
        assert await shared("other-app") == set()

    async def test_shared_state_can_be_reached_without_a_session(self, memory: HybridMemoryService) -> None:
        await open_session(memory)
        owners: dict[str, Owner] = {
            "user:a": {"app_name": "helpdesk", "user_id": "alice"},
            "app:a": {"app_name": "helpdesk"},
            "project:a": {"project_id": "apollo"},
        }

        for key, owner in owners.items():
            assert await memory.state.set(key, key, **owner) == 1
            assert await memory.state.get(key, **S1) == key
            assert await memory.state.update(key, lambda value: [value], **S1) == [key]
            assert await memory.state.get(key, **owner) == [key]
            assert await memory.state.delete(key, **owner)
            assert await memory.state.entry(key, **S1) is None

    async def test_a_missing_owner_is_named(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory, project=None)
        cases: list[tuple[str, Owner, str]] = [
            ("plain", {}, "session_id"),
            ("temp:a", {"app_name": "helpdesk", "user_id": "alice"}, "session_id"),
            ("user:a", {"app_name": "helpdesk"}, "user_id"),
            ("user:a", {}, "user_id and app_name"),
            ("app:a", {"user_id": "alice"}, "app_name"),
            ("project:a", {"project_id": None}, "project_id"),
            ("project:a", S1, "project_id"),
        ]
        for key, owner, missing in cases:
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda k=key, o=owner: memory.state.get(k, **o),
                lambda k=key, o=owner: memory.state.set(k, 1, **o),
                lambda k=key, o=owner: memory.state.compare_and_set(k, 1, 0, **o),
                lambda k=key, o=owner: memory.state.update(k, lambda _: 1, **o),
                lambda k=key, o=owner: memory.state.delete(k, **o),
                lambda k=key, o=owner: memory.state.entries(k, **o),
            ]
            for call in calls:
                async with refused(store, InvalidInput, missing):
                    await call()

    async def test_owners_that_cannot_be_are_refused(self, memory: HybridMemoryService, store: Store) -> None:
        unknown: Any = {"sesion_id": "s1"}
        async with refused(store, InvalidInput, "unknown argument sesion_id"):
            await memory.state.set("a", 1, **unknown)
        async with refused(store, InvalidIdentifier, "user_id"):
            await memory.state.set("user:a", 1, app_name="helpdesk", user_id="a:b")
        async with refused(store, SessionNotFound, "nobody"):
            await memory.state.set("user:a", 1, session_id="nobody")
        async with refused(store, SessionNotFound, "nobody"):
            await memory.state.entries("", session_id="nobody")

    # -- getting and setting

    async def test_a_key_that_is_not_set_gives_the_default(self, memory: HybridMemoryService) -> None:
        await open_session(memory)

        assert await memory.state.get("a", **S1) is None
        assert await memory.state.get("a", default=7, **S1) == 7
        assert await memory.state.entry("a", **S1) is None
        await memory.state.set("a", None, **S1)
        assert await memory.state.get("a", default=7, **S1) is None

    async def test_every_change_of_a_key_is_a_version(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        await open_session(memory)

        assert [await memory.state.set("user:a", n, **S1) for n in range(3)] == [1, 2, 3]
        changed = clock.advance()
        assert await memory.state.compare_and_set("user:a", "x", 3, **S1) == 4
        assert await memory.state.update("user:a", str.upper, **S1) == "X"

        assert await memory.state.entry("user:a", **S1) == StateEntry("user:a", "X", 5, changed)

    async def test_keys_and_values_that_cannot_be_kept_are_refused(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)
        small = with_settings(memory, max_key_length=10, max_value_bytes=20).state
        cycle: list[Any] = []
        cycle.append(cycle)
        strange: Any = 5
        for key in ("", "a\x00", "\ud800", "x" * 11, strange):
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda k=key: small.set(k, 1, **S1),
                lambda k=key: small.get(k, **S1),
                lambda k=key: small.compare_and_set(k, 1, 0, **S1),
                lambda k=key: small.update(k, lambda _: 1, **S1),
                lambda k=key: small.delete(k, **S1),
            ]
            for call in calls:
                async with refused(store, InvalidIdentifier, "a state key"):
                    await call()
        for value in (float("nan"), b"", cycle, {1: 2}, 2**64, "\ud800", object()):
            async with refused(store, InvalidValue, "^a"):
                await small.set("a", value, **S1)
        async with refused(store, ValueTooLarge, "max_value_bytes"):
            await small.set("a", "x" * 20, **S1)
        not_a_mapping: Any = [("a", 1)]
        async with refused(store, InvalidValue, "mapping"):
            await small.merge(not_a_mapping, **S1)

    async def test_names_may_be_as_long_as_the_limits(self, memory: HybridMemoryService) -> None:
        session, app, user, project = (long_name(256, what) for what in ("session", "app", "user", "project"))
        await memory.sessions.create_session(session, app, user, project)
        keys = [f"{scope}:{long_name(500, scope)}" for scope in ("temp", "session", "user", "app", "project")]

        event = await memory.sessions.append_event(
            session, {}, dict.fromkeys(keys, 1), event_id=long_name(256, "event"), actor=user, task_id=project
        )

        found = await memory.sessions.get_session(session)
        assert found is not None
        assert (found.events, found.state) == ([event], dict.fromkeys(keys, 1))
        assert len(await memory.audit(session_id=session, actor=user, task_id=project)) == 4

    async def test_a_session_s_own_state_is_a_change_of_the_session(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await open_session(memory)
        later = clock.advance()

        await memory.state.set("a", 1, **S1)
        await memory.state.set("user:a", 1, **S1)

        session = await memory.sessions.get_session("s1")
        assert session is not None
        assert (session.version, session.last_update_time, session.status) == (2, later, "created")

    # -- merging

    async def test_merging_sets_keys_of_any_scope_at_once(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        await memory.state.set("user:b", 0, **S1)
        before = await last_position(store)

        merged = await memory.state.merge({"z": 1, "a": 2, "user:b": 3, "temp:c": 4}, actor="bot", task_id="t1", **S1)

        assert merged == {"z": 1, "a": 1, "user:b": 2, "temp:c": 1}
        assert sorted(await journal_after(store, before)) == [
            ("state", "session:s1", "merge", None, "session:s1"),
            ("state", "temp:s1", "merge", None, "session:s1"),
            ("state", "user:alice:helpdesk", "merge", None, "user:alice:helpdesk"),
        ]
        page = await memory.audit(actor="bot", task_id="t1", entity_id="session:s1")
        assert [change.payload for change in page] == [{"keys": ["a", "z"]}]

    async def test_merging_is_all_or_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory, project=None)

        async with refused(store, InvalidInput, "project_id"):
            await memory.state.merge({"a": 1, "app:b": 2, "project:c": 3}, **S1)
        async with refused(store, InvalidValue, "^b is set"):
            await memory.state.merge({"a": 1, "b": {1, 2}}, **S1)
        async with unchanged(store):
            assert await memory.state.merge({}, **S1) == {}

    async def test_keys_that_others_set_survive_a_merge(self, memory: HybridMemoryService) -> None:
        await open_session(memory)
        await open_session(memory, "s2")

        await memory.state.merge({"user:a": 1, "user:b": 1}, **S1)
        await memory.state.merge({"user:b": 2, "user:c": 2}, session_id="s2")

        assert {entry.key: entry.value for entry in await memory.state.entries("user:", **S1)} == {
            "user:a": 1,
            "user:b": 2,
            "user:c": 2,
        }

    async def test_fifty_sessions_of_one_user_write_fifty_keys(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        for number in range(50):
            await open_session(memory, f"s{number}")

        def writer(number: int) -> Callable[[], Any]:
            async def work() -> None:
                delta = {f"user:{number}": number, "app:last": number}
                await memory.sessions.append_event(f"s{number}", {"n": number}, delta)
                await memory.state.merge({f"user:{number}": [number], "user:shared": number}, session_id=f"s{number}")

            return work

        await crowd.gather([writer(number) for number in range(50)])

        found = {entry.key: entry for entry in await memory.state.entries("user:", session_id="s0")}
        assert {key: entry.value for key, entry in found.items() if key != "user:shared"} == {
            f"user:{number}": [number] for number in range(50)
        }
        assert found["user:shared"].version == 50
        last = await memory.state.entry("app:last", app_name="helpdesk")
        assert last is not None
        assert last.version == 50

    # -- comparing

    async def test_compare_and_set_needs_the_present_version(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        for key in SCOPES:
            assert await memory.state.compare_and_set(key, "first", 0, **S1) == 1
            assert await memory.state.compare_and_set(key, "second", 1, actor="bot", **S1) == 2
            for stale in (0, 1, 3, -1):
                async with refused(store, ConflictError, f"is version 2, not version {stale}"):
                    await memory.state.compare_and_set(key, "lost", stale, **S1)
            async with refused(store, ConflictError, "is not set, not version 1"):
                await memory.state.compare_and_set(f"{key}-unset", "lost", 1, **S1)
            assert await memory.state.get(key, **S1) == "second"
        assert len(await peek(store, "SELECT 1 FROM journal WHERE operation = 'set' AND actor = 'bot'")) == len(SCOPES)

    async def test_of_many_that_compare_and_set_one_wins(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        await open_session(memory)

        def attempt(number: int) -> Callable[[], Any]:
            async def work() -> int | None:
                try:
                    await memory.state.compare_and_set("user:a", number, 0, **S1)
                except ConflictError:
                    return None
                return number

            return work

        won = [number for number in await crowd.gather([attempt(number) for number in range(20)]) if number is not None]

        assert len(won) == 1
        assert await memory.state.get("user:a", **S1) == won[0]

    # -- updating

    async def test_update_gives_the_function_the_value_or_the_default(self, memory: HybridMemoryService) -> None:
        await open_session(memory)

        assert await memory.state.update("a", lambda value: [value], **S1) == [None]
        assert await memory.state.update("b", lambda value: value + 1, default=10, **S1) == 11
        assert await memory.state.update("b", lambda value: value + 1, default=10, **S1) == 12
        assert await memory.state.get("b", **S1) == 12

    async def test_updates_that_come_together_all_count(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        await open_session(memory)
        owner: Owner = {"app_name": "helpdesk"}

        async def shared() -> None:
            await memory.state.update("app:n", lambda value: value + 1, default=0, **owner)

        async def own() -> None:
            await memory.state.update("n", lambda value: value + 1, default=0, **S1)

        await crowd.gather([work for _ in range(25) for work in (shared, own)])

        assert await memory.state.get("app:n", **owner) == 25
        assert await memory.state.get("n", **S1) == 25

    async def test_an_update_that_was_overtaken_runs_again(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        await memory.state.set("a", 1, **S1)
        raced, faults = with_faults(memory)
        faults.race("replace_entry", times=2)
        faults.race("create_entry")
        given: list[Any] = []

        def double(value: int | None) -> int:
            given.append(value)
            return 2 * (value or 5)

        assert await raced.state.update("a", double, **S1) == 2
        assert await raced.state.update("new", double, **S1) == 10

        assert given == [1, 1, 1, None, None]
        rows = await peek(store, "SELECT COUNT(*) FROM journal WHERE entity = 'state' AND operation = 'set'")
        assert rows == [(2,)]

    async def test_an_update_that_fails_changes_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        await memory.state.set("a", 1, **S1)

        def explode(_: Any) -> Any:
            raise ZeroDivisionError

        async with refused(store, ZeroDivisionError):
            await memory.state.update("a", explode, **S1)
        async with refused(store, InvalidValue, "^a is bytes"):
            await memory.state.update("a", lambda _: b"", **S1)

    # -- deleting

    async def test_a_deleted_key_is_not_set_and_its_version_goes_on(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await open_session(memory)
        for key in SCOPES:
            assert not await memory.state.delete(key, **S1)
            await memory.state.set(key, 1, **S1)
            assert await memory.state.delete(key, actor="bot", task_id="t1", **S1)
            assert not await memory.state.delete(key, **S1)
            assert await memory.state.get(key, default="gone", **S1) == "gone"
            for stale in (1, 2):
                async with refused(store, ConflictError, "is not set"):
                    await memory.state.compare_and_set(key, "lost", stale, **S1)
            assert await memory.state.compare_and_set(key, 2, 0, **S1) == 3
            assert await memory.state.delete(key, **S1)
            assert await memory.state.set(key, 3, **S1) == 5
            assert await memory.state.delete(key, **S1)
            assert await memory.state.update(key, lambda value: [value], default="new", **S1) == ["new"]
            entry = await memory.state.entry(key, **S1)
            assert entry is not None
            assert entry.version == 7

        rows = await peek(store, "SELECT version FROM journal WHERE operation = 'delete' AND actor = 'bot'")
        assert rows == [(2,)] * len(SCOPES)

    async def test_deleting_can_need_the_present_version(self, memory: HybridMemoryService, store: Store) -> None:
        await open_session(memory)
        await memory.state.set("a", 1, **S1)
        await memory.state.set("a", 2, **S1)

        for stale in (0, 1, 3):
            async with refused(store, ConflictError, f"is version 2, not version {stale}"):
                await memory.state.delete("a", expected_version=stale, **S1)
        async with refused(store, ConflictError, "is not set"):
            await memory.state.delete("b", expected_version=1, **S1)
        assert await memory.state.delete("a", expected_version=2, **S1)

    # -- listing

    async def test_entries_are_listed_by_prefix_in_key_order(self, memory: HybridMemoryService) -> None:
        await open_session(memory)
        keys = ["user:b", "user:a_1", "user:a%", "user:a", "user:A", "user:aé", "user:a\U0010fffe", "user:ab"]
        await memory.state.merge(dict.fromkeys(keys, 1), **S1)
        await memory.state.merge({"session:x": 1, "plain": 1, "temp:y": 1, "zé": 1}, **S1)
        await memory.state.delete("user:ab", **S1)

        async def listed(prefix: str) -> list[str]:
            return [entry.key for entry in await memory.state.entries(prefix, **S1)]

        assert await listed("user:") == sorted(key for key in keys if key != "user:ab")
        assert await listed("user:a") == ["user:a", "user:a%", "user:a_1", "user:aé", "user:a\U0010fffe"]
        assert await listed("user:a%") == ["user:a%"]
        assert await listed("user:zzz") == []
        assert await listed("") == ["plain", "session:x", "zé"]
        assert await listed("session:") == ["session:x"]
        assert await listed("temp:") == ["temp:y"]
        assert await listed("use") == []

    # -- watching

    async def test_a_watch_shows_what_came_after_a_position(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await open_session(memory)
        await memory.state.set("user:a", "before", **S1)
        start = await memory.position()
        await memory.state.set("user:other", 1, app_name="helpdesk", user_id="bob")
        await memory.state.merge({"user:b": 1, "plain": 2, "app:c": 3}, **S1)
        await memory.state.delete("user:b", **S1)
        await memory.state.set("user:end", "end", **S1)

        seen: list[StateEntry] = []
        async for entry in memory.state.watch("user:", after=start, **S1):
            seen.append(entry)
            if entry.key == "user:end":
                break

        gone = StateEntry("user:b", None, 2, clock.moment, True)  # twice: an entry is what it is when it is read
        assert seen == [gone, gone, StateEntry("user:end", "end", 1, clock.moment)]

    async def test_a_watch_passes_over_what_is_gone_without_a_trace(self, memory: HybridMemoryService) -> None:
        await open_session(memory)
        await memory.state.set("old", 1, **S1)
        await memory.sessions.delete_session("s1")
        await open_session(memory)
        await memory.state.set("new", 2, **S1)

        entry = await anext(memory.state.watch("", after=0, **S1))

        assert (entry.key, entry.value, entry.version) == ("new", 2, 1)

    async def test_a_watch_waits_for_what_comes(self, memory: HybridMemoryService, crowd: Crowd) -> None:
        await open_session(memory)
        await memory.state.set("temp:a", "before", **S1)

        async def change() -> None:
            await memory.state.set("temp:b", 1, **S1)
            await memory.state.set("temp:a", 2, **S1)

        async with crowd.meanwhile(change):
            entry = await anext(memory.state.watch("temp:a", **S1))

        assert (entry.key, entry.value, entry.version) == ("temp:a", 2, 2)
