-- The schema of a new SQLite database, as all migrations together make it.
-- Moments are microseconds since 1970 (UTC). JSON is text, checked.

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    app_name TEXT NOT NULL,
    user_id TEXT NOT NULL,
    project_id TEXT,
    status TEXT NOT NULL DEFAULT 'created',
    metadata TEXT NOT NULL DEFAULT '{}',
    version INTEGER NOT NULL DEFAULT 1,
    event_count INTEGER NOT NULL DEFAULT 0,
    archived_count INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    last_update_time INTEGER NOT NULL,
    terminated_at INTEGER,
    archived_at INTEGER,
    CHECK (status IN ('created', 'active', 'paused', 'terminated', 'archived')),
    CHECK (json_valid(metadata)),
    CHECK (version > 0)
) WITHOUT ROWID;
CREATE INDEX idx_sessions_status_updated ON sessions (status, last_update_time);
CREATE INDEX idx_sessions_user_created ON sessions (user_id, created_at, id);
CREATE INDEX idx_sessions_project_id ON sessions (project_id, created_at, id) WHERE project_id IS NOT NULL;
CREATE INDEX idx_sessions_app_user ON sessions (app_name, user_id, created_at, id);
CREATE INDEX idx_sessions_app_created ON sessions (app_name, created_at, id);
CREATE INDEX idx_sessions_created ON sessions (created_at, id);

-- An event that was given no id is known by its session and sequence alone: one index less to write.
CREATE TABLE events (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    id TEXT,
    body TEXT NOT NULL,
    state_delta TEXT,
    actor TEXT,
    task_id TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, sequence),
    CHECK (json_valid(body)),
    CHECK (state_delta IS NULL OR json_valid(state_delta)),
    CHECK (sequence > 0)
) WITHOUT ROWID;
CREATE UNIQUE INDEX idx_events_id ON events (session_id, id) WHERE id IS NOT NULL;

CREATE TABLE archived_events (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    id TEXT,
    body TEXT NOT NULL,
    state_delta TEXT,
    actor TEXT,
    task_id TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (session_id, sequence),
    CHECK (json_valid(body)),
    CHECK (state_delta IS NULL OR json_valid(state_delta)),
    CHECK (sequence > 0)
) WITHOUT ROWID;
CREATE UNIQUE INDEX idx_archived_events_id ON archived_events (session_id, id) WHERE id IS NOT NULL;

-- A deleted key stays as a row without a value, so that its version never goes back.
CREATE TABLE state (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT,
    version INTEGER NOT NULL DEFAULT 1,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (namespace, key),
    CHECK (value IS NULL OR json_valid(value)),
    CHECK (version > 0)
) WITHOUT ROWID;

CREATE TABLE tasks (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT REFERENCES sessions (id) ON DELETE SET NULL,
    parent_id TEXT REFERENCES tasks (id) ON DELETE SET NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    input TEXT NOT NULL DEFAULT 'null',
    result TEXT NOT NULL DEFAULT 'null',
    error TEXT,
    version INTEGER NOT NULL DEFAULT 1,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK (status IN ('pending', 'running', 'completed', 'failed', 'cancelled')),
    CHECK (json_valid(input)),
    CHECK (json_valid(result)),
    CHECK (version > 0)
) WITHOUT ROWID;
CREATE INDEX idx_tasks_session ON tasks (session_id, created_at, id);
CREATE INDEX idx_tasks_parent ON tasks (parent_id, created_at, id);
CREATE INDEX idx_tasks_status ON tasks (status, created_at, id);
CREATE INDEX idx_tasks_created ON tasks (created_at, id);

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

-- The vectors of one embedding model lie in one space; at most one is active.
CREATE TABLE vector_spaces (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    version TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'filling',
    created_at INTEGER NOT NULL,
    CHECK (dimension > 0),
    CHECK (status IN ('filling', 'active', 'retired')),
    UNIQUE (model, version, dimension)
);
CREATE UNIQUE INDEX vector_spaces_one_active ON vector_spaces (status) WHERE status = 'active';

-- An embedding is 32-bit floats, the lowest byte first, of length 1. The numbers tell others what has been added.
-- To erase a vector it is overwritten where it is: if its row was deleted, SQLite would move the neighbours between
-- pages and leave copies of them where nothing finds them any more.
CREATE TABLE memory_vectors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    space_id INTEGER NOT NULL REFERENCES vector_spaces (id),
    memory_id INTEGER NOT NULL,
    embedding BLOB NOT NULL,
    UNIQUE (space_id, memory_id)
);

