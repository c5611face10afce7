"""The list of what may be sealed: every column of the schema was decided about."""

import pytest

import mnemon
from mnemon.encryption.envelope import Place
from mnemon.encryption.tables import TABLES
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import peek

PLAIN = {
    "agent_cycles": "agent_id session_id task_id status workspace_id",
    "agents": "id namespace name workspace_id",
    "archived_events": "session_id id actor task_id",
    "archived_memories": "namespace key",
    "archives": "kind namespace policy sha256 replaced",
    "artifacts": "session_id name sha256 content_type file_name created_by task_id",
    "consumers": "name lease_owner",
    "data_keys": "id namespace wrapped master_key",
    "document_index": "namespace file_path document_type embedding_model embedding_blob source chunking sync_status",
    "embedding_cache": "digest embedding",
    "episodes": "namespace kind session_id task_id status claim created_by",
    "events": "session_id id actor task_id",
    "growth": "detail",
    "journal": "actor entity entity_id operation namespace user_id session_id task_id payload",
    "memory_entries": "namespace key memory_type created_by updated_by task_id session_id event_id author thread",
    "memory_texts": "words scope",
    "memory_uses": "namespace key",
    "memory_vectors": "embedding",
    "mnemon_schema": "",
    "reviews": "namespace kind plan digest status decision decided_by",
    "scratchpads": "session_id name updated_by",
    "seals": "digest",
    "sessions": "id app_name user_id project_id status",
    "state": "namespace key",
    "tasks": "id session_id parent_id name status",
    "vector_spaces": "provider model version status",
    "working_buffers": "session_id name",
    "working_items": "session_id buffer created_by claim",
    "workspace_files": "workspace_id path sha256 updated_by",
    "workspace_snapshots": "workspace_id created_by task_id",
    "workspaces": "id namespace created_by",
}
"""The columns of text or bytes that are never sealed. `docs/reference/encryption.md` says so of each."""

_TABLES = """
SELECT name FROM sqlite_master
WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'memory_terms%' AND name <> 'memory_vocabulary'
"""


async def test_every_column_is_sealed_or_known_to_be_plain():
    """Given a new column, then somebody has to say whether it may hold what must not be read."""
    async with mnemon.open("sqlite://", background=False, embedder="none") as memory:
        store = parts_of(memory).store
        for (table,) in await peek(store, _TABLES):
            found = await peek(store, f"SELECT name, type FROM pragma_table_info('{table}')")
            texts = {name for name, kind in found if kind in ("TEXT", "BLOB")}
            sealed = set(TABLES[table].sealed) if table in TABLES else set[str]()
            assert texts == sealed | set(PLAIN[table].split()), table
            if table in TABLES:
                named = {name for name, _ in found}
                assert named >= {*TABLES[table].finds, *(name for name in TABLES[table].bound if name)}


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_no_two_columns_have_the_same_place(table: mnemon.encryption.Table):
    row = {name: number for number, name in enumerate(table.bound, 1) if name}
    places = [table.place(row, column) for column in table.sealed]
    assert len(set(places)) == len(places)
    assert all(isinstance(place, Place) and isinstance(place.version, int) for place in places)
    assert any(places[0][2:])  # it says which row
