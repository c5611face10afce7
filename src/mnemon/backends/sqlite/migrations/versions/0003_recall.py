"""Words and vectors of memories.

What was remembered before has neither until the program runs: the consumer `embeddings` follows the journal from
its beginning and indexes whatever lacks words or a vector. Analysing texts is no work for a migration, which
holds up everybody else.
"""

from alembic import op

from mnemon.backends.migrations import execute_script

revision = "0003"
down_revision = "0002"

UP = """
CREATE TABLE vector_spaces (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    version TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'filling',
    created_at INTEGER NOT NULL,
    CHECK (dimension > 0),
    CHECK (status IN ('filling', 'active', 'retired')),
    UNIQUE (model, version, dimension)
);
CREATE UNIQUE INDEX vector_spaces_one_active ON vector_spaces (status) WHERE status = 'active';
CREATE TABLE memory_vectors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    space_id INTEGER NOT NULL REFERENCES vector_spaces (id),
    memory_id INTEGER NOT NULL,
    embedding BLOB NOT NULL,
    UNIQUE (space_id, memory_id)
);
CREATE TABLE embedding_cache (
    space_id INTEGER NOT NULL,
    digest TEXT NOT NULL,
    embedding BLOB NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (space_id, digest)
);
CREATE INDEX idx_embedding_cache_used_at ON embedding_cache (used_at);
CREATE TABLE memory_texts (
    memory_id INTEGER NOT NULL UNIQUE,
    words TEXT NOT NULL,
    scope TEXT NOT NULL
);
CREATE VIRTUAL TABLE memory_terms USING fts5 (
    terms, scope, content = '', columnsize = 0, detail = none, tokenize = 'ascii'
);
INSERT INTO memory_terms (memory_terms, rank) VALUES ('automerge', 16);
CREATE VIRTUAL TABLE memory_vocabulary USING fts5vocab (memory_terms, row);
"""

DOWN = """
DROP TABLE memory_vocabulary;
DROP TABLE memory_terms;
DROP TABLE memory_texts;
DROP TABLE embedding_cache;
DROP TABLE memory_vectors;
DROP TABLE vector_spaces;
"""


def upgrade() -> None:
    execute_script(op.get_bind(), UP)


def downgrade() -> None:
    execute_script(op.get_bind(), DOWN)
