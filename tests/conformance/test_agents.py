"""The suite of agents, over every backend."""

from collections.abc import Mapping
from typing import Any, ClassVar

from mnemon.testing import RECALLING, AgentSuite
from tests.conformance.backends import OverEachDatabase


class TestAgents(OverEachDatabase, AgentSuite):
    settings: ClassVar[Mapping[str, Any]] = {**RECALLING, "content_url": "memory://"}
