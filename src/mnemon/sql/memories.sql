-- name: insert_memory
INSERT INTO memory_entries
    (namespace, key, value, memory_type, version, is_deleted, metadata, created_by, updated_by, task_id,
     created_at, updated_at, session_id, event_id, author, trust, importance, thread, position,
     occurred_at, valid_from, valid_to)
VALUES
    (:namespace, :key, :value, :memory_type, :version, :is_deleted, :metadata, :created_by, :updated_by, :task_id,
     :created_at, :updated_at, :session_id, :event_id, :author, :trust, :importance, :thread, :position,
     :occurred_at, :valid_from, :valid_to)
ON CONFLICT (namespace, key, version) DO NOTHING
RETURNING id;

-- name: latest_version
-- The newest version, which may be a deletion.
SELECT {columns} FROM memory_entries
WHERE namespace = :namespace AND key = :key
ORDER BY version DESC LIMIT 1{lock};

-- name: latest_live_version
-- The newest version that is not a deletion.
SELECT {columns} FROM memory_entries
WHERE namespace = :namespace AND key = :key AND is_deleted = FALSE
ORDER BY version DESC LIMIT 1;

-- name: get_current
SELECT {columns} FROM memory_entries
WHERE namespace = :namespace AND key = :key AND is_deleted = FALSE AND is_current = TRUE
ORDER BY version DESC LIMIT 1;

-- name: get_version
SELECT {columns} FROM memory_entries
WHERE namespace = :namespace AND key = :key AND version = :version;

-- name: get_as_of
-- The newest version that says something about that moment.
SELECT {columns} FROM memory_entries
WHERE namespace = :namespace AND key = :key
  AND valid_from <= :as_of AND (valid_to IS NULL OR valid_to > :as_of)
ORDER BY version DESC LIMIT 1;

-- name: history
SELECT {columns} FROM memory_entries
WHERE namespace = :namespace AND key = :key
ORDER BY version;

-- name: retire
-- The version is no longer the newest.
UPDATE memory_entries SET is_current = FALSE WHERE id = :id;

-- name: purge
-- Erase the content, and that it was here. The rows stay, empty and out of every query's reach: if they were
-- deleted, SQLite would move their neighbours between pages and leave copies of them where no purge can find them.
UPDATE memory_entries
SET namespace = '', key = CAST(id AS TEXT), value = 'null', metadata = '{}', is_deleted = TRUE, is_current = FALSE,
    created_by = NULL, updated_by = NULL, task_id = NULL, session_id = NULL, event_id = NULL, author = NULL,
    thread = NULL, position = NULL, occurred_at = NULL
WHERE namespace = :namespace AND key = :key{where};

-- name: search_exact
-- Live memories of one namespace, in key order; half of a prefix search.
SELECT {columns} FROM memory_entries
WHERE namespace = :namespace AND key > :after_key
  AND is_current = TRUE AND is_deleted = FALSE{where}
ORDER BY key LIMIT :limit;

-- name: search_below
-- Live memories of the namespaces between two bounds, in order of namespace and key.
SELECT {columns} FROM memory_entries
WHERE namespace >= :first AND namespace < :end AND (namespace, key) > (:after_namespace, :after_key)
  AND is_current = TRUE AND is_deleted = FALSE{where}
ORDER BY namespace, key LIMIT :limit;

-- name: search_recent
-- Live memories, the newest first; the cursor is (updated_at, id).
SELECT {columns} FROM memory_entries
WHERE (updated_at, id) < (:before, :before_id)
  AND is_current = TRUE AND is_deleted = FALSE{where}
ORDER BY updated_at DESC, id DESC LIMIT :limit;

-- name: search_thread
-- The live memories of a thread around a position.
SELECT {columns} FROM memory_entries
WHERE thread = :thread AND position >= :first AND position <= :last
  AND is_current = TRUE AND is_deleted = FALSE{where}
ORDER BY position, id LIMIT :limit;

-- name: list_places
-- Where there are memories, in order.
SELECT namespace, key FROM memory_entries WHERE is_current = TRUE{where} ORDER BY namespace, key LIMIT :limit;

-- name: next_namespace
-- The first namespace between two bounds: listing them hops from one to the next.
SELECT namespace FROM memory_entries
WHERE namespace > :after AND namespace < :end AND is_current = TRUE
ORDER BY namespace LIMIT 1;

-- name: count_namespace
SELECT COUNT(*) FROM memory_entries
WHERE namespace = :namespace AND is_current = TRUE AND is_deleted = FALSE;
