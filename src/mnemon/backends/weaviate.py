"""Vectors in Weaviate: one collection for each space, with the words of memories for its own BM25 and hybrid search.

An object's properties are `facts` (whole texts), `trust`, `memory_id`, `words`, `namespace`, `key`, and
`about` (JSON). Weaviate itself embeds nothing here.
"""

import random
import socket
from collections.abc import Callable, Sequence
from typing import Any, assert_never, cast

import grpc
import httpx
import orjson
import weaviate
from weaviate import exceptions
from weaviate.auth import AuthApiKey
from weaviate.classes.config import Configure, DataType, Property, StopwordsPreset, Tokenization, VectorDistances
from weaviate.classes.data import DataObject
from weaviate.classes.init import AdditionalConfig, Timeout
from weaviate.classes.query import Filter, HybridFusion, MetadataQuery
from weaviate.collections import Collection
from weaviate.config import GrpcConfig
from weaviate.connect import ConnectionParams

from mnemon.backends.addresses import Address
from mnemon.backends.remote import (
    GRPC_OPTIONS,
    GRPC_STATUSES,
    Connection,
    Trouble,
    collection_name,
    latest,
    mismatch,
)
from mnemon.errors import StoreError
from mnemon.facts import EVERY_FACT, NO_FACT, AnyOf, FactFilter, Joined, Not, normal
from mnemon.model import Match, Space, StoreDescription
from mnemon.ports import VectorMemory, VectorQuery, VectorRecord
from mnemon.settings import Settings
from mnemon.sql import chunks

_BATCH = 100  # a large one could take longer than the timeout
_ECHO = 64  # so many that each of a few shards gets one
_BREADTH = 256  # how many candidates the graph's search keeps at least
_END = "."  # Weaviate cuts white space off a text's end


def open_store(url: str, space: Space, settings: Settings) -> VectorMemory:
    """The space's collection at `weaviate://host:8080?grpc_port=50051`.

    It is reached, and made, when it is first used. `grpc_host` is the URL's host unless the option says otherwise.
    """
    return WeaviateStore(Address.parse(url), space, settings)


