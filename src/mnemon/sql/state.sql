-- name: get_entry
SELECT key, value, version, updated_at
FROM state WHERE namespace = :namespace AND key = :key AND value IS NOT NULL;

-- name: list_entries
-- The live entries of one owner, in key order, from `first` up to but not including `end`.
SELECT key, value, version, updated_at
FROM state WHERE namespace = :namespace AND key >= :first AND key < :end AND value IS NOT NULL
ORDER BY key;

-- name: get_entry_or_trace
-- An entry, or what a deletion left of it.
SELECT key, value, version, updated_at
FROM state WHERE namespace = :namespace AND key = :key;

-- name: merge_entry
INSERT INTO state (namespace, key, value, updated_at) VALUES (:namespace, :key, :value, :now)
ON CONFLICT (namespace, key) DO UPDATE
SET value = excluded.value, version = state.version + 1, updated_at = excluded.updated_at;

-- name: merge_entry_returning
INSERT INTO state (namespace, key, value, updated_at) VALUES (:namespace, :key, :value, :now)
ON CONFLICT (namespace, key) DO UPDATE
SET value = excluded.value, version = state.version + 1, updated_at = excluded.updated_at
RETURNING version;

-- name: hold_entry
-- The version of an entry, or of what a deletion left of it, and whether it has a value.
SELECT version, value IS NOT NULL FROM state WHERE namespace = :namespace AND key = :key{lock};

-- name: put_entry
-- Set a key whose version is known, as its next one is part of what is encrypted; returns nothing if it is another.
INSERT INTO state (namespace, key, value, updated_at) VALUES (:namespace, :key, :value, :now)
ON CONFLICT (namespace, key) DO UPDATE
SET value = excluded.value, version = state.version + 1, updated_at = excluded.updated_at
WHERE state.version = :before
RETURNING version;

-- name: create_entry
-- Set a key that has no value; returns nothing if it has one.
INSERT INTO state (namespace, key, value, updated_at) VALUES (:namespace, :key, :value, :now)
ON CONFLICT (namespace, key) DO UPDATE
SET value = excluded.value, version = state.version + 1, updated_at = excluded.updated_at
WHERE state.value IS NULL
RETURNING version;

-- name: replace_entry
-- Compare and set; returns nothing if the version is another.
UPDATE state SET value = :value, version = version + 1, updated_at = :now
WHERE namespace = :namespace AND key = :key AND version = :expected AND value IS NOT NULL
RETURNING version;

-- name: delete_entry
UPDATE state SET value = NULL, version = version + 1, updated_at = :now
WHERE namespace = :namespace AND key = :key AND value IS NOT NULL{where}
RETURNING version;

-- name: clear_namespace
DELETE FROM state WHERE namespace = :namespace;
