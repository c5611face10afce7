"""BM25: the score itself, and how candidates are looked for."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.bm25 import Question, Stage, namespace_terms, prefix_term, scope_terms, stages, term
from mnemon.ports import WordStatistics

WORDS = st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1, max_size=18)


def statistics(texts: Sequence[Sequence[str]], words: Sequence[str]) -> WordStatistics:
    counts = {word: sum(word in text for text in texts) for word in words}
    return WordStatistics(len(texts), sum(map(len, texts)) / max(len(texts), 1), counts)


def question(**counts: int) -> Question:
    """Of words with these counts among a thousand texts of ten words."""
    return Question(list(counts), WordStatistics(1000, 10.0, counts))


# -- scores


def test_rare_words_repetitions_and_short_texts_count_for_more() -> None:
    asked = question(rare=2, common=500)
    assert asked.score("rare x y") > asked.score("common x y") > asked.score("x y z") == 0
    assert asked.score("rare rare x") > asked.score("rare x y")
    assert asked.score("rare x") > asked.score("rare x y z x y z")
    assert asked.score("rare common x") == pytest.approx(asked.score("rare y x") + asked.score("y common x"))


def test_neighbours_and_parts_of_words_are_counted_as_what_they_are() -> None:
    asked = question(go=10)
    assert asked.score("go go go") > asked.score("go go x") > asked.score("x go x")
    assert asked.score("going ago gogo") == 0


def test_a_word_that_every_text_has_still_counts_a_little() -> None:
    everywhere = Question(["all"], WordStatistics(5, 3.0, {"all": 5}))
    assert 0 < everywhere.score("all x y") < 0.2
    miscounted = Question(["all"], WordStatistics(5, 3.0, {"all": 9}))
    assert miscounted.score("all x y") == everywhere.score("all x y")


def test_no_text_scores_more_than_the_words_can_add_up_to() -> None:
    asked = question(a=3, b=30, c=300)
    assert asked.score("a " * 500 + "b " * 500 + "c " * 500 + "end") < sum(word.weight for word in asked.ranked)


def test_an_empty_index_can_be_asked() -> None:
    asked = Question(["a"], WordStatistics(0, 0.0, {"a": 0}))
    assert asked.ranked == []
    assert asked.score("a") == 0
    assert stages(asked, (), 1.0, 10) == []


# -- digests


def test_digests_are_plain_and_apart() -> None:
    words = ["a", "A", "é", "日本語", 'a"b', "x" * 5000, "\ud800", ""]
    digests = [term(word) for word in words]
    assert len(set(digests)) == len(words)
    assert all(set(digest) <= set("0123456789abcdef") for digest in digests)
    assert prefix_term("a").startswith("n")


def test_a_namespace_has_the_digest_of_each_of_its_prefixes() -> None:
    terms = namespace_terms("user:alice:work")
    assert terms == [prefix_term(prefix) for prefix in ("user", "user:alice", "user:alice:work")]
    assert scope_terms(("user:alice", "app:x")) == (prefix_term("user:alice"), prefix_term("app:x"))
    assert scope_terms(("user:alice", "")) == scope_terms([f"user:{n}" for n in range(1000)]) == ()


# -- looking for candidates


def looked_for(stage: Stage) -> tuple[list[set[str]], set[str]]:
    names = {term(word): word for word in "abcdefghijklmnop"}
    return [{names[each] for each in group} for group in stage.groups], {names[each] for each in stage.without}


def test_rare_words_are_looked_for_together_and_before_common_ones() -> None:
    found = stages(question(c=300, a=5, d=400, b=50), (), 1.0, 100)
    assert [looked_for(stage) for stage in found] == [
        ([{"a", "b"}], set()),
        ([{"c"}, {"d"}], {"a", "b"}),
        ([{"c"}], {"a", "b", "d"}),
        ([{"d"}], {"a", "b", "c"}),
    ]
    ceilings = [stage.ceiling for stage in found]
    assert ceilings == sorted(ceilings, reverse=True)
    assert ceilings[-1] == 0


def test_in_a_small_scope_more_words_are_tried_at_once() -> None:
    found = stages(question(a=5, b=200, c=300, d=900), ("nfe",), 0.01, 100)
    assert found[0].groups == (("nfe",), tuple(term(word) for word in "abcd"))
    assert found[0].skips == len(found) - 1 == 4
    assert all(stage.groups[0] == ("nfe",) for stage in found)


def test_a_long_question_is_looked_for_in_few_stages_by_what_says_most() -> None:
    counts = {f"w{number}": 1 + number % 300 for number in range(900)}
    asked = question(**counts)
    assert len(asked.ranked) == 200
    assert max(word.count for word in asked.ranked) < 100
    for share in (0.001, 0.1, 1.0):
        found = stages(asked, (), share, 100)
        assert len(found) <= 12
        assert {each for stage in found for group in stage.groups for each in group} == {
            term(word.text) for word in asked.ranked
        }


def test_a_stage_is_written_for_any_index() -> None:
    stage = Stage((("n1",), ("a", "b")), ("c", "d"))
    assert stage.written(" AND ", " OR ", " NOT ") == "((n1) AND (a OR b)) NOT (c OR d)"
    assert stage.written(" & ", " | ", " & !") == "((n1) & (a | b)) & !(c | d)"
    assert Stage((("a",),)).written(" & ", " | ", " & !") == "(a)"


@given(st.lists(WORDS, min_size=1, max_size=40), WORDS, st.integers(1, 60), st.floats(0.01, 1))
def test_the_stages_together_find_every_text_with_a_word_and_each_once(
    texts: list[list[str]], words: list[str], wanted: int, share: float
) -> None:
    asked = Question(words, statistics(texts, words))
    plan = stages(asked, (), share, wanted)
    while plan and plan[0].skips:
        skipped = plan[1 : 1 + plan[0].skips]
        assert matching(plan[0], texts) == {each for stage in skipped for each in matching(stage, texts)}
        del plan[0]
    times = [number for stage in plan for number in matching(stage, texts)]
    assert sorted(times) == [number for number, text in enumerate(texts) if set(text) & set(words)]


@given(st.lists(WORDS, min_size=1, max_size=40), WORDS, st.integers(1, 60))
def test_nothing_that_a_stage_leaves_out_scores_more_than_its_ceiling(
    texts: list[list[str]], words: list[str], wanted: int
) -> None:
    asked = Question(words, statistics(texts, words))
    left = set(range(len(texts)))
    for stage in stages(asked, (), 1.0, wanted):
        left -= matching(stage, texts)
        assert all(asked.score(" ".join(texts[number])) <= stage.ceiling for number in left)


def matching(stage: Stage, texts: Sequence[Sequence[str]]) -> set[int]:
    """Which texts an index would find."""
    terms = [{term(word) for word in text} for text in texts]
    return {
        number
        for number, each in enumerate(terms)
        if all(each & set(group) for group in stage.groups) and not each & set(stage.without)
    }


def test_the_order_of_words_does_not_matter() -> None:
    chance = random.Random(0)
    counts = {word: chance.randrange(1, 400) for word in "abcdefgh"}
    shuffled = dict(chance.sample(list(counts.items()), len(counts)))
    assert stages(question(**counts), (), 0.5, 100) == stages(question(**shuffled), (), 0.5, 100)
