"""What events say becomes memories: once, whoever does it and however often."""

from datetime import timedelta
from typing import Any

import pytest

from mnemon.model import MemoryType
from mnemon.testing import FaultyStore, ManualClock
from mnemon.testing.embedders import FakeEmbedder
from tests.indexing.rig import Rig, rigged

NAME = "conversations"


async def said(rig: Rig, session_id: str = "s1") -> dict[str, Any]:
    """What is remembered of a session, by key."""
    found = await rig.memories.search_memories(f"session:{session_id}", limit=1000)
    return {memory.key: memory.value for memory in found}


async def versions(rig: Rig) -> list[tuple[Any, ...]]:
    """Every version of every memory, as far as it does not depend on when it was written."""
    return await rig.peek("SELECT namespace, key, version, is_deleted, value FROM memory_entries ORDER BY id")


async def converse(rig: Rig, *texts: str, session_id: str = "s1", **options: Any) -> None:
    for text in texts:
        await rig.sessions.append_event(session_id, {"role": "user", "text": text}, **options)


@pytest.fixture
async def session(rig: Rig) -> Rig:
    await rig.sessions.create_session("s1", "helpdesk", "alice", "moon")
    return rig


async def test_an_event_becomes_an_episodic_memory_with_its_place(session: Rig, clock: ManualClock) -> None:
    """Given events with and without text, when the consumer has worked, then each text is a memory that knows
    where it comes from."""
    event = {"role": "user", "text": "I moved to Oslo", "author": "Alice"}
    appended = await session.sessions.append_event("s1", event, event_id="e1", actor="web", task_id="t1")
    await session.sessions.append_event("s1", {"clicked": True})
    clock.advance(60)
    await session.sessions.append_event("s1", {"role": "assistant", "text": "Noted."})

    assert await session.work(NAME) == 4  # the session's creation is looked at too

    found = await session.memories.get_memory("session:s1", "event-0000000001")
    assert found is not None
    assert (found.value, found.memory_type) == ("I moved to Oslo", MemoryType.EPISODIC)
    assert (found.created_by, found.task_id) == ("web", "t1")
    told = found.provenance
    assert (told.session_id, told.event_id, told.author) == ("s1", "e1", "Alice")
    place = found.placement
    assert (place.thread, place.position, place.occurred_at) == ("s1", 1, appended.created_at)
    assert await said(session) == {"event-0000000001": "I moved to Oslo", "event-0000000003": "Noted."}
    [last] = await session.memories.get_thread("s1", first=2)
    assert (last.provenance.event_id, last.provenance.author) == ("s1#3", "assistant")
    assert last.placement.occurred_at == appended.created_at + timedelta(seconds=60)


async def test_it_is_found_by_words_and_by_its_vector(session: Rig) -> None:
    await converse(session, "I moved to Oslo", "The printer is broken")
    await session.work(NAME)

    assert await session.by_words("oslo") == ["event-0000000001"]
    assert (await session.near("a broken printer"))[0] == "event-0000000002"


async def test_following_the_journal_again_changes_nothing(session: Rig) -> None:
    await converse(session, "one", "two")
    await session.work(NAME)
    before = await versions(session)

    await (await duty(session)).consumer.rewind()
    assert await session.work(NAME) == 3
    assert await versions(session) == before


async def duty(rig: Rig) -> Any:
    return next(each for each in await rig.upkeep.duties() if each.name == NAME)


