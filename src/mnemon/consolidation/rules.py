"""Whether two clauses say the same, deny each other, or neither: one small rule for each reason."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from mnemon.consolidation.contrasts import measured, valued
from mnemon.consolidation.english.clauses import Clause, Term
from mnemon.consolidation.english.lexicon import lexicon
from mnemon.consolidation.paraphrases import same_in_other_words
from mnemon.consolidation.verdicts import Pair, Terms, Verdict, implied_by, pair_of, said

_DIRECTED = frozenset((
    "from", "to", "over", "than", "before", "after", "above", "below", "until", "into", "within", "inside", "outside",
    "with", "without", "except", "under",
))  # fmt: skip
_ALIKE = ({"from", "with"}, {"to", "until"}, {"to", "into"}, {"within", "inside"})
_COMPARING = frozenset(("over", "than"))
_STATES = frozenset(("be", "live", "work", "job", "stay", "prefer", "like", "use", "have", "wear"))
_COMPANY = frozenset(("for", "as", "with", "by"))  # with whom somebody lives, not where
_PLACES = frozenset(("in", "on", "from"))  # where somebody works, not for whom
_AMOUNTS = frozenset(("be", "cost", "set", "last"))  # what changes of an amount change


_TOWARDS = frozenset(("to", "into", "until", "till"))
_AWAY = frozenset(("to", "for"))  # to whom something was given, or for what
_MOMENTS = frozenset(("date", "weekday", "clock"))
_FOR_EVER = frozenset(("ended", "never"))
_CONDITIONS = frozenset(("if", "when", "unless", "except", "without", "while", "until", "before", "after"))


def judge(first: Clause, second: Clause) -> Verdict | None:
    """What the first rule that applies says; None if nothing is to be said."""
    if first.mood != second.mood or (first.whose and second.whose and first.whose != second.whose):
        return None
    pair = pair_of(first, second)
    if not pair.only:
        return _equal(pair)
    if first.mood != "asserted":
        return None
    if changed := _changed(pair):
        return changed
    return None if _turned_round(pair) else next((found for rule in _RULES if (found := rule(pair))), None)


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
    if pair.is_of_some or "was" in pair.turns or not (pair.is_of_one_time or pair.turns & _FOR_EVER):
        return None
    return pair.conflict("denial", "one says what the other denies", 0.95)


def _has_measures_of(one: Clause, other: Clause) -> bool:
    """Whether every measure is there too, or roughly: `at least 5` may be true beside `7`, but is not the same."""
    theirs = [term.measure for term in other.terms if term.measure]
    mine = [term.measure for term in one.terms if term.measure]
    return all(any(each.is_same(their) for their in theirs) for each in mine)


def is_turned_round(pair: Pair) -> bool:
    """Whether the same words play other parts: `a manages b`, `b manages a`."""
    return bool(_turned_round(pair))


def _turned_round(pair: Pair) -> Literal["", "swapped", "compared"]:
    """Whether names or values changed places: `a manages b`, `b manages a`; `from a to b`, `from b to a`."""
    moved = list(_moved(pair))
    if any(_is_directed(one, other) for one, other in moved):
        return "compared" if any({one.opening, other.opening} & _COMPARING for one, other in moved) else "swapped"
    if len(pair.verbs) > 1 or pair.first.is_passive != pair.second.is_passive or _is_reversed_copula(pair):
        return ""
    places = {(one.role == "subject", other.role == "subject") for one, other in moved if one.role != "verb"}
    return "swapped" if {(True, False), (False, True)} <= places else ""


def _moved(pair: Pair) -> Iterator[tuple[Term, Term]]:
    """Every word that both have, as it stands in each; of one that stands there twice, where it plays the same part."""
    for term in pair.first.terms:
        others = [each for each in pair.second.terms if each.word == term.word and term.word != "user"]
        if others:
            yield term, next((each for each in others if each.opening == term.opening), others[-1])


def _is_reversed_copula(pair: Pair) -> bool:
    """`x is y` and `y is x`."""
    if "be" not in pair.verbs:
        return False
    weak = lexicon().sets["weak"]
    return all(one.words("subject") - weak == other.words("value", "adjunct") - weak for one, other, _ in pair.sides)


def _is_directed(one: Term, other: Term) -> bool:
    openings = {one.opening, other.opening}
    if openings in _ALIKE:
        return False
    return len(openings) == 2 and (openings <= _DIRECTED or bool(openings & _COMPARING))


# ------------------------------------------------------------------------------------------------------- changes


def _changed(pair: Pair) -> Verdict | None:
    """One tells of a change of what the other says: `moved to Oslo`, `was raised to 5 %`, `became head of it`."""
    change = lexicon().change
    for new, old, name in pair.sides:
        stated = new.verb in change and old.verb not in change and not new.is_negated and not old.is_negated
        if stated and _replaces(new, old):
            reason = f"one tells of a change to {said(_target(new))}"
            return replace(pair.conflict("change", reason, 0.85), later=name)
    return None


def _replaces(new: Clause, old: Clause) -> bool:
    known = lexicon()
    weak = known.sets["weak"]
    if old.is_past and not old.is_passive:
        return False
    was = tuple(term for term in old.terms if term.role == "value" or _is_due(term, old))
    if _is_from(new, was):
        return len(old.words("subject") - weak - new.words()) <= (new.verb in known.sets["sole_change"])
    if old.verb and old.verb not in weak | known.change[new.verb]:
        return False
    if _is_beside(new, old, was):
        return False
    for target, topic in _targets(new):
        now = {term.word for term in target}
        beside = {term.word for term in old.terms if term.role == "adjunct" and term not in was}
        another = bool(now) and (not now <= old.words() or old.is_denied) and beside <= new.words()
        implied = weak | implied_by(target) | {term.word for term in new.terms if term.opening == "when"}
        about, named = old.words("subject") - implied, {term.word for term in was if not term.measure} | {old.verb}
        if another and about <= topic and topic - implied - about <= named and _is_of_kind(new, target, was, old):
            return True
    return False


def _is_due(term: Term, old: Clause) -> bool:
    """Whether a moment beside the value is what the clause is about: `is due on Monday`."""
    return bool(term.measure) and term.role == "adjunct" and "deadline" in old.words("value", "verb")


def _is_from(new: Clause, was: Terms) -> bool:
    """Whether the change is one from what the other says: `moved from Jira to Linear`, `uses Jira`."""
    before = {term.word for term in new.terms if term.opening == "from" and term.role != "subject"}
    return bool(before) and before == {term.word for term in was} and bool(_target(new) or new.words("subject"))


def _is_beside(new: Clause, old: Clause, was: Terms) -> bool:
    """Whether the change leaves alone what the other says: who moves to Oslo still works for Acme and has a cat."""
    changed = lexicon().change[new.verb]
    openings = {term.opening for term in was}
    if old.verb in ("work", "job"):
        is_career = new.verb in ("promote", "become")
        return not (is_career or (old.verb == "work" and openings <= _PLACES))
    if old.verb == "live":
        return bool(openings & _COMPANY)
    if old.verb not in lexicon().sets["holding"]:
        return False
    target = _target(new)
    if old.verb in changed:
        return not _is_alike(target, was)
    return not (changed & _AMOUNTS and any(term.measure for term in target))


def _is_alike(target: Terms, was: Terms) -> bool:
    """Whether both are names or measures, or have a word in common: `light mode`, `dark mode`."""
    named = all(any(term.is_name or term.measure for term in terms) for terms in (target, was))
    return named or bool({term.word for term in target} & {term.word for term in was})


def _target(new: Clause) -> Terms:
    """What something was changed to."""
    to = tuple(term for term in new.terms if term.opening in _TOWARDS and term.role != "subject")
    if to or new.verb not in lexicon().sets["sole_change"]:
        return to
    return tuple(term for term in new.terms if term.role == "value" and not term.opening)


def _targets(new: Clause) -> Iterator[tuple[Terms, frozenset[str]]]:
    """What it was changed to, and what of: what comes after `to`, or the subject of `became` and `took over`."""
    target = _target(new)
    rest = (term for term in new.terms if term not in target and term.role != "verb" and term.opening != "from")
    yield target, frozenset(term.word for term in rest)
    if target and not new.is_passive:
        yield target, frozenset(term.word for term in new.terms if term.role == "value" and not term.opening)
    if lexicon().has("sole_change", new.verb):
        objects = frozenset(term.word for term in new.terms if term.role == "value" and not term.opening)
        agents = tuple(term for term in new.terms if term.role != "subject" and term.opening == "by")
        subject = tuple(term for term in new.terms if term.role == "subject")
        yield subject, objects
        yield agents, objects | new.words("subject")
        role = frozenset(term.word for term in new.terms if term.opening == "as")
        yield subject, role
        yield agents, role


def _is_of_kind(new: Clause, target: Terms, was: Terms, old: Clause) -> bool:
    """Whether the new value can stand where the old one stood."""
    measures = [term.measure for term in target if term.measure]
    if measures:
        return any(term.measure and any(term.measure.comparable(each) for each in measures) for term in was)
    named = any(term.is_name for term in target) and any(term.is_name for term in was)
    if any(term.measure for term in was):
        return named or bool({term.word for term in target} & {term.word for term in was})
    if old.verb == "be" and not any(term.opening for term in was):
        return (
            named
            or new.verb == lexicon().concept_of("promote")
            or bool(old.words("subject") & lexicon().sets["attribute"])
        )
    return bool(was)


def _ended(pair: Pair) -> Verdict | None:
    """One tells of the end of what the other says: `left Acme`, `works at Acme`."""
    for new, old, name in pair.sides:
        extra = [term for term in pair.only_of(old) if term.word != old.verb]
        lacking = [term for term in pair.only_of(new) if term.word != new.verb and not _is_by_the_way(term)]
        stated = not (lacking or new.is_denied or old.is_denied or (old.is_past and not old.is_passive))
        narrowed = extra if old.verb == "be" else [term for term in extra if term.role == "subject"]
        if stated and old.verb in lexicon().ending.get(new.verb, ()) and not narrowed:
            return replace(pair.conflict("end", "one tells of the end of it", 0.85), later=name)
    return None


def _is_by_the_way(term: Term) -> bool:
    """When something ended, or to whom it was given."""
    return term.opening in _AWAY or bool(term.measure and term.measure.kind in _MOMENTS)


def _undone(pair: Pair) -> Verdict | None:
    """One tells when the other came to an end: `is single`, `got married in May`."""
    moments = all(term.measure and term.measure.kind in _MOMENTS for term in pair.only)
    if not pair.one_is_denied or "began" not in pair.turns or not moments or pair.is_of_some:
        return None
    return pair.conflict("denial", "one tells since when the other is no more", 0.85)


def _denied_in_general(pair: Pair) -> Verdict | None:
    """One denies a whole kind, the other names one of it: `doesn't drive`, `drives a Volvo`."""
    for denial, claim, _ in pair.sides:
        only_denial, only_claim = pair.only_of(denial), pair.only_of(claim)
        if not denial.is_negated or not denial.is_denied or claim.is_denied or not only_claim or not _is_of_it(pair):
            continue
        kinds = {kind for term in only_denial for kind in lexicon().kinds.get(term.word, ())}
        named = [term for term in only_claim if term.word in kinds]
        if only_denial and not (len(only_denial) == 1 and named):
            continue
        rest = [term for term in only_claim if term not in named]
        if all(bool(named and term.role == "value") or _is_one_of_it(term, claim, denial) for term in rest):
            return pair.conflict("denial", "one says what the other denies of all", 0.88)
    return None


def _is_of_it(pair: Pair) -> bool:
    if pair.is_of_some or "was" in pair.turns:
        return False
    return pair.first.is_past == pair.second.is_past or bool(pair.turns & _FOR_EVER)


def _is_one_of_it(term: Term, claim: Clause, denial: Clause) -> bool:
    """Whether a word only tells more of what is denied: no condition, no place, and no other thing."""
    if term.role in ("subject", "verb") or term.opening in _CONDITIONS:
        return False
    if lexicon().has("frequency", term.word):
        return True
    if (
        term.opening not in ("", "to", "of", "as")
        and not denial.turn
        and not (term.measure and term.measure.kind == "period")
    ):
        return False
    part = [each for each in claim.terms if each.role == term.role and each.opening == term.opening]
    return term.opening != "" or not (set(part) - {term}) or part[-1].word in denial.words() or bool(term.measure)


def _excluded(pair: Pair) -> Verdict | None:
    """One is of a kind who never do what the other says: a vegetarian who eats steak."""
    for kind, deed, _ in pair.sides:
        if kind.verb != "be" or kind.is_denied or deed.is_denied or kind.is_past or deed.is_past:
            continue
        if kind.words("subject") != deed.words("subject") or deed.verb not in ("eat", "like", "drink", "order", "cook"):
            continue
        never = {word for term in kind.terms for word in lexicon().excludes.get(term.word, ())}
        taken = [term for term in deed.terms if term.role == "value" and not term.opening and not term.measure]
        if taken and taken[-1].word in never:
            return pair.conflict("never", f"one is of a kind that has no {said(taken)}", 0.85)
    return None


def _staged(pair: Pair) -> Verdict | None:
    """They tell of two stages of the same: `is being packed`, `has been delivered`."""
    if pair.first.is_negated or pair.second.is_negated or any(term.role == "subject" for term in pair.only):
        return None
    for earlier, later, name in ((pair.first, pair.second, "second"), (pair.second, pair.first, "first")):
        extra = [term for term in pair.only_of(earlier) if not term.measure]
        if earlier.is_past or len(extra) != 1:
            continue
        now = {(term.word, later.is_denied) for term in pair.only_of(later)}
        was = (extra[0].word, earlier.is_denied)
        if any(was in stages and now & set(stages[stages.index(was) + 1 :]) for stages in lexicon().stages):
            reason = f"tell of two stages: {said(pair.only_first)} and {said(pair.only_second)}"
            return replace(pair.conflict("stage", reason, 0.85), later=name)
    return None


def _paid_for(pair: Pair) -> Verdict | None:
    """One says that it is free, the other what it costs."""
    for free, paid, _ in pair.sides:
        prices = [term for term in pair.only_of(paid) if term.measure and "fee" in implied_by((term,))]
        rest = {term.word for term in pair.only_of(paid)} - {term.word for term in prices} - {"fee"}
        if prices and not rest and {term.word for term in pair.only_of(free)} == {"free"} and not pair.one_is_denied:
            return pair.conflict("price", f"one says that it is free, the other {said(prices)}", 0.88)
    return None


_RULES: tuple[Callable[[Pair], Verdict | None], ...] = (
    _ended, _undone, _denied_in_general, _excluded, _staged, _paid_for, measured, valued, same_in_other_words,
)  # fmt: skip
