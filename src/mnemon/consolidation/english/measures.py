"""The values in a text that can be compared as such: numbers with their units, dates, times, addresses, codes."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from mnemon.consolidation.english.units import (
    CURRENCIES,
    IMPERIAL,
    MONTH_NUMBERS,
    MONTHS,
    NUMBER_WORDS,
    ONES,
    ORDINAL_NUMBERS,
    ORDINALS,
    PERIODS,
    SCALES,
    TENS,
    UNITS,
    WEEKDAYS,
)  # fmt: skip

MeasureKind = Literal["number", "amount", "clock", "date", "weekday", "period", "ordinal", "version", "contact", "code"]
Bound = Literal["", "about", "least", "most"]

_ROUNDED = 0.015  # how far apart a value in miles and one in kilometres may be
_DEGREE = 0.6
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
    is_imperial: bool = False
    """Whether it was said in a unit that others seldom convert to the last digit."""

    @property
    def key(self) -> str:
        value = f"{self.value:.9g}" if isinstance(self.value, float) else str(self.value)
        unit = "" if self.kind == "clock" else self.unit
        return f"{self.kind}:{unit}:{self.bound}{value}"

    def comparable(self, other: "Measure") -> bool:
        """Whether both measure the same kind of thing, dates to the same precision."""
        if isinstance(self.value, tuple) and isinstance(other.value, tuple):
            return [part == 0 for part in self.value] == [part == 0 for part in other.value]
        return self.kind == other.kind and (self.unit == other.unit or self.kind == "clock")

    def agrees(self, other: "Measure") -> bool:
        """Whether both may be true of the same thing: equal, roughly equal, or within the other's bounds."""
        if self.key == other.key:
            return True
        if isinstance(self.value, tuple) and isinstance(other.value, tuple):
            return _fits(self.value, other.value)
        if not (isinstance(self.value, float) and isinstance(other.value, float)) or not self.comparable(other):
            return self.kind == other.kind == "date" and _may_be_one_day(self, other)
        if self.kind == "clock":
            return _may_be_one_hour(self, other)
        if "about" in (self.bound, other.bound):
            return abs(self.value - other.value) <= _NEARLY * max(abs(self.value), abs(other.value))
        if self.bound == other.bound:
            return _are_one_converted(self, other)
        return _allows(self, other.value) and _allows(other, self.value)

    def is_same(self, other: "Measure") -> bool:
        """Whether both say the same, as far as can be said: not `at least 5` beside `7`."""
        return self == other or (self.agrees(other) and {self.bound, other.bound} <= {"", "about"})

    def __str__(self) -> str:
        return f"{self.bound} {self.value} {self.unit}".strip()


def _may_be_one_hour(one: Measure, other: Measure) -> bool:
    """`Half past six` is `6:30 pm`, and `6:30` may be."""
    units = {one.unit, other.unit}
    is_open = "spoken" in units or units == {"plain", "half"}
    return (
        is_open
        and isinstance(one.value, float)
        and isinstance(other.value, float)
        and not (one.value - other.value) % 720
    )


def _may_be_one_day(one: Measure, other: Measure) -> bool:
    """`05/11/2026` is the fifth of November, or the eleventh of May."""
    writing, day = (one.value, other.value) if isinstance(one.value, str) else (other.value, one.value)
    if not isinstance(writing, str) or not isinstance(day, tuple):
        return False
    first, second, year = map(int, writing.split("/"))
    return day in ((year, first, second), (year, second, first))


_THOUSANDS = frozenset(round(1.024**power, 6) for power in (1, 2, 3, 4))


def _are_one_converted(one: Measure, other: Measure) -> bool:
    """10 miles are 16 km, 0 °F is -18 °C, and 1 GB may be 1024 MB."""
    if not isinstance(one.value, float) or not isinstance(other.value, float) or one.unit != other.unit:
        return False
    low, high = sorted((abs(one.value), abs(other.value)))
    if one.unit == "bytes":
        return low > 0 and round(high / low, 6) in _THOUSANDS
    if one.is_imperial == other.is_imperial:
        return False
    return high - low <= (_DEGREE if one.unit == "celsius" else _ROUNDED * high)


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


