"""A language model for tests, which answers what it is told and needs no model."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mnemon.errors import LanguageModelUnavailable
from mnemon.ports import Completion, Message
from mnemon.tokens import EstimatedTokens


class FakeLanguageModel:
    """Answers with what it is given, in turn: a value as JSON, a text as it is, an exception by raising it.

    When it has no answer left it says the least that the schema allows. `asked` are the messages that it got.
    """

    def __init__(self, *answers: Mapping[str, Any] | str | Exception, name: str = "fake") -> None:
        self.name = name
        self.answers = list(answers)
        self.asked: list[Sequence[Message]] = []
        self.schemas: list[Mapping[str, Any]] = []
        self.is_closed = False

    def fail(self, *, times: int = 1) -> None:
        """Be down at the next calls."""
        self.answers[:0] = [LanguageModelUnavailable("told to fail")] * times

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any], max_tokens: int) -> Completion:
        self.asked.append(list(messages))
        self.schemas.append(schema)
        answer = self.answers.pop(0) if self.answers else _least(schema)
        if isinstance(answer, Exception):
            raise answer
        text = answer if isinstance(answer, str) else json.dumps(answer)
        count = EstimatedTokens().count
        return Completion(text, sum(count(message.content) for message in messages), count(text))

    def close(self) -> None:
        self.is_closed = True


def _least(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][-1]
    match schema["type"]:
        case "object":
            return {name: _least(schema["properties"][name]) for name in schema.get("required", ())}
        case "array":
            return []
        case "string":
            return "x" * schema.get("minLength", 0)
        case "boolean":
            return False
        case _:
            return 0
