-- name: insert_artifact
INSERT INTO artifacts (session_id, name, version, sha256, size, content_type, metadata, file_name,
                       created_by, task_id, created_at)
VALUES (:session_id, :name, :version, :sha256, :size, :content_type, :metadata, :file_name,
        :created_by, :task_id, :created_at)
RETURNING id;

-- name: newest_version
-- Those that were deleted count too, so that no number is given twice.
SELECT COALESCE(MAX(version), 0) FROM artifacts WHERE session_id = :session_id AND name = :name;

-- name: has_file_name
SELECT 1 FROM artifacts WHERE session_id = :session_id AND file_name = :file_name;

-- name: get_version
SELECT {artifact}
FROM artifacts WHERE session_id = :session_id AND name = :name AND version = :version{where};

-- name: get_current
-- The newest version that was not deleted.
SELECT {artifact}
FROM artifacts WHERE session_id = :session_id AND name = :name AND deleted_at IS NULL{where}
ORDER BY version DESC
LIMIT 1;

-- name: list_artifacts
-- The current version of each name, by name.
SELECT {artifact}
FROM artifacts
WHERE session_id = :session_id AND name > :after AND deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM artifacts AS later
                  WHERE later.session_id = artifacts.session_id AND later.name = artifacts.name
                    AND later.version > artifacts.version AND later.deleted_at IS NULL){where}
ORDER BY name
LIMIT :limit;

-- name: recent_artifacts
-- The current version of each name, the newest first.
SELECT {artifact}
FROM artifacts
WHERE session_id = :session_id AND deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM artifacts AS later
                  WHERE later.session_id = artifacts.session_id AND later.name = artifacts.name
                    AND later.version > artifacts.version AND later.deleted_at IS NULL){where}
ORDER BY created_at DESC, id DESC
LIMIT :limit;

-- name: list_versions
-- The newest first.
SELECT {artifact}
FROM artifacts WHERE session_id = :session_id AND name = :name AND version < :before{where}
ORDER BY version DESC
LIMIT :limit;

-- name: all_of_session
SELECT {artifact}
FROM artifacts WHERE session_id = :session_id{where}
ORDER BY name, version;

-- name: set_deleted
UPDATE artifacts SET deleted_at = :now
WHERE session_id = :session_id AND name = :name AND deleted_at IS NULL{where};

-- name: set_restored
UPDATE artifacts SET deleted_at = NULL
WHERE session_id = :session_id AND name = :name AND deleted_at IS NOT NULL{where};

-- name: long_deleted
-- What was deleted before a moment, with the user of its session.
SELECT artifacts.id, artifacts.session_id, artifacts.name, artifacts.version, sessions.user_id
FROM artifacts JOIN sessions ON sessions.id = artifacts.session_id
WHERE artifacts.deleted_at <= :before
ORDER BY artifacts.deleted_at
LIMIT :limit;

-- name: count_long_deleted
SELECT COUNT(*) FROM artifacts WHERE deleted_at <= :before;

-- name: purge_artifact
DELETE FROM artifacts WHERE id = :id AND deleted_at <= :before;

-- name: sessions_with_artifacts
SELECT DISTINCT session_id FROM artifacts WHERE session_id > :after ORDER BY session_id LIMIT :limit;

-- name: digests_of_artifacts
SELECT DISTINCT sha256 FROM artifacts WHERE sha256 > :after ORDER BY sha256 LIMIT :limit;

-- name: digests_of_workspaces
-- Those that no artifact refers to.
SELECT DISTINCT sha256 FROM workspace_files
WHERE sha256 > :after AND NOT EXISTS (SELECT 1 FROM artifacts WHERE artifacts.sha256 = workspace_files.sha256)
ORDER BY sha256
LIMIT :limit;

-- name: digests_of_archives
-- Those that nothing else refers to.
SELECT DISTINCT sha256 FROM archives
WHERE sha256 > :after AND NOT EXISTS (SELECT 1 FROM artifacts WHERE artifacts.sha256 = archives.sha256)
  AND NOT EXISTS (SELECT 1 FROM workspace_files WHERE workspace_files.sha256 = archives.sha256)
ORDER BY sha256
LIMIT :limit;

-- name: count_digests
SELECT COUNT(*) FROM (
    SELECT sha256 FROM artifacts WHERE sha256 > '' UNION SELECT sha256 FROM workspace_files WHERE sha256 > ''
    UNION SELECT sha256 FROM archives WHERE sha256 > ''
) AS places;

-- name: referenced_among
-- Which of some digests anything refers to.
SELECT sha256 FROM artifacts WHERE 1 = 1{where}
UNION
SELECT sha256 FROM workspace_files WHERE 1 = 1{where}
UNION
SELECT sha256 FROM archives WHERE 1 = 1{where};

-- name: users_of_content
-- A few of those that refer to a digest.
SELECT session_id, name, version FROM artifacts WHERE sha256 = :sha256 ORDER BY id LIMIT :limit;

-- name: files_of_content
SELECT workspace_id, path, since FROM workspace_files WHERE sha256 = :sha256 ORDER BY workspace_id, path LIMIT :limit;

-- name: archives_of_content
SELECT id, namespace FROM archives WHERE sha256 = :sha256 ORDER BY id LIMIT :limit;
