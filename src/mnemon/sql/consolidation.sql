-- name: insert_review
-- Nothing happens if the same versions wait for a decision, or were decided to stay as they are.
INSERT INTO reviews (namespace, kind, plan, digest, status, decision, decided_by, decided_at, created_at)
VALUES (:namespace, :kind, :plan, :digest, :status, :decision, :decided_by, :decided_at, :created_at)
ON CONFLICT (digest) WHERE status IN ('open', 'rejected') DO NOTHING
RETURNING id;

-- name: get_review
SELECT {columns} FROM reviews WHERE id = :id{where}{lock};

-- name: decide_review
UPDATE reviews SET status = :status, decision = :decision, decided_by = :decided_by, decided_at = :decided_at
WHERE id = :id;

-- name: list_reviews
-- In the order in which they came; the cursor is the id.
SELECT {columns} FROM reviews WHERE id > :after{where} ORDER BY id LIMIT :limit;

-- name: known_reviews
-- What was asked of one namespace and is open, or was answered with: both are right.
SELECT id, digest, status FROM reviews
WHERE namespace = :namespace AND id > :after AND status IN ('open', 'rejected')
ORDER BY id LIMIT :limit;
