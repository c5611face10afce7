"""Time that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta
from itertools import count

from mnemon.clock import micros, moment

_COUNT = count(1)
_START = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock:
    """A clock for `mnemon.open(clock=...)` that shows what it was set to.

    Its ids count up, so that those made later sort later, and no two clocks of a process make the same.
    """

    def __init__(self, start: datetime = _START) -> None:
        self._now = micros(start)

    @property
    def moment(self) -> datetime:
        """What the clock shows."""
        return moment(self._now)

    def now(self) -> int:
        return self._now

    def new_id(self) -> str:
        return f"{self._now:014x}{next(_COUNT):018x}"

    def set(self, when: datetime) -> None:
        """Show `when`, which may lie in the past."""
        self._now = micros(when)

    def advance(self, seconds: float = 1.0) -> datetime:
        """Move on, or back if negative; what the clock shows then."""
        self._now += timedelta(seconds=seconds) // timedelta(microseconds=1)
        return self.moment
