"""The values in a text that can be compared as such: numbers with their units, dates, times, addresses, codes."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

MeasureKind = Literal["number", "amount", "clock", "date", "weekday", "period", "ordinal", "version", "contact", "code"]
Bound = Literal["", "about", "least", "most"]

_NEARLY = 0.1  # how far apart two values may be of which one is said to be rough


@dataclass(frozen=True, slots=True)
class Measure:
    """A value, as it is compared: `unit` names what may be compared with what, `value` is in the unit's base.

    Of a date, `value` is year, month and day, with 0 for what is not said.
    """

    kind: MeasureKind
    unit: str
    value: float | str | tuple[int, int, int]
    bound: Bound = ""

    @property
    def key(self) -> str:
        value = f"{self.value:.9g}" if isinstance(self.value, float) else str(self.value)
        return f"{self.kind}:{self.unit}:{self.bound}{value}"

    def comparable(self, other: "Measure") -> bool:
        """Whether both measure the same kind of thing, dates to the same precision."""
        if isinstance(self.value, tuple) and isinstance(other.value, tuple):
            return [part == 0 for part in self.value] == [part == 0 for part in other.value]
        return self.kind == other.kind and self.unit == other.unit

    def agrees(self, other: "Measure") -> bool:
        """Whether both may be true of the same thing: equal, roughly equal, or within the other's bounds."""
        if self.key == other.key:
            return True
        if isinstance(self.value, tuple) and isinstance(other.value, tuple):
            return _fits(self.value, other.value)
        if not (isinstance(self.value, float) and isinstance(other.value, float)) or not self.comparable(other):
            return False
        if "about" in (self.bound, other.bound):
            return abs(self.value - other.value) <= _NEARLY * max(abs(self.value), abs(other.value))
        return self.bound != other.bound and _allows(self, other.value) and _allows(other, self.value)

    def __str__(self) -> str:
        return f"{self.bound} {self.value} {self.unit}".strip()


def _fits(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """A date fits another if all that both say is the same."""
    return all(not a or not b or a == b for a, b in zip(one, other, strict=True))


def _allows(measure: Measure, value: float) -> bool:
    if not isinstance(measure.value, float) or not measure.bound:
        return True
    return value >= measure.value if measure.bound == "least" else value <= measure.value


@dataclass(frozen=True, slots=True)
class Place:
    """A measure and where it stands in the text."""

    start: int
    end: int
    measure: Measure


_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_MONTH_NUMBERS = {name: i for i, month in enumerate(_MONTHS, 1) for name in (month, month[:3])} | {"sept": 9}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBER_WORDS = {word: i for i, word in enumerate(_ONES)} | dict(zip(_TENS, count(20, 10), strict=False))
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
             "twelfth")  # fmt: skip
_ORDINAL_NUMBERS = {word: i for i, word in enumerate(_ORDINALS, 1)}
_SCALES = {
    "hundred": 100, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "b": 1e9,
    "dozen": 12,
}  # fmt: skip
_PERIODS = {
    "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year", "annual": "year",
    "hourly": "hour", "nightly": "night", "quarterly": "quarter", "biweekly": "fortnight",
}  # fmt: skip
_CURRENCIES = {
    spelling: names[0].lower()
    for names in (
        ("USD", "$", "US$", "dollar", "dollars", "buck", "bucks"), ("EUR", "€", "euro", "euros"),
        ("GBP", "£", "pound", "pounds"), ("JPY", "¥", "yen"), ("CHF",), ("NOK",), ("SEK",), ("DKK",), ("kr",),
        ("INR", "₹", "rupees"), ("CAD",), ("AUD",),
    )
    for spelling in map(str.lower, names)
}  # fmt: skip
_UNIT_ROWS = (
    "seconds 0.001 ms msec millisecond milliseconds", "seconds 1 s sec secs second seconds",
    "seconds 60 min mins minute minutes", "seconds 3600 h hr hrs hour hours", "seconds 86400 day days",
    "seconds 604800 week weeks wk wks", "months 1 month months", "months 12 year years yr yrs",
    "metres 0.001 mm millimetre millimetres millimeter millimeters", "metres 1 m metre metres meter meters",
    "metres 0.01 cm centimetre centimetres centimeter centimeters", "metres 1609.344 mile miles mi",
    "metres 1000 km kilometre kilometres kilometer kilometers", "metres 0.3048 ft foot feet",
    "metres 0.0254 inch inches", "grams 0.000001 mcg µg", "grams 0.001 mg milligram milligrams", "grams 1 g gram grams",
    "grams 1000 kg kilo kilos kilogram kilograms", "grams 1000000 t ton tons tonne tonnes", "grams 453.592 lb lbs",
    "grams 28.3495 oz ounce ounces", "litres 0.001 ml millilitre millilitres milliliter milliliters", "litres 0.01 cl",
    "litres 0.1 dl", "litres 1 l litre litres liter liters", "bytes 1 byte bytes", "bytes 1e3 kb kilobyte kilobytes",
    "bytes 1e6 mb megabyte megabytes", "bytes 1e9 gb gigabyte gigabytes", "bytes 1e12 tb terabyte terabytes",
    "bytes 1024 kib", "bytes 1048576 mib", "bytes 1073741824 gib", "bits 1e6 mbps mbit", "bits 1e9 gbps gbit",
    "hertz 1 hz", "hertz 1e3 khz", "hertz 1e6 mhz", "hertz 1e9 ghz", "beats 1 bpm", "turns 1 rpm",
    "watts 1 w watt watts", "watts 1000 kw kilowatt kilowatts", "volts 1 v volt volts", "watthours 1000 kwh",
    "percent 1 % percent pct", "pixels 1 px pixel pixels", "kmh 1 km/h kmh kph", "kmh 1.609344 mph",
    "calories 1 kcal calories",
    "squaremetres 1 m² sqm",
)  # fmt: skip
_UNITS = {
    spelling: (unit, float(factor)) for unit, factor, *spellings in map(str.split, _UNIT_ROWS) for spelling in spellings
}


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _capitals(words: Iterable[str]) -> list[str]:
    return [word.capitalize() for word in words]


