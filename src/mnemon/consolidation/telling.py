"""An episode as sources that can be summarised, and what was found in it as memories. Pure."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from mnemon.consolidation.sources import Fact, Source
from mnemon.consolidation.summaries import Summary
from mnemon.episodes.service import FACTS, SUMMARIES
from mnemon.errors import InvalidInput
from mnemon.model import Episode, EpisodeEntry, MemoryDraft, MemoryType, Placement, Provenance
from mnemon.namespaces import check_label
from mnemon.texts import event_author, event_text, text_of

_USER = ("user", "human")  # what a chat calls the one whom it is held for
_LONGEST_OUTCOME = 1000
_LONGEST_REASON = 500
_SENTENCES = {
    "home": "{subject} lives in {value}.",
    "employer": "{subject} works for {value}.",
    "job": "{subject} works as {value}.",
    "allergy": "{subject} is allergic to {value}.",
    "birthplace": "{subject} was born in {value}.",
    "origin": "{subject} is originally from {value}.",
}
_SENTENCE = "{subject}'s {attribute} is {value}."


def sources_of(episode: Episode) -> list[Source]:
    """What was said, in order: the entries, and the offers of a negotiation after those that came before them."""
    said = [
        Source(str(number), _text(entry), _author(episode, entry), entry.at or episode.started_at)
        for number, entry in enumerate(episode.entries, 1)
    ]
    said += [
        Source(f"offer-{number}", f"Offers {_line(offer.terms)}", offer.by, offer.at or episode.ended_at)
        for number, offer in enumerate(episode.offers, 1)
    ]
    if any(offer.at for offer in episode.offers):
        said.sort(key=lambda source: cast("datetime", source.at))
    return said


def summary_draft(episode: Episode, summary: Summary) -> MemoryDraft:
    """The one memory that says what the episode was about, and how that was found out."""
    how = {
        "method": summary.method, "model": summary.model, "prompt": summary.prompt_version,
        "fallback": summary.fallback and summary.fallback[:_LONGEST_REASON], "dropped_facts": summary.dropped or None,
    }  # fmt: skip
    told: dict[str, Any] = {
        "episode": episode.id, "kind": str(episode.kind), "title": episode.title or None,
        "participants": list(episode.participants) or None, "entries": len(episode.entries),
        "summary": {name: value for name, value in how.items() if value is not None},
    }  # fmt: skip
    thread = None if episode.session_id is None else f"episodes:{episode.session_id}"
    return MemoryDraft(
        _summary_text(episode, summary.text),
        f"{episode.namespace}:{SUMMARIES}",
        f"episode-{episode.id}",
        MemoryType.EPISODIC,
        {name: value for name, value in told.items() if value is not None},
        Provenance(episode.session_id, f"episode-{episode.id}"),
        Placement(thread, None if thread is None else episode.id, episode.ended_at),
    )


def fact_drafts(
    episode: Episode, summary: Summary, sources: Sequence[Source], digest: Callable[[str], str] | None = None
) -> list[MemoryDraft]:
    """A memory for each fact, by key; what was said twice is known since it was last said.

    `digest` is for what is encrypted: its key must not tell what a fact says, nor an author whom it is about.
    """
    said = {source.id: source.at or episode.ended_at for source in sources}
    found: dict[str, MemoryDraft] = {}
    for fact in sorted(summary.facts, key=lambda each: said[each.source]):
        key = fact_key(fact, digest)
        author = None if digest else _label(fact.subject)
        found[key] = _fact_draft(episode, fact, key, said[fact.source], summary, author)
    return [found[key] for key in sorted(found)]


def fact_key(fact: Fact, digest: Callable[[str], str] | None = None) -> str:
    """The same for whatever says the same of the same, so that it is one memory however often it is said."""
    words = "\0".join(" ".join(part.casefold().split()) for part in (fact.subject, fact.attribute, fact.value))
    return f"fact-{(digest or _plain_digest)(words)[:24]}"


def _plain_digest(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()


def _fact_draft(
    episode: Episode, fact: Fact, key: str, at: datetime, summary: Summary, author: str | None
) -> MemoryDraft:
    sentence = _SENTENCES.get(fact.attribute, _SENTENCE)
    told = {
        "episode": episode.id,
        "fact": {"subject": fact.subject, "attribute": fact.attribute, "value": fact.value},
        "method": summary.method,
        **({"corrects": True} if fact.corrects else {}),
    }
    return MemoryDraft(
        sentence.format(subject=fact.subject, attribute=fact.attribute, value=fact.value),
        f"{episode.namespace}:{FACTS}",
        key,
        MemoryType.SEMANTIC,
        told,
        Provenance(episode.session_id, f"episode-{episode.id}", author),
        Placement(occurred_at=at),
    )


def _summary_text(episode: Episode, text: str) -> str:
    parts = [episode.title, text]
    if episode.outcome is not None:
        parts.append(f"Outcome: {_line(episode.outcome)[:_LONGEST_OUTCOME]}")
    return "\n".join(part for part in parts if part) or f"A {episode.kind.replace('_', ' ')} in which nothing was said"


def _text(entry: EpisodeEntry) -> str:
    value = entry.value
    said = event_text(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else None
    return said or ("" if value is None else text_of(entry.value))


def _author(episode: Episode, entry: EpisodeEntry) -> str | None:
    """Who said it: the event's own word before that of whoever wrote it down, and the user by name."""
    value = entry.value
    told = event_author(cast("Mapping[str, Any]", value), None) if isinstance(value, Mapping) else None
    author = told or entry.author
    root, _, rest = episode.namespace.partition(":")
    if author is not None and author.casefold() in _USER and root == "user":
        return rest.partition(":")[0]
    return author


def _line(value: object) -> str:
    return "; ".join(text_of(value).splitlines())


def _label(name: str) -> str | None:
    try:
        return check_label("a name", name)
    except InvalidInput:
        return None
