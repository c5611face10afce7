"""The small words that turn what a clause says: denials, doubts, and what tells of a change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mnemon.consolidation.english.lexicon import lexicon
from mnemon.consolidation.english.pieces import Piece, made_up

Mood = Literal["asserted", "supposed", "asked"]
Turn = Literal["", "began", "ended", "was", "never"]

_NOBODY = {"nobody": "everyone", "no_one": "everyone", "nothing": "everything"}


@dataclass(slots=True)
class Cues:
    """What was taken out of a clause. `turn` tells of a change: it began, it ended, or it was so before."""

    is_denied: bool = False
    is_negated: bool = False
    """Denied by a word like `not`, rather than by a verb like `close`."""
    is_never: bool = False
    is_past: bool = False
    mood: Mood = "asserted"
    turn: Turn = ""

    def began(self) -> None:
        self.turn = self.turn or "began"

    def negate(self) -> None:
        self.is_denied, self.is_negated = not self.is_denied, True


_Taken = tuple[int, list[Piece]] | None
"""How many pieces a cue took, and what is read in their place."""


def take_cues(pieces: Sequence[Piece]) -> tuple[Cues, list[Piece]]:
    """The cues of a clause, and what is left of it."""
    cues = Cues()
    kept: list[Piece] = []
    at = 0
    while at < len(pieces):
        taken = next((taken for cue in _CUES if (taken := cue(cues, pieces, at)) is not None), (1, [pieces[at]]))
        kept += taken[1]
        at += taken[0]
    return cues, kept


def _next(pieces: Sequence[Piece], at: int) -> str:
    return pieces[at + 1].low if at + 1 < len(pieces) else ""


def _no_longer(cues: Cues, pieces: Sequence[Piece], at: int) -> _Taken:
    here = (pieces[at].low, _next(pieces, at))
    if here == ("no", "longer"):
        cues.negate()
    elif here[0] != "anymore" and here != ("any", "more"):
        return None
    cues.turn = "ended"
    return (1 if here[0] == "anymore" else 2), []


def _denial(cues: Cues, pieces: Sequence[Piece], at: int) -> _Taken:
    piece = pieces[at]
    if not piece.is_any("negation") or (piece.low == "no" and piece.capital and at):
        return None
    cues.negate()
    cues.is_never |= piece.low == "never"
    taken = 2 if (piece.low, _next(pieces, at)) == ("no", "known") else 1
    return taken, [made_up("has")] if piece.low in ("lack", "lacks") else []


def _nobody(cues: Cues, pieces: Sequence[Piece], at: int) -> _Taken:
    if pieces[at].measure or pieces[at].word not in _NOBODY:
        return None
    cues.negate()
    return 1, [made_up(_NOBODY[pieces[at].word])]


def _used_to(cues: Cues, pieces: Sequence[Piece], at: int) -> _Taken:
    if (pieces[at].low, _next(pieces, at)) != ("used", "to") or not at or pieces[at - 1].is_any("be"):
        return None
    cues.is_past, cues.turn = True, "was"
    return 2, [made_up("did")]


def _formerly(cues: Cues, pieces: Sequence[Piece], at: int) -> _Taken:
    if not pieces[at].is_any("formerly"):
        return None
    cues.is_past, cues.turn = True, "was"
    return 1, []


def _filler(cues: Cues, pieces: Sequence[Piece], at: int) -> _Taken:
    if pieces[at].is_any("fillers") or (pieces[at].low, _next(pieces, at)) == ("need", "not"):
        return 1, []
    return (1, [made_up("must")]) if pieces[at].is_any("duties") else None


def _ago(cues: Cues, pieces: Sequence[Piece], at: int) -> _Taken:
    """`three weeks ago`."""
    if not pieces[at].measure or _next(pieces, at) != "ago":
        return None
    return 2, [replace(pieces[at + 1], phrase="long_ago")]


def _turn(cues: Cues, pieces: Sequence[Piece], at: int) -> _Taken:
    if not pieces[at].is_any("turns") and not (pieces[at].low == "new" and _is_before_property(pieces, at)):
        return None
    cues.began()
    return 1, []


def _is_before_property(pieces: Sequence[Piece], at: int) -> bool:
    """`her new manager`: a property of which there is one."""
    known = lexicon()
    owned = at > 0 and (pieces[at - 1].owns or pieces[at - 1].is_any("definite"))
    return owned and any(known.has("attribute", known.concept_of(piece.low)) for piece in pieces[at + 1 : at + 3])


def _supposition(cues: Cues, pieces: Sequence[Piece], at: int) -> _Taken:
    if not _supposes(pieces[at], _next(pieces, at)):
        return None
    cues.mood = "supposed"
    return 1, [pieces[at]]


def _supposes(piece: Piece, following: str) -> bool:
    known = lexicon()
    if piece.phrase:
        return piece.is_any("hypothetical")
    verb, form = known.form_of(piece.low)
    if piece.low == "may":
        return not piece.capital
    if known.has("wishes", verb):
        return following in ("to", "whether", "if") or (known.has("doubts", verb) and form in ("third", "ing", "past"))
    return piece.is_any("hypothetical") and not verb


_CUES: tuple[Callable[[Cues, Sequence[Piece], int], _Taken], ...] = (
    _no_longer, _denial, _used_to, _formerly, _filler, _nobody, _ago, _turn, _supposition,
)  # fmt: skip
