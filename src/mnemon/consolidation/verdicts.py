"""What a rule says about two clauses, and what the rules look at: what each has that the other has not."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from mnemon.consolidation.english.clauses import Clause, Role, Term
from mnemon.consolidation.english.lexicon import lexicon

Side = Literal["", "first", "second"]
Terms = tuple[Term, ...]

_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non-", "non")
_PRICE = ("fee", "worth", "total")
_IMPLIED = dict.fromkeys(("usd", "eur", "gbp", "jpy", "chf", "nok", "sek"), _PRICE) | {
    "grams": ("weight",),
    "celsius": ("temperature",),
    "contact": ("email", "phone", "contact", "address"),
    "clock": ("time",),
    "seconds": ("duration",),
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
    if len(only_first) == len(only_second) == 1 and _denies_by_prefix(only_first[0], only_second[0]):
        return Pair(first, replace(second, is_denied=not second.is_denied), (), ())
    return Pair(first, second, only_first, only_second)


def said(terms: Iterable[Term]) -> str:
    return " ".join(term.text for term in terms)


def _about(clause: Clause) -> tuple[str, str]:
    subject = said(term for term in clause.terms if term.role == "subject")
    return subject, clause.head if clause.verb == "be" else clause.verb


def _missing(one: Clause, other: Clause) -> Terms:
    """The terms that the other has not, nor a measure that agrees; without weak words and those that a unit implies."""
    words, weak = other.words(), lexicon().sets["weak"]
    terms = [
        term
        for term, following in zip(one.terms, (*one.terms[1:], None), strict=True)
        if term.word not in words and term.word not in weak and not _introduces(term, following, words)
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


def _introduces(term: Term, following: Term | None, words: frozenset[str]) -> bool:
    """`error` in `error E42`, where the other has `E42` too."""
    if following is None or following.measure or following.role != term.role or following.word not in words:
        return False
    return not term.measure and any(char.isdigit() or char == "_" for char in following.word)


def _units(clause: Clause) -> set[str]:
    measures = [term.measure for term in clause.terms if term.measure]
    return {measure.unit if measure.kind == "amount" else measure.kind for measure in measures}


def _denies_by_prefix(one: Term, other: Term) -> bool:
    """`paid` and `unpaid`, `regular` and `irregular`, in the predicate."""
    short, long = sorted((one.word, other.word), key=len)
    in_predicate = {one.role, other.role} <= {"value", "verb"}
    return in_predicate and len(short) > 2 and any(long == prefix + short for prefix in _PREFIXES)
