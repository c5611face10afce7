"""Vectors in Chroma: one collection for each space, on a server or in a folder of this machine.

A record's metadata is `facts` (a list), `trust`, `memory_id`, `place` (the id's first 32 bits, by which
the records are listed) and `about` (JSON). Chroma itself embeds nothing and searches no words here.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, assert_never, cast
from uuid import UUID

import chromadb
import httpx
import orjson
from chromadb import Collection
from chromadb.api import ClientAPI
from chromadb.api.fastapi import FastAPI
from chromadb.config import DEFAULT_DATABASE, DEFAULT_TENANT, System
from chromadb.config import Settings as ChromaSettings
from chromadb.errors import ChromaError, NotFoundError

from mnemon.backends.addresses import Address
from mnemon.backends.remote import Connection, Trouble, collection_name, latest, mismatch
from mnemon.facts import EVERY_FACT, NO_FACT, AnyOf, FactFilter, Joined, Not, normal
from mnemon.model import Match, Space, StoreDescription
from mnemon.ports import VectorMemory, VectorQuery, VectorRecord
from mnemon.settings import Settings
from mnemon.sql import chunks

_BATCH = 200  # a large one could take longer than the timeout
_PLACES = 2**32
_WIDEST = 200  # a longer chain of conditions would be too deep for the SQLite inside Chroma
_UNWRITTEN = "Nothing found on disk"  # so says Chroma of a graph that it is writing for the first time
_GRAPH = {"space": "cosine", "ef_construction": 200, "ef_search": 200, "max_neighbors": 32}


def open_store(url: str, space: Space, settings: Settings) -> VectorMemory:
    """The space's collection at `chroma://host:8000`, or in the folder of `chroma:///folder`.

    It is reached, and made, when it is first used. Options are `tenant` and `database`.
    """
    return ChromaStore(Address.parse(url), space, settings)


class ChromaStore:
    """A collection of Chroma."""

    def __init__(self, address: Address, space: Space, settings: Settings) -> None:
        self._address = address
        self._model = space.model
        self._timeout = settings.vector_timeout
        self._tenant = address.options.get("tenant", DEFAULT_TENANT)
        self._database = address.options.get("database", DEFAULT_DATABASE)
        self._name = collection_name(settings, space.model)
        self._place = f"{address}/{self._name}"
        self._connection = Connection(
            self._place, self._timeout, self._connect, lambda opened: opened.close(), _diagnosis
        )

    def store(self, records: Sequence[VectorRecord]) -> None:
        with self._connection.use() as opened:
            for batch in chunks(latest(records), _BATCH):
                opened.collection.upsert(
                    ids=[record.id for record in batch],
                    embeddings=[record.embedding for record in batch],
                    metadatas=[_metadata(record) for record in batch],
                )

    def query(self, query: VectorQuery) -> list[Match]:
        where = normal(query.where)
        if where == NO_FACT or query.limit < 1:
            return []
        with self._connection.use() as opened:
            found = opened.collection.query(
                query_embeddings=[query.embedding],
                n_results=query.limit,
                where=_condition(query, where),
                include=["metadatas", "distances"],
            )
            known, distances = cast("Any", found["metadatas"])[0], cast("Any", found["distances"])[0]
            return [Match(each["memory_id"], 1 - distance) for each, distance in zip(known, distances, strict=True)]

    def delete(self, ids: Sequence[str]) -> None:
        with self._connection.use() as opened:
            for batch in chunks(ids, _BATCH):
                opened.collection.delete(ids=list(batch))

    def listing(self, after: str | None, limit: int) -> list[tuple[str, int]]:
        """In the order of ids. Chroma lists in none, so ranges of ids are read, each of about a page."""
        page: list[tuple[str, int]] = []
        with self._connection.use() as opened:
            width = max(1, _PLACES * limit // (opened.collection.count() + 1))
            start = _place(after) if after else 0
            while start < _PLACES and len(page) < limit:
                page += [item for item in _between(opened.collection, start, start + width) if item[0] > (after or "")]
                start += width
        return page[:limit]

    def describe(self) -> StoreDescription:
        with self._connection.use() as opened:
            count = opened.collection.count()
        return StoreDescription("chroma", self._place, count, self._model.dimension)

    def drop(self) -> None:
        with self._connection.use() as opened, suppress(NotFoundError):
            opened.drop()
        self._connection.renew()

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> "_Opened":
        opened = self._connect_server() if self._address.host else self._connect_folder()
        try:
            self._check(opened.collection)
        except BaseException:
            opened.close()
            raise
        return opened

    def _connect_server(self) -> "_Opened":
        server = _Server(self._address, self._timeout)
        try:
            model = server.get_or_create_collection(
                self._name, **self._wanted(), tenant=self._tenant, database=self._database
            )
        except BaseException:
            server.hang_up()
            raise

        def drop() -> None:
            server.delete_collection(self._name, self._tenant, self._database)

        return _Opened(Collection(server, model, embedding_function=None), drop, server.hang_up)

    def _connect_folder(self) -> "_Opened":
        with _folders:
            settings = ChromaSettings(anonymized_telemetry=False)
            client = chromadb.PersistentClient(self._address.folder, settings, self._tenant, self._database)
        try:
            collection = client.get_or_create_collection(self._name, embedding_function=None, **self._wanted())
        except BaseException:
            _close_folder(client)
            raise
        return _Opened(collection, lambda: client.delete_collection(self._name), lambda: _close_folder(client))

    def _wanted(self) -> dict[str, Any]:
        return {"configuration": {"hnsw": _GRAPH}, "metadata": {"model": str(self._model)}}

    def _check(self, collection: Collection) -> None:
        space = collection.configuration_json["hnsw"]["space"]
        model = (collection.metadata or {}).get("model", "vectors of another program")
        if (space, model) != ("cosine", str(self._model)):
            raise mismatch(self._place, f"{model} with {space} distance", f"{self._model} with cosine distance")


@dataclass(frozen=True, slots=True)
class _Opened:
    """A collection, how to remove it, and how to let go of what it needs."""

    collection: Collection
    drop: Callable[[], object]
    close: Callable[[], object]


class _Server(FastAPI):
    """Chroma's own client of a server, below the one that would wait for an answer for ever."""

    def __init__(self, address: Address, timeout: float) -> None:
        key = address.api_key
        settings = ChromaSettings(
            anonymized_telemetry=False,
            chroma_server_host=address.host,
            chroma_server_http_port=address.port,
            chroma_server_ssl_enabled=address.secure,
            chroma_server_headers={"x-chroma-token": key, "Authorization": f"Bearer {key}"} if key else {},
        )
        super().__init__(System(settings))
        self._session.timeout = timeout

    def hang_up(self) -> None:
        self._session.close()


