-- name: footprints
-- Every version of every memory between two bounds, with what is told of it; purged ones have no namespace.
SELECT memory_entries.namespace, memory_entries.key, memory_entries.version, memory_entries.memory_type,
       {size}, memory_entries.updated_at,
       memory_entries.importance,
       CASE WHEN memory_entries.metadata LIKE '%"pinned"%' OR memory_entries.metadata LIKE '%"stands_for"%'
              OR (memory_entries.is_current = TRUE AND SUBSTR(memory_entries.metadata, 1, 1) = '"')
            THEN memory_entries.metadata ELSE '{}' END,
       memory_uses.uses, memory_uses.used_at, memory_uses.restored_at
FROM memory_entries LEFT JOIN memory_uses
  ON memory_uses.namespace = memory_entries.namespace AND memory_uses.key = memory_entries.key
WHERE memory_entries.namespace < :end
  AND (memory_entries.namespace, memory_entries.key, memory_entries.version) > (:namespace, :key, :version){where}
ORDER BY memory_entries.namespace, memory_entries.key, memory_entries.version
LIMIT :limit;

-- name: consolidated_episodes
SELECT id, namespace, {size},
       CASE WHEN metadata LIKE '%"pinned"%' OR SUBSTR(metadata, 1, 1) = '"' THEN metadata ELSE '{}' END,
       COALESCE(consolidated_at, ended_at), restored_at
FROM episodes WHERE status = 'consolidated' AND id > :after{where} ORDER BY id LIMIT :limit;

-- name: restore_episode
INSERT INTO episodes
    (id, namespace, kind, session_id, task_id, title, body, participants, offers, outcome, metadata, status, attempts,
     error, claimed_until, started_at, ended_at, created_by, created_at, consolidated_at, restored_at)
VALUES
    (:id, :namespace, :kind, :session_id, :task_id, :title, :body, :participants, :offers, :outcome, :metadata, :status,
     :attempts, :error, :claimed_until, :started_at, :ended_at, :created_by, :created_at, :consolidated_at, :restored_at);

-- name: stand_in
-- The version stands for those after it that are gone. A first version there must be: writers look for that.
UPDATE memory_entries SET value = :value, metadata = :metadata, is_deleted = :is_deleted WHERE id = :id;

-- name: restore_version
INSERT INTO memory_entries
    (namespace, key, value, memory_type, version, is_deleted, is_current, metadata, created_by, updated_by, task_id,
     created_at, updated_at, session_id, event_id, author, trust, importance, thread, position,
     occurred_at, valid_from, valid_to)
VALUES
    (:namespace, :key, :value, :memory_type, :version, :is_deleted, :is_current, :metadata, :created_by, :updated_by,
     :task_id, :created_at, :updated_at, :session_id, :event_id, :author, :trust, :importance, :thread, :position,
     :occurred_at, :valid_from, :valid_to)
RETURNING id;

-- name: count_use
INSERT INTO memory_uses (namespace, key, uses, used_at) VALUES (:namespace, :key, :uses, :used_at)
ON CONFLICT (namespace, key) DO UPDATE
SET uses = memory_uses.uses + excluded.uses,
    used_at = CASE WHEN excluded.used_at > memory_uses.used_at THEN excluded.used_at ELSE memory_uses.used_at END;

-- name: note_restored
INSERT INTO memory_uses (namespace, key, uses, used_at, restored_at) VALUES (:namespace, :key, 0, :now, :now)
ON CONFLICT (namespace, key) DO UPDATE SET restored_at = excluded.restored_at;

-- name: forget_uses
DELETE FROM memory_uses WHERE namespace = :namespace AND key = :key;

-- name: insert_archive
INSERT INTO archives (kind, namespace, policy, sha256, size, memories, versions, first_at, last_at, created_at)
VALUES (:kind, :namespace, :policy, :sha256, :size, :memories, :versions, :first_at, :last_at, :created_at)
RETURNING id;

-- name: get_archive
SELECT {columns} FROM archives WHERE id = :id{where}{lock};

-- name: list_archives
-- Not those of which nothing is left and that are about to go.
SELECT {columns} FROM archives WHERE id > :after AND sha256 <> ''{where} ORDER BY id LIMIT :limit;

-- name: give_up_episodes
-- Those of which nothing can be restored any more; the content that each had is still to be removed.
UPDATE archives SET sha256 = '', size = 0, replaced = sha256
WHERE sha256 <> '' AND id IN (
    SELECT id FROM archives WHERE kind = 'episodes' AND sha256 <> ''{where} LIMIT :limit
)
RETURNING id, namespace, memories, restored_at;

