"""Which memories say the same, and which deny each other: pure, with no language model and no database.

`find` goes through the memories of one or many namespaces; `compare` decides about two. Memories of different
namespaces are never compared: what holds for one user says nothing of another. What a rule finds is certain; what is
only weighed, where no rule decides, is suspected.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from mnemon.consolidation.candidates import near_vectors, sharing_words
from mnemon.consolidation.readings import Reading, reading_of, same_leaf
from mnemon.consolidation.rules import judge
from mnemon.consolidation.suspicion import Embed, Suspicion, suspect, told
from mnemon.consolidation.verdicts import Verdict
from mnemon.model import Certainty, Memory
from mnemon.ports import Vector

Kind = Literal["duplicate", "near_duplicate", "contradiction", "superseded"]

_SHORT = 4  # words of a field's text that is a value and no prose
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Statement:
    """A memory as it is compared: what it says, where, since when, and how far to trust it."""

    id: Hashable
    namespace: str
    key: str
    value: Any
    memory_type: str = "semantic"
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    updated_at: datetime | None = None
    trust: float = 1.0
    author: str | None = None
    vector: Vector | None = field(default=None, compare=False, repr=False)

    @property
    def since(self) -> datetime | None:
        """From when on it is true, if that is known."""
        return self.valid_from or self.occurred_at


@dataclass(frozen=True, slots=True)
class Finding:
    """Two memories that say the same or deny each other, the older first.

    `superseded` is a contradiction in which the second replaces the first: it says so, or it is of a later time.
    """

    kind: Kind
    first: Statement
    second: Statement
    score: float
    reason: str
    subject: str = ""
    attribute: str = ""
    certainty: Certainty = "certain"


def statement_of(memory: Memory, vector: Vector | None = None) -> Statement:
    placement, provenance = memory.placement, memory.provenance
    return Statement(
        memory.id, memory.namespace, memory.key, memory.value, memory.memory_type,
        placement.occurred_at, placement.valid_from, placement.valid_to, memory.updated_at,
        provenance.trust, provenance.author, vector,
    )  # fmt: skip


def compare(one: Statement, other: Statement) -> Finding | None:
    """What two memories have to do with each other; None if nothing."""
    return _compare(_Read(one, reading_of(one.key, one.value)), _Read(other, reading_of(other.key, other.value)))


def find(statements: Iterable[Statement], embed: Embed | None = None) -> list[Finding]:
    """All findings, most certain first. The order of the statements does not matter.

    Of several exact copies each is found once, as a copy of the oldest, which stands for all in other findings.
    `embed` makes vectors of words and texts, those of the embedder `static`: with it, pairs are suspected too.
    """
    spaces: dict[str, list[_Read]] = defaultdict(list)
    for statement in sorted(statements, key=age):
        spaces[statement.namespace].append(_Read(statement, reading_of(statement.key, statement.value)))
    found = [finding for members in spaces.values() for finding in _find(members, embed)]
    return sorted(found, key=_by_certainty)


def _by_certainty(finding: Finding) -> tuple[str, float, str, str, str]:
    return finding.certainty, -finding.score, finding.kind, str(finding.first.id), str(finding.second.id)


@dataclass(frozen=True, slots=True)
class _Read:
    statement: Statement
    reading: Reading


def _find(members: Sequence[_Read], embed: Embed | None) -> Iterator[Finding]:
    originals: dict[tuple[str, str], _Read] = {}
    for member in members:
        original = originals.setdefault(member.reading.exact, member)
        if original is not member and (finding := _compare(original, member)):
            yield finding
    kept = list(originals.values())
    pairs = sharing_words([each.reading.words for each in kept])
    pairs |= near_vectors(
        {at: each.statement.vector for at, each in enumerate(kept) if each.statement.vector is not None}
    )
    undecided: list[tuple[int, int]] = []
    for one, other in sorted(pairs):
        if finding := _compare(kept[one], kept[other]):
            yield finding
        else:
            undecided.append((one, other))
    if embed is not None:
        yield from _suspected(kept, undecided, embed)


def _suspected(kept: Sequence[_Read], undecided: Iterable[tuple[int, int]], embed: Embed) -> Iterator[Finding]:
    readings, texts = [each.reading for each in kept], [told(each.reading, each.statement.value) for each in kept]
    for (one, other), suspicion in suspect(readings, texts, undecided, embed):
        older, newer = sorted((kept[one], kept[other]), key=lambda each: age(each.statement))
        if finding := _related(older, newer, _as_verdict(suspicion)):
            yield replace(finding, certainty="suspected")


def _as_verdict(suspicion: Suspicion) -> Verdict:
    reason = "probably say the same" if suspicion.family == "same" else "probably deny each other"
    return Verdict(suspicion.family, "suspected", reason, suspicion.score)


def age(statement: Statement) -> tuple[datetime, datetime, str]:
    """Older ones first: by when they became true, then by when they were written."""
    since, written = statement.since or statement.updated_at, statement.updated_at
    return since or _NEVER, written or _NEVER, str(statement.id)


def _compare(one: _Read, other: _Read) -> Finding | None:
    older, newer = sorted((one, other), key=lambda each: age(each.statement))
    if older.statement.namespace != newer.statement.namespace:
        return None
    if older.reading.exact == newer.reading.exact:
        return Finding("duplicate", older.statement, newer.statement, 1.0, "same: say the same in the same words")
    verdict = _decide(older.reading, newer.reading)
    return None if verdict is None else _related(older, newer, verdict)


def _related(older: _Read, newer: _Read, verdict: Verdict) -> Finding | None:
    if verdict.family == "same":
        return _finding("near_duplicate", older, newer, verdict)
    return _conflict(older, newer, verdict)


def _conflict(older: _Read, newer: _Read, verdict: Verdict) -> Finding | None:
    """A conflict, in time: none if one was over before the other began."""
    first, second = older.statement, newer.statement
    if _is_over(first, second) or _is_over(second, first):
        return None
    if first.since and second.since and first.since != second.since:
        return _finding("superseded", older, newer, verdict)
    if verdict.later == "first":
        return _finding("superseded", newer, older, verdict)
    return _finding("superseded" if verdict.later else "contradiction", older, newer, verdict)


def _is_over(one: Statement, other: Statement) -> bool:
    return one.valid_to is not None and other.since is not None and one.valid_to <= other.since


def _finding(kind: Kind, first: _Read, second: _Read, verdict: Verdict) -> Finding:
    reason = f"{verdict.rule}: {verdict.reason}"
    return Finding(kind, first.statement, second.statement, verdict.score, reason, verdict.subject, verdict.attribute)


# ------------------------------------------------------------------------------------------------------- deciding


def _decide(one: Reading, other: Reading) -> Verdict | None:
    if (
        one.leaves is not None
        and other.leaves is not None
        and (len(one.leaves) > 1 or len(other.leaves) > 1 or one.key == other.key)
    ):
        return _decide_records(one, other)
    if not one.clauses or not other.clauses:
        return None
    verdicts = [[judge(mine, theirs) for theirs in other.clauses] for mine in one.clauses]
    flat = [verdict for row in verdicts for verdict in row if verdict]
    if conflict := next((verdict for verdict in flat if verdict.family == "conflict"), None):
        return conflict
    rows = all(any(row) for row in verdicts)
    columns = all(any(row[at] for row in verdicts) for at in range(len(other.clauses)))
    return flat[0] if rows and columns else None


def _decide_records(one: Reading, other: Reading) -> Verdict | None:
    """JSON values: field by field, if both are about the same."""
    mine, theirs = one.leaves or {}, other.leaves or {}
    if not _about_the_same(one, other):
        return None
    shared = [path for path in mine if path in theirs]
    differing = [path for path in shared if not same_leaf(mine[path], theirs[path])]
    verdicts = [_decide_leaf(one.key, path, mine[path], theirs[path]) for path in differing]
    if conflict := next((verdict for verdict in verdicts if verdict and verdict.family == "conflict"), None):
        return conflict
    if mine.keys() == theirs.keys() and shared and all(verdicts):
        return Verdict("same", "fields", "have the same fields", 0.95, one.key)
    return None


def _about_the_same(one: Reading, other: Reading) -> bool:
    """Records are of one thing if their keys say so, or all fields that name it; else if they are nearly equal."""
    mine, theirs = one.naming(), other.naming()
    shared = mine.keys() & theirs.keys()
    if shared:
        return all(mine[path] == theirs[path] for path in shared) and one.key == other.key
    return one.key == other.key and (bool(one.key) or one.leaves == other.leaves)


def _decide_leaf(key: str, path: str, one: Any, other: Any) -> Verdict | None:
    if isinstance(one, tuple) or isinstance(other, tuple) or one is None or other is None:
        return None
    label = f"{key} {path.replace('.', ' ')}".strip() or "value"
    first, second = (
        reading_of(label, value if isinstance(value, str) else str(value).lower()) for value in (one, other)
    )
    verdict = next((found for a in first.clauses for b in second.clauses if (found := judge(a, b))), None)
    prose = any(isinstance(value, str) and len(value.split()) > _SHORT for value in (one, other))
    if verdict or prose:
        return verdict
    return Verdict("conflict", "field", f"the field {label!r} has two values: {one!r} and {other!r}", 0.95, key, path)
