-- name: list_spaces
SELECT id, provider, model, version, dimension, status, created_at FROM vector_spaces
WHERE id > 0 ORDER BY id{lock};

-- name: insert_space
-- Nothing happens if there is an active space already, or another of this model: whoever is quicker wins.
INSERT INTO vector_spaces (provider, model, version, dimension, status, created_at)
VALUES (:provider, :model, :version, :dimension, :status, :now)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: set_space
UPDATE vector_spaces SET status = :status, provider = :provider WHERE id = :id;

-- name: delete_vectors
-- Some vectors of a space, not all at once: other writers want their turn.
DELETE FROM memory_vectors WHERE space_id = :space_id AND memory_id IN (
    SELECT memory_id FROM memory_vectors WHERE space_id = :space_id ORDER BY memory_id LIMIT :limit
);

-- name: delete_space
DELETE FROM vector_spaces WHERE id = :id;

-- name: get_cached
SELECT digest, embedding, used_at FROM embedding_cache WHERE space_id = :space_id{where};

-- name: put_cached
INSERT INTO embedding_cache (space_id, digest, embedding, used_at) VALUES (:space_id, :digest, :embedding, :used_at)
ON CONFLICT (space_id, digest) DO UPDATE SET embedding = excluded.embedding, used_at = excluded.used_at;

-- name: touch_cached
UPDATE embedding_cache SET used_at = :used_at WHERE space_id = :space_id{where};

-- name: drop_cached
DELETE FROM embedding_cache WHERE space_id = :space_id{where};

-- name: trim_cache
-- Drop what was used longest ago, down to a number of rows.
DELETE FROM embedding_cache WHERE (space_id, digest) IN (
    SELECT space_id, digest FROM embedding_cache WHERE used_at > 0
    ORDER BY used_at DESC LIMIT :most OFFSET :rows
);
