"""An index of vectors in memory, built on numpy alone: exact where a scope is small, two-staged where it is large.

Every vector is held as a code, 48 bytes at 384 dimensions. The floats are kept beside the codes as far as a budget of
bytes allows; those that are not kept are asked from the caller, who has them in his table.

A small scope is one product of a matrix with the query. A large one is scanned by codes: the k-th best score of the
nearest rows by code is a floor, a row is dropped when a vector of that score would hardly have so distant a code, and
what remains is scored exactly. How many rows are scored thus follows from the data: a few hundred among sentences,
some per cent among vectors without any structure.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from mnemon.vectorindex.leaves import FULL, GONE, Batch, Ids, Leaf, Piece, Rows, Scope, View
from mnemon.vectorindex.signcodes import Bytes, Floats, Question, SignCodes

Fetch: TypeAlias = Callable[[Ids], Floats]

_EXACT = 16_384  # scopes up to here are multiplied, if their floats are at hand: as fast as scanning codes
_EXACT_SCATTERED = 2048  # the same, when the rows must be gathered first
_FETCHED = 256  # scopes up to here are fetched whole rather than scanned by code
_PROBED = 128  # rows that are scored to learn how good a row must be
_DOUBT = 2.5  # standard deviations by which a code may lie further away than expected: 1 in 160 does,
_SMALL_DOUBT = 3.2  # and 1 in 1 500 of a small scope, where it costs little to be careful
_BLURRED = 64  # codes of fewer dimensions tell too little
_NOWHERE = -1
_LOST = np.float32(-np.inf)  # the score of a row that is gone
_DIGITS = 6  # of scores that count: the others differ by how they were added up
_ALIKE = np.float32(10**-_DIGITS)
_NOTHING = np.empty(0, np.int64), np.empty(0, np.float32)


class VectorIndex:
    """The vectors of one space: nearest by cosine, at or below some namespaces.

    Vectors and queries have length 1. Ids are row ids: not negative, and not much larger than their number, as each
    takes four bytes up to the largest. A search may run while another thread writes, takes no lock, and sees a `put`
    or a `remove` wholly or not at all. `fetch` gives the vectors of ids that are not held here, a row of NaN for one
    that is gone; it must see all that was put before. Without it, all floats must be within the budget.
    """

    def __init__(self, dimension: int, *, float_budget: int = 256 * 2**20) -> None:
        self.codes = SignCodes(dimension)
        self._budget = float_budget
        self._spent = 0
        self._lock = threading.Lock()
        self._view = View.of([])
        self._leaves: dict[int, Leaf] = {}  # by serial
        self._homes = np.full(1024, _NOWHERE, np.int32)  # the serial of each id's leaf ...
        self._rows = np.zeros(1024, np.int16)  # ... and its row there
        self._serial = 0
        self._uses = 0
        self._used: dict[int, int] = {}  # when a leaf was last searched
        self._fetched: dict[int, int] = {}  # how many of its rows were fetched since

    def __len__(self) -> int:
        return sum(leaf.live for leaf in self._view.leaves)

    def size(self, prefixes: Sequence[str]) -> int:
        """How many rows a search at or below the prefixes looks at."""
        return self._view.scope(prefixes).size

    @property
    def float_bytes(self) -> int:
        """What the floats take, of the budget."""
        return self._spent

    def put(self, ids: Sequence[int] | Ids, namespaces: Sequence[str], vectors: Floats) -> None:
        """Add vectors, or replace those of the same id, whatever namespace these were in."""
        floats = np.ascontiguousarray(vectors, dtype=np.float32).reshape(len(ids), self.codes.dimension)
        self._put(Batch.of(np.asarray(ids, np.int64), namespaces, self.codes.encode(floats), floats))

    def put_codes(self, ids: Sequence[int] | Ids, namespaces: Sequence[str], codes: Bytes) -> None:
        """Like `put`, with codes that `codes.encode` once made; the floats are fetched when they are needed."""
        self._put(Batch.of(np.asarray(ids, np.int64), namespaces, codes, None))

    def remove(self, ids: Sequence[int] | Ids) -> None:
        """Forget vectors; ids that are not here are passed over."""
        with self._lock:
            leaves = list(self._view.leaves)
            self._forget(leaves, np.unique(np.asarray(ids, np.int64)))
            self._view = View.of(leaves)

    def search(
        self,
        query: Floats,
        prefixes: Sequence[str] = ("",),
        k: int = 10,
        *,
        allowed: Sequence[int] | Ids | None = None,
        fetch: Fetch | None = None,
    ) -> tuple[Ids, Floats]:
        """The ids and cosines of the k nearest at or below any of the prefixes and among the allowed.

        The best come first, and of those alike the smaller ids.
        """
        scope = self._view.scope(prefixes) if allowed is None else self._narrow(prefixes, np.asarray(allowed, np.int64))
        if k < 1 or not scope.size:
            return _NOTHING
        exact = _EXACT if allowed is None else _EXACT_SCATTERED
        if scope.size <= _FETCHED or (scope.has_floats and (scope.size <= exact or len(query) < _BLURRED)):
            places, answer = None, _best(scope.pieces, query, k, fetch)
        else:
            places, answer = _Hunt(scope, query, k, fetch).run(self.codes.question(query))
        if scope.size <= _EXACT:
            self._note(scope, scope.pieces if places is None else scope.at(places), fetch)
        return answer

    def scores(self, ids: Sequence[int] | Ids, query: Floats, *, fetch: Fetch | None = None) -> Floats:
        """The exact cosine of each id, NaN for one that is not here."""
        wanted = np.asarray(ids, np.int64)
        scores = np.full(len(wanted), np.nan, np.float32)
        with self._lock:
            serials = self._homes_of(wanted)
            rows = self._rows[np.where(serials == _NOWHERE, 0, wanted)]
            leaves = {serial: self._leaves[serial] for serial in set(serials.tolist()) - {_NOWHERE}}
        absent = np.zeros(len(wanted), bool)
        for serial, leaf in leaves.items():
            mine = serials == serial
            if leaf.floats is None:
                absent |= mine
            else:
                scores[mine] = leaf.floats.take(rows[mine], axis=0) @ query
        if absent.any():
            scores[absent] = _fetched(wanted[absent], fetch) @ query
        return scores

    # Searching

    def _narrow(self, prefixes: Sequence[str], allowed: Ids) -> Scope:
        """The rows at or below the prefixes with allowed ids."""
        with self._lock:
            scope, size = self._view.scope(prefixes), len(self._homes)
            serials = set(self._homes_of(allowed).tolist()) if len(allowed) <= _FETCHED else None
        chosen = np.zeros(size + 1, bool)  # the last stands for GONE
        chosen[allowed[(allowed >= 0) & (allowed < size)]] = True
        pieces = [piece for piece in scope.pieces if serials is None or piece.leaf.serial in serials]
        return Scope.of([piece.at(np.flatnonzero(chosen.take(piece.ids, mode="wrap"))) for piece in pieces])

    # Writing

    def _put(self, batch: Batch) -> None:
        batch = batch.distinct().in_order()
        if not len(batch.ids):
            return
        with self._lock:
            self._make_homes(int(batch.ids.max()) + 1)
            leaves = list(self._view.leaves)
            self._forget(leaves, batch.ids)
            for position, part in View.of(leaves).place(batch):
                leaf = leaves[position] if leaves else None
                if leaf is not None and leaf.room >= len(part.ids):
                    self._settle(part.ids, leaf.serial, leaf.count)
                    self._swap(leaves, position, 1, [leaf.with_more(part)])
                else:
                    sources = [part] if leaf is None else [leaf.batch(), part]
                    self._swap(leaves, position, len(sources) - 1, self._grow(sources))
            self._view = View.of(leaves)

    def _forget(self, leaves: list[Leaf], ids: Ids) -> None:
        serials = self._homes_of(ids)
        touched = set(serials.tolist()) - {_NOWHERE}
        for serial in touched:
            leaf = self._leaves[serial]
            self._swap(leaves, leaves.index(leaf), 1, [leaf.without(self._rows[ids[serials == serial]])])
        self._homes[ids[serials != _NOWHERE]] = _NOWHERE
        for emptied in [self._leaves[serial] for serial in touched]:
            if emptied in leaves and emptied.removed > emptied.count // 2:
                self._tidy(leaves, leaves.index(emptied))

    def _tidy(self, leaves: list[Leaf], position: int) -> None:
        """Write a leaf that is half removed anew, together with the next if both are small."""
        sources = leaves[position : position + 2]
        if sum(leaf.live for leaf in sources) > FULL // 2:
            sources = sources[:1]
        self._swap(leaves, position, len(sources), self._grow([leaf.batch() for leaf in sources]))

    def _grow(self, batches: list[Batch]) -> list[Leaf]:
        """New leaves of all these rows."""
        leaves: list[Leaf] = []
        for part in Batch.joined(batches).in_order().divided():
            self._serial += 1
            self._settle(part.ids, self._serial, 0)
            leaves.append(Leaf.of(self._serial, part))
        return leaves

    def _swap(self, leaves: list[Leaf], position: int, count: int, new: list[Leaf]) -> None:
        """Put leaves in the place of others, without their floats where these would exceed the budget."""
        old = leaves[position : position + count]
        for leaf in old:
            self._spent -= leaf.float_bytes
            del self._leaves[leaf.serial]
        for place, leaf in enumerate(new):
            kept = leaf if self._spent + leaf.float_bytes <= self._budget else leaf.with_floats(None)
            self._spent += kept.float_bytes
            self._leaves[kept.serial] = new[place] = kept
        for leaf in old:
            if leaf.serial not in self._leaves:
                self._fetched.pop(leaf.serial, None)
                self._used.pop(leaf.serial, None)
        leaves[position : position + count] = new

    def _homes_of(self, ids: Ids) -> Ids:
        known = (ids >= 0) & (ids < len(self._homes))
        return np.where(known, self._homes[np.where(known, ids, 0)], _NOWHERE)

    def _make_homes(self, size: int) -> None:
        known = len(self._homes)
        if size > known:
            more = max(size, 2 * known) - known
            self._homes = np.concatenate([self._homes, np.full(more, _NOWHERE, np.int32)])
            self._rows = np.concatenate([self._rows, np.zeros(more, np.int16)])

    def _settle(self, ids: Ids, serial: int, row: int) -> None:
        self._homes[ids] = serial
        self._rows[ids] = np.arange(row, row + len(ids))

    # Keeping floats where they are used

    def _note(self, scope: Scope, scored: Sequence[Piece], fetch: Fetch | None) -> None:
        """Take the floats of a scope in, once as many rows of one of its leaves have been fetched as it has."""
        if self._fetched:
            self._uses += 1
            self._used.update((piece.leaf.serial, self._uses) for piece in scope.pieces)
        if scope.has_floats or fetch is None:
            return
        due = False
        for leaf, rows in [(piece.leaf, piece.size) for piece in scored if piece.leaf.floats is None]:
            fetched = self._fetched[leaf.serial] = self._fetched.get(leaf.serial, 0) + rows
            due = due or fetched >= leaf.count
        if due:
            for leaf in {piece.leaf for piece in scope.pieces if piece.leaf.floats is None}:
                self._take_in(leaf, fetch)

    def _take_in(self, leaf: Leaf, fetch: Fetch) -> None:
        ids = leaf.ids[: leaf.count]
        if leaf.ids.size * self.codes.dimension * 4 > self._budget:
            return
        floats = _fetched(ids, fetch)
        if np.isnan(floats[ids != GONE]).any():
            return  # a row is gone from the table, and soon from here
        with self._lock:
            if self._leaves.get(leaf.serial) is not leaf:
                return
            leaves = list(self._view.leaves)
            filled = leaf.with_floats(floats)
            self._evict(leaves, filled.float_bytes)
            self._fetched[leaf.serial] = 0
            self._swap(leaves, leaves.index(leaf), 1, [filled])
            self._view = View.of(leaves)

    def _evict(self, leaves: list[Leaf], needed: int) -> None:
        """Let floats go, the longest unused first, until so many bytes are free."""
        holders = [leaf for leaf in leaves if leaf.floats is not None]
        for leaf in sorted(holders, key=lambda leaf: self._used.get(leaf.serial, 0)):
            if self._spent + needed <= self._budget:
                return
            self._swap(leaves, leaves.index(leaf), 1, [leaf.with_floats(None)])


class _Hunt:
    """One search of a scope that is too large to score every row."""

    def __init__(self, scope: Scope, query: Floats, k: int, fetch: Fetch | None) -> None:
        self._scope, self._query, self._k, self._fetch = scope, query, k, fetch
        self._scores = np.full(scope.size, np.nan, np.float32)  # NaN where it is not known yet
        self._probed = _PROBED + 2 * k
        self._doubt = _SMALL_DOUBT if scope.size <= _EXACT else _DOUBT

    def run(self, question: Question) -> tuple[Rows, tuple[Ids, Floats]]:
        """The rows that may be among the best, and the best of them."""
        places = self._promising(question)
        self._floor(places)
        near = places[_near(self._scores[places], self._k)]
        near = near[self._scores[near] > _LOST]
        ids = [piece.ids for piece in self._scope.at(near)]
        answer = _ordered(np.concatenate(ids), self._scores[near], self._k) if ids else _NOTHING
        return places, answer

    def _promising(self, question: Question) -> Rows:
        """The rows that can be among the k nearest, but for a small chance."""
        distances = _distances(question, self._scope)
        limit = _limit(distances, self._probed)
        floor = self._floor(np.flatnonzero(distances <= limit)[: 2 * self._probed])
        if floor <= 0:
            return np.arange(self._scope.size)
        places = np.flatnonzero(distances <= max(limit, question.farthest(floor, self._doubt)))
        if len(places) <= 8 * self._probed:
            return places
        weights = question.weigh(np.concatenate([piece.planes for piece in self._scope.at(places)], axis=1))
        heaviest = np.sort(np.argpartition(weights, -4 * self._probed)[-4 * self._probed :])
        floor = max(floor, self._floor(places[heaviest]))
        kept: Rows = places[weights >= min(weights[heaviest].min(), question.lightest(floor, self._doubt))]
        return kept

    def _floor(self, places: Rows) -> float:
        """The k-th best score of some rows, which the k-th best of all is not below; 0 if they are fewer."""
        unknown = places[np.isnan(self._scores[places])]
        if len(unknown):
            pieces = self._scope.at(unknown)
            scores = _scores(pieces, self._query, self._fetch)
            scores[np.isnan(scores) | (np.concatenate([piece.ids for piece in pieces]) == GONE)] = _LOST
            self._scores[unknown] = scores
        known = self._scores[places]
        return float(np.partition(known, -self._k)[-self._k]) if self._k <= len(known) else 0.0


def _best(pieces: Sequence[Piece], query: Floats, k: int, fetch: Fetch | None) -> tuple[Ids, Floats]:
    """The k best of some rows by their exact scores."""
    ids = pieces[0].ids if len(pieces) == 1 else np.concatenate([piece.ids for piece in pieces])
    scores = _scores(pieces, query, fetch)
    if any(piece.leaf.removed or piece.leaf.floats is None for piece in pieces):
        here = np.flatnonzero((ids != GONE) & ~np.isnan(scores))
        ids, scores = ids[here], scores[here]
    near = _near(scores, k)
    return _ordered(ids[near], scores[near], k)


def _near(scores: Floats, k: int) -> Rows:
    """Where the k best scores are, and those that are as good as the last of these."""
    if k >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -k)[-k] - _ALIKE)


def _ordered(ids: Ids, scores: Floats, k: int) -> tuple[Ids, Floats]:
    """The k best, best first; of those alike the smaller id first."""
    order = np.lexsort((ids, -np.round(scores.astype(np.float64), _DIGITS)))[:k]
    return ids[order], scores[order]


def _scores(pieces: Sequence[Piece], query: Floats, fetch: Fetch | None) -> Floats:
    """The exact score of each row; what must be fetched is fetched at once."""
    parts = [piece.scores(query) for piece in pieces]
    absent = [place for place, part in enumerate(parts) if part is None]
    if absent:
        fetched = _fetched(np.concatenate([pieces[place].ids for place in absent]), fetch) @ query
        ends = np.cumsum([pieces[place].size for place in absent])
        for place, part in zip(absent, np.split(fetched, ends[:-1]), strict=True):
            parts[place] = part
    known = [part for part in parts if part is not None]
    return known[0] if len(known) == 1 else np.concatenate(known)


def _fetched(ids: Ids, fetch: Fetch | None) -> Floats:
    if fetch is None:
        raise LookupError("the vectors are not all in memory, and there is no way to fetch them")
    return fetch(ids)


def _distances(question: Question, scope: Scope) -> Bytes:
    """The count of each row; the largest for those that are gone."""
    distances = np.empty(scope.size, np.uint8)
    for piece, end in zip(scope.pieces, scope.ends.tolist(), strict=True):
        part = distances[end - piece.size : end]
        question.count(piece.planes, part)
        if piece.leaf.removed:
            part[piece.ids == GONE] = 255
    return distances


def _limit(distances: Bytes, rows: int) -> int:
    """The smallest distance that so many rows do not exceed. Counting eight times is faster than sorting once."""
    low, high = 0, 255
    while low < high:
        middle = (low + high) // 2
        if np.count_nonzero(distances <= middle) >= rows:
            high = middle
        else:
            low = middle + 1
    return low
