"""Sessions with their logs, state and tasks; the journal, its consumers and its seals."""

from alembic import op

from mnemon.backends.migrations import execute_script

revision = "0001"
down_revision = None

UP = """
CREATE TABLE sessions (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    app_name TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    project_id TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL DEFAULT 'created',
    metadata TEXT NOT NULL DEFAULT '{}',
    version BIGINT NOT NULL DEFAULT 1,
    event_count BIGINT NOT NULL DEFAULT 0,
    archived_count BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    last_update_time BIGINT NOT NULL,
    terminated_at BIGINT,
    archived_at BIGINT,
    CHECK (status IN ('created', 'active', 'paused', 'terminated', 'archived')),
    CHECK (metadata IS JSON),
    CHECK (version > 0)
);
CREATE INDEX idx_sessions_status_updated ON sessions (status, last_update_time);
CREATE INDEX idx_sessions_user_created ON sessions (user_id, created_at, id);
CREATE INDEX idx_sessions_project_id ON sessions (project_id, created_at, id) WHERE project_id IS NOT NULL;
CREATE INDEX idx_sessions_app_user ON sessions (app_name, user_id, created_at, id);
CREATE INDEX idx_sessions_app_created ON sessions (app_name, created_at, id);
CREATE INDEX idx_sessions_created ON sessions (created_at, id);

-- An event that was given no id is known by its session and sequence alone: one index less to write.
CREATE TABLE events (
    session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    sequence BIGINT NOT NULL,
    id TEXT COLLATE "C",
    body TEXT NOT NULL,
    state_delta TEXT,
    actor TEXT COLLATE "C",
    task_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, sequence),
    CHECK (body IS JSON),
    CHECK (state_delta IS NULL OR state_delta IS JSON),
    CHECK (sequence > 0)
);
CREATE UNIQUE INDEX idx_events_id ON events (session_id, id) WHERE id IS NOT NULL;

CREATE TABLE archived_events (
    session_id TEXT COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    sequence BIGINT NOT NULL,
    id TEXT COLLATE "C",
    body TEXT NOT NULL,
    state_delta TEXT,
    actor TEXT COLLATE "C",
    task_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, sequence),
    CHECK (body IS JSON),
    CHECK (state_delta IS NULL OR state_delta IS JSON),
    CHECK (sequence > 0)
);
CREATE UNIQUE INDEX idx_archived_events_id ON archived_events (session_id, id) WHERE id IS NOT NULL;

-- A deleted key stays as a row without a value, so that its version never goes back.
CREATE TABLE state (
    namespace TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value TEXT,
    version BIGINT NOT NULL DEFAULT 1,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, key),
    CHECK (value IS NULL OR value IS JSON),
    CHECK (version > 0)
);

CREATE TABLE tasks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    session_id TEXT COLLATE "C" REFERENCES sessions (id) ON DELETE SET NULL,
    parent_id TEXT COLLATE "C" REFERENCES tasks (id) ON DELETE SET NULL,
    name TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL DEFAULT 'pending',
    input TEXT NOT NULL DEFAULT 'null',
    result TEXT NOT NULL DEFAULT 'null',
    error TEXT,
    version BIGINT NOT NULL DEFAULT 1,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CHECK (status IN ('pending', 'running', 'completed', 'failed', 'cancelled')),
    CHECK (input IS JSON),
    CHECK (result IS JSON),
    CHECK (version > 0)
);
CREATE INDEX idx_tasks_session ON tasks (session_id, created_at, id);
CREATE INDEX idx_tasks_parent ON tasks (parent_id, created_at, id);
CREATE INDEX idx_tasks_status ON tasks (status, created_at, id);
CREATE INDEX idx_tasks_created ON tasks (created_at, id);

-- A sequence hands out positions before their transactions commit. So that a reader knows which may still appear,
-- a transaction first takes a shared advisory lock on the last position handed out before its own, and holds it
-- to its end. The lock's key is 01, 14 bits of the sequence's oid, and 48 bits of the position.
CREATE SEQUENCE journal_position;

CREATE FUNCTION mnemon_next_position(sequence REGCLASS) RETURNS BIGINT
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('mnemon.holds', TRUE) IS DISTINCT FROM sequence::oid::text THEN
        PERFORM pg_advisory_xact_lock_shared(
            ((16384 | (sequence::oid::bigint & 16383)) << 48) | coalesce(pg_sequence_last_value(sequence), 0));
        PERFORM set_config('mnemon.holds', sequence::oid::text, TRUE);
    END IF;
    RETURN nextval(sequence);
END
$$;

-- Whoever got a position up to `last` had taken its lock before. If the lock is gone, the transaction is over, and
-- the next snapshot sees what it committed: locks are released after that. So `last` must be read before the locks.
CREATE FUNCTION mnemon_horizon(sequence REGCLASS) RETURNS BIGINT
LANGUAGE plpgsql AS $$
DECLARE
    last BIGINT := coalesce(pg_sequence_last_value(sequence), 0);
    held BIGINT;
BEGIN
    SELECT min(((classid::bigint & 65535) << 32) | objid::bigint) INTO held FROM pg_locks
    WHERE locktype = 'advisory' AND mode = 'ShareLock' AND objsubid = 1
      AND (classid::bigint >> 16) = (16384 | (sequence::oid::bigint & 16383))
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
    RETURN least(last, held);
END
$$;

-- What changed, never the content: erasing an entity leaves nothing of it here. Rows are never deleted.
-- Most rows are events and state: looking for those needs no index.
CREATE TABLE journal (
    position BIGINT NOT NULL PRIMARY KEY DEFAULT mnemon_next_position('journal_position'),
    at BIGINT NOT NULL,
    actor TEXT COLLATE "C",
    entity TEXT COLLATE "C" NOT NULL,
    entity_id TEXT COLLATE "C" NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    version BIGINT,
    namespace TEXT COLLATE "C",
    user_id TEXT COLLATE "C",
    session_id TEXT COLLATE "C",
    task_id TEXT COLLATE "C",
    payload TEXT NOT NULL DEFAULT '{}',
    owner TEXT COLLATE "C" GENERATED ALWAYS AS (
        split_part(namespace, ':', 1) || ':' || split_part(namespace, ':', 2)
    ) STORED
);
ALTER SEQUENCE journal_position OWNED BY journal.position;
CREATE INDEX idx_journal_at ON journal (at, position);
CREATE INDEX idx_journal_entity ON journal (entity, position) WHERE entity NOT IN ('event', 'state');
CREATE INDEX idx_journal_owner ON journal (owner, position);
CREATE INDEX idx_journal_actor ON journal (actor, position) WHERE actor IS NOT NULL;
CREATE INDEX idx_journal_task ON journal (task_id, position) WHERE task_id IS NOT NULL;

CREATE TABLE consumers (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL DEFAULT 0,
    lease_owner TEXT COLLATE "C",
    lease_until BIGINT NOT NULL DEFAULT 0,
    updated_at BIGINT NOT NULL
);

CREATE TABLE seals (
    first_position BIGINT NOT NULL PRIMARY KEY,
    last_position BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    digest TEXT NOT NULL,
    keyed BOOLEAN NOT NULL,
    sealed_at BIGINT NOT NULL
);
"""

DOWN = """
DROP TABLE seals;
DROP TABLE consumers;
DROP TABLE journal;
DROP TABLE tasks;
DROP TABLE state;
DROP TABLE archived_events;
DROP TABLE events;
DROP TABLE sessions;
DROP FUNCTION mnemon_next_position(REGCLASS);
DROP FUNCTION mnemon_horizon(REGCLASS);
"""


def upgrade() -> None:
    execute_script(op.get_bind(), UP)


def downgrade() -> None:
    execute_script(op.get_bind(), DOWN)
