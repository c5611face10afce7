"""What can be set, with its default. `config` reads the sources; everything else only reads this."""

from dataclasses import dataclass, field
from typing import Literal

from mnemon.model import MemoryType, RetentionPolicy


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of Mnemon. Sizes are in bytes or characters, times in seconds."""

    url: str = field(default="sqlite:///mnemon.db", repr=False)  # it may hold a password
    """Where the database is: `sqlite:///file.db`, `sqlite://` (in memory) or `postgresql://…`."""
    create: bool = True
    """Make the database on opening if there is none; otherwise `StoreUnavailable` is raised."""
    migrate: bool = True
    """Bring an older schema up to date on opening; otherwise `SchemaTooOld` is raised."""

    synchronous: Literal["normal", "full"] = "normal"
    """SQLite: `full` also survives a power cut at once; `normal` may lose the last moments then."""
    busy_timeout: float = 5.0
    """SQLite: how long a write waits for another process before `StoreBusy`."""

    postgres_schema: str = "mnemon"
    """PostgreSQL: the schema that holds the tables."""
    pool_size: int = 10
    """PostgreSQL: how many connections at the most."""
    connect_timeout: float = 5.0
    """PostgreSQL: how long to wait for a connection before `StoreUnavailable`."""

    content_url: str | None = field(default=None, repr=False)  # it may hold a key
    """Where the contents of artifacts and workspaces are kept: `file:///folder`, `memory://`, `s3://bucket/prefix`,
    `gs://bucket/prefix` or `az://container/prefix`.

    `None` is the folder `x.files` beside `sqlite:///x.db`, and memory for `sqlite://`; PostgreSQL needs one.
    """

    max_key_length: int = 512
    """The longest key of a state entry or a memory, in characters."""
    max_namespace_length: int = 1024
    """The longest namespace, in characters."""
    max_value_bytes: int = 1_048_576
    """The largest value of a memory, an event or a state entry, as JSON."""
    max_events_kept: int | None = None
    """How many events stay in a session before the oldest are archived; `None` keeps all."""

    seal_interval: float | None = 5.0
    """How often the journal is sealed in the background; 0 or `None` switches that off."""
    seal_key: str | None = field(default=None, repr=False)
    """A secret that the seals are made with, so that nobody without it can forge them."""

    encrypted_namespaces: tuple[str, ...] = ()
    """What is encrypted: namespaces, with all below them, and what belongs to the sessions of those that are users'."""
    encryption_keys: tuple[str, ...] = field(default=(), repr=False)
    """Master keys as `NAME:KEY`, the key being 32 bytes in base64. The first encrypts; the others are older."""
    encryption_key_file: str | None = None
    """A file that has such keys instead, one in each line."""
    encrypted_vectors: bool = False
    """Keep vectors of encrypted memories, so that they are found by meaning. A vector tells much of what was said."""

    embedder: str | None = None
    """What turns texts into vectors, as `providers.loading` reads it: `static`, `onnx`, `openai:…`, `none` for nothing.

    `None` is what the database's vectors were made with; for a new database, `static`.
    """
    embedder_fallbacks: tuple[str, ...] = ()
    """Further embedders of the same model, asked in this order while those before are down."""
    embedder_timeout: float = 10.0
    """How long a remote embedder may take for a batch, repeated attempts included."""
    max_embedded_chars: int = 8000
    """How much of a text is embedded; what comes after that many characters is found by its words only."""
    embedding_cache_rows: int = 10_000
    """How many vectors of slow embedders the database keeps by the digest of their text; 0 keeps none."""
    openai_url: str = "https://api.openai.com/v1"
    """Where embedders and language models `openai:…` are asked; any compatible endpoint."""
    openai_api_key: str | None = field(default=None, repr=False)
    """The key for it; local endpoints often need none."""
    ollama_url: str = "http://127.0.0.1:11434"
    """Where embedders and language models `ollama:…` are asked."""
    redis_url: str | None = field(default=None, repr=False)  # it may hold a password
    """A Redis that keeps the vectors of slow embedders instead of the database: `redis://host:6379/0`."""

    working_store: Literal["database", "redis"] = "database"
    """Where working memory is: `redis` also keeps a copy in the Redis at `redis_url`; the database has it all."""
    working_reads: Literal["redis", "database"] = "redis"
    """What is read first if there is a copy in Redis. The database answers whatever Redis cannot."""
    buffer_ttl: float | None = None
    """How long an item stays in a buffer, if it was not appended with a `ttl`; `None` until it is drained."""
    scratchpad_ttl: float | None = None
    """How long a scratchpad stays after it was set, if that was not with a `ttl`; `None` as long as its session."""
    redis_copy_ttl: float = 3600.0
    """How long Redis keeps a copy that nobody uses."""

    language_model: str | None = None
    """What summarises and merges memories: `openai:NAME` or `ollama:NAME`; `None` for what needs no model."""
    language_model_timeout: float = 60.0
    """How long one attempt to get an answer of it may take; after twice as long nothing is attempted any more."""
    language_model_context: int = 8192
    """How many tokens a question and its answer may be together; what is longer is divided or cut."""
    language_model_price: tuple[float, ...] = ()
    """What a million tokens of questions and of answers cost, in any currency: two numbers, so that cost is counted."""

    vector_stores: tuple[str, ...] = field(default=(), repr=False)  # they may hold passwords
    """Vector stores beside the database, the preferred one first: `qdrant://host:6333`, `weaviate://…`, `chroma://…`."""
    vector_timeout: float = 5.0
    """How long a vector store may take to answer before the next one is asked."""
    vector_collection_prefix: str = "mnemon"
    """What the names of collections begin with; databases that share a vector store need one each."""
    qdrant_shards: int = 1
    """Qdrant: how many shards a new collection is divided into."""
    qdrant_replicas: int = 1
    """Qdrant: on how many nodes each shard of a new collection is kept."""

    chunk_tokens: int = 256
    """How many tokens a chunk of a document has at the most."""
    max_document_bytes: int = 20_000_000
    """The largest file that is indexed as a document."""

    background: bool = True
    """Keep the indexes in step on a thread of this process; without it, others or `settled` have to."""
    index_delay: float = 0.05
    """How long the background waits after a change, so that a burst of changes is indexed together."""
    remember_events: tuple[str, ...] = ("session",)
    """Of which sessions events become memories: prefixes of their `session:`, `user:`, `app:` or `project:`."""

    consolidate_after: float | None = 1800.0
    """How long a buffer is left alone before the background drains it into an episode; 0 or `None` switches off that
    the background consolidates. What a session that has ended leaves is not waited for."""
    consolidation_strategy: Literal["latest_wins", "highest_trust", "merge", "llm_based", "review", "none"] | None = (
        "latest_wins"
    )
    """Which of two facts is to stay that deny each other, when episodes are consolidated; `none` leaves both."""

    retention: tuple[RetentionPolicy, ...] = (
        RetentionPolicy(name="episodes", types=(MemoryType.EPISODIC,), max_age_days=90),
    )
    """What is removed when it is too old, too large or of no use any more: policies by namespace and type.

    Those that are set take the place of the default, which keeps episodic memories for 90 days.
    """
    retention_interval: float | None = 86_400.0
    """How often the background applies them and measures growth; 0 or `None` leaves it to `memory.retention.apply`."""
    growth_alert: int | None = 1_000_000_000
    """More bytes than this in a week are told in the log, the journal and the report; `None` for no alert."""
    count_uses: bool = True
    """Count how often memories are recalled, which their relevance is reckoned from."""
