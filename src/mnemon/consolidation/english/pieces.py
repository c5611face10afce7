"""A sentence in pieces: words, phrases of the lexicon, and measures."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mnemon.consolidation.english.lexicon import american, lexicon
from mnemon.consolidation.english.measures import Measure, measures_in


@dataclass(frozen=True, slots=True)
class Piece:
    """A word, a phrase that counts as one, or a measure. `owns` says that it was in the genitive."""

    raw: str
    low: str
    measure: Measure | None = None
    phrase: str = ""
    owns: bool = False

    @property
    def word(self) -> str:
        return self.phrase or self.low

    @property
    def capital(self) -> bool:
        return self.raw[:1].isupper()

    def is_any(self, name: str) -> bool:
        """Whether it is in a set of the lexicon."""
        return not self.measure and lexicon().has(name, self.word)

    @property
    def opens_part(self) -> bool:
        """Whether it is a preposition."""
        return not self.owns and self.phrase != self.low and self.is_any("prepositions")


def made_up(word: str) -> Piece:
    """A piece that is read where another stood."""
    return Piece(word, word)


_WORD = re.compile(r"[^\W_](?:[\w'.&+#/-]*[\w+#])?|[,;:=()?]|[^\W_]|_\w+")
_ABBREVIATIONS = (
    r"\b[A-Z]",
    r"\bMr",
    r"\bMs",
    r"\bDr",
    r"\bMrs",
    r"\bSt",
    r"\bvs",
    r"\bProf",
    r"e\.g",
    r"i\.e",
    r"\bTemp",
    r"[Aa]pprox",
    r"\bTel",
    r"\bNo",
    r"\bLtd",
    r"\bInc",
    r"\bJr",
    r"\bAve",
    r"\bRd",
    r"\bDept",
    r"\bQty",
)
_ABBREVIATED = "".join(rf"(?<!{short}\.)" for short in _ABBREVIATIONS)
_SENTENCE_END = re.compile(rf"(?<=[.!?;]){_ABBREVIATED}\s+|\n+")
_CONTRACTIONS = tuple(
    (re.compile(pattern, re.IGNORECASE), by)
    for pattern, by in (
        (r"\bcan't\b|\bcannot\b", "can not"), (r"\bwon't\b", "will not"), (r"\bshan't\b", "shall not"),
        (r"n't\b", " not"),
        (r"\b(it|he|she|that|there|what|who|where|here)'s\b", r"\1 is"), (r"'re\b", " are"), (r"'ve\b", " have"),
        (r"'ll\b", " will"), (r"\bI'm\b", "I am"), (r"\b(I|you|he|she|we|they)'d\b", r"\1 would"),
        (r"\b(do|does|did|is|are|was|were|have|has|ca|wo|should|could|would)nt\b", r"\1 not"), (r"\bim\b", "I am"),
        (r"\bw/o\b", "without"), (r"\bw/(?=\s)", "with"), (r"(?<=\s)@(?=\s)", "at"), (r"(?<=\s)&(?=\s)", "and"),
        (r"[\u2013\u2014]", "-"), (r"[`\"\u201c\u201d]", ""),
    )
)  # fmt: skip


_OPEN = re.compile(r"\b(?:hours|open|opens|opening|shifts?|works?|available|closed)\b", re.IGNORECASE)
_HOURS = re.compile(
    r"\b(?P<start>\d{1,2})(?P<half>\s?[ap]m)?(?P<to>\s*-\s*|\s+(?:to|until|till|and)\s+)(?P<end>\d{1,2})(?P<later>\s?[ap]m)?"
    r"(?=[.,;]?\s*$|,|\s+(?:on|from|every|each|in|and|daily|Mon|Tue|Wed|Thu|Fri|Sat|Sun))",
    re.IGNORECASE,
)


def _in_full(match: re.Match[str]) -> str:
    """The hours from which to which something is open: `9 to 5` is `9:00 to 17:00`."""
    start, end = int(match["start"]), int(match["end"])
    if max(start, end) > 24 or start == end:
        return match[0]
    later = (match["later"] or "").strip().lower()
    if later == "pm" or (not later and end < start):
        end = end % 12 + 12
    half = (match["half"] or "").strip().lower()
    if half == "pm" or (not half and later == "pm" and start < end - 12):
        start = start % 12 + 12
    return f"{start}:00{match['to']}{end}:00"


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, with nothing contracted."""
    plain = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    for pattern, by in _CONTRACTIONS:
        plain = pattern.sub(by, plain)
    if _OPEN.search(plain):
        plain = _HOURS.sub(_in_full, plain)
    return _SENTENCE_END.split(plain.strip())


