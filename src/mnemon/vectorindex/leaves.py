"""Rows of vectors in the order of their namespaces, in leaves that are replaced and never changed.

What lies at or below a namespace is one stretch of rows, apart from the few that came last.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mnemon.vectorindex.signcodes import LONGEST, Bytes, Floats, Planes

Ids: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.intp]

FULL = LONGEST * 8 // 9  # rows of a leaf in order, before an eighth more comes
_FILLED = FULL * 3 // 4  # rows of each leaf when one is divided
_LEAST_ROOM = 64  # rows that a small leaf takes before it is put in order again; a larger takes an eighth
_LAST = "\U0010ffff"
GONE = -1


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows on their way into leaves."""

    ids: Ids
    keys: list[str]
    planes: Planes  # word by row
    floats: Floats | None

    @classmethod
    def of(cls, ids: Ids, namespaces: Sequence[str], codes: Bytes, floats: Floats | None) -> "Batch":
        planes = np.ascontiguousarray(codes.view(np.uint64).T)
        return cls(ids, [_key(namespace) for namespace in namespaces], planes, floats)

    @classmethod
    def joined(cls, batches: "Sequence[Batch]") -> "Batch":
        floats = [batch.floats for batch in batches if batch.floats is not None]
        return cls(
            np.concatenate([batch.ids for batch in batches]),
            [key for batch in batches for key in batch.keys],
            np.concatenate([batch.planes for batch in batches], axis=1),
            np.concatenate(floats) if len(floats) == len(batches) else None,
        )

    def take(self, rows: Sequence[int] | Rows) -> "Batch":
        floats = None if self.floats is None else self.floats[rows]
        return Batch(self.ids[rows], [self.keys[row] for row in rows], self.planes[:, rows], floats)

    def distinct(self) -> "Batch":
        """Without the rows whose id comes again later."""
        last = {id: row for row, id in enumerate(self.ids.tolist())}
        return self if len(last) == len(self.keys) else self.take(sorted(last.values()))

    def in_order(self) -> "Batch":
        if len(self.keys) < 2:
            return self
        return self.take(sorted(range(len(self.keys)), key=self.keys.__getitem__))

    def divided(self) -> "Iterator[Batch]":
        """Parts of equal size that leave their leaves some room to grow; the whole, if one leaf can hold it."""
        rows = len(self.keys)
        parts = 1 if rows <= FULL else -(-rows // _FILLED)
        if not rows:
            return
        for start, stop in pairwise(rows * part // parts for part in range(parts + 1)):
            floats = None if self.floats is None else self.floats[start:stop]
            yield Batch(self.ids[start:stop], self.keys[start:stop], self.planes[:, start:stop], floats)


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Some rows: the first `ordered` in the order of their keys, the others, up to `count`, as they came.

    Whoever sees a leaf sees `count` rows for ever: later versions write behind them in the same arrays.
    """

    serial: int  # the same in all versions
    keys: list[str]  # the distinct keys of the ordered rows ...
    starts: list[int]  # ... and where the rows of each begin; at last where they end
    late: list[str]  # the key of each other row
    ids: Ids  # GONE where a row was removed
    planes: Planes
    floats: Floats | None
    ordered: int
    count: int
    removed: int

    @classmethod
    def of(cls, serial: int, batch: Batch) -> "Leaf":
        """A leaf of rows that are in order, with room for more."""
        rows = len(batch.keys)
        size = rows + max(_LEAST_ROOM, rows // 8)
        runs = [(key, len(list(run))) for key, run in groupby(batch.keys)]
        starts = [0, *np.cumsum([length for _, length in runs]).tolist()]
        ids = np.full(size, GONE, np.int64)
        ids[:rows] = batch.ids
        planes = np.empty((len(batch.planes), size), np.uint64)
        planes[:, :rows] = batch.planes
        floats = None
        if batch.floats is not None:
            floats = np.empty((size, batch.floats.shape[1]), np.float32)
            floats[:rows] = batch.floats
        return cls(serial, [key for key, _ in runs], starts, [], ids, planes, floats, rows, rows, 0)

    @property
    def room(self) -> int:
        return len(self.ids) - self.count

    @property
    def live(self) -> int:
        return self.count - self.removed

    @property
    def float_bytes(self) -> int:
        return 0 if self.floats is None else self.floats.nbytes

    def with_more(self, batch: Batch) -> "Leaf":
        """With the rows of a batch for which there is room, and without floats if the batch has none."""
        rows = slice(self.count, self.count + len(batch.keys))
        self.late[self.count - self.ordered :] = batch.keys
        self.ids[rows] = batch.ids
        self.planes[:, rows] = batch.planes
        floats = self.floats if batch.floats is not None else None
        if floats is not None and batch.floats is not None:
            floats[rows] = batch.floats
        return self._replaced(self.ids, floats, rows.stop, self.removed)

    def without(self, rows: NDArray[np.int16]) -> "Leaf":
        ids = self.ids.copy()
        ids[rows] = GONE
        return self._replaced(ids, self.floats, self.count, self.removed + len(rows))

    def with_floats(self, floats: Floats | None) -> "Leaf":
        """With the floats of all rows, of which some may be gone, or with none."""
        if floats is None:
            return self._replaced(self.ids, None, self.count, self.removed)
        room = np.empty((len(self.ids), floats.shape[1]), np.float32)
        room[: self.count] = floats
        return self._replaced(self.ids, room, self.count, self.removed)

    def batch(self) -> Batch:
        """The rows that are not gone."""
        ordered = [key for key, (a, b) in zip(self.keys, pairwise(self.starts), strict=True) for _ in range(b - a)]
        keys = ordered + self.late[: self.count - self.ordered]
        rows = slice(0, self.count)
        whole = Batch(self.ids[rows], keys, self.planes[:, rows], None if self.floats is None else self.floats[rows])
        return whole.take(np.flatnonzero(whole.ids != GONE)) if self.removed else whole

    def within(self, low: str, high: str) -> "Iterator[Piece]":
        """The rows with keys from `low` to before `high`."""
        start, stop = self.starts[bisect_left(self.keys, low)], self.starts[bisect_left(self.keys, high)]
        if self.count == self.ordered:
            yield Piece.between(self, start, stop)
            return
        late = self.late[: self.count - self.ordered]
        rows = [row for row, key in enumerate(late, self.ordered) if low <= key < high]
        if len(rows) == len(late) and stop == self.ordered:
            yield Piece.between(self, start, self.count)
        else:
            yield Piece.between(self, start, stop)
            yield Piece.of(self, np.array(rows, np.intp))

    def _replaced(self, ids: Ids, floats: Floats | None, count: int, removed: int) -> "Leaf":
        keys = (self.serial, self.keys, self.starts, self.late)
        return Leaf(*keys, ids, self.planes, floats, self.ordered, count, removed)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows of one leaf that a search looks at."""

    leaf: Leaf
    rows: slice | Rows
    size: int

    @classmethod
    def between(cls, leaf: Leaf, start: int, stop: int) -> "Piece":
        return cls(leaf, slice(start, stop), stop - start)

    @classmethod
    def of(cls, leaf: Leaf, rows: Rows) -> "Piece":
        return cls(leaf, rows, len(rows))

    @property
    def ids(self) -> Ids:
        return self.leaf.ids[self.rows]

    @property
    def planes(self) -> Planes:
        rows = self.rows  # `take` is faster than brackets
        return self.leaf.planes[:, rows] if isinstance(rows, slice) else self.leaf.planes.take(rows, axis=1)

    def scores(self, query: Floats) -> Floats | None:
        """The products with the query, if the floats are here."""
        floats, rows = self.leaf.floats, self.rows
        if floats is None:
            return None
        return (floats[rows] if isinstance(rows, slice) else floats.take(rows, axis=0)) @ query

    def at(self, places: Rows) -> "Piece":
        return Piece.of(self.leaf, places + self.rows.start if isinstance(self.rows, slice) else self.rows[places])


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """All rows that a search looks at, piece by piece; none is empty."""

    pieces: list[Piece]
    ends: Rows  # how many rows there are up to the end of each piece
    size: int
    has_floats: bool

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> "Scope":
        some = [piece for piece in pieces if piece.size]
        ends = np.cumsum([piece.size for piece in some], dtype=np.intp)
        has_floats = all(piece.leaf.floats is not None for piece in some)
        return cls(some, ends, int(ends[-1]) if some else 0, has_floats)

    def at(self, places: Rows) -> list[Piece]:
        """The pieces that hold these rows of the scope; `places` ascend."""
        cuts = [0, *np.searchsorted(places, self.ends).tolist()]
        return [
            piece.at(places[start:stop] - (end - piece.size))
            for piece, end, start, stop in zip(self.pieces, self.ends.tolist(), cuts, cuts[1:], strict=False)
            if start < stop
        ]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """All leaves at one time, in the order of their keys, and the scopes that were looked up in them."""

    leaves: list[Leaf]
    firsts: list[str]  # no key in a leaf is smaller than its own, or larger than the next
    scopes: dict[tuple[str, ...], Scope] = field(default_factory=dict[tuple[str, ...], Scope])

    @classmethod
    def of(cls, leaves: list[Leaf]) -> "View":
        return cls(leaves, ["", *(leaf.keys[0] for leaf in leaves[1:])])

    def scope(self, prefixes: Sequence[str]) -> Scope:
        """The rows at or below any of the prefixes."""
        name = tuple(prefixes)
        scope = self.scopes.get(name)
        if scope is None:
            pieces = [piece for low, high in _ranges(name) for piece in self._between(low, high)]
            scope = self.scopes[name] = Scope.of(pieces)
        return scope

    def place(self, batch: Batch) -> Iterator[tuple[int, Batch]]:
        """Which rows of an ordered batch belong to which leaf, from the last leaf to the first."""
        homes = [bisect_right(self.firsts, key) - 1 for key in batch.keys]
        groups = [(home, [row for row, _ in run]) for home, run in groupby(enumerate(homes), lambda pair: pair[1])]
        for home, rows in reversed(groups):
            yield home, batch if len(groups) == 1 else batch.take(rows)

    def _between(self, low: str, high: str) -> Iterator[Piece]:
        begin = max(bisect_left(self.firsts, low) - 1, 0)
        for leaf in self.leaves[begin : bisect_left(self.firsts, high)]:
            yield from leaf.within(low, high)


def _key(namespace: str) -> str:
    """Sorts so that what lies below a namespace follows it at once: `a:b` comes before `a-b`."""
    return namespace.replace(":", "\x00")


def _ranges(prefixes: Sequence[str]) -> list[tuple[str, str]]:
    """The ranges of keys at or below the prefixes, none inside another."""
    ranges: list[tuple[str, str]] = []
    for key in sorted({_key(prefix) for prefix in prefixes}):
        if not ranges or key >= ranges[-1][1]:
            ranges.append((key, key + "\x01" if key else _LAST))
    return ranges
