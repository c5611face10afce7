"""A memory's value, text or JSON, read into clauses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mnemon.consolidation.english.clauses import Clause, read
from mnemon.consolidation.english.lexicon import lexicon
from mnemon.retrieval.duplicates import words_of
from mnemon.values import decode

Scalar = str | int | float | bool | None

_GENERIC = "note|mem|memory|fact|item|entry|event|msg|message|doc|record|turn|row|observation|statement"
_NUMBERED = r"[0-9]+[a-z]?|[a-z]|[0-9a-f]{8,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-hjkmnp-tv-z]{26}"
_OPAQUE = re.compile(rf"(?:[a-z]{{0,2}}|{_GENERIC})?[-_:/.# ]?(?:{_NUMBERED})?", re.IGNORECASE)
_NAMING = frozenset((
    "name", "id", "email", "user", "user_id", "username", "title", "service", "host", "hostname", "slug", "uuid", "sku",
    "full_name", "customer_id", "order_id",
))  # fmt: skip
_BOOKKEEPING = frozenset((
    "timestamp", "created_at", "updated_at", "created", "updated", "at", "source", "confidence", "score", "version_id",
))  # fmt: skip
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BARE = 6  # words of a text that may be a value and no sentence
_LEAVES = 200
_FEW = 3  # words, of which two may be all that another memory shares


@dataclass(frozen=True, slots=True)
class Reading:
    """What a memory says. `exact` is equal for those that say it in the same words; `leaves` is there for JSON only."""

    exact: tuple[str, str]
    clauses: tuple[Clause, ...]
    key: str
    leaves: Mapping[str, Scalar | tuple[str, ...]] | None = None

    @property
    def words(self) -> frozenset[str]:
        """The words by which it is found: those of its clauses, and of what a change in it would replace."""
        known = lexicon()
        mine = {term.word for clause in self.clauses for term in clause.terms}
        verbs = {clause.verb for clause in self.clauses if clause.verb}
        replaced = {old for verb in verbs for table in (known.change, known.ending) for old in table.get(verb, ())}
        few = sum(not term.measure for clause in self.clauses for term in clause.terms) <= _FEW
        common = {"be"} if replaced or few or any(known.has("weak", verb) for verb in verbs) else set[str]()
        key = {f"={self.key}"} if self.key and self.leaves is not None else set[str]()
        return frozenset(mine | verbs | replaced | common | key)

    def naming(self) -> dict[str, str]:
        """The fields that say whom or what a record is about."""
        leaves = self.leaves or {}
        return {path: str(leaf).casefold() for path, leaf in leaves.items() if path in _NAMING}


def reading_of(key: str, value: Any) -> Reading:
    subject = "" if _OPAQUE.fullmatch(key) else key_text(key)
    if isinstance(value, str) and value[:1] in "{[":
        value = _decoded(value)
    if isinstance(value, Mapping):
        return _record(subject, cast("Mapping[str, Any]", value))
    if isinstance(value, str):
        return _text(subject, value)
    leaves = dict(flatten("", value))
    return Reading((subject, _canonical(leaves)), _leaf_clauses(subject, "", leaves), subject, leaves)


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except ValueError:
        return text


def key_text(key: str) -> str:
    """A key as words: `homeCity`, `home_city` and `home.city` are `home city`."""
    return " ".join(re.split(r"[\s_\-./:]+", _CAMEL.sub(" ", key))).strip().lower()


def _text(subject: str, text: str) -> Reading:
    words = words_of(text)
    clauses = read(text)
    if subject and len(words) <= _BARE and not any(clause.verb for clause in clauses):
        return Reading((subject, " ".join(words)), read(f"{subject}: {text}"), subject, {"": text})
    return Reading(("", " ".join(words) or text.strip()), clauses, subject)


def _record(subject: str, value: Mapping[str, Any]) -> Reading:
    leaves = {path: leaf for path, leaf in flatten("", value) if path.rpartition(".")[2] not in _BOOKKEEPING}
    named = next(
        (str(leaves[path]) for path in ("name", "full_name", "title", "user", "service", "host") if path in leaves), ""
    )
    return Reading((subject, _canonical(leaves)), _leaf_clauses(subject, named, leaves), subject, leaves)


def _leaf_clauses(subject: str, named: str, leaves: Mapping[str, Scalar | tuple[str, ...]]) -> tuple[Clause, ...]:
    if len(leaves) > _LEAVES:
        return ()
    about = f"{named}'s " if named else ""
    found: list[Clause] = []
    for path, leaf in leaves.items():
        if path not in _NAMING and not isinstance(leaf, tuple) and leaf is not None:
            label = f"{about}{subject} {key_text(path)}".strip()
            found += (
                read(f"{label}: {str(leaf).lower() if isinstance(leaf, bool) else leaf}") if label else read(str(leaf))
            )
    return tuple(found)


def flatten(path: str, value: Any) -> Iterator[tuple[str, Scalar | tuple[str, ...]]]:
    """Every scalar with its path; a list is one leaf, whose order does not count."""
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, Any]", value).items():
            yield from flatten(f"{path}.{name}" if path else str(name), inner)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield path, tuple(sorted(_leaf_text(item) for item in cast("Sequence[Any]", value)))
    else:
        yield path, cast("Scalar", value)


def _leaf_text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return f"{float(value):.12g}" if abs(value) < 1e15 else str(value)
    if isinstance(value, str):
        return " ".join(words_of(value)) or value
    return repr(
        sorted(
            (path, _leaf_text(leaf) if not isinstance(leaf, tuple) else str(leaf)) for path, leaf in flatten("", value)
        )
    )


def same_leaf(one: Scalar | tuple[str, ...], other: Scalar | tuple[str, ...]) -> bool:
    if isinstance(one, tuple) or isinstance(other, tuple):
        return one == other
    return (type(one) is type(other) is not bool and one == other) or _leaf_text(one) == _leaf_text(other)


def _canonical(leaves: Mapping[str, Scalar | tuple[str, ...]]) -> str:
    return repr(sorted((path, leaf if isinstance(leaf, tuple) else _leaf_text(leaf)) for path, leaf in leaves.items()))
