"""Documents as rows of `document_index` and their chunks as memories, and back."""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mnemon import journal
from mnemon.clock import moment, moment_or_none
from mnemon.documents.chunking import Piece
from mnemon.documents.reading import Reading
from mnemon.encryption.sealing import Layout
from mnemon.journal import Origin
from mnemon.memories.rows import COLUMNS
from mnemon.model import Document, DocumentChunk, DocumentStatus, DocumentType, Memory, MemoryDraft, Placement
from mnemon.sql import load
from mnemon.values import decode

_DIGEST = 20  # hexadecimal digits that tell a document's chunks apart
_REST = 32  # what a chunk's key has beside the path, at the most


class DocumentRow(NamedTuple):
    """A row of `document_index`, as every query selects it."""

    id: int
    namespace: str
    file_path: str
    title: str
    document_type: str
    content_hash: str
    chunk_count: int
    embedding_model: str | None
    metadata: str
    size: int
    source: str | None
    chunking: str
    error: str | None
    last_synced_at: int | None
    sync_status: str
    created_at: int
    updated_at: int

    @property
    def thread(self) -> str:
        """The thread that its chunks are."""
        return f"document:{self.id}"


LAYOUT = Layout("document_index", DocumentRow._fields)
SQL = {
    name: query.fill(columns=", ".join(DocumentRow._fields), memory_columns=", ".join(COLUMNS))
    for name, query in load("documents").items()
}


def document_of(row: DocumentRow) -> Document:
    """A row as the caller sees it."""
    return Document(
        row.id,
        row.namespace,
        row.file_path,
        row.title,
        DocumentType(row.document_type),
        DocumentStatus(row.sync_status),
        row.content_hash,
        row.size,
        row.chunk_count,
        row.embedding_model,
        decode(row.metadata),
        row.source,
        row.error,
        moment_or_none(row.last_synced_at),
        moment(row.created_at),
        moment(row.updated_at),
    )


def entry_of(origin: Origin, operation: str, row: DocumentRow, **payload: Any) -> dict[str, Any]:
    """The journal entry of a change of a document."""
    told = {"path": row.file_path, **payload}
    return journal.entry(origin, "document", str(row.id), operation, namespace=row.namespace, payload=told)


# ------------------------------------------------------------------------------------------------------------- chunks


def key_stem(path: str, limit: int) -> str:
    """What the keys of a document's chunks begin with: its path, or its end and a digest if it is too long."""
    room = max(0, limit - _REST)
    if len(path) <= room:
        return f"{path}#"
    tail = path[len(path) - max(0, room - _DIGEST - 1) :]
    return f"{hashlib.sha256(path.encode()).hexdigest()[:_DIGEST]}…{tail}#"


def key_of(stem: str, text: str, ordinal: int = 1) -> str:
    """The key of a chunk; of those of a document that say the same, each after the first has its number."""
    key = stem + hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
    return key if ordinal == 1 else f"{key}-{ordinal}"


class SealedKeys:
    """The keys of chunks that are encrypted: those that they have, or a digest that tells nothing without the key.

    The digests are others after a rotation, and chunks that stay should keep their history all the same.
    """

    def __init__(self, stem: str, digest: Callable[[str], str], live: Iterable[Memory]) -> None:
        self._stem = stem
        self._digest = digest
        self._live: dict[object, list[str]] = {}
        self._taken: set[str] = set()
        for memory in live:
            if isinstance(memory.value, str):  # or somebody has changed it
                self._live.setdefault(memory.value, []).append(memory.key)
                self._taken.add(memory.key)

    def __call__(self, text: str, ordinal: int) -> str:
        if known := self._live.get(text):
            return known.pop(0)
        key = self._stem + self._digest(text)[:_DIGEST]
        numbered = (key if number == 1 else f"{key}-{number}" for number in itertools.count(1))
        found = next(each for each in numbered if each not in self._taken)
        self._taken.add(found)
        return found


def drafts_of(
    row: DocumentRow, reading: Reading, pieces: Sequence[Piece], key: Callable[[str, int], str]
) -> list[MemoryDraft]:
    """The chunks as memories. A key is made of the text, so that a chunk that only moves stays the same memory.

    What is nothing but white space is no chunk.
    """
    about = {**decode(row.metadata), "path": row.file_path, "title": row.title, "document_type": row.document_type}
    drafts: list[MemoryDraft] = []
    seen: dict[str, int] = {}
    for piece in pieces:
        text = reading.text[piece.start : piece.end]
        if not text.strip():
            continue
        seen[text] = seen.get(text, 0) + 1
        drafts.append(
            MemoryDraft(
                text,
                row.namespace,
                key(text, seen[text]),
                metadata={**about, "headings": list(piece.headings), **_place(reading, piece)},
                placement=Placement(row.thread, len(drafts)),
            )
        )
    return drafts


def _place(reading: Reading, piece: Piece) -> dict[str, int]:
    """Where a piece stands in the file: its page, or its first and last line that say something."""
    text = reading.text
    if reading.has_pages:
        return {"page": text.count("\f", 0, piece.start) + 1}
    said = text[piece.start : piece.end]
    first = text.count("\n", 0, piece.start) + said.count("\n", 0, len(said) - len(said.lstrip()))
    last = first + said.strip().count("\n")
    if reading.lines is None:
        return {"first_line": first + 1, "last_line": last + 1}
    return {"first_line": reading.lines[first], "last_line": reading.lines[last]}


def is_same(memory: Memory | None, draft: MemoryDraft) -> bool:
    """Whether a chunk stands there as it is to be."""
    return (
        memory is not None
        and memory.value == draft.value
        and memory.metadata == draft.metadata
        and draft.placement is not None
        and (memory.placement.thread, memory.placement.position) == (draft.placement.thread, draft.placement.position)
    )


def chunk_of(memory: Memory) -> DocumentChunk:
    """A memory as the chunk that it is."""
    about: Mapping[str, Any] = memory.metadata
    return DocumentChunk(
        memory.key,
        memory.placement.position or 0,
        memory.value,
        tuple(about.get("headings", ())),
        about.get("first_line"),
        about.get("last_line"),
        about.get("page"),
    )