def pieces_of(sentence: str) -> list[Piece]:
    found: list[tuple[int, Piece]] = []
    rest = sentence
    for place in measures_in(sentence):
        found.append((place.start, Piece(sentence[place.start : place.end], place.measure.key, place.measure)))
        rest = rest[: place.start] + " " * (place.end - place.start) + rest[place.end :]
    found += ((match.start(), _word(match, rest)) for match in _WORD.finditer(rest))
    pieces = [piece for _, piece in sorted(found, key=lambda each: each[0])]
    return _joined(
        [replace(piece, low="letter-a") if at and piece.raw == "A" else piece for at, piece in enumerate(pieces)]
    )


def _word(match: re.Match[str], text: str) -> Piece:
    raw = match[0]
    owns = raw.endswith(("'s", "'")) or text[match.end() : match.end() + 1] == "'"
    raw = raw.removesuffix("'s").rstrip("'").removesuffix("()")
    return Piece(raw, american(raw.lower()), owns=owns)


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Words that are one phrase of the lexicon become one piece."""
    joined: list[Piece] = []
    at = 0
    while at < len(pieces):
        phrase, length = _phrase_at(pieces, at)
        joined.append(replace(pieces[at], phrase=phrase))
        at += length
    return joined


def _phrase_at(pieces: list[Piece], at: int) -> tuple[str, int]:
    """The longest phrase that begins here, and how many words it has."""
    known, piece = lexicon(), pieces[at]
    if piece.measure or piece.owns:
        return "", 1
    for words, name in known.phrases.get(known.lemma(piece.low), ()):
        run = pieces[at : at + len(words)]
        fits = [known.lemma(each.low) for each in run if not each.measure] == list(words)
        if fits and not (words[-1] in ("in", "at", "on") and _is_moment(pieces[at + len(words) :])):
            return name, len(words)
    return "", 1


def _is_moment(rest: list[Piece]) -> bool:
    """`built in 1932` is not `built in` a language."""
    measure = rest[0].measure if rest else None
    return measure is not None and measure.kind in ("date", "clock", "weekday")


def split(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """The parts of a sentence that have a verb of their own: after `but`, and after `and` before a verb."""
    start = 0
    for at in range(1, len(pieces) - 1):
        if at > start and (
            pieces[at].low in (";", "but") or (pieces[at].low == "and" and _opens_clause(pieces, at + 1))
        ):
            yield _completed(pieces[start:at], is_first=not start)
            start = at + 1
    yield _completed(pieces[start:], is_first=not start)


def _completed(part: list[Piece], is_first: bool) -> list[Piece]:
    """What follows `and` goes on with the same subject."""
    if is_first or not part:
        return part
    if _denies(part):
        return [made_up("is"), *part]
    opens = lexicon().form_of(part[0].low)[1] in ("third", "past") and not part[0].is_any("auxiliary")
    return [made_up("it"), *part] if opens else part


def _denies(pieces: list[Piece]) -> bool:
    return [piece.low for piece in pieces[:1]] == ["not"] or [piece.low for piece in pieces[:2]] == ["no", "longer"]


def _opens_clause(pieces: list[Piece], at: int) -> bool:
    """Whether a verb or a denial comes next; a word that may be a noun is a verb only after an adverb."""
    known = lexicon()
    following = next((piece.low for piece in pieces[at:] if not piece.is_any("adverbs")), "")
    verb, form = known.form_of(following)
    if _denies(pieces[at:]) or known.has("be", following):
        return True
    if form not in ("third", "past"):
        return False
    after = pieces[at + 1] if at + 1 < len(pieces) else None
    return not known.has("ambiguous", verb) or pieces[at].is_any("adverbs") or (after is not None and after.opens_part)
