"""The public suites, over every backend."""

from mnemon.testing import (
    ConsolidationSuite,
    DatabaseSuite,
    JournalSuite,
    MemorySuite,
    SessionSuite,
    StateSuite,
    TaskSuite,
)
from tests.conformance.backends import OverEveryBackend


class TestDatabase(OverEveryBackend, DatabaseSuite): ...


class TestSessions(OverEveryBackend, SessionSuite): ...


class TestState(OverEveryBackend, StateSuite): ...


class TestTasks(OverEveryBackend, TaskSuite): ...


class TestMemories(OverEveryBackend, MemorySuite): ...


class TestConsolidation(OverEveryBackend, ConsolidationSuite): ...


class TestJournal(OverEveryBackend, JournalSuite): ...
