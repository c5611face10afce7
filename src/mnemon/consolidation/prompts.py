"""What a language model is told: instructions from files, and memories as data that cannot pass for instructions.

A prompt's version is the beginning of its file's SHA-256, so that what was made with it can tell.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).with_name("prompts")
_VERSION_LENGTH = 12

# Chat formats mark roles with <|…|>, <s>, [INST] and the like. A server may read these in a message too.
_MARKUP = re.compile(r"[<>]|\[(?=[/A-Za-z])")
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The instructions for one kind of work, which never have a memory's text in them."""

    name: str
    text: str
    version: str


@cache
def load_prompt(name: str) -> Prompt:
    """The prompt in `prompts/<name>.md`."""
    content = (_FOLDER / f"{name}.md").read_bytes()
    return Prompt(name, content.decode().strip(), hashlib.sha256(content).hexdigest()[:_VERSION_LENGTH])


def as_data(value: Mapping[str, Any]) -> str:
    """A value as JSON between two lines with a mark that nobody could know and nothing in it has.

    The JSON is on one line, has no sign that a chat format gives a meaning to, and shows every character that
    could not be seen as an escape.
    """
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    data = _NOT_ASCII.sub(lambda found: _visible(found[0]), _MARKUP.sub(lambda found: _escaped(found[0]), plain))
    mark = secrets.token_hex(8)
    while mark in data:
        mark = secrets.token_hex(8)
    return f"DATA {mark}\n{data}\nEND {mark}"


def _visible(character: str) -> str:
    return character if character.isprintable() else _escaped(character)


def _escaped(character: str) -> str:
    """A character as JSON escapes it."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
