"""Values of keys."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class DataKeyUse:
    """A data key, the master key that wraps it, and how many rows and contents it seals.

    It is the current one of its namespace as long as it was not retired.
    """

    id: str
    namespace: str
    master_key: str
    created_at: datetime
    retired_at: datetime | None
    rows: int = 0
    contents: int = 0


@dataclass(frozen=True, slots=True)
class NamespaceKeys:
    """What there is of a namespace that shares data keys.

    `plain` and `plain_contents` should be encrypted and are not: they were written before that was chosen.
    """

    namespace: str
    keys: tuple[DataKeyUse, ...] = ()
    plain: int = 0
    plain_contents: int = 0

    @property
    def rows(self) -> int:
        """How many rows are sealed by any of its keys; one that is sealed by two counts for both."""
        return sum(key.rows for key in self.keys)

    @property
    def outdated(self) -> int:
        """How many rows and contents are sealed by keys that are retired."""
        return sum(key.rows + key.contents for key in self.keys if key.retired_at is not None)


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """The name of the current master key, if there is one, and the namespaces that have data keys or should."""

    master_key: str | None
    namespaces: tuple[NamespaceKeys, ...]

    @property
    def is_settled(self) -> bool:
        """Whether everything that should be is sealed by current keys, and these are wrapped by the current master."""
        return all(
            not each.plain and not each.plain_contents and not each.outdated
            and all(key.master_key == self.master_key for key in each.keys)
            for each in self.namespaces
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SealFlaw:
    """What could not be sealed anew, and why; it is as it was."""

    table: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Resealed:
    """What was sealed anew.

    `kept_contents` are old contents that may still be in use; `artifacts.cleanup` removes them later. `scrubbed` says
    whether what had not been encrypted is gone from the bytes of the database's files too.
    """

    rows: int
    contents: int
    kept_contents: int
    scrubbed: bool
    flaws: tuple[SealFlaw, ...] = ()
