"""Bringing one document's chunks in step with its content, so that only what is new is embedded.

First the document's row is claimed: it is pending, with the digest of what is being indexed. Then the chunks are
written, a few hundred to a transaction, and in the last of these the row says that all is done. Each of them holds the
row and looks whether the claim still stands; if somebody else has claimed it for other content, this one ends. So a
document is never a mixture, and what was interrupted is begun again, which writes only what is missing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mnemon import journal, tokens
from mnemon.documents.chunking import Piece, chunk
from mnemon.documents.reading import Reading, Unreadable, read
from mnemon.documents.rows import (
    LAYOUT,
    SQL,
    DocumentRow,
    SealedKeys,
    drafts_of,
    entry_of,
    is_same,
    key_of,
    key_stem,
)
from mnemon.encryption.keys import Fetch
from mnemon.journal import Origin
from mnemon.memories.findable import Vectors
from mnemon.memories.rows import LAYOUT as MEMORY
from mnemon.memories.rows import memories
from mnemon.memories.writing import Writing
from mnemon.model import DocumentStatus, DocumentType, Memory
from mnemon.ports import Indexes, Raced, Row, Runner, Store, Transaction, Unit
from mnemon.settings import Settings
from mnemon.sql import Query, among, chunks, params_of
from mnemon.values import SEALED

if TYPE_CHECKING:  # slow to import
    from mnemon.embedding import Embedding

_CHUNKER = 1  # another number when texts are cut differently, so that unchanged files are cut again
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class DocumentDraft:
    """What a document is to be: its bytes, and what is known of it. `trouble` says why there are no bytes."""

    namespace: str
    path: str
    data: bytes
    digest: str
    size: int
    source: str | None
    kind: DocumentType
    limit: int
    title: str | None = None
    metadata: str | None = None
    """As JSON; None leaves what is there."""
    trouble: str | None = None

    @property
    def chunking(self) -> str:
        return f"{_CHUNKER}/{self.limit}"


class Outcome(NamedTuple):
    """What became of a document, and what it cost in chunks."""

    row: DocumentRow
    kind: Literal["added", "changed", "unchanged", "failed"]
    written: int = 0
    embedded: int = 0
    removed: int = 0


class _Superseded(Exception):
    """The claim on a document is somebody else's now."""


