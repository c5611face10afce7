"""The circuit breaker, under a clock that the tests move."""

import threading

from mnemon.breaker import Breaker
from mnemon.testing import ManualClock


def broken(clock: ManualClock, **options: float) -> Breaker:
    """One that has just had its three failures."""
    breaker = Breaker(clock, **options)  # type: ignore[arg-type]
    for _ in range(3):
        assert breaker.allows()
        breaker.failed()
    return breaker


def test_failures_in_a_row_open_it_and_not_before() -> None:
    breaker = Breaker(ManualClock())
    breaker.failed()
    breaker.failed()
    assert breaker.allows()
    assert not breaker.is_open
    breaker.failed()
    assert breaker.is_open
    assert not breaker.allows()
    assert breaker.failures == 3


def test_a_success_between_failures_begins_the_count_anew() -> None:
    breaker = Breaker(ManualClock())
    for _ in range(5):
        breaker.failed()
        breaker.failed()
        breaker.succeeded()
    assert breaker.allows()
    assert breaker.failures == 0


def test_after_the_pause_one_may_try() -> None:
    clock = ManualClock()
    breaker = broken(clock, pause=2)
    clock.advance(1.999)
    assert not breaker.allows()
    clock.advance(0.001)
    assert [breaker.allows() for _ in range(3)] == [True, False, False]


def test_a_successful_try_closes_it() -> None:
    clock = ManualClock()
    breaker = broken(clock)
    clock.advance(1)
    assert breaker.allows()
    assert breaker.succeeded()
    assert breaker.allows()
    breaker.failed()
    assert breaker.allows(), "one failure after an outage opened it again"


def test_each_failed_try_doubles_the_pause_up_to_the_longest() -> None:
    clock = ManualClock()
    breaker = broken(clock, pause=1, longest=5)
    pauses: list[int] = []
    for _ in range(5):
        waited = 0
        while not breaker.allows():
            clock.advance(1)
            waited += 1
        pauses.append(waited)
        breaker.failed()
    assert pauses == [1, 2, 4, 5, 5]


def test_the_pause_is_short_again_after_a_success() -> None:
    clock = ManualClock()
    breaker = broken(clock, pause=1)
    for _ in range(4):
        clock.advance(60)
        assert breaker.allows()
        breaker.failed()
    clock.advance(60)
    assert breaker.allows()
    breaker.succeeded()
    for _ in range(3):
        breaker.failed()
    assert not breaker.allows()
    clock.advance(1)
    assert breaker.allows()


def test_whoever_tried_and_never_told_is_not_waited_for() -> None:
    clock = ManualClock()
    breaker = broken(clock)
    clock.advance(1)
    assert breaker.allows()
    assert not breaker.allows()
    clock.advance(1)
    assert breaker.allows()


def test_a_clock_that_is_set_back_does_not_keep_it_open() -> None:
    clock = ManualClock()
    breaker = broken(clock)
    clock.advance(-3600)
    assert breaker.allows()


def test_it_tells_when_an_outage_begins_and_ends() -> None:
    breaker = Breaker(ManualClock())
    assert not breaker.succeeded()
    assert [breaker.failed() for _ in range(4)] == [True, False, False, False]
    assert [breaker.succeeded() for _ in range(2)] == [True, False]
    assert breaker.failed()


def test_of_many_threads_only_one_may_try() -> None:
    clock = ManualClock()
    for _ in range(20):
        breaker = broken(clock)
        clock.advance(1)
        start, allowed = threading.Barrier(8), []

        def ask(breaker: Breaker = breaker, start: threading.Barrier = start, allowed: list[bool] = allowed) -> None:
            start.wait()
            allowed.append(breaker.allows())

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(allowed) == 1
