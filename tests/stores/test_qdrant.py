"""The driver of Qdrant over a real server."""

from collections.abc import Iterator

import pytest
from qdrant_client import QdrantClient, models

from mnemon.backends.remote import collection_name
from mnemon.backends.stores import load_store
from mnemon.errors import SchemaMismatch
from mnemon.facts import EVERY_FACT
from mnemon.ports import VectorMemory, VectorQuery
from mnemon.settings import Settings
from mnemon.testing import VectorStoreSuite
from mnemon.testing.vector_samples import axis, record_of, some_records, space_of
from mnemon.testing.vector_stores import OpenStore
from tests.servers import Server
from tests.stores.servers import NOBODY, nobody, own_collections, url_of

SPACE = space_of("first")


@pytest.fixture(params=["http", "grpc"])
def url(qdrant_server: Server, request: pytest.FixtureRequest) -> str:
    return url_of(qdrant_server, grpc=request.param == "grpc")


@pytest.fixture
def own(qdrant_server: Server) -> Iterator[Settings]:
    with own_collections(qdrant_server) as settings:
        yield settings


@pytest.fixture
def client(qdrant_server: Server) -> Iterator[QdrantClient]:
    """Reaches behind the driver's back."""
    client = QdrantClient(qdrant_server.url, check_compatibility=False)
    yield client
    client.close()


class TestQdrant(VectorStoreSuite):
    @pytest.fixture
    def open_store(self, url: str, own: Settings) -> OpenStore:
        return lambda space: load_store(url, space, own)

    @pytest.fixture(params=[f"{kind}-{way}" for kind in NOBODY for way in ("http", "grpc")])
    def unreachable(self, request: pytest.FixtureRequest) -> Iterator[VectorMemory]:
        kind, _, way = request.param.partition("-")
        with nobody(kind) as port:
            place = f"1?grpc_port={port}" if way == "grpc" else f"{port}"
            yield load_store(f"qdrant://127.0.0.1:{place}", SPACE, Settings(vector_timeout=1.0))


def test_the_collection_is_as_documented(client: QdrantClient, url: str, own: Settings) -> None:
    store = load_store(url, SPACE, own)
    store.store([record_of(7, axis(0), metadata={"colour": "red"}, trust=0.25, words=("oslo", "oslo", "rain"))])
    name = collection_name(own, SPACE.model)
    found = client.get_collection(name)
    assert found.config.params.vectors == {"embedding": models.VectorParams(size=16, distance=models.Distance.COSINE)}
    assert found.config.params.sparse_vectors["words"].modifier == models.Modifier.IDF
    assert {field: index.data_type for field, index in found.payload_schema.items()} == {
        "facts": models.PayloadSchemaType.KEYWORD,
        "trust": models.PayloadSchemaType.FLOAT,
    }
    (point,), _ = client.scroll(name, with_vectors=True)
    assert point.payload == {
        "memory_id": 7,
        "facts": ["in=user", "in=user:alice", "type=semantic", '.colour"sred', '.colour":s'],
        "trust": 0.25,
        "about": {"namespace": "user:alice", "key": "key 7", "version": 1},
    }
    assert len(point.vector["words"].indices) == 2
    assert max(point.vector["words"].values) > min(point.vector["words"].values) > 1
    store.close()


def test_shards_and_replicas_are_those_of_the_settings(client: QdrantClient, own: Settings, url: str) -> None:
    settings = Settings(
        vector_collection_prefix=own.vector_collection_prefix, qdrant_shards=3, qdrant_replicas=2
    )  # fmt: skip
    store = load_store(url, SPACE, settings)
    store.describe()
    params = client.get_collection(collection_name(own, SPACE.model)).config.params
    assert (params.shard_number, params.replication_factor) == (3, 2)
    store.close()


def test_indexes_that_are_missing_are_made(client: QdrantClient, own: Settings, url: str) -> None:
    """Given a program that was killed after it made the collection, when another opens it, then it is completed."""
    name = collection_name(own, SPACE.model)
    first = load_store(url, SPACE, own)
    first.describe()
    client.delete_payload_index(name, "facts")
    second = load_store(url, SPACE, own)
    second.describe()
    assert client.get_collection(name).payload_schema.keys() == {"facts", "trust"}
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        ({"embedding": models.VectorParams(size=9, distance=models.Distance.COSINE)}, "9 dimensions with Cosine"),
        ({"embedding": models.VectorParams(size=16, distance=models.Distance.DOT)}, "16 dimensions with Dot"),
        (models.VectorParams(size=5, distance=models.Distance.COSINE), "5 dimensions"),
        ({"other": models.VectorParams(size=16, distance=models.Distance.COSINE)}, "0 dimensions with no"),
    ],
)
def test_another_collection_of_that_name_is_refused(
    client: QdrantClient, own: Settings, url: str, vectors: models.VectorsConfig, said: str
) -> None:
    client.create_collection(collection_name(own, SPACE.model), vectors_config=vectors)
    store = load_store(url, SPACE, own)
    with pytest.raises(SchemaMismatch, match=rf"{said}.*first 1 \(16 dimensions\).*vector_collection_prefix"):
        store.store(some_records(1))
    store.close()


def test_rare_words_count_more_than_common_ones(own: Settings, url: str) -> None:
    store = load_store(url, SPACE, own)
    store.store([record_of(n, axis(0), words=("fjord",) if n == 3 else ("and", f"w{n}")) for n in range(40)])
    found = store.query(VectorQuery(axis(0), 40, EVERY_FACT, words=("fjord", "and")))
    assert found[0].memory_id == 3
    store.close()
