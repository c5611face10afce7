"""What can be set, with its default. `config` reads the sources; everything else only reads this."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of Mnemon. Sizes are in bytes or characters, times in seconds."""

    url: str = "sqlite:///mnemon.db"
    """Where the database is: `sqlite:///file.db`, `sqlite://` (in memory) or `postgresql://…`."""
    migrate: bool = True
    """Bring an older schema up to date on opening; otherwise `SchemaTooOld` is raised."""

    synchronous: Literal["normal", "full"] = "normal"
    """SQLite: `full` also survives a power cut at once; `normal` may lose the last moments then."""
    busy_timeout: Annotated[float, Gt(0)] = 5.0
    """SQLite: how long a write waits for another process before `StoreBusy`."""

    postgres_schema: Annotated[str, "identifier"] = "mnemon"
    """PostgreSQL: the schema that holds the tables."""
    pool_size: Annotated[int, Ge(1)] = 10
    """PostgreSQL: how many connections at the most."""
    connect_timeout: Annotated[float, Gt(0)] = 5.0
    """PostgreSQL: how long to wait for a connection before `StoreUnavailable`."""

    max_key_length: Annotated[int, Ge(1)] = 512
    """The longest key of a state entry or a memory, in characters."""
    max_namespace_length: Annotated[int, Ge(8)] = 1024
    """The longest namespace, in characters."""
    max_value_bytes: Annotated[int, Ge(2)] = 1_048_576
    """The largest value of a memory, an event or a state entry, as JSON."""
    max_events_kept: Annotated[int, Ge(1)] | None = None
    """How many events stay in a session before the oldest are archived; `None` keeps all."""

    seal_interval: Annotated[float, Gt(0)] | None = 5.0
    """How often the journal is sealed in the background; `None` switches that off."""
    seal_key: str | None = None
    """A secret that the seals are made with, so that nobody without it can forge them."""