_COMPOUND = frozenset(("seconds", "months", "metres", "grams"))
_LASTING = re.compile(
    r"\b(?:ttl|time-?out|interval|duration|delay|period|lifetime|expiry|backoff|after|every)\b", re.IGNORECASE
)
_GAME = re.compile(r"\b(?:match|game|score|beat|defeated|won|lost|drew|ended)\b", re.IGNORECASE)
_WARMTH = re.compile(r"\b(?:temp|heat|therm|warm|cool|cold|oven|fridge|freezer|fever)", re.IGNORECASE)
_WEIGHED = re.compile(r"\b(?:weigh|lost|gain)", re.IGNORECASE)


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _capitals(words: Iterable[str]) -> list[str]:
    return [word.capitalize() for word in words]


_DIGITS = r"\d{1,3}(?:[,\u202f']\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_WORDED = rf"(?:{_any(TENS)})(?:[- ](?:{_any(ONES[1:10])}))?|(?:{_any(ONES)})|half\s+an?|a(?=\s+dozen)"
_NUMBER = rf"(?P<number>(?:{_DIGITS}|\b(?i:{_WORDED})\b)(?:\s+and\s+a\s+half\b)?)"
_SCALE = r"(?:(?P<scale>[kKM]|bn|mn)\b|[ -]?(?P<scaleword>hundred|thousand|million|billion|dozen)\b)?"
_BOUND = (
    r"(?:\b(?P<least>(?i:at\s+least|more\s+than|over|no\s+less\s+than|(?:a\s+)?minimum\s+of))\s+"
    r"|\b(?P<most>(?i:at\s+most|less\s+than|fewer\s+than|under|(?<!went )(?<!gone )(?<!goes )(?<!going )(?<!go )up\s+to"
    r"|no\s+more\s+than|(?:a\s+)?maximum\s+of))\s+"
    r"|(?P<about>\b(?i:about|around|approximately|approx\.?|roughly|nearly|almost|circa|ca\.|some\s+(?=\d))\s*|~\s*))?"
)
# In lower case, `may` and `march` are verbs.
_PLAIN_MONTHS = [month for month in MONTHS if month not in ("may", "march")]
# Others are people's names too: `her brother Jan`, `her friend April`.
_SURE_MONTHS = [*MONTHS[:2], *MONTHS[8:], MONTHS[6]]
_BEFORE_MONTH = (
    "in", "on", "by", "since", "until", "till", "of", "last", "next", "this", "early", "late", "mid", "from", "to",
    "during", "for", "before", "after", "every", "each", "between", "and", "through", "end", "mid-", "is", "was",
    "starting", "as of",
)  # fmt: skip
_MONTH = rf"(?P<month>{_any([*_capitals(MONTH_NUMBERS), *_PLAIN_MONTHS])})\b\.?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_SHORT_DAYS = ("Mon", "Tue", "Tues", "Wed", "Thu", "Thurs", "Fri", "Sat", "Sun")
_PER = _any((
    "second", "minute", "min", "hour", "day", "week", "month", "year", "quarter", "night", "morning", "evening",
    "afternoon", "weekend", "unit", "person", "user", "seat", "item", "pallet", "piece", "kg", "request", "page",
    "head",
))  # fmt: skip
_PHONE = r"\+\d{1,3}(?:[\s-]?\(?\d{2,4}\)?){2,6}\b|\b\(?\d{3}\)?[-\s.]\d{3}[-\s.]\d{4}\b|\b\d{3}-\d{4}\b"
_CODE = r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])(?!\d+(?:st|nd|rd|th|k|K|M|bn)\b)(?!v\d)[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+\b"
_DAYTIME = r"(?:\s+(?P<half>in\s+the\s+(?:morning|afternoon|evening)|at\s+night))?"
_DEGREES = r"(?:\s?(?:°|degrees?\s*)\s?(?P<scale>[CF]\b|(?i:celsius|fahrenheit))|(?P<plain>[CF])\b)"

# What is found by one is not looked at by those after it. The first have a digit in them, always.
_WITH_DIGITS = (
    ("contact", r"(?P<text>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+|/\d+)?\b)"),
    ("contact", r"(?P<text>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"),
    ("code", r"(?P<text>\b(?:UTC|GMT)\s?[+-]\d{1,2}(?::?\d\d)?\b)"),
    ("phone", rf"(?P<text>{_PHONE})"),
    ("date", rf"\b{_YEAR}[/.](?P<number>0?[1-9]|1[0-2])[/.](?P<day>[0-3]?\d)\b"),
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
    (
        "score",
        r"\b(?P<text>\d{1,2}\s?[-:]\s?\d{1,2})\b(?![-:\w%]|\s*(?i:am|pm|days|hours|weeks|years|months|minutes|people))",
    ),
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
    ("money", rf"{_BOUND}{_NUMBER}{_SCALE}\s?(?P<sign>[€£¥₹]|(?i:{_any(c for c in CURRENCIES if c.isalpha())})\b)"),
    ("old", rf"\b(?:aged\s+)?{_NUMBER}[\s-]years?[\s-]old\b"),
    ("amount", rf"{_BOUND}{_NUMBER}(?P<scale>)(?P<scaleword>)[\s-]?(?P<unit>(?i:{_any(UNITS)}))(?![\w/°])"),
)
_WORDS = (
    ("clock", r"\b(?P<word>noon|midnight|midday)\b"),
    (
        "spoken",
        (
            rf"\b(?:(?P<past>(?i:half|quarter|five|ten|twenty))\s+(?P<side>past|to)\s+)"
            rf"(?P<number>\d{{1,2}}|(?i:{_any(ONES[1:13])}))\b(?:\s*o'?clock)?{_DAYTIME}"
        ),
    ),
    ("spoken", rf"\b(?P<number>\d{{1,2}}|(?i:{_any(ONES[1:13])}))\s*o'?clock\b{_DAYTIME}"),
    ("spoken", rf"\b(?P<number>\d{{1,2}}|(?i:{_any(ONES[1:13])})){_DAYTIME.removesuffix('?')}"),
    ("quarter", rf"\b[Qq](?P<number>[1-4])\b|\b(?P<word>(?i:{_any(ORDINALS[:4])})|[1-4](?:st|nd|rd|th))\s+quarter\b"),
    (
        "spoken",
        (
            rf"\b(?i:at|by|from|until|till|around)\s+(?P<keep>)(?P<number>\d{{1,2}}|(?i:{_any(ONES[1:13])}))"
            r"(?=\s*(?:$|[.,;]|every\b|each\b|on\b|daily\b|sharp\b|today\b|tomorrow\b|tonight\b))"
        ),
    ),
    (
        "times",
        (
            rf"\b(?P<number>(?i:once|twice|thrice)|(?:\d+|(?i:{_any(ONES)}))(?:x|\s+times))"
            rf"\s+(?:(?i:an?|per|each|every)\s+(?P<unit>{_PER})\b|(?P<word>(?i:{_any(PERIODS)}))\b)"
        ),
    ),
    ("blood", r"\b(?P<group>A|B|AB|O|0)[ -]?(?P<sign>\+|-|(?i:positive|negative|pos|neg)\b)(?![\w-])"),
    ("period", rf"\b(?i:per|each|every)\s+(?P<unit>{_PER})\b"),
    ("period", rf"(?<=[\w)])\s*/\s*(?P<unit>{_PER})\b"),
    ("period", rf"\b(?P<word>(?i:{_any(PERIODS)}))\b"),
    ("weekday", rf"\b(?P<day>{_any([*WEEKDAYS, *_capitals(WEEKDAYS), *_SHORT_DAYS])})s?\b"),
    ("month", rf"\b(?i:{_any(_BEFORE_MONTH)})\s+(?P<keep>){_MONTH}(?!\s+[a-z]+s\b)"),
    ("month", rf"(?<=[a-z,] )(?P<month>{_any([*_capitals(_SURE_MONTHS), *_SURE_MONTHS])})\b(?!\s+[a-z]+s\b)"),
    ("ordinal", rf"\b(?P<number>\d+)(?:st|nd|rd|th)\b|\b(?P<word>(?i:{_any(ORDINALS)}))\b"),
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
    return _added(sorted(found, key=lambda place: place.start), text)


def _added(places: list[Place], text: str) -> list[Place]:
    """`2 h 30 min` and `5 feet 10 inches` are one amount each."""
    kept: list[Place] = []
    for place in places:
        last = kept[-1] if kept else None
        if last and _goes_on(last.measure, place.measure) and text[last.end : place.start].strip() in ("", "and"):
            total = float(last.measure.value) + float(place.measure.value)  # pyright: ignore[reportArgumentType]
            kept[-1] = Place(last.start, place.end, replace(last.measure, value=total))
        else:
            kept.append(place)
    return kept


def _goes_on(one: Measure, other: Measure) -> bool:
    both = one.kind == other.kind == "amount" and one.unit == other.unit and one.unit in _COMPOUND
    return both and isinstance(one.value, float) and isinstance(other.value, float) and other.value < one.value


_RATE = re.compile(rf"\b(?<!in )(?:an?)\s+(?P<unit>{_PER})\b")


def _rates(rest: str, found: list[Place]) -> Iterator[Place]:
    """`a month`, somewhere after a value, is each month."""
    first = min((place.end for place in found if place.measure.kind in ("amount", "number")), default=len(rest))
    for match in _RATE.finditer(rest, first):
        yield Place(match.start(), match.end(), Measure("period", "", _period(match["unit"])))


def _start(match: re.Match[str]) -> int:
    """Where the value begins; what only announces it stays in the text."""
    return match.start("keep") if "keep" in match.re.groupindex else match.start()


def _period(word: str) -> str:
    word = word.lower()
    return {"min": "minute", "head": "person"}.get(word, PERIODS.get(word, word))


_AND_A_HALF = re.compile(r"\s+and\s+a\s+half$", re.IGNORECASE)


def number_of(text: str) -> float:
    """A number in digits or in words."""
    if (whole := _AND_A_HALF.sub("", text)) != text:
        return number_of(whole) + 0.5
    plain = text.lower().replace(",", "").replace("\u202f", "").replace("'", "")
    if plain[:1].isdigit():
        return float(plain)
    if plain.startswith("half"):
        return 0.5
    if plain == "a":
        return 1.0
    return float(sum(NUMBER_WORDS[part] for part in re.split(r"[\s-]+", plain)))


def _bound(match: re.Match[str]) -> Bound:
    named = match.groupdict()
    return "least" if named.get("least") else "most" if named.get("most") else "about" if named.get("about") else ""


def _scaled(match: re.Match[str]) -> float:
    scale = (match["scale"] or match["scaleword"] or "").lower()
    return number_of(match["number"]) * SCALES.get(scale, 1)


def _read_date(match: re.Match[str]) -> Measure | None:
    named = match.groupdict()
    month = int(named["number"]) if named.get("number") else MONTH_NUMBERS[(named.get("month") or "").lower()]
    day = int(named.get("day") or 0)
    return Measure("date", "", (int(named.get("year") or 0), month, day)) if day <= 31 else None


def _read_slashed(match: re.Match[str]) -> Measure:
    """Day and month in whichever order makes a date; where both do, nothing but the same writing is the same."""
    one, other, year = int(match["one"]), int(match["other"]), int(match["year"])
    if one > 12 or other > 12 or one == other:
        return Measure("date", "", (year, min(one, other), max(one, other)))
    return Measure("date", "written", match[0])


def _read_clock(match: re.Match[str]) -> Measure:
    named = match.groupdict()
    if word := named.get("word"):
        return Measure("clock", "", 0.0 if word == "midnight" else 720.0)
    hour, half = int(named["hour"] or 0), (named.get("half") or "").lower()
    unit = "half" if half else "plain" if 0 < hour <= 12 and named["hour"][0] != "0" else ""
    hour = hour % 12 + 12 * half.startswith("p") if half else hour
    return Measure("clock", unit, float(hour * 60 + int(named.get("minute") or 0)))


def _read_spoken(match: re.Match[str]) -> Measure | None:
    """`half past eight`, `7 in the morning`, `8 o'clock`."""
    named = match.groupdict()
    hour, half = number_of(match["number"]), (named.get("half") or "").split()
    if hour > 24:
        return None
    if half and half[-1] != "morning" and hour < 12:
        hour += 12
    away = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}.get((named.get("past") or "").lower(), 0)
    return Measure("clock", "half" if half else "spoken", hour * 60 + (-away if named.get("side") == "to" else away))


def _read_amount(match: re.Match[str]) -> Measure:
    spelling = match["unit"].lower()
    unit, factor = UNITS["min" if spelling == "m" and _LASTING.search(match.string) else spelling]
    return Measure("amount", unit, _scaled(match) * factor, _bound(match), spelling in IMPERIAL)


def _read_money(match: re.Match[str]) -> Measure:
    sign = match["sign"].lower()
    if sign in ("pound", "pounds") and _WEIGHED.search(match.string):
        return Measure("amount", "grams", _scaled(match) * 453.592, _bound(match), is_imperial=True)
    return Measure("amount", CURRENCIES[sign], _scaled(match), _bound(match))


def _read_temperature(match: re.Match[str]) -> Measure | None:
    if match["plain"] and not _WARMTH.search(match.string):
        return None
    degrees = float(match["number"])
    is_fahrenheit = (match["scale"] or match["plain"])[0] in "Ff"
    celsius = (degrees - 32) / 1.8 if is_fahrenheit else degrees
    return Measure("amount", "celsius", round(celsius, 2), _bound(match), is_fahrenheit)


def _read_times(match: re.Match[str]) -> Measure:
    """`Twice a day`; once a day is daily."""
    word, period = (
        match["number"].lower().removesuffix("x").removesuffix("times").strip(),
        match["unit"] or match["word"],
    )
    times = {"once": 1.0, "twice": 2.0, "thrice": 3.0}.get(word) or number_of(word)
    return (
        Measure("amount", f"times a {_period(period)}", times) if times > 1 else Measure("period", "", _period(period))
    )


def _read_quarter(match: re.Match[str]) -> Measure:
    return Measure("code", "quarter", match["number"] or str(_ordinal(match["word"])))


def _read_score(match: re.Match[str]) -> Measure | None:
    if not _GAME.search(match.string):
        return None
    return Measure("code", "score", re.sub(r"\s|:", lambda found: "-" if found[0] == ":" else "", match["text"]))


def _read_blood(match: re.Match[str]) -> Measure | None:
    if "blood" not in match.string.lower():
        return None
    return Measure("code", "blood", f"{match['group']}{'+' if match['sign'][0] in '+pP' else '-'}")


def _ordinal(word: str) -> int:
    return int(word[:-2]) if word[0].isdigit() else ORDINAL_NUMBERS[word.lower()]


def _read_ordinal(match: re.Match[str]) -> Measure:
    return Measure("ordinal", "", float(match["number"] or ORDINAL_NUMBERS[match["word"].lower()]))


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
    "money": _read_money,
    "old": lambda match: Measure("number", "", number_of(match["number"])),
    "temperature": _read_temperature,
    "amount": _read_amount,
    "code": lambda match: Measure("code", "", match["text"].lower()),
    "version": lambda match: Measure("version", "", match["text"].lower().lstrip("v")),
    "period": lambda match: Measure("period", "", _period(match.groupdict().get("unit") or match["word"])),
    "spoken": _read_spoken,
    "times": _read_times,
    "quarter": _read_quarter,
    "blood": _read_blood,
    "score": _read_score,
    "weekday": lambda match: Measure("weekday", "", match["day"].lower()[:3]),
    "ordinal": _read_ordinal,
    "number": _read_number,
}