_DIGITS = r"\d{1,3}(?:[,\u202f']\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_WORDED = rf"(?:{_any(_TENS)})(?:[- ](?:{_any(_ONES[1:10])}))?|(?:{_any(_ONES)})|half\s+an?|a(?=\s+dozen)"
_NUMBER = rf"(?P<number>{_DIGITS}|\b(?i:{_WORDED})\b)"
_SCALE = r"(?:(?P<scale>[kKM]|bn|mn)\b|[ -]?(?P<scaleword>hundred|thousand|million|billion|dozen)\b)?"
_BOUND = (
    r"(?:\b(?P<least>at\s+least|more\s+than|over|no\s+less\s+than|(?:a\s+)?minimum\s+of)\s+"
    r"|\b(?P<most>at\s+most|less\s+than|fewer\s+than|under|up\s+to|no\s+more\s+than|(?:a\s+)?maximum\s+of)\s+"
    r"|(?P<about>\b(?:about|around|approximately|roughly|nearly|almost|circa|ca\.|some\s+(?=\d))\s*|~\s*))?"
)
# In lower case, `may` and `march` are verbs.
_PLAIN_MONTHS = [month for month in _MONTHS if month not in ("may", "march")]
_MONTH = rf"(?P<month>{_any([*_capitals(_MONTH_NUMBERS), *_PLAIN_MONTHS])})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_SHORT_DAYS = ("Mon", "Tue", "Tues", "Wed", "Thu", "Thurs", "Fri", "Sat", "Sun")
_PER = _any((
    "second", "minute", "min", "hour", "day", "week", "month", "year", "quarter", "night", "unit", "person", "user",
    "seat", "item", "pallet", "piece", "kg", "request", "page", "head",
))  # fmt: skip
_PHONE = r"\+\d{1,3}(?:[\s-]?\(?\d{2,4}\)?){2,6}\b|\b\(?\d{3}\)?[-\s.]\d{3}[-\s.]\d{4}\b|\b\d{3}-\d{4}\b"
_CODE = r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])(?!\d+(?:st|nd|rd|th|k|K|M|bn)\b)(?!v\d)[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+\b"
_DEGREES = r"\s?(?:°|degrees?\s*)\s?(?P<scale>[CF]\b|(?i:celsius|fahrenheit))"

# What is found by one is not looked at by those after it. The first have a digit in them, always.
_WITH_DIGITS = (
    ("contact", r"(?P<text>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+|/\d+)?\b)"),
    ("contact", r"(?P<text>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"),
    ("code", r"(?P<text>\b(?:UTC|GMT)\s?[+-]\d{1,2}(?::?\d\d)?\b)"),
    ("phone", rf"(?P<text>{_PHONE})"),
    ("date", rf"\b{_YEAR}-(?P<number>0?[1-9]|1[0-2])-(?P<day>[0-3]?\d)\b(?:T(?=\d))?"),
    ("date", rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR}\b)?"),
    ("date", rf"\b{_MONTH}\s+{_DAY}\b(?!:)(?!\s*(?:am|pm|AM|PM)\b)(?:,?\s+{_YEAR}\b)?"),
    ("date", rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}\b"),
    ("date", rf"\b(?P<day>[0-3]?\d)\.(?P<number>0?[1-9]|1[0-2])\.{_YEAR}\b"),
    ("slashed", rf"\b(?P<one>[0-3]?\d)/(?P<other>[0-3]?\d)/{_YEAR}\b"),
    ("date", rf"\b(?P<number>0?[1-9]|1[0-2])/{_YEAR}\b"),
    ("clock", r"\b(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::[0-5]\d)?\s*(?P<half>[aApP]\.?[mM]\b\.?)?"),
    ("clock", r"\b(?P<hour>1[0-2]|0?[1-9])\s*(?P<half>[aApP]\.?[mM]\b)"),
    ("money", rf"{_BOUND}(?P<sign>US\$|[$€£¥₹])\s?{_NUMBER}{_SCALE}"),
    ("code", r"(?P<text>\b\d+/\d+\b(?!/))"),
    ("temperature", rf"{_BOUND}(?P<number>-?\d+(?:\.\d+)?){_DEGREES}"),
)
_WITH_DIGITS_LATER = (
    ("code", rf"(?P<text>{_CODE})"),
    ("version", r"(?P<text>\bv\d+(?:\.\d+)*\b|\b\d+\.\d+\.\d+(?:[.-]?\w+)*\b)"),
    ("version", r"(?<=[A-Za-z] )(?P<text>\d+\.\d+)\b(?!\s*%)"),
    ("year", rf"\b(?i:in|of|since|by|from|until|during|year|for|the)\s+(?P<keep>){_YEAR}\b"),
)
_CONTACTS = (
    ("contact", r"(?P<text>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"),
    ("contact", r"(?P<text>\b(?:https?|ftp|file|s3|postgresql|redis)://[^\s,;)]*[^\s,;).!?])"),
)
_AMOUNTS = (
    ("money", rf"{_BOUND}{_NUMBER}{_SCALE}\s?(?P<sign>[€£¥₹]|(?i:{_any(c for c in _CURRENCIES if c.isalpha())})\b)"),
    ("old", rf"\b(?:aged\s+)?{_NUMBER}[\s-]years?[\s-]old\b"),
    ("amount", rf"{_BOUND}{_NUMBER}(?P<scale>)(?P<scaleword>)[\s-]?(?P<unit>(?i:{_any(_UNITS)}))(?![\w/°])"),
)
_WORDS = (
    ("clock", r"\b(?P<word>noon|midnight|midday)\b"),
    ("period", rf"\b(?i:per|each|every)\s+(?P<unit>{_PER})\b"),
    ("period", rf"(?<=[\w)])\s*/\s*(?P<unit>{_PER})\b"),
    ("period", rf"\b(?P<word>(?i:{_any(_PERIODS)}))\b"),
    ("weekday", rf"\b(?P<day>{_any([*_WEEKDAYS, *_capitals(_WEEKDAYS), *_SHORT_DAYS])})s?\b"),
    ("month", rf"(?<=[a-z,] )(?:(?:early|late|mid)[- ])?{_MONTH}(?!\s+[a-z]+s\b)"),
    ("ordinal", rf"\b(?P<number>\d+)(?:st|nd|rd|th)\b|\b(?P<word>(?i:{_any(_ORDINALS)}))\b"),
    ("number", rf"{_BOUND}(?<![\w.])#?{_NUMBER}{_SCALE}(?![\w])"),
)


