"""Embedding texts: spaces, fallbacks, the cache, and what happens when everything is down."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mnemon import DimensionMismatch, EmbedderUnavailable, InvalidSettings, ModelMismatch, Settings, StoreUnavailable
from mnemon.embedders import Embedders
from mnemon.embedding import Embedding
from mnemon.model import SpaceStatus
from mnemon.ports import Embedder, Store, Vector
from mnemon.providers.loading import load
from mnemon.testing import ManualClock
from mnemon.testing.embedders import FakeEmbedder, cosine
from tests.embedding.conftest import Make, Shelf
from tests.embedding.endpoints import Endpoint


@pytest.fixture(params=["sqlite", "sqlite-blocking"])
def settings(tmp_path: Path) -> Settings:
    """Which database it is makes no difference here."""
    return Settings(url=f"sqlite:///{tmp_path}/mnemon.db")


# -------------------------------------------------------------------------------------------------------- the vectors


async def test_each_text_has_a_vector_of_length_1_in_the_space(make: Make, shelf: Shelf) -> None:
    embedding = make()
    texts = ["the cat sat", "on the mat"]
    found = await embedding.embed_texts(texts)
    (space,) = await embedding.spaces.readable()
    assert (space.provider, space.model) == ("fake", shelf.fake().model)
    for text, vectors in zip(texts, found, strict=True):
        (row,) = FakeEmbedder().embed([text])
        assert vectors.keys() == {space.id}
        assert np.linalg.norm(vectors[space.id]) == pytest.approx(1, abs=1e-6)
        assert cosine(vectors[space.id], row) > 0.99999
        assert vectors[space.id].dtype == np.float32
    question = await embedding.embed_question("the cat sat")
    assert np.array_equal(question[space.id], found[0][space.id])


@pytest.mark.parametrize("name", ["fake", "quick"])
async def test_a_text_without_a_direction_has_no_vector(make: Make, name: str) -> None:
    embedding = make(embedder=name)
    found = await embedding.embed_texts(["", "word", " \n", "..."])
    assert [len(vectors) for vectors in found] == [0, 1, 0, 0]
    assert await embedding.embed_question("") == {}
    (space,) = await embedding.spaces.readable()
    assert [bool(row.any()) for row in await embedding.embed_in(space, ["", "word"])] == [False, True]
    assert await embedding.embed_texts([]) == []


async def test_a_vector_that_is_no_number_is_none(make: Make, shelf: Shelf) -> None:
    class Broken(FakeEmbedder):
        def embed(self, texts: Sequence[str]) -> Vector:
            vectors = super().embed(texts)
            vectors[0] = np.nan
            return vectors

    shelf.embedders["fake"] = Broken()
    assert [len(vectors) for vectors in await make().embed_texts(["a", "b"])] == [0, 1]


async def test_what_the_embedder_returned_is_not_written_to(make: Make, shelf: Shelf) -> None:
    class Keeper(FakeEmbedder):
        kept = np.full((1, 32), 7, np.float32)

        def embed(self, texts: Sequence[str]) -> Vector:
            return self.kept

    shelf.embedders["fake"] = keeper = Keeper()
    await make().embed_texts(["a"])
    assert (keeper.kept == 7).all()


async def test_a_long_text_is_cut(make: Make, shelf: Shelf) -> None:
    await make(max_embedded_chars=7).embed_texts(["one two three four"])
    assert shelf.fake().texts == ["one two"]


@pytest.mark.parametrize("name", ["fake", "quick"])
async def test_half_a_character_does_no_harm(make: Make, name: str) -> None:
    embedding = make(embedder=name)
    (vectors,) = await embedding.embed_texts(["half \ud83d a character"])
    assert len(vectors) == 1
    assert len(await embedding.embed_question("\udfff word")) == 1


async def test_many_texts_come_in_batches(make: Make, shelf: Shelf) -> None:
    texts = [f"text {number}" for number in range(600)]
    found = await make().embed_texts(texts)
    assert all(found)
    assert shelf.fake().calls == 3
    assert shelf.fake().texts == texts


# --------------------------------------------------------------------------------------------- inline or on a thread


@pytest.mark.parametrize(("texts", "aside"), [(["short"], False), (["word " * 300], True), (["w"] * 2000, True)])
async def test_a_quick_embedder_runs_in_line_for_few_short_texts(
    make: Make, shelf: Shelf, is_blocking: bool, texts: list[str], aside: bool
) -> None:
    threads: list[threading.Thread] = []

    class Watched(FakeEmbedder):
        def embed(self, texts: Sequence[str]) -> Vector:
            threads.append(threading.current_thread())
            return super().embed(texts)

    shelf.embedders["quick"] = Watched(name="quick", is_quick=True)
    embedding = make(embedder="quick")
    await embedding.embed_texts(["load it"])
    threads.clear()
    await embedding.embed_texts(texts)
    assert {thread is not threading.current_thread() for thread in threads} == {aside and not is_blocking}


async def test_an_embedder_is_loaded_off_the_event_loop_and_once(
    store: Store, clock: ManualClock, runner: object, is_blocking: bool
) -> None:
    loads: list[threading.Thread] = []

    def slow_load(specification: str) -> Embedder:
        loads.append(threading.current_thread())
        return FakeEmbedder(is_quick=True)

    settings = Settings(embedder="fake")
    embedders = Embedders(slow_load, clock, settings)
    some = [Embedding(embedders, store, runner, clock, settings) for _ in range(3)]  # type: ignore[arg-type]
    await asyncio.gather(*(each.embed_texts(["a"]) for each in some for _ in range(5)))
    assert len(loads) == 1
    assert (loads[0] is threading.current_thread()) == is_blocking


# ------------------------------------------------------------------------------------------------- which model it is


async def test_a_new_database_gets_the_static_embedder(store: Store, clock: ManualClock, runner: object) -> None:
    settings = Settings()
    embedders = Embedders(lambda text: load(text, settings), clock, settings)
    embedding = Embedding(embedders, store, runner, clock, settings)  # type: ignore[arg-type]
    assert await embedding.embed_question("nothing was written yet") == {}
    assert await embedding.spaces.all() == ()
    await embedding.embed_texts(["Alice lives in Oslo"])
    (space,) = await embedding.spaces.all()
    assert (space.provider, space.model.name, space.model.dimension) == ("static", "wordllama-l2-supercat", 256)


async def test_without_a_setting_the_database_says_which_model_it_is(make: Make, shelf: Shelf) -> None:
    await make().embed_texts(["a"])
    shelf.fake().texts.clear()
    await make(embedder=None).embed_texts(["b"])
    assert shelf.fake().texts == ["b"]


async def test_none_switches_embedding_off(make: Make) -> None:
    off = make(embedder="none")
    assert await off.embed_texts(["a", "b"]) == [{}, {}]
    assert await off.embed_question("a") == {}
    assert await off.prepare() == ()
    assert await off.spaces.all() == ()
    await make().embed_texts(["a"])
    assert await make(embedder="none").embed_question("a") == {}


async def test_another_model_than_the_database_has_is_an_error_that_names_both(make: Make) -> None:
    await make().embed_texts(["a"])
    message = (
        r"the database's vectors are of fake 1 \(32 dimensions\), "
        r"and the embedder 'other' is other 1 \(32 dimensions\): "
        r"set embedder='fake' or leave it out, or change the model with memory\.reembed\('other'\)"
    )
    for use in ("prepare", "embed_texts", "embed_question"):
        arguments = {"prepare": (), "embed_texts": (["a"],), "embed_question": ("a",)}[use]
        with pytest.raises(ModelMismatch, match=message):
            await getattr(make(embedder="other"), use)(*arguments)


async def test_another_version_of_the_same_embedder_is_an_error_too(make: Make, shelf: Shelf) -> None:
    await make().embed_texts(["a"])
    shelf.embedders["fake"] = FakeEmbedder(version="2")
    with pytest.raises(
        ModelMismatch, match=r"fake 1 .*'fake' is fake 2 .*install the version that made them, or change"
    ):
        await make(embedder=None).embed_texts(["a"])
    upgraded = make(embedder=None)
    await upgraded.begin("fake")  # what reembed does
    assert [set(vectors) for vectors in await upgraded.embed_texts(["a"])] == [{(await upgraded.spaces.all())[1].id}]


async def test_another_embedder_of_the_same_model_is_welcome(make: Make, shelf: Shelf) -> None:
    await make().embed_texts(["a"])
    await make(embedder="second").embed_texts(["b"])
    assert shelf.fake("second").texts == ["b"]


async def test_the_model_that_is_being_filled_may_be_set(make: Make, shelf: Shelf) -> None:
    embedding = make()
    await embedding.embed_texts(["a"])
    filling = await embedding.begin("other")
    assert (filling.status, filling.provider) == (SpaceStatus.FILLING, "other")
    (vectors,) = await make(embedder="other").embed_texts(["b"])
    assert set(vectors) == {space.id for space in await embedding.spaces.readable()}
    assert len(vectors) == 2
    assert shelf.fake("other").texts == ["b"]
    assert shelf.fake("fake").texts == ["a", "b"]


async def test_a_switch_by_another_process_is_followed(make: Make, clock: ManualClock) -> None:
    here, there = make(), make()
    await here.embed_texts(["a"])
    new = await there.begin("other")
    await there.spaces.activate(new)
    assert set(await here.embed_question("a")) != {new.id}
    clock.advance(1)
    assert set(await here.embed_question("a")) == {new.id}
    assert [set(vectors) for vectors in await here.embed_texts(["a"])] == [{new.id}]


async def test_a_space_whose_embedder_is_not_here_is_left_to_others(
    make: Make, shelf: Shelf, clock: ManualClock
) -> None:
    here, there = make(), make()
    await here.embed_texts(["a"])
    new = await there.begin("other")
    shelf.embedders["other"] = InvalidSettings("pip install it")
    clock.advance(1)
    (vectors,) = await here.embed_texts(["a"])
    assert len(vectors) == 1
    assert new.id not in vectors
    with pytest.raises(EmbedderUnavailable, match="it cannot be loaded here: pip install it"):
        await here.embed_in(new, ["a"])


async def test_an_embedder_that_cannot_be_loaded_is_an_error_at_once(make: Make, shelf: Shelf) -> None:
    shelf.embedders["fake"] = InvalidSettings("pip install it")
    with pytest.raises(InvalidSettings, match="pip install it"):
        await make().embed_texts(["a"])


async def test_given_vectors_are_not_made(make: Make, shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    shelf.embedders["given:mine:8"] = load("given:mine:8", Settings())
    embedding = make(embedder="given:mine:8")
    assert await embedding.embed_texts(["a"]) == [{}]
    assert await embedding.embed_question("a") == {}
    (space,) = await embedding.prepare()
    assert space.model.dimension == 8
    assert not embedding.makes_vectors(space)
    for _ in range(5):
        with pytest.raises(EmbedderUnavailable, match="are given, not made"):
            await embedding.embed_in(space, ["a"])
    assert caplog.records == []
    assert embedding.makes_vectors(await embedding.begin("fake"))


async def test_two_that_choose_different_models_for_a_new_database_do_not_both_get_it(make: Make) -> None:
    one, other = make(), make(embedder="other")
    found = await asyncio.gather(one.embed_texts(["a"]), other.embed_texts(["a"]), return_exceptions=True)
    assert sum(isinstance(each, ModelMismatch) for each in found) == 1
    assert len(await one.spaces.all()) == 1


# ------------------------------------------------------------------------------------------- fallbacks and outages


async def test_the_next_embedder_stands_in_for_one_that_is_down(make: Make, shelf: Shelf) -> None:
    embedding = make(embedder_fallbacks=("second", "third"))
    wanted = await embedding.embed_texts(["the cat"])
    shelf.fake().fail(times=100)
    shelf.fake("second").fail(times=100)
    found = await embedding.embed_texts(["the cat"])
    assert found[0].keys() == wanted[0].keys()
    for space_id, vector in wanted[0].items():
        assert np.array_equal(vector, found[0][space_id])
    assert shelf.fake("third").texts == ["the cat"]


async def test_a_fallback_of_another_model_is_refused(make: Make) -> None:
    message = r"fallback 'other' is the model other 1 \(32 dimensions\), and what it is to stand in for is fake 1"
    with pytest.raises(InvalidSettings, match=message):
        await make(embedder_fallbacks=("second", "other")).embed_texts(["a"])


async def test_while_all_are_down_nothing_is_embedded_and_nothing_fails(
    make: Make, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    embedding = make(embedder_fallbacks=("second",))
    (space,) = await embedding.prepare()
    for name in ("fake", "second"):
        shelf.fake(name).fail(times=100)
    with caplog.at_level(logging.WARNING, "mnemon.embedding"):
        for _ in range(5):
            assert await embedding.embed_texts(["a", "b"]) == [{}, {}]
            assert await embedding.embed_question("a") == {}
    assert [record.getMessage() for record in caplog.records] == [
        "the embedder 'fake' cannot be used: told to fail",
        "the embedder 'second' cannot be used: told to fail",
    ]
    with pytest.raises(EmbedderUnavailable, match=r"embed in the space of fake 1.*'fake': it failed 3 times.*'second'"):
        await embedding.embed_in(space, ["a"])
    assert issubclass(EmbedderUnavailable, StoreUnavailable)


async def test_one_that_keeps_failing_is_left_alone_and_then_tried(
    make: Make, shelf: Shelf, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    embedding = make(embedder_fallbacks=("second",))
    await embedding.prepare()
    fake = shelf.fake()
    fake.fail(times=4)
    for _ in range(10):
        assert await embedding.embed_question("a")
    assert fake.calls == 3, "it was not left alone"
    clock.advance(1)
    await embedding.embed_question("a")  # fails once more
    clock.advance(1.9)
    await embedding.embed_question("a")
    assert fake.calls == 4
    clock.advance(0.1)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "mnemon.embedding"):
        await embedding.embed_question("a")
        await embedding.embed_question("a")
    assert fake.calls == 6
    assert [record.getMessage() for record in caplog.records] == ["the embedder 'fake' can be used again"]


async def test_a_plain_outage_of_a_third_partys_embedder_counts_too(make: Make, shelf: Shelf) -> None:
    shelf.fake().fail(StoreUnavailable("down"), times=100)
    assert await make().embed_texts(["a"]) == [{}]


async def test_an_error_of_another_kind_is_not_hidden(make: Make, shelf: Shelf) -> None:
    shelf.fake().fail(RuntimeError("a mistake"))
    with pytest.raises(RuntimeError, match="a mistake"):
        await make().embed_texts(["a"])


async def test_a_fallback_that_cannot_be_had_now_does_not_keep_the_first_from_working(make: Make, shelf: Shelf) -> None:
    shelf.embedders["second"] = EmbedderUnavailable("the hub is down")
    embedding = make(embedder_fallbacks=("second",))
    assert all(await embedding.embed_texts(["a"]))


async def test_a_remote_model_that_is_down_from_the_start_is_found_later(
    endpoint: Endpoint, store: Store, clock: ManualClock, runner: object
) -> None:
    settings = Settings(embedder="openai:static-model", openai_url=f"{endpoint.url}/v1")
    embedders = Embedders(lambda text: load(text, settings), clock, settings)
    embedding = Embedding(embedders, store, runner, clock, settings)  # type: ignore[arg-type]
    endpoint.stop()
    assert await embedding.embed_texts(["a"]) == [{}]
    assert await embedding.spaces.all() == ()
    endpoint.start()
    clock.advance(60)
    assert all(await embedding.embed_texts(["a"]))
    (space,) = await embedding.spaces.all()
    assert space.model.dimension == 256
    embedders.close()


async def test_an_existing_space_does_not_wait_for_a_remote_model(
    endpoint: Endpoint, store: Store, clock: ManualClock, runner: object
) -> None:
    settings = Settings(
        embedder="openai:static-model?model=m",
        embedder_fallbacks=("ollama:nomic-embed-text?model=m",),
        openai_url="http://127.0.0.1:9/v1",  # nobody listens there
        ollama_url=endpoint.url,
    )

    def make() -> tuple[Embedders, Embedding]:
        embedders = Embedders(lambda text: load(text, settings), clock, settings)
        return embedders, Embedding(embedders, store, runner, clock, settings)  # type: ignore[arg-type]

    for _ in range(2):
        embedders, embedding = make()
        await embedding.spaces.ensure("given:m:256", load("given:m:256", settings).model)
        (vectors,) = await embedding.embed_texts(["the fallback answers"])
        assert len(vectors) == 1
        embedders.close()


async def test_vectors_of_another_dimension_are_an_error_that_names_both(
    endpoint: Endpoint, store: Store, clock: ManualClock, runner: object
) -> None:
    settings = Settings(embedder="openai:static-model", openai_url=f"{endpoint.url}/v1")

    async def embed() -> None:
        embedders = Embedders(lambda text: load(text, settings), clock, settings)
        try:
            await Embedding(embedders, store, runner, clock, settings).embed_texts(["a"])  # type: ignore[arg-type]
        finally:
            embedders.close()

    await embed()
    endpoint.dimension = 100
    message = r"'openai:static-model' answers with 100 dimensions.*static-model 1 \(256 dimensions\)"
    with pytest.raises(DimensionMismatch, match=message):
        await embed()
