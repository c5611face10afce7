"""Saving, finding, reading and deleting the files of sessions."""

import logging
import os
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from mnemon import journal
from mnemon.access import Access
from mnemon.artifacts.names import check_name, check_version, content_type_of, file_name, parse_url
from mnemon.artifacts.rows import LAYOUT, SQL, ArtifactRow, artifact, exhibit, manifest
from mnemon.artifacts.streams import ArtifactStream
from mnemon.artifacts.upkeep import GRACE, KEPT, ArtifactUpkeep
from mnemon.clock import Clock
from mnemon.contents import Contents, Data, Readable
from mnemon.encryption.keys import Fetch
from mnemon.errors import ArtifactNotFound, InvalidInput, SessionNotFound, StoreError
from mnemon.journal import Origin, origin_of
from mnemon.model import Artifact, Cleanup, ContentReport, Level, Page, Progress
from mnemon.namespaces import check_identifier, check_key
from mnemon.pages import check_limit, decode_cursor, encode_cursor
from mnemon.ports import Exhibit, Row, Runner, Store, Transaction
from mnemon.settings import Settings
from mnemon.sql import Fragment, equal, load, params_of
from mnemon.state import SessionRow
from mnemon.values import encode_metadata

_SESSIONS = load("sessions")
_JOURNAL = load("journal")
_LATEST = 2**63 - 1
_LONGEST_TYPE = 256
_log = logging.getLogger(__name__)


class _Draft(NamedTuple):
    """A version that is about to be recorded."""

    session_id: str
    name: str
    sha256: str
    size: int
    content_type: str
    metadata: str
    task_id: str | None


