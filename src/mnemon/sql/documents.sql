-- name: insert_document
-- Nothing happens if there is a document at this path already.
INSERT INTO document_index
    (namespace, file_path, title, document_type, content_hash, metadata, size, source, chunking, created_at, updated_at)
VALUES
    (:namespace, :file_path, :title, :document_type, :content_hash, :metadata, :size, :source, :chunking, :now, :now)
ON CONFLICT (namespace, file_path) DO NOTHING
RETURNING id;

-- name: get_document
SELECT {columns} FROM document_index WHERE namespace = :namespace AND file_path = :file_path{where}{lock};

-- name: hold_document
SELECT {columns} FROM document_index WHERE id = :id{lock};

-- name: set_document
UPDATE document_index
SET title = :title, document_type = :document_type, content_hash = :content_hash, chunk_count = :chunk_count,
    embedding_model = :embedding_model, metadata = :metadata, size = :size, source = :source, chunking = :chunking,
    error = :error, last_synced_at = :last_synced_at, sync_status = :sync_status, updated_at = :updated_at
WHERE id = :id;

-- name: delete_document
DELETE FROM document_index WHERE id = :id;

-- name: list_documents
-- In the order in which they were first added; the cursor is the id.
SELECT {columns} FROM document_index WHERE id > :after{where}
ORDER BY id LIMIT :limit;

-- name: list_recent_documents
-- The last changed first; the cursor is (updated_at, id).
SELECT {columns} FROM document_index WHERE (updated_at, id) < (:before, :before_id){where}
ORDER BY updated_at DESC, id DESC LIMIT :limit;

-- name: list_files
-- The documents of one namespace that are files, by their paths.
SELECT {columns} FROM document_index
WHERE namespace = :namespace AND file_path > :after AND source IS NOT NULL
ORDER BY file_path LIMIT :limit;

-- name: twin
-- Another document of the namespace that has, or is to have, the same content.
SELECT file_path FROM document_index
WHERE content_hash = :content_hash AND namespace = :namespace AND id <> :id
ORDER BY id LIMIT 1;

-- name: count_chunks
SELECT COUNT(*) FROM memory_entries
WHERE thread = :thread AND position >= 0 AND is_current = TRUE AND is_deleted = FALSE AND namespace = :namespace;

-- name: live_chunks
SELECT {memory_columns} FROM memory_entries
WHERE thread = :thread AND position >= :first AND is_current = TRUE AND is_deleted = FALSE AND namespace = :namespace
ORDER BY position, id LIMIT :limit;

-- name: newest_versions
-- The newest versions of some memories that say something, deleted since or not.
SELECT key, MAX(id) FROM memory_entries
WHERE namespace = :namespace AND is_deleted = FALSE{where}
GROUP BY key;
