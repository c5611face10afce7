"""Cutting a text into chunks by its structure: pure, and the same for the same text.

Every place where a text may be cut has a level: a page, a heading, a paragraph, an item of a list, and where these do
not suffice, a line, a sentence, a word. A chunk ends at the strongest of the places that its length allows; among
equal ones their text decides, not their distance from the beginning. So an edit moves the cuts near it and no others,
and what lies further away stays the same chunk. The chunks together are the text, to the character.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

Structure = Literal["markdown", "text", "code"]

_PAGE, _DEEPEST, _PARAGRAPH, _ITEM, _LINE, _SENTENCE, _WORD, _CHARACTER, _GLUED = 0, 6, 10, 20, 30, 31, 32, 33, 40
_FINER = (
    (_LINE, re.compile(r"\n")),
    (_SENTENCE, re.compile(r"[.!?…。]['\")\]]*\s+")),
    (_WORD, re.compile(r"\s+")),
)
_MOST_TOKENS = 5  # that a character may cost

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_FRONT_MATTER = re.compile(r"---\s*\n")
_ATX = re.compile(r" {0,3}(#{1,6})(?![^\s])")
_CLOSING = re.compile(r"(?:^|(?<=\s))#+$")  # the signs that may also end a heading
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*\r?\n?$")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}[ \t]*\r?\n?$")
_LIST_ITEM = re.compile(r"(?:[-*+•]|\d{1,9}[.)])[ \t]+\S")


class Heading(NamedTuple):
    """A heading: where it stands, how deep it is, and what it says."""

    start: int
    depth: int
    title: str


class Piece(NamedTuple):
    """A chunk: its place in the text, and the headings above its beginning, the outermost first."""

    start: int
    end: int
    headings: tuple[str, ...]


class _Block(NamedTuple):
    """What is not cut if it can be helped; `level` is that of the place before it."""

    start: int
    end: int
    level: int
    tokens: int = 0


@dataclass(slots=True)
class _Outline:
    """The places where a text may be cut, and its headings."""

    cuts: dict[int, int] = field(default_factory=dict[int, int])
    headings: list[Heading] = field(default_factory=list[Heading])
    is_glued: bool = False

    def cut(self, start: int, level: int) -> None:
        """A block begins here; the first one after a heading stays with it."""
        self.cuts[start] = _GLUED if self.is_glued else level
        self.is_glued = False

    def head(self, start: int, depth: int, title: str) -> None:
        self.cut(start, depth)
        self.headings.append(Heading(start, depth, title.strip()))
        self.is_glued = True


def chunk(text: str, structure: Structure, limit: int, count: Callable[[str], int]) -> list[Piece]:
    """The text in pieces of at most `limit` tokens, as `count` counts them; together they are the text."""
    outline = _SCANNERS[structure](text)
    blocks = list(_blocks(text, outline, limit, count))
    pieces: list[Piece] = []
    first = 0
    while first < len(blocks):
        end = _end(text, blocks, first, limit)
        while end > first + 1 and count(text[blocks[first].start : blocks[end - 1].end]) > limit:
            end -= 1  # a counter may find more in the whole than in its parts
        pieces.append(Piece(blocks[first].start, blocks[end - 1].end, ()))
        first = end
    return [piece._replace(headings=path) for piece, path in zip(pieces, _paths(pieces, outline), strict=True)]


def title_of(text: str, structure: Structure) -> str | None:
    """The first of the text's outermost headings, if it has any."""
    headings = _SCANNERS[structure](text).headings
    return min(headings, key=lambda each: each.depth).title or None if headings else None


# ------------------------------------------------------------------------------------------------------ choosing cuts


