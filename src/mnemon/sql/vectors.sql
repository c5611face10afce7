-- name: copy_vectors
-- The vectors of one version of a memory, for another that says the same.
INSERT INTO memory_vectors (memory_id, space_id, embedding)
SELECT :memory_id, space_id, embedding
FROM memory_vectors
WHERE space_id IN (SELECT id FROM vector_spaces WHERE id > 0) AND memory_id = :source;
