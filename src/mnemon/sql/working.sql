-- name: at_buffer
-- A session, and where one of its buffers stands in the journal; NULL if there is no such buffer.
SELECT id, app_name, user_id, project_id, status, metadata, version, event_count, archived_count,
       created_at, last_update_time, terminated_at, archived_at,
       (SELECT position FROM working_buffers WHERE session_id = sessions.id AND name = :name)
FROM sessions WHERE id = :id{where};

-- name: at_pad
-- The same for a scratchpad.
SELECT id, app_name, user_id, project_id, status, metadata, version, event_count, archived_count,
       created_at, last_update_time, terminated_at, archived_at,
       (SELECT position FROM scratchpads WHERE session_id = sessions.id AND name = :name)
FROM sessions WHERE id = :id{where};

-- name: grow_buffer
-- Make room for items after the last; the buffer is the transaction's alone from here to its end.
INSERT INTO working_buffers (session_id, name, sequence, updated_at) VALUES (:session_id, :name, :count, :now)
ON CONFLICT (session_id, name) DO UPDATE
SET sequence = working_buffers.sequence + excluded.sequence, updated_at = excluded.updated_at
RETURNING sequence, position;

-- name: get_buffer
SELECT sequence, position FROM working_buffers WHERE session_id = :session_id AND name = :name{lock};

-- name: move_buffer
-- The buffer stands at this position now; whether anything is in it is looked at again.
UPDATE working_buffers SET position = :position, has_items = EXISTS (
    SELECT 1 FROM working_items WHERE session_id = :session_id AND buffer = :name)
WHERE session_id = :session_id AND name = :name;

-- name: list_buffers
SELECT name, (SELECT COUNT(*) FROM working_items WHERE session_id = working_buffers.session_id
                  AND buffer = working_buffers.name AND (expires_at IS NULL OR expires_at > :now)),
       (SELECT COALESCE(SUM(tokens), 0) FROM working_items WHERE session_id = working_buffers.session_id
            AND buffer = working_buffers.name AND (expires_at IS NULL OR expires_at > :now)),
       sequence, updated_at
FROM working_buffers WHERE session_id = :session_id
ORDER BY name;

-- name: insert_item
INSERT INTO working_items (session_id, buffer, sequence, body, tokens, created_by, created_at, expires_at)
VALUES (:session_id, :name, :sequence, :body, :tokens, :created_by, :created_at, :expires_at);

-- name: newest_items
SELECT sequence, body, tokens, created_by, created_at, expires_at FROM working_items
WHERE session_id = :session_id AND buffer = :name AND (expires_at IS NULL OR expires_at > :now)
ORDER BY sequence DESC
LIMIT :limit;

-- name: free_items
-- The oldest items that nobody is at.
SELECT sequence, body, tokens, created_by, created_at, expires_at FROM working_items
WHERE session_id = :session_id AND buffer = :name AND claimed_until <= :now
    AND (expires_at IS NULL OR expires_at > :now)
ORDER BY sequence
LIMIT :limit;

-- name: claim_items
UPDATE working_items SET claim = :claim, claimed_until = :until
WHERE session_id = :session_id AND buffer = :name{where};

-- name: remove_claimed
DELETE FROM working_items
WHERE claim = :claim AND session_id = :session_id AND buffer = :name
RETURNING sequence;

-- name: release_claimed
UPDATE working_items SET claim = NULL, claimed_until = 0
WHERE claim = :claim AND session_id = :session_id AND buffer = :name;

-- name: remove_items
DELETE FROM working_items
WHERE session_id = :session_id AND buffer = :name{where};

-- name: expired_items
-- Where items have expired, unless a worker is at those.
SELECT session_id, buffer FROM working_items WHERE expires_at <= :now AND claimed_until <= :now
ORDER BY expires_at
LIMIT :limit;

-- name: prune_items
DELETE FROM working_items
WHERE session_id = :session_id AND buffer = :name AND expires_at <= :now AND claimed_until <= :now;

-- name: get_pad
SELECT name, value, version, updated_by, updated_at, expires_at, position
FROM scratchpads WHERE session_id = :session_id AND name = :name;

-- name: hold_pad
-- The version that a scratchpad has, deleted or not.
SELECT version FROM scratchpads WHERE session_id = :session_id AND name = :name{lock};

-- name: list_pads
SELECT name, value, version, updated_by, updated_at, expires_at, position FROM scratchpads
WHERE session_id = :session_id AND name > :after AND value IS NOT NULL AND (expires_at IS NULL OR expires_at > :now)
ORDER BY name
LIMIT :limit;

-- name: set_pad
INSERT INTO scratchpads (session_id, name, value, updated_by, updated_at, expires_at)
VALUES (:session_id, :name, :value, :updated_by, :now, :expires_at)
ON CONFLICT (session_id, name) DO UPDATE
SET value = excluded.value, version = scratchpads.version + 1, updated_by = excluded.updated_by,
    updated_at = excluded.updated_at, expires_at = excluded.expires_at
RETURNING version, position;

-- name: create_pad
-- Only where there is none: what was deleted or has expired does not count.
INSERT INTO scratchpads (session_id, name, value, updated_by, updated_at, expires_at)
VALUES (:session_id, :name, :value, :updated_by, :now, :expires_at)
ON CONFLICT (session_id, name) DO UPDATE
SET value = excluded.value, version = scratchpads.version + 1, updated_by = excluded.updated_by,
    updated_at = excluded.updated_at, expires_at = excluded.expires_at
WHERE scratchpads.value IS NULL OR scratchpads.expires_at <= :now
RETURNING version, position;

-- name: replace_pad
UPDATE scratchpads SET value = :value, version = version + 1, updated_by = :updated_by, updated_at = :now,
    expires_at = :expires_at
WHERE session_id = :session_id AND name = :name AND version = :expected
    AND value IS NOT NULL AND (expires_at IS NULL OR expires_at > :now)
RETURNING version, position;

-- name: delete_pad
-- The row stays with its version for a while, so that whoever holds an older one is told.
UPDATE scratchpads SET value = NULL, version = version + 1, updated_by = :updated_by, updated_at = :now,
    expires_at = :later
WHERE session_id = :session_id AND name = :name AND value IS NOT NULL AND (expires_at IS NULL OR expires_at > :now){where}
RETURNING version, position;

-- name: move_pad
UPDATE scratchpads SET position = :position WHERE session_id = :session_id AND name = :name;

-- name: expired_pads
-- Whether there are any.
SELECT 1 FROM scratchpads WHERE expires_at <= :now LIMIT 1;

-- name: prune_pads
-- What has expired loses its value, and its row later.
UPDATE scratchpads SET value = NULL, expires_at = :later WHERE expires_at <= :now AND value IS NOT NULL;

-- name: forget_pads
DELETE FROM scratchpads WHERE expires_at <= :now AND value IS NULL;

-- name: waiting_buffers
-- Buffers with items that nobody is at, those that were left alone for longest first.
SELECT session_id, name, sequence, updated_at FROM working_buffers
WHERE has_items = TRUE AND updated_at <= :before AND EXISTS (
    SELECT 1 FROM working_items WHERE session_id = working_buffers.session_id AND buffer = working_buffers.name
        AND claimed_until <= :now AND (expires_at IS NULL OR expires_at > :now))
ORDER BY updated_at, session_id, name
LIMIT :limit;