def _compiled(*tables: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern)) for table in tables for name, pattern in table)


_ALL = _compiled(_CONTACTS, _WITH_DIGITS, _AMOUNTS, _WITH_DIGITS_LATER, _WORDS)
_WITHOUT_DIGITS = _compiled(_CONTACTS, _AMOUNTS, _WORDS)
_DIGIT = re.compile(r"\d")


def measures_in(text: str) -> list[Place]:
    """The measures of a text in their order; those that overlap are read as the longer pattern says."""
    rest = text
    found: list[Place] = []
    for name, pattern in _ALL if _DIGIT.search(text) else _WITHOUT_DIGITS:
        for match in pattern.finditer(rest):
            measure = _READERS[name](match)
            if measure:
                found.append(Place(_start(match), match.end(), measure))
                rest = rest[: _start(match)] + "\0" * (match.end() - _start(match)) + rest[match.end() :]
    found += _rates(rest, found)
    return sorted(found, key=lambda place: place.start)


_RATE = re.compile(rf"\b(?<!in )(?:an?)\s+(?P<unit>{_PER})\b")


def _rates(rest: str, found: list[Place]) -> Iterator[Place]:
    """`a month`, somewhere after a value, is each month."""
    first = min((place.end for place in found if place.measure.kind in ("amount", "number")), default=len(rest))
    for match in _RATE.finditer(rest, first):
        yield Place(match.start(), match.end(), Measure("period", "", _period(match["unit"])))


