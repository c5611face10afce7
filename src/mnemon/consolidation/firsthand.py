"""Facts that people state of themselves, found without a language model: few, and right.

Understood are plain English sentences in the first person, such as `I live in Oslo`, `my sister is called Ann`,
`I'm allergic to nuts`, and corrections such as `actually, I work for Acme now`. Whatever is asked, denied,
supposed, quoted or past is left alone, and so are texts that were written for somebody else or are played.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from mnemon.consolidation.extracts import sentences_of
from mnemon.consolidation.sources import Fact, Source

_LONGEST_TEXT = 4000  # characters; what is longer was pasted
_LONGEST_VALUE = 8  # words

_NOT_PEOPLE = {"assistant", "system", "developer", "tool", "function", "model", "ai"}

# Texts that are about the writing of a text, or about somebody who is not there.
_PLAYED = re.compile(
    r"\b(?:translat\w*|rewrit\w*|rephras\w*|paraphras\w*|proofread\w*|role-?\s?play\w*|pretend\w*|imagin\w*|suppos\w*|"
    r"hypothetical\w*|story|stories|poem|lyrics|song|character|novel|essay|draft|cover letter|for example|e\.g\.|"
    r"grammar|sentence|phrase|quote|placeholder|template|lorem|subject line|dear \w+)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|^\s*>.*$|[\"“«].*?[\"”»]|`[^`]*`", re.DOTALL | re.MULTILINE)
_DOUBTFUL = re.compile(
    r"\?|\b(?:if|unless|whether|would|could|should|might|may be|maybe|perhaps|used to|wish|hope|hoping|not|never|"
    r"no longer|until|when i was|back when|said|says|asked|think|guess|believe|almost|nearly|as if|like i)\b|n['’]t\b",
    re.IGNORECASE,
)
_CORRECTION = r"(?:actually|correction|no|sorry|wait|i mean|i meant|scratch that|update)"
_LEAD = re.compile(
    rf"^(?P<lead>(?:(?:{_CORRECTION}|hi|hello|hey|well|so|yes|yeah|ok|okay|also|and|but|oh|by the way|btw|fyi|"
    r"for the record|just so you know|please (?:note|remember)(?: that)?|note that|remember(?: that)?|thanks|"
    r"thank you|now|currently|nowadays|these days)\b[\s,.:;!–—-]*)*)",
    re.IGNORECASE,
)
_CORRECTING = re.compile(rf"\b{_CORRECTION}\b", re.IGNORECASE)

_I = r"i(?:['’]m| am)"
_I_HAVE = r"i(?:['’]ve| have)?"
_NOW = r"(?:(?:now|currently|just|recently|actually|still|also) )*"
_PERSON = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|son|daughter|brother|sister|mother|father|mom|mum|"
    r"dad|boss|manager|doctor|dentist|therapist|lawyer|dog|cat|pet)"
)

# What a value looks like. It may be a name, something with a number in it, or any few words.
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ]\S*"
_NAME = re.compile(
    rf"(?P<name>(?:[Tt]he )?{_CAPITAL}(?: (?:(?:of|de|la|le|van|von|der|den|del|di|da|&|upon) )?{_CAPITAL}| \d+)*)"
    r"(?: (?:and|with|near|as|in|by|close|right|together|during|from|on)\b.*)?"
)
_NUMBER = re.compile(r"(?=.*\d).+")
_EMAIL = re.compile(r"\S+@\S+\.\w+")
_DIET = re.compile(
    r"(?:an? )?(?:strict )?(?P<name>vegetarian|vegan|pescatarian|flexitarian|omnivore)(?: diet)?", re.IGNORECASE
)
_ANY = re.compile(r".+")


class _Pattern(NamedTuple):
    """A sentence that states an attribute: named here, or in the sentence's group `attribute`."""

    attribute: str
    sentence: re.Pattern[str]
    value: re.Pattern[str]
    end: re.Pattern[str]


def _pattern(attribute: str, sentence: str, value: re.Pattern[str], end: str = "") -> _Pattern:
    stop = re.compile(rf"{_VALUE_END}|{end}" if end else _VALUE_END, re.IGNORECASE)
    return _Pattern(attribute, re.compile(rf"(?:{sentence})(?P<value>.+)", re.IGNORECASE), value, stop)


