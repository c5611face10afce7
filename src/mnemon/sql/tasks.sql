-- name: insert_task
INSERT INTO tasks (id, session_id, parent_id, name, input, result, created_at, updated_at)
VALUES (:id, :session_id, :parent_id, :name, :input, :result, :created_at, :updated_at)
ON CONFLICT (id) DO NOTHING;

-- name: get_task
SELECT id, session_id, parent_id, name, status, input, result, error, version, created_at, updated_at
FROM tasks WHERE id = :id{where}{lock};

-- name: set_task
UPDATE tasks SET status = :status, result = :result, error = :error, version = :version, updated_at = :updated_at
WHERE id = :id;

-- name: delete_task
DELETE FROM tasks WHERE id = :id;

-- name: list_tasks
-- Oldest first; the cursor is (created_at, id).
SELECT id, session_id, parent_id, name, status, input, result, error, version, created_at, updated_at
FROM tasks WHERE (created_at, id) > (:after, :after_id){where}
ORDER BY created_at, id
LIMIT :limit;
