"""The dates that questions name."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mnemon.retrieval.dates import Period, periods_in

NOW = datetime(2024, 7, 10, 15, 30, tzinfo=UTC)  # a Wednesday


def day(year: int, month: int, number: int) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


def period(question: str, now: datetime = NOW) -> Period:
    """The one period that a question names."""
    [found] = periods_in(question, now)
    return found


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What happened on 2023-05-08?", day(2023, 5, 8), day(2023, 5, 8)),
        ("Where was she on 8 May 2023?", day(2023, 5, 8), day(2023, 5, 8)),
        ("Where was she on the 8th of May, 2023?", day(2023, 5, 8), day(2023, 5, 8)),
        ("WHERE WAS SHE ON MAY 8TH, 2023?", day(2023, 5, 8), day(2023, 5, 8)),
        ("Who left on Sept. 1 2022?", day(2022, 9, 1), day(2022, 9, 1)),
        ("Who left in Feb 2024?", day(2024, 2, 1), day(2024, 2, 29)),
        ("What was planned for December of 2022?", day(2022, 12, 1), day(2022, 12, 31)),
        ("What did they do in 2022?", day(2022, 1, 1), day(2022, 12, 31)),
        ("Where did they go in summer 2022?", day(2022, 6, 1), day(2022, 8, 31)),
        ("Where did they go in the winter of 2022?", day(2022, 12, 1), day(2023, 2, 28)),
    ],
)  # fmt: skip
def test_a_date_of_the_calendar_is_a_period_of_whole_days(question: str, first: datetime, last: datetime) -> None:
    assert period(question) == Period(first, last)


@pytest.mark.parametrize("question", ["What happened on 8 May?", "What happened on May 8th?"])
def test_a_day_without_a_year_recurs(question: str) -> None:
    found = period(question)
    assert found.yearly
    assert (found.start.month, found.start.day, found.end) == (5, 8, found.start)


def test_a_month_without_a_year_recurs_and_is_told_from_a_verb() -> None:
    found = period("What did she do in May?")
    assert (found.start.month, found.end.day, found.yearly) == (5, 31, True)
    assert periods_in("May she march?", NOW) == []


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did I eat today?", day(2024, 7, 10), day(2024, 7, 10)),
        ("What did I eat Yesterday?", day(2024, 7, 9), day(2024, 7, 9)),
        ("What did I do 3 days ago?", day(2024, 7, 7) - timedelta(hours=12), day(2024, 7, 7) + timedelta(hours=12)),
        ("What did I do last Monday?", day(2024, 7, 8), day(2024, 7, 8)),
        ("What did I do last Wednesday?", day(2024, 7, 3), day(2024, 7, 3)),
        ("What did I do last Thursday?", day(2024, 7, 4), day(2024, 7, 4)),
        ("What did I do last week?", day(2024, 6, 26), day(2024, 7, 3)),
        ("Where were we last summer?", day(2023, 6, 1), day(2023, 8, 31)),
        ("Where were we last spring?", day(2024, 3, 1), day(2024, 5, 31)),
        ("Where were we last winter?", day(2023, 12, 1), day(2024, 2, 29)),
    ],
)
def test_what_is_relative_is_reckoned_from_today(question: str, first: datetime, last: datetime) -> None:
    assert period(question) == Period(first, last)


def test_last_winter_is_over_even_if_it_is_winter() -> None:
    assert period("Where were we last winter?", day(2024, 1, 15)) == Period(day(2022, 12, 1), day(2023, 2, 28))


def test_counts_in_words_and_in_digits_are_the_same() -> None:
    assert period("two weeks ago") == period("2 weeks ago")
    assert period("a month ago") == period("1 month ago")
    assert period("9999 months ago").start.year > 0


@pytest.mark.parametrize(
    "question", ["on 30 February 2023", "on 2023-02-29", "on 2023-13-05", "on 2023-00-05", "on April 31st", "May 0"]
)
def test_a_day_that_does_not_exist_is_no_date(question: str) -> None:
    assert periods_in(question, NOW) == []


@pytest.mark.parametrize(
    "question", ["", "Who is Alice?", "error 2023", "version 20.24.1", "the 100th customer", "What may happen?"]
)
def test_where_no_date_is_named_there_is_none(question: str) -> None:
    assert periods_in(question, NOW) == []


def test_every_date_of_a_question_is_found_once() -> None:
    found = periods_in("Between 1 May 2023 and 2023-06-01, or in July 2023, or yesterday?", NOW)
    assert sorted(each.start for each in found) == [
        day(2023, 5, 1), day(2023, 6, 1), day(2023, 7, 1), day(2024, 7, 9),
    ]  # fmt: skip


_PIECES = st.sampled_from(
    (
        "last", "this", "in", "of", "mid", "past", "31", "0", "29th", "2023", "2023-2-30", "9999", "ten", "an", "days",
        "week", "months", "year", "ago", "feb.", "Sept", "may", "summer", "winter", "sunday", "today", "AUGUST",
        "augu\u017ft", "apr\u0131l", "\u017fummer", "\u0663", "\u0130",
    )
)  # fmt: skip


@given(
    st.text() | st.lists(_PIECES, max_size=12).map(" ".join),
    st.datetimes(datetime(1970, 1, 1), datetime(2500, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
@example("in augu\u017ft", NOW)
@example("last \u017funday", NOW)
@example("5 apr\u0131l 2023", NOW)
def test_any_text_can_be_read(question: str, now: datetime) -> None:
    for found in periods_in(question, now):
        assert found.start <= found.end
        assert found.start.tzinfo is UTC
