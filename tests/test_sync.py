"""The blocking face is the whole of the asynchronous one, and leaves nothing behind."""

import asyncio
import gc
import inspect
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from pathlib import Path

import pytest

import mnemon
from mnemon import sync
from mnemon.coroutines import complete
from tests.robustness.exercise import exercise, settings

FACES = {
    mnemon.HybridMemoryService: sync.BlockingMemory,
    mnemon.SessionService: sync.BlockingSessions,
    mnemon.StateStore: sync.BlockingState,
    mnemon.TaskService: sync.BlockingTasks,
    mnemon.WorkingMemory: sync.BlockingWorking,
    mnemon.EpisodeService: sync.BlockingEpisodes,
    mnemon.ArtifactService: sync.BlockingArtifacts,
    mnemon.MemoryService: sync.BlockingMemories,
    mnemon.ConsolidationService: sync.BlockingConsolidation,
    mnemon.RetentionService: sync.BlockingRetention,
    mnemon.KeyService: sync.BlockingKeys,
    mnemon.VectorService: sync.BlockingVectors,
    mnemon.IndexService: sync.BlockingIndex,
    mnemon.AgentService: sync.BlockingAgents,
    mnemon.DocumentService: sync.BlockingDocuments,
    mnemon.WorkspaceService: sync.BlockingWorkspaces,
    mnemon.Consumer: sync.BlockingConsumer,
}
KINDS = ("memory", "sqlite", pytest.param("postgres", marks=pytest.mark.servers))


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"


@pytest.fixture
def memory(url: str) -> Iterator[sync.BlockingMemory]:
    with sync.open(url) as memory:
        memory.sessions.create_session("s1", "app", "alice")
        yield memory


def public(kind: type) -> set[str]:
    """The methods of a class; a service that is loaded when it is used is none."""
    names = {name for name in dir(kind) if not name.startswith("_")}
    return {name for name in names if not isinstance(getattr(kind, name), cached_property)}


def services(handle: object) -> set[str]:
    names = {name for name in dir(handle) if not name.startswith("_")}
    return {name for name in names if not callable(getattr(handle, name))}


def parameters(method: object) -> list[tuple[str, object, object]]:
    """What a bound method takes."""
    assert callable(method)
    return [(p.name, p.kind, p.default) for p in inspect.signature(method).parameters.values()]


# -------------------------------------------------------------------------------------------------------- the shape


@pytest.mark.parametrize("service", FACES)
def test_every_public_method_is_there_and_no_other(service: type) -> None:
    assert public(FACES[service]) == public(service)


def test_every_service_is_there_and_no_other() -> None:
    with sync.open("sqlite://") as memory:
        assert services(memory) == services(memory._service)
        assert {"sessions", "artifacts", "agents"} < services(memory)


def test_every_method_takes_the_same_parameters() -> None:
    with sync.open("sqlite://") as memory:
        faces = (
            memory,
            *(face for face in vars(memory).values() if type(face) in FACES.values()),
            memory.consumer("c"),
        )
        assert {type(face) for face in faces} == set(FACES.values())
        for face in faces:
            for name in public(type(face)):
                assert parameters(getattr(face, name)) == parameters(getattr(face._service, name)), name


def test_a_method_of_an_open_memory_shows_what_it_takes(memory: sync.BlockingMemory) -> None:
    shown = inspect.signature(memory.sessions.get_session)
    assert list(shown.parameters) == ["session_id", "last", "after"]
    assert memory.sessions.get_session.__doc__ == mnemon.SessionService.get_session.__doc__
    assert memory.sessions.get_session.__name__ == "get_session"


def test_opening_takes_the_same_parameters() -> None:
    assert inspect.signature(sync.open).parameters == inspect.signature(mnemon.open).parameters


def test_every_service_has_its_face(memory: sync.BlockingMemory) -> None:
    behind = memory._service
    services = {name: type(value) for name, value in vars(behind).items() if not name.startswith("_")}
    assert {name: type(getattr(memory, name)) for name in services} == {
        name: FACES[kind] for name, kind in services.items()
    }


# --------------------------------------------------------------------------------------------------- where it works


def test_everything_works_without_an_event_loop(url: str) -> None:
    with sync.open(url, **settings()) as memory:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        complete(exercise(memory))


async def test_everything_works_inside_a_running_loop(url: str) -> None:
    asyncio.get_running_loop()
    with sync.open(url, **settings()) as memory:
        complete(exercise(memory))


