"""What every vector store outside the database promises: the conformance suite of `ports.VectorMemory`."""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import pytest

from mnemon.errors import StoreClosed, StoreUnavailable
from mnemon.facts import EVERY_FACT, NO_FACT, AnyOf, Joined, Not, accepts, facts_of, filter_for
from mnemon.model import Space
from mnemon.ports import VectorMemory, VectorQuery
from mnemon.testing.vector_samples import (
    ODD_TEXTS,
    axis,
    every_call,
    exact,
    ids_found,
    pages,
    random_condition,
    record_of,
    some_records,
    space_of,
    vectors,
    where,
)

OpenStore: TypeAlias = Callable[[Space], VectorMemory]

_CLOSE = 1e-5  # stores reckon with 32-bit floats
_THREADS = 8


class VectorStoreSuite:
    """Derive from it and override `open_store` to test a driver of your own.

    The tests of words run if `describe` says that the store searches text.
    """

    patience = 10.0
    """The timeout that `unreachable` was opened with, and a few seconds more."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Opens the store under test for a space. It is empty at first, and stays for the whole of a test."""
        raise NotImplementedError("override `open_store`: a function from a space to your driver, over an empty store")

    @pytest.fixture
    def unreachable(self) -> VectorMemory:
        """A store at an address where nobody answers."""
        pytest.skip("override `unreachable` if the store is reached by a network")

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[VectorMemory]:
        store = open_store(space_of("first"))
        yield store
        store.close()

    # -- storing, replacing, deleting

    def test_what_was_stored_is_found_at_once_nearest_first_with_its_cosine(self, store: VectorMemory) -> None:
        records = some_records(50)
        store.store(records)
        for question in vectors(5, seed=1):
            expected = sorted((float(record.embedding @ question), record.memory_id) for record in records)[::-1]
            found = store.query(VectorQuery(question, 10, EVERY_FACT))
            assert [match.memory_id for match in found] == [memory_id for _, memory_id in expected[:10]]
            assert [match.score for match in found] == pytest.approx(
                [cosine for cosine, _ in expected[:10]], abs=_CLOSE
            )

    def test_the_same_direction_is_1_and_the_opposite_is_minus_1(self, store: VectorMemory) -> None:
        north, south = axis(0), -axis(0)
        store.store([record_of(1, north), record_of(2, south), record_of(3, axis(1))])
        found = store.query(VectorQuery(north, 3, EVERY_FACT))
        assert [match.memory_id for match in found] == [1, 3, 2]
        assert [match.score for match in found] == pytest.approx([1, 0, -1], abs=_CLOSE)

    def test_an_empty_store_answers_everything_with_nothing(self, store: VectorMemory) -> None:
        assert store.query(VectorQuery(axis(0), 10, EVERY_FACT)) == []
        assert store.listing(None, 10) == []
        assert store.describe().vectors == 0

    def test_at_most_the_limit_is_found_and_no_more_than_there_is(self, store: VectorMemory) -> None:
        store.store(some_records(30))
        assert len(store.query(VectorQuery(axis(0), 1, EVERY_FACT))) == 1
        assert len(store.query(VectorQuery(axis(0), 29, EVERY_FACT))) == 29
        assert len(store.query(VectorQuery(axis(0), 500, EVERY_FACT))) == 30

    def test_a_record_replaces_the_one_with_its_id_wholly(self, store: VectorMemory) -> None:
        old = record_of(1, axis(0), key="k", metadata={"colour": "red", "old": True}, trust=0.9, words=("before",))
        new = record_of(2, axis(1), key="k", metadata={"colour": "blue"}, trust=0.2, words=("after",))
        store.store([old])
        store.store([new])
        assert ids_found(store, EVERY_FACT) == {2}
        assert store.query(VectorQuery(axis(1), 1, EVERY_FACT))[0].score == pytest.approx(1, abs=_CLOSE)
        assert ids_found(store, where({"colour": "red"})) == set()
        assert ids_found(store, where({"old": True})) == set()
        assert ids_found(store, where({"colour": "blue"})) == {2}
        assert ids_found(store, EVERY_FACT, min_trust=0.5) == set()
        assert store.listing(None, 10) == [(new.id, 2)]
        assert store.describe().vectors == 1

    def test_storing_again_changes_nothing(self, store: VectorMemory) -> None:
        records = some_records(20)
        store.store(records)
        store.store(records)
        store.store(records[:3])
        assert store.describe().vectors == 20
        assert ids_found(store, EVERY_FACT) == set(range(20))

    def test_of_one_id_in_a_batch_the_last_record_stays(self, store: VectorMemory) -> None:
        store.store([record_of(1, axis(0), key="k"), record_of(5, axis(2)), record_of(2, axis(1), key="k")])
        assert ids_found(store, EVERY_FACT) == {2, 5}
        assert store.describe().vectors == 2

    def test_deleted_records_are_gone_and_deleting_again_does_nothing(self, store: VectorMemory) -> None:
        records = some_records(10)
        store.store(records)
        gone = [record.id for record in records[:4]]
        store.delete(gone)
        assert ids_found(store, EVERY_FACT) == set(range(4, 10))
        store.delete([*gone, records[4].id, record_of(99, axis(0), key="never there").id])
        assert ids_found(store, EVERY_FACT) == set(range(5, 10))
        assert store.describe().vectors == 5

    def test_nothing_can_be_stored_and_deleted(self, store: VectorMemory) -> None:
        store.store([])
        store.delete([])
        assert store.describe().vectors == 0

    def test_a_deleted_record_can_be_stored_again(self, store: VectorMemory) -> None:
        record = record_of(1, axis(0))
        store.store([record])
        store.delete([record.id])
        store.store([record])
        assert ids_found(store, EVERY_FACT) == {1}

    def test_memory_ids_are_kept_to_the_last_digit(self, store: VectorMemory) -> None:
        numbers = {0, 1, 2**31, 2**53 + 1, 2**63 - 1}
        store.store([record_of(number, axis(0), key=f"{number}") for number in numbers])
        assert ids_found(store, EVERY_FACT) == numbers
        assert {memory_id for _, memory_id in store.listing(None, 10)} == numbers

    def test_what_was_stored_stays_when_the_store_is_opened_again(self, open_store: OpenStore) -> None:
        first = open_store(space_of("first"))
        first.store(some_records(5))
        first.close()
        again = open_store(space_of("first"))
        assert ids_found(again, EVERY_FACT) == set(range(5))
        again.close()

    def test_what_is_dropped_leaves_an_empty_store_and_others_as_they_were(self, open_store: OpenStore) -> None:
        first, other = open_store(space_of("first")), open_store(space_of("second"))
        first.store(some_records(5))
        other.store(some_records(3))
        first.drop()
        assert first.describe().vectors == 0
        first.store(some_records(2))
        assert ids_found(first, EVERY_FACT) == {0, 1}
        first.drop()
        first.drop()
        assert ids_found(other, EVERY_FACT) == {0, 1, 2}
        first.close()
        other.close()

    # -- filters

    def test_a_prefix_covers_whole_segments_only(self, store: VectorMemory) -> None:
        places = [
            "user:al",
            "user:al:notes",
            "user:alice",
            "user:AL",
            "user:al notes",
            "project:al",
            "user:" + "x" * 250,
        ]
        store.store([record_of(number, axis(0), namespace=place) for number, place in enumerate(places)])
        assert ids_found(store, filter_for(["user:al"], (), None)) == {0, 1}
        assert ids_found(store, filter_for(["user:al:notes"], (), None)) == {1}
        assert ids_found(store, filter_for(["user"], (), None)) == {0, 1, 2, 3, 4, 6}
        assert ids_found(store, filter_for(["user:alice", "project"], (), None)) == {2, 5}
        assert ids_found(store, filter_for([places[6]], (), None)) == {6}
        assert ids_found(store, filter_for([""], (), None)) == set(range(7))
        assert ids_found(store, filter_for([], (), None)) == set()

    def test_types_are_told_apart(self, store: VectorMemory) -> None:
        kinds = ["semantic", "episodic", "procedural"]
        store.store([record_of(number, axis(0), memory_type=kind, key=kind) for number, kind in enumerate(kinds)])
        assert ids_found(store, filter_for([""], ["episodic"], None)) == {1}
        assert ids_found(store, filter_for([""], ["semantic", "procedural"], None)) == {0, 2}

    def test_values_of_different_types_are_told_apart(self, store: VectorMemory) -> None:
        values: list[Any] = [1, "1", True, 1.5, None, 0, False, "", [1], ["1"], {"a": 1}]
        store.store([record_of(number, axis(0), metadata={"v": value}) for number, value in enumerate(values)])
        for number, value in enumerate(values[:8]):
            assert ids_found(store, where({"v": value})) == {number}
            assert ids_found(store, where({"v": {"ne": value}})) == set(range(len(values))) - {number}
        assert ids_found(store, where({"v": 1.0})) == {0}
        assert ids_found(store, where({"v.a": 1})) == {10}
        assert ids_found(store, where({"v": {"contains": 1}})) == {8}
        assert ids_found(store, where({"v": {"in": [1, "", 7]}})) == {0, 7}

    @pytest.mark.parametrize("least", [0.0, 0.1, 0.3, 0.30001, 1.0])
    def test_trust_is_at_least_what_is_asked(self, store: VectorMemory, least: float) -> None:
        trusts = [0.0, 0.1, 0.3, 0.5, 1.0, 1]
        store.store([record_of(number, axis(0), trust=trust) for number, trust in enumerate(trusts)])
        expected = {number for number, trust in enumerate(trusts) if trust >= least}
        assert ids_found(store, EVERY_FACT, min_trust=least) == expected

    def test_trust_and_facts_must_both_hold(self, store: VectorMemory) -> None:
        store.store(
            [record_of(number, axis(0), metadata={"even": number % 2 == 0}, trust=number / 10) for number in range(10)]
        )
        assert ids_found(store, where({"even": True}), min_trust=0.45) == {6, 8}
        assert ids_found(store, Not(where({"even": True})), min_trust=0.45) == {5, 7, 9}

    def test_conditions_mean_what_the_facts_say(self, store: VectorMemory) -> None:
        """Given records with all kinds of facts, when random conditions are asked, then exactly those that meet
        them are found: `facts.accepts` is what a condition means."""
        chance = random.Random(7)
        letters = ["a", "b", "c", "d", "e", "f"]
        kept = [tuple(chance.sample(letters, chance.randrange(7))) for _ in range(60)]
        store.store([record_of(number, axis(0), facts=facts) for number, facts in enumerate(kept)])
        for _ in range(80):
            condition = random_condition(chance, letters, 3)
            expected = {number for number, facts in enumerate(kept) if accepts(condition, facts)}
            assert ids_found(store, condition) == expected, condition

    def test_nothing_meets_a_condition_that_cannot_hold(self, store: VectorMemory) -> None:
        store.store(some_records(5))
        assert ids_found(store, NO_FACT) == set()
        assert ids_found(store, Not(EVERY_FACT)) == set()
        assert ids_found(store, Joined(all=False, parts=())) == set()
        assert ids_found(store, Not(NO_FACT)) == set(range(5))

    def test_a_condition_may_name_thousands_of_facts(self, store: VectorMemory) -> None:
        store.store([record_of(number, axis(0), metadata={"n": number}) for number in range(10)])
        many = [number * 2 for number in range(2500)]
        assert ids_found(store, where({"n": {"in": many}})) == {0, 2, 4, 6, 8}
        assert ids_found(store, where({"not": {"n": {"in": many}}})) == {1, 3, 5, 7, 9}

    def test_the_only_match_is_found_among_many_that_are_nearer(self, store: VectorMemory) -> None:
        near = some_records(400, around=axis(0))
        store.store([*near, record_of(1000, -axis(0), metadata={"rare": True})])
        assert [match.memory_id for match in store.query(VectorQuery(axis(0), 10, where({"rare": True})))] == [1000]

    # -- texts

    def test_odd_texts_are_told_apart(self, store: VectorMemory) -> None:
        store.store([record_of(number, axis(0), metadata={"t": text}) for number, text in enumerate(ODD_TEXTS)])
        for number, text in enumerate(ODD_TEXTS):
            assert ids_found(store, where({"t": text})) == {number}, text
        everything = set(range(len(ODD_TEXTS)))
        for number, text in list(enumerate(ODD_TEXTS))[:12]:
            assert ids_found(store, where({"t": {"ne": text}})) == everything - {number}, text

    def test_odd_texts_as_names_and_in_what_is_told_about_a_memory(self, store: VectorMemory) -> None:
        names = [text for text in ODD_TEXTS if text and not set('."') & set(text)]
        records = [
            record_of(
                number, axis(0), key=name, metadata={name: "here"}, words=(name,),
                about={"key": name, "version": 3, "namespace": name * 3},
            )
            for number, name in enumerate(names)
        ]  # fmt: skip
        store.store(records)
        for number, name in enumerate(names):
            path = AnyOf(facts_of("user:alice", "semantic", {name: "here"})[3:4])
            assert ids_found(store, path) == {number}, name

    def test_long_texts_are_kept(self, store: VectorMemory) -> None:
        words = tuple(f"word{number}" for number in range(5000))
        about = {"namespace": "user:" + "n" * 2000, "key": "k" * 5000}
        facts = facts_of(about["namespace"], "semantic", {f"name{number}": "v" * 5000 for number in range(300)})
        store.store([record_of(1, axis(0), facts=facts, words=words, about=about)])
        assert ids_found(store, AnyOf(facts[-2:-1])) == {1}

    # -- many

    def test_a_thousand_records_at_once_are_listed_page_by_page_exactly_once(self, store: VectorMemory) -> None:
        records = some_records(1000)
        store.store(records)
        assert store.describe().vectors == 1000
        listed = pages(store, 300)
        assert sorted(listed) == sorted((record.id, record.memory_id) for record in records)
        assert listed == pages(store, 77)
        store.delete([record.id for record in records])
        assert store.describe().vectors == 0
        assert store.listing(None, 10) == []

    def test_a_listing_goes_on_while_records_come_and_go(self, store: VectorMemory) -> None:
        """Given a page that was read, when some of it is deleted and other records come, then the next page still
        begins where that one ended."""
        records = some_records(60)
        store.store(records)
        before = pages(store, 100)
        first = store.listing(None, 20)
        store.delete([first[-1][0], first[3][0]])
        store.store([record_of(1000 + number, axis(1), key=f"later {number}") for number in range(20)])
        rest: list[tuple[str, int]] = []
        while page := store.listing(rest[-1][0] if rest else first[-1][0], 20):
            rest += page
        assert [item for item in rest if item in before] == before[20:]
        assert len(rest) == len(set(rest))

    def test_many_are_found_as_by_exact_search_under_filters(self, store: VectorMemory) -> None:
        records = [
            record_of(number, vector, metadata={"of7": number % 7, "of50": number % 50})
            for number, vector in enumerate(vectors(1000, seed=3))
        ]
        store.store(records)
        found, expected = 0, 0
        for number, question in enumerate(vectors(40, seed=4)):
            condition = [EVERY_FACT, where({"of7": 3}), where({"of50": number}), where({"of7": {"ne": 3}})][number % 4]
            right = exact(records, question, condition, 10)
            found += len(right & {match.memory_id for match in store.query(VectorQuery(question, 10, condition))})
            expected += len(right)
        assert found / expected >= 0.98

    # -- spaces

    def test_spaces_lie_side_by_side(self, open_store: OpenStore) -> None:
        """Given stores for spaces that differ in one thing each, when the same record is stored in them, then each
        has its own."""
        spaces = [
            space_of("first"), space_of("first", version="2"), space_of("first", dimension=8), space_of("second"),
            space_of("First"), space_of("first/"), space_of("first", version=""),
        ]  # fmt: skip
        stores = [open_store(space) for space in spaces]
        for number, (space, store) in enumerate(zip(spaces, stores, strict=True)):
            store.store([record_of(number, axis(0, space.model.dimension), key="k")])
        for number, (space, store) in enumerate(zip(spaces, stores, strict=True)):
            found = store.query(VectorQuery(axis(0, space.model.dimension), 10, EVERY_FACT))
            assert [match.memory_id for match in found] == [number]
            assert store.describe().dimension == space.model.dimension
            assert store.describe().vectors == 1
        stores[0].delete([record_of(0, axis(0), key="k").id])
        assert [store.describe().vectors for store in stores] == [0, 1, 1, 1, 1, 1, 1]
        for store in stores:
            store.close()

    # -- words

    def test_words_help_to_find_if_the_store_searches_text(self, store: VectorMemory) -> None:
        store.store(
            [
                record_of(number, axis(0), words=("common", f"word{number}", "oslo" if number == 7 else "rome"))
                for number in range(30)
            ]
        )
        if not store.describe().searches_text:
            pytest.skip("the store searches no text")
        found = store.query(VectorQuery(axis(0), 5, EVERY_FACT, words=("oslo", "common")))
        assert found[0].memory_id == 7
        assert [match.score for match in found] == sorted((match.score for match in found), reverse=True)
        assert store.query(VectorQuery(axis(0), 5, EVERY_FACT, words=("unheard",))) != []

    def test_a_filter_holds_for_words_too(self, store: VectorMemory) -> None:
        store.store(
            [
                record_of(number, axis(0), metadata={"n": number}, trust=number / 10, words=("oslo",))
                for number in range(9)
            ]
        )
        found = store.query(VectorQuery(axis(0), 9, where({"n": {"in": [1, 5, 6]}}), min_trust=0.3, words=("oslo",)))
        assert {match.memory_id for match in found} == {5, 6}

    # -- threads, closing, outages

    def test_threads_store_and_ask_at_once(self, store: VectorMemory) -> None:
        records = some_records(400)

        def work(number: int) -> int:
            store.store(records[number::_THREADS])
            own = records[number]
            assert own.memory_id in {
                match.memory_id for match in store.query(VectorQuery(own.embedding, 3, EVERY_FACT))
            }
            return len(store.listing(None, 10))

        with ThreadPoolExecutor(_THREADS) as threads:
            assert set(threads.map(work, range(_THREADS))) == {10}
        assert store.describe().vectors == 400

    def test_several_open_an_empty_store_at_once(self, open_store: OpenStore) -> None:
        """Given a store that holds nothing yet, when many set it up at the same moment, then all can use it."""
        stores = [open_store(space_of("raced")) for _ in range(_THREADS)]

        def work(number: int) -> None:
            stores[number].store([record_of(number, axis(0))])

        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(work, range(_THREADS)))
        assert {store.describe().vectors for store in stores} == {_THREADS}
        for store in stores:
            store.close()

    def test_a_closed_store_says_so_and_closing_again_does_nothing(self, open_store: OpenStore) -> None:
        store = open_store(space_of("first"))
        store.store(some_records(3))
        store.close()
        store.close()
        for call in every_call(store):
            with pytest.raises(StoreClosed):
                call()

    def test_a_store_that_was_never_used_can_be_closed(self, open_store: OpenStore) -> None:
        store = open_store(space_of("first"))
        store.close()
        with pytest.raises(StoreClosed):
            store.describe()

    def test_a_store_out_of_reach_says_so_in_time(self, unreachable: VectorMemory) -> None:
        for call in every_call(unreachable):
            begun = time.monotonic()
            with pytest.raises(StoreUnavailable):
                call()
            assert time.monotonic() - begun < self.patience
        unreachable.close()
