"""What a third party needs to test its own backend, and its own use of Mnemon.

    class TestSessions(SessionSuite):
        @pytest_asyncio.fixture
        async def memory(self, clock):
            async with mnemon.open("mine://", clock=clock, **QUIET) as memory:
                yield memory

Each suite is a class with one fixture to override: `memory`, an open memory over an empty database in which nothing
happens but what the tests do. `RecallSuite` needs the settings `RECALLING` instead; for `VectorStoreSuite`
the fixture is `open_store`, which opens a vector store.
For messages that say what was found, put `pytest.register_assert_rewrite("mnemon.testing")` in
`conftest.py`. Needs the extra `mnemon[testing]`.
"""

from mnemon.testing.agents import AgentSuite
from mnemon.testing.artifacts import ArtifactSuite
from mnemon.testing.clock import ManualClock
from mnemon.testing.consolidation import ConsolidationSuite
from mnemon.testing.contents import ContentStoreSuite
from mnemon.testing.crowds import Crowd, TaskCrowd, ThreadCrowd
from mnemon.testing.database import DatabaseSuite
from mnemon.testing.documents import DocumentSuite
from mnemon.testing.embedders import EmbedderSuite, EmbeddingCacheSuite, FakeEmbedder
from mnemon.testing.episodes import EpisodeSuite
from mnemon.testing.faults import FaultyStore, with_faults
from mnemon.testing.journal import JournalSuite
from mnemon.testing.language import FakeLanguageModel
from mnemon.testing.memories import MemorySuite
from mnemon.testing.mirror import VectorMirrorSuite
from mnemon.testing.recall import RECALLING, RecallSuite
from mnemon.testing.retention import RetentionSuite
from mnemon.testing.sessions import SessionSuite
from mnemon.testing.state import StateSuite
from mnemon.testing.suite import QUIET, Suite
from mnemon.testing.tasks import TaskSuite
from mnemon.testing.vector_fakes import FakeVectorMemory
from mnemon.testing.vector_stores import VectorStoreSuite
from mnemon.testing.words import WordIndexSuite
from mnemon.testing.working import WorkingSuite
from mnemon.testing.workspaces import WorkspaceSuite

__all__ = [
    "QUIET",
    "RECALLING",
    "AgentSuite",
    "ArtifactSuite",
    "ConsolidationSuite",
    "ContentStoreSuite",
    "Crowd",
    "DatabaseSuite",
    "DocumentSuite",
    "EmbedderSuite",
    "EmbeddingCacheSuite",
    "EpisodeSuite",
    "FakeEmbedder",
    "FakeLanguageModel",
    "FakeVectorMemory",
    "FaultyStore",
    "JournalSuite",
    "ManualClock",
    "MemorySuite",
    "RecallSuite",
    "RetentionSuite",
    "SessionSuite",
    "StateSuite",
    "Suite",
    "TaskCrowd",
    "TaskSuite",
    "ThreadCrowd",
    "VectorMirrorSuite",
    "VectorStoreSuite",
    "WordIndexSuite",
    "WorkingSuite",
    "WorkspaceSuite",
    "with_faults",
]