class WeaviateStore:
    """A collection of Weaviate."""

    def __init__(self, address: Address, space: Space, settings: Settings) -> None:
        self._address = address
        self._model = space.model
        self._timeout = settings.vector_timeout
        name = collection_name(settings, space.model)
        self._name = name[0].upper() + name[1:]  # as Weaviate writes it
        self._place = f"{address}/{self._name}"
        self._connection = Connection(
            self._place, self._timeout, self._connect, weaviate.WeaviateClient.close, _diagnosis
        )

    def store(self, records: Sequence[VectorRecord]) -> None:
        with self._connection.use() as client:
            self._demand(client)
            collection = client.collections.use(self._name)
            objects = [_object(record) for record in latest(records)]
            for batch in chunks(objects, _BATCH):
                self._insert(collection, batch)
            # The vector index is flushed at the beginning of the shard's next write, so there has to be one.
            self._insert(collection, objects[-_ECHO:])

    def query(self, query: VectorQuery) -> list[Match]:
        """With words, Weaviate's own hybrid search: the score is then the mean of both scores, each scaled to
        0…1 between its worst and its best result, and no cosine."""
        where = normal(query.where)
        if where == NO_FACT or query.limit < 1:
            return []
        with self._connection.use() as client:
            collection = client.collections.use(self._name)
            return _hybrid(collection, query, where) if query.words else _nearest(collection, query, where)

    def delete(self, ids: Sequence[str]) -> None:
        with self._connection.use() as client:
            collection = client.collections.use(self._name)
            for batch in chunks(ids, _BATCH):
                self._remove(collection, batch)

    def listing(self, after: str | None, limit: int) -> list[tuple[str, int]]:
        with self._connection.use() as client:
            collection = client.collections.use(self._name)
            page = collection.query.fetch_objects(limit=limit, after=after, return_properties=["memory_id"])
            return [(str(found.uuid), _memory_id(found)) for found in page.objects]

    def describe(self) -> StoreDescription:
        with self._connection.use() as client:
            count = client.collections.use(self._name).aggregate.over_all(total_count=True).total_count or 0
        return StoreDescription("weaviate", self._place, count, self._model.dimension, searches_text=True)

    def drop(self) -> None:
        with self._connection.use() as client:
            client.collections.delete(self._name)
        self._connection.renew()

    def close(self) -> None:
        self._connection.close()

    def _insert(self, collection: Collection[Any, Any], objects: Sequence[DataObject[Any, Any]]) -> None:
        done = collection.data.insert_many(objects) if objects else None
        if done and done.errors:
            first = next(iter(done.errors.values())).message
            raise StoreError(f"{self._place} refused {len(done.errors)} of {len(objects)} records: {first}")

    def _remove(self, collection: Collection[Any, Any], ids: Sequence[str]) -> None:
        done = collection.data.delete_many(where=Filter.by_id().contains_any(list(ids)))
        if done.failed:
            raise StoreError(f"{self._place} failed to delete {done.failed} of {done.matches} records")
        if done.matches < len(ids):
            for each in ids:  # an object that a kill kept out of the indexes is found by its id alone
                collection.data.delete_by_id(each)

    def _connect(self) -> weaviate.WeaviateClient:
        address = self._address
        with socket.create_connection((address.host, address.port), self._timeout):
            pass  # the client itself would wait for five seconds, whatever the timeout
        client = weaviate.WeaviateClient(
            ConnectionParams.from_params(
                address.host, address.port, address.secure, address.grpc_host, address.grpc_port or 0, address.secure
            ),
            auth_client_secret=AuthApiKey(address.api_key) if address.api_key else None,
            additional_config=AdditionalConfig(
                timeout=Timeout(init=self._timeout, query=self._timeout, insert=self._timeout),
                grpc_config=GrpcConfig(channel_options=list(GRPC_OPTIONS.items())),
            ),
            skip_init_checks=True,  # or it would ask the package index whether there is a newer client
        )
        try:
            client.connect()
            _never_repeat(client)
            self._prepare(client)
        except BaseException:
            client.close()
            raise
        return client

    def _prepare(self, client: weaviate.WeaviateClient) -> None:
        """Make the collection if it is not there; others may be doing the same."""
        if not client.collections.exists(self._name):
            try:
                self._create(client)
            except exceptions.UnexpectedStatusCodeError:
                if not client.collections.exists(self._name):
                    raise
        self._check(client)

    def _create(self, client: weaviate.WeaviateClient) -> None:
        graph = Configure.VectorIndex.hnsw(
            distance_metric=VectorDistances.COSINE, dynamic_ef_min=_BREADTH, ef_construction=_BREADTH
        )
        client.collections.create(
            self._name,
            description=str(self._model),
            vector_config=Configure.Vectors.self_provided(vector_index_config=graph),
            inverted_index_config=Configure.inverted_index(stopwords_preset=StopwordsPreset.NONE),
            properties=_properties(),
        )

    def _check(self, client: weaviate.WeaviateClient) -> None:
        found = client.collections.use(self._name).config.get()
        vectors = list((found.vector_config or {}).values())
        metric = getattr(vectors[0].vector_index_config, "distance_metric", None) if vectors else None
        distance = metric.value if metric else "no"
        facts = {item.name: item.tokenization for item in found.properties}.get("facts")
        if (found.description, distance, facts) != (str(self._model), "cosine", Tokenization.FIELD):
            held = f"{found.description or 'vectors of another program'} with {distance} distance"
            raise mismatch(self._place, held, f"{self._model} with cosine distance")

    def _demand(self, client: weaviate.WeaviateClient) -> None:
        """Weaviate would make up a collection of its own for objects whose collection is gone."""
        if not client.collections.exists(self._name):
            raise _Answer(404, "there is no such collection")


def _properties() -> list[Property]:
    return [
        _text("facts", filterable=True, kind=DataType.TEXT_ARRAY),
        Property(name="trust", data_type=DataType.NUMBER, index_filterable=True, index_range_filters=True),
        _text("memory_id"),  # a number of Weaviate has 53 bits
        _text("words", searchable=True),
        _text("namespace", filterable=True),
        _text("key", filterable=True),
        _text("about"),
    ]


def _text(name: str, *, filterable: bool = False, searchable: bool = False, kind: DataType = DataType.TEXT) -> Property:
    """A text that is one whole, or, to be searched, words with white space between them."""
    return Property(
        name=name,
        data_type=kind,
        tokenization=Tokenization.WHITESPACE if searchable else Tokenization.FIELD,
        index_filterable=filterable,
        index_searchable=searchable,
    )


