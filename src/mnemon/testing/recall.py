"""What remembering, recalling and contexts promise over every database."""

from datetime import UTC, datetime, timedelta
from typing import Any

from mnemon.errors import AccessDenied, InvalidInput, InvalidNamespace, InvalidStatus, MemoryNotFound, SessionNotFound
from mnemon.hybrid import HybridMemoryService
from mnemon.model import MemoryDraft, Placement, Principal, Provenance
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.handles import with_embedder
from mnemon.testing.recall_questions import CODE, RAIN, TEA, RecallQuestionSuite, recalled
from mnemon.testing.suite import QUIET, last_position, refused, unchanged

RECALLING: dict[str, Any] = {**QUIET, "remember_events": ("session",), "embedder": "static"}
"""The settings with which everything can be recalled, and nothing happens but what a test does."""


class RecallSuite(RecallQuestionSuite):
    """What was remembered is recalled: at once, best first, as it stands, and only by those who may.

    `memory` has to be opened with the settings `RECALLING`; another embedder will do if it tells tea from rain.
    """

    # -- remembering

    async def test_an_empty_database_answers_nothing(self, memory: HybridMemoryService, store: Store) -> None:
        async with unchanged(store):
            assert await memory.recall("anything", namespaces="") == []
            assert await memory.recall("anything", namespaces="user:a", as_of=datetime.now(UTC), explain=True) == []
            context = await memory.context("anything")
        assert (context.items, context.citations, context.text) == ((), (), "")

    async def test_what_was_remembered_is_recalled_at_once(self, memory: HybridMemoryService) -> None:
        for text in (TEA, RAIN, CODE):
            await memory.remember(text, namespace="user:a")
        await memory.remember({"name": "Kim", "pets": ["a parrot"]}, namespace="user:a", key="kim")

        assert (await recalled(memory, "Who drinks tea?"))[0] == TEA
        assert (await recalled(memory, "rain"))[0] == RAIN
        assert (await recalled(memory, "the beverage she has for breakfast"))[0] == TEA
        assert (await recalled(memory, "Which software does he develop?"))[0] == CODE
        assert (await recalled(memory, "Who has a parrot?"))[0] == {"name": "Kim", "pets": ["a parrot"]}
        assert await recalled(memory, "tea", k=1) == [TEA]

    async def test_everything_that_was_said_of_a_memory_comes_back(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        then = clock.moment - timedelta(days=9)
        told = await memory.remember(
            TEA, namespace="user:a", key="tea", memory_type="episodic", thread="t", position=3, occurred_at=then,
            author="Alice", importance=0.9, trust=0.8, metadata={"seen": 1}, actor="me",
        )  # fmt: skip
        [hit] = await memory.recall("tea", namespaces="user:a")
        assert hit.memory == told == await memory.memories.get_memory("user:a", "tea")
        assert (told.memory_type, told.metadata, told.created_by) == ("episodic", {"seen": 1}, "me")
        assert told.provenance == Provenance(author="Alice", importance=0.9, trust=0.8)
        assert told.placement == Placement("t", 3, then, then)

    async def test_a_key_that_is_remembered_again_is_the_next_version(
        self, memory: HybridMemoryService, store: Store, clock: ManualClock
    ) -> None:
        first = await memory.remember("Alice lives in Oslo.", namespace="user:a", key="home", metadata={"n": 1})
        clock.advance()
        async with unchanged(store):
            again = await memory.remember("Alice lives in Oslo.", namespace="user:a", key="home", metadata={"n": 1})
        assert again == first

        second = await memory.remember("Alice lives in Bergen.", namespace="user:a", key="home")
        assert (first.version, second.version) == (1, 2)
        assert await recalled(memory, "Oslo") == await recalled(memory, "Bergen") == ["Alice lives in Bergen."]
        other = await memory.remember("Alice lives in Bergen.", namespace="user:b", key="home")
        assert other.version == 1
        unnamed = [await memory.remember(TEA, namespace="user:c") for _ in range(2)]
        assert unnamed[0].key != unnamed[1].key

    async def test_many_are_remembered_as_they_are_given(self, memory: HybridMemoryService) -> None:
        items: list[Any] = [f"Note {n} is about pottery-{n}." for n in range(200)]
        items += [{"text": f"Page {n} is about weaving-{n}.", "key": f"page {n}", "trust": 0.5} for n in range(200)]
        items += [MemoryDraft(f"Draft {n} on carving-{n}.", "user:b", f"draft {n}") for n in range(100)]
        found = await memory.remember_many(items, namespace="user:a", actor="me")

        assert [each.value for each in found[::100]] == [
            "Note 0 is about pottery-0.", "Note 100 is about pottery-100.", "Page 0 is about weaving-0.",
            "Page 100 is about weaving-100.", "Draft 0 on carving-0.",
        ]  # fmt: skip
        assert {each.namespace for each in found[:400]} == {"user:a"}
        assert {each.created_by for each in found} == {"me"}
        for craft, number, namespace in (
            ("pottery", 77, "user:a"),
            ("weaving", 199, "user:a"),
            ("carving", 9, "user:b"),
        ):
            [hit, *_] = await memory.recall(f"What is {craft}-{number}?", namespaces="")
            assert f"{craft}-{number}." in hit.memory.value
            assert hit.memory.namespace == namespace
        assert await memory.remember_many([]) == []

    async def test_a_batch_with_a_bad_one_is_refused_whole(self, memory: HybridMemoryService, store: Store) -> None:
        good: list[Any] = [f"note {n}" for n in range(30)]
        for bad, error in (
            ({"text": "x", "namespace": "nowhere:a"}, InvalidNamespace),
            ({"text": "x", "trust": 2}, InvalidInput),
            ({"text": "x", "colour": "red"}, InvalidInput),
            ({"key": "k"}, InvalidInput),
            ({"text": float("nan")}, InvalidInput),
            ({"text": "x", "memory_type": "odd"}, InvalidStatus),
            ({"text": "x", "position": 3}, InvalidInput),
        ):
            async with refused(store, error):
                await memory.remember_many([*good, bad], namespace="user:a")
        async with refused(store, InvalidInput, "namespace"):
            await memory.remember_many(good)

    # -- changes

    async def test_every_change_is_seen_at_once(self, memory: HybridMemoryService) -> None:
        await memory.remember(RAIN, namespace="user:a", key="rain")
        await memory.memories.add_memory("user:a", "k", TEA)
        assert (await recalled(memory, "tea"))[0] == TEA

        await memory.memories.update_memory("user:a", "k", CODE)
        assert (await recalled(memory, "Rust"))[0] == CODE
        assert TEA not in await recalled(memory, "tea")

        await memory.memories.delete_memory("user:a", "k")
        assert await recalled(memory, "Rust tea") == [RAIN]

        await memory.memories.restore_memory("user:a", "k", version=1)
        assert (await recalled(memory, "tea"))[0] == TEA
        assert (await recalled(memory, "a beverage for breakfast"))[0] == TEA

        await memory.memories.purge_memory("user:a", "k")
        assert await recalled(memory, "Rust tea") == [RAIN]
        await memory.memories.add_memory("user:a", "k", CODE)
        assert (await recalled(memory, "Rust"))[0] == CODE

    async def test_what_is_forgotten_is_not_recalled(self, memory: HybridMemoryService, store: Store) -> None:
        for namespace in ("user:a", "user:a:work", "user:ab"):
            await memory.remember_many(
                [{"text": TEA, "key": "tea"}, {"text": RAIN, "key": "rain"}], namespace=namespace
            )

        assert await memory.forget("user:a", "tea") == 1
        assert await recalled(memory, "tea", "user:a:work", k=1) == [TEA]
        assert len(await recalled(memory, "tea")) == 5
        async with refused(store, MemoryNotFound):
            await memory.forget("user:a", "tea")
        await memory.memories.restore_memory("user:a", "tea")
        assert len(await recalled(memory, "tea")) == 6

        assert await memory.forget("user:a", actor="me") == 4
        assert {hit.memory.namespace for hit in await memory.recall("tea rain", namespaces="")} == {"user:ab"}
        assert await memory.forget("user:a") == 0

        assert await memory.forget("user:ab", erase=True) == 2
        assert await memory.recall("tea rain", namespaces="") == []
        assert await memory.memories.get_memory_history("user:ab", "tea") == []
        assert len(await memory.memories.get_memory_history("user:a", "tea")) == 4

    # -- who may see what

    async def test_nobody_recalls_what_is_not_open_to_them(self, memory: HybridMemoryService, store: Store) -> None:
        for position, namespace in enumerate(("user:al", "user:alice", "user:bob", "app:x")):
            await memory.remember(
                f"{TEA} For {namespace}.", namespace=namespace, key="tea", thread="shared", position=position
            )
        al = memory.as_principal(Principal("al", {"user:al": "write", "app:x": "read"}))

        hits = await al.recall("tea", namespaces="")
        assert sorted(hit.memory.namespace for hit in hits) == ["app:x", "user:al"]
        assert await recalled(al, "tea", "user") == [f"{TEA} For user:al."]
        assert {each.namespace for each in (await al.context("tea")).citations} <= {"app:x", "user:al"}
        nobody = memory.as_principal(Principal("nobody", {}))
        for handle, namespaces in ((al, "user:alice"), (al, ["user:al", "user:bob"]), (al, "project"), (nobody, "")):
            async with refused(store, AccessDenied):
                await handle.recall("tea", namespaces=namespaces)
        async with refused(store, AccessDenied):
            await al.remember(RAIN, namespace="app:x")
        async with refused(store, AccessDenied):
            await al.remember_many([{"text": RAIN, "namespace": "user:al"}, RAIN], namespace="user:bob")
        async with refused(store, AccessDenied):
            await al.forget("user:al", "tea", erase=True)
        await al.remember(RAIN, namespace="user:al")
        assert (await recalled(al, "rain"))[0] == RAIN

    # -- conversations

    async def test_what_was_said_in_a_session_is_recalled_once_settled(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        said = await memory.sessions.append_events(
            "s1",
            [
                {"role": "user", "content": "My parrot is called Kiki.", "author": "Alice"},
                {"role": "assistant", "content": "A lovely name."},
                {"clicked": "button"},
            ],
        )
        await memory.settled()

        [hit, *_] = await memory.recall("What is the name of the parrot?", namespaces="session:s1")
        assert hit.memory.value == "My parrot is called Kiki."
        assert (hit.memory.namespace, hit.memory.memory_type) == ("session:s1", "episodic")
        assert (hit.memory.provenance.author, hit.memory.provenance.session_id) == ("Alice", "s1")
        place = hit.memory.placement
        assert (place.thread, place.position, place.occurred_at) == ("s1", 1, said[0].created_at)
        assert len(await memory.recall("name", namespaces="session:s1")) == 2

        before = await last_position(store)
        await memory.settled()
        assert await last_position(store) == before

    # -- contexts

    async def test_a_context_keeps_its_budget_and_says_where_it_is_from(self, memory: HybridMemoryService) -> None:
        await memory.sessions.create_session(
            "s1", "helpdesk", "alice", initial_state={"mood": "good", "user:lang": "en"}
        )
        await memory.sessions.append_events(
            "s1", [{"role": "user", "content": f"Cup {n} was poured, and it was the best so far."} for n in range(20)]
        )
        await memory.remember_many([TEA, RAIN, *(f"Tea number {n} is brewed at {n + 60} degrees." for n in range(40))],
                                   namespace="user:alice")  # fmt: skip
        await memory.settled()

        for budget in (1, 20, 100, 400, 3000):
            context = await memory.context("Which green tea?", session_id="s1", budget=budget)
            assert max(context.text_tokens, context.message_tokens) <= budget == context.budget
            assert context == await memory.context("Which green tea?", session_id="s1", budget=budget)
            for cited in context.citations:
                source = await memory.memories.get_memory(cited.namespace, cited.key, cited.version)
                assert source is not None
                [line] = [item.text for item in context.items if item.mark == cited.mark]
                assert line.startswith(cited.mark)
                assert source.value[:20] in line
                assert line in context.text
        context = await memory.context("Which green tea?", session_id="s1", budget=3000)
        assert {item.section for item in context.items} == {"state", "memories", "events"}
        assert TEA in context.text
        assert context.citations[0].mark == "[m1]"
        assert (await memory.context("Which green tea?", namespaces="app:none")).citations == ()
        alone = await memory.context("Which green tea?", namespaces="user:alice")
        assert {item.section for item in alone.items} == {"memories"}

    async def test_who_may_see_a_session_gets_all_that_was_said_in_it(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        early = "The code word for the vault is pineapple."
        chatter = [f"Then we talked about item {n} on the list." for n in range(110)]
        await memory.sessions.append_events("s1", [{"role": "user", "content": text} for text in (early, *chatter)])
        await memory.settled()

        alice = memory.as_principal(Principal("alice", {"user:alice": "read"}))
        for handle in (memory, alice):
            context = await handle.context("What is the code word for the vault?", session_id="s1", budget=500)
            assert early in context.text
            assert context.citations[0].namespace == "session:s1"
        bob = memory.as_principal(Principal("bob", {"user:bob": "read"}))
        for handle, session_id in ((memory, "nowhere"), (bob, "s1")):
            async with refused(store, SessionNotFound):
                await handle.context("What is the code word?", session_id=session_id)

    # -- an embedder that is down

    async def test_while_the_embedder_is_down_words_find_what_is_remembered(
        self, memory: HybridMemoryService, clock: ManualClock
    ) -> None:
        embedder = FakeEmbedder()
        fresh = with_embedder(memory, embedder)
        embedder.fail(times=1000)
        told = await fresh.remember("To be, or not to be: the question of Hamlet", namespace="user:a")

        async def channels(question: str) -> set[str]:
            [hit] = await fresh.recall(question, namespaces="user:a")
            assert hit.memory == told
            return {channel.partition(":")[0] for channel in hit.found_by}

        assert await channels("Hamlet") == {"words", "recent"}

        embedder.heal()
        clock.advance(600)
        await fresh.settled()
        assert await channels("Hamlet") == {"words", "recent", "vectors"}
        assert await channels("or not to be") == {"recent", "vectors"}
