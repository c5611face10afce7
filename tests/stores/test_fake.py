"""The fake for users' own tests keeps the promises of a real store, and breaks them when told to."""

from collections import defaultdict
from typing import Any

import pytest

from mnemon.errors import StoreError, StoreUnavailable
from mnemon.facts import EVERY_FACT
from mnemon.model import EmbeddingModel
from mnemon.ports import VectorQuery, VectorRecord
from mnemon.testing import FakeVectorMemory, VectorStoreSuite
from mnemon.testing.vector_samples import axis, ids_found, record_of, some_records, space_of
from mnemon.testing.vector_stores import OpenStore


class TestFake(VectorStoreSuite):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        kept: dict[EmbeddingModel, dict[str, VectorRecord]] = defaultdict(dict)
        return lambda space: FakeVectorMemory(space, kept[space.model])

    @pytest.fixture
    def unreachable(self) -> FakeVectorMemory:
        fake = FakeVectorMemory(space_of("away"))
        fake.go_down()
        return fake


@pytest.fixture
def fake() -> FakeVectorMemory:
    return FakeVectorMemory(space_of("first"))


def test_a_call_fails_when_it_was_told_to(fake: FakeVectorMemory) -> None:
    fake.fail("query", StoreError("broken"), times=2, skip=1)
    question = VectorQuery(axis(0), 1, EVERY_FACT)
    assert fake.query(question) == []
    for _ in range(2):
        with pytest.raises(StoreError, match="broken"):
            fake.query(question)
    assert fake.query(question) == []
    assert fake.calls["query"] == 4


def test_without_an_error_the_store_is_out_of_reach(fake: FakeVectorMemory) -> None:
    fake.fail("store")
    with pytest.raises(StoreUnavailable):
        fake.store(some_records(1))
    assert fake.records == {}


def test_an_answer_can_be_lost_after_the_effect(fake: FakeVectorMemory) -> None:
    fake.fail("store", after_effect=True)
    with pytest.raises(StoreUnavailable):
        fake.store(some_records(3))
    assert len(fake.records) == 3


def test_only_a_part_of_a_batch_is_kept(fake: FakeVectorMemory) -> None:
    fake.store_part(2)
    records = some_records(5)
    with pytest.raises(StoreUnavailable):
        fake.store(records)
    assert ids_found(fake, EVERY_FACT) == {0, 1}
    fake.store(records)
    assert ids_found(fake, EVERY_FACT) == {0, 1, 2, 3, 4}


def test_a_call_can_be_late() -> None:
    slept: list[float] = []
    fake = FakeVectorMemory(space_of("first"), sleep=slept.append)
    fake.delay("describe", 2.5, times=2)
    for _ in range(3):
        fake.describe()
    assert slept == [2.5, 2.5]


def test_it_is_down_until_it_is_healed(fake: FakeVectorMemory) -> None:
    record = record_of(1, axis(0))
    fake.store([record])
    fake.go_down()
    calls: list[Any] = [lambda: fake.store([record]), lambda: fake.delete([record.id]), fake.describe] * 3
    for call in calls:
        with pytest.raises(StoreUnavailable):
            call()
    fake.heal()
    assert fake.listing(None, 10) == [(record.id, 1)]
