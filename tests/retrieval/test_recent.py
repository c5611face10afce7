"""What a session is at now: its state, what was said last wherever that stands, and what happened before."""

from typing import Any

import pytest

from mnemon import Episode, EpisodeEntry, InvalidInput, Principal, SessionNotFound, sync
from mnemon.coroutines import complete
from mnemon.sync import BlockingMemory
from mnemon.testing import FakeEmbedder
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import plant
from tests.conformance.backends import blocking_memory

__all__ = ["blocking_memory"]


@pytest.fixture
def memory(blocking_memory: BlockingMemory) -> BlockingMemory:
    blocking_memory.sessions.create_session("s1", "helpdesk", "alice", initial_state={"topic": "moving"})
    return blocking_memory


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "text": text}


def told(memory: BlockingMemory, section: str, **options: Any) -> list[str]:
    context = memory.fetch_recent_context("s1", **options)
    assert context.tokens <= context.budget
    return [item.text for item in context.items if item.section == section]


def consolidate(memory: BlockingMemory, episode: Episode, summary: str) -> None:
    """As the worker does it."""
    memory.remember(summary, namespace=f"{episode.namespace}:episodes", key=f"episode-{episode.id}")
    store = parts_of(memory._service).store
    complete(plant(store, "UPDATE episodes SET status = 'consolidated' WHERE id = :id", id=episode.id))


def test_events_and_buffers_are_one_conversation(memory: BlockingMemory) -> None:
    memory.sessions.append_event("s1", user("one"))
    memory.working.append("s1", [user("two"), "three"])
    memory.sessions.append_event("s1", user("four"))
    memory.working.append("s1", [{"step": 5}], buffer="steps")
    assert told(memory, "events") == [
        "- user: one",
        "- user: two",
        "- event: three",
        "- user: four",
        "- event: steps: step: 5",
    ]
    assert told(memory, "events", limit=2) == ["- user: four", "- event: steps: step: 5"]
    context = memory.fetch_recent_context("s1")
    assert [item.name for item in context.items if item.section == "events"][1:3] == [
        "conversation/1",
        "conversation/2",
    ]
    assert [message["content"] for message in context.messages()[1:]] == [
        "one",
        "two",
        "three",
        "four",
        "steps: step: 5",
    ]


def test_what_stands_in_both_is_told_once(memory: BlockingMemory) -> None:
    for text in ("yes", "yes", "no"):
        memory.sessions.append_event("s1", user(text))
        memory.working.append("s1", [user(text)])
    memory.working.append("s1", [user("yes")])
    assert told(memory, "events") == ["- user: yes", "- user: yes", "- user: no", "- user: yes"]


def test_state_has_the_scratchpads(memory: BlockingMemory) -> None:
    memory.working.set("s1", "plan", {"next": "call the landlord"})
    assert told(memory, "state") == ["- scratchpad:plan: next: call the landlord", "- topic: moving"]


def test_what_was_drained_is_told_until_there_is_a_summary(memory: BlockingMemory) -> None:
    episode = memory.store_episode([EpisodeEntry(user("I moved to Oslo"), author="alice")], session_id="s1")
    assert told(memory, "events") == ["- user (alice): I moved to Oslo"]
    consolidate(memory, episode, "Alice moved to Oslo in spring.")
    assert told(memory, "events") == []
    assert told(memory, "memories") == ["[m1] Alice moved to Oslo in spring."]


def test_the_users_last_episodes_come_newest_first(memory: BlockingMemory) -> None:
    memory.sessions.create_session("s0", "helpdesk", "alice")
    for summary in ("Alice asked about her bill.", "Alice cancelled her subscription."):
        episode = memory.store_episode(["an entry"], session_id="s0")
        consolidate(memory, episode, summary)
    memory.store_episode(["of another session, and nothing was made of it yet"], session_id="s0")
    assert told(memory, "memories") == ["[m1] Alice cancelled her subscription.", "[m2] Alice asked about her bill."]
    assert told(memory, "events") == []
    citation = memory.fetch_recent_context("s1").citations[0]
    assert (citation.namespace, citation.key) == ("user:alice:episodes", f"episode-{episode.id}")


def test_it_keeps_to_its_budget(memory: BlockingMemory) -> None:
    memory.working.append("s1", [user(f"number {number}: {'word ' * 20}") for number in range(40)])
    context = memory.fetch_recent_context("s1", budget=200)
    assert context.tokens <= 200
    assert context.items[-1].text.startswith("- user: number 39")
    assert {lost.reason for lost in context.dropped} == {"budget"}


def test_who_may_see_only_the_session_sees_only_that(memory: BlockingMemory) -> None:
    memory.working.append("s1", [user("hello")])
    episode = memory.store_episode(["SECRET"], namespace="user:alice", session_id="s1")
    consolidate(memory, episode, "SECRET")
    guest = memory.as_principal(Principal("guest", {"session:s1": "read"}))
    context = guest.fetch_recent_context("s1")
    assert "hello" in context.text
    assert "SECRET" not in context.text
    with pytest.raises(SessionNotFound):
        memory.as_principal(Principal("bob", {"user:bob": "admin"})).fetch_recent_context("s1")


def test_what_cannot_be_used_is_refused(memory: BlockingMemory) -> None:
    with pytest.raises(SessionNotFound):
        memory.fetch_recent_context("nobody")
    for options in ({"limit": 0}, {"limit": "x"}, {"budget": 0}, {"budget": True}):
        with pytest.raises(InvalidInput):
            memory.fetch_recent_context("s1", **options)  # type: ignore[arg-type]


def test_a_vector_is_put_in_place_of_the_one_that_was_there() -> None:
    with sync.open("sqlite://", embedder=FakeEmbedder(dimension=2), background=False) as memory:
        first = memory.upsert_vector("v", [1.0, 0.0], {"n": 1}, text="one")
        again = memory.upsert_vector("v", [0.0, 1.0], {"n": 2}, text="two", namespace="app:vectors", actor="bot")
        assert (first.version, again.version, again.value) == (1, 2, "two")
        [match] = memory.vectors.query([0.0, 1.0], 1)
        assert (match.id, round(match.score, 3)) == ("v", 1.0)
