"""Values of contents and artifacts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, wherever it lies: the digest of its bytes in hexadecimal, and how many there are."""

    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class StoredContent(Content):
    """A content that a store holds, and when it was last written there."""

    written_at: datetime


@dataclass(frozen=True, slots=True)
class Artifact:
    """One version of a named file of a session; `url` names just this version.

    `file_name` is what people see of it in the session's folder, where contents are kept in a file system.
    """

    id: int
    session_id: str
    name: str
    version: int
    size: int
    sha256: str
    content_type: str
    metadata: dict[str, Any]
    url: str
    file_name: str
    created_by: str | None
    task_id: str | None
    created_at: datetime
    deleted_at: datetime | None

    @property
    def is_deleted(self) -> bool:
        """Whether it was deleted softly: it can still be restored."""
        return self.deleted_at is not None


@dataclass(frozen=True, slots=True)
class ContentFlaw:
    """A content that is not as the records say; `used_by` names some of the files that it is the content of."""

    kind: Literal["missing", "corrupt", "orphaned"]
    sha256: str
    used_by: tuple[str, ...] = ()
    size: int = 0


@dataclass(frozen=True, slots=True)
class ContentReport:
    """What looking at all contents found. `pending` were written so lately that their records may still come."""

    checked: int
    stored: int
    size: int
    pending: int
    flaws: tuple[ContentFlaw, ...]

    @property
    def is_good(self) -> bool:
        """Whether every file can be read; content that nobody refers to harms none."""
        return all(flaw.kind == "orphaned" for flaw in self.flaws)


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What was removed for good, or would be: deleted versions, contents that nobody refers to, and folders."""

    versions: int
    contents: int
    freed: int
    """How many bytes that is."""
    folders: int


@dataclass(frozen=True, slots=True)
class ArtifactReference:
    """A version of a file, and where to get it; `size` is in bytes."""

    name: str
    version: int
    url: str
    size: int
    media_type: str
