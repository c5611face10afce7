"""Vectors in Qdrant: one collection for each space, with a dense vector and the words as a sparse one.

A point's payload is `facts` and `trust`, which are indexed, `memory_id` and `about`.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, assert_never, cast

import grpc
import httpx
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

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
from mnemon.facts import EVERY_FACT, NO_FACT, AnyOf, FactFilter, Joined, Not, normal
from mnemon.model import Match, Space, StoreDescription
from mnemon.ports import VectorMemory, VectorQuery, VectorRecord
from mnemon.settings import Settings
from mnemon.sql import chunks

_DENSE = "embedding"
_SPARSE = "words"
_INDEXED = {"facts": models.PayloadSchemaType.KEYWORD, "trust": models.PayloadSchemaType.FLOAT}
_BATCH = 200  # a large one could take longer than the timeout
_BREADTH = 128  # how many candidates the graph's search keeps at least
_SATURATION, _LENGTH_WEIGHT, _USUAL_LENGTH = 1.2, 0.75, 32  # BM25's k1 and b, and how many words a memory has


def open_store(url: str, space: Space, settings: Settings) -> VectorMemory:
    """The space's collection at `qdrant://host:6333`; it is reached, and made, when it is first used.

    With `?grpc_port=6334` everything goes by gRPC, which is quicker, else by HTTP.
    """
    return QdrantStore(Address.parse(url), space, settings)


class QdrantStore:
    """A collection of Qdrant."""

    def __init__(self, address: Address, space: Space, settings: Settings) -> None:
        self._address = address
        self._model = space.model
        self._settings = settings
        self._collection = collection_name(settings, space.model)
        self._place = f"{address}/{self._collection}"
        self._connection = Connection(
            self._place, settings.vector_timeout, self._connect, QdrantClient.close, _diagnosis
        )

    def store(self, records: Sequence[VectorRecord]) -> None:
        with self._connection.use() as client:
            for batch in chunks(latest(records), _BATCH):
                client.upsert(self._collection, [_point(record) for record in batch], wait=True)

    def query(self, query: VectorQuery) -> list[Match]:
        """With words, dense and sparse results are fused: the score is then the sum of both, each scaled to
        0…1 by its spread (distribution-based score fusion), and no cosine."""
        where = normal(query.where)
        if where == NO_FACT or query.limit < 1:
            return []
        asked = _hybrid(query, where) if query.words else _nearest(query, where)
        with self._connection.use() as client:
            found = client.query_points(self._collection, limit=query.limit, with_payload=["memory_id"], **asked)
            return [Match(_memory_id(point.payload), point.score) for point in found.points]

    def delete(self, ids: Sequence[str]) -> None:
        with self._connection.use() as client:
            for batch in chunks(ids, _BATCH):
                client.delete(self._collection, models.PointIdsList(points=list(batch)), wait=True)

    def listing(self, after: str | None, limit: int) -> list[tuple[str, int]]:
        with self._connection.use() as client:
            # A page begins with the id that it is given, if that is still there.
            points, _ = client.scroll(
                self._collection, offset=after, limit=limit + 1, with_payload=["memory_id"], with_vectors=False
            )
            page = [(str(point.id), _memory_id(point.payload)) for point in points]
        return [item for item in page if item[0] != after][:limit]

    def describe(self) -> StoreDescription:
        with self._connection.use() as client:
            count = client.count(self._collection, exact=True).count
        return StoreDescription("qdrant", self._place, count, self._model.dimension, searches_text=True)

    def drop(self) -> None:
        with self._connection.use() as client:
            client.delete_collection(self._collection)
        self._connection.renew()

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> QdrantClient:
        client = QdrantClient(
            host=self._address.host,
            port=self._address.port,
            grpc_port=self._address.grpc_port or 0,
            prefer_grpc=self._address.grpc_port is not None,
            grpc_options=dict(GRPC_OPTIONS),
            https=self._address.secure,
            api_key=self._address.api_key,
            timeout=math.ceil(self._settings.vector_timeout),
            check_compatibility=False,
            cloud_inference=True,  # or it would look through every number for something to embed
        )
        try:
            self._prepare(client)
        except BaseException:
            client.close()
            raise
        return client

    def _prepare(self, client: QdrantClient) -> None:
        """Make the collection and its indexes, as far as they are not there; others may be doing the same."""
        if not client.collection_exists(self._collection):
            try:
                self._create(client)
            except (UnexpectedResponse, grpc.RpcError):
                if not client.collection_exists(self._collection):
                    raise
        found = client.get_collection(self._collection)
        self._check(found.config.params)
        for name in _INDEXED.keys() - found.payload_schema.keys():
            client.create_payload_index(self._collection, name, _INDEXED[name], wait=True)

    def _create(self, client: QdrantClient) -> None:
        client.create_collection(
            self._collection,
            vectors_config={
                _DENSE: models.VectorParams(size=self._model.dimension, distance=models.Distance.COSINE),
            },
            sparse_vectors_config={_SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            shard_number=self._settings.qdrant_shards,
            replication_factor=self._settings.qdrant_replicas,
        )

    def _check(self, params: models.CollectionParams) -> None:
        vectors = params.vectors
        dense = vectors.get(_DENSE) if isinstance(vectors, dict) else vectors
        size, distance = (dense.size, dense.distance) if dense else (0, "no")
        if (size, distance) != (self._model.dimension, models.Distance.COSINE) or _SPARSE not in (
            params.sparse_vectors or {}
        ):
            found = f"vectors of {size} dimensions with {distance} distance"
            raise mismatch(self._place, found, f"{self._model} with Cosine distance, and words")


def _nearest(query: VectorQuery, where: FactFilter) -> dict[str, Any]:
    return {
        "query": query.embedding.tolist(),
        "using": _DENSE,
        "query_filter": _condition(query, where),
        "search_params": _thoroughness(max(_BREADTH, query.limit)),
    }


def _hybrid(query: VectorQuery, where: FactFilter) -> dict[str, Any]:
    width = max(_BREADTH, query.limit)
    condition = _condition(query, where)
    dense = models.Prefetch(
        query=query.embedding.tolist(),
        using=_DENSE,
        filter=condition,
        limit=width,
        params=_thoroughness(width),
    )
    words = _sparse(dict.fromkeys(query.words, 1.0))
    sparse = models.Prefetch(query=words, using=_SPARSE, filter=condition, limit=width)
    return {"prefetch": [dense, sparse], "query": models.FusionQuery(fusion=models.Fusion.DBSF)}


def _thoroughness(breadth: int) -> models.SearchParams:
    """ACORN looks past neighbours that a filter excludes: without it, a filter that a third meets costs recall."""
    return models.SearchParams(hnsw_ef=breadth, acorn=models.AcornSearchParams(enable=True))


def _point(record: VectorRecord) -> models.PointStruct:
    return models.PointStruct(
        id=record.id,
        vector={_DENSE: record.embedding.tolist(), _SPARSE: _sparse(_weights(record.words))},
        payload={
            "memory_id": record.memory_id,
            "facts": list(record.facts),
            "trust": record.trust,
            "about": dict(record.about),
        },
    )


def _memory_id(payload: Mapping[str, Any] | None) -> int:
    return (payload or {})["memory_id"]


# ---------------------------------------------------------------------------------------------------------- words


def _weights(words: Sequence[str]) -> dict[str, float]:
    """BM25's weights of a text's words, but for how rare a word is: that, the collection knows."""
    length = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * len(words) / _USUAL_LENGTH
    return {word: times * (_SATURATION + 1) / (times + _SATURATION * length) for word, times in Counter(words).items()}


def _sparse(weights: Mapping[str, float]) -> models.SparseVector:
    """Each word at the place that its digest says; words that share one are counted together."""
    places: dict[int, float] = {}
    for word, weight in weights.items():
        place = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest())
        places[place] = places.get(place, 0.0) + weight
    return models.SparseVector(indices=list(places), values=list(places.values()))


# -------------------------------------------------------------------------------------------------------- filters


def _condition(query: VectorQuery, where: FactFilter) -> models.Filter | None:
    parts = [] if where == EVERY_FACT else [_translated(where)]
    if query.min_trust > 0:
        parts.append(models.FieldCondition(key="trust", range=models.Range(gte=query.min_trust)))
    return models.Filter(must=parts) if parts else None


def _translated(where: FactFilter) -> models.Condition:
    match where:
        case AnyOf():
            return models.FieldCondition(key="facts", match=models.MatchAny(any=list(where.facts)))
        case Not():
            return models.Filter(must_not=[_translated(where.part)])
        case Joined():
            parts = [_translated(part) for part in where.parts]
            return models.Filter(must=parts) if where.all else models.Filter(should=parts)
        case _:
            assert_never(where)


# --------------------------------------------------------------------------------------------------------- errors


def _diagnosis(error: Exception) -> Trouble:
    if isinstance(error, grpc.RpcError):
        call = cast("grpc.Call", error)
        return Trouble.of_status(GRPC_STATUSES.get(call.code().name, 500), call.details() or str(error))
    if isinstance(error, UnexpectedResponse):
        return Trouble.of_status(error.status_code or 500, _reason(error))
    if isinstance(error, ResponseHandlingException) and isinstance(error.source, httpx.TransportError):
        return Trouble.unreached(error.source)
    return Trouble(str(error), "this may be a version of Qdrant that Mnemon does not know")


def _reason(error: UnexpectedResponse) -> str:
    return error.content.decode(errors="replace") or error.reason_phrase
