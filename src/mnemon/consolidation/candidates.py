"""Which memories are worth comparing: those that share words, or whose vectors are near, never all with all."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from mnemon.ports import Vector

_RAREST = 16  # words of a memory that are looked at
_CROWD = 24  # how many memories may share some words before another word is asked for
_NEIGHBOURS = 4
_NEAR = 0.75  # cosine
_BLOCK = 1024  # rows


def sharing_words(words: Sequence[frozenset[str]]) -> set[tuple[int, int]]:
    """Pairs that share two words, or three where many share two: the rarest words of each are asked."""
    counts = Counter(word for each in words for word in each)
    rarest = [tuple(sorted(each, key=lambda word: (counts[word], word))[:_RAREST]) for each in words]
    found: set[tuple[int, int]] = set()
    for members in _groups(range(len(words)), rarest, ()):
        found.update(combinations(members, 2))
    return found


def _groups(members: Iterable[int], rarest: Sequence[tuple[str, ...]], chosen: tuple[str, ...]) -> Iterator[list[int]]:
    """Those that share words, in groups that are no crowd."""
    groups: Mapping[tuple[str, ...], list[int]] = defaultdict(list)
    for member in members:
        mine = rarest[member]
        if chosen:
            others = [(*chosen, word) for word in mine if word not in chosen]
        else:
            others = [tuple(sorted(pair)) for pair in combinations(mine, 2)] or [mine]
        for key in others:
            groups[key].append(member)
    for key, group in groups.items():
        if 1 < len(group) <= _CROWD:
            yield group
        elif len(group) > _CROWD and len(key) == 2:
            yield from _groups(group, rarest, key)


def near_vectors(vectors: Mapping[int, Vector]) -> set[tuple[int, int]]:
    """Each memory with the few whose vectors are nearest to its own; vectors are of unit length."""
    places = sorted(vectors)
    found: set[tuple[int, int]] = set()
    if len(places) < 2:
        return found
    matrix = np.stack([vectors[place] for place in places])
    for start in range(0, len(places), _BLOCK):
        scores = matrix[start : start + _BLOCK] @ matrix.T
        scores[np.arange(len(scores)), np.arange(start, start + len(scores))] = -1.0
        nearest = np.argpartition(scores, -min(_NEIGHBOURS, len(places) - 1), axis=1)[:, -_NEIGHBOURS:]
        for row, others in enumerate(nearest):
            mine = places[start + row]
            for other in others:
                if scores[row, other] >= _NEAR:
                    one, another = sorted((mine, places[int(other)]))
                    found.add((one, another))
    return found
