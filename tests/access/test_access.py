"""A grant opens what it names and nothing else, through every public method there is.

The methods and how to call them are in the modules beside this one, by service.
"""

import inspect
from collections.abc import AsyncIterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mnemon import (
    AccessDenied,
    AgentExists,
    AgentService,
    ArtifactService,
    ConsolidationService,
    DocumentService,
    EpisodeService,
    HybridMemoryService,
    IndexService,
    InvalidCursor,
    InvalidNamespace,
    InvalidStatus,
    KeyService,
    MemoryService,
    NotFound,
    Principal,
    RetentionService,
    SessionExists,
    SessionService,
    StateStore,
    TaskExists,
    TaskService,
    VectorService,
    WorkingMemory,
    WorkspaceExists,
    WorkspaceService,
)
from mnemon.encryption.masters import new_master_key
from mnemon.ports import Store
from mnemon.testing import ManualClock, TaskCrowd
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.handles import parts_of, with_settings
from mnemon.testing.suite import contents, plant
from mnemon.testing.workspace_folders import contents_of
from tests.access import (
    agents,
    artifacts,
    consolidation,
    documents,
    episodes,
    handle,
    keys,
    memories,
    retention,
    sessions,
    working,
    workspaces,
)
from tests.access.world import (
    BOB,
    LEVELS,
    SECRET,
    VECTOR,
    Call,
    Method,
    collect,
    desk,
    first,
    furnish,
    scoped,
    settle,
    settle_shared_state,
)
from tests.conformance.backends import opened, url_of
from tests.robustness.exercise import shelf

