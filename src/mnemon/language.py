"""A language model whose answers can be relied on to have the form that was asked for: checked, counted, left alone
while it keeps failing.
"""

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from mnemon.breaker import Breaker
from mnemon.clock import Clock
from mnemon.errors import InvalidAnswer, LanguageModelUnavailable, StoreUnavailable
from mnemon.model import Usage
from mnemon.ports import Completion, LanguageModel, Message
from mnemon.schemas import flaw
from mnemon.settings import Settings
from mnemon.tokens import EstimatedTokens

_LOG = logging.getLogger("mnemon.language")
_MILLION = 1_000_000
_SHOWN = 4000  # characters of a wrong answer that the model is shown again
_SPARE = 64  # tokens that the format of a chat takes
_THOUGHTS = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_REPAIR = "That cannot be used: {flaw}. Answer again, with one complete JSON object of the schema and nothing else."


class _Attempt(NamedTuple):
    """What a model wrote; `value` is None if that has a flaw."""

    value: dict[str, Any] | None
    flaw: str
    text: str


class CheckedModel:
    """Asks a language model for JSON of a schema. Its methods may block, and every thread may use it.

    An answer that is not of the schema is asked for once more, with what is wrong with it; then it is `InvalidAnswer`.
    A model that failed three times in a row is not asked for a while. What anybody used is in `usage`.
    """

    def __init__(self, model: LanguageModel, clock: Clock, settings: Settings) -> None:
        self._model = model
        self._context = settings.language_model_context
        self._price = settings.language_model_price
        self._breaker = Breaker(clock)
        self._lock = threading.Lock()
        self._whole: CheckedModel | None = None
        self._usage = self._nothing

    @property
    def name(self) -> str:
        """Which model it is."""
        return self._model.name

    @property
    def usage(self) -> Usage:
        """What all calls took since this was made."""
        return self._usage

    def apart(self) -> "CheckedModel":
        """The same model for one piece of work, whose usage is counted by itself too."""
        part = copy(self)
        part._whole, part._usage = self, self._nothing
        return part

    @property
    def context(self) -> int:
        """How many tokens a question and its answer may be together."""
        return self._context

    def room(self, system: str, max_tokens: int) -> int:
        """How many tokens a text may have beside instructions and an answer of so many."""
        return self._context - EstimatedTokens().count(system) - max_tokens - _SPARE

    def ask(self, system: str, text: str, schema: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
        """What the model answers to a text under the instructions `system`: a JSON object of the schema.

        `InvalidAnswer` if it does not keep to the schema, `LanguageModelUnavailable` if it cannot be asked now or
        the text is too long for it.
        """
        if EstimatedTokens().count(text) > self.room(system, max_tokens):
            raise LanguageModelUnavailable(
                f"the text is too long for language_model_context = {self._context} tokens beside the instructions"
            )
        if not self._breaker.allows():
            raise LanguageModelUnavailable(
                f"the language model {self.name} failed {self._breaker.failures} times in a row and is left alone "
                "for a while"
            )
        try:
            value = self._ask(system, text, schema, max_tokens)
        except LanguageModelUnavailable as error:
            if self._breaker.failed():
                _LOG.warning("the language model %s cannot be used: %s", self.name, error)
            raise
        if self._breaker.succeeded():
            _LOG.warning("the language model %s can be used again", self.name)
        return value

    def close(self) -> None:
        """Let go of the model; idempotent."""
        self._model.close()

    def _ask(self, system: str, text: str, schema: Mapping[str, Any], max_tokens: int) -> dict[str, Any]:
        messages = [Message("system", system), Message("user", text)]
        first = self._try(messages, schema, max_tokens)
        if first.value is not None:
            return first.value
        messages += [Message("assistant", first.text[:_SHOWN]), Message("user", _REPAIR.format(flaw=first.flaw))]
        second = self._try(messages, schema, 2 * max_tokens)  # it may have been cut off
        if second.value is None:
            raise InvalidAnswer(f"the language model {self.name} answered what was not asked for, twice: {second.flaw}")
        return second.value

    def _try(self, messages: Sequence[Message], schema: Mapping[str, Any], max_tokens: int) -> "_Attempt":
        begun = time.monotonic()
        try:
            completion = _mapped(lambda: self._model.complete(messages, schema, max_tokens))
        except LanguageModelUnavailable:
            self._count(Usage(calls=1, failures=1, seconds=time.monotonic() - begun))
            raise
        value, wrong = _read(completion.text, schema)
        asked, written = completion.prompt_tokens, completion.completion_tokens
        cost, seconds = self._cost(asked, written), time.monotonic() - begun
        self._count(Usage(1, asked, written, cost, int(value is None), seconds))
        return _Attempt(value, wrong, completion.text)

    def _cost(self, asked: int, written: int) -> float | None:
        if not self._price:
            return None
        of_question, of_answer = self._price
        return (asked * of_question + written * of_answer) / _MILLION

    @property
    def _nothing(self) -> Usage:
        return Usage(cost=0.0 if self._price else None)

    def _count(self, used: Usage) -> None:
        with self._lock:
            self._usage = self._usage.plus(used)
        if self._whole is not None:
            self._whole._count(used)


def _mapped(work: Callable[[], Completion]) -> Completion:
    """What a model of the caller's own raises is named as those that come with Mnemon name it."""
    try:
        return work()
    except LanguageModelUnavailable:
        raise
    except StoreUnavailable as error:
        raise LanguageModelUnavailable(str(error)) from error


def _read(text: str, schema: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The JSON object in a text, if it is of the schema; else what is wrong with it.

    Around the object there may be thoughts, a fence or some words, as models write them that cannot be held to a form.
    """
    thoughts = _THOUGHTS.match(text)
    start = text.find("{", thoughts.end() if thoughts else 0)
    if start < 0:
        return None, "it has no JSON object"
    try:
        value = json.JSONDecoder(parse_constant=_refuse).raw_decode(text, start)[0]
    except (ValueError, RecursionError) as error:
        return None, f"it is no JSON ({error})"
    wrong = flaw(value, schema)
    return (None, wrong) if wrong else (value, "")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
