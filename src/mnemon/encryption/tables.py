"""Every table that has columns which may be sealed, and what a sealed text in it is bound to.

This is the one list: what seals a row, what opens it, and what seals it anew under another data key go by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mnemon.encryption.envelope import Place


@dataclass(frozen=True, slots=True)
class Table:
    """A table with texts that may be sealed. A column that is NULL stays so."""

    name: str
    finds: Sequence[str]
    """The columns that find one row: its primary key."""
    sealed: Sequence[str]
    bound: tuple[str, str, str]
    """The columns that say where a text belongs: `Place.namespace`, `.key` and `.version`; "" where there is none."""
    unversioned: Sequence[str] = ()
    """Those of `sealed` that are written once and stay while the row's version goes on."""
    known_as: str = ""
    """The table that its rows came from as they are, if it is another."""

    def place(self, row: Mapping[str, Any], column: str) -> Place:
        """Where the text of a column belongs; `row` has at least the columns of `bound`."""
        namespace, key, version = self.bound
        return Place(
            self.known_as or self.name,
            column,
            row[namespace] if namespace else "",
            "" if not key or row[key] is None else str(row[key]),
            row[version] if version and column not in self.unversioned else 0,
        )


TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        Table("memory_entries", ("id",), ("value", "metadata"), ("namespace", "key", "version")),
        Table("sessions", ("id",), ("metadata",), ("", "id", "")),
        Table("events", ("session_id", "sequence"), ("body", "state_delta"), ("session_id", "id", "sequence")),
        Table(
            "archived_events", ("session_id", "sequence"), ("body", "state_delta"), ("session_id", "id", "sequence"),
            known_as="events",
        ),
        Table("state", ("namespace", "key"), ("value",), ("namespace", "key", "version")),
        Table("tasks", ("id",), ("input", "result", "error"), ("", "id", "version"), unversioned=("input",)),
        Table("artifacts", ("id",), ("metadata",), ("session_id", "name", "version")),
        Table("workspaces", ("id",), ("metadata",), ("namespace", "id", "")),
        Table("workspace_files", ("workspace_id", "path", "since"), ("metadata",), ("workspace_id", "path", "since")),
        Table("workspace_snapshots", ("workspace_id", "number"), ("message",), ("workspace_id", "", "number")),
        Table("agents", ("id",), ("role", "directives", "config", "metadata"), ("namespace", "id", "version")),
        Table(
            "agent_cycles", ("agent_id", "cycle"), ("proposal", "result", "summary", "artifacts"),
            ("agent_id", "", "cycle"),
        ),
        Table(
            "document_index", ("id",), ("title", "content_hash", "metadata", "error"), ("namespace", "file_path", "")
        ),
        Table("working_items", ("id",), ("body",), ("session_id", "buffer", "sequence")),
        Table("scratchpads", ("session_id", "name"), ("value",), ("session_id", "name", "version")),
        Table(
            "episodes", ("id",), ("title", "body", "participants", "offers", "outcome", "metadata", "error"),
            ("namespace", "id", ""),
        ),
    )
}  # fmt: skip
"""The tables by name. A sealed text names its data key, and so the scope whose current key it is sealed by anew."""
