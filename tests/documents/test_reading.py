"""Reading files: every format and encoding, and the reason where there is nothing to read."""

import io
import random
import zlib
from contextlib import suppress
from pathlib import Path

import pypdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.documents.reading import Reading, Unreadable, decode, is_binary, may_be_read, read, type_of
from mnemon.model import DocumentType
from mnemon.testing.pdfs import pdf

PAGE = """<!doctype html>
<html><head><title>The
 harbour &amp; its ships</title><style>p { color: red }</style>
<script>document.write("<p>never</p>")</script></head>
<body>
<nav><a href="/">Home</a></nav>
<h1>Ships</h1>
<p>A <b>ship</b> is
   larger than a boat.</p>
<script>evil()</script>
<h2>Kinds</h2>
<ul><li>sloop<li><p>brig</p><ul><li>snow</li></ul></li></ul>
<table><tr><th>name</th><th>masts</th></tr>
<tr><td>brig</td><td>2</td></tr></table>
<pre>
x = 1
  if x &lt; 2:
</pre>
<p>One<br>two</p>
</body></html>
"""

SHOWN = """Home

# Ships

A ship is larger than a boat.

## Kinds

- sloop
- brig
  - snow

| name | masts
| brig | 2

```
x = 1
  if x < 2:
```

One
two
"""


def read_text(data: bytes, kind: str = "text", name: str = "a.txt") -> Reading:
    return read(data, DocumentType(kind), name)


# -------------------------------------------------------------------------------------------------------- encodings


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Smörgåsbord — 日本 😀".encode(), "Smörgåsbord — 日本 😀"),
        ("\ufeffmarked".encode(), "marked"),
        ("Smörgåsbord".encode("utf-16"), "Smörgåsbord"),
        (b"\xfe\xff" + "日本".encode("utf-16-be"), "日本"),
        ("日本".encode("utf-32"), "日本"),
        (b"caf\xe9", "café"),
        (b"\x93quoted\x94 \x80 5", "“quoted” € 5"),
        (b"undefined \x81", "undefined \x81"),
        (b"", ""),
        (b"a\r\nb\tc\x0c\x1b[0m", "a\r\nb\tc\x0c\x1b[0m"),
    ],
)
def test_text_in_any_encoding(data: bytes, text: str) -> None:
    assert decode(data) == text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        (bytes(range(1, 32)) * 9, "binary"),
        (b"\x1f\x8b\x08text", "gzip"),
        (b"PK\x03\x04text", "ZIP"),
        (b"%PDF-1.7 text", "a PDF file"),
        (b"\xff\xfea", "begins as utf-16"),
    ],
)
def test_what_is_no_text_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        decode(data)


@given(st.binary(max_size=300))
def test_whatever_the_bytes_there_is_text_or_a_reason(data: bytes) -> None:
    with suppress(Unreadable):
        assert "\0" not in decode(data) or data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc",))))
def test_utf_8_is_read_as_it_was_written(text: str) -> None:
    assert decode(text.encode()) == text.removeprefix("\ufeff")


# ------------------------------------------------------------------------------------------------------------ types


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a/b.md", "markdown"), ("README.MD", "markdown"), ("x.html", "html"), ("p.pdf", "pdf"), ("n.rst", "text"),
        ("m.py", "code"), ("Makefile", "code"), ("LICENSE", None), ("x.png", None), (".gitignore", None),
    ],
)  # fmt: skip
def test_a_name_tells_the_type(path: str, kind: str | None) -> None:
    assert type_of(path) == kind


def test_what_has_no_suffix_is_worth_a_try() -> None:
    assert may_be_read("copyright")
    assert may_be_read("a.md")
    assert not may_be_read("a.png")
    assert is_binary(b"\x7fELF\x02\x01\x01\0")


def test_the_title_of_a_document_is_its_first_heading() -> None:
    assert read_text(b"Intro\n\n# Ships\n\n## Kinds\n", "markdown").title == "Ships"
    assert read_text(b"Ships\n=====\n\nText\n").title == "Ships"
    assert read_text(b"no heading\n").title is None
    assert read_text(b"# comment\nx = 1\n", "code", "src/a.py").title == "a.py"


