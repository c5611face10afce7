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
│   ├── DimensionMismatch       a vector of another length than its space
│   └── InvalidSettings
│       └── ModelMismatch       another embedding model than the one that made the vectors
├── NotFound                    (LookupError, ValueError)
│   ├── SessionNotFound
│   ├── TaskNotFound
│   └── MemoryNotFound
├── IntegrityError              the id is taken, or a constraint of the database failed
│   ├── SessionExists
│   ├── EventExists
│   ├── TaskExists
│   └── MemoryExists
├── ConflictError               `expected_version` is stale
├── AccessDenied                (PermissionError)
├── LeaseLost                   another worker holds the consumer
├── NotSettled                  (TimeoutError)
└── StoreError
    ├── StoreClosed
    ├── StoreUnavailable        (ConnectionError)
    │   └── EmbedderUnavailable
    ├── StoreBusy               locked for longer than the busy timeout
    ├── StoreCorrupt
    ├── StoreReadOnly
    ├── StoreFull
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


class MemoryNotFound(NotFound):
    """There is no memory, or no such version of it, under this namespace and key."""


class IntegrityError(MnemonError):
    """A uniqueness or consistency rule of the database was about to be broken."""


class SessionExists(IntegrityError):
    """The session id is taken."""


class EventExists(IntegrityError):
    """The event id is taken by an event with other content."""


class TaskExists(IntegrityError):
    """The task id is taken."""


class MemoryExists(IntegrityError):
    """There is a memory under this namespace and key already."""


class ConflictError(MnemonError):
    """The thing has changed since the version that the caller expected."""


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


class StoreBusy(StoreError):
    """Another process held the write lock for longer than the busy timeout."""


class StoreCorrupt(StoreError):
    """The file is not a database, or is damaged."""


class StoreReadOnly(StoreError):
    """The database cannot be written."""


class StoreFull(StoreError):
    """The disk, or the database's own limit, is full."""


class SchemaMismatch(StoreError):
    """The database's schema is not the one that this program works with."""


class SchemaTooNew(SchemaMismatch):
    """A newer Mnemon made this database; this one refuses to touch it."""


class SchemaTooOld(SchemaMismatch):
    """An older Mnemon made this database, and migrating was switched off."""
