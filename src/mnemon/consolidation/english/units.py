"""The names of numbers, days, months, units and currencies, and what they stand for."""

from itertools import count

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
MONTH_NUMBERS = {name: i for i, month in enumerate(MONTHS, 1) for name in (month, month[:3])} | {"sept": 9}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_WORDS = {word: i for i, word in enumerate(ONES)} | dict(zip(TENS, count(20, 10), strict=False))
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
             "twelfth")  # fmt: skip
ORDINAL_NUMBERS = {word: i for i, word in enumerate(ORDINALS, 1)}
SCALES = {
    "hundred": 100, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9, "b": 1e9,
    "dozen": 12,
}  # fmt: skip
PERIODS = {
    "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year", "annual": "year",
    "hourly": "hour", "nightly": "night", "quarterly": "quarter", "biweekly": "fortnight",
}  # fmt: skip
CURRENCIES = {
    spelling: names[0].lower()
    for names in (
        ("USD", "$", "US$", "dollar", "dollars", "buck", "bucks"), ("EUR", "€", "euro", "euros"),
        ("GBP", "£", "pound", "pounds"), ("JPY", "¥", "yen"), ("CHF",), ("NOK",), ("SEK",), ("DKK",), ("kr",),
        ("INR", "₹", "rupees"), ("cent", "cents"), ("CAD",), ("AUD",),
    )
    for spelling in map(str.lower, names)
}  # fmt: skip
UNIT_ROWS = (
    "seconds 0.001 ms msec millisecond milliseconds", "seconds 1 s sec secs second seconds",
    "seconds 60 min mins minute minutes", "seconds 3600 h hr hrs hour hours", "seconds 86400 day days",
    "seconds 604800 week weeks wk wks", "months 1 month months", "months 12 year years yr yrs",
    "metres 0.001 mm millimetre millimetres millimeter millimeters", "metres 1 m metre metres meter meters",
    "metres 0.01 cm centimetre centimetres centimeter centimeters", "metres 1609.344 mile miles mi",
    "metres 1000 km kilometre kilometres kilometer kilometers", "metres 0.3048 ft foot feet",
    "metres 0.0254 inch inches", "grams 0.000001 mcg µg", "grams 0.001 mg milligram milligrams", "grams 1 g gram grams",
    "grams 1000 kg kilo kilos kilogram kilograms", "grams 1000000 t ton tons tonne tonnes", "grams 453.592 lb lbs",
    "grams 28.3495 oz ounce ounces", "litres 3.785412 gallon gallons", "squaremetres 4046.856 acre acres",
    "squaremetres 10000 hectare hectares ha", "squaremetres 0.09290304 sqft sq.ft",
    "litres 0.001 ml millilitre millilitres milliliter milliliters", "litres 0.01 cl",
    "litres 0.1 dl", "litres 1 l litre litres liter liters", "bytes 1 byte bytes", "bytes 1e3 kb kilobyte kilobytes",
    "bytes 1e6 mb megabyte megabytes", "bytes 1e9 gb gigabyte gigabytes", "bytes 1e12 tb terabyte terabytes",
    "bytes 1024 kib", "bytes 1048576 mib", "bytes 1073741824 gib", "bits 1e6 mbps mbit", "bits 1e9 gbps gbit",
    "hertz 1 hz", "hertz 1e3 khz", "hertz 1e6 mhz", "hertz 1e9 ghz", "beats 1 bpm", "turns 1 rpm",
    "watts 1 w watt watts", "watts 1000 kw kilowatt kilowatts", "volts 1 v volt volts", "watthours 1000 kwh",
    "percent 1 % percent pct", "pixels 1 px pixel pixels", "kmh 1 km/h kmh kph", "kmh 1.609344 mph",
    "calories 1 kcal calories",
    "squaremetres 1 m² sqm",
)  # fmt: skip
UNITS = {
    spelling: (unit, float(factor)) for unit, factor, *spellings in map(str.split, UNIT_ROWS) for spelling in spellings
}


IMPERIAL = frozenset((
    "mile", "miles", "mi", "ft", "foot", "feet", "inch", "inches", "lb", "lbs", "pound", "pounds", "oz", "ounce",
    "ounces", "mph", "gallon", "gallons", "acre", "acres",
))  # fmt: skip
"""Units from which values are seldom converted to the last digit."""
