"""Values are read out of texts, and equal ones are equal however they are written."""

import pytest

from mnemon.consolidation.english.measures import Measure, measures_in


def measure(text: str) -> Measure:
    (place,) = measures_in(text)
    return place.measure


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.5 h", "90 minutes"),
        ("two weeks", "14 days"),
        ("12 months", "1 year"),
        ("2 km", "2000 m"),
        ("half a litre", "500 ml"),
        ("1 GB", "1000 MB"),
        ("$12,000", "12k USD"),
        ("$1.2 million", "1,200,000 dollars"),
        ("300 euros", "€300.00"),
        ("4.5%", "4.5 percent"),
        ("21 °C", "21 degrees Celsius"),
        ("3:30 pm", "15:30"),
        ("noon", "12 pm"),
        ("14 May 2024", "2024-05-14"),
        ("May 14, 2024", "14.05.2024"),
        ("15/3/2024", "March 15th, 2024"),
        ("in 06/2021", "in June 2021"),
        ("every Tuesday", "on Tuesdays"),
        ("twenty-five", "25"),
        ("half past six", "6:30 pm"),
        ("7 in the morning", "7 am"),
        ("2 h 30 min", "two and a half hours"),
        ("10 miles", "16.1 km"),
        ("0 °F", "-18 °C"),
        ("1 GB", "1024 MB"),
        ("twice a day", "2 times per day"),
        ("Q3", "the third quarter"),
        ("05/11/2026", "11 May 2026"),
        ("2026/03/31", "31 March 2026"),
        ("the 4th", "the fourth"),
        ("per month", "monthly"),
        ("+47 22 33 44 55", "+47 2233 4455"),
        ("v2.3.1", "2.3.1"),
    ],
)
def test_the_same_value_is_written_in_many_ways(one: str, other: str) -> None:
    assert measure(one).is_same(measure(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 h", "61 minutes"),
        ("$10", "€10"),
        ("10.0.0.5", "10.0.0.7"),
        ("555-0100", "555-0199"),
        ("3 March", "5 March"),
        ("Python 3.1", "Python 3.10"),
        ("9:00", "21:00"),
        ("3/4/2024", "4/3/2024"),
        ("a@example.com", "b@example.com"),
        ("UTC+2", "UTC-5"),
        ("C-4410", "C-4471"),
    ],
)
def test_other_values_differ(one: str, other: str) -> None:
    assert not measure(one).agrees(measure(other))


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("about 2 hours", "125 minutes", True),
        ("about 2 hours", "5 hours", False),
        ("at least $100", "$120", True),
        ("at least $100", "$80", False),
        ("up to 5 kg", "3 kg", True),
        ("at least 8", "at least 12", False),
        ("May 2024", "14 May 2024", True),
        ("5 kg", "5 km", False),
    ],
)
def test_rough_values_and_bounds_agree_with_what_they_allow(one: str, other: str, agree: bool) -> None:
    assert measure(one).agrees(measure(other)) is agree
    assert measure(other).agrees(measure(one)) is agree


@pytest.mark.parametrize("text", ["She may march on.", "no one came", "the sun is out", "a second opinion of his"])
def test_words_that_look_like_values(text: str) -> None:
    assert [place.measure.kind for place in measures_in(text)] in ([], ["ordinal"])