@pytest.mark.parametrize("moment", range(8))
async def test_a_worker_that_dies_at_any_write_loses_and_repeats_nothing(session: Rig, moment: int) -> None:
    """Given more events than one transaction takes, when a worker's n-th write fails, before or after its effect,
    then another goes on, and all is there once."""
    await session.sessions.append_events("s1", [{"text": f"number {number}"} for number in range(120)])
    faulty = FaultyStore(session.store)
    faulty.fail("write", ConnectionResetError(), skip=moment // 2, after_effect=bool(moment % 2))
    with pytest.raises(ConnectionResetError):
        await session.over(faulty).work(NAME)

    session.clock.advance(60)  # type: ignore[attr-defined]
    await session.work(NAME)
    assert [row[2] for row in await versions(session)] == [1] * 120
    assert sorted((await said(session)).values()) == sorted(f"number {number}" for number in range(120))


async def test_two_workers_do_everything_once(session: Rig) -> None:
    await session.sessions.append_events("s1", [{"text": f"number {number}"} for number in range(450)])
    other = session.over(session.store)
    await other.work(NAME)
    await session.work(NAME)

    assert len(await versions(session)) == 450


async def test_the_setting_says_whose_events_are_remembered(
    backend: str, url: str, options: dict[str, str], embedder: FakeEmbedder
) -> None:
    wanted = ("session:s1", "user:alice", "app:shop", "project:moon:x", "project:sun")
    async with rigged(backend, url, embedder, remember_events=wanted, **options) as rig:
        for session_id, app, user, project in (
            ("s1", "a", "u", None), ("s2", "a", "alice", None), ("s3", "shop", "u", None),
            ("s4", "a", "u", "moon"), ("s5", "a", "u", "sun"), ("s6", "a", "al", None), ("s7", "a", "u", None),
        ):  # fmt: skip
            await rig.sessions.create_session(session_id, app, user, project)
            await converse(rig, "hello", session_id=session_id)
        await rig.work(NAME)
        remembered = [number for number in range(1, 8) if await said(rig, f"s{number}")]
        assert remembered == [1, 2, 3, 5]


async def test_without_the_setting_nobody_follows(
    backend: str, url: str, options: dict[str, str], embedder: FakeEmbedder
) -> None:
    async with rigged(backend, url, embedder, remember_events=(), **options) as rig:
        assert NAME not in [each.name for each in await rig.upkeep.duties()]


async def test_events_that_were_archived_before_they_were_indexed_are_read_from_the_archive(
    backend: str, url: str, options: dict[str, str], embedder: FakeEmbedder
) -> None:
    async with rigged(backend, url, embedder, max_events_kept=3, **options) as rig:
        await rig.sessions.create_session("s1", "helpdesk", "alice")
        await converse(rig, *(f"number {number}" for number in range(20)))
        assert len(await rig.sessions.events("s1")) == 3
        await rig.work(NAME)
        assert sorted((await said(rig)).values()) == sorted(f"number {number}" for number in range(20))


# ---------------------------------------------------------------------------------------------------- deletions


async def test_the_memories_of_a_deleted_session_are_deleted(session: Rig) -> None:
    """Given a remembered session, and a memory that somebody else put there, when the session is deleted, then
    what the consumer made is deleted, softly, and nothing else."""
    await session.sessions.append_events("s1", [{"text": f"number {number}"} for number in range(120)])
    await session.memories.add_memory("session:s1", "summary", "they counted")
    await session.sessions.create_session("s2", "helpdesk", "alice")
    await converse(session, "hello", session_id="s2")
    await session.work(NAME)

    await session.sessions.delete_session("s1", actor="alice")
    await session.work(NAME)

    assert await said(session) == {"summary": "they counted"}
    assert list((await said(session, "s2")).values()) == ["hello"]
    history = await session.memories.get_memory_history("session:s1", "event-0000000007")
    assert [(memory.version, memory.is_deleted, memory.updated_by) for memory in history] == [
        (1, False, None), (2, True, "alice"),
    ]  # fmt: skip
    assert await session.by_words("number") == []


async def test_a_session_that_was_deleted_before_it_was_read_leaves_nothing(session: Rig) -> None:
    await converse(session, "one", "two")
    await session.sessions.delete_session("s1")
    await session.work(NAME)

    assert await versions(session) == []


async def test_a_session_of_the_same_name_begins_anew(session: Rig, clock: ManualClock) -> None:
    await converse(session, "one", "two", "three")
    await session.work(NAME)
    clock.advance(1)
    await session.sessions.delete_session("s1")
    await session.sessions.create_session("s1", "helpdesk", "alice")
    await converse(session, "another")
    await session.work(NAME)

    assert await said(session) == {"event-0000000001": "another"}
    before = await versions(session)
    await (await duty(session)).consumer.rewind()
    await session.work(NAME)
    assert await versions(session) == before


async def test_a_session_of_the_same_name_and_moment_begins_anew(session: Rig) -> None:
    await converse(session, "one", "two", "three")
    await session.work(NAME)
    await session.sessions.delete_session("s1")
    await session.sessions.create_session("s1", "helpdesk", "alice")
    await converse(session, "another")
    await session.work(NAME)
    await converse(session, "and another")
    await session.work(NAME)

    assert await said(session) == {"event-0000000001": "another", "event-0000000002": "and another"}


async def test_what_somebody_deleted_does_not_come_back(session: Rig) -> None:
    await converse(session, "one", "two")
    await session.work(NAME)
    await session.memories.delete_memory("session:s1", "event-0000000001")
    await (await duty(session)).consumer.rewind()
    await session.work(NAME)

    assert await said(session) == {"event-0000000002": "two"}


# ------------------------------------------------------------------------------------------------ odd events


async def test_names_that_a_memory_cannot_have_are_left_out(session: Rig) -> None:
    long = "s" * 256
    await session.sessions.create_session(long, "helpdesk", "alice")
    await session.sessions.append_event(long, {"text": "hello", "author": "x" * 300})
    await session.work(NAME)

    found = await session.memories.get_memory(f"session:{long}", "event-0000000001")
    assert found is not None
    assert (found.value, found.provenance.author, found.provenance.event_id) == ("hello", None, None)


async def test_what_cannot_be_a_memory_holds_up_nothing(session: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Given an event that is larger than this process allows, when the consumer works, then it says so and goes on."""
    await converse(session, "short", "long " * 40, "after")
    await session.over(session.store, max_value_bytes=60).work(NAME)

    assert list((await said(session)).values()) == ["short", "after"]
    assert "event-0000000002 of session:s1 cannot be remembered" in caplog.text
