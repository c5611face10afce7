"""Time and ids, injected: the one place that asks the machine for either.

Inside, a moment is a whole number of microseconds since 1970 (UTC); outside, an aware `datetime`.
"""

import os
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from mnemon.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Where the time and new ids come from."""

    def now(self) -> int:
        """Microseconds since 1970, UTC."""
        ...

    def new_id(self) -> str:
        """A new unique id; ids made later sort later, to the microsecond."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def new_id(self) -> str:
        return f"{self.now():014x}{os.urandom(9).hex()}"


def moment(micros: int) -> datetime:
    """The aware UTC datetime of a stored moment, exact to the microsecond."""
    return _EPOCH + timedelta(0, 0, micros)


def moment_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else moment(micros)


def micros(when: datetime) -> int:
    """The stored form of a datetime; one without a time zone is taken as UTC."""
    if not isinstance(when, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"a moment is a datetime, not {when!r}")
    aware = when if when.tzinfo else when.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def micros_or_none(when: datetime | None) -> int | None:
    return None if when is None else micros(when)
