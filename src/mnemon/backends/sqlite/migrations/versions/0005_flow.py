"""From working memory to long-term memory: buffers, episodes, retention, keys."""

from alembic import op

from mnemon.backends.migrations import execute_script

revision = "0005"
down_revision = "0004"

UP = """
CREATE TABLE working_buffers (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    position INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL,
    has_items BOOLEAN NOT NULL DEFAULT TRUE,
    PRIMARY KEY (session_id, name)
) WITHOUT ROWID;
CREATE INDEX idx_working_buffers_waiting ON working_buffers (updated_at, session_id, name) WHERE has_items = TRUE;
CREATE TABLE working_items (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    buffer TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    body TEXT NOT NULL,
    tokens INTEGER NOT NULL DEFAULT 0,
    created_by TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    claim TEXT,
    claimed_until INTEGER NOT NULL DEFAULT 0,
    CHECK (json_valid(body)),
    CHECK (sequence > 0),
    UNIQUE (session_id, buffer, sequence)
);
CREATE INDEX idx_working_items_expires ON working_items (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX idx_working_items_claim ON working_items (claim) WHERE claim IS NOT NULL;
CREATE TABLE scratchpads (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT,
    version INTEGER NOT NULL DEFAULT 1,
    position INTEGER NOT NULL DEFAULT 0,
    updated_by TEXT,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (session_id, name),
    CHECK (value IS NULL OR json_valid(value)),
    CHECK (version > 0)
) WITHOUT ROWID;
CREATE INDEX idx_scratchpads_expires ON scratchpads (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE episodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    session_id TEXT,
    task_id TEXT,
    title TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL,
    participants TEXT NOT NULL DEFAULT '[]',
    offers TEXT NOT NULL DEFAULT '[]',
    outcome TEXT,
    metadata TEXT NOT NULL DEFAULT '{}',
    status TEXT NOT NULL DEFAULT 'pending',
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    claim TEXT,
    claimed_until INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    created_by TEXT,
    created_at INTEGER NOT NULL,
    consolidated_at INTEGER,
    restored_at INTEGER,
    CHECK (kind IN ('task_log', 'conversation', 'negotiation')),
    CHECK (status IN ('pending', 'working', 'consolidated', 'failed')),
    CHECK (json_valid(body)),
    CHECK (json_valid(participants)),
    CHECK (json_valid(offers)),
    CHECK (outcome IS NULL OR json_valid(outcome)),
    CHECK (json_valid(metadata))
);
CREATE INDEX idx_episodes_due ON episodes (claimed_until, id) WHERE status <> 'consolidated' AND status <> 'failed';
CREATE INDEX idx_episodes_status ON episodes (status, id);
CREATE INDEX idx_episodes_namespace ON episodes (namespace, id);
CREATE INDEX idx_episodes_session ON episodes (session_id, id) WHERE session_id IS NOT NULL;
CREATE TABLE memory_uses (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    uses INTEGER NOT NULL DEFAULT 0,
    used_at INTEGER NOT NULL,
    restored_at INTEGER,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
CREATE TABLE archives (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL DEFAULT 'memories',
    namespace TEXT NOT NULL,
    policy TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    versions INTEGER NOT NULL,
    first_at INTEGER,
    last_at INTEGER,
    created_at INTEGER NOT NULL,
    restored_at INTEGER,
    replaced TEXT,
    CHECK (kind IN ('memories', 'episodes'))
);
CREATE INDEX idx_archives_sha256 ON archives (sha256);
CREATE INDEX idx_archives_namespace ON archives (namespace, id);
CREATE TABLE archived_memories (
    archive_id INTEGER NOT NULL REFERENCES archives (id) ON DELETE CASCADE,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    erased_at INTEGER,
    PRIMARY KEY (namespace, key, archive_id)
) WITHOUT ROWID;
CREATE INDEX idx_archived_memories_archive ON archived_memories (archive_id);
CREATE INDEX idx_archived_memories_erased ON archived_memories (archive_id) WHERE erased_at IS NOT NULL;
CREATE TABLE growth (
    at INTEGER NOT NULL PRIMARY KEY,
    bytes INTEGER NOT NULL,
    detail TEXT NOT NULL DEFAULT '{}',
    CHECK (json_valid(detail))
);
CREATE TABLE data_keys (
    id TEXT NOT NULL PRIMARY KEY,
    namespace TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    master_key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    retired_at INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX data_keys_one_current ON data_keys (namespace) WHERE retired_at IS NULL;
"""

DOWN = """
DROP TABLE data_keys;
DROP TABLE growth;
DROP TABLE archived_memories;
DROP TABLE archives;
DROP TABLE memory_uses;
DROP TABLE episodes;
DROP TABLE scratchpads;
DROP TABLE working_items;
DROP TABLE working_buffers;
"""


def upgrade() -> None:
    execute_script(op.get_bind(), UP)


def downgrade() -> None:
    execute_script(op.get_bind(), DOWN)
