"""What somebody meets who derives from a suite in a project of their own."""

import pytest

pytest_plugins = ("pytester",)

SCOPE = ("-o", "asyncio_default_fixture_loop_scope=function")


def test_a_suite_says_what_to_override(pytester: pytest.Pytester) -> None:
    """Given a suite whose `memory` was not overridden, when it runs, then the error says what to do."""
    pytester.makepyfile("from mnemon.testing import TaskSuite\nclass TestMine(TaskSuite): ...")

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-k", "pending", "-x", *SCOPE)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*NotImplementedError: override `memory`*"])


def test_a_suite_runs_in_the_strict_mode_of_a_third_party(pytester: pytest.Pytester) -> None:
    """Given a project with pytest-asyncio in strict mode, when it derives from a suite, then the suite runs."""
    pytester.makepyfile(
        """
        import mnemon, pytest_asyncio
        from mnemon.testing import QUIET, TaskSuite

        class TestMine(TaskSuite):
            @pytest_asyncio.fixture
            async def memory(self, clock):
                async with mnemon.open("sqlite://", clock=clock, **QUIET) as memory:
                    yield memory
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--asyncio-mode=strict", "-W", "error", *SCOPE)

    outcomes = result.parseoutcomes()
    assert outcomes.keys() == {"passed"}
    assert outcomes["passed"] > 10
