"""Long-term memories."""

from alembic import op

from mnemon.backends.migrations import execute_script

revision = "0002"
down_revision = "0001"

UP = """
CREATE TABLE memory_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    memory_type TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    is_deleted BOOLEAN NOT NULL DEFAULT FALSE,
    is_current BOOLEAN NOT NULL DEFAULT TRUE,
    metadata TEXT NOT NULL DEFAULT '{}',
    created_by TEXT,
    updated_by TEXT,
    task_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    session_id TEXT,
    event_id TEXT,
    author TEXT,
    trust REAL NOT NULL DEFAULT 1.0,
    importance REAL NOT NULL DEFAULT 0.5,
    thread TEXT,
    position INTEGER,
    occurred_at INTEGER,
    valid_from INTEGER NOT NULL,
    valid_to INTEGER,
    CHECK (memory_type IN ('semantic', 'episodic', 'procedural')),
    CHECK (json_valid(value)),
    CHECK (json_valid(metadata)),
    CHECK (version > 0),
    CHECK (trust BETWEEN 0 AND 1),
    CHECK (importance BETWEEN 0 AND 1),
    CHECK (valid_to IS NULL OR valid_to > valid_from),
    UNIQUE (namespace, key, version)
);
CREATE INDEX idx_memory_namespace_key_version
    ON memory_entries (namespace, key, is_deleted, version DESC);
CREATE INDEX idx_memory_type_updated
    ON memory_entries (memory_type, updated_at, id) WHERE is_current = TRUE AND is_deleted = FALSE;
CREATE INDEX idx_memory_namespace_prefix ON memory_entries (namespace) WHERE is_current = TRUE;
CREATE INDEX idx_memory_created_by
    ON memory_entries (created_by, updated_at, id) WHERE is_current = TRUE AND is_deleted = FALSE;
CREATE INDEX idx_memory_updated_at
    ON memory_entries (updated_at, id) WHERE is_current = TRUE AND is_deleted = FALSE;
CREATE INDEX idx_memory_type_namespace
    ON memory_entries (memory_type, namespace, key) WHERE is_current = TRUE AND is_deleted = FALSE;
CREATE INDEX idx_memory_is_deleted
    ON memory_entries (namespace, key) WHERE is_current = TRUE AND is_deleted = FALSE;
CREATE INDEX idx_memory_thread
    ON memory_entries (thread, position, id) WHERE thread IS NOT NULL AND is_current = TRUE AND is_deleted = FALSE;
"""

DOWN = """
DROP TABLE memory_entries;
"""


def upgrade() -> None:
    execute_script(op.get_bind(), UP)


def downgrade() -> None:
    execute_script(op.get_bind(), DOWN)
