"""Whether two clauses say the same although one of them has a word more, or another word for the same property."""

from collections.abc import Callable

from mnemon.consolidation.english.clauses import Clause, Term
from mnemon.consolidation.english.lexicon import lexicon
from mnemon.consolidation.english.measures import Measure
from mnemon.consolidation.verdicts import Pair, Terms, Verdict, said

_PRECISE = frozenset(("amount", "contact", "code", "version", "date", "clock", "weekday"))
_MOMENTS = frozenset(("date", "clock", "weekday"))
_PLACES = frozenset(("in", "on", "at", "under"))
_BEING = frozenset(("be", "locate", "situate"))
_LARGE = 20  # from which on a number is hardly the same by chance
_FEW = 2  # words in which two ways to say the same may differ


def same_in_other_words(pair: Pair) -> Verdict | None:
    """What the first of these says that applies: one tells more, or names the same property otherwise."""
    if pair.one_is_denied or not pair.is_of_one_time or {"was", "ended"} & pair.turns or pair.is_of_some:
        return None
    return next((found for rule in _RULES if (found := rule(pair))), None)


def _with_more(pair: Pair) -> tuple[Terms, Clause] | None:
    """What only one of them says, and the other; None if both say something of their own."""
    if pair.only_first and pair.only_second:
        return None
    return (pair.only_first, pair.second) if pair.only_first else (pair.only_second, pair.first)


def _located(pair: Pair) -> Verdict | None:
    """One names the country too."""
    extra, _ = _with_more(pair) or ((), None)
    if not extra or not all(lexicon().has("countries", term.word) and term.role == "value" for term in extra):
        return None
    return pair.same("country", f"say the same, one with {said(extra)}", 0.85)


def _preferred(pair: Pair) -> Verdict | None:
    """One tells over what something is preferred."""
    extra, _ = _with_more(pair) or ((), None)
    if not extra or pair.verbs != frozenset(("prefer",)) or not all(term.opening == "over" for term in extra):
        return None
    return pair.same("over", f"say the same, one over {said(extra)}", 0.85)


def _whose(pair: Pair) -> Verdict | None:
    """One says whose or which it is: `the venue is Rose Hall`, `the wedding venue is Rose Hall`."""
    extra, bare = _with_more(pair) or ((), None)
    if not bare or len(extra) > _FEW or any(term.role != "subject" or term.measure for term in extra):
        return None
    if not _is_told_apart(pair, bare) or any(term.is_name or term.word == "user" for term in _subject(bare)):
        return None
    return pair.same("whose", f"say the same, one with {said(extra)}", 0.85)


def _is_told_apart(pair: Pair, bare: Clause) -> bool:
    """Whether the value is of one thing only: a name, an address or a code."""
    shared = [
        term for term in bare.terms if term.role != "subject" and term.word in pair.first.words() & pair.second.words()
    ]
    kinds = {term.measure.kind for term in shared if term.measure}
    has_name = bare.verb == "be" and any(term.is_name for term in shared) and bool(bare.words("subject"))
    return has_name or bool(kinds & {"contact", "code"})


def _how_often(pair: Pair) -> Verdict | None:
    """One says how often it is: `the daily standup`, `every morning`."""
    extra, _ = _with_more(pair) or ((), None)
    if not extra or not all(term.measure and term.measure.kind == "period" for term in extra):
        return None
    if not _moments(pair) or any(term.measure.unit for term in extra if term.measure):
        return None
    return pair.same("often", f"say the same, one with {said(extra)}", 0.85)


def _moments(pair: Pair) -> set[str]:
    theirs = pair.second.words()
    return {
        term.measure.kind
        for term in pair.first.terms
        if term.measure and term.word in theirs and term.measure.kind in _MOMENTS
    }


def _in_one_place(pair: Pair) -> Verdict | None:
    """They differ in the verb that says where it is: `lives in Notion`, `is kept in Notion`."""
    if (
        any(term.role != "verb" for term in pair.only)
        or len(pair.verbs) < 2
        or not pair.verbs <= lexicon().sets["locating"]
    ):
        return None
    places = [{term.word for term in clause.terms if term.opening in _PLACES} for clause in pair.both]
    return pair.same("place", "say where it is in other words", 0.85) if places[0] & places[1] else None


def _by_another_verb(pair: Pair) -> Verdict | None:
    """One has a verb where the other has `is`: `works the late shift`, `is on the late shift`."""
    extra, bare = _with_more(pair) or ((), None)
    if not bare or len(extra) != 1 or extra[0].role != "verb" or bare.is_past:
        return None
    if (
        bare.is_passive
        and lexicon().has("wanting", extra[0].word)
        and len(pair.first.words() & pair.second.words()) > _FEW
    ):
        return pair.same("verb", f"say the same, one with {said(extra)}", 0.8)
    if bare.verb not in _BEING:
        return None
    shared = pair.first.words() & pair.second.words() - (lexicon().sets["weak"] - {"user"})
    if len(shared) < 3 - (extra[0].word in lexicon().single_valued) or not _may_be_left_out(extra[0].word):
        return None
    return pair.same("verb", f"say the same, one with {said(extra)}", 0.8)


