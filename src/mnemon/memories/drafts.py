"""What is to be remembered, as callers write it down."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from mnemon.errors import InvalidInput
from mnemon.model import MemoryDraft, MemoryType, Placement, Provenance


def draft(
    value: Any,
    *,
    namespace: str,
    key: str | None = None,
    memory_type: str = MemoryType.SEMANTIC,
    thread: str | None = None,
    position: int | None = None,
    occurred_at: datetime | None = None,
    author: str | None = None,
    importance: float | None = None,
    trust: float | None = None,
    metadata: Mapping[str, Any] | None = None,
    session_id: str | None = None,
    event_id: str | None = None,
) -> MemoryDraft:
    """A draft with where the memory comes from and where it belongs; what is None gets its default."""
    usual = Provenance()
    return MemoryDraft(
        value,
        namespace,
        key,
        memory_type,
        metadata,
        Provenance(
            session_id,
            event_id,
            author,
            usual.trust if trust is None else trust,
            usual.importance if importance is None else importance,
        ),
        Placement(thread, position, occurred_at),
    )


def draft_of(item: object, namespace: str | None) -> MemoryDraft:
    """One of many: a draft, a mapping of `remember`'s arguments with its `value` or `text`, or a plain text."""
    if isinstance(item, MemoryDraft):
        return item
    if not isinstance(item, Mapping):
        arguments: dict[str, Any] = {"value": item}
    else:
        arguments = dict(cast("Mapping[str, Any]", item))
        if "text" in arguments:
            arguments.setdefault("value", arguments.pop("text"))
    if namespace is not None:
        arguments.setdefault("namespace", namespace)
    missing = {"value", "namespace"} - arguments.keys()
    if missing:
        raise InvalidInput(
            f"a memory to be remembered needs {' and '.join(sorted(missing))}: {cast('object', item)!r:.80}"
        )
    try:
        return draft(**arguments)
    except TypeError as error:
        raise InvalidInput(
            f"a memory to be remembered has an argument that `remember` does not take: {error}"
        ) from None
