"""Whatever is done, in whatever order, every backend agrees with a model in plain Python.

Hypothesis chooses the steps. After each one the model and the database are read and compared; at
the end the journal is compared with what the model did.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import mnemon
import mnemon.sync
from mnemon.errors import (
    ConflictError,
    EventExists,
    InvalidInput,
    InvalidTransition,
    MemoryExists,
    MemoryNotFound,
    MnemonError,
    SessionExists,
    SessionNotFound,
)
from mnemon.model import Change, Event, Memory, SessionStatus
from mnemon.sessions import TRANSITIONS
from mnemon.testing import ManualClock
from tests.conformance.backends import SETTINGS, url_of

RUNS = count()
KEPT = 4  # so few that archiving happens all the time

SESSIONS = ("s1", "s2", "s3")
USERS = {"s1": "ann", "s2": "ann", "s3": "ben"}
PROJECTS = {"s1": "p", "s2": None, "s3": "p"}
KEYS = ("k", "session:k", "temp:k", "user:k", "user:l", "app:k", "project:k")
PLACES = (("notes", "a"), ("notes", "b"), ("notes:deep", "a"))

sessions = st.sampled_from(SESSIONS)
keys = st.sampled_from(KEYS)
places = st.sampled_from(PLACES)
values = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.text("ab", max_size=3), st.lists(st.integers(0, 3), max_size=2)
)
deltas = st.dictionaries(keys, values, max_size=3)
event_ids = st.none() | st.sampled_from(["e1", "e2", "e3"])
guesses = st.none() | st.integers(0, 6)


# -- the model


@dataclass
class Entry:
    value: Any
    version: int
    is_set: bool = True


@dataclass
class ModelSession:
    user: str
    project: str | None
    status: SessionStatus = SessionStatus.CREATED
    version: int = 1
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[tuple[str | None, dict[str, Any], dict[str, Any] | None]] = field(default_factory=list[Any])
    archived: int = 0


@dataclass
class Version:
    value: Any
    at: datetime
    is_deleted: bool = False


class Model:
    """What should be there. Each method does what the service should, or raises what it should raise."""

    def __init__(self) -> None:
        self.sessions: dict[str, ModelSession] = {}
        self.state: dict[tuple[str, str], Entry] = {}
        self.memories: dict[tuple[str, str], list[Version]] = {}
        self.journal: list[tuple[str, str, str]] = []  # entity, id, operation

    # sessions

    def create(self, name: str, state: dict[str, Any]) -> None:
        if name in self.sessions:
            raise SessionExists
        self._check_owners(PROJECTS[name], state)
        self.sessions[name] = ModelSession(USERS[name], PROJECTS[name])
        self.journal.append(("session", name, "create"))
        self._merge(name, state, own=True)

    def append(self, name: str, drafts: list[tuple[str | None, dict[str, Any], dict[str, Any]]], expected: Any) -> None:
        session = self._session(name)
        named = [identifier for identifier, _, _ in drafts if identifier]
        known = {identifier: (body, delta) for identifier, body, delta in session.events if identifier}
        fresh: list[tuple[str | None, dict[str, Any], dict[str, Any]]] = []
        for identifier, body, delta in drafts:
            if identifier in known:
                if not same(known[identifier], (body, self._kept(delta))):
                    raise EventExists
            else:
                fresh.append((identifier, body, delta))
        if len(set(named)) < len(named):
            raise EventExists
        if not fresh:
            return
        self._check_version(session, expected)
        if session.status in (SessionStatus.TERMINATED, SessionStatus.ARCHIVED):
            raise InvalidTransition
        for _, _, delta in fresh:
            self._check_owners(session.project, delta)
        self._append(name, session, fresh)

    def _append(self, name: str, session: ModelSession, fresh: list[Any]) -> None:
        if session.status is SessionStatus.CREATED:
            session.status = SessionStatus.ACTIVE
        for identifier, body, delta in fresh:
            session.events.append((identifier, body, self._kept(delta)))
            session.version += 1
            self.journal.append(("event", identifier or f"{name}#{len(session.events)}", "append"))
        for _, _, delta in fresh:
            self._write(name, delta)
        self._tell(name, [key for _, _, delta in fresh for key in sorted(delta)], own=False)
        if len(session.events) - session.archived > KEPT + KEPT // 10:
            session.archived = len(session.events) - KEPT
            self.journal.append(("session", name, "archive_events"))

    def move(self, name: str, target: SessionStatus, expected: Any) -> None:
        session = self._session(name)
        self._check_version(session, expected)
        if session.status is target:
            return
        if target not in TRANSITIONS[session.status]:
            raise InvalidTransition
        session.status = target
        session.version += 1
        if target is SessionStatus.TERMINATED:
            self._clear(f"temp:{name}")
        self.journal.append(("session", name, "status"))

    def describe(self, name: str, metadata: dict[str, Any], expected: Any) -> None:
        session = self._session(name)
        self._check_version(session, expected)
        session.metadata = metadata
        session.version += 1
        self.journal.append(("session", name, "metadata"))

    def delete(self, name: str) -> None:
        self._session(name)
        del self.sessions[name]
        for scope in ("temp", "session"):
            self._clear(f"{scope}:{name}")
        self.journal.append(("session", name, "delete"))

    # state

    def merge(self, name: str, delta: dict[str, Any]) -> None:
        if delta:
            self._use(name, delta)
            self._merge(name, delta, own=True)

    def compare_and_set(self, name: str, key: str, value: Any, expected: int) -> None:
        self._use(name, {key: value})
        entry = self.state.get(self._place(name, key))
        present = entry.version if entry and entry.is_set else 0
        if present != expected:
            self._unuse(name, key)
            raise ConflictError
        self._set(name, key, value, "set")

    def add_up(self, name: str, key: str) -> Any:
        self._use(name, {key: None})
        entry = self.state.get(self._place(name, key))
        value = [entry.value if entry and entry.is_set else "default"]
        self._set(name, key, value, "set")
        return value

    def remove(self, name: str, key: str, expected: Any) -> bool:
        self._use(name, {key: None})
        entry = self.state.get(self._place(name, key))
        present = entry.version if entry and entry.is_set else None
        if expected is not None and expected != present:
            self._unuse(name, key)
            raise ConflictError
        if entry is None or not entry.is_set:
            return False
        entry.value, entry.is_set, entry.version = None, False, entry.version + 1
        self.journal.append(("state", self._place(name, key)[0], "delete"))
        return True

    def read(self, name: str) -> dict[str, Any]:
        """The state that a session sees."""
        namespaces = {self._place(name, key)[0] for key in KEYS if self.owner_of(name, key) is not None}
        return {key: e.value for (namespace, key), e in self.state.items() if namespace in namespaces and e.is_set}

    # memories

    def add(self, place: tuple[str, str], value: Any, at: datetime) -> None:
        versions = self.memories.setdefault(place, [])
        if versions and not versions[-1].is_deleted:
            raise MemoryExists
        self._remember(place, Version(value, at), "add")

    def change(self, place: tuple[str, str], value: Any, at: datetime, expected: Any) -> None:
        self._live(place, expected)
        self._remember(place, Version(value, at), "update")

    def put(self, place: tuple[str, str], value: Any, at: datetime) -> None:
        versions = self.memories.setdefault(place, [])
        if not versions or versions[-1].is_deleted:
            self._remember(place, Version(value, at), "add")
        elif not same(versions[-1].value, value):
            self._remember(place, Version(value, at), "update")

    def forget_all(self, at: datetime, erase: bool) -> int:
        wanted = [place for place in PLACES if self.memories.get(place)]
        wanted = [place for place in wanted if erase or not self.memories[place][-1].is_deleted]
        for place in wanted:
            if erase:
                self.purge(place)
            else:
                self.forget(place, at, None)
        return len(wanted)

    def forget(self, place: tuple[str, str], at: datetime, expected: Any) -> None:
        last = self._live(place, expected)
        self._remember(place, Version(last.value, at, True), "delete")

    def restore(self, place: tuple[str, str], version: int | None, at: datetime) -> None:
        versions = self.memories.get(place, [])
        live = [found for found in versions if not found.is_deleted]
        if version is None:
            chosen = live[-1] if live else None
        else:
            chosen = versions[version - 1] if 0 < version <= len(versions) else None
        if chosen is None or chosen.is_deleted:
            raise MemoryNotFound
        self._remember(place, Version(chosen.value, at), "restore")

    def purge(self, place: tuple[str, str]) -> None:
        if not self.memories.get(place):
            raise MemoryNotFound
        del self.memories[place]
        self.journal.append(("memory", place[1], "purge"))

    # the parts

    def _session(self, name: str) -> ModelSession:
        if name not in self.sessions:
            raise SessionNotFound
        return self.sessions[name]

    def _check_version(self, session: ModelSession, expected: Any) -> None:
        if expected is not None and expected != session.version:
            raise ConflictError

    def _check_owners(self, project: str | None, delta: dict[str, Any]) -> None:
        if project is None and any(key.startswith("project:") for key in delta):
            raise InvalidInput

    def _use(self, name: str, delta: dict[str, Any]) -> None:
        """A change of the session's own state is a change of the session."""
        session = self._session(name)
        if any(self._is_own(key) for key in delta):
            if session.status in (SessionStatus.TERMINATED, SessionStatus.ARCHIVED):
                raise InvalidTransition
            self._check_owners(session.project, delta)
            session.version += 1
        self._check_owners(session.project, delta)

    def _unuse(self, name: str, key: str) -> None:
        """The change did not happen after all."""
        if self._is_own(key):
            self.sessions[name].version -= 1

    def _is_own(self, key: str) -> bool:
        return not key.startswith(("user:", "app:", "project:"))

    def owner_of(self, name: str, key: str) -> str | None:
        scope = key.partition(":")[0] if ":" in key else "session"
        user, project = USERS[name], PROJECTS[name]
        return {"user": f"user:{user}:app", "app": "app:app", "project": project and f"project:{project}"}.get(
            scope, f"{scope}:{name}"
        )

    def _place(self, name: str, key: str) -> tuple[str, str]:
        return str(self.owner_of(name, key)), key

    def _kept(self, delta: dict[str, Any]) -> dict[str, Any] | None:
        return {key: value for key, value in delta.items() if not key.startswith("temp:")} if delta else None

    def _set(self, name: str, key: str, value: Any, operation: str) -> None:
        self._write(name, {key: value})
        self.journal.append(("state", self._place(name, key)[0], operation))

    def _write(self, name: str, delta: dict[str, Any]) -> None:
        for key, value in delta.items():
            entry = self.state.setdefault(self._place(name, key), Entry(None, 0))
            entry.value, entry.is_set, entry.version = value, True, entry.version + 1

    def _merge(self, name: str, delta: dict[str, Any], own: bool) -> None:
        self._write(name, delta)
        self._tell(name, sorted(delta), own)

    def _tell(self, name: str, touched: list[str], own: bool) -> None:
        """One entry for each owner, in key order; an event tells of its session's own keys itself."""
        owners = dict.fromkeys(self._place(name, key)[0] for key in touched if own or not self._is_own(key))
        self.journal += [("state", namespace, "merge") for namespace in owners]

    def _clear(self, namespace: str) -> None:
        self.state = {place: entry for place, entry in self.state.items() if place[0] != namespace}

    def _live(self, place: tuple[str, str], expected: Any) -> Version:
        versions = self.memories.get(place, [])
        if not versions:
            raise MemoryNotFound
        if expected is not None and expected != len(versions):
            raise ConflictError
        if versions[-1].is_deleted:
            raise MemoryNotFound
        return versions[-1]

    def _remember(self, place: tuple[str, str], version: Version, operation: str) -> None:
        self.memories[place].append(version)
        self.journal.append(("memory", place[1], operation))


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: to Python 1 is True."""
    return one == other and repr(sort(one)) == repr(sort(other))


def sort(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, sort(value[key])) for key in sorted(value)]
    return [sort(item) for item in value] if isinstance(value, list | tuple) else value


# -- the machine


class Machine(RuleBasedStateMachine):
    """Does the same to the model and to the memory, and compares."""

    def __init__(self, memory: mnemon.sync.BlockingMemory, clock: ManualClock) -> None:
        super().__init__()
        self.memory = memory
        self.clock = clock
        self.model = Model()
        self.run = f"r{next(RUNS)}"  # one database serves many runs: everything is named after its run
        self.start = memory.position()

    # the names of this run

    def own(self, name: str) -> str:
        """A name of the model, as this run calls it in the database."""
        return f"{self.run}-{name}"

    def namespace(self, place: tuple[str, str]) -> str:
        return f"project:{self.own('m')}:{place[0]}"

    def owner(self, namespace: str) -> str:
        """A namespace of the model, as it is in the database."""
        return ":".join(self.own(part) if number else part for number, part in enumerate(namespace.split(":")))

    def both(self, modelled: Any, real: Any) -> Any:
        """Do the same on both sides; either both succeed, or both raise the same."""
        self.clock.advance(0.001)
        try:
            expected = modelled()
        except MnemonError as error:
            with pytest.raises(type(error)):
                real()
            return None
        result = real()
        if expected is not None:
            assert same(result, expected)
        return result

    # sessions

    @initialize(state=deltas)
    def begin(self, state: dict[str, Any]) -> None:
        self.create("s1", state)

    @rule(name=sessions, state=deltas)
    def create(self, name: str, state: dict[str, Any]) -> None:
        project = PROJECTS[name] and self.own("p")
        self.both(
            lambda: self.model.create(name, state),
            lambda: self.memory.sessions.create_session(
                self.own(name), self.own("app"), self.own(USERS[name]), project, state
            ),
        )

    @rule(name=sessions, identifier=event_ids, value=values, delta=deltas, expected=guesses)
    def append(self, name: str, identifier: str | None, value: Any, delta: dict[str, Any], expected: Any) -> None:
        self.both(
            lambda: self.model.append(name, [(identifier, {"v": value}, delta)], expected),
            lambda: self.memory.sessions.append_event(
                self.own(name), {"v": value}, delta, event_id=identifier, expected_version=expected
            ),
        )

    @rule(name=sessions, drafts=st.lists(st.tuples(event_ids, values, deltas), max_size=4))
    def append_batch(self, name: str, drafts: list[tuple[str | None, Any, dict[str, Any]]]) -> None:
        if not drafts:
            assert self.memory.sessions.append_events(self.own(name), []) == []
            return
        batch = [mnemon.EventDraft({"v": value}, delta, identifier) for identifier, value, delta in drafts]
        named = [identifier for identifier, _, _ in drafts if identifier]
        if len(set(named)) < len(named):  # said before anybody looks at the session
            with pytest.raises(EventExists):
                self.memory.sessions.append_events(self.own(name), batch)
            return
        self.both(
            lambda: self.model.append(name, [(i, {"v": value}, delta) for i, value, delta in drafts], None),
            lambda: self.memory.sessions.append_events(self.own(name), batch),
        )

    @rule(name=sessions, status=st.sampled_from(list(SessionStatus)), expected=guesses)
    def move(self, name: str, status: SessionStatus, expected: Any) -> None:
        self.both(
            lambda: self.model.move(name, status, expected),
            lambda: self.memory.sessions.update_status(self.own(name), status, expected_version=expected),
        )

    @rule(name=sessions, metadata=st.dictionaries(st.sampled_from("ab"), values, max_size=2), expected=guesses)
    def describe(self, name: str, metadata: dict[str, Any], expected: Any) -> None:
        self.both(
            lambda: self.model.describe(name, metadata, expected),
            lambda: self.memory.sessions.update_metadata(self.own(name), metadata, expected_version=expected),
        )

    @rule(name=sessions)
    def delete(self, name: str) -> None:
        self.both(lambda: self.model.delete(name), lambda: self.memory.sessions.delete_session(self.own(name)))

    # state

    @rule(name=sessions, delta=deltas)
    def merge(self, name: str, delta: dict[str, Any]) -> None:
        self.both(
            lambda: self.model.merge(name, delta),
            lambda: self.memory.state.merge(delta, session_id=self.own(name)),
        )

    @rule(name=sessions, key=keys, value=values, expected=st.integers(0, 6))
    def compare_and_set(self, name: str, key: str, value: Any, expected: int) -> None:
        self.both(
            lambda: self.model.compare_and_set(name, key, value, expected),
            lambda: self.memory.state.compare_and_set(key, value, expected, session_id=self.own(name)),
        )

    @rule(name=sessions, key=keys)
    def update(self, name: str, key: str) -> None:
        self.both(
            lambda: self.model.add_up(name, key),
            lambda: self.memory.state.update(key, lambda value: [value], default="default", session_id=self.own(name)),
        )

    @rule(name=sessions, key=keys, expected=guesses)
    def remove(self, name: str, key: str, expected: Any) -> None:
        self.both(
            lambda: self.model.remove(name, key, expected),
            lambda: self.memory.state.delete(key, expected_version=expected, session_id=self.own(name)),
        )

    # memories

    @rule(place=places, value=values)
    def add(self, place: tuple[str, str], value: Any) -> None:
        self.both(
            lambda: self.model.add(place, value, self.clock.moment),
            lambda: self.memory.memories.add_memory(self.namespace(place), place[1], value),
        )

    @rule(place=places, value=values)
    def remember(self, place: tuple[str, str], value: Any) -> None:
        self.both(
            lambda: self.model.put(place, value, self.clock.moment),
            lambda: self.memory.remember(value, namespace=self.namespace(place), key=place[1]),
        )

    @rule(erase=st.booleans())
    def forget_all(self, erase: bool) -> None:
        self.both(
            lambda: self.model.forget_all(self.clock.moment, erase),
            lambda: self.memory.forget(f"project:{self.own('m')}", erase=erase),
        )

    @rule(place=places, value=values, expected=guesses)
    def change(self, place: tuple[str, str], value: Any, expected: Any) -> None:
        self.both(
            lambda: self.model.change(place, value, self.clock.moment, expected),
            lambda: self.memory.memories.update_memory(
                self.namespace(place), place[1], value, expected_version=expected
            ),
        )

    @rule(place=places, expected=guesses)
    def forget(self, place: tuple[str, str], expected: Any) -> None:
        self.both(
            lambda: self.model.forget(place, self.clock.moment, expected),
            lambda: self.memory.memories.delete_memory(self.namespace(place), place[1], expected_version=expected),
        )

    @rule(place=places, version=st.none() | st.integers(0, 6))
    def restore(self, place: tuple[str, str], version: int | None) -> None:
        self.both(
            lambda: self.model.restore(place, version, self.clock.moment),
            lambda: self.memory.memories.restore_memory(self.namespace(place), place[1], version),
        )

    @rule(place=places)
    def purge(self, place: tuple[str, str]) -> None:
        self.both(
            lambda: self.model.purge(place),
            lambda: self.memory.memories.purge_memory(self.namespace(place), place[1]),
        )

    # comparing

    @invariant()
    def sessions_agree(self) -> None:
        listed = {session.id for session in self.memory.sessions.list_sessions(app_name=self.own("app"))}
        assert listed == {self.own(name) for name in self.model.sessions}
        for name in SESSIONS:
            found = self.memory.sessions.get_session(self.own(name))
            expected = self.model.sessions.get(name)
            if expected is None:
                assert found is None
                continue
            assert found is not None
            assert (found.status, found.version, found.archived_count) == (
                expected.status, expected.version, expected.archived,
            )  # fmt: skip
            assert same(found.metadata, expected.metadata)
            assert same(found.state, self.model.read(name))
            whole = self.memory.sessions.events(self.own(name), archived=True)
            assert same([self.plain(event) for event in whole], [self.modelled(name, n) for n in range(len(whole))])
            assert found.events == whole[expected.archived :]
            assert found.event_count == len(whole) == len(expected.events)
            assert self.memory.sessions.events(self.own(name), last=3, archived=True) == whole[-3:]

    def plain(self, event: Event) -> tuple[Any, ...]:
        return event.sequence, event.id, event.body, event.state_delta

    def modelled(self, name: str, index: int) -> tuple[Any, ...]:
        identifier, body, delta = self.model.sessions[name].events[index]
        return index + 1, identifier or f"{self.own(name)}#{index + 1}", body, delta

    @invariant()
    def state_agrees(self) -> None:
        for name in self.model.sessions:
            for prefix in ("", "temp:", "user:", "app:"):
                entries = self.memory.state.entries(prefix, session_id=self.own(name))
                found = {entry.key: (entry.value, entry.version) for entry in entries}
                owner = self.model.owner_of(name, prefix or "k")
                expected = {
                    key: (entry.value, entry.version)
                    for (namespace, key), entry in self.model.state.items()
                    if namespace == owner and entry.is_set
                }
                assert same(found, expected)

    @invariant()
    def memories_agree(self) -> None:
        live: list[Memory] = []
        for place in PLACES:
            versions = self.model.memories.get(place, [])
            found = self.memory.memories.get_memory_history(self.namespace(place), place[1])
            assert same(
                [(m.version, m.value, m.is_deleted, m.updated_at) for m in found],
                [(n, v.value, v.is_deleted, v.at) for n, v in enumerate(versions, 1)],
            )
            newest = self.memory.memories.get_memory(self.namespace(place), place[1])
            assert newest == (found[-1] if found and not found[-1].is_deleted else None)
            live += [newest] if newest else []
            if versions:
                middle = versions[len(versions) // 2]
                held = self.memory.memories.get_memory(self.namespace(place), place[1], as_of=middle.at)
                assert (held.value if held else None) == (None if middle.is_deleted else middle.value)
        assert list(self.memory.memories.search_memories(f"project:{self.own('m')}")) == live

    @invariant()
    def recall_agrees(self) -> None:
        """Whatever is asked by its key is found at once as it is, and as it was; and nothing else is."""
        everything = [(self.namespace(place), place[1]) for place in PLACES]
        moments = [version.at for versions in self.model.memories.values() for version in versions]
        for as_of in (None, *moments[len(moments) // 2 :][:1]):
            found = [self.memory.memories.get_memory(*place, as_of=as_of) for place in everything]
            hits = self.memory.recall('what is "a", and "b"?', namespaces=f"project:{self.own('m')}", as_of=as_of)
            assert {hit.memory.id: hit.memory for hit in hits} == {held.id: held for held in found if held}

    def teardown(self) -> None:
        """The journal says what the model did, in that order, and nothing else."""
        told = [self.told(change) for change in self.memory.changes(self.start)]
        assert told == [self.should_tell(*entry) for entry in self.model.journal]

    def told(self, change: Change) -> tuple[str, str, str]:
        return change.entity, change.entity_id, change.operation

    def should_tell(self, entity: str, name: str, operation: str) -> tuple[str, str, str]:
        if entity == "state":
            return entity, self.owner(name), operation
        is_ours = entity == "session" or "#" in name
        return entity, self.own(name) if is_ours else name, operation


@pytest.fixture(params=["sqlite-file", "sqlite-memory", pytest.param("postgres", marks=pytest.mark.servers)])
def machine(tmp_path: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    clock = ManualClock()
    url = url_of(request.param, tmp_path, request)
    with mnemon.sync.open(url, clock=clock, max_events_kept=KEPT, **SETTINGS) as memory:
        yield lambda: Machine(memory, clock)


@pytest.mark.unmeasured
def test_the_memory_does_what_the_model_does(machine: Any, request: pytest.FixtureRequest) -> None:
    examples = 20 if "postgres" in request.node.name else 60
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=30, suppress_health_check=list(HealthCheck), deadline=None
        ),
    )
