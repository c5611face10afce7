"""Pages of recall, however far one goes, and what a re-ranker and an expander change in them."""

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from mnemon import sync
from mnemon.testing import QUIET, ManualClock
from mnemon.testing.embedders import FakeEmbedder

WORDS = ("apple", "river", "stone", "cloud", "music", "paper", "window", "garden", "bottle", "candle", "forest")
QUESTION = "kiwi, music in the garden"
MANY = 450  # more than a channel brings at first, and more than it brings at the second time


class Shortest:
    """A re-ranker that prefers what is said in few words, and remembers what it was asked to judge."""

    def __init__(self) -> None:
        self.judged: list[Sequence[str]] = []

    def judge(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        self.judged.append(texts)
        return [-len(text) for text in texts]


class Fruits:
    """An expander that knows one word more."""

    def expand(self, question: str) -> Sequence[str]:
        return [question.replace("kiwi", "actinidia")]


def fill(memory: sync.BlockingMemory, number: int = MANY) -> None:
    chance = random.Random(7)
    memory.remember_many(
        [f"kiwi {' '.join(chance.choices(WORDS, k=chance.randint(1, 9)))} {n}" for n in range(number)],
        namespace="user:a",
    )


@pytest.fixture
def memory() -> Iterator[sync.BlockingMemory]:
    with sync.open("sqlite://", **(QUIET | {"embedder": FakeEmbedder(is_quick=True)})) as memory:
        yield memory


def pages(memory: sync.BlockingMemory, size: int) -> list[str]:
    """The keys on all pages, one after the other."""
    found: list[str] = []
    while page := memory.recall(QUESTION, namespaces="user:a", k=size, offset=len(found)):
        assert len(page) == size or len(found) + len(page) == MANY
        found += [hit.memory.key for hit in page]
    return found


def test_pages_have_everything_once_whatever_their_size(memory: sync.BlockingMemory) -> None:
    fill(memory)
    whole = pages(memory, MANY)
    assert len(set(whole)) == len(whole) == MANY
    for size in (7, 50, 101):
        assert pages(memory, size) == whole


def test_what_comes_later_can_explain_itself_too(memory: sync.BlockingMemory) -> None:
    fill(memory)
    for hit in memory.recall(QUESTION, namespaces="user:a", k=MANY, explain=True):
        assert sum(hit.signals.values()) == pytest.approx(hit.score)
        assert hit.found_by


def test_no_more_is_looked_for_than_is_wanted(memory: sync.BlockingMemory) -> None:
    fill(memory, 80)
    assert len(memory.recall(QUESTION, namespaces="user:a", k=1000)) == 80
    assert memory.recall(QUESTION, namespaces="user:a", offset=80) == []


def test_a_re_ranker_orders_the_best_and_leaves_the_others() -> None:
    reranker = Shortest()
    settings = QUIET | {"embedder": FakeEmbedder(is_quick=True)}
    with sync.open("sqlite://", **settings) as memory:
        fill(memory, 120)
        plain = [hit.memory.value for hit in memory.recall(QUESTION, namespaces="user:a", k=100)]
    with sync.open("sqlite://", reranker=reranker, **settings) as memory:
        fill(memory, 120)
        first = memory.recall(QUESTION, namespaces="user:a", k=60)
        second = memory.recall(QUESTION, namespaces="user:a", k=40, offset=60)
    found = [hit.memory.value for hit in (*first, *second)]
    assert list(reranker.judged[0]) == plain[:50]
    assert found == [*sorted(plain[:50], key=len), *plain[50:]]


def test_a_re_ranker_judges_the_past_too() -> None:
    clock = ManualClock()
    with sync.open("sqlite://", clock=clock, reranker=Shortest(), **QUIET) as memory:
        for text in ("a kiwi that is ripe", "a kiwi"):
            memory.remember(text, namespace="user:a", key=text)
        then = clock.moment
        clock.advance(60)
        memory.remember("a plum", namespace="user:a", key="a kiwi")
        hits = memory.recall("kiwi", namespaces="user:a", as_of=then + timedelta(seconds=1))
        assert [hit.memory.value for hit in hits] == ["a kiwi", "a kiwi that is ripe"]


def test_an_expander_finds_what_says_it_in_other_words() -> None:
    with sync.open("sqlite://", **QUIET) as memory:
        memory.remember("Actinidia deliciosa", namespace="user:a", key="latin")
        memory.remember_many([f"note {n}" for n in range(20)], namespace="user:a")
        assert "latin" not in [hit.memory.key for hit in memory.recall("kiwi", namespaces="user:a")]
    with sync.open("sqlite://", expander=Fruits(), **QUIET) as memory:
        memory.remember("Actinidia deliciosa", namespace="user:a", key="latin")
        memory.remember_many([f"note {n}" for n in range(20)], namespace="user:a")
        assert memory.recall("kiwi", namespaces="user:a")[0].memory.key == "latin"
