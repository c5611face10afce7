"""Whichever store answers, the answer is the same; and there is always an answer."""

import random
from typing import Any

import pytest

from mnemon.errors import StoreError, StoreUnavailable
from mnemon.filters import parse
from mnemon.ports import Scope
from mnemon.testing import ManualClock
from tests.indexing.rig import EVERYWHERE, Rig, Stores

COLOURS = ("red", "green", "blue", "black", "white")


@pytest.fixture
def stores() -> Stores:
    return Stores("first", "second")


def number_of(key: str) -> int:
    return int(key.removeprefix("k"))


async def fill(rig: Rig, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        await rig.memories.add_memory(
            f"user:{'ab'[number % 2]}:notes",
            f"k{number}",
            f"note {number} is {COLOURS[number % 5]}",
            memory_type=("semantic", "episodic")[number % 3 == 0],
            metadata={"n": number, "colour": COLOURS[number % 5]},
        )


# ------------------------------------------------------------------------------------------------------- the order


async def test_the_first_store_answers_while_it_can(rig: Rig) -> None:
    await fill(rig, 20)
    await rig.work()
    expected = await rig.near("a red note", 5)

    assert await rig.routed("a red note", 5) == (expected, "first")
    rig.stores["first"].go_down()
    assert await rig.routed("a red note", 5) == (expected, "second")
    rig.stores["second"].go_down()
    assert await rig.routed("a red note", 5) == (expected, "mirror")


async def test_without_stores_the_database_answers(rig: Rig) -> None:
    await fill(rig, 5)
    rig.router._stores = ()
    assert (await rig.routed("a red note", 5))[1] == "mirror"


@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreError("broken"), ValueError("a fault of the driver")])
async def test_an_error_of_any_kind_is_never_the_caller_s(rig: Rig, error: Exception) -> None:
    await fill(rig, 20)
    await rig.work()
    rig.stores["first"].fail("query", error)

    assert (await rig.routed("a red note"))[1] == "second"
    assert (await rig.routed("a red note"))[1] == "first"


async def test_a_store_that_keeps_failing_is_left_alone_and_tried_again_later(rig: Rig, clock: ManualClock) -> None:
    await fill(rig, 20)
    await rig.work()
    store = rig.stores["first"]
    store.go_down()
    served = [(await rig.routed("a red note"))[1] for _ in range(6)]
    assert served == ["second"] * 6
    assert store.calls["query"] == 3

    store.heal()
    assert (await rig.routed("a red note"))[1] == "second"  # nobody knows yet
    clock.advance(2)
    assert (await rig.routed("a red note"))[1] == "first"
    assert (await rig.routed("a red note"))[1] == "first"


async def test_a_store_that_could_be_fed_again_is_asked_again(rig: Rig, clock: ManualClock) -> None:
    await fill(rig, 20)
    await rig.work()
    store = rig.stores["first"]
    store.go_down()
    for _ in range(4):
        await rig.routed("a red note")
    store.heal()
    await fill(rig, 1, start=100)
    await rig.work()
    assert (await rig.routed("a red note"))[1] == "first"


# -------------------------------------------------------------------------------------------- more than the filter


async def test_what_a_filter_says_beyond_facts_is_checked(rig: Rig) -> None:
    """Given filters that a store answers with too much, when it is asked, then what is wrong is left out and it is
    asked for more, until there is enough."""
    await fill(rig, 200)
    await rig.work()
    where = parse({"n": {"gte": 150}, "colour": "red"})
    store = rig.stores["first"]
    before = store.calls["query"]

    found, served_by = await rig.routed("note number 3 is red", 8, Scope(("",), where=where))
    assert served_by == "first"
    assert len(found) == 8
    assert all(number_of(key) >= 150 and number_of(key) % 5 == 0 for key in found)
    assert found == await rig.near("note number 3 is red", 8, Scope(("",), where=where))
    assert store.calls["query"] - before == 2  # 16 were too few, 64 enough


async def test_a_filter_that_little_meets_is_answered_with_all_there_is(rig: Rig) -> None:
    await fill(rig, 60)
    await rig.work()
    found, served_by = await rig.routed("a note", 10, Scope(("",), where=parse({"n": {"gte": 57}})))
    assert (sorted(found), served_by) == (["k57", "k58", "k59"], "first")


