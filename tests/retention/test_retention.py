"""The suite of retention, over every database."""

from collections.abc import Mapping
from typing import Any, ClassVar

from mnemon.testing import RetentionSuite
from tests.conformance.backends import OverEachDatabase


class TestRetention(OverEachDatabase, RetentionSuite):
    settings: ClassVar[Mapping[str, Any]] = {"content_url": "memory://"}
