"""The suite of remembering and recalling, over every backend, with the embedder that is there by default."""

from mnemon.testing import RECALLING, RecallSuite
from tests.conformance.backends import OverEveryBackend


class TestRecall(OverEveryBackend, RecallSuite):
    settings = RECALLING
