"""The driver of Weaviate over a real server."""

import time
from collections.abc import Iterator

import httpx
import pytest

from mnemon.backends.remote import collection_name
from mnemon.backends.stores import load_store
from mnemon.errors import SchemaMismatch, StoreUnavailable
from mnemon.ports import VectorMemory
from mnemon.settings import Settings
from mnemon.testing import VectorStoreSuite
from mnemon.testing.vector_samples import axis, every_call, record_of, some_records, space_of
from mnemon.testing.vector_stores import OpenStore
from tests.servers import Server
from tests.stores.servers import NOBODY, nobody, own_collections, url_of

SPACE = space_of("first")


@pytest.fixture
def own(weaviate_server: Server) -> Iterator[Settings]:
    with own_collections(weaviate_server) as settings:
        yield settings


@pytest.fixture
def store(weaviate_server: Server, own: Settings) -> Iterator[VectorMemory]:
    store = load_store(url_of(weaviate_server), SPACE, own)
    yield store
    store.close()


@pytest.fixture
def client(weaviate_server: Server) -> Iterator[httpx.Client]:
    """Reaches behind the driver's back."""
    with httpx.Client(base_url=weaviate_server.url) as client:
        yield client


def collection_of(settings: Settings) -> str:
    return collection_name(settings, SPACE.model).capitalize()


class TestWeaviate(VectorStoreSuite):
    @pytest.fixture
    def open_store(self, weaviate_server: Server, own: Settings) -> OpenStore:
        return lambda space: load_store(url_of(weaviate_server), space, own)

    @pytest.fixture(params=NOBODY)
    def unreachable(self, request: pytest.FixtureRequest) -> Iterator[VectorMemory]:
        with nobody(request.param) as port:
            yield load_store(f"weaviate://127.0.0.1:{port}", SPACE, Settings(vector_timeout=1.0))


class TestWeaviateWithoutGrpc:
    """Given a server whose gRPC port cannot be reached, then that is said at once, and not after a minute."""

    @pytest.mark.parametrize("kind", NOBODY)
    def test_a_query_says_so_in_time(self, weaviate_server: Server, own: Settings, kind: str) -> None:
        with nobody(kind) as port:
            url = f"{url_of(weaviate_server, grpc=False)}?grpc_port={port}"
            settings = Settings(vector_collection_prefix=own.vector_collection_prefix, vector_timeout=1.0)
            store = load_store(url, SPACE, settings)
            for call in every_call(store)[:-1]:  # all but dropping needs gRPC
                began = time.monotonic()
                with pytest.raises(StoreUnavailable):
                    call()
                assert time.monotonic() - began < VectorStoreSuite.patience
            store.close()


def test_the_collection_is_as_documented(client: httpx.Client, store: VectorMemory, own: Settings) -> None:
    store.store([record_of(7, axis(0), metadata={"colour": "red"}, trust=0.25, words=("oslo", "rain"))])
    schema = client.get(f"/v1/schema/{collection_of(own)}").json()
    assert schema["description"] == "first 1 (16 dimensions)"
    assert schema["invertedIndexConfig"]["stopwords"]["preset"] == "none"
    (vectors,) = schema["vectorConfig"].values()
    assert vectors["vectorizer"] == {"none": {}}
    assert (vectors["vectorIndexType"], vectors["vectorIndexConfig"]["distance"]) == ("hnsw", "cosine")
    kinds = {item["name"]: (item["dataType"][0], item.get("tokenization")) for item in schema["properties"]}
    assert kinds == {
        "facts": ("text[]", "field"),
        "trust": ("number", None),
        "memory_id": ("text", "field"),
        "words": ("text", "whitespace"),
        "namespace": ("text", "field"),
        "key": ("text", "field"),
        "about": ("text", "field"),
    }
    (found,) = client.get("/v1/objects", params={"class": collection_of(own)}).json()["objects"]
    assert found["properties"] == {
        "memory_id": "7",
        "facts": ["in=user.", "in=user:alice.", "type=semantic.", '.colour"sred.', '.colour":s.'],
        "trust": 0.25,
        "words": "oslo rain",
        "namespace": "user:alice",
        "key": "key 7",
        "about": '{"namespace":"user:alice","key":"key 7","version":1}',
    }


def test_another_collection_of_that_name_is_refused(client: httpx.Client, store: VectorMemory, own: Settings) -> None:
    client.post("/v1/schema", json={"class": collection_of(own), "description": "cats"}).raise_for_status()
    with pytest.raises(SchemaMismatch, match=r"cats with no distance.*first 1 \(16 dimensions\)"):
        store.store(some_records(1))


@pytest.mark.parametrize("metric", ["dot", "l2-squared"])
def test_another_distance_is_refused(client: httpx.Client, store: VectorMemory, own: Settings, metric: str) -> None:
    described = {
        "class": collection_of(own),
        "description": str(SPACE.model),
        "vectorConfig": {
            "default": {
                "vectorizer": {"none": {}},
                "vectorIndexType": "hnsw",
                "vectorIndexConfig": {"distance": metric},
            }
        },
    }
    client.post("/v1/schema", json=described).raise_for_status()
    with pytest.raises(SchemaMismatch, match=f"with {metric} distance.*with cosine"):
        store.describe()