REFUSED = (AccessDenied, NotFound, SessionExists, TaskExists, AgentExists, WorkspaceExists, InvalidCursor)
OLD_SPACE = """
INSERT INTO vector_spaces (provider, model, version, dimension, status, created_at)
VALUES ('old', 'old', '1', 8, 'retired', 1)
"""
TABLES = (
    sessions, working, episodes, artifacts, workspaces, agents, documents, memories, consolidation, retention, keys,
    handle,
)  # fmt: skip
METHODS: dict[str, Method] = {name: method for table in TABLES for name, method in table.METHODS.items()}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest_asyncio.fixture(
    params=["sqlite-file", pytest.param("postgres", marks=[pytest.mark.servers, pytest.mark.unmeasured])]
)
async def memory(
    clock: ManualClock, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[HybridMemoryService]:
    """What both users say and remember; the folder of files is not named after a test, which may name Bob."""
    finding = {"embedder": FakeEmbedder(8, is_quick=True), "vector_stores": (shelf,)}
    keeping = {
        "content_url": f"file://{tmp_path_factory.mktemp('desk')}/contents", "encryption_keys": (new_master_key("k1"),),
    }  # fmt: skip
    async with opened(request.param, url_of(request.param, tmp_path, request), clock, **finding, **keeping) as memory:
        for user in ("alice", "bob"):
            clock.advance()
            await settle(memory, user, SECRET if user == "bob" else "hers")
        await settle_shared_state(memory)
        await plant(parts_of(memory).store, OLD_SPACE)
        await memory.settled()
        yield memory


@pytest_asyncio.fixture
async def furnished(memory: HybridMemoryService, clock: ManualClock) -> HybridMemoryService:
    """The same, with everything else that there can be."""
    for user in ("alice", "bob"):
        clock.advance()
        await furnish(memory, user, SECRET if user == "bob" else "hers")
        await working.settle(memory, user, SECRET if user == "bob" else "hers")
        await retention.settle(memory, user, SECRET if user == "bob" else "hers")
        await episodes.settle(memory, user, SECRET if user == "bob" else "hers")
    await memory.settled()
    return memory


@pytest.fixture
def store(memory: HybridMemoryService) -> Store:
    return parts_of(memory).store


def services(memory: HybridMemoryService) -> dict[str, Any]:
    """What the handle holds, and what it makes when it is first asked for."""
    members = inspect.getmembers_static(HybridMemoryService)
    lazy = {name for name, member in members if isinstance(member, cached_property)}
    return {name: getattr(memory, name) for name in lazy | vars(memory).keys() if not name.startswith("_")}


def public_methods(memory: HybridMemoryService) -> set[str]:
    """Every public method of the handle and of each service that it holds."""
    held = services(memory)
    found = {name for name in dir(HybridMemoryService) if not name.startswith("_")} - held.keys()
    for attribute, service in held.items():
        methods = inspect.getmembers(type(service), inspect.isfunction)
        found |= {f"{attribute}.{name}" for name, _ in methods if not name.startswith("_")}
    return found


async def outcome(call: Call, memory: HybridMemoryService) -> Any:
    """What the call gave back; None if it was refused in a way that tells nothing."""
    try:
        return await call(memory)
    except REFUSED as error:
        return SECRET if SECRET in str(error) else None


def rows_of_bob(database: dict[str, list[Any]]) -> list[Any]:
    return [row for table in database.values() for row in table if "bob" in repr(row)]


# -- the tests


async def test_no_public_method_is_forgotten(memory: HybridMemoryService) -> None:
    assert public_methods(memory) == METHODS.keys() | handle.NEVER
    assert sum(len(table.METHODS) for table in TABLES) == len(METHODS)  # none is in two tables
    assert {type(service) for service in services(memory).values()} == {
        SessionService,
        StateStore,
        TaskService,
        MemoryService,
        VectorService,
        IndexService,
        ArtifactService,
        WorkingMemory,
        EpisodeService,
        WorkspaceService,
        AgentService,
        DocumentService,
        ConsolidationService,
        RetentionService,
        KeyService,
    }


async def test_a_grant_on_alice_reaches_nothing_of_bob_s(furnished: HybridMemoryService, store: Store) -> None:
    alice = scoped(furnished, user_alice="admin")
    before, files = await contents(store), contents_of(desk(furnished))
    seen: list[str] = []

    for name, method in METHODS.items():
        for number, call in enumerate(method.foreign):
            result = repr(await outcome(call, alice))
            is_same = (await contents(store), contents_of(desk(furnished))) == (before, files)
            if "bob" in result.lower() or "the app's" in result or not is_same:
                seen.append(f"{name}, attempt {number}: {result}")

    assert seen == []


@pytest.mark.parametrize("level", LEVELS)
async def test_each_level_opens_what_it_should_and_no_more(
    furnished: HybridMemoryService, store: Store, level: str
) -> None:
    grants: Any = {"none": {}, "root": {"": "admin"}}.get(level, {"user:alice": level})
    alice = furnished.as_principal(Principal("alice", grants))
    before = await contents(store)

    for name, method in sorted(METHODS.items(), key=lambda item: LEVELS.index(item[1].level)):
        if LEVELS.index(level) >= LEVELS.index(method.level):
            result = await method.own(alice)
            assert result or method.level != "read", name
        else:
            assert not await outcome(method.own, alice), name

    after = await contents(store)
    if level != "root":
        assert rows_of_bob(after) == rows_of_bob(before)
    if level in ("none", "read"):
        assert after == before


async def test_what_is_one_s_own_is_seen_whole(memory: HybridMemoryService) -> None:
    alice = scoped(memory, user_alice="read")

    session = await alice.sessions.get_session("alice-session")
    assert session is not None
    assert session.state == {"k": "hers", "temp:t": "hers", "user:k": "hers"}
    assert [event.body for event in session.events] == [{"text": "hers"}]
    assert [s.id for s in await alice.sessions.list_sessions()] == ["alice-spare", "alice-session"]
    assert len(await alice.tasks.list()) == 4
    assert [m.key for m in await alice.memories.search_memories()] == ["alice-key", "alice-spare"]
    assert len(await alice.memories.get_thread("thread")) == 2
    seen = {(c.entity, c.operation) for c in await collect(alice.changes())}
    assert seen >= {
        ("session", "create"),
        ("event", "append"),
        ("state", "merge"),
        ("task", "create"),
        ("memory", "add"),
    }


async def test_limits_count_only_what_may_be_seen(furnished: HybridMemoryService) -> None:
    """Given Bob's things came later, when Alice asks for few, then she gets few of hers: nothing is cut afterwards."""
    alice = scoped(furnished, user_alice="read")

    assert [s.id for s in await alice.sessions.list_sessions(limit=2)] == ["alice-spare", "alice-session"]
    assert len(await alice.sessions.list_active_sessions(limit=2)) == 2
    assert len(await alice.audit(limit=5)) == 5
    assert len(await alice.tasks.list(limit=4)) == 4
    assert len(await alice.memories.search_memories("user", limit=2, order="recent")) == 2
    assert len(await alice.memories.get_thread("thread", limit=2)) == 2
    assert len(await alice.memories.list_namespaces(limit=1)) == 1
    assert len(await alice.recall("secret", namespaces="", k=2)) == 2
    assert len(await alice.vectors.query(VECTOR, 2)) == 2
    assert len(await alice.agents.list("user", limit=2)) == 2
    assert len(await alice.workspaces.list(limit=2)) == 2
    assert len(await alice.documents.list(limit=2, recent=True)) == 2
    assert len(await alice.consolidation.reviews(limit=1)) == 1
    page = await alice.audit(limit=20)
    pages = list(page)
    while page.next_cursor:
        page = await alice.audit(limit=20, cursor=page.next_cursor)
        pages += page
    assert pages[::-1] == await collect(alice.changes())


async def test_a_principal_acts_in_its_own_name(memory: HybridMemoryService) -> None:
    alice = scoped(memory, user_alice="admin")
    start = await memory.position()

    await alice.sessions.append_event("alice-session", {"n": 1}, {"k": 1}, actor="bob")
    await alice.state.set("user:k", 1, session_id="alice-session", actor="bob")
    await alice.tasks.update("alice-session-task", "running", actor="bob")
    await alice.memories.add_memory("user:alice", "k", 1, created_by="bob")
    await alice.memories.update_memory("user:alice", "k", 2, updated_by="bob")
    await alice.memories.delete_memory("user:alice", "k", deleted_by="bob")
    receipt = await alice.memories.purge_memory("user:alice", "k", purged_by="bob")
    await alice.remember("x", namespace="user:alice:new", key="k", actor="bob")
    await alice.remember_many(["y", "z"], namespace="user:alice:new", actor="bob")
    await alice.vectors.store("v", VECTOR, namespace="user:alice:new", actor="bob")
    await alice.vectors.delete("v", namespace="user:alice:new", actor="bob")
    await alice.forget("user:alice:new", "k", actor="bob")
    await alice.forget("user:alice:new", erase=True, actor="bob")

    assert receipt.purged_by == "alice"
    assert {change.actor for change in await collect(memory.changes(start))} == {"alice"}


async def test_a_principal_makes_files_agents_and_documents_in_its_own_name(furnished: HybridMemoryService) -> None:
    alice = scoped(furnished, user_alice="admin")
    start = await furnished.position()

    saved = await alice.artifacts.save("alice-session", "a.txt", "x", actor="bob")
    await alice.artifacts.delete("alice-session", "a.txt", actor="bob")
    made = await alice.workspaces.create("alice-w", namespace="user:alice:work", actor="bob")
    file = await alice.workspaces.write("alice-w", "a.txt", "x", actor="bob")
    snapshot = await alice.workspaces.snapshot("alice-w", actor="bob")
    await alice.workspaces.restore("alice-workspace", 1, actor="bob")
    await alice.agents.capture_proposal("alice-agent", {"thoughts": "x"}, actor="bob")
    await alice.agents.interrupt("alice-agent", 2, "stop", actor="bob")
    insight = await alice.agents.record_memory("alice-agent", "x", actor="bob")
    await alice.agents.rewind("alice-agent", 0, restore_workspace=True, forget=True, actor="bob")
    await alice.documents.add("a.md", namespace="user:alice:docs", content="# A", actor="bob")
    await alice.documents.remove("user:alice:docs", "a.md", actor="bob")
    await alice.consolidate("user:alice:notes", "merge", actor="bob")
    [review] = await alice.consolidation.reviews()
    decided = await alice.consolidation.decide(review.id, "second", actor="bob")

    names = {saved.created_by, made.created_by, file.updated_by, snapshot.created_by, insight.created_by}
    assert names | {decided.decided_by} == {"alice"}
    assert {change.actor for change in await collect(furnished.changes(start))} == {"alice"}


async def test_a_bound_handle_can_neither_become_another_nor_close_the_store(memory: HybridMemoryService) -> None:
    for grants in ({"user:alice": "admin"}, {"": "admin"}):
        alice = memory.as_principal(Principal("alice", grants))  # type: ignore[arg-type]
        with pytest.raises(AccessDenied, match="cannot become another"):
            alice.as_principal(Principal("bob", {"": "admin"}))
        async with alice:
            pass

    assert await memory.sessions.get_session("bob-session") is not None


async def test_grants_that_mean_nothing_are_refused(memory: HybridMemoryService) -> None:
    strange: Any = "owner"
    with pytest.raises(InvalidStatus, match="read, write, admin"):
        memory.as_principal(Principal("alice", {"user:alice": strange}))
    for prefix in ("users:alice", "user::a", "alice"):
        with pytest.raises(InvalidNamespace):
            memory.as_principal(Principal("alice", {prefix: "read"}))


async def test_names_that_begin_alike_are_not_the_same(memory: HybridMemoryService, clock: ManualClock) -> None:
    for user in ("al", "alice2", "1", "10"):
        clock.advance()
        await settle(memory, user, f"of {user}")

    for user in ("al", "1"):
        handle = memory.as_principal(Principal(user, {f"user:{user}": "admin"}))
        assert {s.user_id for s in await handle.sessions.list_sessions()} == {user}
        assert {m.namespace for m in await handle.memories.search_memories()} == {f"user:{user}:notes"}
        assert [n.namespace for n in await handle.memories.list_namespaces()] == [f"user:{user}:notes"]
        assert {c.actor for c in await collect(handle.changes())} == {user}
        assert {t.session_id for t in await handle.tasks.list()} == {f"{user}-session", f"{user}-spare"}
        assert {h.memory.namespace for h in await handle.recall("of", namespaces="", k=100)} == {f"user:{user}:notes"}
        assert {m.namespace for m in await handle.vectors.query(VECTOR, 100)} == {f"user:{user}:notes"}


async def test_files_agents_and_documents_of_names_that_begin_alike_are_not_the_same(
    memory: HybridMemoryService, clock: ManualClock
) -> None:
    users = ("al", "alice2", "1", "10")
    for user in users:
        clock.advance()
        await settle(memory, user, f"of {user}")
        await furnish(memory, user, f"of {user}")

    for user in ("al", "1"):
        handle = memory.as_principal(Principal(user, {f"user:{user}": "admin"}))
        assert {each.namespace for each in await handle.agents.list()} == {f"user:{user}:agents"}
        assert {each.namespace for each in await handle.workspaces.list()} == {f"user:{user}:work"}
        assert {each.namespace for each in await handle.documents.list()} == {f"user:{user}:docs"}
        assert [each for each in users if await handle.artifacts.list(f"{each}-session")] == [user]


async def test_several_grants_add_up(memory: HybridMemoryService, store: Store) -> None:
    deputy = memory.as_principal(
        Principal(
            "deputy",
            {"user:alice": "read", "user:bob:notes": "read", "session:bob-spare": "write", "app:helpdesk": "write"},
        )
    )

    assert {s.id for s in await deputy.sessions.list_sessions()} == {"alice-session", "alice-spare", "bob-spare"}
    found = {m.namespace for m in await deputy.memories.search_memories()}
    assert found == {"app:helpdesk", "user:alice:notes", "user:bob:notes"}
    assert {m.namespace for m in await deputy.memories.search_memories("user")} == {
        "user:alice:notes",
        "user:bob:notes",
    }
    assert {m.namespace for m in await deputy.memories.search_memories("user:bob")} == {"user:bob:notes"}
    for namespaces in ("", ["user", "app", "session"]):
        assert {h.memory.namespace for h in await deputy.recall("secret", namespaces=namespaces)} == found
        assert {m.namespace for m in await deputy.vectors.query(VECTOR, namespaces=namespaces)} == found
    page = await deputy.memories.search_memories(limit=2)
    pages = list(page)
    while page.next_cursor:
        page = await deputy.memories.search_memories(limit=2, cursor=page.next_cursor)
        pages += page
    assert pages == list(await deputy.memories.search_memories())
    assert await deputy.state.get("app:k", session_id="alice-session") == "the app's"
    assert await deputy.sessions.append_event("bob-spare", {"n": 1}, {"app:k": "new", "k": 1})
    for refused in (
        deputy.sessions.append_event("alice-session", {"n": 1}),
        deputy.sessions.append_event("bob-spare", {"n": 1}, {"user:k": 1}),
        deputy.sessions.get_state("bob-spare", "user:k"),
        deputy.memories.update_memory("user:bob:notes", "bob-key", 1),
        deputy.memories.add_memory("session:bob-session", "x", 1),
    ):
        with pytest.raises((AccessDenied, NotFound)):
            await refused


async def test_a_grant_below_a_user_opens_no_session(memory: HybridMemoryService) -> None:
    reader = scoped(memory, user_bob_notes="admin")

    assert {m.key for m in await reader.memories.search_memories()} == {"bob-key", "bob-spare"}
    assert list(await reader.sessions.list_sessions()) == []
    assert await reader.sessions.get_session("bob-session") is None
    assert list(await reader.tasks.list()) == []
    assert {change.entity for change in await collect(reader.changes())} == {"memory"}
    with pytest.raises(AccessDenied):
        await reader.state.get("user:k", **BOB)


async def test_a_grant_on_a_session_opens_that_session_and_its_own_state(memory: HybridMemoryService) -> None:
    guest = scoped(memory, **{"session_bob-session": "write"})

    session = await guest.sessions.get_session("bob-session")
    assert session is not None
    assert session.state == {"k": SECRET, "temp:t": SECRET}  # nothing of the user's, the app's or the project's
    assert [s.id for s in await guest.sessions.list_sessions()] == ["bob-session"]
    assert await guest.sessions.get_session("bob-spare") is None
    assert {t.session_id for t in await guest.tasks.list()} == {"bob-session"}
    assert [m.namespace for m in await guest.memories.search_memories()] == ["session:bob-session"]
    changes = await collect(guest.changes())
    assert {change.namespace for change in changes} == {"session:bob-session"}
    assert {change.entity for change in changes} == {"session", "event", "state", "task", "memory"}
    await guest.sessions.append_event("bob-session", {"n": 1}, {"k": 1, "temp:t": 2})
    for key in ("user:k", "app:k", "project:k"):
        with pytest.raises(AccessDenied):
            await guest.sessions.set_state("bob-session", key, 1)
        with pytest.raises(AccessDenied):
            await guest.state.entries(key, session_id="bob-session")


async def test_a_grant_on_a_session_opens_its_artifacts_and_no_other_files(furnished: HybridMemoryService) -> None:
    guest = scoped(furnished, **{"session_bob-session": "read"})

    assert (await guest.artifacts.read("bob-session", "bob.txt")).decode() == SECRET
    assert {each.name for each in await guest.artifacts.recent("bob-session")} == {"bob.txt", "bob-2.txt"}
    assert not await guest.artifacts.list("alice-session")
    for found in (await guest.agents.list(), await guest.workspaces.list(), await guest.documents.list()):
        assert not found
    for refused in (
        guest.artifacts.save("bob-session", "bob.txt", "new"),
        guest.artifacts.rebuild("bob-session"),
        guest.agents.cycles("bob-agent", session_id="bob-session"),
        guest.workspaces.read("bob-workspace", "bob.txt"),
        guest.documents.get("user:bob:docs", "bob-text"),
    ):
        with pytest.raises((AccessDenied, NotFound)):
            await refused


async def test_who_may_see_a_session_may_recall_what_was_said_in_it(memory: HybridMemoryService) -> None:
    # given conversations that are remembered
    await with_settings(memory, remember_events=("session",)).settled()

    # when alice, whose session it is, and a guest in bob's ask for what they need to know
    alice = scoped(memory, user_alice="read")
    guest = scoped(memory, **{"session_bob-session": "read"})
    hers = await alice.context("hers", session_id="alice-session", namespaces=None)
    told = await guest.context("secret", session_id="bob-session")

    # then both have the memories of the session's events, and nothing of anybody else's
    assert {item.name.partition("/")[0] for item in (*hers.items, *hers.dropped) if item.section == "memories"} == {
        "session:alice-session",
        "user:alice:notes",
    }
    assert {item.name.partition("/")[0] for item in (*told.items, *told.dropped) if item.section == "memories"} == {
        "session:bob-session"
    }
    # but only a grant on the session's own namespace opens it to recall
    with pytest.raises(AccessDenied):
        await alice.recall("hers", namespaces="session:alice-session")
    found = await guest.recall("secret", namespaces="session:bob-session")
    assert {hit.memory.key for hit in found} == {"bob-key", "event-0000000001"}


async def test_a_grant_on_a_session_watches_its_temporary_state_too(memory: HybridMemoryService) -> None:
    guest = scoped(memory, **{"session_bob-session": "read"})
    start = await memory.position()
    await memory.state.set("temp:t", "new", session_id="bob-session")

    entry = await first(guest.state.watch("temp:", after=start, session_id="bob-session"))

    assert (entry.key, entry.value) == ("temp:t", "new")


@pytest.mark.parametrize("prefix", ["user", "user:"])
async def test_a_grant_on_a_root_opens_all_below_it(memory: HybridMemoryService, prefix: str) -> None:
    clerk = memory.as_principal(Principal("clerk", {prefix: "read"}))

    assert {s.user_id for s in await clerk.sessions.list_sessions()} == {"alice", "bob"}
    assert {m.namespace for m in await clerk.memories.search_memories()} == {"user:alice:notes", "user:bob:notes"}
    assert await clerk.state.get("user:k", **BOB) == SECRET
    assert len(await clerk.tasks.list()) == 8
    for refused in (
        clerk.memories.get_memory("app:helpdesk", "app-key"),
        clerk.memories.get_memory("session:bob-session", "bob-key"),
        clerk.state.get("app:k", app_name="helpdesk"),
        clerk.sessions.append_event("bob-session", {"n": 1}),
        clerk.consumers(),
    ):
        with pytest.raises((AccessDenied, NotFound)):
            await refused
    assert "app:helpdesk" not in {change.namespace for change in await collect(clerk.changes())}


async def test_a_grant_on_everything_opens_everything(memory: HybridMemoryService) -> None:
    root = memory.as_principal(Principal("root", {"": "admin"}))

    assert await collect(root.changes()) == await collect(memory.changes())
    assert await root.memories.search_memories() == await memory.memories.search_memories()
    assert await root.sessions.list_sessions() == await memory.sessions.list_sessions()
    assert await root.sessions.get_session("bob-session") == await memory.sessions.get_session("bob-session")
    assert (await root.tasks.create("sweep")).session_id is None
    assert (await root.verify()).intact


async def test_shared_state_needs_a_grant_of_its_own(memory: HybridMemoryService) -> None:
    alice = scoped(memory, user_alice="admin")
    member = scoped(memory, user_alice="admin", app_helpdesk="read", **{"project_alice-project": "write"})
    await memory.state.set("project:k", "theirs", project_id="alice-project")

    async def state(handle: HybridMemoryService) -> set[str]:
        session = await handle.sessions.get_session("alice-session")
        assert session is not None
        return set(session.state)

    assert await state(alice) == {"k", "temp:t", "user:k"}
    assert await state(member) == {"k", "temp:t", "user:k", "app:k", "project:k"}
    await member.sessions.append_event("alice-session", {}, {"project:k": "ours"})
    for who, key in ((alice, "app:k"), (alice, "project:k"), (member, "app:k")):
        with pytest.raises(AccessDenied, match="no write grant"):
            await who.sessions.set_state("alice-session", key, 1)
    namespaces = {change.namespace for change in await collect(alice.changes())}
    assert not {name for name in namespaces if name and name.startswith(("app:", "project:"))}
    namespaces = {change.namespace for change in await collect(member.changes())}
    assert {"app:helpdesk", "project:alice-project"} <= namespaces
    assert "project:bob-project" not in namespaces


async def test_a_follower_is_told_only_of_what_it_may_see(memory: HybridMemoryService) -> None:
    alice = scoped(memory, user_alice="read")
    start = await memory.position()

    async def change() -> None:
        await memory.sessions.append_event("bob-session", {"n": 1}, {"user:k": SECRET})
        await memory.memories.update_memory("user:bob:notes", "bob-key", SECRET)
        await memory.state.set("user:k", "news", app_name="helpdesk", user_id="alice")

    async with TaskCrowd().meanwhile(change):
        seen = await first(alice.changes(start, follow=True))
    assert (seen.entity, seen.namespace) == ("state", "user:alice:helpdesk")

    entry = await first(alice.state.watch("user:", after=start, session_id="alice-session"))
    assert entry.value == "news"


async def test_a_change_of_shared_state_does_not_say_in_whose_session(memory: HybridMemoryService) -> None:
    # given a session of bob's that changes the app's state
    after = await memory.position()
    await memory.sessions.append_event("bob-session", {"n": 1}, {"app:k": 2}, actor="bob")

    # when somebody reads the journal who may read the app's state, and nothing of bob's
    reader = memory.as_principal(Principal("eve", {"app:helpdesk": "read"}))
    seen = [change async for change in reader.changes(after)]
    audited = list(await reader.audit(namespace="app:helpdesk", limit=1))

    # then the change is there, and bob is not
    assert seen == audited
    [change] = seen
    assert (change.entity_id, change.payload) == ("app:helpdesk", {"keys": ["app:k"]})
    assert (change.actor, change.session_id, change.user_id) == (None, None, None)
    [whole] = await memory.audit(namespace="app:helpdesk", limit=1)
    assert (whole.actor, whole.session_id) == ("bob", "bob-session")
