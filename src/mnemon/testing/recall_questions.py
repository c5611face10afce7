"""What recalling promises of its answers: what is asked for, how it is ranked, and how scores are explained."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemon.errors import InvalidInput, InvalidNamespace, InvalidStatus
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Hit
from mnemon.ports import Store
from mnemon.testing.clock import ManualClock
from mnemon.testing.suite import Suite, refused, unchanged

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


class RecallQuestionSuite(Suite):
    """Any backend must pass; `memory` has to be opened with the settings `RECALLING`."""

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