def _end(text: str, blocks: Sequence[_Block], first: int, limit: int) -> int:
    """The block before which the chunk that begins with `first` had best end."""
    best: tuple[tuple[int, int], int] | None = None
    total, latest = 0, first + 1
    for index in range(first + 1, len(blocks) + 1):
        total += blocks[index - 1].tokens
        if total > limit and index > first + 1:
            break
        level = blocks[index].level if index < len(blocks) else _PARAGRAPH
        if level == _PAGE:
            return index
        if level != _GLUED:
            latest = index
        if total >= (limit // 4 if level <= _DEEPEST else limit // 2):
            rank = (level, _lot(text, blocks, index))
            best = min(best, (rank, index)) if best else (rank, index)
    return best[1] if best else latest


def _lot(text: str, blocks: Sequence[_Block], index: int) -> int:
    """What decides among places of one level: the first heading, and otherwise the text after the place."""
    if index == len(blocks) or blocks[index].level <= _DEEPEST:
        return 0
    block = blocks[index]
    return zlib.crc32(text[block.start : block.end].encode("utf-8", "replace"))


def _paths(pieces: Sequence[Piece], outline: _Outline) -> Iterator[tuple[str, ...]]:
    """For each piece the headings above its beginning."""
    waiting = list(reversed(outline.headings))
    path: list[Heading] = []
    for piece in pieces:
        while waiting and waiting[-1].start <= piece.start:
            heading = waiting.pop()
            path = [above for above in path if above.depth < heading.depth] + [heading]
        yield tuple(heading.title for heading in path)


# ------------------------------------------------------------------------------------------------------------- blocks


def _blocks(text: str, outline: _Outline, limit: int, count: Callable[[str], int]) -> Iterator[_Block]:
    """The text in blocks of at most `limit` tokens; those that are longer are divided.

    So is what does not fit into one chunk with the heading above it, unless it is code.
    """
    cuts = {0: _PARAGRAPH, **outline.cuts}
    headings = {heading.start for heading in outline.headings}
    above = 0  # tokens of the headings just before
    for start, end in pairwise([*sorted(cuts), len(text)]):
        if start == end:
            continue
        block = _Block(start, end, cuts[start])
        is_whole = above > limit // 2 or _FENCE.match(text, start)
        parts = list(_divided(text, block, limit if is_whole else limit - above, count, _FINER))
        above = above + parts[0].tokens if start in headings else 0
        yield from parts


def _divided(
    text: str, block: _Block, limit: int, count: Callable[[str], int], finer: Sequence[tuple[int, re.Pattern[str]]]
) -> Iterator[_Block]:
    tokens = count(text[block.start : block.end])
    if tokens <= limit:
        yield block._replace(tokens=tokens)
        return
    if finer:
        level, places = finer[0]
        cuts = {match.end() for match in places.finditer(text, block.start, block.end)}
    else:
        level = _CHARACTER
        cuts = set(range(block.start, block.end, max(1, limit // _MOST_TOKENS)))
    for start, end in pairwise(sorted({block.start, *cuts, block.end})):
        part = _Block(start, end, block.level if start == block.start else level)
        if finer:
            yield from _divided(text, part, limit, count, finer[1:])
        else:
            yield part._replace(tokens=count(text[start:end]))


# ---------------------------------------------------------------------------------------------------------- structure


def _scan_markdown(text: str) -> _Outline:
    outline = _Outline()
    lines = list(_LINES.finditer(text))
    is_apart = True  # whether what comes is not a continuation of the paragraph before
    at = 0
    while at < len(lines):
        line, start = lines[at][0], lines[at].start()
        if end := _fence_end(lines, at):
            outline.cut(start, _PARAGRAPH)
            at, is_apart = end, True
            continue
        if not line.strip():
            is_apart = True
        elif heading := _ATX.match(line):
            outline.head(start, len(heading[1]), _CLOSING.sub("", line[heading.end() :].strip()))
            is_apart = True
        elif is_apart and (depth := _setext_depth(lines, at)):
            outline.head(start, depth, line)
            at += 1
        elif is_apart or _LIST_ITEM.match(line.lstrip()):
            outline.cut(start, _level_of(line))
            is_apart = False
        at += 1
    return outline


def _fence_end(lines: Sequence[re.Match[str]], at: int) -> int:
    """The line after the block of code, or the front matter, that begins here; 0 if none does."""
    line = lines[at][0]
    fence = _FENCE.match(line)
    mark = fence[1] if fence else "---" if at == 0 and _FRONT_MATTER.match(line) else None
    if mark is None:
        return 0
    for number in range(at + 1, len(lines)):
        if lines[number][0].strip().startswith(mark):
            return number + 1
    return len(lines) if fence else 0


def _setext_depth(lines: Sequence[re.Match[str]], at: int) -> int:
    """How deep the heading of one underlined line is; 0 if it is none."""
    below = _SETEXT.match(lines[at + 1][0]) if at + 1 < len(lines) else None
    if below is None or _LIST_ITEM.match(lines[at][0].lstrip()) or lines[at][0].startswith(("    ", "\t", "|", ">")):
        return 0
    return 1 if below[1].startswith("=") else 2


def _level_of(line: str) -> int:
    """The level of the place before a line that is not a heading: what is indented belongs to what is before it."""
    indent = len(line) - len(line.lstrip())
    if _LIST_ITEM.match(line.lstrip()) or indent:
        return _ITEM + min(indent // 2, 5)
    return _PARAGRAPH


def _scan_text(text: str) -> _Outline:
    """Plain text: paragraphs and lists, underlined headings as in reStructuredText, and pages that end with a FF."""
    outline = _Outline()
    marks: list[str] = []
    is_apart = True
    lines = list(_LINES.finditer(text))
    for at, found in enumerate(lines):
        line, start = found[0], found.start()
        if "\f" in line:
            outline.is_glued = False
            outline.cut(start + line.rindex("\f") + 1, _PAGE)
            is_apart = True
        elif not line.strip():
            is_apart = True
        elif is_apart and (mark := _underline(lines, at)):
            marks = marks if mark in marks else [*marks, mark]
            outline.head(start, min(marks.index(mark) + 1, _DEEPEST), line)
        elif is_apart or _LIST_ITEM.match(line.lstrip()):
            outline.cut(start, _level_of(line.lstrip()))
            is_apart = False
    return outline


def _underline(lines: Sequence[re.Match[str]], at: int) -> str | None:
    """The sign that the line is underlined with; None if it is no heading."""
    if at + 1 >= len(lines) or _UNDERLINE.match(lines[at][0]):
        return None
    below = _UNDERLINE.match(lines[at + 1][0])
    title = lines[at][0].strip()
    return below[1] if below and len(title) <= len(below[0].strip()) + 2 else None


def _scan_code(text: str) -> _Outline:
    """Source code: what stands apart and is not indented begins something new."""
    outline = _Outline()
    is_apart = True
    for found in _LINES.finditer(text):
        line = found[0]
        if not line.strip():
            is_apart = True
        elif is_apart:
            outline.cut(found.start(), _ITEM if line[0].isspace() else _PARAGRAPH)
            is_apart = False
    return outline


_SCANNERS: dict[Structure, Callable[[str], _Outline]] = {
    "markdown": _scan_markdown,
    "text": _scan_text,
    "code": _scan_code,
}
