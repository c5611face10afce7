-- name: append
INSERT INTO journal (at, actor, entity, entity_id, operation, version, namespace, user_id, session_id, task_id, payload)
VALUES (:at, :actor, :entity, :entity_id, :operation, :version, :namespace, :user_id, :session_id, :task_id, :payload);

-- name: append_returning
INSERT INTO journal (at, actor, entity, entity_id, operation, version, namespace, user_id, session_id, task_id, payload)
VALUES (:at, :actor, :entity, :entity_id, :operation, :version, :namespace, :user_id, :session_id, :task_id, :payload)
RETURNING position;

-- name: read
-- The entries after a position that are safe to tail: no entry at or below them can still appear.
SELECT position, at, actor, entity, entity_id, operation, version, namespace, user_id, session_id, task_id, payload
FROM journal WHERE position > :after AND position <= :horizon{where}
ORDER BY position
LIMIT :limit;

-- name: read_backwards
-- The newest entries first, below a position.
SELECT position, at, actor, entity, entity_id, operation, version, namespace, user_id, session_id, task_id, payload
FROM journal WHERE position < :before{where}
ORDER BY position DESC
LIMIT :limit;

-- name: count_after
SELECT COUNT(*) FROM journal WHERE position > :after;

-- name: last_position
SELECT position FROM journal WHERE position > 0 ORDER BY position DESC LIMIT 1;

-- name: ensure_consumer
INSERT INTO consumers (name, position, updated_at) VALUES (:name, :position, :now)
ON CONFLICT (name) DO NOTHING;

-- name: take_lease
-- Take or renew the lease of a consumer that is free, run out, or one's own already.
UPDATE consumers SET lease_owner = :owner, lease_until = :until, updated_at = :now
WHERE name = :name AND (lease_owner = :owner OR lease_until < :now)
RETURNING position;

-- name: advance_consumer
-- Move on, only from where the batch began and only while the lease is one's own; keep the lease, or let it go.
UPDATE consumers SET position = :position, lease_owner = :keeper, lease_until = :until, updated_at = :now
WHERE name = :name AND lease_owner = :owner AND position = :was;

-- name: rewind_consumer
UPDATE consumers SET position = :position, lease_owner = NULL, lease_until = 0, updated_at = :now
WHERE name = :name;

-- name: release_lease
UPDATE consumers SET lease_owner = NULL, lease_until = 0, updated_at = :now
WHERE name = :name AND lease_owner = :owner;

-- name: get_consumer
SELECT name, position, lease_owner, lease_until, updated_at FROM consumers WHERE name = :name;

-- name: list_consumers
SELECT name, position, lease_owner, lease_until, updated_at FROM consumers WHERE name >= '' ORDER BY name;

-- name: delete_consumer
DELETE FROM consumers WHERE name = :name;

-- name: end_consumer
DELETE FROM consumers WHERE name = :name AND lease_owner = :owner;

-- name: insert_seal
-- Two that seal at once begin at the same position, so only one of them succeeds.
INSERT INTO seals (last_position, first_position, entries, digest, keyed, sealed_at)
VALUES (:last, :first, :entries, :digest, :keyed, :now)
ON CONFLICT (first_position) DO NOTHING;

-- name: last_seal
SELECT last_position, first_position, entries, digest, keyed FROM seals
WHERE first_position > 0 ORDER BY first_position DESC LIMIT 1;

-- name: seals_after
SELECT last_position, first_position, entries, digest, keyed FROM seals
WHERE first_position > :after ORDER BY first_position LIMIT :limit;

-- name: entries_between
SELECT position, at, actor, entity, entity_id, operation, version, namespace, user_id, session_id, task_id, payload
FROM journal WHERE position >= :first AND position <= :last ORDER BY position;

-- name: read_period
-- The newest entries of a period first; the cursor is (at, position).
SELECT position, at, actor, entity, entity_id, operation, version, namespace, user_id, session_id, task_id, payload
FROM journal WHERE at >= :since AND at < :until AND (at, position) < (:before_at, :before){where}
ORDER BY at DESC, position DESC
LIMIT :limit;
