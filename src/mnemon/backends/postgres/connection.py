"""Where a PostgreSQL database is, connections to it, and the translation of what the driver raises."""

import math
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg.types.numeric import Int8Dumper
from psycopg_pool import PoolClosed, PoolTimeout

from mnemon.errors import (
    IntegrityError,
    InvalidSettings,
    InvalidValue,
    MnemonError,
    SchemaMismatch,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    ValueTooLarge,
)
from mnemon.settings import Settings

_IDENTIFIER = re.compile(r"(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,62}")

# What every session begins with, unless the URL says otherwise. To start helpers takes longer than any of our queries.
# The graph over vectors gives neighbours roughly in order, and goes on until enough are in scope or it saw too many.
_TUNING = "-c max_parallel_workers_per_gather=0 -c hnsw.iterative_scan=relaxed_order -c hnsw.scan_mem_multiplier=8"

# Whole numbers are always sent as BIGINT, so that a statement is prepared once and not once for each size.
_ADAPTERS = AdaptersMap(psycopg.adapters)
_ADAPTERS.register_dumper(int, Int8Dumper)


@dataclass(frozen=True, slots=True)
class Location:
    """Which server, database and schema a program works with."""

    conninfo: str = field(repr=False)  # it may hold a password
    schema: str
    name: str

    @classmethod
    def parse(cls, settings: Settings) -> "Location":
        if not _IDENTIFIER.fullmatch(settings.postgres_schema):
            raise InvalidSettings(
                f"postgres_schema {settings.postgres_schema!r} must be at most 63 letters, digits and _, "
                "not begin with a digit and not with pg_"
            )
        try:
            given = conninfo_to_dict(settings.url)
        except psycopg.ProgrammingError:  # its text may quote the password
            raise InvalidSettings(
                "the URL should be postgresql://user:password@host:5432/database, with special characters as %XX"
            ) from None
        path = f'-c search_path="{settings.postgres_schema}",public'
        options = {
            "connect_timeout": math.ceil(settings.connect_timeout),
            "fallback_application_name": "mnemon",
            **given,
            "client_encoding": "UTF8",
            "options": f"{_TUNING} {given.get('options') or ''} {path}",
        }
        place = f"{given.get('host') or 'the local server'}:{given.get('port') or 5432}"
        name = f"PostgreSQL {place}/{given.get('dbname') or ''} (schema {settings.postgres_schema})"
        return cls(make_conninfo("", **options), settings.postgres_schema, name)

    def seeing(self, schema: str) -> "Location":
        """The same, with another schema in sight: after its own, which holds the tables."""
        if schema in (self.schema, "public", "pg_catalog"):
            return self
        given = conninfo_to_dict(self.conninfo)
        quoted = schema.replace('"', '""').replace("\\", r"\\").replace(" ", r"\ ")
        path = f'-c search_path="{self.schema}",public,"{quoted}"'
        return replace(self, conninfo=make_conninfo(self.conninfo, options=f"{given['options']} {path}"))

    @property
    def options(self) -> dict[str, Any]:
        """What every connection is made with, besides where it goes."""
        return {"autocommit": True, "context": _ADAPTERS}

    def connect(self, *, autocommit: bool = True) -> psycopg.Connection[TupleRow]:
        """A connection of one's own, outside the pools."""
        return psycopg.connect(self.conninfo, autocommit=autocommit, context=_ADAPTERS)

    def __str__(self) -> str:
        return self.name


@contextmanager
def mapped_errors(location: Location) -> Generator[None]:
    """Raise Mnemon's errors for the driver's."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, location) from error


_KINDS: tuple[tuple[tuple[type[psycopg.Error], ...], type[MnemonError], str], ...] = (
    ((psycopg.IntegrityError,), IntegrityError, ""),
    ((PoolClosed,), StoreClosed, "it was closed"),
    (
        (PoolTimeout,),
        StoreUnavailable,
        "check that the server can be reached; if it can, all connections are in use: raise pool_size",
    ),
    (
        (pg.DiskFull, pg.ConfigurationLimitExceeded),
        StoreFull,
        "free some space on the server; nothing of this write was kept",
    ),
    ((pg.ReadOnlySqlTransaction,), StoreReadOnly, "connect to the primary, with a user who may write"),
    ((pg.ProgramLimitExceeded,), ValueTooLarge, "choose a shorter namespace or key"),
    ((pg.DataCorrupted, pg.IndexCorrupted), StoreCorrupt, "restore it from a backup"),
    (
        (pg.LockNotAvailable, pg.QueryCanceled),
        StoreBusy,
        "another program held a lock for too long, or the server's statement_timeout is too short",
    ),
    (
        (pg.UndefinedTable, pg.UndefinedFunction, pg.UndefinedColumn, pg.InvalidSchemaName),
        SchemaMismatch,
        "another program has changed or removed the tables",
    ),
    (
        (pg.InsufficientPrivilege,),
        StoreUnavailable,
        "give the user the right to create and use the schema and its tables",
    ),
    ((psycopg.DataError,), InvalidValue, "PostgreSQL cannot store this"),
    (
        (psycopg.OperationalError,),
        StoreUnavailable,
        "check that the server runs, and the URL's host, port, database, user and password",
    ),
)


def translated(error: psycopg.Error, location: Location) -> MnemonError:
    """The Mnemon error that says what happened and what to do about it."""
    text = " ".join(str(error).split())
    for causes, kind, advice in _KINDS:
        if isinstance(error, causes):
            return kind(f"{location}: {text}: {advice}" if advice else f"{location}: {text}")
    return StoreError(f"{location}: {text}")
