"""Where the verb of a clause is, and what it is. A word that may be a noun is a verb only where no noun can be."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mnemon.consolidation.english.cues import Turn
from mnemon.consolidation.english.lexicon import lexicon
from mnemon.consolidation.english.pieces import Piece

_INFLECTED = ("past", "ing", "same")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A verb from `start` up to `end`, where its objects begin. `denies` says that it stands for its opposite."""

    start: int
    end: int
    verb: str = ""
    is_passive: bool = False
    is_past: bool = False
    denies: bool = False
    turn: Turn = ""


def find_verb(pieces: Sequence[Piece]) -> Predicate:
    """The first verb; at the end of the clause, and empty, if there is none."""
    for at in range(len(pieces)):
        if _is_auxiliary(pieces, at):
            return _after_auxiliary(pieces, at)
        if _is_verb(pieces, at):
            return _started_or_stopped(pieces, _verb_at(pieces, at, at))
    at = next((at for at in range(1, len(pieces)) if _ends_like_verb(pieces, at)), None)
    return Predicate(len(pieces), len(pieces)) if at is None else _verb_at(pieces, at, at)


def _piece(pieces: Sequence[Piece], at: int) -> Piece | None:
    return pieces[at] if 0 <= at < len(pieces) else None


def _verb_at(pieces: Sequence[Piece], start: int, at: int, is_passive: bool = False) -> Predicate:
    known, piece = lexicon(), pieces[at]
    verb, denies = known.resolve(piece.word)
    return Predicate(start, at + 1, verb, is_passive, known.form_of(piece.low)[1] == "past" and not is_passive, denies)


# ---------------------------------------------------------------------------------------------- with an auxiliary


def _is_auxiliary(pieces: Sequence[Piece], at: int) -> bool:
    piece = pieces[at]
    return _helps(pieces, at) and piece.word != "to" and not (at and piece.capital)


def _helps(pieces: Sequence[Piece], at: int) -> bool:
    """Whether an auxiliary is one here: `got` is none before an object."""
    following = _piece(pieces, at + 1)
    has_object = following is not None and (following.is_any("determiners") or following.measure is not None)
    return pieces[at].is_any("auxiliary") and not (has_object and pieces[at].low in ("get", "gets", "got"))


def _after_auxiliary(pieces: Sequence[Piece], start: int) -> Predicate:
    """`has been`, `does not`, `will be` and the like, with the verb that follows, if one does."""
    known = lexicon()
    at = _end_of_auxiliaries(pieces, start + 1)
    last = [piece.low for piece in pieces[start:at] if piece.is_any("auxiliary")][-1]
    being, having = known.has("be", last), pieces[start].low in ("has", "have", "had")
    was = pieces[start].low in ("was", "were", "did", "had")
    piece = _piece(pieces, at)
    verb, form = known.form_of(piece.low) if piece and not piece.measure else ("", "")
    if piece and not verb and being and _is_participle(piece):
        verb, form = piece.low, "past"
    governed = known.has("before_base", last) or (form in _INFLECTED and (being or having))
    if piece and verb and (governed or piece.phrase):
        found = _verb_at(pieces, start, at, is_passive=being and form != "ing")
        is_over = having and not being and not (found.denies and pieces[start].low != "had")
        found = replace(found, is_past=(found.is_past and not having) or was or is_over)
        return _started_or_stopped(pieces, found)
    return Predicate(start, at, _bare(last, having), is_past=was, turn="began" if last == "got" else "")


def _is_participle(piece: Piece) -> bool:
    """Whether a word that is not known ends like one: `are hashed`."""
    known, word = lexicon(), piece.low
    plain = not (piece.measure or piece.capital or piece.phrase) and word.isalpha() and len(word) > 5
    return plain and word.endswith("ed") and word not in known.concept and word not in known.denied


def _bare(last: str, having: bool) -> str:
    """What an auxiliary means that stands alone."""
    if lexicon().has("be", last) or last in ("to", "get", "got", "gets"):
        return "be"
    return "have" if having or last in ("have", "having") else "do"


def _end_of_auxiliaries(pieces: Sequence[Piece], at: int) -> int:
    while at < len(pieces) and not pieces[at].phrase and not pieces[at].measure and _goes_between(pieces, at):
        at += 1
    return at


def _goes_between(pieces: Sequence[Piece], at: int) -> bool:
    piece = pieces[at]
    if _helps(pieces, at) or piece.is_any("adverbs"):
        return True
    return piece.low.endswith("ly") and not piece.is_any("no_adverbs")


def _started_or_stopped(pieces: Sequence[Piece], found: Predicate) -> Predicate:
    """Where a verb only starts or stops another, that one counts."""
    known = lexicon()
    to = int(found.end < len(pieces) and pieces[found.end].low == "to")
    following = _piece(pieces, found.end + to)
    verb, form = known.form_of(following.low) if following and not following.measure else ("", "")
    if known.has("stopping", found.verb) and form == "ing":
        other = _verb_at(pieces, found.start, found.end + to)
        return replace(other, denies=not other.denies, turn="ended")
    if (
        known.has("wanting", found.verb)
        and to
        and following
        and following.low == "be"
        and _is_done(pieces, found.end + 2)
    ):
        return _verb_at(pieces, found.start, found.end + 2, is_passive=True)
    if known.has("starting", found.verb) and verb and (to or form == "ing"):
        return replace(_verb_at(pieces, found.start, found.end + to), turn="began")
    return found


