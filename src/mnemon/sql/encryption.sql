-- name: current_key
-- The key that seals what is written in a scope.
SELECT id, namespace, wrapped, master_key FROM data_keys WHERE namespace = :namespace AND retired_at IS NULL;

-- name: get_keys
SELECT id, namespace, wrapped, master_key FROM data_keys WHERE TRUE{where};

-- name: insert_key
INSERT INTO data_keys (id, namespace, wrapped, master_key, created_at)
VALUES (:id, :namespace, :wrapped, :master_key, :now)
ON CONFLICT (namespace) WHERE retired_at IS NULL DO NOTHING;

-- name: retire_key
UPDATE data_keys SET retired_at = :now WHERE namespace = :namespace AND retired_at IS NULL;

-- name: list_keys
-- Every key, a page at a time.
SELECT id, namespace, wrapped, master_key FROM data_keys WHERE id > :after ORDER BY id LIMIT :limit;

-- name: rewrap_key
UPDATE data_keys SET wrapped = :wrapped, master_key = :master_key WHERE id = :id AND master_key = :before;

-- name: scope_of_key
SELECT namespace FROM data_keys WHERE id = :id;

-- name: owners_of_session
SELECT id, app_name, user_id, project_id FROM sessions WHERE id = :id;

-- name: value_in_namespace
-- Whatever memory lies in a namespace.
SELECT value FROM memory_entries WHERE namespace = :namespace ORDER BY key, version LIMIT 1;
