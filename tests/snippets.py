"""Runs the Python code blocks of a Markdown document."""

import ast
import asyncio
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
EXCUSE = re.compile(r"\s*<!--\s*not run:(?P<reason>.*)-->\s*")
PYTHON = {"python", "python3", "py", "pycon"}


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; `line` is that of its first line of code, counted from 1."""

    language: str
    code: str
    line: int
    before: str

    @property
    def is_python(self) -> bool:
        return self.language.lower() in PYTHON

    @property
    def is_excused(self) -> bool:
        """True after `<!-- not run: why -->`; an excuse without a reason is none."""
        excuse = EXCUSE.fullmatch(self.before)
        return excuse is not None and bool(excuse["reason"].strip())


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a document, in order; a block that is never closed goes on to the end."""
    lines = iter(enumerate(text.splitlines(), start=1))
    before = ""
    for number, line in lines:
        opening = FENCE.match(line)
        if opening is None:
            before = line if line.strip() else before
            continue
        code: list[str] = []
        for _, inner in lines:
            if inner.strip().startswith(opening["fence"]):
                break
            code.append(inner)
        yield Block(opening["language"], textwrap.dedent("\n".join(code)), number + 1, before)
        before = ""


def run(document: Path) -> int:
    """Run the document's Python from top to bottom in one module and one event loop.

    Returns the number of blocks run. Every block must compile, an excused one too. Errors name the document
    and its line.
    """
    module: dict[str, object] = {"__name__": "__main__"}
    count = 0
    with asyncio.Runner() as runner:
        for block in filter(lambda block: block.is_python, blocks(document.read_text("utf-8"))):
            source = "\n" * (block.line - 1) + block.code
            code = compile(source, document, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if block.is_excused:
                continue
            pending = eval(code, module)
            if inspect.iscoroutine(pending):
                runner.run(pending)
            count += 1
    return count
