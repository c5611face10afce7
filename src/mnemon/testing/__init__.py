"""What a third party needs to test its own backend, and its own use of Mnemon.

    class TestSessions(SessionSuite):
        @pytest_asyncio.fixture
        async def memory(self, clock):
            async with mnemon.open("mine://", clock=clock, seal_interval=None) as memory:
                yield memory

Each suite is a class with one fixture to override: `memory`, an open memory over an empty database.
For messages that say what was found, put `pytest.register_assert_rewrite("mnemon.testing")` in
`conftest.py`. Needs the extra `mnemon[testing]`.
"""

from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd, TaskCrowd, ThreadCrowd
from mnemon.testing.database import DatabaseSuite
from mnemon.testing.faults import FaultyStore, with_faults
from mnemon.testing.journal import JournalSuite
from mnemon.testing.memories import MemorySuite
from mnemon.testing.sessions import SessionSuite
from mnemon.testing.state import StateSuite
from mnemon.testing.suite import Suite
from mnemon.testing.tasks import TaskSuite

__all__ = [
    "Crowd",
    "DatabaseSuite",
    "FaultyStore",
    "JournalSuite",
    "ManualClock",
    "MemorySuite",
    "SessionSuite",
    "StateSuite",
    "Suite",
    "TaskCrowd",
    "TaskSuite",
    "ThreadCrowd",
    "with_faults",
]
