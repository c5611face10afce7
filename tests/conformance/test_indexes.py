"""The suites of what finds memories in the database itself, over every backend."""

from mnemon.testing import VectorMirrorSuite, WordIndexSuite
from tests.conformance.backends import OverEveryBackend


class TestWords(OverEveryBackend, WordIndexSuite): ...


class TestVectors(OverEveryBackend, VectorMirrorSuite): ...
