"""Every error that Mnemon raises.

MnemonError
├── InvalidInput                (ValueError)
│   ├── InvalidIdentifier       an id or a state key that cannot be used
│   ├── InvalidNamespace
│   ├── InvalidStatus           no such status, memory type or level
│   ├── InvalidTransition       this status may not follow that one
│   ├── InvalidValue            not JSON: NaN, bytes, a cycle, too deep
│   │   └── ValueTooLarge
│   ├── InvalidFilter
│   ├── InvalidCursor
│   ├── InvalidPath             a path that could lead out of its workspace, or cannot be a name
│   ├── DimensionMismatch       a vector of another length than its space
│   └── InvalidSettings
│       └── ModelMismatch       another embedding model than the one that made the vectors
├── NotFound                    (LookupError, ValueError)
│   ├── SessionNotFound
│   ├── TaskNotFound
│   ├── AgentNotFound
│   ├── CycleNotFound
│   ├── MemoryNotFound
│   ├── EpisodeNotFound
│   ├── ReviewNotFound
│   ├── ArchiveNotFound
│   ├── ArtifactNotFound
│   ├── DocumentNotFound
│   ├── WorkspaceNotFound
│   ├── SnapshotNotFound
│   └── WorkspaceFileNotFound   (FileNotFoundError)
├── IntegrityError              the id is taken, or a constraint of the database failed
│   ├── SessionExists
│   ├── EventExists
│   ├── TaskExists
│   ├── AgentExists
│   ├── MemoryExists
│   ├── WorkspaceExists
│   └── PathTaken               a file where a folder has to be, or the other way round
├── ConflictError               `expected_version` is stale, or something else stands there already
│   └── CyclePending            the agent has a proposal that waits for its result
├── AccessDenied                (PermissionError)
├── LeaseLost                   another worker holds the consumer
├── NotSettled                  (TimeoutError)
└── StoreError
    ├── StoreClosed
    ├── StoreUnavailable        (ConnectionError)
    │   ├── EmbedderUnavailable
    │   └── LanguageModelUnavailable
    │       └── InvalidAnswer   it answers, but not with what it was asked for
    ├── StoreBusy               locked for longer than the busy timeout
    ├── StoreCorrupt
    │   └── TamperedValue       what was encrypted was changed, or moved from where it belongs
    ├── KeyUnavailable          what was encrypted needs a key that is not given
    │   └── WrongKey            … or another one than the one of that name
    ├── StoreReadOnly
    ├── StoreFull
    ├── ContentMissing          a record's content is not where contents are kept
    ├── ContentCorrupt          … or is not what was saved
    └── SchemaMismatch
        ├── SchemaTooNew
        └── SchemaTooOld
"""


class MnemonError(Exception):
    """The root: `except MnemonError` catches everything below and nothing else."""


class InvalidInput(MnemonError, ValueError):
    """The caller passed something that cannot be used; nothing was written."""


class InvalidIdentifier(InvalidInput):
    """An id or key is empty, too long, or has a character that it may not have."""


class InvalidNamespace(InvalidInput):
    """A namespace is not a path of segments below one of the five roots."""


class InvalidStatus(InvalidInput):
    """A word that is not one of the allowed statuses, types or levels."""


class InvalidTransition(InvalidInput):
    """The entity's present status does not allow this."""


class InvalidValue(InvalidInput):
    """A value that JSON cannot carry unchanged."""


class ValueTooLarge(InvalidValue):
    """A value that is larger than the settings allow."""


class InvalidFilter(InvalidInput):
    """A metadata filter that has no meaning."""


class InvalidCursor(InvalidInput):
    """A pagination cursor that this query did not hand out."""


class InvalidPath(InvalidInput):
    """A path of a workspace that could lead out of it, or that has a name which no file should have."""


class DimensionMismatch(InvalidInput):
    """A vector has another dimension than the space that it is meant for."""


class InvalidSettings(InvalidInput):
    """A setting, a URL or a settings file that cannot be used."""


class ModelMismatch(InvalidSettings):
    """The embedder is another model than the one that the database's vectors were made with."""