_VALUE_END = (
    r"[,;:!?()–—]|\.$|\s-\s|\s(?:and (?:i|my|we|it|he|she|they|the|now)|but|because|since|so|which|who|where|while|"
    r"although|though|as of|at the moment|these days|right now|now|nowadays|currently|originally|anymore|"
    r"for (?:about |over |almost )?(?:\d+|an?|two|three|four|five|six|ten|many|some|several|years|months|now|work)|"
    r"with my|instead|again|already|too|as well|last|this|next|in (?:19|20)\d\d)(?=\W|$)"
)
_MOVED = "moved"  # it is the home, if that is what is spoken of: people move to other programs and topics too
_PATTERNS = (
    _pattern("home", rf"i {_NOW}live in |{_I} {_NOW}(?:living|based) in ", _NAME),
    _pattern(_MOVED, rf"{_I_HAVE} {_NOW}(?:moved|relocated) to ", _NAME, r"\sfrom\s"),
    _pattern("name", rf"my name is |my name['’]s |{_I} called ", _NAME),
    _pattern("employer", rf"(?:i {_NOW}work|{_I} {_NOW}working) (?:at|for) |{_I} {_NOW}employed by ", _NAME),
    _pattern("job", rf"(?:i {_NOW}work|{_I} {_NOW}working) as (?:an? |the )?", _ANY, r"\s(?:at|in|for|with)\s"),
    _pattern("allergy", rf"{_I} {_NOW}allergic to |i have an? allergy to ", _ANY),
    _pattern("diet", rf"{_I} {_NOW}(?:on )?|{_I_HAVE} {_NOW}(?:become|became|gone|went|turned) |my diet is ", _DIET),
    _pattern("date of birth", r"i was born on |my (?:birthday|date of birth) is (?:on )?", _NUMBER, r"\s(?:in|at)\s"),
    _pattern("birthplace", r"i was born in ", _NAME, r"\son\s"),
    _pattern("origin", rf"{_I} originally from ", _NAME),
    _pattern("email", r"my e-?mail(?: address)? is ", _EMAIL),
    _pattern("phone", r"my (?:phone|mobile|cell)(?: number)? is ", _NUMBER),
    _pattern("address", r"my (?:home |postal )?address is ", _NUMBER),
    _pattern("", r"my (?P<attribute>height|weight|shoe size|age) is ", _NUMBER),
    _pattern("", rf"my (?P<attribute>{_PERSON})(?:['’]s name is | is called | is named )", _NAME),
    _pattern("", r"my (?:new |current )?(?P<attribute>employer|company|team|school|university|home ?town|nationality|"
                 r"time ?zone|native language|mother tongue|(?:user|nick|first|last|full)\s?name) is (?:now )?", _NAME),
    _pattern("", r"my (?P<attribute>(?:favou?rite|preferred) [a-z]+(?: [a-z]+)?) is ", _ANY),
    _pattern("", r"my (?P<attribute>job title|profession|occupation) is ", _ANY),
)  # fmt: skip
_NO_VALUE = re.compile(
    r"(?:not|that|to|in|on|at|for|of|going|being|getting|really|very|so|too|quite|pretty|just|a bit|a little|because|"
    r"what|how|why|where|when|the same|different|wrong|right|great|good|bad|fine|here|there|this|it|one|some|something|"
    r"someone|somewhere|everything|nothing|myself|them|him|her|you|your|changing|missing|lost|private|secret|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
_DWELLING = re.compile(
    r"\b(?:live|living|home|house|flat|apartment|city|town|address|neighbou?r\w*|rent\w*|landlord|relocated)\b",
    re.IGNORECASE,
)


def stated_facts(sources: Sequence[Source]) -> list[Fact]:
    """What the authors of the sources say of themselves, in order. Who is not named says nothing."""
    facts: list[Fact] = []
    dwellers: set[str] = set()
    for source in sources:
        for fact in _stated_in(source):
            is_home = fact.attribute == "home" or fact.subject in dwellers or bool(_DWELLING.search(source.text))
            if fact.attribute == _MOVED:
                facts += [replace(fact, attribute="home")] if is_home else []
                continue
            facts.append(fact)
            if is_home:
                dwellers.add(fact.subject)
    return facts


def _stated_in(source: Source) -> Iterator[Fact]:
    author = source.author
    if not author or author.casefold() in _NOT_PEOPLE or len(source.text) > _LONGEST_TEXT:
        return
    if _PLAYED.search(source.text):
        return
    for sentence in sentences_of(_QUOTED.sub(" … ", source.text)):
        if "…" not in sentence and not _DOUBTFUL.search(_without_lead(sentence)):
            yield from _read(sentence, author, source.id)


def _without_lead(sentence: str) -> str:
    """The sentence without what only leads up to it, as a no that takes something back."""
    return sentence[_lead(sentence).end() :]


def _lead(sentence: str) -> re.Match[str]:
    found = _LEAD.match(sentence)
    assert found is not None  # it may be empty
    return found


def _read(sentence: str, author: str, source: str) -> Iterator[Fact]:
    corrects = bool(_CORRECTING.search(_lead(sentence)["lead"]))
    for clause in re.split(r"[,;]? (?:and|but) (?=(?:i|my)\b)|; ", _without_lead(sentence), flags=re.IGNORECASE):
        for pattern in _PATTERNS:
            found = pattern.sentence.match(clause)
            value = _value(found["value"], pattern) if found else ""
            if found and value:
                yield Fact(author, pattern.attribute or _spelt(found["attribute"]), value, source, corrects)
                break


def _spelt(name: str) -> str:
    return " ".join(name.lower().replace("favorite", "favourite").split())


def _value(rest: str, pattern: _Pattern) -> str:
    """The beginning of the rest that is the value; empty if it does not look like one."""
    end = pattern.end.search(rest)
    value = (rest[: end.start()] if end else rest).strip().rstrip(".!").strip()
    found = pattern.value.fullmatch(value)
    if found is None or _NO_VALUE.match(value):
        return ""
    value = found.groupdict().get("name") or value
    return value if len(value.split()) <= _LONGEST_VALUE else ""