def _start(match: re.Match[str]) -> int:
    """Where the value begins; what only announces it stays in the text."""
    return match.start("year") if "keep" in match.re.groupindex else match.start()


def _period(word: str) -> str:
    word = word.lower()
    return {"min": "minute"}.get(word, _PERIODS.get(word, word))


def number_of(text: str) -> float:
    """A number in digits or in words."""
    plain = text.lower().replace(",", "").replace("\u202f", "").replace("'", "")
    if plain[:1].isdigit():
        return float(plain)
    if plain.startswith("half"):
        return 0.5
    if plain == "a":
        return 1.0
    return float(sum(_NUMBER_WORDS[part] for part in re.split(r"[\s-]+", plain)))


def _bound(match: re.Match[str]) -> Bound:
    named = match.groupdict()
    return "least" if named.get("least") else "most" if named.get("most") else "about" if named.get("about") else ""


def _scaled(match: re.Match[str]) -> float:
    scale = (match["scale"] or match["scaleword"] or "").lower()
    return number_of(match["number"]) * _SCALES.get(scale, 1)


def _read_date(match: re.Match[str]) -> Measure | None:
    named = match.groupdict()
    month = int(named["number"]) if named.get("number") else _MONTH_NUMBERS[(named.get("month") or "").lower()]
    day = int(named.get("day") or 0)
    return Measure("date", "", (int(named.get("year") or 0), month, day)) if day <= 31 else None


def _read_slashed(match: re.Match[str]) -> Measure:
    """Day and month in whichever order makes a date; where both do, nothing but the same writing is the same."""
    one, other, year = int(match["one"]), int(match["other"]), int(match["year"])
    if one > 12 or other > 12 or one == other:
        return Measure("date", "", (year, min(one, other), max(one, other)))
    return Measure("code", "date", match[0])


def _read_clock(match: re.Match[str]) -> Measure:
    named = match.groupdict()
    if word := named.get("word"):
        return Measure("clock", "", 0.0 if word == "midnight" else 720.0)
    hour, half = int(named["hour"] or 0), (named.get("half") or "").lower()
    hour = hour % 12 + 12 * half.startswith("p") if half else hour
    return Measure("clock", "", float(hour * 60 + int(named.get("minute") or 0)))


def _read_amount(match: re.Match[str]) -> Measure:
    unit, factor = _UNITS[match["unit"].lower()]
    return Measure("amount", unit, _scaled(match) * factor, _bound(match))


def _read_temperature(match: re.Match[str]) -> Measure:
    degrees = float(match["number"])
    celsius = (degrees - 32) / 1.8 if match["scale"][0] in "Ff" else degrees
    return Measure("amount", "celsius", round(celsius, 2), _bound(match))


def _read_ordinal(match: re.Match[str]) -> Measure:
    return Measure("ordinal", "", float(match["number"] or _ORDINAL_NUMBERS[match["word"].lower()]))


# `one` before a noun, neither `no one` nor `one of`.
_ONE = re.compile(r"(?<!no )\bone\s+(?!(?:of|who|that|is)\b)[a-z]\w*$", re.IGNORECASE)


def _read_number(match: re.Match[str]) -> Measure | None:
    if match["number"].lower() == "one" and not _ONE.search(match.string[: match.end() + 8]):
        return None
    return Measure("number", "", _scaled(match), _bound(match))


_READERS: dict[str, Callable[[re.Match[str]], Measure | None]] = {
    "contact": lambda match: Measure("contact", "", match["text"].lower()),
    "phone": lambda match: Measure("contact", "phone", re.sub(r"\D", "", match["text"])),
    "date": _read_date,
    "month": _read_date,
    "slashed": _read_slashed,
    "year": lambda match: Measure("date", "", (int(match["year"]), 0, 0)),
    "clock": _read_clock,
    "money": lambda match: Measure("amount", _CURRENCIES[match["sign"].lower()], _scaled(match), _bound(match)),
    "old": lambda match: Measure("number", "", number_of(match["number"])),
    "temperature": _read_temperature,
    "amount": _read_amount,
    "code": lambda match: Measure("code", "", match["text"].lower()),
    "version": lambda match: Measure("version", "", match["text"].lower().lstrip("v")),
    "period": lambda match: Measure("period", "", _period(match.groupdict().get("unit") or match["word"])),
    "weekday": lambda match: Measure("weekday", "", match["day"].lower()[:3]),
    "ordinal": _read_ordinal,
    "number": _read_number,
}
