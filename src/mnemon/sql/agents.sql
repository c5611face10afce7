-- name: insert_agent
INSERT INTO agents
    (id, namespace, name, role, directives, config, metadata, workspace_id, cycle_count, created_at, updated_at)
VALUES
    (:id, :namespace, :name, :role, :directives, :config, :metadata, :workspace_id, :cycle_count, :now, :now)
ON CONFLICT (id) DO NOTHING;

-- name: get_agent
SELECT {agent} FROM agents WHERE id = :id{where}{lock};

-- name: list_agents
-- Between two bounds, in order of namespace and id.
SELECT {agent} FROM agents
WHERE namespace >= :first AND namespace < :end AND (namespace, id) > (:after, :after_id){where}
ORDER BY namespace, id LIMIT :limit;

-- name: set_agent
UPDATE agents
SET name = :name, role = :role, directives = :directives, config = :config, metadata = :metadata,
    workspace_id = :workspace_id, version = :version, updated_at = :updated_at
WHERE id = :id;

-- name: delete_agent
DELETE FROM agents WHERE id = :id;

-- name: find_workspace
SELECT id FROM workspaces WHERE id = :id{where};

-- name: count_cycle
UPDATE agents SET cycle_count = :cycle, updated_at = :now WHERE id = :id;

-- name: insert_cycle
INSERT INTO agent_cycles
    (agent_id, cycle, session_id, task_id, proposal, proposed_at, status, result, summary, artifacts,
     workspace_id, snapshot, finished_at, undone_at)
VALUES
    (:agent_id, :cycle, :session_id, :task_id, :proposal, :proposed_at, :status, :result, :summary, :artifacts,
     :workspace_id, :snapshot, :finished_at, :undone_at);

-- name: get_cycle
SELECT {cycle} FROM agent_cycles WHERE agent_id = :agent_id AND cycle = :cycle;

-- name: list_cycles
-- The newest before a number, undone ones too.
SELECT {cycle} FROM agent_cycles
WHERE agent_id = :agent_id AND cycle < :before{where}
ORDER BY cycle DESC LIMIT :limit;

-- name: list_standing
-- The newest before a number that no rewinding has undone.
SELECT {cycle} FROM agent_cycles
WHERE agent_id = :agent_id AND cycle < :before AND undone_at IS NULL{where}
ORDER BY cycle DESC LIMIT :limit;

-- name: list_of_session
SELECT {cycle} FROM agent_cycles
WHERE session_id = :session_id AND agent_id = :agent_id AND cycle < :before{where}
ORDER BY cycle DESC LIMIT :limit;

-- name: first_after
-- The first standing cycle after one.
SELECT {cycle} FROM agent_cycles
WHERE agent_id = :agent_id AND cycle > :cycle AND undone_at IS NULL
ORDER BY cycle LIMIT 1;

-- name: set_result
UPDATE agent_cycles
SET status = :status, result = :result, summary = :summary, artifacts = :artifacts, finished_at = :finished_at
WHERE agent_id = :agent_id AND cycle = :cycle;

-- name: set_summary
UPDATE agent_cycles SET summary = :summary WHERE agent_id = :agent_id AND cycle = :cycle;

-- name: undo_cycles
UPDATE agent_cycles SET undone_at = :now WHERE agent_id = :agent_id AND cycle > :cycle AND undone_at IS NULL;
