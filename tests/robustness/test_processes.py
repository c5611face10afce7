"""Many processes on one database: no error, nothing lost, no gap."""

import mnemon
from mnemon import sync
from tests.robustness.children import FACES, append_and_count, finish_all, start, write_own_keys

PROCESSES = 8
APPENDS = 500
INCREMENTS = 500
SESSIONS = 50


def own_and_shared(memory: sync.BlockingMemory) -> dict[str, list[mnemon.Event]]:
    """The log of every session, by its id."""
    sessions = memory.sessions.list_sessions(limit=100)
    return {session.id: memory.sessions.events(session.id) for session in sessions}


def test_appends_and_increments_of_eight_processes_all_count(url: str) -> None:
    # given a session that all of them share
    with sync.open(url) as memory:
        memory.sessions.create_session("shared", "app", "alice")
    # when eight processes, asynchronous and blocking ones, append and increment at once
    names = [f"{number}" for number in range(PROCESSES)]
    finish_all(
        [
            start(append_and_count, url, name, APPENDS, INCREMENTS, face=FACES[index % 2])
            for index, name in enumerate(names)
        ]
    )
    # then every append is there once, in sequences without a gap, and the counter has counted all
    with sync.open(url) as memory:
        logs = own_and_shared(memory)
        for events in logs.values():
            assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        appended = sorted((event.body["by"], event.body["number"]) for events in logs.values() for event in events)
        assert appended == sorted((name, number) for name in names for number in range(APPENDS))
        assert len(logs["shared"]) == PROCESSES * APPENDS // 2
        counter = memory.state.entry("app:counter", app_name="app")
        assert counter is not None
        assert (counter.value, counter.version) == (PROCESSES * INCREMENTS, PROCESSES * INCREMENTS)
        assert memory.verify().intact


def test_sessions_of_one_user_never_overwrite_each_other(url: str) -> None:
    # given fifty sessions of one user, in five processes
    names = [f"s{number}" for number in range(SESSIONS)]
    with sync.open(url):
        pass
    # when each writes its own user: key, several times
    children = [
        start(write_own_keys, url, names[part::5], 4, face=FACES[part % 2])
        for part in range(5)
    ]  # fmt: skip
    finish_all(children)
    # then fifty of fifty are right, and no write of any was lost
    with sync.open(url) as memory:
        entries = memory.state.entries("user:", app_name="app", user_id="alice")
        assert {entry.key: entry.value for entry in entries} == {f"user:{name}": f"{name} 4" for name in names}
        assert {entry.version for entry in entries} == {4}
