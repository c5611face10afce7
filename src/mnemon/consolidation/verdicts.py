"""What a rule says about two clauses, and what the rules look at: what each has that the other has not."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from mnemon.consolidation.english.clauses import Clause, Role, Term
from mnemon.consolidation.english.lexicon import lexicon

Side = Literal["", "first", "second"]
Terms = tuple[Term, ...]

_SERVING = frozenset(("work", "play", "serv", "act"))
_LONG = 5  # letters of a word in which a slip of the pen is told from another word
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non-", "non")
_PRICE = ("fee", "worth", "total")
_IMPLIED = dict.fromkeys(("usd", "eur", "gbp", "jpy", "chf", "nok", "sek", "cent"), _PRICE) | {
    "grams": ("weight",),
    "celsius": ("temperature",),
    "contact": ("email", "phone", "contact", "live"),
    "clock": ("time", "hour"),
    "date": ("date", "day"),
    "weekday": ("day", "date"),
    "seconds": ("duration", "period"),
    "months": ("duration", "period"),
    "metres": ("distance",),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule found; `later` is the clause that replaces the other, if one says so."""

    family: Literal["same", "conflict"]
    rule: str
    reason: str
    score: float
    subject: str = ""
    attribute: str = ""
    later: Side = ""


@dataclass(frozen=True)
class Pair:
    """Two clauses and the terms that only one of them has; words that say little are left out."""

    first: Clause
    second: Clause
    only_first: Terms
    only_second: Terms

    @property
    def both(self) -> tuple[Clause, Clause]:
        return self.first, self.second

    @property
    def sides(self) -> tuple[tuple[Clause, Clause, Side], tuple[Clause, Clause, Side]]:
        """Each clause before the other, with its name."""
        return (self.first, self.second, "first"), (self.second, self.first, "second")

    @cached_property
    def only(self) -> Terms:
        return (*self.only_first, *self.only_second)

    @cached_property
    def verbs(self) -> frozenset[str]:
        return frozenset(clause.verb for clause in self.both)

    @cached_property
    def turns(self) -> frozenset[str]:
        return frozenset(clause.turn for clause in self.both)

    @property
    def is_of_one_time(self) -> bool:
        """Whether both speak of the present or both of the past; of what was done to something, either will do."""
        return self.first.is_past == self.second.is_past or self.first.is_passive or self.second.is_passive

    @property
    def one_is_denied(self) -> bool:
        return self.first.is_denied != self.second.is_denied

    @property
    def is_of_some(self) -> bool:
        """Whether one speaks of some of a kind only."""
        return any(lexicon().has("some", term.word) for clause in self.both for term in clause.terms)

    def only_of(self, clause: Clause) -> Terms:
        return self.only_first if clause is self.first else self.only_second

    def shared(self, role: Role) -> frozenset[str]:
        return self.first.words(role) & self.second.words(role)

    def same(self, rule: str, reason: str, score: float) -> Verdict:
        return Verdict("same", rule, reason, score, *_about(self.first))

    def conflict(self, rule: str, reason: str, score: float) -> Verdict:
        return Verdict("conflict", rule, reason, score, *_about(self.first), self._later())

    def _later(self) -> Side:
        changed = [clause.turn in ("began", "ended") for clause in self.both]
        if changed[0] != changed[1]:
            return "first" if changed[0] else "second"
        before = [clause.turn == "was" for clause in self.both]
        if before[0] != before[1]:
            return "second" if before[0] else "first"
        return ""


def pair_of(first: Clause, second: Clause) -> Pair:
    only_first, only_second = _missing(first, second), _missing(second, first)
    if _tell_a_job(first, second):
        only_first, only_second = (
            tuple(term for term in only if term.role != "verb") for only in (only_first, only_second)
        )
    only_first, only_second = _without_typos(only_first, only_second)
    if len(only_first) == len(only_second) == 1 and _denies_by_prefix(only_first[0], only_second[0]):
        return Pair(first, replace(second, is_denied=not second.is_denied), (), ())
    return Pair(first, second, only_first, only_second)


