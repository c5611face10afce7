"""Documents: files and texts, indexed as chunks that can be recalled with their neighbours and cited by their place."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mnemon.access import Access, under
from mnemon.clock import Clock
from mnemon.documents.files import Folder, PathLike, absolute, check_path, name_of
from mnemon.documents.folders import Watch
from mnemon.documents.reading import digest_of, is_binary, type_of
from mnemon.documents.reports import Following, Tally
from mnemon.documents.rows import SQL, DocumentRow, chunk_of, document_of
from mnemon.documents.syncing import DocumentDraft, Syncing
from mnemon.errors import DocumentNotFound, InvalidIdentifier, InvalidInput, InvalidStatus
from mnemon.journal import Origin, origin_of
from mnemon.memories.writing import Writing
from mnemon.model import Document, DocumentChunk, DocumentReport, DocumentStatus, DocumentType, Level, Page, Progress
from mnemon.namespaces import EVERYTHING, check_key, check_namespace, check_prefix
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Indexes, Runner, Store
from mnemon.settings import Settings
from mnemon.sql import Fragment, equal, params_of
from mnemon.values import check_text, encode_metadata

if TYPE_CHECKING:  # slow to import
    from mnemon.embedding import Embedding

_TITLE = "a document's title"
_LONGEST_TITLE = 500
_PAGE = 500
_GONE = "the file is not there"
_NEWEST = 2**63 - 1
_FEWEST_TOKENS, _MOST_TOKENS = 16, 8192


@dataclass(frozen=True, slots=True)
class _Request:
    """What the documents of one call have in common."""

    namespace: str
    origin: Origin
    limit: int
    metadata: str | None = None


class DocumentService:
    """Indexes documents, and keeps them in step with their files."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        runner: Runner,
        indexes: Callable[[], Indexes],
        embedding: "Callable[[], Embedding] | None",
        writing: Writing,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._runner = runner
        self._syncing = Syncing(store, settings, runner, indexes, embedding, writing)

    # -- adding

    async def add(
        self,
        path: PathLike,
        *,
        namespace: str,
        content: str | bytes | None = None,
        root: PathLike | None = None,
        title: str | None = None,
        document_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        chunk_tokens: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Document:
        """Index a file; or, with `content`, what is given, under a path that need not lead anywhere.

        A file is known by its whole path, or with `root` by its path from there. What is indexed already and has not
        changed is left alone. If it cannot be read, its status is `failed` and its `error` says why.
        """
        request = self._request(namespace, metadata, chunk_tokens, actor, task_id)
        kind = None if document_type is None else _check_type(document_type)
        if title is not None:
            check_text(_TITLE, check_key(_TITLE, title, _LONGEST_TITLE), self._settings.max_value_bytes)
        if content is None:
            made = await self._runner.aside(lambda: self._read_file(Path(path), root, request, kind))
        else:
            name = check_path(os.fspath(path))
            made = self._content(request, name, _as_bytes(content), None, kind)
        outcome = await self._syncing.sync(replace(made, title=title), request.origin)
        return document_of(outcome.row)

    async def add_folder(
        self,
        folder: PathLike,
        *,
        namespace: str,
        root: PathLike | None = None,
        patterns: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        delete_missing: bool = True,
        metadata: Mapping[str, Any] | None = None,
        chunk_tokens: int | None = None,
        progress: Callable[[Progress], object] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> DocumentReport:
        """Index the files of a folder and of those below it, and with `delete_missing` forget those that are gone.

        Taken are files that can be read, or those that `patterns` name; left out is what `ignore`, the `.gitignore`
        files and common sense say. Interrupted, it goes on where it was when called again.
        """
        request = self._request(namespace, metadata, chunk_tokens, actor, task_id)
        chosen = Folder.of(folder, root, patterns, ignore)
        return await self._sync_folder(chosen, request, delete_missing, progress)

    async def watch(
        self,
        folder: PathLike,
        *,
        namespace: str,
        root: PathLike | None = None,
        patterns: Sequence[str] | None = None,
        ignore: Sequence[str] | None = None,
        delete_missing: bool = True,
        metadata: Mapping[str, Any] | None = None,
        chunk_tokens: int | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> AsyncIterator[DocumentReport]:
        """Index a folder, and then whatever changes in it, until the iteration is ended; a report each time."""
        chosen = Folder.of(folder, root, patterns, ignore)
        watching = Watch(chosen.folder)
        try:
            await self._runner.aside(watching.wait)  # from here on no change is missed
            request = self._request(namespace, metadata, chunk_tokens, actor, task_id)
            yield await self._sync_folder(chosen, request, delete_missing)
            while (changed := await self._runner.aside(watching.wait)) is not None:
                if any(chosen.may_have(path) for path in changed):
                    request = self._request(namespace, metadata, chunk_tokens, actor, task_id)
                    report = await self._sync_folder(chosen, request, delete_missing, changed=changed)
                    if not report.is_empty:
                        yield report
        finally:
            watching.close()

    # -- reading

    async def get(self, namespace: str, path: PathLike) -> Document | None:
        """The document, or None if there is none."""
        row = await self._find(namespace, path, "read")
        return document_of(row) if row else None

    async def list(
        self,
        namespace_prefix: str = EVERYTHING,
        *,
        status: str | None = None,
        document_type: str | None = None,
        recent: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Document]:
        """Documents at or below a namespace, a page at a time: as they were added, or the last changed first."""
        conditions = [
            *equal(
                sync_status=None if status is None else str(_check_status(status)),
                document_type=None if document_type is None else str(_check_type(document_type)),
            ),
            *self._within(namespace_prefix, "read"),
        ]
        params: dict[str, Any] = {"limit": check_limit(limit), **params_of(conditions)}
        if recent:
            params["before"], params["before_id"] = decode_cursor(cursor, "recent documents", (_NEWEST, _NEWEST))
            found = await self._rows("list_recent_documents", conditions, params)
        else:
            (params["after"],) = decode_cursor(cursor, "documents", (0,))
            found = await self._rows("list_documents", conditions, params)
        more = None
        if len(found) == limit:
            last = found[-1]
            more = (
                encode_cursor("recent documents", last.updated_at, last.id)
                if recent
                else encode_cursor("documents", last.id)
            )
        return Page(tuple(document_of(row) for row in found), more)

    async def chunks(self, namespace: str, path: PathLike) -> Sequence[DocumentChunk]:
        """The chunks of a document, in order. Put together, their texts are what was read of the file."""
        row = await self._existing(namespace, path, "read")
        return [chunk_of(memory) for memory in await self._syncing.live_chunks(row)]

    # -- looking after them

    async def remove(
        self, namespace: str, path: PathLike, *, actor: str | None = None, task_id: str | None = None
    ) -> int:
        """Forget a document, and delete its chunks softly; how many there were."""
        row = await self._existing(namespace, path, "write")
        return await self._syncing.remove(row, self._origin(actor, task_id))

    async def retry(
        self,
        namespace_prefix: str = EVERYTHING,
        *,
        stale: bool = False,
        progress: Callable[[Progress], object] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> DocumentReport:
        """Index again what failed or was interrupted, and with `stale` also what differs from its file."""
        origin = self._origin(actor, task_id)
        wanted = [DocumentStatus.FAILED, DocumentStatus.PENDING, *([DocumentStatus.STALE] if stale else [])]
        rows = [row for status in wanted for row in await self._all(namespace_prefix, "write", status)]
        tally, following = Tally(), Following(progress, len(rows))
        for row in rows:
            await self._retry(row, self._now(origin), tally)
            following.step()
        return tally.report

    async def check(
        self, namespace_prefix: str = EVERYTHING, *, actor: str | None = None, task_id: str | None = None
    ) -> Sequence[Document]:
        """Compare documents with their files: those that differ are `stale` from now on, and returned.

        So is one whose file is gone, or some of whose chunks are. One that is as its file again is `synced` again.
        """
        origin = self._origin(actor, task_id)
        wanted = (DocumentStatus.SYNCED, DocumentStatus.STALE)
        rows = [row for status in wanted for row in await self._all(namespace_prefix, "write", status)]
        found: list[Document] = []
        for row in rows:
            reason = await self._difference(row)
            status = DocumentStatus.STALE if reason else DocumentStatus.SYNCED
            marked = await self._syncing.mark(row, status, reason, self._now(origin))
            if marked.sync_status == DocumentStatus.STALE:
                found.append(document_of(marked))
        return found

    async def mark_stale(
        self, namespace: str, path: PathLike, *, actor: str | None = None, task_id: str | None = None
    ) -> Document:
        """Say that a document is out of date, so that the next time it is indexed even if its file is the same."""
        row = await self._existing(namespace, path, "write")
        return document_of(await self._syncing.mark(row, DocumentStatus.STALE, None, self._origin(actor, task_id)))

    # -- folders

    async def _sync_folder(
        self,
        chosen: Folder,
        request: _Request,
        delete_missing: bool,
        progress: Callable[[Progress], object] | None = None,
        changed: set[str] | None = None,
    ) -> DocumentReport:
        """Index the files of a folder, or only those at or below the paths that changed."""
        found = await self._runner.aside(chosen.find)
        files = [file for file in found.files if chosen.is_among(file, changed)]
        tally, following = Tally(), Following(progress, len(files))
        tally.skipped = found.skipped if changed is None else 0
        for file in files:
            await self._sync_file(chosen, file, request, tally)
            following.step()
        if delete_missing:
            present = {chosen.name_of(file) for file in found.files}
            for row in await self._below(request.namespace, chosen):
                if row.file_path not in present:
                    tally.remove(row.file_path, await self._syncing.remove(row, self._now(request.origin)))
        return tally.report

    async def _sync_file(self, chosen: Folder, file: str, request: _Request, tally: Tally) -> None:
        try:
            content = await self._runner.aside(
                lambda: self._read_file(chosen.folder / file, chosen.root, request, None)
            )
        except InvalidIdentifier as error:
            tally.failed[file.encode("utf-8", "replace").decode()] = str(error)
            return
        except InvalidInput:
            return  # it was removed this very moment
        if type_of(file) is None and chosen.patterns is None and is_binary(content.data):
            tally.skipped += 1
            return
        tally.add(await self._syncing.sync(content, self._now(request.origin)))

    async def _below(self, namespace: str, chosen: Folder) -> Sequence[DocumentRow]:
        """The documents of a namespace whose paths say that they are files of the folder."""
        found: list[DocumentRow] = []
        after = ""
        while True:
            params = {"namespace": namespace, "after": after, "limit": _PAGE}
            page = await self._syncing.opened(self._store.fetch, await self._store.fetch(SQL["list_files"], params))
            found += [row for row in page if chosen.has(row.file_path)]
            if len(page) < _PAGE:
                return found
            after = page[-1].file_path

    # -- contents

    def _read_file(
        self, file: Path, root: PathLike | None, request: _Request, kind: DocumentType | None, name: str | None = None
    ) -> DocumentDraft:
        """A file as it is on the disk now. May block; not in a transaction."""
        check_path(os.fspath(file))
        source = absolute(file)
        if not source.is_file():
            there = "is a folder; use add_folder" if source.is_dir() else "is not there"
            raise InvalidInput(f"the file {str(file)!r} {there}")
        name = check_path(name or name_of(source, root))
        try:
            size = source.stat().st_size
            data = source.read_bytes() if size <= self._settings.max_document_bytes else b""
        except OSError as error:
            trouble = f"it cannot be read: {error.strerror}"
            return replace(self._content(request, name, b"", str(source), kind), digest="", trouble=trouble)
        content = self._content(request, name, data, str(source), kind)
        return content if data or not size else replace(content, digest="", size=size)

    def _content(
        self, request: _Request, path: str, data: bytes, source: str | None, kind: DocumentType | None
    ) -> DocumentDraft:
        guessed = type_of(path) or (DocumentType.PDF if data.startswith(b"%PDF-") else DocumentType.TEXT)
        return DocumentDraft(
            request.namespace, path, data, digest_of(data), len(data), source, kind or guessed, request.limit,
            metadata=request.metadata,
        )  # fmt: skip

    async def _retry(self, row: DocumentRow, origin: Origin, tally: Tally) -> None:
        if row.source is None:
            reason = "its content was given, and is not kept: add it again"
            await self._syncing.mark(row, DocumentStatus.FAILED, reason, origin)
            tally.failed[row.file_path] = reason
            return
        limit = int(row.chunking.rpartition("/")[2] or self._settings.chunk_tokens)
        request, source, kind = (
            _Request(row.namespace, origin, limit),
            Path(row.source),
            DocumentType(row.document_type),
        )
        try:
            content = await self._runner.aside(lambda: self._read_file(source, None, request, kind, row.file_path))
        except InvalidInput:
            await self._syncing.mark(row, DocumentStatus.FAILED, _GONE, origin)
            tally.failed[row.file_path] = _GONE
            return
        tally.add(await self._syncing.sync(content, origin))

    async def _difference(self, row: DocumentRow) -> str | None:
        """Why a document is not what its file is; None if it is."""
        if await self._syncing.count_chunks(row) != row.chunk_count:
            return "some of its chunks are deleted"
        if row.source is None:
            return row.error if row.sync_status == DocumentStatus.STALE else None
        source = Path(row.source)
        try:
            data = await self._runner.aside(source.read_bytes)
        except FileNotFoundError:
            return _GONE
        except OSError as error:
            return f"the file cannot be read: {error.strerror}"
        return None if digest_of(data) == row.content_hash else "the file has changed"

    # -- rows

    async def _find(self, namespace: str, path: PathLike, level: Level) -> DocumentRow | None:
        check_namespace(namespace, self._settings.max_namespace_length)
        self._access.require(namespace, level)
        named = check_path(os.fspath(path))
        return await self._syncing.find(namespace, named) or await self._syncing.find(
            namespace, absolute(Path(named)).as_posix()
        )

    async def _existing(self, namespace: str, path: PathLike, level: Level) -> DocumentRow:
        row = await self._find(namespace, path, level)
        if row is None:
            raise DocumentNotFound(f"{namespace!r} has no document {os.fspath(path)!r}")
        return row

    async def _all(self, prefix: str, level: Level, status: DocumentStatus) -> Sequence[DocumentRow]:
        conditions = [*equal(sync_status=str(status)), *self._within(prefix, level)]
        found: list[DocumentRow] = []
        after = 0
        while True:
            params = {**params_of(conditions), "after": after, "limit": _PAGE}
            page = await self._rows("list_documents", conditions, params)
            found += page
            if len(page) < _PAGE:
                return found
            after = page[-1].id

    async def _rows(
        self, query: str, conditions: Sequence[Fragment], params: Mapping[str, Any]
    ) -> Sequence[DocumentRow]:
        rows = await self._store.fetch(SQL[query].where(conditions), params)
        return await self._syncing.opened(self._store.fetch, rows)

    def _within(self, prefix: str, level: Level) -> Sequence[Fragment]:
        parts = self._access.within(check_prefix(prefix, self._settings.max_namespace_length), level)
        return [] if EVERYTHING in parts else [under("namespace", parts, "within")]

    def _request(
        self,
        namespace: str,
        metadata: Mapping[str, Any] | None,
        chunk_tokens: int | None,
        actor: str | None,
        task_id: str | None,
    ) -> _Request:
        check_namespace(namespace, self._settings.max_namespace_length)
        self._access.require(namespace, "write")
        limit = self._settings.chunk_tokens if chunk_tokens is None else _check_tokens(chunk_tokens)
        about = None if metadata is None else encode_metadata(metadata, self._settings.max_value_bytes)
        return _Request(namespace, self._origin(actor, task_id), limit, about)

    def _origin(self, actor: str | None, task_id: str | None) -> Origin:
        return origin_of(self._access, self._clock.now(), actor, task_id)

    def _now(self, origin: Origin) -> Origin:
        """The same origin, later: a folder may take long."""
        return origin._replace(now=self._clock.now())


def _as_bytes(content: object) -> bytes:
    if isinstance(content, bytes):
        return content
    if not isinstance(content, str):
        raise InvalidInput(f"content is text or bytes, not {type(content).__name__}")
    return content.encode("utf-8", "replace")


def _check_tokens(tokens: object) -> int:
    if isinstance(tokens, bool) or not isinstance(tokens, int) or not _FEWEST_TOKENS <= tokens <= _MOST_TOKENS:
        raise InvalidInput(f"chunk_tokens must be between {_FEWEST_TOKENS} and {_MOST_TOKENS}, not {tokens!r}")
    return tokens


def _check_type(document_type: str) -> DocumentType:
    try:
        return DocumentType(document_type)
    except ValueError:
        raise InvalidStatus(
            f"{document_type!r} is not a type of document; use one of {', '.join(DocumentType)}"
        ) from None


def _check_status(status: str) -> DocumentStatus:
    try:
        return DocumentStatus(status)
    except ValueError:
        raise InvalidStatus(f"{status!r} is not a document's status; use one of {', '.join(DocumentStatus)}") from None