class NotFound(MnemonError, LookupError, ValueError):
    """There is no such thing, or the principal may not know of it."""


class SessionNotFound(NotFound):
    """There is no session with this id."""


class TaskNotFound(NotFound):
    """There is no task with this id."""


class AgentNotFound(NotFound):
    """There is no agent with this id."""


class CycleNotFound(NotFound):
    """The agent has no cycle with this number."""


class MemoryNotFound(NotFound):
    """There is no memory, or no such version of it, under this namespace and key."""


class EpisodeNotFound(NotFound):
    """There is no episode with this id."""


class ReviewNotFound(NotFound):
    """There is no review with this id."""


class ArchiveNotFound(NotFound):
    """There is no archive with this id."""


class WorkspaceNotFound(NotFound):
    """There is no workspace with this id."""


class SnapshotNotFound(NotFound):
    """The workspace has no snapshot of this number."""


class WorkspaceFileNotFound(NotFound, FileNotFoundError):
    """The workspace has no such file, now or in the snapshot or version that was asked for."""


class ArtifactNotFound(NotFound):
    """There is no artifact, or no such version of it, under this name in the session."""


class DocumentNotFound(NotFound):
    """There is no document under this namespace and path."""


class IntegrityError(MnemonError):
    """A uniqueness or consistency rule of the database was about to be broken."""


class SessionExists(IntegrityError):
    """The session id is taken."""


class EventExists(IntegrityError):
    """The event id is taken by an event with other content."""


class TaskExists(IntegrityError):
    """The task id is taken."""


class AgentExists(IntegrityError):
    """The agent id is taken."""


class MemoryExists(IntegrityError):
    """There is a memory under this namespace and key already."""


class WorkspaceExists(IntegrityError):
    """The workspace id is taken."""


class PathTaken(IntegrityError):
    """Something else is at this path: a file where a folder has to be, or the other way round."""


class ConflictError(MnemonError):
    """The thing has changed since the version that the caller expected."""


class CyclePending(ConflictError):
    """The agent has a proposal without a result, and makes no other before it has one."""


class AccessDenied(MnemonError, PermissionError):
    """The principal has no grant for this."""


class LeaseLost(MnemonError):
    """The consumer's lease ran out and another worker took it; the batch was rolled back."""


class NotSettled(MnemonError, TimeoutError):
    """Not everything that was written can be found yet, and the time to wait for it is over."""


class StoreError(MnemonError):
    """The database itself failed; the unit of work was rolled back."""


class StoreClosed(StoreError):
    """The store was closed before the call."""


class StoreUnavailable(StoreError, ConnectionError):
    """The database cannot be reached or opened."""


class EmbedderUnavailable(StoreUnavailable):
    """No embedder of the space can turn texts into vectors at present."""


class LanguageModelUnavailable(StoreUnavailable):
    """The language model cannot be asked at present, or cannot take what it was asked."""


class InvalidAnswer(LanguageModelUnavailable):
    """The language model answered with something else than it was asked for, also when it was told so."""


class StoreBusy(StoreError):
    """Another process held the write lock for longer than the busy timeout."""


class StoreCorrupt(StoreError):
    """The file is not a database, or is damaged."""


class TamperedValue(StoreCorrupt):
    """An encrypted value was changed, cut, or moved from the place that it was encrypted for."""


class KeyUnavailable(StoreError):
    """The key of an encrypted value is not among those that were given, or cannot be had at present."""


class WrongKey(KeyUnavailable):
    """A key has the right name, and is not the one that encrypted the value."""


class StoreReadOnly(StoreError):
    """The database cannot be written."""


class StoreFull(StoreError):
    """The disk, or the database's own limit, is full."""


class ContentMissing(StoreError):
    """The content of a file is not in the content store."""


class ContentCorrupt(StoreError):
    """The content of a file is there, but it is not what was saved."""


class SchemaMismatch(StoreError):
    """The database's schema is not the one that this program works with."""


class SchemaTooNew(SchemaMismatch):
    """A newer Mnemon made this database; this one refuses to touch it."""


class SchemaTooOld(SchemaMismatch):
    """An older Mnemon made this database, and migrating was switched off."""
