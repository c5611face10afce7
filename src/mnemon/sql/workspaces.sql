-- name: insert_workspace
INSERT INTO workspaces (id, namespace, metadata, revision, files, size, created_by, created_at, updated_at)
VALUES (:id, :namespace, :metadata, :revision, :files, :size, :created_by, :created_at, :updated_at)
ON CONFLICT (id) DO NOTHING;

-- name: get_workspace
SELECT {workspace}
FROM workspaces WHERE id = :id{where}{lock};

-- name: list_workspaces
SELECT {workspace}
FROM workspaces WHERE (namespace, id) > (:after, :after_id){where}
ORDER BY namespace, id
LIMIT :limit;

-- name: set_workspace
UPDATE workspaces SET metadata = :metadata, revision = :revision, files = :files, size = :size, updated_at = :updated_at
WHERE id = :id;

-- name: delete_workspace
DELETE FROM workspaces WHERE id = :id;

-- name: insert_file
INSERT INTO workspace_files
    (workspace_id, path, since, sha256, size, is_executable, metadata, updated_by, updated_at)
VALUES (:workspace_id, :path, :since, :sha256, :size, :is_executable, :metadata, :updated_by, :updated_at);

-- name: end_file
UPDATE workspace_files SET until = :until
WHERE workspace_id = :workspace_id AND path = :path AND until IS NULL;

-- name: present_files
-- Which of some paths are files now.
SELECT {file}
FROM workspace_files WHERE workspace_id = :workspace_id AND until IS NULL{where};

-- name: get_file
-- The version of a file that a revision has, or that began with one.
SELECT {file}
FROM workspace_files WHERE workspace_id = :workspace_id AND path = :path{where};

-- name: history
SELECT {file}
FROM workspace_files WHERE workspace_id = :workspace_id AND path = :path
ORDER BY since DESC
LIMIT :limit;

-- name: list_files
-- The files between two bounds, in order.
SELECT {file}
FROM workspace_files
WHERE workspace_id = :workspace_id AND path > :after AND path < :end{where}
ORDER BY path
LIMIT :limit;

-- name: begun
-- What a later revision has that an earlier one has not. An order would keep the planner from the index on `since`.
SELECT {file}
FROM workspace_files
WHERE workspace_id = :workspace_id AND since > :earlier AND since <= :later AND (until IS NULL OR until > :later);

-- name: ended
-- What an earlier revision has that a later one has not.
SELECT {file}
FROM workspace_files
WHERE workspace_id = :workspace_id AND until > :earlier AND until <= :later AND since <= :earlier;

-- name: clash_below
-- A file that began with the newest revision, and another one that lies below it as if it were a folder.
-- To ask here too that it is there now would keep SQLite from the index on `since`; the first in order, and not just
-- one, is asked for so that PostgreSQL looks it up rather than to join everything with everything.
SELECT path, inside FROM (
    SELECT above.path AS path, (
        SELECT below.path FROM workspace_files AS below
        WHERE below.workspace_id = :workspace_id AND below.until IS NULL
          AND below.path > above.path || '/' AND below.path < above.path || '0'
        ORDER BY below.path LIMIT 1
    ) AS inside
    FROM workspace_files AS above
    WHERE above.workspace_id = :workspace_id AND above.since = :since
) AS found
WHERE inside IS NOT NULL
LIMIT 1;

-- name: copy_files
INSERT INTO workspace_files
    (workspace_id, path, since, sha256, size, is_executable, metadata, updated_by, updated_at)
SELECT :clone_id, path, :since, sha256, size, is_executable, metadata, updated_by, updated_at
FROM workspace_files WHERE workspace_id = :workspace_id{where};

-- name: sealed_file
-- Whether what is noted of any file is encrypted, as such a text begins.
SELECT 1 FROM workspace_files
WHERE workspace_id = :workspace_id AND substr(metadata, 1, 12) = '"\u0073ealed' LIMIT 1;

-- name: insert_snapshot
INSERT INTO workspace_snapshots
    (workspace_id, number, revision, message, files, size, created_by, task_id, created_at)
VALUES (:workspace_id, :number, :revision, :message, :files, :size, :created_by, :task_id, :created_at);

-- name: last_snapshot
SELECT number FROM workspace_snapshots WHERE workspace_id = :workspace_id ORDER BY number DESC LIMIT 1;

-- name: get_snapshot
SELECT {snapshot}
FROM workspace_snapshots WHERE workspace_id = :workspace_id AND number = :number;

-- name: list_snapshots
SELECT {snapshot}
FROM workspace_snapshots WHERE workspace_id = :workspace_id AND number < :before
ORDER BY number DESC
LIMIT :limit;

-- name: oldest_kept
-- The oldest of the newest snapshots; `newer` counts the rest of them.
SELECT number FROM workspace_snapshots WHERE workspace_id = :workspace_id
ORDER BY number DESC
LIMIT 1 OFFSET :newer;

-- name: drop_snapshots
DELETE FROM workspace_snapshots WHERE workspace_id = :workspace_id AND number < :number;

-- name: drop_unseen
-- The versions that neither a snapshot nor the present has.
DELETE FROM workspace_files
WHERE workspace_id = :workspace_id AND until IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM workspace_snapshots AS seen
    WHERE seen.workspace_id = workspace_files.workspace_id
      AND seen.revision >= workspace_files.since AND seen.revision < workspace_files.until
);
