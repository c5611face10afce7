"""Artifacts as rows, and back; and as the manifest that people read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from mnemon.artifacts.names import place_of, url_of
from mnemon.clock import moment, moment_or_none
from mnemon.encryption.contents import is_sealed_name
from mnemon.encryption.envelope import is_sealed
from mnemon.encryption.sealing import Layout
from mnemon.model import Artifact
from mnemon.ports import Exhibit
from mnemon.sql import Query, load
from mnemon.values import decode

_ABOUT = "The files of one session, as the database lists them. Mnemon writes this file; changes made here are lost."


class ArtifactRow(NamedTuple):
    """A row of `artifacts`, as every query selects it."""

    id: int
    session_id: str
    name: str
    version: int
    sha256: str
    size: int
    content_type: str
    metadata: str
    file_name: str
    created_by: str | None
    task_id: str | None
    created_at: int
    deleted_at: int | None


LAYOUT = Layout("artifacts", ArtifactRow._fields)
SQL: Mapping[str, Query] = {
    name: query.fill(artifact=", ".join(ArtifactRow._fields)) for name, query in load("artifacts").items()
}


def artifact(row: ArtifactRow) -> Artifact:
    """The row as callers see it."""
    return Artifact(
        id=row.id,
        session_id=row.session_id,
        name=row.name,
        version=row.version,
        size=row.size,
        sha256=row.sha256,
        content_type=row.content_type,
        metadata=decode(row.metadata),
        url=url_of(row.session_id, row.name, row.version),
        file_name=row.file_name,
        created_by=row.created_by,
        task_id=row.task_id,
        created_at=moment(row.created_at),
        deleted_at=moment_or_none(row.deleted_at),
    )


def manifest(session_id: str, revision: int, rows: Sequence[ArtifactRow]) -> dict[str, Any]:
    """All versions of all files of a session; `rows` are in order."""
    return _manifest(session_id, revision, rows, _shown)


def _manifest(
    session_id: str, revision: int, rows: Sequence[ArtifactRow], show: Callable[[ArtifactRow], dict[str, Any]]
) -> dict[str, Any]:
    files: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        files.setdefault(row.name, []).append(show(row))
    return {
        "about": _ABOUT,
        "session_id": session_id,
        "revision": revision,
        "artifacts": [{"name": name, "versions": versions} for name, versions in files.items()],
    }


def exhibit(session_id: str, revision: int, rows: Sequence[ArtifactRow]) -> Exhibit:
    """What people are to see of a session: what was deleted or is encrypted is only in the manifest."""
    return Exhibit(
        place=place_of(session_id),
        revision=revision,
        files={row.file_name: row.sha256 for row in rows if row.deleted_at is None and not _is_hidden(row)},
        manifest=orjson.dumps(
            _manifest(session_id, revision, rows, _exhibited), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        ),
    )


def _is_hidden(row: ArtifactRow) -> bool:
    return is_sealed_name(row.sha256) or is_sealed(row.metadata)


def _exhibited(row: ArtifactRow) -> dict[str, Any]:
    """What the folder tells of a version: of what is encrypted not even the digest, by which it could be guessed."""
    if not _is_hidden(row):
        return _shown(row)
    return {**_shown(row._replace(metadata="{}")), "file": None, "sha256": None, "metadata": None, "is_encrypted": True}


def _shown(row: ArtifactRow) -> dict[str, Any]:
    found = artifact(row)
    return {
        "version": found.version,
        "file": None if found.is_deleted else found.file_name,
        "size": found.size,
        "sha256": found.sha256,
        "content_type": found.content_type,
        "url": found.url,
        "created_at": found.created_at.isoformat(),
        "created_by": found.created_by,
        "task_id": found.task_id,
        "deleted_at": found.deleted_at.isoformat() if found.deleted_at else None,
        "metadata": found.metadata,
    }
