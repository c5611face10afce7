"""The dates that a question names, as periods of days."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH_NUMBERS = {name: i for i, month in enumerate(_MONTHS, 1) for name in (month, month[:3])} | {"sept": 9}
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 14)}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_NEAR = {"today": (0, 0), "yesterday": (1, 1), "this week": (0, 7), "this month": (0, 31)}


def _any(words: "Iterator[str] | Mapping[str, object] | tuple[str, ...] | list[str]") -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_MONTH = rf"(?P<month>{_any(_MONTH_NUMBERS)})\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_CALENDAR = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b{_YEAR}-(?P<number>0?[1-9]|1[0-2])-(?P<day>[0-3]?\d)\b",
        rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}\b(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH}\s+{_DAY}\b(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b",
        rf"\b(?:in|of|during|since|by|last|this|early|late|mid)[\s-]+{_MONTH}\b",
        rf"\b(?P<season>{_any(_SEASONS)})\s+(?:of\s+)?{_YEAR}\b",
        rf"\b(?:in|of|during|since|by|year)\s+{_YEAR}\b",
    )
)
_AGO = re.compile(rf"\b(?P<count>\d{{1,4}}|{_any(_COUNTS)})\s+(?P<unit>day|week|month)s?\s+ago\b")
_LAST = re.compile(rf"\b(?:last|past|previous)\s+(?P<what>week|month|year|{_any([*_SEASONS, *_WEEKDAYS])})\b")
_THESE = re.compile(rf"\b(?P<what>{_any(_NEAR)})\b")


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of days; without a year it recurs every year."""

    start: datetime
    end: datetime
    yearly: bool = False


def periods_in(question: str, now: datetime) -> list[Period]:
    """The periods that a question names, by the calendar or from `now`."""
    found: list[Period] = []
    rest = question.lower()
    for pattern in _CALENDAR:
        found += [period for match in pattern.finditer(rest) for period in _by_calendar(match.groupdict())]
        rest = pattern.sub(" ", rest)
    return [*found, *_from_now(rest, now.replace(hour=0, minute=0, second=0, microsecond=0))]


def _by_calendar(named: Mapping[str, str | None]) -> Iterator[Period]:
    year = int(named.get("year") or 2000)
    season, month, number = named.get("season"), named.get("month"), named.get("number")
    first, last = _SEASONS[season] if season else (1, 12)
    if month or number:
        first = last = _MONTH_NUMBERS[month] if month else int(number or 0)
    try:
        start = _first_day(year, first)
        end = _first_day(year, last + 1) - timedelta(days=1)
        if day := named.get("day"):
            start = end = start.replace(day=int(day))
    except ValueError:  # there is no such day
        return
    yield Period(start, end, yearly=not named.get("year"))


def _first_day(year: int, month: int) -> datetime:
    return datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=UTC)


def _from_now(question: str, today: datetime) -> Iterator[Period]:
    for match in _AGO.finditer(question):
        count, size = match["count"], _DAYS[match["unit"]]
        middle = _back(today, size * (_COUNTS.get(count) or int(count)))
        yield Period(_back(middle, size / 2), middle + timedelta(days=size / 2))
    for match in _LAST.finditer(question):
        yield _last(match["what"], today)
    for match in _THESE.finditer(question):
        newest, oldest = _NEAR[match["what"]]
        yield Period(_back(today, oldest), _back(today, newest))


def _last(what: str, today: datetime) -> Period:
    if what in _WEEKDAYS:
        day = _back(today, (today.weekday() - _WEEKDAYS.index(what) - 1) % 7 + 1)
        return Period(day, day)
    if what in _SEASONS:
        first, last = _SEASONS[what]
        year = next(year for year in range(today.year, 0, -1) if _first_day(year, last + 1) <= today)
        return Period(_first_day(year, first), _first_day(year, last + 1) - timedelta(days=1))
    return Period(_back(today, 2 * _DAYS[what]), _back(today, _DAYS[what]))


def _back(now: datetime, days: float) -> datetime:
    """So many days before; never before there is a calendar."""
    return now - min(timedelta(days=days), now - datetime(1, 1, 3, tzinfo=UTC))
