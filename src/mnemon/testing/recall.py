"""What remembering, recalling and contexts promise over every database."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemon.errors import AccessDenied, InvalidInput, InvalidNamespace, InvalidStatus, MemoryNotFound, SessionNotFound
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Hit, MemoryDraft, Placement, Principal, Provenance
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.embedders import FakeEmbedder
from mnemon.testing.handles import with_embedder
from mnemon.testing.suite import QUIET, Suite, last_position, refused, unchanged

RECALLING: dict[str, Any] = {**QUIET, "remember_events": ("session",), "embedder": "static"}
"""The settings with which everything can be recalled, and nothing happens but what a test does."""

ODD_QUESTIONS = (
    "?", "the", "''", '"', '"" OR 1=1 --', 'NEAR("a" b)', "a AND NOT b*", "col:umn ^x", "%_\\", "a\x00b", '"a\x00b"',
    "\ud800 `\udfff`", "日本", "👩\u200d🚀", "\u200b\u200b", "'" * 99, "(" * 500, "word " * 1999, "x" * 10_000, "=",
    "==k", "on 99 May 2023 or 9999 months ago", "\u0663 apr\u0131l",
)  # fmt: skip

TEA, RAIN, CODE = "Alice drinks green tea every morning.", "It rained in Bergen all week.", "Bob writes code in Rust."


async def recalled(memory: HybridMemoryService, question: str, namespaces: Any = "", **options: Any) -> list[Any]:
    """What is recalled, best first."""
    return [hit.memory.value for hit in await memory.recall(question, namespaces=namespaces, **options)]


def keys(hits: Sequence[Hit]) -> list[str]:
    return [hit.memory.key for hit in hits]


class RecallSuite(Suite):
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

    # -- what is asked for

    async def test_a_namespace_means_whole_segments(self, memory: HybridMemoryService) -> None:
        places = ["app:x", "user:al", "user:al:x", "user:alice", "user:alice:x"]
        for place in places:
            await memory.remember(f"{TEA} In {place}.", namespace=place)

        async def found(*namespaces: str) -> list[str]:
            hits = await memory.recall("tea", namespaces=namespaces)
            return sorted(hit.memory.namespace for hit in hits)

        assert await found("user:al") == ["user:al", "user:al:x"]
        assert await found("user:alice") == ["user:alice", "user:alice:x"]
        assert await found("user:ali") == []
        assert await found("user:al:x", "app") == ["app:x", "user:al:x"]
        assert await found("user:al", "user:al:x", "user") == places[1:]
        assert await found("") == await found("user", "", "user:al") == places
        assert len(await memory.recall("tea", namespaces="user:al")) == 2

    async def test_types_trust_and_metadata_narrow_the_answer(self, memory: HybridMemoryService) -> None:
        for n, kind in enumerate(("semantic", "episodic", "procedural")):
            await memory.remember(
                f"{TEA} Cup {n}.",
                namespace="user:a",
                key=kind,
                memory_type=kind,
                trust=(1 + n) / 3,
                metadata={"cup": n},
            )

        async def found(**options: Any) -> list[str]:
            return sorted(keys(await memory.recall("tea", namespaces="", **options)))

        assert await found(types=["episodic"]) == await found(types="episodic") == ["episodic"]
        assert await found(types=["episodic", "semantic"]) == ["episodic", "semantic"]
        assert await found(min_trust=0.5) == ["episodic", "procedural"]
        assert await found(min_trust=1.0) == ["procedural"]
        assert await found(where={"cup": 0}) == ["semantic"]
        assert await found(where={"cup": {"gte": 1}}, min_trust=0.9) == ["procedural"]
        assert await found(where={"cup": 7}) == []

    async def test_the_past_is_recalled_as_it_was(self, memory: HybridMemoryService, clock: ManualClock) -> None:
        before = clock.moment - timedelta(seconds=1)
        await memory.remember("Alice lives in Oslo.", namespace="user:a", key="home", metadata={"open": True})
        await memory.remember(TEA, namespace="user:a", key="tea")
        then = clock.moment
        clock.advance(60)
        await memory.remember("Alice lives in Bergen.", namespace="user:a", key="home", metadata={"open": False})
        await memory.forget("user:a", "tea")
        await memory.remember(RAIN, namespace="user:a", key="rain")
        now = clock.moment

        question = "Where does Alice live, and what does she drink?"
        assert await recalled(memory, question, as_of=before) == []
        assert set(await recalled(memory, question, as_of=then)) == {"Alice lives in Oslo.", TEA}
        assert set(await recalled(memory, question, as_of=now)) == {"Alice lives in Bergen.", RAIN}
        assert set(await recalled(memory, question)) == {"Alice lives in Bergen.", RAIN}
        assert (await recalled(memory, "her dwelling place", as_of=then))[0] == "Alice lives in Oslo."
        assert await recalled(memory, question, as_of=then, where={"open": True}) == ["Alice lives in Oslo."]
        assert await recalled(memory, question, as_of=now, where={"open": True}) == []
        assert await recalled(memory, question, "user:b", as_of=then) == []

    async def test_pages_have_everything_once(self, memory: HybridMemoryService) -> None:
        await memory.remember_many(
            [f"Cup {n} of tea, with {n * 7 % 30} leaves." for n in range(30)], namespace="user:a"
        )
        whole = keys(await memory.recall("cups of tea", namespaces="user:a", k=30))
        pages = [keys(await memory.recall("cups of tea", namespaces="user:a", k=7, offset=7 * n)) for n in range(6)]
        assert len(set(whole)) == 30
        assert [key for page in pages for key in page] == whole
        assert [len(page) for page in pages] == [7, 7, 7, 7, 2, 0]
        assert keys(await memory.recall("cups of tea", namespaces="user:a", k=10_000)) == whole

    async def test_pages_are_the_same_however_deep_they_go(self, memory: HybridMemoryService) -> None:
        """There are more than the channels bring at first, some in threads and some that say the same."""
        await memory.remember_many(
            [
                {
                    "text": f"Cup {n % 97} of tea, with {n * 7 % 30} leaves and {'sugar ' * (n % 5)}",
                    "key": str(n),
                    **({"thread": f"t{n % 3}", "position": n // 3} if n % 2 else {}),
                }
                for n in range(320)
            ],
            namespace="user:a",
        )

        async def pages(size: int, number: int) -> list[str]:
            found = [
                await memory.recall("cups of tea, sugar", namespaces="user:a", k=size, offset=size * n)
                for n in range(number)
            ]
            return [key for page in found for key in keys(page)]

        whole = await pages(1000, 1)
        assert len(set(whole)) == len(whole) == 320
        assert await pages(64, 6) == whole
        assert await pages(11, 10) == whole[:110]
        assert keys(await memory.recall("cups of tea, sugar", namespaces="user:a", k=9, offset=300)) == whole[300:309]

    async def test_what_makes_no_sense_is_refused(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.remember(TEA, namespace="user:a")
        wrong: list[tuple[type[Exception], dict[str, Any]]] = [
            (InvalidInput, {"query": " \n"}),
            (InvalidInput, {"query": ""}),
            (InvalidInput, {"query": None}),
            (InvalidInput, {"query": "x" * 10_001}),
            *((InvalidInput, {"k": k}) for k in (0, -1, True, 1.5, "1", 10_001)),
            *((InvalidInput, {"offset": offset}) for offset in (-1, True, 0.5, "0")),
            (InvalidInput, {"namespaces": []}),
            (InvalidInput, {"namespaces": None}),
            (InvalidNamespace, {"namespaces": "nowhere:a"}),
            (InvalidNamespace, {"namespaces": ["user:a", "user::a"]}),
            (InvalidStatus, {"types": ["odd"]}),
            (InvalidStatus, {"types": "odd"}),
            *((InvalidInput, {"min_trust": trust}) for trust in (-0.1, 1.1, float("nan"), True, "1")),
            (InvalidInput, {"where": {"cup": {"odd": 1}}}),
            (InvalidInput, {"as_of": "yesterday"}),
        ]
        for error, options in wrong:
            arguments: dict[str, Any] = {"query": "tea", "namespaces": "user:a", **options}
            async with refused(store, error):
                await memory.recall(**arguments)
        for budget in (0, -1, True, 1.5, "9"):
            async with refused(store, InvalidInput):
                await memory.context("tea", budget=budget)  # pyright: ignore[reportArgumentType]
        async with refused(store, InvalidInput):
            await memory.context(" ")

    async def test_any_question_can_be_asked(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.remember_many([TEA, RAIN, CODE, "日本語"], namespace="user:a")
        async with unchanged(store):
            for question in ODD_QUESTIONS:
                assert len(await memory.recall(question, namespaces="")) == 4
                assert (await memory.context(question, budget=50)).tokens <= 50

    # -- ranking

    async def test_a_score_is_explained_if_that_is_asked_for(self, memory: HybridMemoryService) -> None:
        await memory.remember_many([TEA, RAIN, CODE], namespace="user:a")
        plain = await memory.recall("green tea", namespaces="user:a")
        explained = await memory.recall("green tea", namespaces="user:a", explain=True)

        assert [hit.memory for hit in plain] == [hit.memory for hit in explained]
        assert [hit.score for hit in plain] == [hit.score for hit in explained] == sorted(
            (hit.score for hit in plain), reverse=True
        )  # fmt: skip
        assert all(hit.signals == {} for hit in plain)
        for hit in explained:
            assert sum(hit.signals.values()) == pytest.approx(hit.score)
            assert "recent" in hit.found_by
        best = explained[0]
        assert best.signals["text"] > 0 < best.signals["vector"]
        assert "words" in best.found_by
        assert any(channel.startswith("vectors:") for channel in best.found_by)

    async def test_identifiers_are_found_first_among_those_that_look_like_them(
        self, memory: HybridMemoryService
    ) -> None:
        await memory.remember_many(
            [
                {
                    "text": f"The host db-{n}.example.com says ERR_CONN_{n} since 2.{n}.1 of getUser{n}",
                    "key": f"Ticket {n}",
                }
                for n in range(100, 160)
            ],
            namespace="project:p",
        )
        for number, question in (
            (117, "Why did we see ERR_CONN_117?"),
            (123, "What is wrong with 2.123.1?"),
            (105, "the host db-105.example.com"),
            (159, "Who calls getUser159()?"),
            (142, 'What does "ticket 142" say?'),
            (101, "Summarise `Ticket 101`"),
        ):
            assert keys(await memory.recall(question, namespaces="project:p", k=1)) == [f"Ticket {number}"], question

    async def test_whoever_has_the_identifier_comes_before_its_neighbours(self, memory: HybridMemoryService) -> None:
        names = ("zq7xv", "ERR-4711", "v2.3.1", "E:0x8007", "db-7.example.com", "getUserName", "user_id", "90210")
        for number, name in enumerate(names):
            await memory.remember_many(
                [
                    {
                        "text": f"See {name}." if n == 4 else f"Bob, the server fails to start, for the {n}th time.",
                        "key": f"{number}-{n}", "thread": f"talk {number}", "position": n,
                        "author": "Eve" if n == 4 else "Bob", "trust": 0.5 if n == 4 else 1.0,
                    }
                    for n in range(9)
                ],
                namespace="user:a",
            )  # fmt: skip
        for number, name in enumerate(names):
            for question in (
                f"{name}?",
                f"What did Bob say about {name}, when the server fails to start?",
                f"{'The server fails to start, Bob, time after time. ' * 100} It says ({name}).",
            ):
                assert keys(await memory.recall(question, namespaces="user:a"))[0] == f"{number}-4", question

    async def test_an_identifier_is_found_as_a_part_of_a_longer_one(self, memory: HybridMemoryService) -> None:
        for n in range(100, 140):
            await memory.remember(f"Then code:ERR-{n}/retry came.", namespace="user:a", key=str(n))
            await memory.remember(f"{n} errors came, err, then.", namespace="user:a", key=f"not {n}")
        for n in (100, 117, 139):
            assert keys(await memory.recall(f"Then came ERR-{n}, and why?", namespaces="user:a", k=1)) == [str(n)]

    async def test_what_was_said_before_helps_to_find_the_answer(self, memory: HybridMemoryService) -> None:
        talk = ("Hello!", "Which city did you see on your holiday?", "Lisbon, and we loved it.", "How nice.", "Bye!")
        for position, text in enumerate(talk):
            await memory.remember(text, namespace="user:a", thread="talk", position=position)
        for name in ("Anna", "Bert", "Carla", "Dora"):
            await memory.remember(f"{name}, and we loved it.", namespace="user:a")

        found = await memory.recall("Which city was the holiday in?", namespaces="user:a", explain=True)
        assert [hit.memory.placement.position for hit in found[:2]] == [1, 2]
        assert found[1].signals["text"] > 0

    async def test_a_neighbour_is_brought_that_no_channel_finds(self, memory: HybridMemoryService) -> None:
        fill = [f"holiday in a city {n}" for n in range(150)]
        await memory.remember(
            "The password of the vault?", namespace="user:a", key="question", thread="talk", position=7
        )
        await memory.remember("\U0001f951", namespace="user:a", key="answer", thread="talk", position=8)
        await memory.remember_many(fill, namespace="user:a")
        found = {
            hit.memory.key: hit for hit in await memory.recall("vault password", namespaces="user:a", explain=True)
        }
        assert "answer" in found
        assert found["answer"].signals["text"] > 0.3

    async def test_the_author_and_the_day_that_are_named_come_first(self, memory: HybridMemoryService) -> None:
        for author in ("Alice", "Bob", "Carol"):
            await memory.remember("I love to hike.", namespace="user:a", key=author, author=author)
        for month in range(1, 13):
            when = datetime(2023, month, 8, 19, tzinfo=UTC)
            await memory.remember(f"Dinner number {month}.", namespace="user:b", key=str(month), occurred_at=when)

        for author in ("Alice", "Bob", "Carol"):
            assert keys(await memory.recall(f"What does {author} love?", namespaces="user:a"))[0] == author
        for question, month in (("dinner on 8 May 2023", 5), ("our dinner in November 2023", 11), ("2023-02-08?", 2)):
            assert keys(await memory.recall(question, namespaces="user:b"))[0] == str(month)

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
