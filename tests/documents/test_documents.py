"""The public suite, over every backend."""

from mnemon.testing import DocumentSuite
from tests.conformance.backends import OverEachDatabase


class TestDocuments(OverEachDatabase, DocumentSuite): ...