-- name: given_up
SELECT {columns} FROM archives WHERE kind = 'episodes' AND sha256 = '' AND id > :after{where} ORDER BY id LIMIT :limit;

-- name: set_restored
UPDATE archives SET restored_at = :now WHERE id = :id;

-- name: rewrite_archive
-- Only as it was when it was read. The content that it had is still to be removed.
UPDATE archives SET sha256 = :sha256, size = :size, memories = :memories, versions = :versions, replaced = :was
WHERE id = :id AND sha256 = :was AND replaced IS NULL;

-- name: forget_replaced
UPDATE archives SET replaced = NULL WHERE id = :id AND replaced = :replaced;

-- name: delete_archive
DELETE FROM archives WHERE id = :id;

-- name: insert_archived
INSERT INTO archived_memories (archive_id, namespace, key) VALUES (:archive_id, :namespace, :key);

-- name: get_archived
-- Whether a memory is still to be had from an archive.
SELECT 1 FROM archived_memories
WHERE namespace = :namespace AND key = :key AND archive_id = :archive_id AND erased_at IS NULL{lock};

-- name: mark_erased
UPDATE archived_memories SET erased_at = :now
WHERE namespace = :namespace AND key = :key AND erased_at IS NULL
RETURNING archive_id;

-- name: archived_places
SELECT DISTINCT namespace, key FROM archived_memories WHERE erased_at IS NULL{where}
ORDER BY namespace, key LIMIT :limit;

-- name: count_archived
SELECT COUNT(*) FROM archived_memories WHERE archive_id = :id AND erased_at IS NULL;

-- name: erased_in
SELECT namespace, key FROM archived_memories WHERE archive_id = :id AND erased_at IS NOT NULL;

-- name: forget_erased
DELETE FROM archived_memories
WHERE namespace = :namespace AND key = :key AND archive_id = :archive_id AND erased_at IS NOT NULL;

-- name: unfinished_erasures
SELECT DISTINCT archive_id FROM archived_memories
WHERE erased_at IS NOT NULL AND archive_id > :after ORDER BY archive_id LIMIT :limit;

-- name: last_run
-- When the policies were last applied to everything.
SELECT at FROM journal WHERE entity = 'retention' AND entity NOT IN ('event', 'state') ORDER BY position DESC LIMIT 1;

-- name: first_change
SELECT at FROM journal WHERE position > 0 ORDER BY position LIMIT 1;

-- name: orphaned_vectors
-- Vectors of versions that are gone, or that were purged.
SELECT memory_vectors.space_id, memory_vectors.memory_id FROM memory_vectors
WHERE memory_vectors.space_id = :space_id AND memory_vectors.memory_id > :after AND NOT EXISTS (
    SELECT 1 FROM memory_entries WHERE memory_entries.id = memory_vectors.memory_id AND memory_entries.namespace > ''
)
ORDER BY memory_vectors.memory_id
LIMIT :limit;

-- name: delete_vector
-- Unless the version has come back.
DELETE FROM memory_vectors WHERE space_id = :space_id AND memory_id = :memory_id AND NOT EXISTS (
    SELECT 1 FROM memory_entries WHERE memory_entries.id = memory_vectors.memory_id AND memory_entries.namespace > ''
);

-- name: orphaned_uses
SELECT namespace, key FROM memory_uses
WHERE (namespace, key) > (:namespace, :key) AND NOT EXISTS (
    SELECT 1 FROM memory_entries
    WHERE memory_entries.namespace = memory_uses.namespace AND memory_entries.key = memory_uses.key
)
ORDER BY namespace, key
LIMIT :limit;

-- name: insert_growth
INSERT INTO growth (at, bytes, detail) VALUES (:at, :bytes, :detail)
ON CONFLICT (at) DO UPDATE SET bytes = excluded.bytes, detail = excluded.detail;

-- name: trim_growth
DELETE FROM growth WHERE at < :before;

-- name: list_growth
SELECT at, bytes, detail FROM growth WHERE at >= :since ORDER BY at DESC LIMIT :limit;

-- name: content_size
-- What lies outside the database, each content once.
SELECT CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM (
    SELECT sha256, size FROM artifacts WHERE sha256 > ''
    UNION SELECT sha256, size FROM workspace_files WHERE sha256 > ''
    UNION SELECT sha256, size FROM archives WHERE sha256 > ''
) AS places;

-- name: count_memories
SELECT COUNT(*) FROM memory_entries WHERE namespace > '' AND is_current = TRUE AND is_deleted = FALSE;
