"""From working memory to long-term memory: each item once, whatever fails, over every database."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from mnemon import (
    AccessDenied,
    EpisodeEntry,
    EpisodeStatus,
    FlowReport,
    HybridMemoryService,
    InvalidInput,
    InvalidNamespace,
    Memory,
    Principal,
    StoreUnavailable,
)
from mnemon.episodes.claims import MOST_ATTEMPTS, PAUSES, Claims
from mnemon.ports import Store
from mnemon.testing import Crowd, FakeLanguageModel, FaultyStore, ManualClock, Suite
from mnemon.testing.handles import over, parts_of, with_language_model, with_settings
from mnemon.testing.suite import journal_after, last_position, peek, plant, unchanged
from tests.conformance.backends import OverEachDatabase

SAID = [
    {"role": "user", "text": "Hello! I live in Bergen."},
    {"role": "assistant", "text": "Noted, Bergen it is."},
    {"role": "user", "text": "And I'm allergic to nuts."},
]


async def remembered(memory: HybridMemoryService, namespace: str = "user:alice:facts") -> list[Any]:
    found = await memory.memories.search_memories(namespace, limit=1000)
    return sorted(each.value for each in found)


async def only(memory: HybridMemoryService, namespace: str = "user:alice:episodes") -> Memory:
    [found] = await memory.memories.search_memories(namespace)
    return found


class TestFlow(OverEachDatabase, Suite):
    settings: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture
    async def session(self, memory: HybridMemoryService) -> str:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        return "s1"

    async def test_what_was_said_becomes_a_summary_and_facts(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, SAID, actor="bot")
        said_at = clock.moment
        clock.advance(60)
        start = await last_position(store)

        report = await memory.consolidation.flow()

        assert report == FlowReport(rounds=1, drained=3, episodes=1, summaries=1, facts=2)
        assert await memory.working.recent(session) == []
        [episode] = await memory.episodes.list()
        assert (episode.status, episode.namespace, episode.session_id) == ("consolidated", "user:alice", session)
        assert (episode.attempts, episode.consolidated_at, episode.started_at) == (1, clock.moment, said_at)
        assert episode.entries == tuple(EpisodeEntry(value, said_at, "bot") for value in SAID)
        assert episode.metadata == {"buffer": "conversation", "first_sequence": 1, "last_sequence": 3}
        summary = await only(memory)
        assert (summary.key, summary.memory_type) == (f"episode-{episode.id}", "episodic")
        assert "alice: I live in Bergen." in summary.value
        assert summary.metadata["summary"] == {"method": "extractive"}
        assert (summary.provenance.session_id, summary.placement.occurred_at) == (session, said_at)
        assert await remembered(memory) == ["alice is allergic to nuts.", "alice lives in Bergen."]
        fact = (await memory.memories.search_memories("user:alice:facts"))[0]
        assert (fact.memory_type, fact.provenance.session_id, fact.created_by) == ("semantic", session, "consolidation")
        assert (fact.metadata["episode"], fact.placement.occurred_at) == (episode.id, said_at)
        told = [(entity, operation) for entity, _, operation, *_ in await journal_after(store, start)]
        assert told == [
            ("buffer", "acknowledge"),
            ("episode", "store"),
            ("episode", "consolidate"),
            *[("memory", "add")] * 3,
        ]
        assert "Bergen" not in str(await peek(store, "SELECT * FROM journal"))
        async with unchanged(store):
            assert await memory.consolidation.flow() == FlowReport()

    async def test_a_buffer_is_left_alone_until_nobody_uses_it(
        self, memory: HybridMemoryService, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["one"])
        clock.advance(20)
        await memory.working.append(session, ["two"])
        clock.advance(20)
        assert (await memory.consolidation.flow(30)).drained == 0
        clock.advance(10)
        assert (await memory.consolidation.flow(30)).drained == 2
        await memory.working.append(session, ["three"])
        clock.advance(1799)
        assert (await memory.consolidation.flow(None)).drained == 0
        assert (await with_settings(memory, consolidate_after=60).consolidation.flow(None)).drained == 1

    async def test_what_a_session_leaves_that_has_ended_is_not_waited_for(
        self, memory: HybridMemoryService, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["one"])
        await memory.sessions.create_session("s2", "helpdesk", "alice")
        await memory.working.append("s2", ["two"])
        clock.advance()
        await memory.sessions.terminate_session(session)
        assert await memory.consolidation.flow(3600) == FlowReport(rounds=1, drained=1, episodes=1, summaries=1)
        assert [episode.session_id for episode in await memory.episodes.list()] == [session]

    async def test_what_another_worker_has_drained_is_its_own(
        self, memory: HybridMemoryService, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["one", "two"])
        batch = await memory.working.drain(session, limit=1, lease=60)
        assert batch is not None
        assert (await memory.consolidation.flow()).drained == 1
        clock.advance(61)
        assert (await memory.consolidation.flow()).drained == 1
        entries = [entry.value for episode in await memory.episodes.list() for entry in episode.entries]
        assert entries == ["one", "two"]

    async def test_who_goes_on_meanwhile_keeps_the_buffer(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        await memory.working.append(session, ["one"])
        faulty = FaultyStore(store)

        async def go_on() -> None:
            await memory.working.append(session, ["two"])

        faulty.interleave("write", go_on)
        assert await over(memory, faulty).consolidation.flow(rounds=1) == FlowReport(rounds=1)
        assert [item.value for item in await memory.working.recent(session)] == ["one", "two"]

    async def test_many_items_are_several_episodes(self, memory: HybridMemoryService, session: str) -> None:
        await memory.working.append(session, [f"item {number}" for number in range(250)])
        await memory.working.append(session, ["x" * 600_000, "y" * 600_000], buffer="long")
        await memory.working.append(session, ["opened the file"], buffer="task_log")

        report = await memory.consolidation.flow()

        assert (report.drained, report.episodes, report.summaries) == (253, 6, 6)
        episodes = (await memory.episodes.list())[::-1]
        entries = [
            entry.value for each in episodes if each.metadata["buffer"] == "conversation" for entry in each.entries
        ]
        assert entries == [f"item {number}" for number in range(250)]
        assert sorted(len(each.entries) for each in episodes) == [1, 1, 1, 50, 100, 100]
        assert [each.metadata["buffer"] for each in episodes if each.kind == "task_log"] == ["task_log"]
        summaries = await memory.memories.search_memories("user:alice:episodes")
        assert {each.key for each in summaries} == {f"episode-{each.id}" for each in episodes}

    # -- facts

    async def test_a_fact_is_one_memory_however_often_it_is_said(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        first = clock.moment
        said = {"role": "user", "text": "I live in Bergen."}
        for days in (2, 0, 5):  # the second one comes late
            at = first + timedelta(days=days)
            await memory.store_episode([EpisodeEntry(said, at), EpisodeEntry(said, at)], namespace="user:alice")
            await memory.consolidation.flow()
        fact = await only(memory, "user:alice:facts")
        assert (fact.value, fact.version) == ("alice lives in Bergen.", 2)
        assert fact.placement.occurred_at == first + timedelta(days=5)

    async def test_a_fact_that_was_corrected_gives_way(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        for text in ("I live in Bergen.", "Actually, I live in Oslo now."):
            await memory.store_episode([{"role": "user", "text": text}], namespace="user:alice")
            clock.advance(60)
        report = await memory.consolidation.flow()
        assert (report.facts, report.conflicts) == (2, 1)
        assert await remembered(memory) == ["alice lives in Oslo."]
        clock.advance(60)
        await memory.store_episode([{"role": "user", "text": "I live in Bergen."}], namespace="user:alice")
        assert (await memory.consolidation.flow()).conflicts == 1
        fact = await only(memory, "user:alice:facts")
        assert (fact.value, fact.version) == ("alice lives in Bergen.", 3)

    async def test_the_strategy_is_a_setting(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        for text in ("I live in Bergen.", "I live in Oslo."):
            await memory.store_episode([{"role": "user", "text": text}], namespace="user:alice")
            clock.advance(60)
        for off in ("none", None):
            quiet = with_settings(memory, consolidation_strategy=off)
            await quiet.consolidation.flow()
            assert len(await remembered(memory)) == 2
        report = await with_settings(memory, consolidation_strategy="review").consolidation.flow()
        assert (report.for_review, report.conflicts, len(await remembered(memory))) == (1, 0, 2)
        assert len(await memory.consolidation.reviews()) == 1

    async def test_an_episode_of_a_project_is_remembered_there(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        await memory.store_episode(
            ["The talks begin.", None, 5],
            kind="negotiation",
            namespace="project:fleet",
            title="The van",
            participants=["buyer", "seller"],
            offers=[{"by": "buyer", "terms": {"price": 80}, "at": clock.moment}],
            outcome={"agreed": True, "price": 85},
        )
        await memory.store_episode([None], kind="task_log", namespace="app:cron")
        await memory.consolidation.flow()
        summary = await only(memory, "project:fleet:episodes")
        first, *rest = summary.value.splitlines()
        assert (first, rest[-1]) == ("The van", "Outcome: agreed: true; price: 85")
        assert any(line.endswith("buyer: Offers price: 80") for line in rest)
        assert summary.metadata["participants"] == ["buyer", "seller"]
        assert (await only(memory, "app:cron:episodes")).value == "A task log in which nothing was said"

    # -- the language model

    async def test_a_language_model_summarises(self, memory: HybridMemoryService, session: str) -> None:
        fact = {"subject": "alice", "attribute": "pet", "value": "nuts", "source": "s3"}
        model = FakeLanguageModel({"summary": "Alice lives in Bergen.", "facts": [fact]}, name="tiny")
        await memory.working.append(session, SAID)
        report = await with_language_model(memory, model).consolidation.flow()
        assert (report.summaries, report.fallbacks, report.usage.calls) == (1, 0, 1)
        summary = await only(memory)
        assert summary.value == "Alice lives in Bergen."
        told = summary.metadata["summary"]
        assert (told["method"], told["model"], len(told["prompt"])) == ("model", "tiny", 12)

    @pytest.mark.parametrize("failure", [None, ZeroDivisionError("a bug of its own")])
    async def test_without_its_language_model_it_goes_on_and_says_so(
        self, memory: HybridMemoryService, session: str, failure: Exception | None
    ) -> None:
        model = FakeLanguageModel(*[failure] if failure else [])
        if failure is None:
            model.fail(times=9)
        await memory.working.append(session, SAID)
        report = await with_language_model(memory, model).consolidation.flow()
        assert (report.summaries, report.facts, report.failed, report.fallbacks) == (1, 2, 0, 1)
        told = (await only(memory)).metadata["summary"]
        assert told["method"] == "extractive"
        assert str(failure or "told to fail") in told["fallback"]

    # -- failures

    async def test_an_episode_that_cannot_be_consolidated_holds_up_no_other(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        bad = await memory.store_episode(["one"], namespace="user:alice")
        await plant(store, "UPDATE episodes SET body = '[1]' WHERE id = :id", id=bad.id)
        start = await last_position(store)
        for attempt in range(1, MOST_ATTEMPTS + 1):
            good = await memory.store_episode([f"two {attempt}"], namespace="user:bob")
            report = await memory.consolidation.flow()
            assert (report.failed, report.summaries) == (1, 1)
            [row] = await peek(store, "SELECT status, attempts, error, claim FROM episodes WHERE id = :id", id=bad.id)
            over_now = attempt == MOST_ATTEMPTS
            assert row[:2] == ("failed" if over_now else "pending", attempt)
            assert (row[2].startswith("TypeError: "), row[3]) == (True, None)
            await plant(store, "DELETE FROM episodes WHERE id = :id", id=good.id)
            if not over_now:
                clock.advance(PAUSES[attempt - 1] - 1)
                assert await memory.consolidation.flow() == FlowReport()
                clock.advance(1)
        clock.advance(10**6)
        assert await memory.consolidation.flow() == FlowReport()
        fails = [entry for entry in await journal_after(store, start) if entry[2] == "fail"]
        assert len(fails) == MOST_ATTEMPTS
        assert (await memory.episodes.counts())[EpisodeStatus.FAILED] == 1
        await plant(store, "UPDATE episodes SET body = '[{\"value\": 1}]' WHERE id = :id", id=bad.id)
        assert await memory.episodes.retry(bad.id) == 1
        assert (await memory.consolidation.flow()).summaries == 1

    async def test_a_worker_that_was_too_slow_writes_nothing(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.store_episode(SAID, session_id=session)
        faulty = FaultyStore(store)

        async def take_over() -> None:
            clock.advance(61)
            assert (await memory.consolidation.flow()).summaries == 1

        faulty.interleave("write", take_over, skip=1)  # after the claim, before what came of it
        report = await over(memory, faulty).consolidation.flow(rounds=1)
        assert report == FlowReport(rounds=1)
        assert ((await only(memory)).version, len(await remembered(memory))) == (1, 2)
        [episode] = await memory.episodes.list()
        assert (episode.status, episode.attempts) == ("consolidated", 2)

    async def test_a_late_finish_counts_if_nobody_has_taken_over(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.store_episode(SAID, session_id=session)
        faulty = FaultyStore(store)

        async def dawdle() -> None:
            clock.advance(3600)

        faulty.interleave("write", dawdle, skip=1)
        assert (await over(memory, faulty).consolidation.flow(lease=5)).summaries == 1

    async def test_an_episode_that_kills_its_workers_is_given_up(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        await memory.store_episode(["one"], namespace="user:alice")
        claims = Claims(store, clock)
        for _ in range(MOST_ATTEMPTS):
            assert await claims.take(10) is not None
            assert await claims.take(10) is None
            clock.advance(10)
        report = await memory.consolidation.flow()
        assert (report.failed, report.summaries) == (1, 0)
        [episode] = await memory.episodes.list(status="failed")
        assert (episode.attempts, "came to an end" in str(episode.error)) == (MOST_ATTEMPTS, True)

    @pytest.mark.parametrize("error", [StoreUnavailable("down"), KeyboardInterrupt()])
    async def test_what_is_not_the_episode_s_fault_does_not_count(
        self, memory: HybridMemoryService, store: Store, error: Any
    ) -> None:
        await memory.store_episode(["one"], namespace="user:alice")
        faulty = FaultyStore(store)
        faulty.fail("write", error, skip=1)
        with pytest.raises(type(error)):
            await over(memory, faulty).consolidation.flow()
        [episode] = await memory.episodes.list()
        assert (episode.status, episode.attempts) == ("pending", 0)
        assert (await memory.consolidation.flow()).summaries == 1

    async def test_a_buffer_that_cannot_be_drained_holds_up_no_other(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock, session: str
    ) -> None:
        await memory.working.append(session, ["one"])
        clock.advance()
        await memory.working.append(session, ["two"], buffer="other")
        faulty = FaultyStore(store)
        faulty.fail_statement("insert_episode", InvalidInput("no"))
        flow = over(memory, faulty).consolidation.flow
        assert (await flow()).drained == 1
        faulty.heal()
        assert (await flow()).drained == 0  # until something is appended
        assert (await memory.consolidation.flow()).drained == 1

    async def test_settling_goes_on_where_it_was_stopped(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for text in ("I live in Bergen.", "I live in Oslo."):
            await memory.store_episode([{"role": "user", "text": text}], namespace="user:alice")
            clock.advance(60)
        await memory.consolidation.flow(rounds=1)
        faulty = FaultyStore(store)
        faulty.fail_statement("insert_memory", StoreUnavailable("killed"), skip=2)  # where the old fact is given up
        with pytest.raises(StoreUnavailable):
            await over(memory, faulty).consolidation.flow()
        assert len(await remembered(memory)) == 2
        assert (await memory.consolidation.flow()).conflicts == 1
        assert await remembered(memory) == ["alice lives in Oslo."]

    async def test_facts_that_cannot_be_settled_hold_up_no_others(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        for user in ("alice", "bob"):
            for text in ("I live in Bergen.", "I live in Oslo."):
                await memory.store_episode([{"role": "user", "text": text}], namespace=f"user:{user}")
                clock.advance(60)
        await with_settings(memory, consolidation_strategy="none").consolidation.flow()
        faulty = FaultyStore(store)
        faulty.fail_statement("insert_memory", InvalidNamespace("no"))
        assert (await over(memory, faulty).consolidation.flow()).conflicts == 1
        assert len(await remembered(memory, "user:alice:facts")) == 2
        assert await remembered(memory, "user:bob:facts") == ["bob lives in Oslo."]

    # -- several at once, and who may

    async def test_two_at_once_come_to_the_same(self, memory: HybridMemoryService, crowd: Crowd, session: str) -> None:
        for number in range(12):
            await memory.working.append(
                session, [{"role": "user", "text": f"My phone is {number:04}."}], buffer=f"b{number}"
            )
        others = [over(memory, parts_of(memory).store) for _ in range(3)]
        reports = await crowd.gather([each.consolidation.flow for each in others])
        total = reports[0].plus(reports[1]).plus(reports[2])
        assert (total.drained, total.episodes, total.summaries, total.failed) == (12, 12, 12, 0)
        summaries = await memory.memories.search_memories("user:alice:episodes")
        assert sorted(each.version for each in summaries) == [1] * 12
        assert (await memory.episodes.counts())[EpisodeStatus.CONSOLIDATED] == 12

    async def test_progress_is_told(self, memory: HybridMemoryService, session: str) -> None:
        for name in ("a", "b"):
            await memory.working.append(session, ["x"], buffer=name)
        told: list[FlowReport] = []
        report = await memory.consolidation.flow(progress=told.append)
        assert [each.summaries for each in told] == [1, 2]
        assert told[-1] == report

    async def test_only_who_may_do_everything_may(
        self, memory: HybridMemoryService, store: Store, session: str
    ) -> None:
        await memory.working.append(session, ["one"])
        bound = memory.as_principal(Principal("alice", {"user:alice": "admin", "session:s1": "admin"}))
        async with unchanged(store):
            with pytest.raises(AccessDenied):
                await bound.consolidation.flow()
            for bad in ({"idle": -1}, {"idle": "x"}, {"lease": 0}, {"rounds": 0}, {"rounds": 1.5}):
                with pytest.raises(InvalidInput):
                    await memory.consolidation.flow(**bad)  # type: ignore[arg-type]
        root = memory.as_principal(Principal("root", {"": "admin"}))
        assert (await root.consolidation.flow()).drained == 1
