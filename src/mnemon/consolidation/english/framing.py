"""What only frames a statement is taken off: `note that`, `according to Ann`, `by the way`, `the user said that`."""

import re
from collections.abc import Sequence

from mnemon.consolidation.english.lexicon import lexicon
from mnemon.consolidation.english.pieces import Piece

_ANNOUNCED = re.compile(
    r"""^(?:
        (?:(?:quick|important|side|small|new|latest)\s+)?
        (?:note|notes|reminder|fyi|update|info|heads[\s-]up|correction|remember|nb|ps|btw|fact|memo|edit|important|status)
        (?:\s+to\s+self)?(?:\s*[:,-]\s+|\s+that\s+)
      | (?:by\s+the\s+way|for\s+the\s+record|for\s+reference|as\s+a\s+reminder|as\s+far\s+as\s+(?:i|we)\s+know)\s*,?\s+
      | (?:it\s+)?turns\s+out\s+(?:that\s+)? | (?:please\s+)?(?:keep|bear)\s+in\s+mind\s+that\s+
      | (?:please\s+)?(?:remember|note|know|be\s+aware)\s+that\s+
      | (?:i|we)\s+(?:just\s+)?(?:learned|noticed|found\s+out)\s+that\s+
      | according\s+to\s+[^,]{1,40},\s+ | as\s+(?:mentioned|discussed|agreed|stated)(?:\s+[^,]{1,30})?,\s+
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ADDED = re.compile(
    r",?\s+(?:by\s+the\s+way|btw|fyi|just\s+so\s+you\s+know|for\s+the\s+record|as\s+far\s+as\s+(?:i|we)\s+know"
    r"|according\s+to\s+[^,.]{1,40})(?=[.!]*$)",
    re.IGNORECASE,
)
_HEARERS = frozenset(("me", "us", "you", "everyone", "support", "them"))


def unframed(sentence: str) -> str:
    """A sentence without what announces it or is added by the way."""
    bare = _ADDED.sub("", _ANNOUNCED.sub("", sentence))
    return bare if bare.strip(" .!") else sentence


def told_by(pieces: Sequence[Piece]) -> int:
    """How many pieces only say who told it, as in `the user said that …`; 0 if none."""
    known = lexicon()
    for at, piece in enumerate(pieces[1:6], 1):
        if piece.measure or not known.has("reporting", known.form_of(piece.low)[0]):
            continue
        end = at + 1
        while end < len(pieces) and pieces[end].low in _HEARERS:
            end += 1
        rest = pieces[end:]
        if len(rest) > 2 and (rest[0].low == "that" or rest[0].is_any("pronouns")):
            return end + (rest[0].low == "that")
        return 0
    return 0
