"""Which memories, of those about which no rule decides, very probably say the same or deny each other.

A suspicion is a weighing of signs, not a proof: it is for a person or a language model to look at, and nothing else
may be done about it. The weights are in `suspicion.toml`, which says how they were made.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemon.consolidation.english.clauses import Clause, Term
from mnemon.consolidation.english.lexicon import lexicon
from mnemon.consolidation.readings import Reading
from mnemon.consolidation.rules import is_turned_round
from mnemon.consolidation.verdicts import Pair, common_start, pair_of
from mnemon.ports import Vector
from mnemon.texts import text_of

Embed = Callable[[Sequence[str]], Vector]
Signs = NDArray[np.float64]

_MOST = 3  # clauses of a memory that is weighed
_NEIGHBOURS = 3  # of each memory that are weighed
_NEAR = 0.4  # cosine of texts that are weighed
_STEM = 4  # letters
_STEMMED = 0.6  # of the shorter word
_AKIN = 0.85  # how alike two words of one stem are
_NAMES = 0.3  # how alike two names can be that are not the same
_MATCHED = 0.45  # how alike a word of the other must be to stand for one


class Suspicion(NamedTuple):
    """What two memories probably are to each other, and how probably."""

    family: Literal["same", "conflict"]
    score: float


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is weighed of a memory: the vector of its text, and its telling words with theirs."""

    reading: Reading
    text: Vector
    terms: tuple[Term, ...]
    words: Vector


# ---------------------------------------------------------------------------------------------------------- many pairs


def suspect(
    readings: Sequence[Reading], texts: Sequence[str], pairs: Iterable[tuple[int, int]], embed: Embed
) -> Iterator[tuple[tuple[int, int], Suspicion]]:
    """Of pairs that no rule decides, those of which each is the other's best match, and a very good one."""
    can_be = [can_be_weighed(reading) for reading in readings]
    within = [(one, other) for one, other in pairs if can_be[one] and can_be[other]]
    places = sorted({at for pair in within for at in pair})
    made = sketch([readings[at] for at in places], [texts[at] for at in places], embed)
    sketches = dict(zip(places, made, strict=True))
    weighed = [
        (weigh(signs(sketches[one], sketches[other])), (one, other))
        for one, other in _nearest(within, sketches)
        if not are_apart(readings[one], readings[other])
    ]
    seen: set[int] = set()
    for suspicion, pair in sorted(weighed, key=lambda each: (-each[0].score, each[1])):
        if suspicion.score >= _weights().threshold and seen.isdisjoint(pair):
            yield pair, suspicion
        seen.update(pair)


def can_be_weighed(reading: Reading) -> bool:
    """Whether it asserts a thing or two in words; records are compared field by field, and rules tell all of them."""
    is_record = reading.leaves is not None and len(reading.leaves) > 1
    asserted = all(clause.mood == "asserted" for clause in reading.clauses)
    return 0 < len(reading.clauses) <= _MOST and asserted and not is_record


def sketch(readings: Sequence[Reading], texts: Sequence[str], embed: Embed) -> list[Sketch]:
    """What is weighed of each memory; every word is embedded once."""
    terms = [_telling(reading) for reading in readings]
    spelt = sorted({_spelt(term) for some in terms for term in some})
    row = {word: at for at, word in enumerate(spelt)}
    vectors = _unit(embed([*spelt, *texts]))
    return [
        Sketch(reading, whole, some, vectors[[row[_spelt(term)] for term in some]])
        for reading, some, whole in zip(readings, terms, vectors[len(spelt) :], strict=True)
    ]


def told(reading: Reading, value: Any) -> str:
    """What a memory says, as text; a bare value only with its key."""
    text = text_of(value)
    return f"{reading.key}: {text}" if reading.leaves is not None and reading.key else text


def _unit(vectors: Vector) -> Vector:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _spelt(term: Term) -> str:
    return (term.text or term.word).lower()


def _telling(reading: Reading) -> tuple[Term, ...]:
    weak = lexicon().sets["weak"] - {"user"}
    terms = (term for clause in reading.clauses for term in clause.terms)
    return tuple(term for term in terms if term.word not in weak or term.measure or term.is_name)


def _nearest(pairs: Sequence[tuple[int, int]], sketches: Mapping[int, Sketch]) -> list[tuple[int, int]]:
    """The pairs of which each is among the nearest of the other, by the vectors of their texts."""
    near: dict[int, list[tuple[float, int]]] = {}
    for one, other in pairs:
        mine, theirs = sketches[one], sketches[other]
        if mine.terms and theirs.terms and (cosine := float(mine.text.dot(theirs.text))) >= _NEAR:
            near.setdefault(one, []).append((-cosine, other))
            near.setdefault(other, []).append((-cosine, one))
    kept = {at: {other for _, other in sorted(some)[:_NEIGHBOURS]} for at, some in near.items()}
    return [(one, other) for one, other in pairs if other in kept.get(one, ()) and one in kept.get(other, ())]


