"""Values of documents and their chunks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class DocumentStatus(StrEnum):
    """Whether a document's chunks are what the document says."""

    PENDING = "pending"
    SYNCED = "synced"
    FAILED = "failed"
    STALE = "stale"


class DocumentType(StrEnum):
    """How a document is read."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    PDF = "pdf"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Document:
    """A file that is indexed as chunks. `path` is what it is called and cited by; `size` is in bytes.

    `source` is where the file is on the disk, None if its content was given. If it failed, `error` says why; the
    chunks are those of the last content that could be read.
    """

    id: int
    namespace: str
    path: str
    title: str
    document_type: DocumentType
    status: DocumentStatus
    content_hash: str
    size: int
    chunk_count: int
    embedding_model: str | None
    metadata: dict[str, Any]
    source: str | None
    error: str | None
    last_synced_at: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A piece of a document: its text to the character, the headings above it, and its lines or its page.

    `key` is that of the memory that it is, `position` its place in the document, counted from 0.
    """

    key: str
    position: int
    text: str
    headings: tuple[str, ...]
    first_line: int | None
    last_line: int | None
    page: int | None


@dataclass(frozen=True, slots=True)
class DocumentReport:
    """What became of some documents, by their paths, and what it cost.

    Of the chunks that were written, `chunks_embedded` were given to the embedder; the others were known already
    and only moved.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: int = 0
    removed: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why each of them could not be read."""
    skipped: int = 0
    """How many files were of no kind that can be read."""
    chunks_written: int = 0
    chunks_embedded: int = 0
    chunks_removed: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing has happened."""
        return not (self.added or self.changed or self.removed or self.failed)
