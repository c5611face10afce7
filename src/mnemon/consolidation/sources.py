"""What is consolidated: texts with who said them and when, and the facts that they state."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mnemon.words import analyse


@dataclass(frozen=True, slots=True)
class Source:
    """A turn of a conversation or a memory: its text, who said it, and when."""

    id: str
    text: str
    author: str | None = None
    at: datetime | None = None

    @property
    def heading(self) -> str:
        """When and by whom, on one line: `2024-05-03 alice: `."""
        told = [f"{self.at:%Y-%m-%d}"] if self.at else []
        told += [" ".join(self.author.split())] if self.author else []
        return f"{' '.join(told)}: " if told else ""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a source states. It is data: what becomes of it is for the caller to decide.

    `source` is the id of the source. `corrects` says that the speaker took something back with it.
    """

    subject: str
    attribute: str
    value: str
    source: str
    corrects: bool = False


def described(source: Source) -> dict[str, Any]:
    """A source as a language model is shown it, without its id."""
    told: Mapping[str, Any] = {
        "who": source.author,
        "when": source.at.isoformat(timespec="minutes") if source.at else None,
        "text": source.text,
    }
    return {name: value for name, value in told.items() if value}


def is_supported(text: str, sources: Sequence[str]) -> bool:
    """Whether every word of a text, but for stop words, is in one of the sources, and it denies nothing of its own.

    A text without a word is not supported.
    """
    asked = analyse(text)
    known = {word for source in sources for word in analyse(source)}
    denies = is_denial(text) and not any(map(is_denial, sources))
    return bool(asked) and known.issuperset(asked) and not denies


def is_denial(text: str) -> bool:
    """Whether the text says that something is not so."""
    return bool(_DENIAL.search(text))


def is_denied(value: str, source: str) -> bool:
    """Whether the source says, right before the value, that it is not so."""
    said = re.escape(value.strip())
    return bool(re.search(rf"{_DENIAL.pattern}(?:\W+\w+){{0,3}}?\W+{said}", source, re.IGNORECASE))


_DENIAL = re.compile(r"(?:\b(?:not|never|nor|neither|without|no longer|no)\b|n['\u2019]t\b)", re.IGNORECASE)
