"""Values of workspaces, their files and snapshots."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Workspace:
    """A file tree. `revision` is one more with every change of it; `files` and `size` (in bytes) are those of now."""

    id: str
    namespace: str
    metadata: dict[str, Any]
    revision: int
    files: int
    size: int
    created_by: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file as it was from the workspace's revision `version` until before revision `until`; None is now."""

    workspace_id: str
    path: str
    version: int
    until: int | None
    sha256: str
    size: int
    is_executable: bool
    metadata: dict[str, Any]
    updated_by: str | None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class FileDraft:
    """A file that is to be written. What is None stays as it is, or is empty if the file is new.

    `data` is a text, bytes, a path of the real file system, an open binary file, or an iterable of bytes.
    """

    path: str
    data: Any
    metadata: Mapping[str, Any] | None = None
    is_executable: bool | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A revision of a workspace that was given a number, from 1, and a message."""

    workspace_id: str
    number: int
    revision: int
    message: str
    files: int
    size: int
    created_by: str | None
    task_id: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FileDifference:
    """How a file differs between two states of a workspace; `before` of a renamed file has the old path.

    `text` is a unified diff, if one was asked for and both are texts.
    """

    path: str
    kind: Literal["added", "removed", "changed", "renamed"]
    before: WorkspaceFile | None
    after: WorkspaceFile | None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: how many files, and what was left out, as `path: why`."""

    added: int
    changed: int
    unchanged: int
    removed: int
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many snapshots a workspace lost, and how many versions of files that only those had."""

    snapshots: int
    versions: int
