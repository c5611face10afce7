"""What the drivers of vector stores share: what a collection is called, and a connection that says what went wrong."""

import hashlib
import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

from mnemon.errors import MnemonError, SchemaMismatch, StoreClosed, StoreError, StoreUnavailable
from mnemon.model import EmbeddingModel
from mnemon.ports import VectorRecord
from mnemon.settings import Settings

Client = TypeVar("Client")

_LONGEST_SLUG = 40
_LONGEST_TEXT = 500


def collection_name(settings: Settings, model: EmbeddingModel) -> str:
    """The name of the collection with a model's vectors: other models, and other prefixes, have others."""
    identity = f"{model.name}\n{model.version}\n{model.dimension}"
    digest = hashlib.blake2b(identity.encode(), digest_size=4).hexdigest()
    parts = (settings.vector_collection_prefix, _slug(model.name), _slug(model.version), str(model.dimension), digest)
    return "_".join(part for part in parts if part)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[:_LONGEST_SLUG].strip("_")


def mismatch(place: str, found: object, needed: object) -> SchemaMismatch:
    """The error for a collection that is there already and is another than the one needed."""
    return SchemaMismatch(
        f"{place} holds {found}, and not {needed}: choose another vector_collection_prefix, or delete that collection"
    )


def latest(records: Sequence[VectorRecord]) -> list[VectorRecord]:
    """The records without those that a later one with the same id replaces."""
    return list({record.id: record for record in records}.values())


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a client's error means."""

    text: str
    advice: str
    away: bool = False
    """The store is out of reach, or does not answer in time."""
    lost: bool = False
    """What the connection was made for is gone, so that a new one is needed."""

    @classmethod
    def unreached(cls, error: object) -> "Trouble":
        """For a connection that is refused or breaks, and for an answer that does not come in time."""
        return cls(
            str(error) or type(error).__name__,
            "check that the server runs, and the URL's host and port; if it is only slow, raise vector_timeout",
            away=True,
        )

    @classmethod
    def of_status(cls, status: int, text: str) -> "Trouble":
        """For an answer with an HTTP status, or what gRPC calls the same: see `GRPC_STATUSES`."""
        if status in (408, 429, 502, 503, 504):
            return cls.unreached(text)
        if status in (401, 403):
            return cls(text, "check the key in the URL, and what it may do")
        if status == 404:
            return cls(text, "the collection is gone; the next call makes a new one, which has to be filled", lost=True)
        return cls(text, "the server's own log may say more")


GRPC_OPTIONS = MappingProxyType(
    {
        "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.max_reconnect_backoff_ms": 1000,
        "grpc.min_reconnect_backoff_ms": 2000,
    }
)
"""With these, a server that is back is found again within a few seconds; otherwise it may take twenty."""

GRPC_STATUSES = MappingProxyType(
    {
        "CANCELLED": 503,
        "DEADLINE_EXCEEDED": 504,
        "NOT_FOUND": 404,
        "PERMISSION_DENIED": 403,
        "RESOURCE_EXHAUSTED": 429,
        "UNAUTHENTICATED": 401,
        "UNAVAILABLE": 503,
    }
)
"""HTTP statuses by the names of gRPC's; any other is 500."""


class Connection(Generic[Client]):
    """A client that is made when it is first needed, by whichever thread is first, and shared by all."""

    def __init__(
        self,
        place: str,
        timeout: float,
        connect: Callable[[], Client],
        disconnect: Callable[[Client], object],
        diagnose: Callable[[Exception], Trouble],
    ) -> None:
        """If `connect` raises, the next use tries again. `diagnose` reads what the client raises."""
        self._place = place
        self._timeout = timeout
        self._connect = connect
        self._disconnect = disconnect
        self._diagnose = diagnose
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._closed = False

    @contextmanager
    def use(self) -> Generator[Client]:
        """The client, while what it raises becomes a `StoreError`."""
        try:
            yield self._reach()
        except MnemonError:
            raise
        except Exception as error:
            raise self._translated(error) from error

    def renew(self) -> None:
        """Connect anew when the client is next needed."""
        self._let_go()

    def close(self) -> None:
        """Idempotent; whoever still uses the client gets `StoreClosed`."""
        self._closed = True
        self._let_go()

    def _reach(self) -> Client:
        client = self._client
        if client is not None and not self._closed:
            return client
        if not self._lock.acquire(timeout=self._timeout):
            raise StoreUnavailable(f"{self._place} does not answer another thread, which is connecting to it")
        try:
            if self._closed:
                raise StoreClosed(f"{self._place} was closed")
            if self._client is None:
                self._client = self._connect()
            return self._client
        finally:
            self._lock.release()

    def _translated(self, error: Exception) -> StoreError:
        if self._closed:
            return StoreClosed(f"{self._place} was closed")
        trouble = self._diagnose(error)
        if trouble.lost:
            self._let_go()
        kind = StoreUnavailable if trouble.away else StoreError
        return kind(f"{self._place}: {' '.join(trouble.text.split())[:_LONGEST_TEXT]}: {trouble.advice}")

    def _let_go(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            self._disconnect(client)
