"""Values of a context: what is in it, what was dropped, and what is cited."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Citation:
    """The memory that a mark such as `[m1]` stands for, and its place in a conversation or document.

    `source` is the file and the lines or page that it is a chunk of, as `Memory.source` has it.
    """

    mark: str
    namespace: str
    key: str
    version: int
    thread: str | None
    position: int | None
    author: str | None
    occurred_at: datetime | None
    source: str | None = None


Section = Literal["state", "memories", "artifacts", "events"]


@dataclass(frozen=True, slots=True)
class ContextItem:
    """One thing in a context, as its text shows it.

    `name` is the state key, the memory's `namespace/key`, the event's id or the artifact's name. `tokens` is what
    it takes of the budget. A memory has its mark; an event has the chat messages that stand for it.
    """

    section: Section
    name: str
    text: str
    tokens: int
    mark: str | None = None
    is_cut: bool = False
    messages: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """Something that a context has no place for: why, and how many tokens it would have taken."""

    section: Section
    name: str
    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Context:
    """What an agent needs to know for a question, within a budget of tokens.

    `text` is all of it as one text, which is also `str(context)`; `messages()` is the same as chat messages.
    Either is within the budget. `exact` says whether tokens were counted or estimated.
    """

    question: str
    budget: int
    text: str
    system: str
    text_tokens: int
    message_tokens: int
    exact: bool
    items: tuple[ContextItem, ...]
    dropped: tuple[Dropped, ...]
    citations: tuple[Citation, ...]

    @property
    def tokens(self) -> int:
        """How many tokens the larger of both renderings takes."""
        return max(self.text_tokens, self.message_tokens)

    def messages(self) -> list[dict[str, Any]]:
        """A system message with state, memories and artifacts, then the recent events as messages of their own.

        A tool's call and result keep the shape that the provider gave them.
        """
        told = [{"role": "system", "content": self.system}] if self.system else []
        return told + [deepcopy(dict(message)) for item in self.items for message in item.messages]

    def __str__(self) -> str:
        return self.text
