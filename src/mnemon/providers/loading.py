"""Which embedder or language model a setting names. Each technology is imported only when it is asked for."""

from collections.abc import Generator
from contextlib import contextmanager

from mnemon.errors import InvalidSettings
from mnemon.ports import Embedder, LanguageModel
from mnemon.providers.specifications import Specification
from mnemon.settings import Settings

_INSTALL = {
    "static": "pip install wordllama",
    "onnx": "pip install 'mnemon[onnx]'",
    "sentence_transformers": "pip install sentence-transformers",
    "ollama": "pip install 'mnemon[remote]'",
    "openai": "pip install 'mnemon[remote]'",
}
_CHATS = {"openai": "gpt-4o-mini", "ollama": "llama3.2"}  # each with an example


def load(specification: str, settings: Settings) -> Embedder:
    """The embedder that a setting or a vector space names.

    A model on this machine is loaded now, which may take seconds; a remote one is asked only when it
    is needed. `InvalidSettings` if there is no such embedder or something has to be installed for it,
    `EmbedderUnavailable` if its weights cannot be had at present.
    """
    parsed = Specification.parse(specification)
    with _installed(parsed):
        return _load(parsed, settings)


def load_language_model(specification: str, settings: Settings) -> LanguageModel:
    """The language model that a setting names; it is asked only when it is needed.

    `InvalidSettings` if there is no such model or something has to be installed for it.
    """
    parsed = check_language_model(specification)
    with _installed(parsed):
        from mnemon.providers.language import OllamaChat, OpenaiChat  # noqa: PLC0415

        return OpenaiChat(parsed, settings) if parsed.provider == "openai" else OllamaChat(parsed, settings)


def check_language_model(specification: str) -> Specification:
    """What a setting says; `InvalidSettings` if there can be no such language model."""
    parsed = Specification.parse(specification, "language model")
    if parsed.provider not in _CHATS:
        raise InvalidSettings(f"there is no language model {parsed.text!r}; use openai:NAME or ollama:NAME")
    parsed.check_options("url")
    parsed.require_name(f"{parsed.provider}:{_CHATS[parsed.provider]}")
    return parsed


def _load(parsed: Specification, settings: Settings) -> Embedder:
    match parsed.provider:
        case "static" if not parsed.name:
            from mnemon.providers.static import StaticEmbedder  # noqa: PLC0415

            return StaticEmbedder(parsed)
        case "onnx":
            from mnemon.providers.onnx import OnnxEmbedder  # noqa: PLC0415

            return OnnxEmbedder(parsed)
        case "sentence_transformers":
            from mnemon.providers.sentence_transformers import SentenceTransformersEmbedder  # noqa: PLC0415

            return SentenceTransformersEmbedder(parsed)
        case "ollama":
            from mnemon.providers.ollama import OllamaEmbedder  # noqa: PLC0415

            return OllamaEmbedder(parsed, settings)
        case "openai":
            from mnemon.providers.openai import OpenaiEmbedder  # noqa: PLC0415

            return OpenaiEmbedder(parsed, settings)
        case "given":
            from mnemon.providers.given import GivenVectors  # noqa: PLC0415

            return GivenVectors(parsed)
        case "custom" if not parsed.name:
            raise InvalidSettings("the vectors were made by an embedder of the caller's own: pass it to `open` again")
        case _:
            raise InvalidSettings(
                f"there is no embedder {parsed.text!r}; use static, onnx, onnx:/folder, sentence_transformers:NAME, "
                "ollama:NAME, openai:NAME, given:NAME:DIMENSION or none"
            )


@contextmanager
def _installed(parsed: Specification) -> Generator[None]:
    """Says what to install when a library is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "mnemon":
            raise
        remedy = _INSTALL.get(parsed.provider, f"pip install {error.name}")
        raise InvalidSettings(f"{parsed} needs {error.name}: {remedy}") from error
