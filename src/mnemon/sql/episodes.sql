-- name: insert_episode
INSERT INTO episodes
    (namespace, kind, session_id, task_id, title, body, participants, offers, outcome, metadata, claimed_until,
     started_at, ended_at, created_by, created_at)
VALUES
    (:namespace, :kind, :session_id, :task_id, :title, :body, :participants, :offers, :outcome, :metadata, :created_at,
     :started_at, :ended_at, :created_by, :created_at)
RETURNING id;

-- name: fill_episode
-- What an episode tells, where it could not be written before its id was known.
UPDATE episodes SET title = :title, body = :body, participants = :participants, offers = :offers, outcome = :outcome,
    metadata = :metadata
WHERE id = :id;

-- name: get_episode
SELECT {columns} FROM episodes WHERE id = :id{where}{lock};

-- name: list_episodes
-- The newest first; the cursor is the id.
SELECT {columns} FROM episodes WHERE id < :before{where} ORDER BY id DESC LIMIT :limit;

-- name: list_below
-- The same for a part of the namespaces, of which there are few episodes: the plus keeps it from walking over all ids.
SELECT {columns} FROM episodes WHERE +id < :before{where} ORDER BY +id DESC LIMIT :limit;

-- name: count_episodes
SELECT status, COUNT(*) FROM episodes WHERE status IN ('pending', 'working', 'consolidated', 'failed'){where}
GROUP BY status;

-- name: delete_episode
DELETE FROM episodes WHERE id = :id;

-- name: erase_episodes
DELETE FROM episodes WHERE id IN (SELECT id FROM episodes WHERE 1 = 1{where} LIMIT :limit)
RETURNING id, namespace, session_id;

-- name: last_removal
-- What came last: that an episode was removed, or that the files were scrubbed of such.
SELECT operation FROM journal
WHERE entity = 'episode' AND entity NOT IN ('event', 'state') AND operation IN ('delete', 'purge', 'scrub')
ORDER BY position DESC
LIMIT 1;

-- name: failed_episodes
SELECT {columns} FROM episodes WHERE status = 'failed' AND id > :after{where} ORDER BY id LIMIT :limit{lock};

-- name: retry_episode
UPDATE episodes SET status = 'pending', attempts = 0, error = NULL, claim = NULL, claimed_until = :now WHERE id = :id;

-- name: due_episodes
-- Those that nobody is at and that are to be tried now, the one that waits for longest first.
SELECT {columns} FROM episodes
WHERE status <> 'consolidated' AND status <> 'failed' AND claimed_until <= :now{where}
ORDER BY claimed_until, id LIMIT :limit;

-- name: claim_episode
-- Nothing happens if another worker was quicker.
UPDATE episodes SET status = 'working', claim = :claim, claimed_until = :until, attempts = attempts + 1
WHERE id = :id AND status IN ('pending', 'working') AND claimed_until = :was
RETURNING attempts;

-- name: finish_episode
-- Nothing happens if the claim is another worker's now.
UPDATE episodes SET status = 'consolidated', claim = NULL, error = NULL, consolidated_at = :now
WHERE id = :id AND claim = :claim;

-- name: put_back
-- The same; the episode is tried again later, or never.
UPDATE episodes SET status = :status, claim = NULL, claimed_until = :until, error = :error, attempts = :attempts
WHERE id = :id AND claim = :claim;

-- name: ended_buffers
-- Buffers with items that nobody is at, of sessions that have ended since a moment.
SELECT working_buffers.session_id, working_buffers.name, working_buffers.sequence, working_buffers.updated_at
FROM sessions JOIN working_buffers ON working_buffers.session_id = sessions.id
WHERE sessions.status IN ('terminated', 'archived') AND sessions.last_update_time >= :since
    AND working_buffers.has_items = TRUE AND EXISTS (
        SELECT 1 FROM working_items
        WHERE working_items.session_id = working_buffers.session_id AND working_items.buffer = working_buffers.name
            AND claimed_until <= :now AND (expires_at IS NULL OR expires_at > :now))
ORDER BY sessions.last_update_time, working_buffers.session_id, working_buffers.name
LIMIT :limit;
