"""Questions to a person, as rows of `reviews`, and back. They name versions of memories and never what these say."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from mnemon import journal
from mnemon.clock import moment, moment_or_none
from mnemon.journal import Origin
from mnemon.model import ConsolidationStep, Memory, MemoryConflict, MemoryVersion, Review, ReviewStatus
from mnemon.sql import load
from mnemon.values import decode


class ReviewRow(NamedTuple):
    """A row of `reviews`, as every query selects it."""

    id: int
    namespace: str
    kind: str
    plan: str
    digest: str
    status: str
    decision: str | None
    decided_by: str | None
    decided_at: int | None
    created_at: int

    @property
    def versions(self) -> tuple[MemoryVersion, MemoryVersion]:
        """The two that it is about, the older first."""
        plan: Mapping[str, Any] = decode(self.plan)
        first, second = (MemoryVersion(self.namespace, *plan[name]) for name in ("first", "second"))
        return first, second


SQL = {name: query.fill(columns=", ".join(ReviewRow._fields)) for name, query in load("consolidation").items()}


def new_row(conflict: MemoryConflict, digest: str, now: int) -> dict[str, Any]:
    """An open review of two memories. Of the reason only the rule is kept: the rest has their words."""
    plan = {
        "first": (conflict.first.key, conflict.first.version),
        "second": (conflict.second.key, conflict.second.version),
        "rule": conflict.reason.partition(":")[0], "score": conflict.score,
    }  # fmt: skip
    return {
        "namespace": conflict.first.namespace, "kind": conflict.kind, "plan": orjson.dumps(plan).decode(),
        "digest": digest, "status": str(ReviewStatus.OPEN), "decision": None, "decided_by": None, "decided_at": None,
        "created_at": now,
    }  # fmt: skip


def decided(row: Mapping[str, Any], status: ReviewStatus, choice: str, origin: Origin) -> dict[str, Any]:
    """The row when it has been decided."""
    told = orjson.dumps({"choice": choice}).decode()
    return {**row, "status": str(status), "decision": told, "decided_by": origin.actor, "decided_at": origin.now}


def review_of(row: ReviewRow, first: Memory | None, second: Memory | None) -> Review:
    """A row as the caller sees it."""
    plan = decode(row.plan)
    return Review(
        row.id,
        row.namespace,
        row.kind,
        first,
        second,
        plan["score"],
        plan["rule"],
        ReviewStatus(row.status),
        decode(row.decision)["choice"] if row.decision else None,
        row.decided_by,
        moment_or_none(row.decided_at),
        moment(row.created_at),
    )


def step_of(row: ReviewRow, choice: str, value: Any) -> ConsolidationStep:
    """What a decision comes to; a merged value takes the place of the later one."""
    first, second = row.versions
    kept, retired = (first, second) if choice == "first" else (second, first)
    return ConsolidationStep(kept, (retired,), (row.kind,), "review", "", value, 1.0, choice == "merge")


def entry_of(origin: Origin, operation: str, namespace: str, review_id: int, **payload: Any) -> dict[str, Any]:
    """The journal entry of a change of a review."""
    return journal.entry(origin, "review", str(review_id), operation, namespace=namespace, payload=payload)