def _is_done(pieces: Sequence[Piece], at: int) -> bool:
    """Whether a participle stands there, as in `wants to be called`."""
    piece = _piece(pieces, at)
    return piece is not None and bool(piece.phrase or lexicon().form_of(piece.low)[1] in ("past", "same"))


# ------------------------------------------------------------------------------------------------- on its own


def _is_verb(pieces: Sequence[Piece], at: int) -> bool:
    piece, before = pieces[at], _piece(pieces, at - 1)
    if piece.measure or piece.owns:
        return False
    verb, form = lexicon().form_of(piece.low)
    if before is None:
        return form in ("base", "same", "past") and len(pieces) > 1 and _is_order(pieces)
    if _needs_noun(before):
        return False
    if not verb:
        return _follows_name(pieces, at)
    if form == "ing" or (piece.capital and not before.measure) or _before_verb(pieces, at):
        return False
    if form == "past" and _is_adjective(pieces, at) and any(each.is_any("be") for each in pieces[at + 2 : at + 4]):
        return False
    return _agrees(pieces, at, verb, form)


def _needs_noun(before: Piece) -> bool:
    return before.is_any("determiners") or before.owns or before.opens_part or before.low == "and"


def _before_verb(pieces: Sequence[Piece], at: int) -> bool:
    """What stands before a verb is none itself: `the rate limits are …`."""
    following = _piece(pieces, at + 1)
    if following is None:
        return False
    if following.is_any("auxiliary") and following.word != "to":
        return True
    return _looks_finite(following) and not _is_adjective(pieces, at + 1)


def _agrees(pieces: Sequence[Piece], at: int, verb: str, form: str) -> bool:
    """Whether the form goes with what is before it."""
    before, following = pieces[at - 1], _piece(pieces, at + 1)
    if form == "same" and (before.capital or before.is_any("user")):
        return True
    plural = before.low.endswith("s") and not before.low.endswith("ss")
    if form in ("base", "same"):
        return plural or before.is_any("pronouns") or before.is_any("plurals")
    if form == "third" and lexicon().has("ambiguous", verb):
        return not plural or before.capital or (following is not None and following.is_any("determiners"))
    return True


def _is_order(pieces: Sequence[Piece]) -> bool:
    """Whether a text that begins like a verb tells to do something: nothing else in it is a verb."""
    known = lexicon()
    if pieces[0].is_any("ambiguous") and any(known.form_of(piece.low)[1] == "third" for piece in pieces[1:3]):
        return False
    end = next((at for at, piece in enumerate(pieces) if piece.is_any("subordinating")), len(pieces))
    return not any(
        (piece.is_any("auxiliary") and piece.word != "to") or (at and _looks_finite(piece))
        for at, piece in enumerate(pieces[:end])
    )


def _looks_finite(piece: Piece) -> bool:
    verb, form = ("", "") if piece.measure else lexicon().form_of(piece.low)
    return form in ("third", "past") and not lexicon().has("ambiguous", verb) and not piece.capital


def _is_adjective(pieces: Sequence[Piece], at: int) -> bool:
    """A verb's past form before a noun, as in `retries failed jobs`."""
    following = _piece(pieces, at + 1)
    if following is None or following.measure or following.is_any("determiners") or following.opens_part:
        return False
    return lexicon().form_of(pieces[at].low)[1] == "past"


# ----------------------------------------------------------------------------------------- verbs that are not known


def _ends_so(piece: Piece) -> bool:
    word = piece.low
    plain = not (piece.measure or piece.capital or piece.owns) and word.isalpha()
    return plain and word.endswith(("s", "ed")) and not word.endswith("ss")


def _follows_name(pieces: Sequence[Piece], at: int) -> bool:
    """After nothing but a name, a word in lower case that ends like a verb is taken for one."""
    piece = pieces[at]
    if piece.is_any("prepositions") or piece.is_any("light") or not _ends_so(piece) or _before_verb(pieces, at):
        return False
    return all(each.capital or each.is_any("user") or each.low == "the" for each in pieces[:at])


def _ends_like_verb(pieces: Sequence[Piece], at: int) -> bool:
    """Where nothing is known to be a verb: a word that ends like one, between a noun and what may follow a verb."""
    before, following = pieces[at - 1], _piece(pieces, at + 1)
    if not _ends_so(pieces[at]) or before.measure or _needs_noun(before):
        return False
    if following is None:
        return not before.low.endswith("s")
    return (
        bool(following.measure)
        or following.opens_part
        or following.is_any("determiners")
        or following.is_any("directions")
    )