async def test_if_it_takes_too_much_the_database_answers(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemon.indexing.router._MOST", 40)
    await fill(rig, 60)
    await rig.work()
    found, served_by = await rig.routed("a note", 10, Scope(("",), where=parse({"n": {"gte": 57}})))
    assert (sorted(found), served_by) == (["k57", "k58", "k59"], "mirror")


SCOPES = [
    EVERYWHERE,
    Scope(("user:a",)),
    Scope(("user:a:notes", "user:b")),
    Scope(("user:x",)),
    Scope(("",), types=("episodic",)),
    Scope(("",), min_trust=0.5),
    Scope(("user:b",), where=parse({"colour": {"in": ["red", "blue"]}, "n": {"lt": 40}})),
    Scope(("",), where=parse({"not": {"colour": "red"}})),
    Scope(("user:a",), ("semantic",), where=parse({"or": [{"n": {"gt": 90}}, {"colour": {"contains": "ree"}}]})),
]


@pytest.mark.parametrize("scope", SCOPES, ids=range(len(SCOPES)))
async def test_every_store_gives_the_answer_of_the_database(rig: Rig, scope: Scope) -> None:
    """Given a store that is up to date, one that is behind and one that is empty, when any question is asked, then the
    answer is the same as the database's own."""
    await fill(rig, 100)
    await rig.work("conversations")
    await rig.work("embeddings")
    await rig.work("store:first:1")
    expected = await rig.near("note 7 is green", 10, scope)

    assert await rig.routed("note 7 is green", 10, scope) == (expected, "first")
    rig.stores["first"].go_down()
    assert await rig.routed("note 7 is green", 10, scope) == (expected, "second")


# -------------------------------------------------------------------------------------------------------- the tail


async def test_what_a_store_was_not_told_yet_is_found_all_the_same(rig: Rig) -> None:
    """Given a store that is behind, when memories were added, changed and deleted since, then the answer has them."""
    await fill(rig, 20)
    await rig.work()
    await rig.memories.add_memory("user:a:notes", "k100", "the answer is red red red")
    await rig.memories.update_memory("user:a:notes", "k0", "something else entirely")
    await rig.memories.delete_memory("user:b:notes", "k5")
    await rig.memories.purge_memory("user:a:notes", "k10")

    found, served_by = await rig.routed("red", 30)
    assert served_by == "first"
    assert found[0] == "k100"
    assert found == await rig.near("red", 30)
    assert {"k5", "k10"}.isdisjoint(found)


async def test_a_store_that_is_far_behind_is_not_asked(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemon.indexing.router._LONGEST_TAIL", 15)
    await fill(rig, 16)
    assert (await rig.routed("red"))[1] == "mirror"
    await rig.work("store:second:1")
    assert (await rig.routed("red"))[1] == "second"
    await rig.work()
    assert (await rig.routed("red"))[1] == "first"


async def test_mixed_scores_are_not_compared_with_the_tail_s(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(rig, 20)
    await rig.work()
    asked: list[Any] = []
    store = rig.stores["first"]
    query = store.query
    monkeypatch.setattr(store, "query", lambda question: asked.append(question) or query(question))
    space = await rig.space()
    [vector] = await rig.embedding().embed_in(space, ["red"])

    await rig.router.search(space, vector, EVERYWHERE, 5, ["red"])
    await fill(rig, 1, start=100)
    await rig.router.search(space, vector, EVERYWHERE, 5, ["red"])
    assert [question.words for question in asked] == [("red",), ()]


async def test_reads_see_their_own_writes_whatever_happens(rig: Rig, clock: ManualClock) -> None:
    """Given stores that fail and come back at random while memories are written, deleted and fed, when questions are
    asked in between, then every answer is the database's own."""
    chance = random.Random(7)
    served: set[str] = set()
    await fill(rig, 1)
    await rig.work()
    for step in range(1, 120):
        match chance.randrange(6):
            case 0 | 1 | 2:
                await fill(rig, 1, start=step)
            case 3:
                await try_to_feed(rig)
            case 4:
                chance.choice([rig.stores["first"].go_down, rig.stores["first"].heal, rig.stores["second"].heal])()
            case _:
                clock.advance(chance.choice([0.1, 5]))
        text = f"note {chance.randrange(step + 1)} is {chance.choice(COLOURS)}"
        found, served_by = await rig.routed(text, 5)
        assert found == await rig.near(text, 5)
        served.add(served_by)
    assert served >= {"first", "second"}


async def try_to_feed(rig: Rig) -> None:
    for duty in await rig.upkeep.duties():
        try:
            await duty.step()
        except StoreUnavailable:
            assert duty.outside is not None
