"""Whether two values of the same property deny each other, or may both be true."""

from collections.abc import Iterable
from dataclasses import replace

from mnemon.consolidation.english.clauses import Clause, Term
from mnemon.consolidation.english.lexicon import lexicon
from mnemon.consolidation.verdicts import Pair, Terms, Verdict, said

_WHERE = frozenset(
    ("next_to", "in", "on", "at", "under", "behind", "near", "above", "below", "inside", "outside", "from")
)
_TIMELESS = frozenset(("be", "live", "work"))
_PAST_STATES = frozenset(("live", "work", "job", "stay", "prefer", "like", "use", "have", "wear"))
_SUPPORTING = frozenset(("support", "accept", "contain"))
_EXTREMES = frozenset(("maximum", "minimum"))
_CHOOSING = frozenset(("use", "want", "choose", "write"))
_BODY = frozenset(("eye", "hair"))


def _can_deny(pair: Pair) -> bool:
    """Whether two values may deny each other: neither is negated, both of the same time, and not of some only."""
    if pair.first.is_negated or pair.second.is_negated or (pair.one_is_denied and not _are_opposite_ways(pair)):
        return False
    if {"was", "ended"} & pair.turns or pair.is_of_some:
        return False
    if pair.first.is_past == pair.second.is_past or (pair.first.is_passive and pair.second.is_passive):
        return True
    return "be" in pair.verbs and len(pair.verbs) > 1 and _have_one_verb(pair)


def _are_opposite_ways(pair: Pair) -> bool:
    """`Rose to 5 %` and `fell to 3 %`."""
    return len(pair.verbs) == 1 and all(term.measure and term.opening == "to" for term in pair.only)


# ------------------------------------------------------------------------------------------------------- measures


def measured(pair: Pair) -> Verdict | None:
    """They differ in nothing but a number, amount, date, time, version or address of the same thing."""
    if not _can_deny(pair) or not all(term.measure for term in pair.only):
        return None
    matched = _matched(pair.only_first, pair.only_second)
    if not matched or not all(_is_value(pair, term) for two in matched for term in two):
        return None
    if len(matched) > 1 and not _are_one_moment(matched):
        return None
    one, other = matched[0]
    return pair.conflict("measure", f"differ in a value: {one.text} and {other.text}", 0.92)


def _are_one_moment(matched: list[tuple[Term, Term]]) -> bool:
    """Whether several measures are one: from when to when, or a date and an hour; not an hour on a weekday."""
    kinds = {one.measure.kind for one, _ in matched if one.measure}
    return (len(kinds) == 1 and kinds <= {"date", "weekday", "clock"}) or kinds == {"date", "clock"}


def _matched(first: Terms, second: Terms) -> list[tuple[Term, Term]]:
    """Each measure with one of the other side that measures the same kind of thing; empty if one is left over."""
    left, spare = list(second), list[Term]()
    matched: list[tuple[Term, Term]] = []
    for term in first:
        other = next(
            (each for each in left if term.measure and each.measure and term.measure.comparable(each.measure)), None
        )
        if other is None:
            spare.append(term)
        else:
            left.remove(other)
            matched.append((term, other))
    left += spare
    return [] if any(not _is_by_the_way(term, matched) for term in left) else matched


def _is_by_the_way(left: Term, matched: Iterable[tuple[Term, Term]]) -> bool:
    """How often beside an amount, and at which hour beside how often, only one of two needs to say."""
    kinds = {one.measure.kind for one, _ in matched if one.measure}
    kind = left.measure.kind if left.measure else ""
    return (kind == "period" and bool(kinds & {"amount", "number"})) or (
        kind in ("clock", "weekday") and kinds == {"period"}
    )


def _is_value(pair: Pair, term: Term) -> bool:
    """Whether a measure is what its clause is about: no part of a name, nor when it was, nor one event of many."""
    known, measure = lexicon(), term.measure
    if measure is None or _is_part_of_name(term):
        return False
    if term.role == "subject":
        return _is_count(pair, term)
    if measure.kind in ("version", "code") and pair.verbs <= _SUPPORTING and not pair.first.words() & _EXTREMES:
        return False
    if measure.unit.startswith("times "):
        return True
    if any(known.has("event", clause.verb) and not clause.is_passive for clause in pair.both):
        return measure.kind == "clock" and term.opening == "at" and not any(clause.is_past for clause in pair.both)
    if measure.kind in ("date", "weekday", "clock") and any(
        known.has("recurring", clause.verb) for clause in pair.both
    ):
        return False
    if measure.kind == "period":
        return _is_settled(pair)
    return term.role != "adjunct" or _is_value_beside_another(pair, term)


