"""Contents in S3, Google Cloud Storage or Azure, by `obstore`.

    content/ab12…     every content, once, under its digest
    wanted/ab12…      empty: somebody wrote the content again that is there, at the moment this was written
    doomed/ab12…      empty: somebody is removing the content

These stores have no locks, so whoever removes a content says so before looking whether it is still old, and whoever
writes one looks for that afterwards: see `ObjectContents.delete` and `ObjectWriter.finish`.
"""

import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import from_url

from mnemon.errors import ContentMissing, InvalidSettings, StoreReadOnly, StoreUnavailable
from mnemon.model import StoredContent
from mnemon.ports import PIECE

_CONTENT, _WANTED, _DOOMED = "content", "wanted", "doomed"
_IN_MEMORY = 8 << 20  # what is larger waits in a temporary file until its digest is known
_PART = 8 << 20
_MOST_PARTS = 9_000  # S3 takes 10 000
_AT_ONCE = 4
_PATIENCE = 30.0  # seconds after which whoever began to remove a content does not go on
_ABANDONED = 90.0  # … and is taken for dead
_PAUSE = 0.05
_RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
_OPTIONS = {"endpoint": "endpoint", "region": "region"}


class ObjectContents:
    """A `ContentStore` in a bucket; credentials come from the environment, as the store's own tools take them.

    The URL may have the options `endpoint` and `region`, for stores that speak S3's protocol elsewhere.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._where = f"{parts.scheme}://{parts.netloc}{parts.path}"
        try:
            self._store = from_url(self._where, retry_config=_RETRIES, **_options(parts.query))
        except (BaseError, ValueError, TypeError) as error:
            raise InvalidSettings(f"the content_url {self._where} cannot be used: {error}") from error

    def new(self) -> "ObjectWriter":
        return ObjectWriter(self)

    def read(self, sha256: str, offset: int = 0) -> Iterator[bytes]:
        """In parts, each with a request of its own, as stores cut off an answer that takes long."""
        with self.mapped_errors(sha256):
            size = obstore.head(self._store, _key(_CONTENT, sha256))["size"]
            for start in range(offset, size, _PART):
                part = obstore.get_range(self._store, _key(_CONTENT, sha256), start=start, end=min(start + _PART, size))
                view = memoryview(part)
                for begin in range(0, len(view), PIECE):
                    yield bytes(view[begin : begin + PIECE])

    def delete(self, sha256: str, age: float) -> bool:
        with self.mapped_errors(sha256):
            if not self._is_old(sha256, age):
                return False
            began = time.monotonic()
            self._mark(_DOOMED, sha256)
            try:
                # Who wrote it before that is seen here; who writes it after that sees the mark, or that it is gone.
                if not self._is_old(sha256, age) or time.monotonic() - began > _PATIENCE:
                    return False
                obstore.delete(self._store, _key(_CONTENT, sha256))
                self._unmark(_WANTED, sha256)
                return True
            finally:
                self._unmark(_DOOMED, sha256)

    def listing(self) -> Iterator[StoredContent]:
        with self.mapped_errors():
            for found in self._listed(_CONTENT):
                yield StoredContent(found["path"].rpartition("/")[2], found["size"], found["last_modified"])

    def sweep(self, age: float) -> int:
        """Marks that have had their time. Parts of uploads that were broken off are the store's to remove."""
        with self.mapped_errors():
            for kind in (_WANTED, _DOOMED):
                for path in [found["path"] for found in self._listed(kind) if _age(found["last_modified"]) >= age]:
                    self._remove(path)
        return 0

    def close(self) -> None:
        """There is nothing to let go of."""

    # ------------------------------------------------------------------------------------------------ for the writer

    def size_of(self, sha256: str) -> int | None:
        """How large the content is; None if it is not there."""
        found = self._head(_CONTENT, sha256)
        return None if found is None else found["size"]

    def upload(self, sha256: str, file: Any, size: int) -> None:
        """Put a file's content there, in several parts if it is large."""
        obstore.put(
            self._store, _key(_CONTENT, sha256), file,
            chunk_size=max(_PART, -(-size // _MOST_PARTS)), max_concurrency=_AT_ONCE,
        )  # fmt: skip

    def want(self, sha256: str) -> None:
        """The content that is there counts as written now."""
        self._mark(_WANTED, sha256)

    def is_doomed(self, sha256: str) -> bool:
        """Whether somebody is removing the content. A mark that is too old was left by somebody who died."""
        found = self._head(_DOOMED, sha256)
        if found is not None and _age(found["last_modified"]) > _ABANDONED:
            self._unmark(_DOOMED, sha256)
            return False
        return found is not None

    @contextmanager
    def mapped_errors(self, sha256: str = "") -> Generator[None]:
        """What the client raises, as Mnemon's errors."""
        try:
            yield
        except FileNotFoundError as error:
            if sha256 and "NoSuchBucket" not in str(error):
                raise ContentMissing(f"the content {sha256} is not in {self._where}") from error
            raise StoreUnavailable(f"{self._where} does not exist") from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise StoreReadOnly(f"{self._where} refuses: {_brief(error)}") from error
        except (BaseError, OSError) as error:
            raise StoreUnavailable(f"{self._where} cannot be used now: {_brief(error)}") from error

    def _is_old(self, sha256: str, age: float) -> bool:
        content, wanted = self._head(_CONTENT, sha256), self._head(_WANTED, sha256)
        return content is not None and all(_age(each["last_modified"]) >= age for each in (content, wanted) if each)

    def _head(self, kind: str, sha256: str) -> Mapping[str, Any] | None:
        try:
            return cast("Mapping[str, Any]", obstore.head(self._store, _key(kind, sha256)))
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise
            return None

    def _listed(self, kind: str) -> Iterator[Mapping[str, Any]]:
        for batch in obstore.list(self._store, prefix=kind):  # pyright: ignore[reportUnknownMemberType]
            yield from batch

    def _mark(self, kind: str, sha256: str) -> None:
        obstore.put(self._store, _key(kind, sha256), b"")

    def _unmark(self, kind: str, sha256: str) -> None:
        self._remove(_key(kind, sha256))

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):  # so say those that care
            obstore.delete(self._store, path)


class ObjectWriter:
    """Collects a content until its digest, which is its name, is known; then sends it in parts."""

    def __init__(self, contents: ObjectContents) -> None:
        self._contents = contents
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by finish and abort

    def write(self, piece: bytes) -> None:
        self._file.write(piece)

    def finish(self, sha256: str) -> None:
        size = self._file.tell()
        with self._contents.mapped_errors():
            while not self._kept(sha256, size):
                time.sleep(_PAUSE)
        self._file.close()

    def abort(self) -> None:
        self._file.close()

    def _kept(self, sha256: str, size: int) -> bool:
        """Put the content there, unless it is; whether it stays."""
        if self._contents.size_of(sha256) == size:
            self._contents.want(sha256)
        else:
            self._file.seek(0)
            self._contents.upload(sha256, self._file, size)
        return not self._contents.is_doomed(sha256) and self._contents.size_of(sha256) == size


def _key(kind: str, sha256: str) -> str:
    return f"{kind}/{sha256}"


def _age(moment: datetime) -> float:
    return (datetime.now(UTC) - moment).total_seconds()


def _options(query: str) -> dict[str, Any]:
    given = dict(parse_qsl(query))
    unknown = given.keys() - _OPTIONS.keys()
    if unknown:
        raise InvalidSettings(f"content_url has no option {min(unknown)!r}; use any of {', '.join(_OPTIONS)}")
    found: dict[str, Any] = {_OPTIONS[name]: value for name, value in given.items()}
    if given.get("endpoint", "").startswith("http://"):
        found["client_options"] = {"allow_http": True}
    return found


def _brief(error: Exception) -> str:
    """The first line of what the client says, which may be many."""
    return str(error).partition("\n")[0][:300]
