"""Which of two memories is to be kept, or what both become, as a language model sees it; else by their dates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mnemon.consolidation.prompts import as_data, load_prompt
from mnemon.consolidation.sources import Source, described, is_supported
from mnemon.errors import LanguageModelUnavailable
from mnemon.language import CheckedModel, Usage
from mnemon.tokens import EstimatedTokens

Decision = Literal["keep_first", "keep_second", "merge", "both"]

_TOKENS_FOR_REASON = 400  # far more than it takes; an answer that is cut off is none
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Merging:
    """What is to become of two memories.

    `text` is what remains: the text of the one that is kept, to the letter, or the merged text; None for `both`. If
    there was no model, or what it answered cannot be used, the method is `latest_wins` and `fallback` says why.
    """

    decision: Decision
    text: str | None
    reason: str
    method: Literal["model", "latest_wins"]
    model: str | None = None
    prompt_version: str | None = None
    usage: Usage = field(default_factory=Usage)
    fallback: str | None = None


def merge(first: Source, second: Source, model: CheckedModel | None) -> Merging:
    """Decide about two memories that may say the same or contradict each other. May block with a model.

    A merged text has to be in the words of the two. Without a usable answer the later one is kept; if it is
    not known which that is, both are.
    """
    if model is None:
        return _by_date(first, second, "no language model is configured")
    model, prompt = model.apart(), load_prompt("merge")
    question = as_data({"first": described(first), "second": described(second)})
    most = len(first.text) + len(second.text) + 1
    tokens = 2 * EstimatedTokens().count(f"{first.text} {second.text}") + _TOKENS_FOR_REASON
    try:
        value = model.ask(prompt.text, question, _schema(most), tokens)
    except LanguageModelUnavailable as error:
        return _by_date(first, second, str(error), model.usage)
    decision: Decision = value["decision"]
    text = value["text"].strip()
    if decision == "merge" and not is_supported(text, [first.text, second.text]):
        reason = "the merged text of the language model is not in the words of the two"
        return _by_date(first, second, reason, model.usage)
    kept = {"keep_first": first.text, "keep_second": second.text, "merge": text, "both": None}[decision]
    return Merging(decision, kept, value["reason"].strip(), "model", model.name, prompt.version, model.usage)


def _schema(longest: int) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": ["keep_first", "keep_second", "merge", "both"]},
            "text": {"type": "string", "maxLength": longest},
            "reason": {"type": "string", "maxLength": _LONGEST_REASON},
        },
        "required": ["decision", "text", "reason"],
        "additionalProperties": False,
    }


def _by_date(first: Source, second: Source, why: str, usage: Usage | None = None) -> Merging:
    told = Usage() if usage is None else usage
    if first.at is None or second.at is None or first.at == second.at:
        reason = "it is not known which is the later one"
        return Merging("both", None, reason, "latest_wins", usage=told, fallback=why)
    decision: Decision = "keep_first" if first.at > second.at else "keep_second"
    kept = first.text if decision == "keep_first" else second.text
    return Merging(decision, kept, "it is the later one", "latest_wins", usage=told, fallback=why)