def _is_count(pair: Pair, term: Term) -> bool:
    """`120 guests are invited`."""
    if not term.measure or term.measure.kind != "number" or any(clause.is_past for clause in pair.both):
        return False
    starts = [next((each for each in clause.terms if each.role == "subject"), None) for clause in pair.both]
    is_first = all(each and each.measure and each.measure.kind == "number" for each in starts)
    return is_first and all(clause.is_passive or clause.verb == "be" for clause in pair.both)


def _is_part_of_name(term: Term) -> bool:
    """`invoice 17`, but not `port 8080`."""
    known, numbered = lexicon(), term.measure and term.measure.kind in ("number", "code", "ordinal")
    return bool(numbered and term.label) and not (
        known.has("numbered", term.label) or known.has("attribute", term.label)
    )


def _is_settled(pair: Pair) -> bool:
    """Whether it can be so only once, or in one way: what is, is scheduled, or was done to something."""
    single = lexicon().single_valued
    return all(
        clause.is_passive or clause.verb in ("be", "schedule", "") or clause.verb in single for clause in pair.both
    )


def _is_value_beside_another(pair: Pair, term: Term) -> bool:
    """Of what stands after the value: not when or which time it was."""
    measure = term.measure
    if measure is None or measure.kind == "ordinal":
        return term.opening == "on" and _is_settled(pair)
    if measure.kind == "clock":
        return "have" not in pair.verbs
    if measure.kind not in ("date", "weekday"):
        return True
    if term.opening == "by" and not (pair.first.is_past or pair.second.is_past):
        return True
    is_year = isinstance(measure.value, tuple) and not measure.value[1]
    return _is_settled(pair) and not (is_year and pair.verbs & _TIMELESS) and not _measures_something(pair.first)


def _measures_something(clause: Clause) -> bool:
    """Whether a date beside it only says when it was measured."""
    values = (term.measure for term in clause.terms if term.role == "value" and term.measure)
    return any(measure.kind in ("amount", "number", "code") for measure in values)


# ---------------------------------------------------------------------------------------------------------- words


def valued(pair: Pair) -> Verdict | None:
    """They differ in the value of a property that has one value at a time."""
    if not _can_deny(pair) or any(c.is_past and not c.is_passive and c.verb in _PAST_STATES for c in pair.both):
        return None
    first = _without_extras(pair.only_first, pair.only_second)
    second = _without_extras(pair.only_second, pair.only_first)
    if not (_is_worded_value(first) and _is_worded_value(second)) or not _on_one_level(first, second):
        return None
    if _is_short_for(first, second):
        return None
    if len(pair.verbs) > 1 and not _are_comparable(pair):
        return None
    reason = _why_single(pair, first, second)
    return pair.conflict("value", f"{reason}: {said(first)} and {said(second)}", 0.88) if reason else None


def _are_of_one_kind(verbs: frozenset[str]) -> bool:
    """What somebody has denies nothing that somebody is: `works as a nurse`, `has a cat`."""
    known = lexicon()
    return not (verbs & known.sets["holding"] and verbs & known.single_valued.keys())


def _are_comparable(pair: Pair) -> bool:
    """Whether two verbs say little, or both have what one of them says: `was written by`, `the author is`."""
    if _have_one_verb(pair):
        return "be" in pair.verbs
    if pair.verbs <= lexicon().sets["locating"]:
        return all(term.opening in _WHERE for term in pair.only if term.role != "verb")
    return pair.verbs <= lexicon().sets["weak"] and _are_of_one_kind(pair.verbs)


def _have_one_verb(pair: Pair) -> bool:
    return any(all(verb in clause.words() for clause in pair.both) for verb in pair.verbs)


def _without_extras(terms: Terms, others: Terms) -> Terms:
    """Without what is told by the way: `as a designer` beside `at Acme`, the country beside a town, and the verb."""
    terms = tuple(term for term in terms if term.role != "verb" or not lexicon().has("locating", term.word))
    countries = lexicon().sets["countries"]
    if not any(term.word in countries for term in others):
        terms = tuple(term for term in terms if term.word not in countries) or terms
    openings = {term.opening for term in others}
    kept = tuple(term for term in terms if term.opening not in ("as", "with") or term.opening in openings)
    if kept and kept != terms and all(term.opening in openings for term in kept):
        return tuple(replace(term, role="value") for term in kept)
    return terms


def _is_short_for(first: Terms, second: Terms) -> bool:
    """`Jon` and `Jonathan`."""
    if len(first) != 1 or len(second) != 1 or not (first[0].is_name and second[0].is_name):
        return False
    short, long = sorted((first[0].text.lower(), second[0].text.lower()), key=len)
    return len(short) > 2 and long.startswith(short)


def _is_worded_value(terms: Terms) -> bool:
    """Whether they are one value that is not a mere number."""
    one_part = len({term.opening for term in terms}) == 1 and all(term.role == "value" for term in terms)
    return one_part and not all(term.measure for term in terms)


