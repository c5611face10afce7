"""Where master keys are."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A data key, encrypted by the master key of this name."""

    master_key: str
    body: bytes


class KeyProvider(Protocol):
    """Holds the master keys, here or in a service that never gives them away. Plain functions that may block.

    `about` says what the data key is for: one that is unwrapped with another `about` must be refused.
    """

    @property
    def current(self) -> str:
        """The name of the master key that wraps now; a new key needs a new name."""
        ...

    def wrap(self, secret: bytes, about: bytes) -> Wrapped:
        """Encrypt a data key by the current master key."""
        ...

    def unwrap(self, wrapped: Wrapped, about: bytes) -> bytes:
        """The data key. `KeyUnavailable` if its master key is not there, `WrongKey` if it is another."""
        ...