# ------------------------------------------------------------------------------------------------------ what rules out


def are_apart(one: Reading, other: Reading) -> bool:
    """Whether they are known to be of two things: other names, numbers, owners or values of what may have many."""
    if _have_other_subjects(one, other):
        return True
    pairs = [pair_of(mine, theirs) for mine, theirs in product(one.clauses, other.clauses)]
    if any(pair.is_of_some or _have_other_owners(pair) or _are_bounded(pair) for pair in pairs):
        return True
    return len(pairs) == 1 and any(rule(pairs[0]) for rule in _APART)


def _are_opposed(pair: Pair) -> bool:
    """`Begins` and `ends`, `length` and `width`: two properties, each of which may be as it says."""
    mine, theirs = ({term.word for term in only} for only in (pair.only_first, pair.only_second))
    return any(mine & group and theirs & group for group in lexicon().contrasts)


def _is_wished(pair: Pair) -> bool:
    """`Wants to visit Iceland` and `has visited Iceland`."""
    return len({lexicon().has("wanting", clause.verb) for clause in pair.both}) > 1


def _have_other_owners(pair: Pair) -> bool:
    return bool(pair.first.whose and pair.second.whose and pair.first.whose != pair.second.whose)


def _are_bounded(pair: Pair) -> bool:
    """`At least 100` allows `120`, and is not the same."""
    mine, theirs = ([term.measure for term in clause.terms if term.measure] for clause in pair.both)
    return any(each.agrees(their) and not each.is_same(their) for each in mine for their in theirs)


def _have_other_subjects(one: Reading, other: Reading) -> bool:
    """Whether each is about somebody or something numbered whom the other does not mention."""
    mine, theirs = ({term.word for clause in each.clauses for term in clause.terms} for each in (one, other))
    return bool(_subjects(one) - theirs) and bool(_subjects(other) - mine)


def _subjects(reading: Reading) -> set[str]:
    terms = (term for clause in reading.clauses for term in clause.terms if term.role == "subject")
    return {term.word for term in terms if term.is_name or term.word == "user" or any(map(str.isdigit, term.text))}


def _differ_in_measures(pair: Pair) -> bool:
    """Nothing but measures differs, and the rules say that these are beside each other."""
    return bool(pair.only) and all(term.measure for term in pair.only)


def _are_of_many(pair: Pair) -> bool:
    """`Likes tea` and `likes coffee`: several values of what may have many."""
    roles = {term.role for term in pair.only}
    return len(pair.verbs) == 1 and bool(pair.only_first and pair.only_second) and roles <= {"value", "adjunct"}


def _tells_more(pair: Pair) -> bool:
    """One says when, where, how much or whose besides."""
    if pair.only_first and pair.only_second:
        return False
    return any(term.measure or term.is_name or term.role in ("adjunct", "subject") for term in pair.only)


_APART = (is_turned_round, _are_opposed, _is_wished, _differ_in_measures, _are_of_many, _tells_more)

# --------------------------------------------------------------------------------------------------------------- signs

SIGNS = (
    "cosine", "least_covered", "most_covered", "same_words", "worst_word", "both_left", "most_left", "names_left",
    "name_left", "same_measures", "other_measures", "more_measures", "denied", "change", "turn", "past", "subject",
    "verb", "value", "more_clauses", "contained", "closed",
)  # fmt: skip
"""What is weighed, in the order of `signs`."""


def signs(one: Sketch, other: Sketch) -> Signs:
    """The numbers that are weighed, the same whichever comes first."""
    alike = _alikeness(one, other)
    mine, theirs = alike.max(axis=1), alike.max(axis=0)
    left = [_left(each, best) for each, best in ((one, mine), (other, theirs))]
    names = sorted(sum(term.is_name for term in each) for each in left)
    covered = sorted((float(mine.mean()), float(theirs.mean())))
    exact = sorted((float((mine >= 1).mean()), float((theirs >= 1).mean())))
    counts = sorted(map(len, left))
    words = [{term.word for term in each.terms} for each in (one, other)]
    return np.array((
        float(one.text @ other.text), *covered, len(words[0] & words[1]) / len(words[0] | words[1]),
        min(mine.min(), theirs.min()), *counts, names[0], names[0] == 0 < names[1], *_measures(one, other),
        *(_differ(one, other, each) for each in (_is_denied, _is_change, _turns, _is_past)),
        _part(one, other, mine, theirs, ("subject",)), _verbs(one, other),
        _part(one, other, mine, theirs, ("value", "adjunct")),
        abs(len(one.reading.clauses) - len(other.reading.clauses)), exact[1] == 1 > exact[0], counts[1] == 0,
    ), np.float64)  # fmt: skip


