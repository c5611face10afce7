"""The suite of episodes, over every database."""

from collections.abc import Mapping
from typing import Any, ClassVar

from mnemon.testing import EpisodeSuite
from tests.conformance.backends import OverEachDatabase


class TestEpisodes(OverEachDatabase, EpisodeSuite):
    settings: ClassVar[Mapping[str, Any]] = {"content_url": "memory://"}
