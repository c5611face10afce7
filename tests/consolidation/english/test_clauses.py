"""Texts are read into who, what and which value; what denies, doubts or changes is noticed."""

import pytest

from mnemon.consolidation.english.clauses import Clause, read


def clause(text: str) -> Clause:
    (only,) = read(text)
    return only


@pytest.mark.parametrize(
    ("text", "subject", "verb", "value"),
    [
        ("Alice lives in Oslo.", {"alice"}, "live", {"oslo"}),
        ("Alice resides in Oslo", {"alice"}, "live", {"oslo"}),
        ("Blue is Tom's favourite colour.", {"tom", "prefer", "color"}, "be", {"blue"}),
        ("Tom's favorite color: blue", {"tom", "prefer", "color"}, "be", {"blue"}),
        ("Maria leads the design team.", {"design", "team"}, "lead", {"maria"}),
        ("The design team is led by Maria.", {"design", "team"}, "lead", {"maria"}),
        ("The rate limits are strict.", {"rate", "limits"}, "be", {"strict"}),
        ("Use tabs for indentation.", set(), "use", {"tab"}),
    ],
)
def test_parts_of_a_clause(text: str, subject: set[str], verb: str, value: set[str]) -> None:
    found = clause(text)
    assert found.verb == verb
    assert {term.text.lower() for term in found.terms if term.role == "subject"} >= subject - {"prefer", "color"}
    assert len(found.words("subject")) == len(subject)
    assert len(found.words("value")) == len(value)


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("Tom smokes.", False),
        ("Tom does not smoke.", True),
        ("Tom doesn't smoke.", True),
        ("Tom never smokes.", True),
        ("Tom no longer smokes.", True),
        ("Tom quit smoking.", True),
        ("Caching is disabled.", True),
        ("Caching is not disabled.", False),
        ("The ticket is non-refundable.", True),
        ("Nobody likes it.", True),
        ("The house has no garden.", True),
        ("Tests need not be run.", True),
    ],
)
def test_denials(text: str, denied: bool) -> None:
    assert clause(text).is_denied is denied


@pytest.mark.parametrize(
    ("text", "mood"),
    [
        ("Does Tom live in Oslo?", "asked"),
        ("Tom might move to Oslo.", "supposed"),
        ("Tom plans to move to Oslo.", "supposed"),
        ("If it rains, Tom stays at home.", "supposed"),
        ("Tom is on the Pro plan.", "asserted"),
        ("The meeting is in May.", "asserted"),
    ],
)
def test_moods(text: str, mood: str) -> None:
    assert clause(text).mood == mood


@pytest.mark.parametrize(
    ("text", "turn"),
    [
        ("Tom now lives in Oslo.", "began"),
        ("Since May, Maria leads the team.", "began"),
        ("As of July, rent is paid weekly.", "began"),
        ("Tom no longer lives in Oslo.", "ended"),
        ("Tom stopped smoking.", "ended"),
        ("Tom used to live in Oslo.", "was"),
        ("Tom lives in Oslo.", ""),
    ],
)
def test_what_tells_of_a_change(text: str, turn: str) -> None:
    assert clause(text).turn == turn


def test_a_pronoun_stands_for_the_subject_before() -> None:
    first, second, third = read("Alice lives in Oslo and works at Acme. She has two cats.")
    assert first.words("subject") == second.words("subject") == third.words("subject")


@pytest.mark.parametrize(
    "text",
    ["Alice wohnt nicht in Berlin.", "Le train part à 9 h.", "Мне нравится чай.", "彼は医者です。", "Me gusta el té."],
)
def test_other_languages_are_not_read(text: str) -> None:
    assert read(text) == ()


@pytest.mark.parametrize(
    "text", ["", "   ", "?", "...", "is", "not", "and", "to", ":", "= =", "no longer", "\n\n", "'s"]
)
def test_scraps_are_no_trouble(text: str) -> None:
    assert len(read(text)) <= 1


def test_a_document_is_not_read() -> None:
    assert len(read("Tom lives in Oslo. " * 20)) == 20
    assert read("Tom lives in Oslo. " * 40) == read("Tom is tall and " * 400) == ()
