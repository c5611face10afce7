"""Whether two clauses say the same, deny each other, or neither: one small rule for each reason."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from mnemon.consolidation.contrasts import measured, valued
from mnemon.consolidation.english.clauses import Clause, Term
from mnemon.consolidation.english.lexicon import lexicon
from mnemon.consolidation.verdicts import Pair, Terms, Verdict, pair_of, said

_DIRECTED = frozenset((
    "from", "to", "over", "than", "before", "after", "above", "below", "until", "into", "within", "inside", "outside",
    "with", "without", "except", "under",
))  # fmt: skip
_COMPARING = frozenset(("over", "than"))
_STATES = frozenset(("be", "live", "work", "job", "stay", "prefer", "like", "use", "have", "wear"))


def judge(first: Clause, second: Clause) -> Verdict | None:
    """What the first rule that applies says; None if nothing is to be said."""
    if first.mood != second.mood:
        return None
    pair = pair_of(first, second)
    if not pair.only:
        return _equal(pair)
    if first.mood != "asserted" or _turned_round(pair):
        return None
    return next((found for rule in _RULES if (found := rule(pair))), None)


# ------------------------------------------------------------------------------------------------ the same words


def _equal(pair: Pair) -> Verdict | None:
    """Both have the same words: they say the same, unless one denies it or gives the words other parts to play."""
    first, second = pair.both
    turned = _turned_round(pair)
    if turned == "swapped" or not (_has_measures_of(first, second) and _has_measures_of(second, first)):
        return None
    if turned == "compared":
        reason = "compare the same two the other way round"
        return None if pair.one_is_denied else pair.conflict("order", reason, 0.9)
    if pair.one_is_denied:
        return _denial(pair)
    if "was" in pair.turns and first.is_past != second.is_past:
        return pair.conflict("past", "one says that it was so, the other that it is", 0.85)
    if not pair.is_of_one_time and len(pair.verbs) == 1 and pair.verbs <= _STATES:
        return None
    return pair.same("words", "say the same in other words", 0.9)


def _denial(pair: Pair) -> Verdict | None:
    if pair.is_of_some or "was" in pair.turns or not (pair.is_of_one_time or "ended" in pair.turns):
        return None
    return pair.conflict("denial", "one says what the other denies", 0.95)


def _has_measures_of(one: Clause, other: Clause) -> bool:
    """Whether every measure is there too, or roughly: `at least 5` may be true beside `7`, but is not the same."""
    theirs = [term.measure for term in other.terms if term.measure]
    mine = [term.measure for term in one.terms if term.measure]
    return all(
        any(each == their or (each.agrees(their) and {each.bound, their.bound} <= {"", "about"}) for their in theirs)
        for each in mine
    )


def _turned_round(pair: Pair) -> Literal["", "swapped", "compared"]:
    """Whether names or values changed places: `a manages b`, `b manages a`; `from a to b`, `from b to a`."""
    parts = {term.word: term for term in pair.second.terms}
    moved = [(term, parts[term.word]) for term in pair.first.terms if term.word in parts and term.word != "user"]
    if any(_is_directed(one, other) for one, other in moved):
        return "compared" if any({one.opening, other.opening} & _COMPARING for one, other in moved) else "swapped"
    if len(pair.verbs) > 1 or pair.first.is_passive != pair.second.is_passive or _is_reversed_copula(pair):
        return ""
    places = {(one.role == "subject", other.role == "subject") for one, other in moved if one.role != "verb"}
    return "swapped" if {(True, False), (False, True)} <= places else ""


def _is_reversed_copula(pair: Pair) -> bool:
    """`x is y` and `y is x`."""
    if "be" not in pair.verbs:
        return False
    return all(one.words("subject") == other.words("value") for one, other, _ in pair.sides)


def _is_directed(one: Term, other: Term) -> bool:
    openings = {one.opening, other.opening}
    return len(openings) == 2 and (openings <= _DIRECTED or bool(openings & _COMPARING))


# ------------------------------------------------------------------------------------------------------- changes


def _changed(pair: Pair) -> Verdict | None:
    """One tells of a change of what the other says: `moved to Oslo`, `was raised to 5 %`, `became head of it`."""
    change = lexicon().change
    for new, old, name in pair.sides:
        stated = new.verb in change and old.verb not in change and not new.is_denied and not old.is_denied
        if stated and _replaces(new, old):
            reason = f"one tells of a change to {said(_target(new))}"
            return replace(pair.conflict("change", reason, 0.85), later=name)
    return None


def _replaces(new: Clause, old: Clause) -> bool:
    known = lexicon()
    weak = known.sets["weak"]
    if old.verb and old.verb not in weak | known.change[new.verb]:
        return False
    if old.is_past and not old.is_passive:
        return False
    was = tuple(term for term in old.terms if term.role == "value")
    for target, topic in _targets(new):
        now = {term.word for term in target}
        another = bool(now) and not now <= old.words() and old.words("adjunct") <= new.words()
        if another and topic - weak == old.words("subject") - weak and _is_of_kind(target, was, old):
            return True
    return False


def _target(new: Clause) -> Terms:
    """What something was changed to."""
    to = tuple(term for term in new.terms if term.opening in ("to", "into") and term.role != "subject")
    return to or tuple(term for term in new.terms if term.role == "value" and not term.opening)


def _targets(new: Clause) -> Iterator[tuple[Terms, frozenset[str]]]:
    """What it was changed to, and what of: what comes after `to`, or the subject of `became` and `took over`."""
    target = _target(new)
    rest = (term for term in new.terms if term not in target and term.role != "verb" and term.opening != "from")
    yield target, frozenset(term.word for term in rest)
    if lexicon().has("sole_change", new.verb):
        objects = frozenset(term.word for term in new.terms if term.role == "value" and not term.opening)
        agents = tuple(term for term in new.terms if term.role == "value" and term.opening == "by")
        subject = tuple(term for term in new.terms if term.role == "subject")
        yield subject, objects
        yield agents, objects | new.words("subject")
        yield subject, frozenset(term.word for term in new.terms if term.opening == "as")


def _is_of_kind(target: Terms, was: Terms, old: Clause) -> bool:
    """Whether the new value can stand where the old one stood."""
    measures = [term.measure for term in target if term.measure]
    if measures:
        return any(term.measure and any(term.measure.comparable(each) for each in measures) for term in was)
    named = any(term.is_name for term in target) and any(term.is_name for term in was)
    if any(term.measure for term in was):
        return named or bool({term.word for term in target} & {term.word for term in was})
    if old.verb == "be" and not any(term.opening for term in was):
        return named or bool(old.words("subject") & lexicon().sets["attribute"])
    return bool(was)


def _ended(pair: Pair) -> Verdict | None:
    """One tells of the end of what the other says: `left Acme`, `works at Acme`."""
    differing = {term.word for term in pair.only} - pair.verbs
    for new, old, name in pair.sides:
        stated = not (differing or new.is_denied or old.is_denied or old.is_past)
        if stated and old.verb in lexicon().ending.get(new.verb, ()):
            return replace(pair.conflict("end", "one tells of the end of it", 0.85), later=name)
    return None


def _located(pair: Pair) -> Verdict | None:
    """One names the country too."""
    extra, none = sorted((pair.only_first, pair.only_second), key=len, reverse=True)
    countries = all(lexicon().has("countries", term.word) and term.role == "value" for term in extra)
    if none or pair.one_is_denied or not countries:
        return None
    return pair.same("country", f"say the same, one with {said(extra)}", 0.85)


_RULES: tuple[Callable[[Pair], Verdict | None], ...] = (_changed, _ended, measured, valued, _located)
