"""Files of things to remember: one memory a line, plain texts or JSON objects."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, cast

import orjson

from mnemon.cli.request import moment_of
from mnemon.errors import InvalidInput
from mnemon.memories.drafts import draft_of
from mnemon.model import MemoryDraft

AT_ONCE = 200
"""How many lines are remembered together, all or none of them."""

Form = Literal["json", "text", "either"]


class Note(NamedTuple):
    """A line of a file, as what is to be remembered; `end` is where the next line begins, in bytes."""

    draft: MemoryDraft
    line: int
    end: int


def form_of(path: str) -> Form:
    """How the lines are written: by the file's name, and otherwise by their first character."""
    forms: dict[str, Form] = {".jsonl": "json", ".ndjson": "json", ".txt": "text"}
    return forms.get(Path(path).suffix.lower(), "either")


def batches(file: IO[bytes], form: Form, usual: Mapping[str, Any]) -> Iterator[list[Note]]:
    """What is in a file, some lines at a time; `usual` has the arguments for lines that say nothing of them."""
    notes = _notes(file, form, usual)
    while batch := list(islice(notes, AT_ONCE)):
        yield batch


def _notes(file: IO[bytes], form: Form, usual: Mapping[str, Any]) -> Iterator[Note]:
    end = 0
    for number, line in enumerate(file, start=1):
        end += len(line)
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            if text:
                yield Note(draft_of({**usual, **_arguments(text, form)}, None), number, end)
        except (UnicodeDecodeError, InvalidInput) as error:
            raise InvalidInput(f"line {number}: {error}") from None


def _arguments(text: str, form: Form) -> dict[str, Any]:
    if form == "text" or (form == "either" and not text.startswith("{")):
        return {"value": text}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"not JSON, {error}: {text:.60}") from None
    if not isinstance(found, dict):
        return {"value": found}
    arguments = cast("dict[str, Any]", found)
    if isinstance(arguments.get("occurred_at"), str):
        arguments["occurred_at"] = moment_of(arguments["occurred_at"])
    return arguments