class Syncing:
    """Indexes contents and removes documents, in the name of one caller."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        runner: Runner,
        indexes: Callable[[], Indexes],
        embedding: "Callable[[], Embedding] | None",
        writing: Writing,
    ) -> None:
        self._store = store
        self._settings = settings
        self._runner = runner
        self._indexes = indexes
        self._embedding = embedding
        self._writing = writing

    # -- a document

    async def find(self, namespace: str, path: str) -> DocumentRow | None:
        rows = await self._store.fetch(SQL["get_document"].where([]), {"namespace": namespace, "file_path": path})
        return (await self.opened(self._store.fetch, rows))[0] if rows else None

    async def opened(self, fetch: Fetch, rows: Sequence[Row]) -> list[DocumentRow]:
        """Documents as they were before they were encrypted, if they were."""
        return [DocumentRow(*row) for row in await self._writing.sealing.opened(fetch, LAYOUT, rows)]

    async def sync(self, content: DocumentDraft, origin: Origin) -> Outcome:
        """Index the content, unless it is indexed already."""
        known = await self.find(content.namespace, content.path)
        if known and await self._is_done(known, content):
            return Outcome(known, "unchanged")
        row = await self._store.write(self._claiming(content, origin))
        kind = "added" if known is None or known.last_synced_at is None else "changed"
        try:
            reading, pieces = await self._runner.aside(lambda: _cut(content, self._settings.max_document_bytes))
            title = content.title or reading.title or PurePath(row.file_path).name
            titled = row._replace(title=title[title.startswith(SEALED) :][:500])
            return (await self._write(titled, reading, pieces, origin))._replace(kind=kind)
        except Unreadable as reason:
            failed = row._replace(sync_status="failed", error=str(reason), updated_at=origin.now)
            return await self._finish(failed, [], origin, Outcome(failed, "failed"))

    async def _is_done(self, row: DocumentRow, content: DocumentDraft) -> bool:
        is_same = (
            row.sync_status == DocumentStatus.SYNCED
            and row.content_hash == content.digest
            and row.chunking == content.chunking
            and row.document_type == content.kind
            and row.source == content.source
            and content.metadata in (None, row.metadata)
            and content.title in (None, row.title)
            and content.trouble is None
        )
        return is_same and await self.count_chunks(row) == row.chunk_count

    async def count_chunks(self, row: DocumentRow) -> int:
        """How many chunks can be found; somebody may have deleted some."""
        params = {"thread": row.thread, "namespace": row.namespace}
        return (await self._store.fetch(SQL["count_chunks"], params))[0][0]

    async def live_chunks(self, row: DocumentRow) -> list[Memory]:
        """The chunks that can be found, in order."""
        stem = key_stem(row.file_path, self._settings.max_key_length)
        found: list[Memory] = []
        first = 0
        while True:
            params = {"thread": row.thread, "namespace": row.namespace, "first": first, "limit": _PAGE}
            rows = await self._store.fetch(SQL["live_chunks"], params)
            page = memories(await self._writing.sealing.opened(self._store.fetch, MEMORY, rows))
            found += [memory for memory in page if memory.key.startswith(stem)]
            if len(page) < _PAGE:
                return found
            first = (page[-1].placement.position or 0) + 1

    async def remove(self, row: DocumentRow, origin: Origin) -> int:
        """Delete the chunks softly, and forget the document; how many chunks there were."""
        places = [(memory.namespace, memory.key) for memory in await self.live_chunks(row)]
        pieces = list(chunks(places))

        async def last(tx: Transaction) -> None:
            if await self._held(tx, row) is None:
                return
            for piece in pieces[-1:]:
                await self._writing.deleting(piece, origin)(tx)
            await tx.execute(SQL["delete_document"], {"id": row.id})
            await journal.record(tx, [entry_of(origin, "delete", row, chunks=len(places))])

        if len(pieces) > 1:  # it takes several transactions, so what is left must not pass for the whole
            await self.mark(row, DocumentStatus.PENDING, None, origin)
        for piece in pieces[:-1]:
            await self._store.write(self._writing.deleting(piece, origin))
        await self._store.write(last)
        return len(places)

    async def mark(self, row: DocumentRow, status: DocumentStatus, error: str | None, origin: Origin) -> DocumentRow:
        """Give the document another status, if it is as it was; the document as it is then."""

        async def unit(tx: Transaction) -> DocumentRow:
            now = await self._held(tx, row)
            if now is None or now != row or (now.sync_status, now.error) == (str(status), error):
                return now or row
            marked = now._replace(sync_status=str(status), error=error, updated_at=origin.now)
            await self._set(tx, marked)
            moved = {"from": now.sync_status, "to": str(status)}
            await journal.record(tx, [entry_of(origin, "status", marked, **moved)])
            return marked

        return await self._store.write(unit)

    # -- claiming and finishing

    def _claiming(self, content: DocumentDraft, origin: Origin) -> Unit[DocumentRow]:
        params = {
            "namespace": content.namespace, "file_path": content.path, "title": PurePath(content.path).name[:500],
            "document_type": str(content.kind), "content_hash": content.digest, "metadata": content.metadata or "{}",
            "size": content.size, "source": content.source, "chunking": content.chunking, "now": origin.now,
        }  # fmt: skip

        async def unit(tx: Transaction) -> DocumentRow:
            sealed = await self._writing.sealing.sealed(tx, LAYOUT, {**params, "error": None})
            inserted = await tx.fetch_one(SQL["insert_document"], sealed)
            if inserted:
                row = await self._fetched(tx, SQL["hold_document"].where([]), {"id": inserted[0]})
                await journal.record(tx, [entry_of(origin, "create", row)])
                return row
            query = SQL["get_document"].where([], self._store.dialect.row_lock)
            before = await self._fetched(tx, query, params)
            row = before._replace(
                document_type=params["document_type"], content_hash=content.digest, size=content.size,
                metadata=before.metadata if content.metadata is None else content.metadata, source=content.source,
                chunking=content.chunking, sync_status="pending", error=None, updated_at=origin.now,
            )  # fmt: skip
            await self._set(tx, row)
            moved = {"from": before.sync_status, "to": "pending"}
            await journal.record(tx, [entry_of(origin, "status", row, **moved)])
            return row

        return unit

    async def _held(self, tx: Transaction, row: DocumentRow) -> DocumentRow | None:
        """The row as it is now, nobody else's until the end of the transaction."""
        found = await tx.fetch_all(SQL["hold_document"].where([], self._store.dialect.row_lock), {"id": row.id})
        return (await self.opened(tx.fetch_all, found))[0] if found else None

    async def _fetched(self, tx: Transaction, query: Query, params: Mapping[str, Any]) -> DocumentRow:
        rows = await self.opened(tx.fetch_all, await tx.fetch_all(query, params))
        if not rows:
            raise Raced  # it was removed between two looks
        return rows[0]

    async def _set(self, tx: Transaction, row: DocumentRow) -> None:
        """Write what a document is to be."""
        await tx.execute(SQL["set_document"], await self._writing.sealing.sealed(tx, LAYOUT, row._asdict()))

    async def _finish(self, row: DocumentRow, units: Sequence[Unit[Any]], origin: Origin, outcome: Outcome) -> Outcome:
        """Do the units, a transaction each, and with the last of them set the row; not without the claim."""

        async def held(tx: Transaction) -> None:
            now = await self._held(tx, row)
            if now is None or (now.sync_status, now.content_hash) != ("pending", row.content_hash):
                raise _Superseded

        async def last(tx: Transaction) -> None:
            await held(tx)
            for unit in units[-1:]:
                await unit(tx)
            await self._set(tx, row)
            told = {"chunks": row.chunk_count, "embedded": outcome.embedded, "removed": outcome.removed}
            moved = {"from": "pending", "to": row.sync_status}
            await journal.record(tx, [entry_of(origin, "status", row, **moved, **told)])

        def guarded(unit: Unit[Any]) -> Unit[None]:
            async def run(tx: Transaction) -> None:
                await held(tx)
                await unit(tx)

            return run

        try:
            for unit in units[:-1]:
                await self._store.write(guarded(unit))
            await self._store.write(last)
        except _Superseded:
            now = await self.find(row.namespace, row.file_path)
            return Outcome(now or row, "unchanged")
        return outcome

    # -- chunks

    async def _write(self, row: DocumentRow, reading: Reading, pieces: Sequence[Piece], origin: Origin) -> Outcome:
        stem = key_stem(row.file_path, self._settings.max_key_length)
        standing = await self.live_chunks(row)
        live = {memory.key: memory for memory in standing}
        digest = await self._writing.sealing.digesting(row.namespace)
        key = partial(key_of, stem) if digest is None else SealedKeys(stem, digest, standing)
        drafts = drafts_of(row, reading, pieces, key)
        fresh = [draft for draft in drafts if not is_same(live.get(draft.key or ""), draft)]
        gone = sorted(live.keys() - {draft.key for draft in drafts})
        made = await self._vectors(row, [draft.value for draft in fresh])
        units: list[Unit[Any]] = [
            await self._writing.putting([draft for draft, _ in piece], origin, [vectors for _, vectors in piece])
            for piece in chunks(list(zip(fresh, made.vectors, strict=True)))
        ]
        units += [self._writing.deleting([(row.namespace, key) for key in piece], origin) for piece in chunks(gone)]
        synced = row._replace(
            chunk_count=len(drafts), embedding_model=made.model, error=None, last_synced_at=origin.now,
            sync_status="synced", updated_at=origin.now,
        )  # fmt: skip
        outcome = Outcome(synced, "changed", len(fresh), made.embedded, len(gone))
        return await self._finish(synced, units, origin, outcome)

    async def _vectors(self, row: DocumentRow, texts: Sequence[str]) -> "_Made":
        """The vectors of chunks: those that the same texts have already, and new ones for the others."""
        if self._embedding is None or self._writing.sealing.hides_vectors(row.namespace):
            return _Made([{} for _ in texts], 0, None)
        spaces = await self._embedding().prepare()
        sources = await self._sources(row, dict.fromkeys(texts))
        mirror = self._indexes().vectors
        known = {space.id: await mirror.vectors_of(space, sorted(sources.values())) for space in spaces}
        found: dict[str, Vectors] = {
            text: {space: vectors[source] for space, vectors in known.items() if source in vectors}
            for text, source in sources.items()
        }
        lacking = [text for text in dict.fromkeys(texts) if len(found.get(text, ())) < max(1, len(spaces))]
        new = await self._writing.findable.embed(lacking, [row.namespace] * len(lacking)) if lacking else ()
        made = dict(zip(lacking, new, strict=True))
        vectors = [{**found.get(text, {}), **made.get(text, {})} for text in texts]
        return _Made(vectors, sum(1 for each in made.values() if each), spaces[0].model.name if spaces else None)

    async def _sources(self, row: DocumentRow, texts: Iterable[str]) -> dict[str, int]:
        """For texts of chunks, versions of memories that say the same.

        That is the chunk itself, at another place or before it was deleted; or that of a document with the same
        content, as when a file is moved.
        """
        sources = await self._newest(row.namespace, row.file_path, texts)
        missing = [text for text in texts if text not in sources]
        params = {"content_hash": row.content_hash, "namespace": row.namespace, "id": row.id}
        twins = await self._store.fetch(SQL["twin"], params) if missing else []
        for (path,) in twins:
            sources |= await self._newest(row.namespace, path, missing)
        return sources

    async def _newest(self, namespace: str, path: str, texts: Iterable[str]) -> dict[str, int]:
        """The newest versions of chunks of the document at a path, by their texts."""
        stem = key_stem(path, self._settings.max_key_length)
        keys = {key_of(stem, text): text for text in texts}
        found: dict[str, int] = {}
        for piece in chunks(list(keys)):
            named = [among("key", piece, "key")]
            query = SQL["newest_versions"].where(named)
            rows = await self._store.fetch(query, {"namespace": namespace, **params_of(named)})
            found |= {keys[key]: source for key, source in rows}
        return found


class _Made(NamedTuple):
    """Vectors of chunks, how many texts had to be embedded for them, and by which model."""

    vectors: Sequence[Vectors]
    embedded: int
    model: str | None


def _cut(content: DocumentDraft, largest: int) -> tuple[Reading, list[Piece]]:
    """The content as text, and as pieces of it; `Unreadable` if that is not possible. May take long."""
    if content.trouble:
        raise Unreadable(content.trouble)
    if content.size > largest:
        raise Unreadable(f"it has {content.size} bytes; max_document_bytes allows {largest}")
    reading = read(content.data, content.kind, content.path)
    return reading, chunk(reading.text, reading.structure, content.limit, tokens.counter().count)
