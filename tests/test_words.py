"""The words of texts: the same for what is indexed and for what is asked."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemon.words import analyse, key_word, key_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cats were running", ["cat", "run"]),
        ("I think that it is what it is", ["think"]),
        ("it's don't I'd we'll they've Alice's", ["alic"]),
        ("it\u2019s Alice\u2019s", ["alic"]),
        ("Café déjà ÉTÉ Ångström", ["cafe", "deja", "ete", "angstrom"]),
        ("\uff21\uff22\uff23 ﬁne", ["abc", "fine"]),
        ("", []),
        (" \t\n ", []),
        ("--- ... !?", []),
    ],
)
def test_a_text_is_reduced_to_what_it_says(text: str, words: list[str]) -> None:
    assert analyse(text) == words


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("fails with ERR_CONN_REFUSED.", "err_conn_refused", {"err", "conn", "refus"}),
        ("since v2.13.1, at least", "v2.13.1", {"v2", "13", "1"}),
        ("see ORA-00942", "ora-00942", {"ora", "00942"}),
        ("mail bob@example.com", "bob@example.com", {"bob", "exampl", "com"}),
        ("in src/mnemon/words.py:12", "src/mnemon/words.py:12", {"src", "mnemon", "word", "py", "12"}),
        ("call getUserName()", "getusername", {"user", "name"}),
        ("the O'Brien house", "o'brien", {"o", "brien"}),
    ],
)
def test_what_is_joined_is_there_whole_and_in_parts(text: str, whole: str, parts: set[str]) -> None:
    assert {whole, *parts} <= set(analyse(text))


def test_a_version_is_not_another_that_begins_like_it() -> None:
    assert "v2.13" not in analyse("v2.13.1")
    assert "err-12" not in analyse("ERR-123")


def test_however_it_is_written_it_is_the_same_word() -> None:
    forms = ("résumé", "re\u0301sume\u0301", "RÉSUMÉ", "Resume")
    assert {tuple(analyse(form)) for form in forms} == {("resum",)}


def test_of_writing_without_spaces_every_pair_is_a_word() -> None:
    assert analyse("東京都") == ["東京", "京都"]
    assert analyse("猫") == ["猫"]
    assert set(analyse("京都")) <= set(analyse("東京都に住む"))
    assert analyse("ภาษาไทย")


def test_numbers_and_other_languages_are_not_stemmed() -> None:
    assert analyse("1234s running1 бегущий") == ["1234s", "running1", "бегущии"]


def test_a_long_run_is_read_in_parts_only() -> None:
    words = analyse("-".join(["abcdefghij"] * 50))
    assert words == ["abcdefghij"] * 50


def test_repeats_and_their_order_are_kept() -> None:
    assert analyse("red blue red") == ["red", "blue", "red"]


@given(st.text() | st.text("aZ9éß日ı.-_'\u2019 \u3000\x1f\u0301", max_size=40))
@example("\u00bd\u2002x \ufdfa")
@example("a\x00b\ud800c")
def test_no_word_is_empty_or_has_white_space(text: str) -> None:
    for word in (*analyse(text), *key_words(text), key_word(text)):
        assert word
        assert not any(char.isspace() for char in word)


@given(st.text())
def test_no_word_of_a_text_can_pass_for_a_key(text: str) -> None:
    assert not any(word.startswith("=") for word in analyse(text))


# -- keys


def test_a_key_is_one_word_whatever_its_case_and_spaces() -> None:
    assert key_word("Home  Address") == key_word("home address") == "=home_address"
    assert key_word("straße") == key_word("STRASSE")
    assert key_word("a") != key_word("b")
    assert len(key_word("k" * 500)) < 250


@pytest.mark.parametrize(
    "question",
    [
        'what is "Home Address"?', "what is 'home address'?", "what is `home address`?",
    ],
)  # fmt: skip
def test_a_question_names_a_key_by_quoting_it(question: str) -> None:
    assert key_words(question) == [key_word("home address")]


def test_a_question_names_a_key_that_looks_like_an_identifier() -> None:
    assert key_words("What is user_42.name, or TICKET-7?") == ["=user_42.name", "=ticket-7"]
    assert key_words("See (order-9): order-9!") == ["=order-9"]
    assert key_words("What is the plan?") == []
