-- name: candidates
-- What ranking needs to know of live memories, and the words that they are indexed with.
SELECT memory_entries.id, memory_entries.namespace, memory_entries.thread, memory_entries.position,
       memory_entries.author, memory_entries.occurred_at, memory_entries.updated_at, memory_entries.trust,
       memory_entries.importance, COALESCE(memory_texts.words, '')
FROM memory_entries LEFT JOIN memory_texts ON memory_texts.memory_id = memory_entries.id
WHERE memory_entries.is_current = TRUE AND memory_entries.is_deleted = FALSE{where};

-- name: neighbours
-- The live memories at certain places of threads.
WITH places (thread, first, last) AS (VALUES {places})
SELECT memory_entries.id
FROM places JOIN memory_entries
  ON memory_entries.thread = places.thread AND memory_entries.position >= places.first
 AND memory_entries.position <= places.last
WHERE memory_entries.thread IS NOT NULL
  AND memory_entries.is_current = TRUE AND memory_entries.is_deleted = FALSE{where};

-- name: recent
-- The live memories that were changed last; `changed` are conditions on the journal.
SELECT memory_entries.id
FROM (
    SELECT namespace, entity_id FROM journal
    WHERE position > 0{changed}
    ORDER BY position DESC LIMIT :limit
) AS changes JOIN memory_entries
  ON memory_entries.namespace = changes.namespace AND memory_entries.key = changes.entity_id
WHERE memory_entries.is_current = TRUE AND memory_entries.is_deleted = FALSE{where};

-- name: hydrate
-- Whole memories, if they are still live.
SELECT {columns} FROM memory_entries
WHERE is_current = TRUE AND is_deleted = FALSE{where};

-- name: hydrate_past
-- Whole versions, current or not.
SELECT {columns} FROM memory_entries
WHERE is_deleted = FALSE{where};

-- name: valid_then
-- What held at a moment: of each key the newest version that says something about it, unless that is a deletion.
SELECT {columns} FROM memory_entries
WHERE is_deleted = FALSE AND valid_from <= :as_of AND (valid_to IS NULL OR valid_to > :as_of)
  AND NOT EXISTS (
    SELECT 1 FROM memory_entries AS later
    WHERE later.namespace = memory_entries.namespace AND later.key = memory_entries.key
      AND later.version > memory_entries.version
      AND later.valid_from <= :as_of AND (later.valid_to IS NULL OR later.valid_to > :as_of)
  ){where}
ORDER BY namespace, key LIMIT :limit;