def _object(record: VectorRecord) -> DataObject[Any, Any]:
    """What is stored of a record. The vector's length, which no cosine depends on, is another each time.

    Weaviate does not index a vector again that it has stored already. But a kill may have left an object in its
    store and not in its indexes, and then writing it once more has to mend that.
    """
    properties = {
        "memory_id": str(record.memory_id),
        "facts": [fact + _END for fact in record.facts],
        "trust": float(record.trust),
        "words": " ".join(record.words),
        "about": orjson.dumps(dict(record.about)).decode(),
        **{name: str(record.about[name]) for name in ("namespace", "key") if name in record.about},
    }
    vector = record.embedding * random.uniform(1, 2)
    return DataObject(uuid=record.id, vector=vector.tolist(), properties=properties)


def _nearest(collection: Collection[Any, Any], query: VectorQuery, where: FactFilter) -> list[Match]:
    found = collection.query.near_vector(
        query.embedding.tolist(),
        limit=query.limit,
        filters=_condition(query, where),
        return_properties=["memory_id"],
        return_metadata=MetadataQuery(distance=True),
    )
    return [Match(_memory_id(each), 1 - (each.metadata.distance or 0.0)) for each in found.objects]


def _hybrid(collection: Collection[Any, Any], query: VectorQuery, where: FactFilter) -> list[Match]:
    found = collection.query.hybrid(
        " ".join(query.words),
        alpha=0.5,
        vector=query.embedding.tolist(),
        query_properties=["words"],
        fusion_type=HybridFusion.RELATIVE_SCORE,
        limit=query.limit,
        filters=_condition(query, where),
        return_properties=["memory_id"],
        return_metadata=MetadataQuery(score=True),
    )
    return [Match(_memory_id(each), each.metadata.score or 0.0) for each in found.objects]


def _memory_id(found: Any) -> int:
    return int(found.properties["memory_id"])


# -------------------------------------------------------------------------------------------------------- filters


def _condition(query: VectorQuery, where: FactFilter) -> Any:
    parts = [] if where == EVERY_FACT else [_translated(where)]
    if query.min_trust > 0:
        parts.append(Filter.by_property("trust").greater_or_equal(float(query.min_trust)))
    return Filter.all_of(parts) if parts else None


def _translated(where: FactFilter) -> Any:
    facts = Filter.by_property("facts")
    match where:
        case AnyOf():
            return facts.contains_any([fact + _END for fact in where.facts])
        case Not():
            excluded = cast("AnyOf", where.part).facts  # `normal` leaves nothing else
            return facts.contains_none([fact + _END for fact in excluded])
        case Joined():
            parts = [_translated(part) for part in where.parts]
            return Filter.all_of(parts) if where.all else Filter.any_of(parts)
        case _:
            assert_never(where)


# --------------------------------------------------------------------------------------------------------- errors


class _Answer(Exception):
    """What the server answered by gRPC, or what amounts to it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Once:
    """Calls by gRPC, each made once: the client repeats what raises gRPC's own error, for up to a minute.

    A write that is repeated behind the caller's back could undo a later one.
    """

    def __init__(self, calls: Any) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._calls, name)

        def once(*args: Any, **options: Any) -> Any:
            try:
                return call(*args, **options)
            except grpc.RpcError as error:
                answer = cast("grpc.Call", error)
                status = GRPC_STATUSES.get(answer.code().name, 500)
                raise _Answer(status, answer.details() or str(error)) from error

        return once


def _never_repeat(client: weaviate.WeaviateClient) -> None:
    connection = cast("Any", client)._connection
    connection._grpc_stub = _Once(connection._grpc_stub)


def _diagnosis(error: Exception) -> Trouble:
    if isinstance(error, _Answer):
        return Trouble.of_status(404 if "could not find class" in str(error) else error.status, str(error))
    if isinstance(error, exceptions.UnexpectedStatusCodeError):
        return Trouble.of_status(error.status_code, str(error))
    if isinstance(error, _AWAY):
        return Trouble.unreached(error)
    return Trouble(str(error), "the server's own log may say more; Mnemon needs Weaviate 1.33 or newer")


_AWAY = (
    OSError,
    httpx.TransportError,
    exceptions.WeaviateConnectionError,
    exceptions.WeaviateGRPCUnavailableError,
    exceptions.WeaviateStartUpError,
    exceptions.WeaviateTimeoutError,
)