def _alikeness(one: Sketch, other: Sketch) -> Vector:
    """How alike each word of one is to each of the other, from 0 to 1."""
    alike = np.clip(one.words @ other.words.T, 0.0, 0.99)
    for row, mine in enumerate(one.terms):
        for column, theirs in enumerate(other.terms):
            alike[row, column] = _alike(mine, theirs, float(alike[row, column]))
    return alike


def _alike(mine: Term, theirs: Term, cosine: float) -> float:
    if mine.word == theirs.word or (mine.measure and theirs.measure and mine.measure.agrees(theirs.measure)):
        return 1.0
    if mine.measure or theirs.measure:
        return 0.0
    if mine.is_name and theirs.is_name:
        return min(cosine, _NAMES)
    return max(cosine, _AKIN) if _are_of_one_stem(_spelt(mine), _spelt(theirs)) else cosine


def _are_of_one_stem(one: str, other: str) -> bool:
    shared = common_start(one, other)
    return shared >= _STEM and shared >= _STEMMED * min(len(one), len(other))


def _left(mine: Sketch, best: Vector) -> list[Term]:
    """The words for which the other has none."""
    return [term for term, alike in zip(mine.terms, best, strict=True) if alike < _MATCHED and not term.measure]


def _measures(one: Sketch, other: Sketch) -> tuple[int, int, int]:
    """How many measures agree, differ, and are in one of them only."""
    mine, theirs = ([term.measure for term in each.terms if term.measure] for each in (one, other))
    left = [each for each in mine if not any(each.agrees(their) for their in theirs)]
    over = [each for each in theirs if not any(each.agrees(my) for my in mine)]
    differing = min(
        sum(any(each.comparable(their) for their in over) for each in left),
        sum(any(their.comparable(each) for each in left) for their in over),
    )
    same = min(len(mine) - len(left), len(theirs) - len(over))
    return min(same, 2), min(differing, 2), min(len(left) + len(over) - 2 * differing, 2)


def _differ(one: Sketch, other: Sketch, what: Callable[[Clause], object]) -> bool:
    first, second = ({what(clause) for clause in each.reading.clauses} - {False, ""} for each in (one, other))
    return first != second


def _is_denied(clause: Clause) -> bool:
    return clause.is_denied


def _is_change(clause: Clause) -> bool:
    return clause.verb in lexicon().change or clause.verb in lexicon().ending


def _turns(clause: Clause) -> str:
    return clause.turn


def _is_past(clause: Clause) -> bool:
    return clause.is_past


def _part(one: Sketch, other: Sketch, mine: Vector, theirs: Vector, roles: tuple[str, ...]) -> float:
    """How well the words in these parts of each are covered by the other."""
    sums = 0.0
    for each, best in ((one, mine), (other, theirs)):
        chosen = [float(alike) for term, alike in zip(each.terms, best, strict=True) if term.role in roles]
        sums += sum(chosen) / len(chosen) if chosen else 0.5
    return sums / 2


def _verbs(one: Sketch, other: Sketch) -> bool:
    """Whether they share a verb."""
    first, second = ({clause.verb for clause in each.reading.clauses if clause.verb} for each in (one, other))
    return bool(first & second)


# ------------------------------------------------------------------------------------------------------------- weights


@dataclass(frozen=True, slots=True)
class _Weights:
    same: Signs
    conflict: Signs
    bias: tuple[float, float]
    threshold: float


@cache
def _weights() -> _Weights:
    table = tomllib.loads(files("mnemon.consolidation").joinpath("suspicion.toml").read_text("utf-8"))
    same, conflict = (np.array([table[family][sign] for sign in SIGNS]) for family in ("same", "conflict"))
    return _Weights(same, conflict, (table["same"]["bias"], table["conflict"]["bias"]), table["threshold"])


def weigh(values: Signs) -> Suspicion:
    """Whether two memories rather say the same or deny each other, and how probable that is."""
    weights = _weights()
    same, conflict = np.exp((values @ weights.same + weights.bias[0], values @ weights.conflict + weights.bias[1]))
    family, chosen = ("same", same) if same > conflict else ("conflict", conflict)
    return Suspicion(family, float(chosen / (1 + same + conflict)))
