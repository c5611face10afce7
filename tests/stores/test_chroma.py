"""The driver of Chroma over a real server, and over a folder of this machine."""

import gc
from collections.abc import Iterator
from pathlib import Path

import chromadb
import pytest
from chromadb import ClientAPI
from chromadb.errors import InternalError

from mnemon.backends import chroma
from mnemon.backends.remote import collection_name
from mnemon.backends.stores import load_store
from mnemon.errors import SchemaMismatch
from mnemon.ports import VectorMemory
from mnemon.settings import Settings
from mnemon.testing import VectorStoreSuite
from mnemon.testing.vector_samples import axis, record_of, some_records, space_of
from mnemon.testing.vector_stores import OpenStore
from tests.servers import Server
from tests.stores.servers import NOBODY, nobody, own_collections, port_of, url_of

SPACE = space_of("first")


@pytest.fixture
def own(chroma_server: Server) -> Iterator[Settings]:
    with own_collections(chroma_server) as settings:
        yield settings


@pytest.fixture
def store(chroma_server: Server, own: Settings) -> Iterator[VectorMemory]:
    store = load_store(url_of(chroma_server), SPACE, own)
    yield store
    store.close()


@pytest.fixture
def client(chroma_server: Server) -> Iterator[ClientAPI]:
    """Reaches behind the driver's back."""
    yield chromadb.HttpClient("127.0.0.1", port_of(chroma_server))
    gc.collect()


class TestChroma(VectorStoreSuite):
    @pytest.fixture
    def open_store(self, chroma_server: Server, own: Settings) -> OpenStore:
        return lambda space: load_store(url_of(chroma_server), space, own)

    @pytest.fixture(params=NOBODY)
    def unreachable(self, request: pytest.FixtureRequest) -> Iterator[VectorMemory]:
        with nobody(request.param) as port:
            yield load_store(f"chroma://127.0.0.1:{port}", SPACE, Settings(vector_timeout=1.0))


class TestChromaInAFolder(VectorStoreSuite):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda space: load_store(f"chroma:///{tmp_path}", space, Settings())


def test_the_collection_is_as_documented(client: ClientAPI, store: VectorMemory, own: Settings) -> None:
    record = record_of(7, axis(0), metadata={"colour": "red"}, trust=0.25)
    store.store([record])
    collection = client.get_collection(collection_name(own, SPACE.model), embedding_function=None)
    assert collection.metadata == {"model": "first 1 (16 dimensions)"}
    assert collection.configuration_json["hnsw"]["space"] == "cosine"
    found = collection.get()
    assert found["ids"] == [record.id]
    assert found["metadatas"] == [
        {
            "memory_id": 7,
            "facts": ["in=user", "in=user:alice", "type=semantic", '.colour"sred', '.colour":s'],
            "trust": 0.25,
            "place": int(record.id[:8], 16),
            "about": '{"namespace":"user:alice","key":"key 7","version":1}',
        }
    ]
    assert found["documents"] == [None]


@pytest.mark.parametrize(
    ("model", "metric", "said"),
    [
        ("cats 2 (9 dimensions)", "cosine", r"cats 2 \(9 dimensions\) with cosine"),
        ("first 1 (16 dimensions)", "l2", "with l2 distance"),
        (None, "cosine", "vectors of another program"),
    ],
)
def test_another_collection_of_that_name_is_refused(
    client: ClientAPI, store: VectorMemory, own: Settings, model: str | None, metric: str, said: str
) -> None:
    client.create_collection(
        collection_name(own, SPACE.model),
        configuration={"hnsw": {"space": metric}},
        metadata={"model": model} if model else None,
        embedding_function=None,
    )
    with pytest.raises(SchemaMismatch, match=rf"{said}.*not first 1 \(16 dimensions\) with cosine"):
        store.store(some_records(1))


def test_a_folder_is_relative_to_where_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = load_store("chroma:///here/below", SPACE, Settings())
    store.store(some_records(3))
    store.close()
    assert (tmp_path / "here" / "below" / "chroma.sqlite3").is_file()
    again = load_store(f"chroma:///{tmp_path}/here/below", SPACE, Settings())
    assert again.describe().vectors == 3
    again.close()


def test_a_folder_serves_several_stores_until_the_last_is_closed(tmp_path: Path) -> None:
    stores = [load_store(f"chroma:///{tmp_path}", space_of(name), Settings()) for name in ("first", "second")]
    for store in stores:
        store.store(some_records(2))
    stores[0].close()
    assert stores[1].describe().vectors == 2
    stores[1].close()


def test_a_graph_that_is_being_written_for_the_first_time_is_asked_again() -> None:
    """Chroma answers so now and then when the first questions come with the first thousand vectors."""
    unwritten = InternalError("Error creating hnsw segment reader: Nothing found on disk")
    assert chroma._diagnosis(unwritten).away
    assert not chroma._diagnosis(InternalError("something else")).away
