"""What agents make and do: artifacts, workspaces, agents with their cycles, documents; and reviews."""

from alembic import op

from mnemon.backends.migrations import execute_script

revision = "0004"
down_revision = "0003"

UP = """
CREATE TABLE artifacts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    file_name TEXT NOT NULL,
    created_by TEXT,
    task_id TEXT,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CHECK (json_valid(metadata)),
    CHECK (version > 0),
    CHECK (size >= 0),
    UNIQUE (session_id, name, version),
    UNIQUE (session_id, file_name)
);
CREATE INDEX idx_artifacts_sha256 ON artifacts (sha256);
CREATE INDEX idx_artifacts_deleted_at ON artifacts (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    namespace TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    revision INTEGER NOT NULL DEFAULT 0,
    files INTEGER NOT NULL DEFAULT 0,
    size INTEGER NOT NULL DEFAULT 0,
    created_by TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK (json_valid(metadata))
) WITHOUT ROWID;
CREATE INDEX idx_workspaces_namespace ON workspaces (namespace, id);
CREATE TABLE workspace_files (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    is_executable BOOLEAN NOT NULL DEFAULT FALSE,
    metadata TEXT NOT NULL DEFAULT '{}',
    updated_by TEXT,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, path, since),
    CHECK (json_valid(metadata)),
    CHECK (size >= 0),
    CHECK (until > since)
) WITHOUT ROWID;
CREATE UNIQUE INDEX workspace_files_present ON workspace_files (workspace_id, path) WHERE until IS NULL;
CREATE INDEX idx_workspace_files_since ON workspace_files (workspace_id, since);
CREATE INDEX idx_workspace_files_until ON workspace_files (workspace_id, until) WHERE until IS NOT NULL;
CREATE INDEX idx_workspace_files_sha256 ON workspace_files (sha256);
CREATE TABLE workspace_snapshots (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    message TEXT NOT NULL DEFAULT '',
    files INTEGER NOT NULL,
    size INTEGER NOT NULL,
    created_by TEXT,
    task_id TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, number),
    CHECK (number > 0)
) WITHOUT ROWID;
CREATE INDEX idx_workspace_snapshots_revision ON workspace_snapshots (workspace_id, revision);
CREATE TABLE agents (
    id TEXT NOT NULL PRIMARY KEY,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL DEFAULT '',
    directives TEXT NOT NULL DEFAULT '{}',
    config TEXT NOT NULL DEFAULT '{}',
    metadata TEXT NOT NULL DEFAULT '{}',
    workspace_id TEXT REFERENCES workspaces (id) ON DELETE SET NULL,
    version INTEGER NOT NULL DEFAULT 1,
    cycle_count INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK (json_valid(directives)),
    CHECK (json_valid(config)),
    CHECK (json_valid(metadata)),
    CHECK (version > 0)
) WITHOUT ROWID;
CREATE INDEX idx_agents_namespace ON agents (namespace, id);
CREATE INDEX idx_agents_workspace ON agents (workspace_id) WHERE workspace_id IS NOT NULL;
CREATE TABLE agent_cycles (
    agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    cycle INTEGER NOT NULL,
    session_id TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    task_id TEXT,
    proposal TEXT NOT NULL,
    proposed_at INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'proposed',
    result TEXT,
    summary TEXT,
    artifacts TEXT NOT NULL DEFAULT '[]',
    workspace_id TEXT,
    snapshot INTEGER,
    finished_at INTEGER,
    undone_at INTEGER,
    PRIMARY KEY (agent_id, cycle),
    CHECK (cycle > 0),
    CHECK (json_valid(proposal)),
    CHECK (result IS NULL OR json_valid(result)),
    CHECK (json_valid(artifacts)),
    CHECK (status IN ('proposed', 'success', 'error', 'interrupted_by_human')),
    CHECK ((status = 'proposed') = (result IS NULL))
) WITHOUT ROWID;
CREATE INDEX idx_agent_cycles_standing ON agent_cycles (agent_id, cycle) WHERE undone_at IS NULL;
CREATE INDEX idx_agent_cycles_session ON agent_cycles (session_id, agent_id, cycle) WHERE session_id IS NOT NULL;
CREATE TABLE document_index (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    file_path TEXT NOT NULL,
    title TEXT NOT NULL,
    document_type TEXT,
    content_hash TEXT NOT NULL,
    chunk_count INTEGER NOT NULL DEFAULT 0,
    embedding_model TEXT,
    embedding_blob BLOB,
    metadata TEXT NOT NULL DEFAULT '{}',
    size INTEGER NOT NULL DEFAULT 0,
    source TEXT,
    chunking TEXT NOT NULL DEFAULT '',
    error TEXT,
    last_synced_at INTEGER,
    sync_status TEXT NOT NULL DEFAULT 'pending',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK (sync_status IN ('pending', 'synced', 'failed', 'stale')),
    CHECK (json_valid(metadata)),
    CHECK (chunk_count >= 0)
);
CREATE UNIQUE INDEX idx_document_file_path ON document_index (namespace, file_path);
CREATE INDEX idx_document_type ON document_index (document_type, id);
CREATE INDEX idx_document_sync_status ON document_index (sync_status, id);
CREATE INDEX idx_document_hash ON document_index (content_hash);
CREATE INDEX idx_document_updated ON document_index (updated_at, id);
CREATE TABLE reviews (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace TEXT NOT NULL,
    kind TEXT NOT NULL,
    plan TEXT NOT NULL,
    digest TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'open',
    decision TEXT,
    decided_by TEXT,
    decided_at INTEGER,
    created_at INTEGER NOT NULL,
    CHECK (json_valid(plan)),
    CHECK (decision IS NULL OR json_valid(decision)),
    CHECK (status IN ('open', 'applied', 'rejected', 'outdated'))
);
CREATE UNIQUE INDEX reviews_one_standing ON reviews (digest) WHERE status IN ('open', 'rejected');
CREATE INDEX idx_reviews_status ON reviews (status, id);
CREATE INDEX idx_reviews_namespace ON reviews (namespace, id);
"""

DOWN = """
DROP TABLE reviews;
DROP TABLE document_index;
DROP TABLE agent_cycles;
DROP TABLE agents;
DROP TABLE workspace_snapshots;
DROP TABLE workspace_files;
DROP TABLE workspaces;
DROP TABLE artifacts;
"""


def upgrade() -> None:
    execute_script(op.get_bind(), UP)


def downgrade() -> None:
    execute_script(op.get_bind(), DOWN)
