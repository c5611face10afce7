"""Language models behind HTTP: OpenAI's chat completions, what speaks the same protocol, and Ollama."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import orjson

from mnemon.errors import LanguageModelUnavailable
from mnemon.ports import Completion, Message
from mnemon.providers.endpoint import Answer, Endpoint
from mnemon.providers.specifications import Specification
from mnemon.schemas import structure
from mnemon.settings import Settings
from mnemon.tokens import EstimatedTokens

_LOG = logging.getLogger("mnemon.language")
_REFUSED = {400, 422, 501}  # perhaps because of a parameter that the endpoint does not know
_HIGHEST = 10**9

Format = Literal["schema", "structure", "json", "text"]
"""What an endpoint can be made to write: JSON of a schema, of one without bounds, any JSON, or only text."""

_LOWER: dict[Format, Format] = {"schema": "structure", "structure": "json", "json": "text"}


class HttpChat(ABC):
    """Asks an endpoint for JSON of a schema. Whatever it answers instead of a message is `LanguageModelUnavailable`.

    An endpoint that does not take the schema is sent one without bounds of lengths; one that does not know schemas is
    asked for JSON, and one that does not know that either for text. The question then has the schema in words. Which of
    them it is, is noticed once and logged.
    """

    def __init__(self, specification: Specification, settings: Settings, url: str, key: str | None = None) -> None:
        specification.check_options("url")
        self._model = specification.require_name(f"{specification.provider}:{self.example}")
        timeout = settings.language_model_timeout
        self._name = f"{specification.provider}:{self._model}"
        self._context = settings.language_model_context
        self._format: Format = "schema"
        self._endpoint = Endpoint(
            specification,
            url,
            self.path,
            timeout,
            key=key,
            patience=2 * timeout,
            unavailable=LanguageModelUnavailable,
        )

    @property
    def name(self) -> str:
        return self._name

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any], max_tokens: int) -> Completion:
        while True:
            asked = self._format
            told = _with_schema(messages, schema) if asked in ("json", "text") else messages
            form = structure(schema) if asked == "structure" else schema
            answer = self._endpoint.ask(self.request(told, form, max_tokens, asked))
            if answer.status == 200:
                return self._read(answer, told)
            if answer.status not in _REFUSED or not self.adapt(answer.text, asked):
                raise LanguageModelUnavailable(self._endpoint.complaint(answer))

    def close(self) -> None:
        self._endpoint.close()

    # -- what differs between protocols

    path: str
    example: str

    @abstractmethod
    def request(
        self, messages: Sequence[Message], schema: Mapping[str, Any], max_tokens: int, asked: Format
    ) -> dict[str, Any]:
        """The question."""

    @abstractmethod
    def response(self, answer: Any) -> tuple[Any, Any, Any]:
        """The text, the tokens of the question and of the answer; may raise what reading JSON raises."""

    @abstractmethod
    def adapt(self, complaint: str, asked: Format) -> bool:
        """Whether the endpoint can be asked otherwise, given what it did not like; it is from now on."""

    def step_down(self, asked: Format) -> bool:
        """Ask for less than what was asked for, if there is less."""
        if asked == "text":
            return False
        if asked != self._format:  # another thread was quicker
            return True
        _LOG.warning(
            "%s at %s does not take the format %r and is asked for %r; its answers are checked all the same",
            self._name, self._endpoint.url, asked, _LOWER[asked],
        )  # fmt: skip
        self._format = _LOWER[asked]
        return True

    # -- reading

    def _read(self, answer: Answer, messages: Sequence[Message]) -> Completion:
        try:
            text, asked, written = self.response(orjson.loads(answer.body))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise LanguageModelUnavailable(
                f"{self._endpoint.url} did not answer with a message: {answer.text[:200]!r}"
            ) from error
        if not isinstance(text, str):
            raise LanguageModelUnavailable(f"{self._endpoint.url} answered with no text: {answer.text[:200]!r}")
        estimate = EstimatedTokens().count
        return Completion(
            text,
            _count(asked) or estimate("\n".join(message.content for message in messages)),
            _count(written) or estimate(text),
        )


class OpenaiChat(HttpChat):
    """Asks `openai:MODEL` at the setting `openai_url`, with `openai_api_key`."""

    path = "/chat/completions"
    example = "gpt-4o-mini"

    def __init__(self, specification: Specification, settings: Settings) -> None:
        super().__init__(specification, settings, settings.openai_url, settings.openai_api_key)
        self._limit = "max_tokens"  # what models that think call max_completion_tokens
        self._has_temperature = True

    def request(
        self, messages: Sequence[Message], schema: Mapping[str, Any], max_tokens: int, asked: Format
    ) -> dict[str, Any]:
        held = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        formats: dict[Format, dict[str, Any]] = {"schema": held, "structure": held, "json": {"type": "json_object"}}
        return {
            "model": self._model,
            "messages": _turns(messages),
            self._limit: max_tokens,
            **({"temperature": 0} if self._has_temperature else {}),
            **({"response_format": formats[asked]} if asked in formats else {}),
        }

    def response(self, answer: Any) -> tuple[Any, Any, Any]:
        message = answer["choices"][0]["message"]
        usage: dict[str, Any] = answer.get("usage") or {}
        return (
            message.get("content") or message.get("refusal"),
            usage.get("prompt_tokens"),
            usage.get("completion_tokens"),
        )

    def adapt(self, complaint: str, asked: Format) -> bool:
        if "max_completion_tokens" in complaint and self._limit == "max_tokens":
            self._limit = "max_completion_tokens"
            return True
        if "temperature" in complaint and self._has_temperature:
            self._has_temperature = False
            return True
        names_format = any(word in complaint for word in ("response_format", "json_object", "schema", "grammar"))
        return names_format and self.step_down(asked)


class OllamaChat(HttpChat):
    """Asks `ollama:MODEL` at the setting `ollama_url`. Ollama is told how long a context it has to keep."""

    path = "/api/chat"
    example = "llama3.2"

    def __init__(self, specification: Specification, settings: Settings) -> None:
        super().__init__(specification, settings, settings.ollama_url)

    def request(
        self, messages: Sequence[Message], schema: Mapping[str, Any], max_tokens: int, asked: Format
    ) -> dict[str, Any]:
        formats: dict[Format, object] = {"schema": schema, "structure": schema, "json": "json"}
        return {
            "model": self._model,
            "messages": _turns(messages),
            "stream": False,
            "options": {"temperature": 0, "num_predict": max_tokens, "num_ctx": self._context},
            **({"format": formats[asked]} if asked in formats else {}),
        }

    def response(self, answer: Any) -> tuple[Any, Any, Any]:
        return answer["message"]["content"], answer.get("prompt_eval_count"), answer.get("eval_count")

    def adapt(self, complaint: str, asked: Format) -> bool:
        return any(word in complaint for word in ("format", "schema", "grammar")) and self.step_down(asked)


def _turns(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _with_schema(messages: Sequence[Message], schema: Mapping[str, Any]) -> list[Message]:
    """The same, told in words which form the answer has to have."""
    first, *rest = messages
    form = orjson.dumps(schema).decode()
    told = f"{first.content}\n\nAnswer with one JSON object of this JSON schema, and nothing else:\n{form}"
    return [Message(first.role, told), *rest]


def _count(told: object) -> int:
    """The number of tokens that the endpoint counted; 0 if it did not tell a number."""
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 < told < _HIGHEST else 0
