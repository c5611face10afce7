"""The weights by which pairs are suspected about which no rule decides: how they are made, and how good they are.

They are fitted to labelled pairs of the development and blind sets: those that the rules of before the blind sets did
not decide (`undecided.json`), and neighbours from all these memories in one namespace, labelled by hand
(`neighbours.jsonl`). The held-out sets are not looked at. How good it is on memories that nobody has seen is told by
leaving out one blind set at a time: the weights are fitted to the others, and asked about the pairs of that set about
which those early rules say nothing.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.conflicts import DATA, FAMILIES, static
from benchmarks.pairs import Labelled, read_pairs
from mnemon.consolidation.conflicts import Statement, find
from mnemon.consolidation.readings import reading_of
from mnemon.consolidation.suspicion import SIGNS, Embed, Signs, are_apart, can_be_weighed, signs, sketch, told

LABELS = DATA.parent / "suspicion"
WEIGHTS = Path(__file__).parent.parent / "src" / "mnemon" / "consolidation" / "suspicion.toml"
BLIND = tuple(f"blind_{number}" for number in range(1, 6))
THRESHOLD = 0.75
_CLASSES = ("none", "duplicate", "conflict")
_DECAY = 0.01  # of the weights, by which they stay small
_ROUNDS = 2000
_RATE, _MOMENTUM = 0.1, 0.9


@dataclass(frozen=True, slots=True)
class Weighed:
    """A labelled pair that may be suspected: its signs, and the sets whose memories they are."""

    sets: frozenset[str]
    family: str
    values: Signs


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights of signs for the families `duplicate` and `conflict`, against none of both; the first is the bias."""

    weights: Signs

    def family_of(self, values: Signs) -> tuple[str, float]:
        odds = np.exp(np.concatenate(([1.0], values)) @ self.weights)
        best = int(odds.argmax())
        return _CLASSES[best + 1], float(odds[best] / (1 + odds.sum()))


def weighed(pairs: Iterable[tuple[Labelled, frozenset[str]]], embed: Embed) -> list[Weighed]:
    """Those that no blocker keeps apart."""
    return [
        Weighed(sets, FAMILIES[pair.label], values)
        for pair, sets in pairs
        if (values := _signs(pair, embed)) is not None
    ]


def _signs(pair: Labelled, embed: Embed) -> Signs | None:
    readings = [reading_of(each.key, each.value) for each in pair.statements]
    if not all(map(can_be_weighed, readings)) or are_apart(*readings):
        return None
    values = [each.value for each in pair.statements]
    one, other = sketch(readings, list(map(told, readings, values)), embed)
    return signs(one, other) if one.terms and other.terms else None


def undecided() -> Iterator[tuple[Labelled, frozenset[str]]]:
    """The pairs of the sets that early rules did not decide."""
    ids_of_set = json.loads((LABELS / "undecided.json").read_text("utf-8"))
    for name, ids in ids_of_set.items():
        wanted = frozenset(ids)
        yield from ((pair, frozenset((name,))) for pair in read_pairs(DATA / f"{name}.jsonl") if pair.id in wanted)


def neighbours() -> Iterator[tuple[Labelled, frozenset[str]]]:
    """Memories of any of the sets that are near each other, with the sets that they are of."""
    for pair in read_pairs(LABELS / "neighbours.jsonl"):
        yield pair, frozenset(pair.domain.split("+"))


def fit(pairs: Sequence[Weighed]) -> Fit:
    """Multinomial logistic regression by descent, of standardised signs, with weights that stay small."""
    values = np.stack([pair.values for pair in pairs])
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread[spread < 1e-6] = 1.0
    known = np.column_stack((np.ones(len(pairs)), (values - mean) / spread))
    wanted = np.stack([[pair.family == each for each in _CLASSES] for pair in pairs]).astype(np.float64)
    weights, step = np.zeros((known.shape[1], len(_CLASSES))), np.zeros((known.shape[1], len(_CLASSES)))
    decay = np.full_like(weights, _DECAY)
    decay[0] = 0.0
    for _ in range(_ROUNDS):
        odds = np.exp(known @ weights)
        gradient = known.T @ (odds / odds.sum(axis=1, keepdims=True) - wanted) / len(pairs) + decay * weights
        step = _MOMENTUM * step + gradient
        weights -= _RATE * step
    against = weights[:, 1:] - weights[:, :1]
    scaled = against[1:] / spread[:, None]
    return Fit(np.vstack((against[0] - mean @ scaled, scaled)))


def left_out(asked: Sequence[Weighed], beside: Sequence[Weighed]) -> Iterator[tuple[str, int, int, int]]:
    """For each blind set how many pairs are suspected by the others' weights, and how many of these are right:
    called by their family, and of either family."""
    for name in BLIND:
        made = fit([pair for pair in (*asked, *beside) if name not in pair.sets])
        answers = [(pair, *made.family_of(pair.values)) for pair in asked if name in pair.sets]
        suspected = [(pair, family) for pair, family, score in answers if score >= THRESHOLD]
        right = sum(pair.family == family for pair, family in suspected)
        yield name, len(suspected), right, sum(pair.family != "none" for pair, _ in suspected)


def namespace() -> list[Statement]:
    """The memories of all sets, in one namespace."""
    sides = [each for path in sorted(DATA.glob("*.jsonl")) for pair in read_pairs(path) for each in pair.statements]
    return [Statement(number, "all", each.key, each.value) for number, each in enumerate(sides)]


def written(made: Fit) -> str:
    """The weights as they are kept."""
    lines = [
        "# By what pairs are suspected about which no rule decides. The odds of each family, against neither, are e to",
        "# the power of its signs times these. Made by `python -m benchmarks.suspicion --write`: a logistic regression",
        "# over labelled pairs of the development and blind sets of tests/data/conflicts, and of tests/data/suspicion.",
        "",
        "# How probable a pair must be.",
        f"threshold = {THRESHOLD}",
    ]
    for column, family in enumerate(("same", "conflict")):
        lines += ["", f"[{family}]", f"bias = {made.weights[0, column]:.3f}"]
        lines += [f"{sign} = {weight:.3f}" for sign, weight in zip(SIGNS, made.weights[1:, column], strict=True)]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None, show: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.suspicion", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--write", action="store_true", help="put the weights where the detector reads them")
    parser.add_argument("--suspected", action="store_true", help="list what is suspected among all memories")
    options = parser.parse_args(arguments)
    embed = static()
    asked, beside = weighed(undecided(), embed), weighed(neighbours(), embed)
    show(f"{len(asked)} pairs and {len(beside)} neighbours, suspected from {THRESHOLD} on; with one set left out:")
    for name, suspected, right, related in left_out(asked, beside):
        show(f"{name}: {suspected} suspected, {right} right, {related} of either family")
    text = written(fit([*asked, *beside]))
    if options.write:
        WEIGHTS.write_text(text, "utf-8")
    show(text)
    found = [each for each in find(namespace(), embed) if each.certainty == "suspected"]
    show(f"{len(found)} suspected among all memories")
    for each in found if options.suspected else ():
        show(f"{each.score:.2f} {each.kind}: {each.first.value!r} | {each.second.value!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