def test_threads_may_share_a_memory(memory: sync.BlockingMemory) -> None:
    def work(number: int) -> int:
        for turn in range(25):
            memory.sessions.append_event("s1", {"by": number, "turn": turn})
            memory.state.update("user:count", lambda value: value + 1, default=0, session_id="s1")
            assert memory.sessions.get_session("s1", last=1) is not None
        return number

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(8))) == list(range(8))
    events = memory.sessions.events("s1")
    assert [event.sequence for event in events] == list(range(1, 201))
    assert memory.state.get("user:count", session_id="s1") == 200


def test_a_memory_may_be_closed_by_another_thread(url: str) -> None:
    memory = sync.open(url)
    closing = threading.Thread(target=memory.close)
    closing.start()
    closing.join()
    with pytest.raises(mnemon.StoreClosed):
        memory.sessions.list_sessions()


# -------------------------------------------------------------------------------------------------------- iterators


def test_changes_can_be_iterated(memory: sync.BlockingMemory) -> None:
    memory.sessions.append_event("s1", {"n": 1})
    assert [change.entity for change in memory.changes()] == ["session", "event"]
    assert list(memory.changes(memory.position())) == []


def test_changes_can_be_followed_while_others_write(memory: sync.BlockingMemory) -> None:
    writing = threading.Timer(0.1, lambda: [memory.sessions.append_event("s1", {"n": n}) for n in range(3)])
    writing.start()
    followed = islice(memory.changes(memory.position(), True), 3)
    assert [change.payload["sequence"] for change in followed] == [1, 2, 3]
    writing.join()


def test_state_can_be_watched_while_others_write(memory: sync.BlockingMemory) -> None:
    writing = threading.Timer(0.1, memory.state.set, ("user:city", "Oslo"), {"session_id": "s1"})
    writing.start()
    entry = next(memory.state.watch("user:", session_id="s1"))
    assert (entry.key, entry.value) == ("user:city", "Oslo")
    writing.join()


def test_a_consumer_can_be_run_in_a_thread(memory: sync.BlockingMemory) -> None:
    class Enough(Exception):
        pass

    handled: list[int] = []

    async def handle(tx: object, changes: list[mnemon.Change]) -> None:
        handled.extend(change.position for change in changes)
        if len(handled) == 3:
            raise Enough

    def run() -> None:
        with pytest.raises(Enough):
            memory.consumer("c").run(handle)

    running = threading.Thread(target=run)
    running.start()
    for number in range(2):
        memory.sessions.append_event("s1", {"n": number})
    running.join(30)
    assert not running.is_alive()
    assert handled == sorted(handled)


def test_an_iterator_may_be_left_early(memory: sync.BlockingMemory) -> None:
    for _ in range(3):
        memory.sessions.append_event("s1", {})
    for change in memory.changes(follow=True):
        assert change.entity == "session"
        break
    gc.collect()


# ---------------------------------------------------------------------------------------------------------- leftovers


def open_files() -> dict[str, str]:
    """What this process holds open, as far as it is a file or a connection."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(entry)  # noqa: PTH115 - a socket's target is no path
        except FileNotFoundError:
            continue
        found[entry.name] = target
    return found


def use(memory: sync.BlockingMemory) -> None:
    """Use all that starts threads or opens connections."""
    if memory.sessions.get_session("s1") is None:
        memory.sessions.create_session("s1", "app", "alice")
    changes = memory.changes(memory.position(), True)
    following = threading.Thread(target=next, args=(changes,))
    following.start()
    memory.sessions.append_event("s1", {})
    following.join(30)


def test_a_closed_memory_leaves_no_thread_and_no_file(url: str) -> None:
    with sync.open(url):  # what is imported or cached by a first opening is no leak
        pass
    gc.collect()
    threads, files = set(threading.enumerate()), open_files()
    for _ in range(3):
        with sync.open(url) as memory:
            use(memory)
    gc.collect()
    assert set(threading.enumerate()) == threads
    assert open_files() == files


async def test_a_closed_asynchronous_memory_leaves_no_thread_and_no_file(url: str) -> None:
    async def use_async() -> None:
        async with mnemon.open(url) as memory:
            if await memory.sessions.get_session("s1") is None:
                await memory.sessions.create_session("s1", "app", "alice")
            following = asyncio.ensure_future(anext(memory.changes(await memory.position(), True)))
            await asyncio.sleep(0.05)
            await asyncio.gather(*(memory.sessions.append_event("s1", {"n": n}) for n in range(20)))
            await following
            await memory.sessions.get_session("s1")

    await use_async()
    gc.collect()
    threads, files = [t.name for t in threading.enumerate() if "asyncio" not in t.name], open_files()
    for _ in range(3):
        await use_async()
    gc.collect()
    assert [t.name for t in threading.enumerate() if "asyncio" not in t.name] == threads
    assert open_files() == files
