"""How good a ranking is, by what should have been found."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Judgement:
    """One question's answer, or the mean of many; all between 0 and 1 but `tokens`."""

    recall_5: float
    recall_10: float
    recall_20: float
    all_10: float
    """Whether everything was in the first ten."""
    ndcg_10: float
    mrr: float
    tokens: float
    """How many tokens the first ten are."""


def judge(found: Sequence[str], wanted: set[str], tokens: int) -> Judgement:
    """`found` is best first and holds nothing twice."""
    hits = [name in wanted for name in found]
    gain = sum(hit / math.log2(place + 2) for place, hit in enumerate(hits[:10]))
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(wanted), 10)))
    first = next((place for place, hit in enumerate(hits) if hit), None)
    return Judgement(
        *(sum(hits[:depth]) / len(wanted) for depth in (5, 10, 20)),
        float(sum(hits[:10]) == len(wanted)),
        gain / ideal,
        0.0 if first is None else 1 / (first + 1),
        tokens,
    )


def mean(judgements: Sequence[Judgement]) -> Judgement:
    return Judgement(*(fmean(getattr(each, field.name) for each in judgements) for field in fields(Judgement)))
