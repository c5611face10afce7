"""Reading files: from bytes to text, by format and encoding, or a reason why that cannot be done."""

import codecs
import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from mnemon.documents.chunking import Structure, title_of
from mnemon.model import DocumentType

_SUFFIXES: dict[DocumentType, str] = {
    DocumentType.MARKDOWN: "md markdown mdown mkd mdx",
    DocumentType.HTML: "html htm xhtml",
    DocumentType.PDF: "pdf",
    DocumentType.TEXT: "txt text rst rest adoc asciidoc org tex log csv tsv 1 3 5 7 8 debian",
    DocumentType.CODE: (
        "py pyi js mjs cjs ts jsx tsx java kt kts scala groovy go rs c h cc cpp cxx hh hpp m mm cs fs vb swift rb php "
        "pl pm r jl lua dart ex exs erl hrl hs ml mli clj cljs el lisp scm sh bash zsh fish ps1 bat sql graphql proto "
        "json jsonl yaml yml toml ini cfg conf xml css scss less vue svelte tf cmake make mk gradle dockerfile"
    ),
}
_TYPES = {f".{suffix}": kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_CODE_NAMES = frozenset({"makefile", "dockerfile", "gemfile", "rakefile", "vagrantfile", "jenkinsfile"})

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SIGNATURES = {b"%PDF-": "a PDF file", b"\x1f\x8b": "compressed by gzip", b"PK\x03\x04": "a ZIP archive"}
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_SNIFFED = 65_536  # bytes by which a file without a known suffix is judged


class Unreadable(Exception):
    """The document cannot be read; the message says why, as its status will."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a document says. `lines` has the line of the file for every line of the text, where they differ."""

    text: str
    structure: Structure
    title: str | None = None
    lines: Sequence[int] | None = None
    has_pages: bool = False
    """Whether a form feed in the text is the end of a page, and lines mean nothing."""


def digest_of(data: bytes) -> str:
    """What content is known by."""
    return hashlib.sha256(data).hexdigest()


def type_of(path: str) -> DocumentType | None:
    """The type that a file's name tells of; None if it tells nothing, or of something that cannot be read."""
    name = PurePath(path)
    if name.name.lower() in _CODE_NAMES:
        return DocumentType.CODE
    return _TYPES.get(name.suffix.lower())


def may_be_read(path: str) -> bool:
    """Whether a file found in a folder is worth a try: its suffix is known, or it has none."""
    return type_of(path) is not None or not PurePath(path).suffix


def is_binary(data: bytes) -> bool:
    """Whether these are no characters of any text."""
    if data.startswith(tuple(mark for mark, _ in _BOMS)):
        return False
    beginning = data[:_SNIFFED]
    return b"\0" in data or len(_CONTROL.findall(beginning)) * 20 > len(beginning)


def read(data: bytes, kind: DocumentType, name: str) -> Reading:
    """The document's text; `Unreadable` if there is none to be had. May take long."""
    if kind is DocumentType.PDF:
        return _read_pdf(data)
    if kind is DocumentType.HTML:
        return _read_html(data)
    structure: Structure = (
        "markdown" if kind is DocumentType.MARKDOWN else "code" if kind is DocumentType.CODE else "text"
    )
    text = decode(data)
    return Reading(text, structure, title_of(text, structure) if structure != "code" else PurePath(name).name)


def decode(data: bytes, declared: str | None = None) -> str:
    """The characters that the bytes stand for: by their mark, as declared, as UTF-8, and otherwise as Latin-1.

    What calls itself Latin-1 is nearly always Windows' version of it, so that is tried first.
    """
    for signature, what in _SIGNATURES.items():
        if data.startswith(signature):
            raise Unreadable(f"it is {what}, not text")
    if is_binary(data):
        raise Unreadable("it is binary, not text")
    marked = next((encoding for mark, encoding in _BOMS if data.startswith(mark)), None)
    for encoding in (marked,) if marked else (declared, "utf-8", "cp1252"):
        try:
            if encoding:
                return data.decode(encoding)
        except (UnicodeError, LookupError):
            if marked:
                raise Unreadable(f"it begins as {encoding} and goes on as something else") from None
    return data.decode("latin-1")


def _read_html(data: bytes) -> Reading:
    from mnemon.documents.markup import Markup  # noqa: PLC0415 - the parser is slow to load

    declared = _CHARSET.search(data[:4096])
    page = Markup()
    page.feed(decode(data, declared[1].decode("ascii") if declared else None))
    page.close()
    text = page.text
    return Reading(text, "markdown", page.title or title_of(text, "markdown"), page.lines)


def _read_pdf(data: bytes) -> Reading:
    try:
        from pypdf import PdfReader  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unreadable("to read PDF files, install pypdf: pip install 'mnemon[pdf]'") from None
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is protected by a password")
        pages = [page.extract_text().replace("\f", "\n").replace("\0", "") for page in reader.pages]
        title = str(reader.metadata.title or "") if reader.metadata else ""
    except Unreadable:
        raise
    except Exception as error:  # a damaged file fails in as many ways as a reader has lines
        raise Unreadable(f"the PDF file is damaged: {type(error).__name__}: {error}"[:500]) from error
    if not any(page.strip() for page in pages):
        raise Unreadable("the PDF file has no text; if its pages are pictures, it has to go through an OCR first")
    text = "\n\f".join(pages).encode("utf-8", "replace").decode()
    return Reading(text, "text", " ".join(title.split()) or None, has_pages=True)
