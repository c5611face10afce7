-- name: sessions_named
SELECT id, app_name, user_id, project_id, created_at, event_count FROM sessions WHERE TRUE{where};

-- name: events_at
-- Events of the log by their places in it.
SELECT session_id, sequence, id, body, actor, task_id, created_at FROM events WHERE TRUE{where};

-- name: archived_events_at
SELECT session_id, sequence, id, body, actor, task_id, created_at FROM archived_events WHERE TRUE{where};

-- name: deleted_events
-- Which memories of events somebody has deleted, while the events are still there.
SELECT namespace, key, occurred_at FROM memory_entries
WHERE is_current = TRUE AND is_deleted = TRUE AND event_id IS NOT NULL{where};

-- name: left_over_events
-- Live memories of events that are not in the log: of a session that is gone, or that is another than it was.
SELECT namespace, key FROM memory_entries
WHERE namespace = :namespace AND key > :first AND key < :end
  AND is_current = TRUE AND is_deleted = FALSE AND thread = :thread
  AND (occurred_at < :created_at OR position > :event_count)
ORDER BY key
LIMIT :limit;

-- name: versions_written
-- The versions that the changes of a stretch of the journal wrote, as far as they say something still.
SELECT memory_entries.id, memory_entries.namespace, memory_entries.key, memory_entries.version,
       memory_entries.is_current
FROM journal JOIN memory_entries
  ON memory_entries.namespace = journal.namespace AND memory_entries.key = journal.entity_id
 AND memory_entries.version = journal.version
WHERE journal.position >= :first AND journal.position <= :last
  AND journal.entity = 'memory' AND journal.entity NOT IN ('event', 'state')
  AND memory_entries.is_deleted = FALSE;

-- name: vectors_present
SELECT memory_id, space_id FROM memory_vectors WHERE TRUE{where};

-- name: values_of
SELECT id, value FROM memory_entries WHERE is_deleted = FALSE{where};

-- name: hold_versions
-- Which of some versions still say something, kept from change until the transaction ends; and how that begins.
SELECT id, is_current, SUBSTR(value, 1, 20) FROM memory_entries WHERE is_deleted = FALSE{where} ORDER BY id{lock};

-- name: count_changes
-- How many changes of memories there are after a position.
SELECT COUNT(*) FROM journal
WHERE position > :after AND entity = 'memory' AND entity NOT IN ('event', 'state');

-- name: count_written
-- How many versions were written between two positions.
SELECT COUNT(*) FROM journal
WHERE position > :after AND position <= :last AND entity = 'memory' AND entity NOT IN ('event', 'state')
  AND operation IN ('add', 'update', 'restore');

-- name: changed_after
-- Which memories, of those with certain keys, changed after a position.
SELECT DISTINCT namespace, entity_id FROM journal
WHERE position > :after AND entity = 'memory' AND entity NOT IN ('event', 'state'){where};

-- name: purged_after
SELECT DISTINCT namespace, entity_id FROM journal
WHERE position > :after AND entity = 'memory' AND entity NOT IN ('event', 'state') AND operation = 'purge';

-- name: live_at
-- Live memories by namespace and key.
SELECT id, namespace, key, version, memory_type, metadata, trust FROM memory_entries
WHERE is_current = TRUE AND is_deleted = FALSE{where};

-- name: live_after
-- Live memories that have a vector in a space, a page at a time.
SELECT memory_entries.id, memory_entries.namespace, memory_entries.key
FROM memory_entries JOIN memory_vectors
  ON memory_vectors.memory_id = memory_entries.id AND memory_vectors.space_id = :space_id
WHERE memory_entries.id > :after AND memory_entries.is_current = TRUE AND memory_entries.is_deleted = FALSE
ORDER BY memory_entries.id
LIMIT :limit;

-- name: count_live
SELECT COUNT(*) FROM memory_vectors JOIN memory_entries ON memory_entries.id = memory_vectors.memory_id
WHERE memory_vectors.space_id = :space_id
  AND memory_entries.is_current = TRUE AND memory_entries.is_deleted = FALSE;

-- name: places_of
-- Where versions belong, and whether they are to be found.
SELECT id, namespace, key, is_current, is_deleted FROM memory_entries WHERE TRUE{where};

-- name: tail
-- The memories that were changed after what a consumer has handled.
SELECT DISTINCT namespace, entity_id FROM journal
WHERE position > coalesce((SELECT position FROM consumers WHERE name = :consumer), 0)
  AND entity = 'memory' AND entity NOT IN ('event', 'state')
LIMIT :limit;

-- name: count_tail
-- How many changes of memories a consumer has not handled.
SELECT COUNT(*) FROM journal
WHERE position > coalesce((SELECT position FROM consumers WHERE name = :consumer), 0)
  AND entity = 'memory' AND entity NOT IN ('event', 'state');

-- name: checked
-- Which of some versions are live and in scope.
SELECT id FROM memory_entries WHERE TRUE{where};

-- name: fed_stores
-- The consumers that feed, or have fed, vector stores outside the database.
SELECT name FROM consumers WHERE name >= 'store:' AND name < 'store;' ORDER BY name;

-- name: retirements
-- Which vector spaces were retired, when, and of which model they were; the last time comes last.
SELECT entity_id, at, payload FROM journal
WHERE entity = 'space' AND entity NOT IN ('event', 'state') AND operation = 'retire'
ORDER BY position;

-- name: matched
-- What is told of memories that a vector was near to.
SELECT id, namespace, key, value, metadata, version FROM memory_entries
WHERE is_current = TRUE AND is_deleted = FALSE{where};