def _on_one_level(first: Iterable[Term], second: Iterable[Term]) -> bool:
    """A country and a town in it do not deny each other."""
    countries = lexicon().sets["countries"]
    return any(term.word in countries for term in first) == any(term.word in countries for term in second)


def _why_single(pair: Pair, first: Terms, second: Terms) -> str:
    """Why the values deny each other, or nothing if both may be true."""
    known, openings = lexicon(), {first[0].opening, second[0].opening}
    if "against" in openings:
        return ""
    if len(pair.verbs) > 1 and _have_one_verb(pair) and openings == {"by", ""}:
        return "one who did it"
    if "be" in pair.verbs and openings == {""}:
        return _single_complement(pair, first, second)
    if any(
        {opening or "-" for opening in openings} <= known.single_valued.get(verb, frozenset[str]())
        for verb in pair.verbs
    ):
        return _single_object(pair, first, second)
    if "be" in pair.verbs or (len(pair.verbs) > 1 and pair.verbs <= known.sets["locating"]):
        return _single_place(openings, first, second)
    if len(openings) > 1 and not openings <= {"by", "with", ""}:
        return ""
    if pair.first.is_passive and pair.second.is_passive:
        by_one = openings == {"by"} and pair.verbs <= known.sets["sole_subject"]
        return "" if pair.verbs & known.sets["many_valued_passive"] and not by_one else "one value at a time"
    return _single_by_mark(pair, first, second)


def _single_object(pair: Pair, first: Terms, second: Terms) -> str:
    """Of what is preferred there may be several kinds, unless both are of one kind or short."""
    if "prefer" in pair.verbs and len(first) + len(second) > 2 and not pair.shared("value"):
        return ""
    return "one value at a time"


def _single_place(openings: set[str], first: Terms, second: Terms) -> str:
    """Of where something is, or what it is used as."""
    named = any(term.is_name for term in (*first, *second))
    if len(openings) > 1:
        return "cannot be in both places" if openings <= _WHERE | {"with"} and not named else ""
    opening = openings.pop()
    if opening == "as":
        return "one is used as it"
    alike = _are_named(first, second) or not named
    return "cannot be in both places" if opening in _WHERE and alike else ""


def _single_by_mark(pair: Pair, first: Terms, second: Terms) -> str:
    """Of a verb that may have several objects, where a word says that there is one."""
    known, shared = lexicon(), pair.shared("value")
    if "began" in pair.turns and pair.verbs & known.sets["now_only"]:
        return "now another"
    if (
        pair.verbs <= _CHOOSING
        and _is_before_shared(pair.first, first, shared)
        and not pair.first.words("subject") - {"user"}
    ):
        return "one kind of the same"
    if shared & known.sets["marked"]:
        return "only one can be the one"
    if "use" in pair.verbs and any(
        term.opening in ("for", "as") and term.role == "adjunct" for term in pair.first.terms
    ):
        return "one is used for it"
    return "one at a time" if "have" in pair.verbs and shared & _BODY and _are_of_class(first, second) else ""


def _is_before_shared(clause: Clause, terms: Terms, shared: frozenset[str]) -> bool:
    """Whether terms tell which kind of what both name: `metric units`."""
    part = [term for term in clause.terms if term.role == "value" and term.opening == terms[0].opening]
    return bool(part) and part[-1].word in shared and part[-1] not in terms


def _single_complement(pair: Pair, first: Terms, second: Terms) -> str:
    """After `is`: the value of a named property, a name, or one of a class of which a thing has one."""
    known = lexicon()
    if not pair.first.words("subject") and not pair.second.words("subject"):
        return ""
    heads = {clause.head for clause in pair.both}
    marked = pair.shared("subject") & known.sets["marked"]
    if heads & known.sets["several"] and not marked:
        return ""
    if heads & known.sets["attribute"] or marked:
        return "one value of a property"
    if any("_" in head for head in heads):
        return "one value of a setting"
    if _are_of_class(first, second):
        return "one of a class"
    if _are_named(first, second) and not all(_has_only_names(clause) for clause in pair.both):
        return "one name"
    judged = any(term.measure or known.has("evaluative", term.word) for term in (*first, *second))
    return "one kind of the same" if pair.shared("value") and not judged else ""


def _are_named(first: Terms, second: Terms) -> bool:
    """Whether both have a name; a nationality is one only beside another."""
    nations = lexicon().sets["nationalities"]
    named = all(any(term.is_name for term in side) for side in (first, second))
    return named and any(term.word in nations for term in first) == any(term.word in nations for term in second)


def _has_only_names(clause: Clause) -> bool:
    return all(term.is_name or term.word == "user" for term in clause.terms if term.role == "subject")


def _are_of_class(first: Terms, second: Terms) -> bool:
    words = {first[-1].word, second[-1].word}
    return len(words) > 1 and any(words <= members for members in lexicon().classes)
