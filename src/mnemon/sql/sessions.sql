-- name: insert_session
-- A new session; nothing happens if the id is taken.
INSERT INTO sessions (id, app_name, user_id, project_id, metadata, created_at, last_update_time)
VALUES (:id, :app_name, :user_id, :project_id, :metadata, :now, :now)
ON CONFLICT (id) DO NOTHING;

-- name: get_session
SELECT id, app_name, user_id, project_id, status, metadata, version, event_count, archived_count,
       created_at, last_update_time, terminated_at, archived_at
FROM sessions WHERE id = :id{where}{lock};

-- name: touch_session
-- Every change of a session, its log or its own state comes with a new version.
UPDATE sessions SET version = :version, event_count = :event_count, status = :status, last_update_time = :now
WHERE id = :id;

-- name: set_terminated
UPDATE sessions SET terminated_at = :now WHERE id = :id;

-- name: set_archived
UPDATE sessions SET archived_at = :now WHERE id = :id;

-- name: set_metadata
UPDATE sessions SET metadata = :metadata WHERE id = :id;

-- name: delete_session
DELETE FROM sessions WHERE id = :id;

-- name: list_active
SELECT id, app_name, user_id, project_id, status, metadata, version, event_count, archived_count,
       created_at, last_update_time, terminated_at, archived_at
FROM sessions
WHERE status = 'active'{where}
ORDER BY last_update_time DESC
LIMIT :limit;

-- name: list_active_of_user
-- A user has few sessions beside all that are active: `coalesce` keeps the planner from the index on the status.
SELECT id, app_name, user_id, project_id, status, metadata, version, event_count, archived_count,
       created_at, last_update_time, terminated_at, archived_at
FROM sessions
WHERE user_id = :user_id AND coalesce(status, '') = 'active'{where}
ORDER BY last_update_time DESC
LIMIT :limit;

-- name: list_sessions
-- Newest first; the conditions name the index, the cursor is (created_at, id).
SELECT id, app_name, user_id, project_id, status, metadata, version, event_count, archived_count,
       created_at, last_update_time, terminated_at, archived_at
FROM sessions
WHERE (created_at, id) < (:before, :before_id){where}
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: insert_event
INSERT INTO events (session_id, sequence, id, body, state_delta, actor, task_id, created_at)
VALUES (:session_id, :sequence, :id, :body, :state_delta, :actor, :task_id, :now);

-- name: find_event
-- An event by its id, archived or not.
SELECT sequence, id, body, state_delta, actor, task_id, created_at
FROM events WHERE session_id = :session_id AND id = :id
UNION ALL
SELECT sequence, id, body, state_delta, actor, task_id, created_at
FROM archived_events WHERE session_id = :session_id AND id = :id;

-- name: last_events
SELECT sequence, id, body, state_delta, actor, task_id, created_at
FROM events WHERE session_id = :session_id
ORDER BY sequence DESC
LIMIT :limit;

-- name: last_archived_events
SELECT sequence, id, body, state_delta, actor, task_id, created_at
FROM archived_events WHERE session_id = :session_id
ORDER BY sequence DESC
LIMIT :limit;

-- name: events_after
SELECT sequence, id, body, state_delta, actor, task_id, created_at
FROM events WHERE session_id = :session_id AND sequence > :after
ORDER BY sequence
LIMIT :limit;

-- name: archived_events_after
SELECT sequence, id, body, state_delta, actor, task_id, created_at
FROM archived_events WHERE session_id = :session_id AND sequence > :after
ORDER BY sequence
LIMIT :limit;

-- name: copy_to_archive
INSERT INTO archived_events (session_id, sequence, id, body, state_delta, actor, task_id, created_at)
SELECT session_id, sequence, id, body, state_delta, actor, task_id, created_at
FROM events WHERE session_id = :session_id AND sequence <= :last;

-- name: drop_archived
DELETE FROM events WHERE session_id = :session_id AND sequence <= :last;

-- name: set_archived_count
UPDATE sessions SET archived_count = :last WHERE id = :session_id;