class ArtifactService:
    """Keeps named files for sessions; a name has versions, and each version a URL."""

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, access: Access, contents: Contents, runner: Runner
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._contents = contents
        self._sealing = contents.sealing
        self._runner = runner
        self._upkeep = ArtifactUpkeep(store, clock, access, contents, runner, self._refresh)

    # -------------------------------------------------------------------------------------------------------- saving

    async def save(
        self,
        session_id: str,
        name: str,
        data: bytes | str | None = None,
        *,
        stream: BinaryIO | Readable | Iterable[bytes] | AsyncIterable[bytes] | None = None,
        path: str | os.PathLike[str] | None = None,
        content_type: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> Artifact:
        """Save `data`, a `stream` or the file at a `path` as the next version of the name; durable on return.

        A stream is a binary file or pieces of bytes as they come; it may be of any size. Text is saved as UTF-8.
        The same content is kept once, however often it is saved.
        """
        source = _source(data, stream, path)
        named = self._named(name)
        kind = content_type_of(named, isinstance(data, str)) if content_type is None else content_type
        check_key("content_type", kind, _LONGEST_TYPE)
        text = encode_metadata(metadata, self._settings.max_value_bytes)
        origin_of(self._access, 0, actor, task_id)  # what cannot be used is refused before anything is read
        await self._store.read(lambda tx: self._session(tx, session_id, "write"))
        content = await self._contents.put(source, f"session:{session_id}")
        draft = _Draft(session_id, named, content.sha256, content.size, kind, text, task_id)
        saved = await self._record(draft, actor)
        await self._show(session_id)
        return (await self._contents.told([saved]))[0]

    async def _record(self, draft: _Draft, actor: str | None) -> Artifact:
        now = self._clock.now()

        async def unit(tx: Transaction) -> Artifact:
            # Whoever saves in the same session waits here, so that no two get the same version.
            session = await self._session(tx, draft.session_id, "write", self._store.dialect.row_lock)
            origin = origin_of(self._access, now, actor, draft.task_id, session.user_id, session.id)
            found = await tx.fetch_one(SQL["newest_version"], {"session_id": session.id, "name": draft.name})
            version = (found[0] if found else 0) + 1
            shown = await self._free_file_name(tx, session.id, draft.name, now)
            values: dict[str, Any] = {
                **draft._asdict(), "version": version, "file_name": shown,
                "created_by": origin.actor, "created_at": now,
            }  # fmt: skip
            scope = self._sealing.session_scope(session.id, session.app_name, session.user_id, session.project_id)
            written = await self._sealing.sealed_in(tx, scope, LAYOUT, [values])
            [(number,)] = await tx.fetch_each(SQL["insert_artifact"], written)
            await journal.record(tx, [_entry(origin, draft.name, "save", version, {"size": draft.size})])
            return artifact(ArtifactRow(id=number, **values, deleted_at=None))

        return await self._store.write(unit)

    async def _free_file_name(self, tx: Transaction, session_id: str, name: str, now: int) -> str:
        number = 1
        while True:
            shown = file_name(name, now, number)
            if await tx.fetch_one(SQL["has_file_name"], {"session_id": session_id, "file_name": shown}) is None:
                return shown
            number += 1

    # ------------------------------------------------------------------------------------------------------- finding

    async def get(self, session_id: str, name: str, version: int | None = None) -> Artifact | None:
        """The artifact in a version, or in its newest; None if there is none, or it was deleted."""
        found = await self._find(session_id, name, version)
        return None if found is None else (await self._contents.told([found]))[0]

    async def _find(self, session_id: str, name: str, version: int | None) -> Artifact | None:
        """The same, with the name of its content in place of the digest."""
        query, wanted = self._wanted(session_id, name, version)
        conditions = self._open("read")
        rows = await self._store.fetch(query.where(conditions), {**wanted, **params_of(conditions)})
        found = await self._opened(self._store.fetch, rows)
        return artifact(found[0]) if found and found[0].deleted_at is None else None

    async def list(
        self, session_id: str, *, prefix: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[Artifact]:
        """The session's artifacts in their current versions, by name, a page at a time.

        With a `prefix` only those whose names begin so, as `reports/`.
        """
        (after,) = decode_cursor(cursor, "artifacts", ("",))
        conditions = [*_beginning(prefix, self._settings.max_key_length), *self._open("read")]
        params = {**_of_session(session_id), "after": after, "limit": check_limit(limit), **params_of(conditions)}
        found = await self._store.fetch(SQL["list_artifacts"].where(conditions), params)
        rows = await self._opened(self._store.fetch, found)
        more = encode_cursor("artifacts", rows[-1].name) if len(rows) == limit else None
        return Page(tuple(await self._contents.told(list(map(artifact, rows)))), more)

    async def recent(self, session_id: str, limit: int = 20) -> Sequence[Artifact]:
        """The artifacts that were saved last, in their current versions, the newest first."""
        conditions = self._open("read")
        params = {**_of_session(session_id), "limit": check_limit(limit), **params_of(conditions)}
        rows = await self._store.fetch(SQL["recent_artifacts"].where(conditions), params)
        found = await self._opened(self._store.fetch, rows)
        return tuple(await self._contents.told(list(map(artifact, found))))

    async def versions(
        self, session_id: str, name: str, *, deleted: bool = False, limit: int = 50, cursor: str | None = None
    ) -> Page[Artifact]:
        """The versions of an artifact, the newest first, a page at a time; `deleted` shows those too."""
        (before,) = decode_cursor(cursor, "versions", (_LATEST,))
        conditions = [*([] if deleted else [Fragment("deleted_at IS NULL")]), *self._open("read")]
        params = {**_of_session(session_id), "name": self._named(name), "before": before, "limit": check_limit(limit)}
        query = SQL["list_versions"].where(conditions)
        found = await self._store.fetch(query, {**params, **params_of(conditions)})
        rows = await self._opened(self._store.fetch, found)
        more = encode_cursor("versions", rows[-1].version) if len(rows) == limit else None
        return Page(tuple(await self._contents.told(list(map(artifact, rows)))), more)

    async def resolve(self, url: str) -> Artifact:
        """The artifact that a URL names, `mnemon://artifacts/{session}/{name}?version=N`."""
        place = parse_url(url, self._settings.max_key_length)
        return (await self._contents.told([await self._found(*place)]))[0]

    async def manifest(self, session_id: str) -> dict[str, Any]:
        """All versions of all artifacts of the session, deleted ones too: what its `manifest.json` says."""

        async def unit(tx: Transaction) -> dict[str, Any]:
            await self._session(tx, session_id, "read")
            revision, found = await _contents_of(tx, session_id)
            rows = await self._opened(tx.fetch_all, found)
            digests = await self._contents.digests([row.sha256 for row in rows], tx.fetch_all)
            return manifest(session_id, revision, [row._replace(sha256=digests[row.sha256]) for row in rows])

        return await self._store.read(unit, long=True)

    # ------------------------------------------------------------------------------------------------------- reading

    def open(self, session_id: str, name: str, version: int | None = None, *, offset: int = 0) -> ArtifactStream:
        """The content as a stream, from a byte on; iterate over it, or enter it and read."""
        return ArtifactStream(lambda: self._found(session_id, name, version), self._contents, offset)

    async def read(self, session_id: str, name: str, version: int | None = None) -> bytes:
        """The whole content, verified; for what fits into memory."""
        return await self._contents.whole((await self._found(session_id, name, version)).sha256)

    # ------------------------------------------------------------------------------------- deleting and bringing back

    async def delete(
        self,
        session_id: str,
        name: str,
        version: int | None = None,
        *,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Delete a version, or all, softly; how many. `restore` brings them back until `cleanup` removes them."""
        return await self._mark("delete", session_id, name, version, actor, task_id)

    async def restore(
        self,
        session_id: str,
        name: str,
        version: int | None = None,
        *,
        actor: str | None = None,
        task_id: str | None = None,
    ) -> int:
        """Bring a deleted version back, or all of them; how many."""
        return await self._mark("restore", session_id, name, version, actor, task_id)

    async def _mark(
        self,
        operation: str,
        session_id: str,
        name: str,
        version: int | None,
        actor: str | None,
        task_id: str | None,
    ) -> int:
        named = self._named(name)
        exact = equal(version=None if version is None else check_version(version))
        query = SQL["set_deleted" if operation == "delete" else "set_restored"].where(exact)
        now = self._clock.now()

        async def unit(tx: Transaction) -> int:
            session = await self._session(tx, session_id, "write", self._store.dialect.row_lock)
            origin = origin_of(self._access, now, actor, task_id, session.user_id, session_id)
            params = {"session_id": session_id, "name": named, "now": now, **params_of(exact)}
            count = await tx.execute(query, params)
            if not count:
                raise _not_found(session_id, named, version, "deleted " if operation == "restore" else "")
            await journal.record(tx, [_entry(origin, named, operation, version, {"versions": count})])
            return count

        count = await self._store.write(unit)
        await self._show(session_id)
        return count

    # -------------------------------------------------------------------------------------------------------- upkeep

    async def verify(
        self,
        *,
        deep: bool = True,
        grace: timedelta | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> ContentReport:
        """Look for contents that are missing, corrupt, or referred to by nothing, of workspaces too.

        `deep` reads every content; otherwise only its beginning. Content that is younger than `grace`, an hour if it
        is not said, may still get its record.
        """
        return await self._upkeep.verify(deep, GRACE if grace is None else grace, progress)

    async def cleanup(
        self,
        *,
        keep_deleted: timedelta | None = None,
        grace: timedelta | None = None,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> Cleanup:
        """Remove for good what was deleted longer ago than `keep_deleted` (30 days), and content nothing refers to.

        So goes what a crash left, and what belonged to sessions and workspaces that were deleted. Content that is
        younger than `grace` (an hour) stays, as its record may still come. What people see is brought up to date.
        """
        kept = KEPT if keep_deleted is None else keep_deleted
        return await self._upkeep.cleanup(kept, GRACE if grace is None else grace, dry_run, actor)

    async def rebuild(self, session_id: str | None = None) -> int:
        """Make what people see of a session, or of all, anew from the database; of how many.

        That is the folder of each session and its `manifest.json`, where contents are kept in a file system.
        """
        if session_id is None:
            return await self._upkeep.rebuild()
        await self._store.read(lambda tx: self._session(tx, session_id, "write"))
        return await self._upkeep.rebuild([session_id])

    async def _show(self, session_id: str) -> None:
        """Let people see what was recorded. If that cannot be done now, it is recorded all the same."""
        try:
            await self._refresh(session_id)
        except StoreError as error:
            _log.warning("the folder of session %r is not up to date, run `rebuild`: %s", session_id, error)

    async def _refresh(self, session_id: str) -> bool:
        showcase = await self._runner.aside(lambda: self._contents.showcase)
        if showcase is None:
            return False

        async def unit(tx: Transaction) -> Exhibit:
            return exhibit(session_id, *await _contents_of(tx, session_id))

        shown = await self._store.read(unit, long=True)
        return await self._runner.aside(lambda: showcase.show(shown))

    # ------------------------------------------------------------------------------------------------------- helpers

    def _named(self, name: str) -> str:
        return check_name(name, self._settings.max_key_length)

    def _wanted(self, session_id: str, name: str, version: int | None) -> tuple[Any, dict[str, Any]]:
        wanted = {**_of_session(session_id), "name": self._named(name)}
        if version is None:
            return SQL["get_current"], wanted
        return SQL["get_version"], {**wanted, "version": check_version(version)}

    async def _found(self, session_id: str, name: str, version: int | None) -> Artifact:
        found = await self._find(session_id, name, version)
        if found is None:
            raise _not_found(session_id, name, version)
        return found

    async def _opened(self, fetch: Fetch, rows: Sequence[Row]) -> Sequence[ArtifactRow]:
        """Rows as they were before what is noted of an artifact was encrypted, if it was."""
        return [ArtifactRow(*row) for row in await self._sealing.opened(fetch, LAYOUT, rows)]

    def _open(self, level: Level) -> Sequence[Fragment]:
        """An artifact is open to whoever may use its session."""
        return [
            Fragment(f"session_id IN (SELECT id FROM sessions WHERE {sessions.text})", sessions.params)
            for sessions in self._access.sessions(level)
        ]

    async def _session(self, tx: Transaction, session_id: str, level: Level, lock: str = "") -> SessionRow:
        conditions = self._access.sessions(level)
        params = {"id": check_identifier("session_id", session_id), **params_of(conditions)}
        row = await tx.fetch_one(_SESSIONS["get_session"].where(conditions, lock), params)
        if row is None:
            raise SessionNotFound(f"no session {session_id!r}; create it with create_session")
        return SessionRow(*row)


async def _contents_of(tx: Transaction, session_id: str) -> tuple[int, list[ArtifactRow]]:
    """The journal's position, which grows with every change, and all rows of the session as they are there."""
    position = await tx.fetch_one(_JOURNAL["last_position"], {})
    rows = await tx.fetch_all(SQL["all_of_session"].where([]), {"session_id": session_id})
    return (position[0] if position else 0), [ArtifactRow(*row) for row in rows]


def _source(data: object, stream: Any, path: str | os.PathLike[str] | None) -> Data:
    given = [each for each in (data, stream, path) if each is not None]
    if len(given) != 1:
        raise InvalidInput("give the content once: as data, as a stream, or as the path of a file")
    if path is not None:
        return Path(path)
    if stream is not None:
        if isinstance(stream, str | bytes | bytearray | memoryview | os.PathLike):
            raise InvalidInput("a stream is a binary file or pieces of bytes; give bytes and text as data")
        return stream
    if not isinstance(data, str | bytes | bytearray | memoryview):
        raise InvalidInput(f"data is bytes or text, not {type(data).__name__}; use stream= or path= for files")
    return cast("bytes | str", data)


def _of_session(session_id: str) -> dict[str, Any]:
    return {"session_id": check_identifier("session_id", session_id)}


def _beginning(prefix: str | None, limit: int) -> list[Fragment]:
    if not prefix:
        return []
    check_key("prefix", prefix, limit)
    return [Fragment("name >= :prefix AND name < :prefix_end", {"prefix": prefix, "prefix_end": f"{prefix}\U0010ffff"})]


def _entry(
    origin: Origin, name: str, operation: str, version: int | None, payload: Mapping[str, Any]
) -> dict[str, Any]:
    return journal.entry(
        origin, "artifact", name, operation,
        namespace=f"session:{origin.session_id}", version=version, payload=payload,
    )  # fmt: skip


def _not_found(session_id: str, name: str, version: int | None, kind: str = "") -> ArtifactNotFound:
    which = "" if version is None else f" in version {version}"
    return ArtifactNotFound(f"session {session_id!r} has no {kind}artifact {name[:200]!r}{which}")