def _may_be_left_out(verb: str) -> bool:
    known = lexicon()
    telling = ("event", "stopping", "starting", "attitude")
    return not any(known.has(name, verb) for name in telling) and verb not in known.change and verb not in known.ending


def _same_value(pair: Pair) -> Verdict | None:
    """Of the same thing they give the same value, each with its own word for the property."""
    first, second = (_with_verb(pair, clause) for clause in pair.both)
    if not first or not second or max(len(first), len(second)) > _FEW:
        return None
    if any(term.measure or term.is_name or term.denies for term in pair.only) or not _gives_same_value(pair):
        return None
    if not _name_one_property(pair, first, second):
        return None
    return pair.same("property", f"give the same value: {said(first)} and {said(second)}", 0.8)


def _with_verb(pair: Pair, clause: Clause) -> Terms:
    """What only it says, its verb too if the other has another."""
    only = pair.only_of(clause)
    verbs = (term for term in clause.terms if term.role == "verb" and term.word != "be" and term not in only)
    return (*only, *(term for term in verbs if len(pair.verbs) > 1 and not only))


def _gives_same_value(pair: Pair) -> bool:
    """Whether both have the same measures, one of them precise, or a name, of a thing that both name."""
    mine, theirs = ([term.measure for term in clause.terms if term.measure] for clause in pair.both)
    weak = lexicon().sets["weak"]
    things = [term for term in _subject(pair.first) if not term.measure and term.word in pair.second.words()]
    return (
        (any(map(_is_precise, _told(pair))) or _shares_much(pair))
        and all(any(each.is_same(their) for their in theirs) for each in mine)
        and all(any(each.is_same(their) for their in mine) for each in theirs)
        and any(term.word not in weak or term.word == "user" for term in things)
    )


def _told(pair: Pair) -> list[Measure]:
    """The measures that are told of something, and not part of its name."""
    return [term.measure for clause in pair.both for term in clause.terms if term.measure and term.role != "subject"]


def _is_precise(measure: Measure) -> bool:
    large = measure.kind == "number" and isinstance(measure.value, float) and measure.value >= _LARGE
    return large or measure.kind in _PRECISE


def _shares_much(pair: Pair) -> bool:
    """Whether most words are the same, and none is of somebody's relation; `is` and `was` are two things."""
    shared = pair.first.words() & pair.second.words() - (lexicon().sets["weak"] - {"user"})
    is_one_time = pair.first.is_past == pair.second.is_past
    return len(shared) > _FEW and is_one_time and not any(_is_relation(term.word) for term in pair.only)


def _is_relation(word: str) -> bool:
    return lexicon().has("relations", word) and not lexicon().has("attribute", word)


def _name_one_property(pair: Pair, first: Terms, second: Terms) -> bool:
    """Whether a verb or noun of one may stand for that of the other: no opposites, nor two known properties."""
    known = lexicon()
    verbs = [all(term.role == "verb" for term in only) for only in (first, second)]
    unique = {measure.kind for measure in _told(pair)} & {"contact", "code"}
    if not any(verbs) or not (
        unique or _is_rule(pair) or all(_may_be_left_out(each.word) for each in (*first, *second))
    ):
        return False
    if any(known.has("negative", term.word) for term in (*first, *second)):
        return False
    words = [{term.word for term in only} for only in (first, second)]
    nouns = [{term.word for term in only if term.role != "verb"} for only in (first, second)]
    if any(words[0] & group and words[1] & group for group in known.contrasts):
        return False
    is_moment = bool(_moments(pair))
    both_known = all(any(known.has("attribute", word) for word in side) for side in nouns)
    return not both_known and not (is_moment and all(verbs) and not _is_rule(pair))


def _is_rule(pair: Pair) -> bool:
    """Whether both tell what holds now of an amount or a moment, and not what somebody did or would like."""
    if pair.first.is_past or pair.second.is_past or any(lexicon().has("wanting", verb) for verb in pair.verbs):
        return False
    return any(term.measure and term.measure.kind in {"amount", *_MOMENTS} for term in pair.first.terms)


def _subject(clause: Clause) -> list[Term]:
    return [term for term in clause.terms if term.role == "subject"]


_RULES: tuple[Callable[[Pair], Verdict | None], ...] = (
    _located, _in_one_place, _preferred, _whose, _how_often, _by_another_verb, _same_value,
)  # fmt: skip
