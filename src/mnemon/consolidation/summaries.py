"""Summaries of what was said, and the facts in it: by a language model if there is one, and else by extraction.

What a model answers is data of a schema and nothing more. Its facts have to cite a source that it was given, and to
be in the words of that source; others are dropped and counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mnemon.consolidation.extracts import extract
from mnemon.consolidation.firsthand import stated_facts
from mnemon.consolidation.prompts import Prompt, as_data, load_prompt
from mnemon.consolidation.sources import Fact, Source, described, is_denied, is_supported
from mnemon.errors import InvalidInput, LanguageModelUnavailable
from mnemon.language import CheckedModel, Usage
from mnemon.tokens import EstimatedTokens, TokenCounter, counter

Method = Literal["extractive", "model"]

_MOST_FACTS = 20  # in one answer; two for each source and two more, if these are fewer
_TOKENS_PER_FACT = 80
_FOR_FACTS = 4  # facts may take this part of what a model can read and write at once
_CHARS_PER_TOKEN = 8  # of the budget; a longer summary is none
_TOKENS_PER_WORD = 1.4
_FRAME = 60  # tokens for each source: its label, author and date
_FACT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "subject": {"type": "string", "minLength": 1, "maxLength": 60},
        "attribute": {"type": "string", "minLength": 1, "maxLength": 60},
        "value": {"type": "string", "minLength": 1, "maxLength": 120},
        "source": {"type": "string", "maxLength": 20},
    },
    "required": ["subject", "attribute", "value", "source"],
    "additionalProperties": False,
}


def _schema(budget: int, most_facts: int) -> Mapping[str, Any]:
    """What an answer looks like. Bounds keep a small model from writing without end."""
    return {
        "type": "object",
        "properties": {
            "summary": {"type": "string", "minLength": 1, "maxLength": _CHARS_PER_TOKEN * budget + 80},
            "facts": {"type": "array", "maxItems": most_facts, "items": _FACT},
        },
        "required": ["summary", "facts"],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary, and how it came about.

    `sources` are the ids of what it rests on. Those of a model rest on all that it was shown. `dropped` counts the
    facts of a model that no source supports. If a model was to make it and could not, the method is
    `extractive` and `fallback` says why.
    """

    text: str
    sources: tuple[str, ...]
    facts: tuple[Fact, ...]
    method: Method
    model: str | None = None
    prompt_version: str | None = None
    usage: Usage = field(default_factory=Usage)
    dropped: int = 0
    fallback: str | None = None


def summarise(
    sources: Sequence[Source], budget: int, model: CheckedModel | None = None, tokens: TokenCounter | None = None
) -> Summary:
    """What the sources say, in at most `budget` tokens, and the facts that they state. May block with a model.

    The sources are in the order in which they were said, and their ids are different. Facts that people state of
    themselves in plain words are found without a model too.
    """
    if budget < 1 or len({source.id for source in sources}) != len(sources):
        raise InvalidInput("a summary needs a budget of at least 1 token, and sources with ids of their own")
    tokens = tokens or counter()
    told = [source for source in sources if source.text.strip()]
    facts = tuple(_once(stated_facts(told)))
    reason = None
    model = model.apart() if model is not None else None
    if model is not None and told:
        try:
            return _Reading(model, tokens, budget).summarise(told, facts)
        except LanguageModelUnavailable as error:
            reason = str(error)
    text, used = extract(told, budget, tokens)
    usage = model.usage if model is not None else Usage()
    return Summary(text, used, facts, "extractive", usage=usage, fallback=reason)


class _Reading:
    """One summary by a model: in parts, if the sources are too long for it."""

    def __init__(self, model: CheckedModel, tokens: TokenCounter, budget: int) -> None:
        self._model = model
        self._tokens = tokens
        self._budget = budget
        self._prompt: Prompt = load_prompt("summarise")
        self._most_facts = min(_MOST_FACTS, model.context // (_FOR_FACTS * _TOKENS_PER_FACT))
        self._room = model.room(self._prompt.text, _answer_tokens(budget, self._most_facts))
        if self._room < 2 * _FRAME:
            raise LanguageModelUnavailable(
                f"a summary of {budget} tokens leaves the language model no room to read: raise language_model_context"
            )

    def summarise(self, sources: Sequence[Source], stated: Sequence[Fact]) -> Summary:
        parts = list(self._parts(sources))
        budget = max(1, self._budget // len(parts) - 1)  # a line's end goes between two
        texts: list[str] = []
        facts: list[Fact] = []
        dropped = 0
        for part in parts:
            most_facts = min(self._most_facts, 2 * len(part) + 2)
            value = self._model.ask(
                self._prompt.text,
                self._question(part, budget),
                _schema(budget, most_facts),
                _answer_tokens(budget, most_facts),
            )
            supported = list(_supported(value["facts"], part))
            texts.append(self._tokens.cut(_cleaned(value["summary"]), budget))
            facts += supported
            dropped += len(value["facts"]) - len(supported)
        return Summary(
            self._tokens.cut("\n".join(texts), self._budget),
            tuple(source.id for source in sources),
            tuple(_once([*stated, *facts])),
            "model",
            self._model.name,
            self._prompt.version,
            self._model.usage,
            dropped,
        )

    def _parts(self, sources: Sequence[Source]) -> Iterator[list[Source]]:
        """The sources, in parts that the model can read at once; one that is too long alone is cut."""
        count = EstimatedTokens()
        part: list[Source] = []
        left = self._room
        for source in sources:
            # As data a text is longer than by itself: each of its signs may have to be escaped.
            cost = count.count(as_data(described(source))) + _FRAME
            if cost > self._room:
                text = count.cut(source.text, (self._room - _FRAME) // 2)
                source, cost = Source(source.id, text, source.author, source.at), self._room
            if part and cost > left:
                yield part
                part, left = [], self._room
            part.append(source)
            left -= cost
        yield part

    def _question(self, part: Sequence[Source], budget: int) -> str:
        """The sources under labels of their own: a model need not know what they are called here."""
        record = [{"id": label, **described(source)} for label, source in _labelled(part).items()]
        return as_data({"words": max(5, int(budget / _TOKENS_PER_WORD)), "record": record})


def _answer_tokens(budget: int, most_facts: int) -> int:
    """As many as an answer can need; a model that comes to an end by itself needs fewer."""
    return 2 * budget + 100 + _TOKENS_PER_FACT * most_facts


def _labelled(sources: Sequence[Source]) -> dict[str, Source]:
    return {f"s{number}": source for number, source in enumerate(sources, start=1)}


def _supported(found: Sequence[Mapping[str, str]], sources: Sequence[Source]) -> Iterator[Fact]:
    """The facts that cite a source they were given and are in its words, about somebody whom a source names."""
    labelled = _labelled(sources)
    named = [f"{source.author or ''} {source.text}" for source in sources]
    for each in found:
        source = labelled.get(each["source"])
        value = _cleaned(each["value"])
        if source is None or not is_supported(value, [source.text]) or is_denied(value, source.text):
            continue
        if is_supported(each["subject"], named):
            yield Fact(_cleaned(each["subject"]), _cleaned(each["attribute"]), value, source.id)


def _once(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Each fact once; what was found in two ways is known by who, what and where."""
    seen: set[tuple[str, ...]] = set()
    for fact in facts:
        known = (fact.subject.casefold(), fact.value.casefold(), fact.source)
        if known not in seen:
            seen.add(known)
            yield fact


def _cleaned(text: str) -> str:
    """A model's text without what cannot be seen or cannot be stored."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text).strip()