CREATE TABLE embedding_cache (
    space_id INTEGER NOT NULL,
    digest TEXT NOT NULL,
    embedding BLOB NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (space_id, digest)
);
CREATE INDEX idx_embedding_cache_used_at ON embedding_cache (used_at);

-- The analysed words of live memories; where a version is no longer the current one they are overwritten, as above.
-- Rows have an order of their own, so that new ones are always added at the end and none is ever moved.
-- The index holds digests of the words and of each part of the namespace, never a word.
CREATE TABLE memory_texts (
    memory_id INTEGER NOT NULL UNIQUE,
    words TEXT NOT NULL,
    scope TEXT NOT NULL
);
CREATE VIRTUAL TABLE memory_terms USING fts5 (
    terms, scope, content = '', columnsize = 0, detail = none, tokenize = 'ascii'
);
INSERT INTO memory_terms (memory_terms, rank) VALUES ('automerge', 16);
CREATE VIRTUAL TABLE memory_vocabulary USING fts5vocab (memory_terms, row);

-- The files of sessions. Their content lies outside, once for each digest; a name has versions, each of them a row.
-- `file_name` is what people see of it in the session's folder.
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

-- `revision` counts the changes of the tree; a snapshot is a revision that was given a number.
-- `files` and `size` are those of the present tree, so that a snapshot need not count them.
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

-- A row is a file as it was from revision `since` until before revision `until`; NULL is now.
-- So a snapshot costs nothing, and two revisions differ by the rows that begin or end between them.
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

-- A cycle is a proposal and, later, its result. Rewinding sets `undone_at` and deletes nothing.
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

-- Files whose chunks are memories, whose vectors lie where those of all memories do: `embedding_model` names the space
-- that the last synchronisation wrote to, and `embedding_blob` is for programs that keep one vector for a whole file.
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

-- Memories that say the same or deny each other, for a person to decide about. `plan` names their versions and never
-- says what they say, so that a purge leaves nothing here; `digest` is of those versions.
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

-- Conversation buffers. The database is the truth; Redis, where it is used, holds copies.
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

-- What happened, as it was told; consolidation makes summaries and facts of it.
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

-- How often memories were recalled, for those that retention weighs by it.
CREATE TABLE memory_uses (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    uses INTEGER NOT NULL DEFAULT 0,
    used_at INTEGER NOT NULL,
    restored_at INTEGER,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

-- What retention took out of the database; the content lies where artifacts do.
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

-- Which memories are in which archive. One that is erased is marked first, and then the archive is written anew.
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

-- Keys that encrypt content, each wrapped by a master key that is never here.
CREATE TABLE data_keys (
    id TEXT NOT NULL PRIMARY KEY,
    namespace TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    master_key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    retired_at INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX data_keys_one_current ON data_keys (namespace) WHERE retired_at IS NULL;

-- What changed, never the content: erasing an entity leaves nothing of it here. Rows are never deleted,
-- so a position is never used twice. Most rows are events and state: looking for those needs no index.
-- `owner` is the first two segments of the namespace, as in user:alice, so that a prefix is found by equality.
CREATE TABLE journal (
    position INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT,
    entity TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    version INTEGER,
    namespace TEXT,
    user_id TEXT,
    session_id TEXT,
    task_id TEXT,
    payload TEXT NOT NULL DEFAULT '{}',
    owner TEXT GENERATED ALWAYS AS (
        substr(namespace, 1,
            instr(namespace, ':') + instr(substr(namespace, instr(namespace, ':') + 1) || ':', ':') - 1)
    ) VIRTUAL
);
CREATE INDEX idx_journal_at ON journal (at, position);
CREATE INDEX idx_journal_entity ON journal (entity, position) WHERE entity NOT IN ('event', 'state');
CREATE INDEX idx_journal_owner ON journal (owner, position);
CREATE INDEX idx_journal_actor ON journal (actor, position) WHERE actor IS NOT NULL;
CREATE INDEX idx_journal_task ON journal (task_id, position) WHERE task_id IS NOT NULL;

CREATE TABLE consumers (
    name TEXT NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_until INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE seals (
    first_position INTEGER NOT NULL PRIMARY KEY,
    last_position INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    digest TEXT NOT NULL,
    keyed BOOLEAN NOT NULL,
    sealed_at INTEGER NOT NULL
);

CREATE TABLE mnemon_schema (version_num VARCHAR(32) NOT NULL, CONSTRAINT mnemon_schema_pkc PRIMARY KEY (version_num));
INSERT INTO mnemon_schema (version_num) VALUES ('0005');
