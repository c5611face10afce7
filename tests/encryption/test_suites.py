"""What the suites ask of every database holds where everything is encrypted, too."""

from typing import Any, ClassVar

import pytest

from mnemon.encryption.masters import new_master_key
from mnemon.testing import SessionSuite, StateSuite, TaskSuite, WorkingSuite
from tests.conformance.backends import OverEveryBackend

_LOOKS_BEHIND = None
"""In place of a test that looks at the rows themselves, which are sealed, or counts entries, where keys have theirs."""


class Encrypted(OverEveryBackend):
    settings: ClassVar[dict[str, Any]] = {
        "encrypted_namespaces": ("",), "encryption_keys": (new_master_key("k1"),),
    }  # fmt: skip

    @pytest.fixture(params=["sqlite-file"])
    def backend(self, request: pytest.FixtureRequest) -> str:
        return request.param


class TestSessions(Encrypted, SessionSuite):
    test_an_append_is_one_row_one_entry_and_one_version = _LOOKS_BEHIND
    test_creating_records_one_entry_for_the_session_and_one_for_each_owner = _LOOKS_BEHIND
    test_a_taken_id_is_refused = _LOOKS_BEHIND
    test_a_session_is_not_created_without_all_of_its_state = _LOOKS_BEHIND
    test_a_transition_is_recorded_with_where_it_came_from = _LOOKS_BEHIND
    test_a_session_that_is_over_takes_no_events_and_no_state_of_its_own = _LOOKS_BEHIND


class TestState(Encrypted, StateSuite):
    test_each_key_stands_with_its_owner = _LOOKS_BEHIND
    test_an_update_that_was_overtaken_runs_again = _LOOKS_BEHIND


class TestTasks(Encrypted, TaskSuite):
    test_a_task_needs_no_session = _LOOKS_BEHIND


class TestWorking(Encrypted, WorkingSuite):
    test_what_is_appended_is_there_in_order = _LOOKS_BEHIND
    test_what_has_expired_is_not_there = _LOOKS_BEHIND
    test_a_batch_is_gone_when_it_is_acknowledged = _LOOKS_BEHIND
    test_what_is_taken_in_a_transaction_goes_with_it = _LOOKS_BEHIND