def _tell_a_job(first: Clause, second: Clause) -> bool:
    """`Is an engineer at Acme` and `works at Acme as an engineer`."""
    one, other = (first, second) if second.verb == "be" else (second, first)
    return one.verb in _SERVING and other.verb == "be" and any(term.opening == "as" for term in one.terms)


def _without_typos(first: Terms, second: Terms) -> tuple[Terms, Terms]:
    """Without words that are the same but for one slip of the pen."""
    for one in first:
        for other in second:
            if _is_slip(one, other):
                return _without_typos(
                    tuple(term for term in first if term is not one),
                    tuple(term for term in second if term is not other),
                )
    return first, second


def _is_slip(one: Term, other: Term) -> bool:
    """Two long common words that differ by one letter or by two changed round, of which one is no known word."""
    a, b = one.text.lower(), other.text.lower()
    if one.measure or other.measure or one.is_name or other.is_name or min(len(a), len(b)) < _LONG or a[0] != b[0]:
        return False
    return abs(len(a) - len(b)) <= 1 and lexicon().knows(a) != lexicon().knows(b) and _are_one_edit_apart(a, b)


def _are_one_edit_apart(a: str, b: str) -> bool:
    start = common_start(a, b)
    rest_a, rest_b = a[start:], b[start:]
    swapped = rest_a[:2] == rest_b[:2][::-1] and rest_a[2:] == rest_b[2:]
    return swapped or rest_a[1:] == rest_b[1:] or rest_a[1:] == rest_b or rest_a == rest_b[1:]


def common_start(a: str, b: str) -> int:
    """With how many letters both begin."""
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def said(terms: Iterable[Term]) -> str:
    return " ".join(term.text for term in terms)


def _about(clause: Clause) -> tuple[str, str]:
    subject = said(term for term in clause.terms if term.role == "subject")
    return subject, clause.head if clause.verb == "be" else clause.verb


def _missing(one: Clause, other: Clause) -> Terms:
    """The terms that the other has not, nor a measure that agrees; without weak words and those that a unit implies."""
    words = other.words()
    terms = [
        term
        for term, following in zip(one.terms, (*one.terms[1:], None), strict=True)
        if term.word not in words
        and not _says_little(term, following, other)
        and not _introduces(term, following, words)
    ]
    if not terms:
        return ()
    implied = {word for unit in _units(one) & _units(other) for word in _IMPLIED.get(unit, ())}
    measures = [term.measure for term in other.terms if term.measure]
    return tuple(
        term
        for term in terms
        if term.word not in implied and not (term.measure and any(term.measure.agrees(measure) for measure in measures))
    )


def implied_by(terms: Iterable[Term]) -> set[str]:
    """The properties that the units of some measures imply."""
    units = {measure.unit or measure.kind for term in terms if (measure := term.measure)}
    return {word for unit in units for word in _IMPLIED.get(unit, ())}


def _says_little(term: Term, following: Term | None, other: Clause) -> bool:
    """A weak word, what somebody named is beside the name, and when it was if the other does not say."""
    if term.opening == "when":
        return not any(each.opening == "when" for each in other.terms)
    if term.is_title and term.role == "subject" and following:
        return following.word in other.words("subject")
    return term.word in lexicon().sets["weak"] and not (term.is_name and term.role != "subject")


def _introduces(term: Term, following: Term | None, words: frozenset[str]) -> bool:
    """`error` in `error E42`, where the other has `E42` too."""
    if following is None or following.measure or following.role != term.role or following.word not in words:
        return False
    return not term.measure and any(char.isdigit() or char == "_" for char in following.text)


def _units(clause: Clause) -> set[str]:
    measures = [term.measure for term in clause.terms if term.measure]
    return {measure.unit if measure.kind == "amount" else measure.kind for measure in measures}


def _denies_by_prefix(one: Term, other: Term) -> bool:
    """`paid` and `unpaid`, `regular` and `irregular`, in the predicate."""
    short, long = sorted((one.word, other.word), key=len)
    in_predicate = {one.role, other.role} <= {"value", "verb"}
    return in_predicate and len(short) > 2 and any(long == prefix + short for prefix in _PREFIXES)
