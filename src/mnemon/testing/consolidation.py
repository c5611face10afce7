"""The contract of `ConsolidationService`: memories become one as a strategy says; nothing is lost or overwritten."""

from typing import Any

import pytest

from mnemon.errors import AccessDenied, InvalidInput, InvalidNamespace, InvalidStatus, ReviewNotFound
from mnemon.hybrid import HybridMemoryService
from mnemon.model import ConsolidationReport, ConsolidationStrategy, MemoryVersion, Placement, Principal, Provenance
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.consolidation_verdicts import ANN, BERGEN, OSLO, ConsolidationVerdictSuite, Shelf, live
from mnemon.testing.crowds import Crowd
from mnemon.testing.faults import with_faults
from mnemon.testing.handles import with_settings
from mnemon.testing.suite import journal_after, last_position, peek, refused, unchanged

STRATEGIES = [str(each) for each in ConsolidationStrategy]


class ConsolidationSuite(ConsolidationVerdictSuite):
    """Any backend must pass; override the fixture `memory`."""

    # -- strategies

    async def test_the_latest_wins(self, memory: HybridMemoryService, shelf: Shelf) -> None:
        await shelf.two(0.9, 0.4)
        await shelf.add("other", "The office is in Rome.")

        report = await memory.memories.consolidate_memories(ANN, "latest_wins")

        assert await live(memory) == {"note-2": OSLO, "other": "The office is in Rome."}
        [step] = report.steps
        assert (step.kept, step.retired) == (MemoryVersion(ANN, "note-2", 1), (MemoryVersion(ANN, "note-1", 1),))
        assert (step.kinds, step.method, step.status) == (("superseded",), "latest_wins", "applied")
        assert (step.is_merged, step.value, step.trust) == (False, OSLO, 0.4)
        assert (report.examined, report.findings, report.applied, report.skipped) == (3, 1, 1, 0)
        assert (report.strategy, report.strategy_used, report.is_dry_run) == ("latest_wins", "latest_wins", False)
        kept = await memory.memories.get_memory(ANN, "note-2")
        assert kept is not None
        assert (kept.version, kept.provenance.trust, kept.metadata) == (1, 0.4, {})

    async def test_the_most_trusted_wins(self, memory: HybridMemoryService, shelf: Shelf) -> None:
        await shelf.two(0.9, 0.4)
        await memory.consolidate(ANN, "highest_trust")
        assert await live(memory) == {"note-1": BERGEN}

    async def test_of_those_that_are_trusted_alike_the_later_wins(
        self, memory: HybridMemoryService, shelf: Shelf
    ) -> None:
        await shelf.two(0.4, 0.4)
        await memory.consolidate(ANN, "highest_trust")
        assert await live(memory) == {"note-2": OSLO}

    async def test_merged_memories_keep_what_both_said_and_the_lowest_trust(
        self, memory: HybridMemoryService, shelf: Shelf
    ) -> None:
        await shelf.add("note-1", BERGEN, 0.3, author="ann", importance=0.9)
        await shelf.add("note-2", OSLO, 0.8, author="bob", importance=0.2, metadata={"tag": "home"})

        report = await memory.consolidate(ANN, "merge", actor="worker", task_id="t1")

        kept = await memory.memories.get_memory(ANN, "note-2")
        assert kept is not None
        assert kept.value == f"{OSLO}\nEarlier: {BERGEN}"
        assert (kept.version, kept.updated_by, kept.task_id) == (2, "worker", "t1")
        assert (kept.provenance.trust, kept.provenance.author, kept.provenance.importance) == (0.3, None, 0.9)
        assert kept.metadata["tag"] == "home"
        assert kept.metadata["consolidated"]["sources"] == [
            {"key": "note-1", "version": 1}, {"key": "note-2", "version": 1},
        ]  # fmt: skip
        assert await live(memory) == {"note-2": kept.value}
        assert (report.steps[0].is_merged, report.steps[0].trust, report.steps[0].value) == (True, 0.3, kept.value)
        [hit] = await memory.recall("Bergen", namespaces=ANN)
        assert hit.memory == kept

    async def test_what_a_memory_went_into_can_be_found_by_its_key(
        self, memory: HybridMemoryService, shelf: Shelf
    ) -> None:
        await shelf.two()
        await memory.consolidate(ANN, "merge")
        await shelf.add("note-3", "Ann moved to Rome.")
        await memory.consolidation.consolidate(ANN, "review")
        for review in await memory.consolidation.reviews():
            await memory.consolidation.decide(review.id, "merge", "Ann lived in Bergen, Oslo and Rome.")
        [found] = await memory.memories.search_memories(ANN, where={"consolidated.keys": {"contains": "note-1"}})
        assert (found.key, found.metadata["consolidated"]["keys"]) == ("note-3", ["note-1", "note-2", "note-3"])

    @pytest.mark.parametrize("told", [1, {"keys": 5}, {"keys": [["x"], None, "old"]}, [], None])
    async def test_metadata_of_the_callers_own_do_no_harm(
        self, memory: HybridMemoryService, shelf: Shelf, told: Any
    ) -> None:
        await shelf.add("note-1", BERGEN, metadata={"consolidated": told, "superseded_by": told})
        await shelf.add("note-2", OSLO, metadata={"consolidated": told})
        assert (await memory.consolidate(ANN, "merge")).applied == 1
        kept = await memory.memories.get_memory(ANN, "note-2")
        assert kept is not None
        assert set(kept.metadata["consolidated"]["keys"]) - {"old"} == {"note-1", "note-2"}

    async def test_merged_records_have_the_fields_of_both(self, memory: HybridMemoryService, shelf: Shelf) -> None:
        """Where both have a field, the later one holds."""
        await shelf.add("ann/profile", {"city": "Bergen", "diet": "vegan"})
        await shelf.add("ann_profile", {"city": "Oslo", "phone": "12345"})

        await memory.consolidate(ANN, "merge")

        assert await live(memory) == {"ann_profile": {"city": "Oslo", "diet": "vegan", "phone": "12345"}}

    async def test_a_group_becomes_one(self, memory: HybridMemoryService, shelf: Shelf) -> None:
        """Given copies of copies and what they contradict, when they are consolidated, then one of all is left."""
        await shelf.add("note-1", BERGEN)
        await shelf.add("note-2", BERGEN)
        await shelf.add("note-3", "Ann lives in Bergen")
        await shelf.add("note-4", OSLO)
        await shelf.add("note-5", OSLO)

        report = await memory.consolidate(ANN, "latest_wins")

        assert await live(memory) == {"note-5": OSLO}
        [step] = report.steps
        assert [each.key for each in step.retired] == ["note-1", "note-2", "note-3", "note-4"]
        history = await memory.memories.get_memory_history(ANN, "note-1")
        assert history[-1].metadata["superseded_by"] == {"key": "note-5", "version": 1}

    async def test_what_was_said_again_is_the_latest(self, memory: HybridMemoryService, shelf: Shelf) -> None:
        await shelf.two()
        await shelf.add("note-3", BERGEN)
        await memory.consolidate(ANN, "latest_wins")
        assert await live(memory) == {"note-3": BERGEN}

    @pytest.mark.parametrize("strategy", STRATEGIES)
    async def test_a_second_time_there_is_nothing_to_do(
        self, memory: HybridMemoryService, store: Store, shelf: Shelf, clock: ManualClock, strategy: str
    ) -> None:
        await shelf.two(0.9, 0.4)
        for number, text in enumerate((OSLO, "The build takes 90 minutes.", "The build takes 1.5 h.")):
            await shelf.add(f"note-{number + 3}", text)
        assert (await memory.consolidate(ANN, strategy)).findings
        clock.advance()

        async with unchanged(store):
            again = await memory.consolidate(ANN, strategy)
        assert (again.steps, again.for_review) == ((), ())

    @pytest.mark.parametrize("strategy", STRATEGIES)
    async def test_a_dry_run_shows_the_plan_and_writes_nothing(
        self, memory: HybridMemoryService, store: Store, shelf: Shelf, strategy: str
    ) -> None:
        await shelf.two()
        async with unchanged(store):
            planned = await memory.memories.consolidate_memories(ANN, strategy, dry_run=True)
        done = await memory.memories.consolidate_memories(ANN, strategy)

        assert planned.is_dry_run
        assert {step.status for step in planned.steps} <= {"planned"}
        assert [(step.kept, step.retired, step.value) for step in planned.steps] == [
            (step.kept, step.retired, step.value) for step in done.steps
        ]
        assert planned.for_review == done.for_review
        assert len(planned.steps) + len(planned.for_review) == 1

    # -- what is looked at

    async def test_only_what_states_something_is_compared(self, memory: HybridMemoryService, shelf: Shelf) -> None:
        """A turn of a conversation may be said twice, so may a part of two files, and vectors may have no text."""
        for number in range(2):
            await shelf.add(f"turn-{number}", "Thanks!", memory_type="episodic")
            await memory.documents.add(f"{number}.md", namespace=ANN, content="Licensed under MIT.")
            await shelf.add(f"empty-{number}", "")
            await shelf.add(f"how-{number}", "Run make deploy to deploy.", memory_type="procedural")

        report = await memory.consolidate(ANN, "latest_wins")

        assert (report.examined, report.findings) == (2, 1)
        assert len((await memory.memories.search_memories(ANN)).items) == 7
        turns = await memory.consolidate(ANN, "latest_wins", types=["episodic"])
        assert (turns.examined, turns.applied) == (2, 1)

    async def test_memories_of_different_namespaces_and_types_are_not_compared(
        self, memory: HybridMemoryService, shelf: Shelf
    ) -> None:
        await shelf.add("note-1", BERGEN, namespace=f"{ANN}:home")
        await shelf.add("note-2", OSLO, namespace=f"{ANN}:work")
        await shelf.add("note-3", OSLO, namespace=f"{ANN}:home", memory_type="procedural")
        assert (await memory.consolidate("user:ann", "latest_wins")).findings == 0

        await shelf.add("note-4", OSLO, namespace=f"{ANN}:home")
        report = await memory.consolidate("user:ann", "latest_wins")
        assert (report.examined, report.applied) == (4, 1)

    async def test_a_large_namespace_is_gone_through_in_pages(self, memory: HybridMemoryService) -> None:
        await memory.remember_many(
            [{"key": f"note-{n}", "value": f"Box {n} holds {n * 7} nails."} for n in range(1100)]
            + [{"key": f"z-{n}", "value": f"Box {n} holds {n * 7} nails."} for n in range(5)],
            namespace=ANN,
        )
        report = await memory.consolidate(ANN, "latest_wins")
        assert (report.examined, report.applied) == (1105, 5)

    # -- nothing is lost

    async def test_what_was_given_up_says_why_and_can_be_restored(
        self, memory: HybridMemoryService, store: Store, shelf: Shelf
    ) -> None:
        await shelf.add("note-1", BERGEN, metadata={"tag": 1})
        await shelf.add("note-2", OSLO)
        position = await last_position(store)

        await memory.consolidate(ANN, "merge", actor="worker")

        assert await journal_after(store, position) == [
            ("memory", "note-1", "delete", 2, ANN), ("memory", "note-2", "update", 2, ANN),
        ]  # fmt: skip
        first, last = await memory.memories.get_memory_history(ANN, "note-1")
        assert (first.value, first.metadata, last.is_deleted, last.updated_by) == (BERGEN, {"tag": 1}, True, "worker")
        assert last.metadata == {
            "tag": 1,
            "superseded_by": {"key": "note-2", "version": 2},
            "consolidated": {"method": "merge", "kinds": ["superseded"]},
        }
        assert (await memory.memories.get_memory_history(ANN, "note-2"))[0].value == OSLO
        assert await memory.memories.restore_memory(ANN, "note-1") == 3
        restored = await memory.memories.get_memory(ANN, "note-1")
        assert restored is not None
        assert (restored.value, restored.metadata) == (BERGEN, {"tag": 1})

    async def test_a_merged_memory_ends_when_it_did(
        self, memory: HybridMemoryService, shelf: Shelf, clock: ManualClock
    ) -> None:
        await shelf.add("note-1", BERGEN)
        until = clock.advance(3600)
        clock.advance(-3000)
        await memory.memories.add_memory(
            ANN, "note-2", OSLO, provenance=Provenance(trust=0.5), placement=Placement(valid_to=until)
        )
        await memory.consolidate(ANN, "merge")
        kept = await memory.memories.get_memory(ANN, "note-2")
        assert kept is not None
        assert (kept.version, kept.placement.valid_to) == (2, until)

    # -- races

    @pytest.mark.parametrize("changed", ["note-1", "note-2"])
    @pytest.mark.parametrize("strategy", ["latest_wins", "merge"])
    async def test_what_was_changed_meanwhile_is_never_overwritten(
        self, memory: HybridMemoryService, shelf: Shelf, changed: str, strategy: str
    ) -> None:
        """Given a plan, when one of its memories is changed before it is carried out, then nothing of it happens."""
        await shelf.two()
        faulty, faults = with_faults(memory)

        async def change() -> None:
            await memory.memories.update_memory(ANN, changed, "Ann likes tea.")

        faults.interleave("write", change)
        report = await faulty.consolidate(ANN, strategy)

        assert [step.status for step in report.steps] == ["outdated"]
        assert (report.applied, report.skipped) == (0, 1)
        assert await live(memory) == {"note-1": BERGEN, "note-2": OSLO, changed: "Ann likes tea."}

    async def test_what_was_deleted_or_purged_meanwhile_stays_so(
        self, memory: HybridMemoryService, shelf: Shelf
    ) -> None:
        for gone in (memory.memories.delete_memory, memory.memories.purge_memory):
            await shelf.two()
            faulty, faults = with_faults(memory)

            async def change(gone: Any = gone) -> None:
                await gone(ANN, "note-2")

            faults.interleave("write", change)
            report = await faulty.consolidate(ANN, "merge")
            assert [step.status for step in report.steps] == ["outdated"]
            assert await live(memory) == {"note-1": BERGEN}

    async def test_those_who_consolidate_at_once_do_it_once(
        self, memory: HybridMemoryService, store: Store, shelf: Shelf, crowd: Crowd
    ) -> None:
        for number in range(6):
            await shelf.add(f"note-{number}1", f"Box {number} is red.")
            await shelf.add(f"note-{number}2", f"Box {number} is red.")
        await shelf.two()

        async def once() -> ConsolidationReport:
            return await memory.consolidate(ANN, "merge")

        reports = await crowd.gather([once for _ in range(4)])

        assert sum(report.applied for report in reports) == 7
        assert len(await live(memory)) == 7
        merged = await memory.memories.get_memory(ANN, "note-2")
        assert merged is not None
        assert (merged.version, merged.value.count("Earlier")) == (2, 1)
        deleted = await peek(store, "SELECT COUNT(*) FROM memory_entries WHERE is_deleted = TRUE")
        assert deleted == [(7,)]

    async def test_those_who_ask_at_once_ask_once(
        self, memory: HybridMemoryService, shelf: Shelf, crowd: Crowd
    ) -> None:
        await shelf.two()

        async def once() -> ConsolidationReport:
            return await memory.consolidate(ANN, "review")

        await crowd.gather([once for _ in range(4)])
        assert len((await memory.consolidation.reviews()).items) == 1

    async def test_a_value_that_grows_too_large_is_left_alone(
        self, memory: HybridMemoryService, store: Store, shelf: Shelf
    ) -> None:
        await shelf.add("ann/profile", {"city": "Bergen", "diet": "vegan" * 10})
        await shelf.add("ann_profile", {"city": "Oslo", "phone": "12345" * 10})
        narrow = with_settings(memory, max_value_bytes=100)
        async with unchanged(store):
            report = await narrow.consolidate(ANN, "merge")
        assert [step.status for step in report.steps] == ["refused"]

    # -- access, and bad input

    async def test_a_principal_sees_and_changes_only_its_own(
        self, memory: HybridMemoryService, store: Store, shelf: Shelf
    ) -> None:
        await shelf.two()
        await memory.consolidate(ANN, "review")
        [review] = await memory.consolidation.reviews()
        ben = memory.as_principal(Principal("ben", {"user:ben": "admin"}))
        reader = memory.as_principal(Principal("rita", {"user:ann": "read"}))
        part = memory.as_principal(Principal("pia", {f"{ANN}:home": "admin"}))
        writer = memory.as_principal(Principal("ann", {"user:ann": "write"}))

        for other in (ben, part):
            async with refused(store, AccessDenied):
                await other.consolidate(ANN, "latest_wins", dry_run=True)
            assert not await other.consolidation.reviews()
            async with refused(store, ReviewNotFound):
                await other.consolidation.decide(review.id, "first")
        for call in (reader.consolidate(ANN, "latest_wins"), reader.consolidation.decide(review.id, "first")):
            async with refused(store, AccessDenied):
                await call
        assert len((await reader.consolidate(ANN, "latest_wins", dry_run=True)).steps) == 1
        assert len((await reader.consolidation.reviews()).items) == 1
        decided = await writer.consolidation.decide(review.id, "second", actor="somebody")
        assert decided.decided_by == "ann"

    async def test_what_cannot_be_is_refused(self, memory: HybridMemoryService, store: Store, shelf: Shelf) -> None:
        await shelf.two()
        await memory.consolidate(ANN, "review")
        [review] = await memory.consolidation.reviews()
        decide = memory.consolidation.decide
        for call, error in (
            (memory.consolidate(ANN, "newest"), InvalidStatus),
            (memory.consolidate("nowhere:x"), InvalidNamespace),
            (memory.consolidate(ANN, types="made up"), InvalidStatus),
            (memory.consolidation.reviews("closed"), InvalidStatus),
            (decide(review.id, "third"), InvalidStatus),
            (decide(review.id, "merge"), InvalidInput),
            (decide(review.id, "first", "text"), InvalidInput),
            (decide(review.id + 1, "first"), ReviewNotFound),
        ):
            async with refused(store, error):
                await call
