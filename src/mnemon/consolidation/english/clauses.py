"""A text read into clauses that can be compared: who or what, which property, which value, when, and whether denied.

The reading is shallow. What is not understood stays in the clause as a word, so that two texts that differ in it are
not taken for the same.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from mnemon.consolidation.english.cues import Cues, Mood, Turn, take_cues
from mnemon.consolidation.english.framing import told_by, unframed
from mnemon.consolidation.english.lexicon import lexicon
from mnemon.consolidation.english.measures import Measure
from mnemon.consolidation.english.pieces import Piece, pieces_of, sentences_of, split
from mnemon.consolidation.english.verbs import Predicate, find_verb

Role = Literal["subject", "verb", "value", "adjunct"]

_POSSESSIVE = frozenset(("my", "our", "your", "their"))
_MORE = frozenset(("better", "more"))
_MOST_LIKED = frozenset(("best", "most"))
_LONGEST = 4_000  # characters
_MOST = 30  # clauses


@dataclass(frozen=True, slots=True)
class Term:
    """A word or measure of a clause. `word` is what it is compared by; `opening` is the preposition before it."""

    word: str
    role: Role = "value"
    opening: str = ""
    is_name: bool = False
    measure: Measure | None = None
    denies: bool = False
    label: str = ""
    """The common noun straight before a number."""
    is_title: bool = False
    """Whether it is a common noun straight before a name: `the dog Rex`."""
    text: str = ""
    """As it was written."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that a text says. `turn` tells of a change: it began, it ended, or it was so before.

    `head` is the noun that the subject is built on: `budget` in `the budget of the trip`.
    """

    terms: tuple[Term, ...]
    verb: str = ""
    is_passive: bool = False
    is_denied: bool = False
    is_negated: bool = False
    is_past: bool = False
    mood: Mood = "asserted"
    turn: Turn = ""
    head: str = ""
    whose: str = ""
    """`their` in `their flight`."""

    def words(self, *roles: Role) -> frozenset[str]:
        return frozenset(term.word for term in self.terms if not roles or term.role in roles)


@lru_cache(20_000)
def read(text: str) -> tuple[Clause, ...]:
    """The clauses of a text; none of one that is not English, or so long that it is a document and no statement."""
    if len(text) > _LONGEST or is_foreign(text):
        return ()
    clauses: list[Clause] = []
    for sentence in sentences_of(text):
        clauses += _clauses(sentence, clauses[-1] if clauses else None)
    return tuple(clauses) if len(clauses) <= _MOST else ()


def is_foreign(text: str) -> bool:
    """Whether a text seems to be in another language than English."""
    letters = [char for char in text if char.isalpha()]
    other_script = sum(not char.isascii() and "LATIN" not in unicodedata.name(char, "") for char in letters)
    if other_script > len(letters) / 4:
        return True
    words, known = re.findall(r"[^\W\d_]+", text), lexicon()
    low = [word.lower() for word in words]
    english = sum(
        known.has("light", word) or known.has("prepositions", word) or word in known.verb_forms for word in low
    )
    other = sum(known.has("foreign", word.lower()) for word in words if not word.isupper())
    other += sum(not word.isascii() and word.islower() for word in words)
    return other > 0 and other >= english


_NAMED_VALUE = re.compile(r"^([^:=?.;,\n]{1,60}?)(?::\s+|\s*=\s*|\s*:=\s*)(?=\S)")


def _clauses(sentence: str, before: Clause | None) -> Iterator[Clause]:
    asked = sentence.rstrip().endswith("?")
    for part in _told(pieces_of(_NAMED_VALUE.sub(_as_copula, unframed(sentence.strip()), count=1))):
        told = told_by(part)
        clause = _clause(part[told:], _teller(part[:told]) if told else before)
        if clause.terms:
            before = replace(clause, mood="asked") if asked else clause
            yield before


def _told(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """The parts of a sentence that have a verb of their own, after a colon too."""
    colon = next((at for at, piece in enumerate(pieces) if piece.low == ":"), 0)
    if colon and find_verb(pieces[:colon]).verb and find_verb(pieces[colon + 1 :]).verb:
        yield from split(pieces[:colon])
        yield from split(pieces[colon + 1 :])
    else:
        yield from split(pieces)


def _teller(pieces: Sequence[Piece]) -> Clause:
    """Who told it: the one whom `he` or `she` stands for in what is told."""
    return Clause(tuple(_subject_terms(pieces[: find_verb(pieces).start])))


def _as_copula(match: re.Match[str]) -> str:
    """`name: value` and `name = value` are read as `name is value`, if no verb is in the name."""
    words = match[1].lower().split()
    if len(words) > 7 or any(lexicon().has("auxiliary", word) for word in words):
        return match[0]
    return f"{match[1]} is "


def _clause(pieces: Sequence[Piece], before: Clause | None) -> Clause:
    cues, kept = take_cues(pieces)
    lead, kept = _leading(kept)
    found = find_verb(kept)
    cues.is_denied ^= found.denies
    cues.is_past |= found.is_past
    cues.turn = found.turn or cues.turn
    subject, tail = kept[: found.start], kept[found.end :]
    if cues.is_never and (found.is_past or _is_perfect(kept, found)):
        cues.turn = "never"
    terms = [*_subject_terms(subject), *_parts(tail, cues), *_parts(lead, cues, leading=True)]
    head = _head(subject)
    if not found.verb:
        terms = [replace(term, role="value") if _tells_hour(term) else term for term in terms]
    terms, found, head = _arranged(terms, found, head, subject, tail, cues.is_denied)
    if not before and not found.start and found.is_past:
        terms = [Term("user", "subject"), *terms]
    if borrowed := _borrowed(before, kept, found):
        owned = [term for term in terms if term.role == "subject"] if kept[0].is_any("possessive") else []
        terms = [*borrowed, *owned, *(term for term in terms if term.role != "subject")]
    if found.verb:
        terms.append(Term(found.verb, "verb", text=found.verb))
    terms = _folded(terms, found.verb, cues)
    negated = cues.is_negated or found.turn == "ended"
    return Clause(
        tuple(terms), found.verb, found.is_passive, cues.is_denied, negated, cues.is_past, cues.mood, cues.turn, head,
        _whose(subject),
    )  # fmt: skip


def _whose(subject: Sequence[Piece]) -> str:
    """Whose the subject is; what is ours is mine."""
    word = subject[0].low if subject else ""
    return {"my": "our"}.get(word, word) if word in _POSSESSIVE else ""


def _tells_hour(term: Term) -> bool:
    """`Meeting with Bob at 3 pm`: the hour is what is said of it."""
    return bool(term.measure) and term.measure.kind == "clock" and term.opening in ("at", "from")


def _is_perfect(pieces: Sequence[Piece], found: Predicate) -> bool:
    return found.start < len(pieces) and pieces[found.start].low in ("has", "have", "had")


def _borrowed(before: Clause | None, pieces: Sequence[Piece], found: Predicate) -> tuple[Term, ...]:
    """The subject of the clause before, where this one has none, or only `she` or `it`, or begins with `her`."""
    if not before or not found.verb or not pieces:
        return ()
    stands_for = pieces[0].is_any("possessive") or (found.start == 1 and pieces[0].is_any("third_person"))
    subject = tuple(term for term in before.terms if term.role == "subject")
    if stands_for and pieces[0].low not in ("it", "its") and not any(term.word != "user" for term in subject):
        return tuple(replace(term, role="subject", opening="") for term in before.terms if term.is_name) or subject
    return subject if stands_for or found.start == 0 else ()


def _leading(pieces: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """A part before the subject, as in `In 2023, …` or `At night the …`, and the rest."""
    pieces = [piece for piece in pieces if piece.measure or piece.low not in "()?;:="]
    for at in range(1, len(pieces)):
        is_last = at + 1 == len(pieces) or pieces[at + 1].low in ("by", "for", "in", "at", "during", "since", ",")
        if is_last and pieces[at].is_any("particles") and (at + 1 == len(pieces) or pieces[at - 1].is_any("be")):
            pieces[at] = replace(pieces[at], phrase=pieces[at].low)
    if not pieces or not pieces[0].opens_part:
        return [], pieces
    comma = next((at for at, piece in enumerate(pieces) if at and piece.low == ","), 0)
    if comma:
        return pieces[:comma], pieces[comma + 1 :]
    again = (at for at, piece in enumerate(pieces) if at > 1 and (_restarts(piece)))
    end = next(again, 0)
    return pieces[:end], pieces[end:]


def _restarts(piece: Piece) -> bool:
    return piece.is_any("determiners") or piece.is_any("pronouns") or piece.capital


# -------------------------------------------------------------------------------------------------- terms and parts


def _subject_terms(pieces: Sequence[Piece]) -> Iterator[Term]:
    for opening, run in _runs(pieces, keep=()):
        yield from _terms(run, "subject", "" if opening == "of" else opening)


def _runs(pieces: Sequence[Piece], keep: tuple[str, ...]) -> Iterator[tuple[str, list[Piece]]]:
    """The pieces between prepositions, each with the one before it; those to keep begin no part of their own."""
    opening, run = "", list[Piece]()
    for piece in pieces:
        if piece.opens_part and piece.low not in keep:
            yield opening, run
            opening, run = piece.word, []
        else:
            run.append(piece)
    yield opening, run


def _parts(pieces: Sequence[Piece], cues: Cues, leading: bool = False) -> Iterator[Term]:
    """The terms after the verb: the first part is the value, the others are adjuncts."""
    role: Role = "adjunct" if leading else "value"
    for opening, run in _runs(pieces, keep=("of", "like")):
        if _tells_since(opening, run):
            cues.began()
            continue
        if _tells_until(opening, run, cues):
            cues.turn = "was"
            continue
        terms = list(_terms(run, role, opening))
        yield from terms
        role = "adjunct" if terms else role


def _tells_since(opening: str, run: Sequence[Piece]) -> bool:
    if opening == "as" and run and run[0].low == "of":
        return True
    is_moment = any(piece.measure or piece.is_any("past_moment") for piece in run)
    return lexicon().has("since", opening) and (opening != "since" or is_moment)


def _tells_until(opening: str, run: Sequence[Piece], cues: Cues) -> bool:
    """`Was head of it until 2024`: it was so before."""
    is_moment = any(piece.measure or piece.is_any("past_moment") for piece in run)
    return cues.is_past and not cues.is_denied and opening in ("until", "till") and is_moment


def _head(pieces: Sequence[Piece]) -> str:
    """The last word before a preposition."""
    first = next((run for _, run in _runs(pieces, keep=()) if run), list[Piece]())
    words = [term.word for term in _terms(first, "subject") if not term.measure]
    return words[-1] if words else ""


def _terms(pieces: Sequence[Piece], role: Role, opening: str = "") -> Iterator[Term]:
    known, label = lexicon(), ""
    for at, piece in enumerate(pieces):
        if piece.is_any("past_moment"):
            yield Term(piece.word, "adjunct", "when", text=piece.raw)
        elif piece.measure:
            yield Term(piece.measure.key, role, opening, measure=piece.measure, label=label, text=piece.raw)
            label = ""
        elif piece.is_any("user"):
            yield Term("user", role, opening, text=piece.raw)
        else:
            root, denies = known.resolve(piece.word)
            is_light = piece.is_any("light") or piece.low in ",()" or piece.opens_part
            label = "" if piece.capital or is_light else root
            if not is_light:
                is_name = _is_name(piece, at == 0 and role == "subject")
                text = piece.phrase.replace("_", " ") or piece.raw
                is_title = not is_name and not piece.owns and at + 1 < len(pieces) and _is_name(pieces[at + 1], False)
                yield Term(root, role, opening, is_name, denies=denies, text=text, is_title=is_title)


def _is_name(piece: Piece, is_first: bool) -> bool:
    """A word with a capital; at the beginning only if no common word is known that is written so."""
    if not piece.capital or piece.phrase:
        return False
    known, low = lexicon(), piece.low
    common = low.endswith(("s", "ing")) or low in known.concept or low in known.verb_forms
    root = known.concept_of(low)
    groups = ("attribute", "numbered", "several", "weak", "relations")
    return not is_first or not (common or any(known.has(name, root) for name in groups))


# ------------------------------------------------------------------------------------------------ what is the value


def _arranged(
    terms: list[Term], found: Predicate, head: str, subject: Sequence[Piece], tail: Sequence[Piece], is_denied: bool
) -> tuple[list[Term], Predicate, str]:
    """The value of a property is the value wherever it stands: `Blue is her favourite`, `Maria leads the team`."""
    if found.verb == "use" and found.is_passive and _is_definite(tail[1:]) and tail[0].low == "as":
        turned = [_turned(term, of="as", to="as") for term in terms]
        return turned, replace(found, verb="be", is_passive=False), _head(tail[1:])
    if len(subject) == 1 and subject[0].low == "we":
        subject = ()
    definite = _is_definite(tail) or any(piece.owns for piece in tail)
    bare = bool(subject) and not _is_definite(subject) and not any(piece.owns for piece in subject)
    has_object = any(term.role == "value" and not term.opening for term in terms)
    if tuned := _tuned(terms, found, head):
        return tuned
    if not subject and lexicon().has("locating", found.verb) and tail and not tail[0].opens_part:
        return [_kept(term) for term in terms], replace(found, is_passive=True), _head(tail)
    if is_denied or found.is_passive or not (definite and bare and has_object):
        return terms, found, head
    if found.verb == "be":
        return [_turned(term, of="", to="") for term in terms], found, _head(tail)
    if lexicon().has("sole_subject", found.verb):
        return [_turned(term, of="", to="by") for term in terms], replace(found, is_passive=True), head
    return terms, found, head


def _tuned(terms: list[Term], found: Predicate, head: str) -> tuple[list[Term], Predicate, str] | None:
    """What is preferred, compared, or had as a property, in the words that stand for all ways to say so."""
    if found.verb == "prefer":
        beside = {term for term in terms if term.role == "adjunct" and term.opening == "to"}
        return [replace(term, opening="over") if term in beside else term for term in terms], found, head
    if found.verb == "like" and any(term.word in _MOST_LIKED for term in terms if term.role == "value"):
        return [term for term in terms if term.word not in _MOST_LIKED], replace(found, verb="prefer"), head
    if found.verb == "have" and (named := _of_property(terms)):
        return named, replace(found, verb="be"), _property_of(terms)
    if any(term.opening == "than" for term in terms):
        liked = found.verb == "like" and any(term.word in _MORE for term in terms)
        return _compared(terms, liked), replace(found, verb="prefer") if liked else found, head
    return None


def _property_of(terms: Sequence[Term]) -> str:
    """The property that something is said to have, with its measure after it: `a budget of $5`."""
    values = [term for term in terms if term.role == "value"]
    if len(values) < 2 or values[0].opening or not values[-1].measure or any(term.measure for term in values[:-1]):
        return ""
    return values[-2].word if lexicon().has("attribute", values[-2].word) else ""


def _of_property(terms: Sequence[Term]) -> list[Term]:
    """`The trip has a budget of $5` as `the budget of the trip is $5`."""
    if not _property_of(terms):
        return []
    return [replace(term, role="subject") if term.role == "value" and not term.measure else term for term in terms]


def _compared(terms: Sequence[Term], is_liking: bool) -> list[Term]:
    """`A is younger than b` as `b is older than a`; `likes a more than b` as `prefers a over b`."""
    if is_liking:
        kept = [term for term in terms if term.word not in _MORE]
        return [replace(term, opening="over") if term.opening == "than" else term for term in kept]
    lesser = lexicon().lesser
    heads = {term.word: lesser[term.word] for term in terms if term.word in lesser and term.role == "value"}
    if len(heads) != 1:
        return list(terms)
    (word, head), *_ = heads.items()
    terms = [replace(term, word=head.strip("/")) if term.word == word else term for term in terms]
    if head[0] != "/":
        return terms
    return [
        replace(term, role="adjunct", opening="than") if term.role == "subject"
        else replace(term, role="subject", opening="") if term.opening == "than" else term
        for term in terms
    ]  # fmt: skip


def _kept(term: Term) -> Term:
    """`We keep x in y` as `x is kept in y`."""
    if term.role == "value" and not term.opening:
        return replace(term, role="subject")
    return replace(term, role="value") if term.role == "adjunct" and term.opening in ("in", "on", "at") else term


def _is_definite(pieces: Sequence[Piece]) -> bool:
    return bool(pieces) and pieces[0].is_any("definite")


def _turned(term: Term, of: str, to: str) -> Term:
    """What was the subject is the value, after `to`; what stood after `of` is the subject."""
    if term.role == "subject":
        return replace(term, role="value", opening=to)
    if term.role == "value" and term.opening == of:
        return replace(term, role="subject", opening="")
    return term


def _folded(terms: list[Term], verb: str, cues: Cues) -> list[Term]:
    """A word in the predicate that denies another, denies the clause; elsewhere it is another word."""
    folded: list[Term] = []
    for term in terms:
        in_predicate = (term.role == "value" and not term.opening) or term.opening == "to"
        if term.denies and in_predicate and not lexicon().has("several_objects", verb):
            cues.is_denied = not cues.is_denied
            folded.append(replace(term, denies=False))
        else:
            folded.append(replace(term, word=f"not {term.word}") if term.denies else term)
    return folded
