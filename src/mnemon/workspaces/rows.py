"""Workspaces, their files and snapshots as rows, and back."""

from typing import NamedTuple

from mnemon.clock import moment
from mnemon.encryption.sealing import Layout
from mnemon.model import Snapshot, Workspace, WorkspaceFile
from mnemon.ports import Row
from mnemon.sql import Fragment, load
from mnemon.values import decode


class WorkspaceRow(NamedTuple):
    """A row of `workspaces`, as every query selects it."""

    id: str
    namespace: str
    metadata: str
    revision: int
    files: int
    size: int
    created_by: str | None
    created_at: int
    updated_at: int


class Entry(NamedTuple):
    """What a file is, apart from where and since when."""

    sha256: str
    size: int
    is_executable: bool
    metadata: str


class FileRow(NamedTuple):
    """A row of `workspace_files`, as every query selects it."""

    workspace_id: str
    path: str
    since: int
    until: int | None
    sha256: str
    size: int
    is_executable: bool
    metadata: str
    updated_by: str | None
    updated_at: int

    @property
    def entry(self) -> Entry:
        return Entry(self.sha256, self.size, bool(self.is_executable), self.metadata)


class SnapshotRow(NamedTuple):
    """A row of `workspace_snapshots`, as every query selects it."""

    workspace_id: str
    number: int
    revision: int
    message: str
    files: int
    size: int
    created_by: str | None
    task_id: str | None
    created_at: int


WORKSPACE = Layout("workspaces", WorkspaceRow._fields)
FILE = Layout("workspace_files", FileRow._fields)
SNAPSHOT = Layout("workspace_snapshots", SnapshotRow._fields)
SQL = {
    name: query.fill(
        workspace=", ".join(WorkspaceRow._fields),
        file=", ".join(FileRow._fields),
        snapshot=", ".join(SnapshotRow._fields),
    )
    for name, query in load("workspaces").items()
}

PRESENT = Fragment("until IS NULL")


def visible(revision: int) -> Fragment:
    """The condition that a revision has a version of a file."""
    return Fragment("since <= :revision AND (until IS NULL OR until > :revision)", {"revision": revision})


def workspace_of(row: WorkspaceRow) -> Workspace:
    return Workspace(
        row.id, row.namespace, decode(row.metadata), row.revision, row.files, row.size, row.created_by,
        moment(row.created_at), moment(row.updated_at),
    )  # fmt: skip


def file_of(row: Row) -> WorkspaceFile:
    workspace_id, path, since, until, sha256, size, is_executable, metadata, updated_by, updated_at = row
    return WorkspaceFile(
        workspace_id, path, since, until, sha256, size, bool(is_executable), decode(metadata), updated_by,
        moment(updated_at),
    )  # fmt: skip


def snapshot_of(row: Row) -> Snapshot:
    workspace_id, number, revision, message, files, size, created_by, task_id, created_at = row
    return Snapshot(
        workspace_id, number, revision, message, files, size, created_by, task_id, moment(created_at)
    )  # fmt: skip
