"""An extract says what was said, who said it and when, once, and within its budget."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.consolidation.extracts import extract, sentences_of
from mnemon.consolidation.sources import Source
from mnemon.consolidation.summaries import summarise
from mnemon.tokens import EstimatedTokens, counter

TOKENS = EstimatedTokens()

TALK = [
    Source("e1", "Hi there!", "alice", datetime(2024, 5, 3, tzinfo=UTC)),
    Source("e2", "Hello! How can I help?", "assistant", datetime(2024, 5, 3, tzinfo=UTC)),
    Source(
        "e3",
        "We plan the launch of Aurora for 12 June 2024 in Bergen. The launch needs a budget of 40 000 euros. Nice?",
        "alice",
        datetime(2024, 5, 3, tzinfo=UTC),
    ),
    Source("e4", "Noted: the launch of Aurora is on 12 June 2024 in Bergen.", "assistant", None),
    Source("e5", "ok", "alice", None),
    Source(
        "e6", "The budget of the launch was raised to 55 000 euros by Ingrid.", "bob", datetime(2024, 5, 9, tzinfo=UTC)
    ),
    Source("e7", "Thanks, bye!", "alice", datetime(2024, 5, 9, tzinfo=UTC)),
]


def test_it_keeps_what_matters_with_who_and_when() -> None:
    text, used = extract(TALK, 80, TOKENS)
    alice, bob = text.splitlines()
    plan, need = sentences_of(TALK[2].text.removesuffix("Nice?"))
    assert alice == f"2024-05-03 alice: {plan} {need}"
    assert bob == f"2024-05-09 bob: {TALK[5].text}"
    assert used == ("e3", "e6")


def test_it_is_the_same_every_time() -> None:
    assert len({extract(TALK, 60, TOKENS) for _ in range(5)}) == 1


def test_what_was_said_before_is_not_said_again() -> None:
    text, _ = extract([Source(str(n), "The server db-7 ran out of disk on Monday.") for n in range(20)], 500, TOKENS)
    assert text == "The server db-7 ran out of disk on Monday."


def test_numbers_that_differ_are_kept() -> None:
    text, _ = extract(
        [Source(str(n), f"The server db-{n} ran out of disk space today.") for n in range(3)], 500, TOKENS
    )
    assert len(text.splitlines()) == 3


@pytest.mark.parametrize("budget", [1, 2, 5, 10, 20, 40, 80, 1000])
def test_it_stays_within_its_budget(budget: int) -> None:
    for tokens in (TOKENS, counter()):
        text, used = extract(TALK, budget, tokens)
        assert tokens.count(text) <= budget
        assert bool(text) == bool(used)


def test_where_no_sentence_fits_the_best_is_cut() -> None:
    text, used = extract(TALK, 12, TOKENS)
    assert text.endswith("…")
    assert text.startswith("2024-05-0")
    assert len(used) == 1


@pytest.mark.parametrize("texts", [[], [""], ["  \n "]])
def test_of_nothing_there_is_nothing(texts: list[str]) -> None:
    assert extract([Source(str(n), text) for n, text in enumerate(texts)], 50, TOKENS) == ("", ())


def test_of_very_little_that_is_what_there_is() -> None:
    assert extract([Source("1", "ok", "bob")], 50, TOKENS) == ("bob: ok", ("1",))


def test_a_denial_is_no_repetition() -> None:
    talk = [
        Source("1", "The big launch of Aurora happens in June."),
        Source("2", "The big launch of Aurora will not happen in June."),
    ]
    assert extract(talk, 500, TOKENS)[1] == ("1", "2")


def test_the_order_is_that_of_the_talk() -> None:
    text, used = extract(TALK, 1000, TOKENS)
    assert list(used) == sorted(used)
    assert "Nice?" not in text or text.index("40 000") < text.index("Nice?")


def test_a_long_talk_takes_no_long_time() -> None:
    talk = [Source(str(n), f"Item {n} was moved to shelf {n % 97}. It was {n % 13} kg.", "bob") for n in range(5000)]
    text, used = extract(talk, 300, TOKENS)
    assert TOKENS.count(text) <= 300
    assert len(used) > 5


@pytest.mark.parametrize("text", [".", "?!", "“", "a.", ". ", "A ", "1.", "not ", " ", "\n", "é", "。", "I'm "])
def test_no_text_takes_a_long_time(text: str) -> None:
    begun = time.process_time()
    summarise([Source("1", text * (60_000 // len(text)), "bob"), Source("2", text * 1000, "bob")], 50, tokens=TOKENS)
    assert time.process_time() - begun < 5


@given(st.lists(st.text(max_size=200), max_size=6), st.integers(1, 60))
def test_no_text_breaks_it(texts: list[str], budget: int) -> None:
    sources = [Source(str(number), text, "a\nb") for number, text in enumerate(texts)]
    text, used = extract(sources, budget, TOKENS)
    assert TOKENS.count(text) <= budget
    assert set(used) <= {source.id for source in sources}


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It costs 3.50 at 10.30 p.m. on db.example.com.", ["It costs 3.50 at 10.30 p.m. on db.example.com."]),
        ("Dr. Smith met Mrs. Jones vs. J. Doe.", ["Dr. Smith met Mrs. Jones vs. J. Doe."]),
        ("- first\n- second\n\n3. third", ["first", "second", "third"]),
        ('He said "No." Then he left.', ['He said "No."', "Then he left."]),
        ("今日は雨です。明日は晴れです。", ["今日は雨です。", "明日は晴れです。"]),
        ("   ", []),
    ],
)
def test_sentences_are_told_apart(text: str, sentences: list[str]) -> None:
    assert list(sentences_of(text)) == sentences
