-- name: scan_rows
-- What finds each row of a table, whose it is, and how its texts begin.
SELECT {finds}, {owner}, {heads} FROM {table} WHERE 1 = 1{where} ORDER BY {finds} LIMIT :limit;

-- name: count_rows
SELECT COUNT(*) FROM {table};

-- name: hold_row
SELECT {columns} FROM {table} WHERE {this}{lock};

-- name: reseal_row
UPDATE {table} SET {changes} WHERE {this};

-- name: last_sealed
-- What came last: that rows were encrypted which had not been, or that the files were scrubbed of what these said.
SELECT operation FROM journal
WHERE entity = 'data_key' AND entity NOT IN ('event', 'state') AND operation IN ('seal', 'scrub')
ORDER BY position DESC
LIMIT 1;

-- name: move_buffer_on
-- Copies of the buffer stand elsewhere now, and are not read any more.
UPDATE working_buffers SET position = :position WHERE session_id = :session_id AND name = :buffer;

-- name: move_pad_on
UPDATE scratchpads SET position = :position WHERE session_id = :session_id AND name = :name;

-- name: drop_vectors
-- What is left of vectors that were erased: the memories that they were of go on.
DELETE FROM memory_vectors WHERE space_id IN (SELECT id FROM vector_spaces WHERE id > 0){where};

-- name: scan_contents
SELECT {finds}, {owner}, sha256 FROM {table} WHERE sha256 <> ''{where} ORDER BY {finds} LIMIT :limit;

-- name: move_content
-- A record refers to a new content, if it still refers to the old one.
UPDATE {table} SET sha256 = :name, size = :size WHERE {this} AND sha256 = :before;

-- name: describe_keys
SELECT id, namespace, master_key, created_at, retired_at FROM data_keys WHERE id > :after ORDER BY id LIMIT :limit;

-- name: drop_key
DELETE FROM data_keys WHERE id = :id AND retired_at <= :before;
