"""Cutting texts into chunks: nothing is lost, nothing is too long, and what was not edited stays as it is."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.documents.chunking import Piece, Structure, chunk, title_of
from mnemon.tokens import EstimatedTokens, counter

STRUCTURES: tuple[Structure, ...] = ("markdown", "text", "code")
DOCS = sorted((Path(__file__).parents[2] / "docs").glob("**/*.md"))
count = EstimatedTokens().count

LINES = st.one_of(
    st.sampled_from(
        ["", "", "# One", "## Two", "### ", "Title", "=====", "-----", "```python", "```", "~~~", "- item",
         "  - nested", "1. first", "| a | b |", "|---|---|", "    indented", "\tx = 1", "---", "> quote", "\f", "a\fb",
         "text\r", "😀" * 9]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=60),
    st.integers(1, 60).map(lambda n: "word. " * n),
    st.integers(1, 400).map(lambda n: "x" * n),
)  # fmt: skip
TEXTS = st.lists(LINES, max_size=60).map("\n".join)


def texts_of(text: str, structure: Structure = "markdown", limit: int = 64) -> list[str]:
    return [text[piece.start : piece.end] for piece in chunk(text, structure, limit, count)]


def paragraph(number: int) -> str:
    return f"Paragraph {number} tells of matter {number * 7919 % 1000}, which nobody else mentions at all. " * 2


# -------------------------------------------------------------------------------------------------- nothing is lost


@settings(deadline=None, max_examples=300)
@given(TEXTS, st.sampled_from(STRUCTURES), st.integers(16, 120))
def test_the_chunks_together_are_the_text_and_none_is_too_long(text: str, structure: Structure, limit: int) -> None:
    pieces = chunk(text, structure, limit, count)
    assert "".join(text[piece.start : piece.end] for piece in pieces) == text
    assert all(one.end == other.start for one, other in pairwise(pieces))
    assert all(count(text[piece.start : piece.end]) <= limit for piece in pieces)
    assert pieces == chunk(text, structure, limit, count)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_real_documents_are_cut_without_loss(structure: Structure) -> None:
    exact = counter()
    for path in DOCS:
        text = path.read_text("utf-8")
        pieces = chunk(text, structure, 200, exact.count)
        assert "".join(text[piece.start : piece.end] for piece in pieces) == text
        assert max(exact.count(text[piece.start : piece.end]) for piece in pieces) <= 200


def test_an_empty_text_has_no_chunks() -> None:
    assert [chunk("", structure, 64, count) for structure in STRUCTURES] == [[], [], []]


# ------------------------------------------------------------------------------------------------ where it is cut


def test_a_chunk_begins_with_a_heading_where_it_can() -> None:
    sections = [f"## Part {n}\n\n{paragraph(n)}\n\n" for n in range(6)]
    assert texts_of("".join(sections), limit=70) == sections


def test_sections_that_are_short_share_a_chunk() -> None:
    text = "# A\n\nOne.\n\n# B\n\nTwo.\n\n# C\n\nThree.\n"
    assert texts_of(text, limit=200) == [text]


def test_a_heading_is_not_left_behind() -> None:
    text = f"{paragraph(1)}\n\n{paragraph(2)}\n\n## Next\n\n{paragraph(3)}\n"
    for limit in range(40, 90):
        for piece in texts_of(text, limit=limit):
            assert not piece.rstrip().endswith("## Next"), limit


def test_a_heading_keeps_the_beginning_of_what_does_not_fit_with_it() -> None:
    body = "".join(f"Sentence {n} has an end of its own. " for n in range(6))
    text = f"# The title of it all\n\n## A part\n\n{body}\n"
    limit = count(body) + 2
    first, *_ = texts_of(text, limit=limit)
    assert "## A part" in first
    assert "Sentence 0" in first


def test_code_stays_whole_where_it_fits() -> None:
    code = "```python\n" + "".join(f"value_{n} = {n}\n\n" for n in range(9)) + "```\n"
    text = f"{paragraph(1)}\n\n{code}\n{paragraph(2)}\n"
    limit = count(code) + 2
    assert any(code in piece for piece in texts_of(text, limit=limit))
    divided = texts_of(text, limit=count(code) // 2)
    assert "".join(divided) == text
    assert not any(code in piece for piece in divided)


def test_what_looks_like_structure_inside_code_is_code() -> None:
    text = "# Real\n\n```sh\n# not a heading\n- not an item\n```\n\nAfter.\n"
    assert [piece.headings for piece in chunk(text, "markdown", 16, count)][-1] == ("Real",)
    assert title_of(text, "markdown") == "Real"


def test_items_of_a_list_stay_whole_where_they_fit() -> None:
    items = [f"- item {n} says something of its own, in words\n  that go on in another line\n" for n in range(12)]
    pieces = texts_of("".join(items), limit=60)
    assert len(pieces) > 2
    assert all(piece.startswith("- item") for piece in pieces)


def test_a_table_is_cut_between_rows_only() -> None:
    rows = "".join(f"| row {n} | its value is {n} |\n" for n in range(40))
    pieces = texts_of(f"| a | b |\n|---|---|\n{rows}", limit=80)
    assert len(pieces) > 3
    assert all(piece.startswith("|") and piece.endswith("|\n") for piece in pieces)


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    text = " ".join(f"Sentence {n} has an end of its own." for n in range(40))
    pieces = texts_of(text, limit=50)
    assert all(re.fullmatch(r"Sentence .*own\. ?", piece) for piece in pieces)


def test_front_matter_is_no_heading() -> None:
    text = "---\ntitle: X\n---\n\n# Y\n\nText.\n"
    assert title_of(text, "markdown") == "Y"


def test_pages_are_never_joined() -> None:
    text = "one\n\ftwo\n\f\n\fthree"
    assert texts_of(text, "text") == ["one\n\f", "two\n\f", "\n\f", "three"]


# ------------------------------------------------------------------------------------------------------- headings


def headings(text: str, structure: Structure, limit: int = 16) -> list[tuple[str, ...]]:
    return [piece.headings for piece in chunk(text, structure, limit, count)]


def test_a_chunk_knows_the_headings_above_it() -> None:
    body = "Some words that fill a line of their own, and then a few more of them.\n\n"
    text = f"# A\n\n{body}## B\n\n{body}### C ###\n\n{body}## D\n\n{body}E\n=\n\n{body}F\n---\n\n{body}"
    found = list(dict.fromkeys(headings(text, "markdown", 24)))
    assert found == [("A",), ("A", "B"), ("A", "B", "C"), ("A", "D"), ("E",), ("E", "F")]


def test_underlined_titles_of_plain_text_are_headings() -> None:
    body = "Some words that fill a line of their own, and then a few more of them.\n\n"
    text = f"Title\n*****\n\n{body}Part\n~~~~\n\n{body}Other\n~~~~~\n\n{body}"
    assert list(dict.fromkeys(headings(text, "text", 24))) == [("Title",), ("Title", "Part"), ("Title", "Other")]
    assert title_of(text, "text") == "Title"


def test_a_comment_in_code_is_no_heading() -> None:
    assert set(headings("# comment\n\nx = 1\n\n# other\n\ny = 2\n" * 20, "code")) == {()}


# ------------------------------------------------------------------------------------------------------------ edits


def moved(text: str, edited: str, structure: Structure) -> int:
    """How many chunks of the edited text are not among those of the text."""
    return len(set(texts_of(edited, structure, 128)) - set(texts_of(text, structure, 128)))


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("at", [0, 40, 150])
def test_an_edit_changes_the_chunks_near_it_and_no_others(structure: Structure, at: int) -> None:
    """Given 200 paragraphs without any heading, when one comes before the others, then most chunks stay."""
    paragraphs = [f"{paragraph(n)}\n\n" for n in range(200)]
    text = "".join(paragraphs)
    inserted = "".join([*paragraphs[:at], "A paragraph that was not there before.\n\n", *paragraphs[at:]])
    removed = "".join([*paragraphs[:at], *paragraphs[at + 1 :]])
    total = len(texts_of(text, structure, 128))
    assert total > 60
    assert 1 <= moved(text, inserted, structure) <= 8
    assert 0 <= moved(text, removed, structure) <= 8


def test_a_piece_is_where_it_says() -> None:
    assert chunk("# A\n\nb\n", "markdown", 64, count) == [Piece(0, 7, ("A",))]