_folders = threading.Lock()
"""Clients of one folder share what Chroma opens, which it does not guard against threads itself."""


def _close_folder(client: ClientAPI) -> None:
    with _folders:
        cast("Any", client).close()


def _metadata(record: VectorRecord) -> dict[str, Any]:
    return {
        "memory_id": record.memory_id,
        "facts": list(record.facts) or [""],  # Chroma takes no empty list
        "trust": float(record.trust),
        "place": _place(record.id),
        "about": orjson.dumps(dict(record.about)).decode(),
    }


def _place(record_id: str) -> int:
    return UUID(record_id).int >> 96


def _between(collection: Collection, start: int, end: int) -> list[tuple[str, int]]:
    where: Any = {"$and": [{"place": {"$gte": start}}, {"place": {"$lt": end}}]}
    found = collection.get(where=where, include=["metadatas"])
    metadatas = cast("list[Any]", found["metadatas"])
    return sorted((name, known["memory_id"]) for name, known in zip(found["ids"], metadatas, strict=True))


# -------------------------------------------------------------------------------------------------------- filters


def _condition(query: VectorQuery, where: FactFilter) -> Any:
    parts = [] if where == EVERY_FACT else [_translated(where)]
    if query.min_trust > 0:
        parts.append({"trust": {"$gte": float(query.min_trust)}})
    return _joined("$and", parts) if parts else None


def _translated(where: FactFilter) -> dict[str, Any]:
    match where:
        case AnyOf():
            return _joined("$or", [{"facts": {"$contains": fact}} for fact in where.facts])
        case Not():
            facts = cast("AnyOf", where.part).facts  # `normal` leaves nothing else
            return _joined("$and", [{"facts": {"$not_contains": fact}} for fact in facts])
        case Joined():
            return _joined("$and" if where.all else "$or", [_translated(part) for part in where.parts])
        case _:
            assert_never(where)


def _joined(operator: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    while len(parts) > _WIDEST:
        parts = [_joined(operator, some) for some in chunks(parts, _WIDEST)]
    return {operator: list(parts)} if len(parts) > 1 else parts[0]


# --------------------------------------------------------------------------------------------------------- errors


def _diagnosis(error: Exception) -> Trouble:
    if isinstance(error, httpx.TransportError):
        return Trouble.unreached(error)
    if isinstance(error, ChromaError) and _UNWRITTEN in str(error):
        return Trouble(str(error), "it passes: ask again", away=True)
    if isinstance(error, ChromaError):
        return Trouble.of_status(error.code(), str(error))
    answer = error.__context__  # the client raises a bare Exception in its place
    if isinstance(answer, httpx.HTTPStatusError):
        return Trouble.of_status(answer.response.status_code, str(answer))
    return Trouble(str(error), "the server's own log may say more")