# ------------------------------------------------------------------------------------------------------------- HTML


def test_html_is_what_a_browser_shows_of_it() -> None:
    reading = read_text(PAGE.encode(), "html")
    assert reading.text == SHOWN
    assert (reading.title, reading.structure) == ("The harbour & its ships", "markdown")


def test_every_line_of_html_knows_where_it_stands() -> None:
    reading = read_text(PAGE.encode(), "html")
    assert reading.lines is not None
    lines, source = reading.text.splitlines(), PAGE.splitlines()
    assert len(lines) == len(reading.lines)
    for wanted in ("Home", "# Ships", "- sloop", "| brig | 2", "x = 1", "  if x < 2:"):
        word = wanted.split()[-1].replace("<", "&lt;")
        assert word in source[reading.lines[lines.index(wanted)] - 1], wanted


def test_a_charset_that_html_declares_counts() -> None:
    page = '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>Гавань</p>'
    assert read_text(page.encode("koi8-r"), "html").text == "Гавань\n"
    assert read_text(b'<meta charset="no-such"><p>caf\xe9', "html").text == "café\n"


def test_html_without_a_heading_or_an_end() -> None:
    assert read_text(b"just words", "html").text == "just words\n"
    assert read_text(b"<head><title>T</title><body><p>open <pre>a\n```\nb", "html").text == (
        "open\n\n````\na\n```\nb\n````\n"
    )
    assert read_text(b"", "html").text == ""


@settings(deadline=None)
@given(st.lists(st.sampled_from([
    "<p>", "</p>", "<ul>", "</ul>", "<li>", "</li>", "<pre>", "</pre>", "<script>", "</script>", "<table>", "<tr>",
    "<td>", "</td>", "</table>", "<h1>", "</h1>", "<br>", "<head>", "</head>", "<body>", "a word ", "\n", "<!-- x -->",
    "&amp;", "<title>", "</title>", "```", "<", ">", "</",
]), max_size=40).map("".join))  # fmt: skip
def test_html_however_broken_is_read(page: str) -> None:
    reading = read_text(page.encode(), "html")
    assert reading.lines is not None
    assert reading.text.count("\n") == len(reading.lines)
    assert all(1 <= line <= page.count("\n") + 1 for line in reading.lines)


# -------------------------------------------------------------------------------------------------------------- PDF


def test_pages_of_a_pdf() -> None:
    reading = read_text(pdf(["Ships sail.", "", "Boats row."], title="The harbour"), "pdf")
    assert [page.strip() for page in reading.text.split("\f")] == ["Ships sail.", "", "Boats row."]
    assert (reading.title, reading.has_pages, reading.structure) == ("The harbour", True, "text")


def test_a_pdf_without_text_or_with_a_password_is_refused() -> None:
    with pytest.raises(Unreadable, match="OCR"):
        read_text(pdf([""]), "pdf")
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf(["secret"])))
    writer.encrypt("password", algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    with pytest.raises(Unreadable, match="password"):
        read_text(locked.getvalue(), "pdf")


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_pdf_is_read_or_refused_and_nothing_else(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(pdf(["Ships sail.", "Boats row."]))
    for _ in range(chance.randint(1, 60)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    damaged = bytes(data[: chance.randint(0, len(data))] if seed % 2 else data)
    with suppress(Unreadable):
        assert read_text(damaged, "pdf").text


def test_what_only_calls_itself_pdf_is_refused() -> None:
    for data in (b"", b"not a pdf", b"%PDF-1.7\n" + zlib.compress(b"x" * 99), Path(__file__).read_bytes()):
        with pytest.raises(Unreadable, match="damaged"):
            read_text(data, "pdf")


def test_without_pypdf_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pypdf", None)
    with pytest.raises(Unreadable, match=r"mnemon\[pdf\]"):
        read_text(pdf(["x"]), "pdf")
