"""Models: what embeds, answers, ranks again and expands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from mnemon.model import EmbeddingModel, Space
from mnemon.ports.vectors import Vector


class Embedder(Protocol):
    """Turns texts into vectors. Its methods may block: Mnemon runs what may take long on a thread."""

    @property
    def model(self) -> EmbeddingModel:
        """Which model it is; vectors can be compared only with those of the same model and version.

        The dimension of a remote model is 0 until its first answer, if it was not declared.
        """
        ...

    @property
    def is_quick(self) -> bool:
        """Whether a short text takes well under a millisecond, so that a thread or a cache is not worth it."""
        ...

    def embed(self, texts: Sequence[str]) -> Vector:
        """A matrix with a row for each text, of any length. `StoreUnavailable` if it cannot be done now."""
        ...

    def close(self) -> None:
        """Let go of everything; idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with a language model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model wrote, and how many tokens the question and the answer are."""

    text: str
    prompt_tokens: int
    completion_tokens: int


class LanguageModel(Protocol):
    """Answers questions in JSON. Its methods may block: Mnemon runs them on a thread, several at once.

    Whoever asks checks the answer (see `language.CheckedModel`), so that a model need only try.
    """

    @property
    def name(self) -> str:
        """Which model it is, as what was made with it says."""
        ...

    def complete(self, messages: Sequence[Message], schema: Mapping[str, Any], max_tokens: int) -> Completion:
        """The model's next message: one JSON object of the JSON schema, if the model can be made to write that.

        At most `max_tokens` long, and cut off there. `StoreUnavailable` if it cannot be had now.
        """
        ...

    def close(self) -> None:
        """Let go of everything; idempotent."""
        ...


class EmbeddingCache(Protocol):
    """Keeps what was embedded, by the digest of its content, for one space."""

    async def get(self, space: Space, digests: Sequence[str]) -> dict[str, Vector]:
        """The vectors that are known."""
        ...

    async def put(self, space: Space, vectors: Mapping[str, Vector]) -> None:
        """Remember vectors by digest."""
        ...

    async def drop(self, space: Space, digests: Sequence[str]) -> None:
        """Forget vectors for good; those that are not there do not matter. Raises if that cannot be done now."""
        ...


class Reranker(Protocol):
    """Judges texts by a question, one by one: slow, and better than any index. May block."""

    def judge(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the question; only the order and distances matter."""
        ...


class Expander(Protocol):
    """Says the same question in other words, as a language model would. May block."""

    def expand(self, question: str) -> Sequence[str]:
        """Other wordings; none if nothing comes to mind."""
        ...
