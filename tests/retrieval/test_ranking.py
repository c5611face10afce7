"""The signals by which candidates are ranked: what each does, and that it is neutral without its data."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.clock import micros
from mnemon.ports import WordStatistics
from mnemon.retrieval import ranking
from mnemon.retrieval.gathering import Candidate, Candidates
from mnemon.retrieval.ranking import WEIGHTS, Joined, Question, Ranking, rank
from mnemon.words import analyse, key_word

TODAY = datetime(2024, 7, 10, tzinfo=UTC)
NOW = micros(TODAY)


Found = tuple[Candidate, float]


def memory(text: str = "", *, key: str = "k", cosine: float = np.nan, **more: Any) -> Found:
    """A candidate and its cosine; `days` says how long ago it happened."""
    days = more.pop("days", None)
    about: dict[str, Any] = {
        "id": 0, "namespace": "user:a", "thread": None, "position": None, "author": None,
        "occurred_at": None if days is None else micros(TODAY - timedelta(days=days)), "updated_at": NOW,
        "trust": 1.0, "importance": 0.5, "words": " ".join([key_word(key), *analyse(text)]), **more,
    }  # fmt: skip
    return Candidate(**about), cosine


def candidates(*found: Found, documents: int = 1000) -> Candidates:
    """Candidates among many memories; a word is as frequent among all as it is here."""
    texts = [each.words.split(" ") for each, _ in found]
    frequencies = {word: sum(word in text for text in texts) for words in texts for word in words}
    return Candidates(
        [each for each, _ in found],
        np.array([cosine for _, cosine in found], np.float32),
        WordStatistics(documents, 10.0, frequencies),
    )


def ranked(question: str, *found: Found, wanted: int | None = None) -> Ranking:
    return rank(Question.read(question), candidates(*found), NOW, wanted)


def signal(name: str, question: str, *found: Found) -> list[float]:
    """One signal of each candidate, in units of its weight."""
    return (ranked(question, *found).signals[name] / getattr(WEIGHTS, name)).tolist()


# -- questions


def test_a_question_is_its_words_and_the_keys_that_it_may_name() -> None:
    asked = Question.read('Is "home address" the address in TICKET-7?')
    assert asked.words == ("home", "address", "ticket", "7", "ticket-7", "=home_address", "=ticket-7")
    assert Question.read("Where is it?", ["place of residence", "residence"]).words == ("place", "resid")


# -- each signal


def test_text_is_the_share_of_the_question_that_is_found() -> None:
    both, one, none = signal(
        "text", "red bicycle", memory("A red bicycle."), memory("A red car."), memory("Nothing of it.")
    )
    assert 1 > both > one > none == 0


def test_rare_words_tell_more_than_common_ones() -> None:
    common, rare, *_ = signal(
        "text", "meeting Kowalski", memory("A meeting."), memory("Kowalski."), memory("meeting"), memory("meeting")
    )
    assert rare > common > 0


def test_repetitions_of_a_word_soon_count_no_more() -> None:
    texts = Joined([" ".join(["=k", *["w"] * times]) for times in (0, 1, 2, 3)])
    counts = ranking.saturated(texts.counts(["w", "other"]))
    assert counts.shape == (2, 4)
    assert counts[0, 0] == 0
    assert counts[0, 1] > 0.7
    assert counts[0, 3] - counts[0, 2] < counts[0, 2] - counts[0, 1] < 0.2
    assert not counts[1].any()


def test_what_the_neighbours_say_counts_less_the_farther_they_are() -> None:
    turns = [memory("tea" if n == 10 else "so", key=str(n), thread="t", position=n) for n in range(20)]
    said = signal("text", "tea", *turns, memory("so"), memory("so", thread="other", position=10))
    after, before, far = said[10:15], said[10:5:-1], said[0:6]
    assert after == sorted(set(after), reverse=True)
    assert before == sorted(set(before), reverse=True)
    assert min(*after, *before) >= far[0] > 0
    assert len(set(far)) == 1
    assert said[20:] == [0, 0]


def test_a_thread_without_positions_is_no_neighbourhood() -> None:
    said = signal("text", "tea", memory("tea", thread="t"), memory("so", thread="t"), memory("so", thread="t"))
    assert said[0] > said[1] == said[2] > 0


def test_the_nearer_vector_is_better_and_no_vector_is_neutral() -> None:
    near, far, none = signal("vector", "tea", memory(cosine=0.8), memory(cosine=0.2), memory())
    assert near > 0 > far
    assert none == 0
    assert signal("vector", "tea", memory(), memory()) == [0, 0]
    assert signal("vector", "tea", memory(cosine=0.3), memory(cosine=0.3)) == [0, 0]


def test_a_few_cosines_are_measured_by_the_usual_spread() -> None:
    few, many = (ranking.standardise(np.array([0.50, 0.51] * count)) for count in (1, 500_000))
    assert abs(few[1]) < 0.1
    assert many[1] == pytest.approx(1, abs=0.1)


def test_what_follows_something_near_is_better() -> None:
    found = [memory(cosine=cosine, thread="t", position=n) for n, cosine in enumerate((0.9, 0.1, 0.1, 0.1))]
    before = signal("vector_before", "tea", *found)
    assert before[1] > 0 > before[2] == before[3]
    assert before[0] == pytest.approx(signal("vector", "tea", *found)[0])
    assert signal("vector_before", "tea", memory(cosine=0.9), memory(cosine=0.1)) == [0, 0]


def test_the_nearest_of_a_thread_speaks_for_it() -> None:
    here = [memory(cosine=cosine, thread="t", position=n) for n, cosine in enumerate((0.9, 0.1))]
    there = memory(cosine=0.3, thread="u", position=0)
    best, same, other = signal("vector_thread", "tea", *here, there)
    assert best == same > other
    assert signal("vector_thread", "tea", memory(cosine=0.9), memory(cosine=0.1)) == [0, 0]


def test_the_author_whom_the_question_names_comes_first() -> None:
    found = (
        memory("so", author="Alice Smith"), memory("so", author="Bob"), memory("Alice sings"), memory("Bob sings"),
    )  # fmt: skip
    assert signal("author", "What did Alice say?", *found) == [1, 0, 1, 0]
    assert signal("author", "What was said?", *found) == [0, 0, 0, 0]
    assert signal("author", "What did Alice say?", memory("Alice sings"), memory("so")) == [0, 0]


def test_the_name_of_an_author_is_not_looked_for_in_the_text_too() -> None:
    of_her, about_her = signal(
        "text", "What does Alice drink?", memory("I drink tea", author="Alice"), memory("Alice sleeps", author="Bob")
    )
    assert of_her > about_her == 0


def test_what_happened_in_the_period_that_the_question_names_comes_first() -> None:
    found = memory(days=1), memory(days=5), memory(days=300), memory()
    inside, near, far, undated = signal("date", "What happened yesterday?", *found)
    assert inside == 1 > near > far > undated == 0
    assert signal("date", "What happened?", *found) == [0, 0, 0, 0]


def test_a_day_without_a_year_is_met_every_year() -> None:
    for year in (1999, 2023, 2024):
        then = micros(datetime(year, 5, 8, 20, tzinfo=UTC))
        [met] = signal("date", "What happened on 8 May?", memory(occurred_at=then))
        assert met > 0.85


def test_who_says_more_has_more_substance_up_to_a_point() -> None:
    none, some, much, more = signal("substance", "tea", *(memory("word " * n) for n in (0, 5, 50, 500)))
    assert none == 0 < some < much == more == 1


def test_the_key_that_the_question_names_is_exact() -> None:
    found = memory(key="Home Address"), memory("home address", key="other")
    assert signal("exact", 'What is "home address"?', *found) == [0.25, 0]
    assert signal("exact", "What is home address?", *found) == [0, 0]
    assert signal("exact", "What is TICKET-7?", memory(key="ticket-7"), memory(key="ticket-70")) == [1, 0]


def test_an_identifier_is_worth_more_the_fewer_have_it() -> None:
    question = "Why does v2.3.1 say ERR-4711?"
    whole, longer, part, other = signal(
        "exact", question, memory("It is v2.3.1"), memory("v2.3.1-rc2"), memory("code:ERR-4711."), memory("v2.3.10")
    )
    assert whole == 1 > longer == part == 0.5 > other == 0
    many = signal("exact", question, *(memory("v2.3.1 again") for _ in range(100)))
    assert 0.2 < many[0] < 0.8
    assert signal("exact", "What was on 8th May 2023 at 5pm?", memory("8th May 2023 5pm")) == [0]


def test_whoever_has_the_identifier_is_before_its_neighbours() -> None:
    found = [
        memory("talk " * n + ("zq7xv" if n == 3 else "the key of the safe"), key=str(n), thread="t", position=n,
               author="Bob", days=n, cosine=0.1 if n == 3 else 0.9)
        for n in range(9)
    ]  # fmt: skip
    found[3] = found[3][0]._replace(author="Eve", trust=0.5, importance=0.0, occurred_at=None), -0.5
    assert ranked("Which key of the safe did Bob talk of 5 days ago, zq7xv?", *found).order[0] == 3


def test_what_is_newer_is_better_by_half_a_month() -> None:
    assert signal("recency", "tea", *(memory(days=days) for days in (0, 30, 60))) == pytest.approx([1, 0.5, 0.25])
    assert signal("recency", "tea", memory(days=-9), memory(updated_at=NOW)) == [1, 1]


def test_importance_and_trust_are_neutral_as_they_usually_are() -> None:
    found = memory(), memory(importance=1.0, trust=0.4), memory(importance=0.0, trust=0.0)
    assert signal("importance", "tea", *found) == pytest.approx([0, 0.5, -0.5])
    assert signal("trust", "tea", *found) == pytest.approx([0, -0.6, -1])


def test_who_repeats_something_better_is_set_back() -> None:
    found = (
        memory("I drink green tea every morning", cosine=0.9), memory("I drink green tea every morning", cosine=0.1),
        memory("Rain again", cosine=0.1), memory("", cosine=0.1), memory("", cosine=0.1),
    )  # fmt: skip
    assert signal("diversity", "tea", *found) == pytest.approx([0, -1, 0, 0, 0])
    order, partly = ranking.diversify(["=k a b c d e f g h i", "=k a b c d e f g h"], np.array([1.0, 0.5]), 0.2, 2)
    assert order == [0, 1]
    assert partly[0] == 0 > partly[1] > -1


def test_many_that_say_the_same_do_not_overtake_each_other() -> None:
    """However far down, a repetition is known as one."""
    found = [
        *(memory("green tea every morning", id=n) for n in range(100)),
        memory("tea", id=100),
        memory("tea and rain"),
    ]
    result = ranked("tea", *found)
    first, *others = result.signals["diversity"][:100] / WEIGHTS.diversity
    assert first == 0
    assert set(others) == {-1}
    assert set(result.order[:3]) == {0, 100, 101}


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=8).map(" ".join), max_size=60), st.integers(0, 70))
def test_the_best_few_are_the_first_of_all(texts: list[str], wanted: int) -> None:
    texts = [f"=k {text}".strip() for text in texts]
    scores = np.random.default_rng(len(texts)).random(len(texts)).round(1)
    order, signal = ranking.diversify(texts, scores, 0.2, len(texts))
    few, _ = ranking.diversify(texts, scores, 0.2, wanted)
    assert few == order[:wanted]

    sets = [set(text.split(" ")[1:]) for text in texts]
    better: list[int] = []
    by_score: list[int] = np.argsort(-scores, kind="stable").tolist()
    for place in by_score:
        common = max(
            (len(sets[place] & sets[b]) / len(sets[place] | sets[b]) for b in better if sets[place]), default=0
        )
        assert signal[place] == pytest.approx(-max(0.0, common - 0.6) / 0.4)
        better.append(place)


# -- all of them


def test_no_candidates_have_no_scores() -> None:
    found = ranked("Where does Alice live since May 2023?")
    assert found.order == []
    assert {name: len(values) for name, values in found.signals.items()} == dict.fromkeys(found.signals, 0)


def test_those_that_are_equal_stay_as_they_were() -> None:
    assert ranked("tea", *(memory(f"rain{n}") for n in range(50))).order == list(range(50))
    assert ranked("tea", memory("rain"), memory("tea"), memory("snow")).order == [1, 0, 2]


_WORDS = st.lists(st.sampled_from(["tea", "rain", "red", "alice", "bob", "house", "ERR-7"]), max_size=12).map(" ".join)
_MEMORIES = st.lists(
    st.builds(
        memory,
        _WORDS,
        key=st.sampled_from(["k", "ERR-7", "red house"]),
        cosine=st.just(np.nan) | st.floats(-1, 1),
        thread=st.sampled_from([None, "t", "u"]),
        author=st.sampled_from([None, "Alice", "Bob Smith", "的"]),
        days=st.none() | st.integers(-400, 20_000),
        trust=st.floats(0, 1),
        importance=st.floats(0, 1),
    ),
    max_size=40,
)
_QUESTIONS = st.builds(
    "{} {}".format, _WORDS, st.sampled_from(["", "in May?", "last week", "on 2020-02-29", '"red house"'])
)


def placed(found: Sequence[Found]) -> list[Found]:
    """Each with an id and, if it is in a thread, at a place of its own."""
    return [
        (each._replace(id=n, position=None if each.thread is None or n % 5 == 0 else n * 3 // 2), cosine)
        for n, (each, cosine) in enumerate(found)
    ]


@given(_QUESTIONS, _MEMORIES)
def test_scores_are_finite_and_the_sum_of_their_signals(question: str, found: Any) -> None:
    result = ranked(question, *placed(found))
    assert np.isfinite(result.scores).all()
    assert sorted(result.order) == list(range(len(found)))
    for place, score in enumerate(result.scores):
        told = result.signals_of(place)
        assert set(told) == set(WEIGHTS.__dataclass_fields__)
        assert sum(told.values()) == pytest.approx(score)


@given(_QUESTIONS, _MEMORIES, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_changes_no_score(question: str, found: Any, chance: random.Random) -> None:
    """Only of those that are equal, the first is the better one; whoever repeats it is set back."""
    known = placed(found)
    shuffled = chance.sample(known, len(known))
    before, after = ranked(question, *known), ranked(question, *shuffled)
    place_of = {each.id: place for place, (each, _) in enumerate(shuffled)}
    for place, (each, _) in enumerate(known):
        one, other = before.signals_of(place), after.signals_of(place_of[each.id])
        assert {**one, "diversity": 0} == pytest.approx({**other, "diversity": 0})
    plain = before.scores - before.signals["diversity"]
    if len(set(plain.round(9))) == len(known):
        assert [known[place][0].id for place in before.order] == [shuffled[place][0].id for place in after.order]
