"""What can be set, with its default. `config` reads the sources; everything else only reads this."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of Mnemon. Sizes are in bytes or characters, times in seconds."""

    url: str = field(default="sqlite:///mnemon.db", repr=False)  # it may hold a password
    """Where the database is: `sqlite:///file.db`, `sqlite://` (in memory) or `postgresql://…`."""
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
