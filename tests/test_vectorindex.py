"""The index beside exact search: whatever is put, removed and asked, the answers agree."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mnemon.vectorindex import VectorIndex, index, leaves, signcodes

NAMES = ["user:al", "user:alice", "user:alice:work", "user:al-b", "user:al!", "app:x", "app:x:y", "user:bob"]
PREFIXES = ["", "user", "app", "user:al", "user:alice", "user:bob", "app:x", "nobody"]


def unit(vectors):
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def covers(prefix, name):
    return prefix in ("", name) or name.startswith(prefix + ":")


class Shelf:
    """What the index should know: a dict, searched one by one."""

    def __init__(self, dimension):
        self.rows = {}
        self.dimension = dimension

    def put(self, ids, names, vectors):
        for id, name, vector in zip(ids, names, vectors, strict=True):
            self.rows[int(id)] = (name, vector)

    def remove(self, ids):
        for id in ids:
            self.rows.pop(int(id), None)

    def fetch(self, ids):
        absent = np.full(self.dimension, np.nan, np.float32)
        return np.array([self.rows[i][1] if i in self.rows else absent for i in ids.tolist()], np.float32)

    def search(self, query, prefixes, k, allowed=None):
        ids = [
            id
            for id, (name, _) in self.rows.items()
            if any(covers(p, name) for p in prefixes) and (allowed is None or id in allowed)
        ]
        scores = np.array([self.rows[id][1] @ query for id in ids], np.float32)
        order = np.argsort(-scores)[:k]
        return np.array(ids, np.int64)[order], scores[order]


def recall(found, expected):
    """The share of the expected scores that were reached: equal scores are as good as equal ids."""
    return np.mean(found[1][: len(expected[1])] >= expected[1] - 1e-5) if len(expected[1]) else 1.0


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def clustered(rng, rows, dimension, centres, noise):
    middle = unit(rng.standard_normal((centres, dimension)))
    return unit(middle[rng.integers(0, centres, rows)] + noise * unit(rng.standard_normal((rows, dimension))))


def filled(vectors, names, **options):
    found, shelf = VectorIndex(vectors.shape[1], **options), Shelf(vectors.shape[1])
    ids = np.arange(len(vectors)) + 5
    found.put(ids, names, vectors)
    shelf.put(ids, names, vectors)
    return found, shelf


def test_an_empty_index_finds_nothing():
    ids, scores = VectorIndex(8).search(unit(np.ones(8)), [""], 5)
    assert len(ids) == len(scores) == 0


def test_a_prefix_covers_whole_segments_only(rng):
    vectors = unit(rng.standard_normal((len(NAMES), 8)))
    found, _ = filled(vectors, NAMES)
    for prefix in PREFIXES:
        ids, _ = found.search(vectors[0], [prefix], 100)
        assert {NAMES[id - 5] for id in ids} == {name for name in NAMES if covers(prefix, name)}


def test_overlapping_prefixes_find_a_row_once(rng):
    found, _ = filled(unit(rng.standard_normal((len(NAMES), 8))), NAMES)
    ids, _ = found.search(unit(np.ones(8)), ["user", "user:alice", "user"], 100)
    assert len(ids) == len(set(ids.tolist())) == 6


def test_a_vector_put_again_moves_and_changes(rng):
    vectors = unit(rng.standard_normal((3, 8)))
    found, _ = filled(vectors[:2], ["user:al", "user:bob"])
    found.put([5], ["app:x"], vectors[2:])
    assert found.search(vectors[0], ["user:al"], 5)[0].tolist() == []
    assert found.search(vectors[2], ["app"], 5)[1] == pytest.approx([1.0], abs=1e-5)
    assert len(found) == 2


def test_all_rows_can_go_and_come_again(rng):
    vectors = unit(rng.standard_normal((500, 8)))
    found, _ = filled(vectors, [NAMES[i % 8] for i in range(500)])
    found.remove(range(600))
    assert len(found) == found.float_bytes == len(found.search(vectors[0], [""], 5)[0]) == 0
    found.put([3], ["user:al"], vectors[:1])
    assert found.search(vectors[0], ["user"], 5)[0].tolist() == [3]


def test_the_last_of_equal_ids_in_one_batch_counts(rng):
    vectors = unit(rng.standard_normal((2, 8)))
    found = VectorIndex(8)
    found.put([3, 3], ["user:al", "user:bob"], vectors)
    assert found.search(vectors[1], [""], 5)[0].tolist() == [3]
    assert found.search(vectors[1], ["user:al"], 5)[0].tolist() == []


@pytest.mark.parametrize("rows", [40, 30_000])
def test_of_those_alike_the_smaller_ids_come_first(rng, rows):
    vectors = clustered(rng, rows, 64, 30, 0.7)
    same = rng.permutation(rows)[: rows // 4]
    vectors[same] = vectors[same[0]]
    found = VectorIndex(64)
    for part in np.array_split(rng.permutation(rows), 5):
        found.put(part, [f"user:{n % 7}" for n in part], vectors[part])
    ids, scores = found.search(vectors[same[0]], [""], 6)
    assert ids.tolist() == np.sort(same)[:6].tolist()
    assert scores == pytest.approx(np.ones(6), abs=1e-5)


def test_scores_are_exact_and_unknown_ids_have_none(rng):
    vectors = unit(rng.standard_normal((50, 16)))
    found, shelf = filled(vectors, ["user:al"] * 50)
    bare, _ = filled(vectors, ["user:al"] * 50, float_budget=0)
    asked = np.array([9, 7, 9999, -4, 54])
    for some in (found, bare):
        scores = some.scores(asked, vectors[2], fetch=shelf.fetch)
        assert scores[[0, 1, 4]] == pytest.approx(vectors[[4, 2, 49]] @ vectors[2], abs=1e-5)
        assert np.isnan(scores[[2, 3]]).all()


def test_without_floats_or_a_way_to_fetch_them_it_says_so(rng):
    found, _ = filled(unit(rng.standard_normal((10, 16))), ["user:al"] * 10, float_budget=0)
    with pytest.raises(LookupError):
        found.search(unit(np.ones(16)), [""], 3)


@pytest.mark.parametrize("budget", [0, 8 * 2**20, 2**30], ids=["codes", "some", "all"])
@pytest.mark.parametrize("kind", ["sentences", "noise"])
def test_large_scopes_find_what_exact_search_finds(rng, kind, budget):
    rows, dimension = 30_000, 384
    vectors = clustered(rng, rows + 20, dimension, 600, 0.8) if kind == "sentences" else None
    if vectors is None:
        vectors = unit(rng.standard_normal((rows + 20, dimension)))
    vectors, queries = vectors[:rows], vectors[rows:]
    names = [f"user:{n}" for n in rng.integers(0, 50, rows)]
    found, shelf = VectorIndex(dimension, float_budget=budget), lambda ids: vectors[ids]
    for start in range(0, rows, 7000):
        found.put(np.arange(start, min(start + 7000, rows)), names[start : start + 7000], vectors[start : start + 7000])
    hits = 0
    for query in queries:
        best = np.argsort(-(vectors @ query))[:10]
        hits += len(set(best.tolist()) & set(found.search(query, [""], 10, fetch=shelf)[0].tolist()))
    assert hits / (10 * len(queries)) >= 0.99
    assert found.float_bytes <= budget


def test_floats_are_kept_where_they_are_used(rng):
    vectors = unit(rng.standard_normal((40_000, 64)))
    names = [f"user:{n}" for n in rng.integers(0, 20, 40_000)]
    found = VectorIndex(64, float_budget=5 * 2**20)
    found.put(np.arange(40_000), names, vectors)
    calls = []

    def fetch(ids):
        calls.append(len(ids))
        return vectors[ids]

    for name in ("user:3", "user:15"):
        for _ in range(60):
            ids, _ = found.search(vectors[1], [name], 10, fetch=fetch)
        calls.clear()
        found.search(vectors[1], [name], 10, fetch=fetch)
        mine = np.flatnonzero(np.array(names) == name)
        assert not calls
        assert ids.tolist() == mine[np.argsort(-(vectors[mine] @ vectors[1]))[:10]].tolist()
        assert found.float_bytes <= 5 * 2**20


def test_stored_codes_give_the_same_answers(rng):
    vectors = clustered(rng, 5000, 128, 100, 0.7)
    found, shelf = filled(vectors, ["user:al"] * 5000)
    again = VectorIndex(128)
    again.put_codes(np.arange(5000) + 5, ["user:al"] * 5000, found.codes.encode(vectors))
    expected = found.search(vectors[3], [""], 10)
    assert recall(again.search(vectors[3], [""], 10, fetch=shelf.fetch), expected) == 1


def test_rows_that_are_gone_from_the_table_are_not_found(rng):
    vectors = clustered(rng, 3000, 64, 20, 0.7)
    found, shelf = filled(vectors, ["user:al"] * 3000, float_budget=0)
    nearest = found.search(vectors[3], [""], 3, fetch=shelf.fetch)[0]
    shelf.remove(nearest)
    for _ in range(5):
        ids, scores = found.search(vectors[3], [""], 10, fetch=shelf.fetch)
        assert not set(ids.tolist()) & set(nearest.tolist())
        assert not np.isnan(scores).any()


def test_counting_by_table_counts_the_same(rng):
    words = rng.integers(0, 2**63, (6, 300)).astype(np.uint64) * np.uint64(2)
    out = np.empty(words.shape, np.uint8)
    signcodes._count_by_table(words, out=out)
    assert out.tolist() == [[int(word).bit_count() for word in row] for row in words]


def test_codes_are_the_same_in_every_process():
    code = signcodes.SignCodes(100).encode(unit(np.arange(1, 101)[None]))
    assert code.shape == (1, 16)
    expected = bytes.fromhex("17aee434e8e91b013c7df92f90000000")
    # Another BLAS may round a coordinate next to zero to the other side.
    assert (int.from_bytes(code[0]) ^ int.from_bytes(expected)).bit_count() <= 1


def test_searches_run_while_vectors_are_put_and_removed(rng):
    """Given a row that is replaced again and again, a search always finds it once."""
    vectors = clustered(rng, 6000, 64, 50, 0.5)
    found, _ = filled(vectors, ["user:al"] * 6000)
    stop, wrong = threading.Event(), []

    def read():
        while not stop.is_set():
            ids, scores = found.search(vectors[10], [""], 5)
            if ids.tolist().count(15) != 1 or abs(scores[0] - 1) > 1e-4:
                wrong.append((ids, scores))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(400):
        found.put([15], ["user:al"], vectors[10:11])
        found.put([7000 + turn], [f"user:{turn % 9}"], vectors[turn : turn + 1] * -1)
        found.remove([6900 + turn])
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong


class Compared(RuleBasedStateMachine):
    """Small leaves, so that few rows divide, merge and lose their floats."""

    dimension = 64

    @initialize(budget=st.sampled_from([0, 20_000, 10**9]), seed=st.integers(0, 99))
    def begin(self, budget, seed):
        self.rng = np.random.default_rng(seed)
        self.index, self.shelf = VectorIndex(self.dimension, float_budget=budget), Shelf(self.dimension)
        self.budget = budget

    @rule(count=st.integers(1, 60), top=st.integers(0, 300), names=st.lists(st.sampled_from(NAMES), min_size=1))
    def put(self, count, top, names):
        ids = self.rng.integers(0, top + 1, count)
        chosen = [names[i % len(names)] for i in range(count)]
        vectors = unit(self.rng.standard_normal((count, self.dimension)))
        self.index.put(ids, chosen, vectors)
        self.shelf.put(ids, chosen, vectors)

    @rule(ids=st.lists(st.integers(0, 400), max_size=80))
    def remove(self, ids):
        self.index.remove(ids)
        self.shelf.remove(ids)

    @rule(
        prefixes=st.lists(st.sampled_from(PREFIXES), max_size=3),
        k=st.integers(0, 30),
        allowed=st.none() | st.lists(st.integers(-2, 2000), max_size=60),
    )
    def search(self, prefixes, k, allowed):
        query = unit(self.rng.standard_normal(self.dimension))
        ids, scores = self.index.search(query, prefixes, k, allowed=allowed, fetch=self.shelf.fetch)
        expected = self.shelf.search(query, prefixes, k, allowed)
        assert scores == pytest.approx(expected[1], abs=1e-5)
        assert len(set(ids.tolist())) == len(ids)
        assert self.index.scores(ids, query, fetch=self.shelf.fetch) == pytest.approx(scores, abs=1e-5)

    @invariant()
    def is_sound(self):
        if hasattr(self, "index"):
            assert len(self.index) == len(self.shelf.rows)
            assert self.index.float_bytes <= self.budget
            assert self.index.float_bytes == sum(leaf.float_bytes for leaf in self.index._view.leaves)
            keys = [key for leaf in self.index._view.leaves for key in leaf.keys]
            assert keys == sorted(keys)


@pytest.fixture(scope="class")
def small_leaves():
    before = leaves.FULL, leaves._FILLED, leaves._LEAST_ROOM, index._EXACT
    leaves.FULL, leaves._FILLED, leaves._LEAST_ROOM, index._EXACT = 32, 24, 4, 10**6
    index.FULL = 32
    yield
    leaves.FULL, leaves._FILLED, leaves._LEAST_ROOM, index._EXACT = before
    index.FULL = before[0]


TestCompared = Compared.TestCase
TestCompared.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestCompared = pytest.mark.usefixtures("small_leaves")(TestCompared)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(0, 2**32))
def test_any_dimension_has_codes_of_whole_words(dimension, seed):
    codes = signcodes.SignCodes(dimension)
    vectors = unit(np.random.default_rng(seed).standard_normal((5, dimension)))
    question = codes.question(vectors[0])
    planes = np.ascontiguousarray(codes.encode(vectors).view(np.uint64).T)
    out = np.empty(5, np.uint8)
    question.count(planes, out)
    assert out[0] == 0
    assert question.weigh(planes)[0] == question.weigh(planes).max()
