"""The index of a vector space: an HNSW graph of pgvector, over the vectors of that space alone."""

import logging
import time
from typing import Any

import psycopg
from psycopg import errors as pg

from mnemon.backends.postgres.connection import Location, mapped_errors
from mnemon.model import Space

_LOG = logging.getLogger("mnemon.postgres")

_TYPES = {"vector": 2000, "halfvec": 4000}  # up to how many dimensions pgvector makes an index
_VALID = "SELECT indisvalid AND indisready FROM pg_index WHERE indexrelid = to_regclass(%s)"
_TRY_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_COUNT = "SELECT COUNT(*) FROM (SELECT 1 FROM memory_vectors LIMIT %s) AS found"
_FEW = 1000  # rows over which an index is made in a moment
_MEMORY = "256MB"  # for making it: the graph of some hundred thousand vectors


def index_name(space: Space) -> str:
    return f"idx_memory_vectors_space_{space.id}"


def index_type(space: Space) -> str | None:
    """The type that the vectors of a space are indexed as; None if they have too many dimensions for an index."""
    dimension = space.model.dimension
    return next((f"{name}({dimension})" for name, most in _TYPES.items() if dimension <= most), None)


def make_index(location: Location, space: Space) -> None:
    """Make the index of a space, unless another process does: then wait for that. May block for long.

    Without the right to do so there is none: large scopes are then searched exactly, which takes longer.
    """
    with mapped_errors(location), location.connect() as connection:
        try:
            _make(connection, location, space)
        except pg.InsufficientPrivilege as error:
            _LOG.warning("%s: %s cannot be made, so large scopes take long: %s", location, index_name(space), error)


def _make(connection: "psycopg.Connection[Any]", location: Location, space: Space) -> None:
    name = index_name(space)
    if connection.info.parameter_status("default_transaction_read_only") == "on":
        return
    # To wait for the lock would hold a snapshot, for whose end the one who makes the index has to wait.
    while not _is_valid(connection, name):
        if connection.execute(_TRY_LOCK, [f"{location.schema}.{name}"]).fetchone() == (True,):
            _build(connection, space)
        else:
            time.sleep(0.05)


def _is_valid(connection: "psycopg.Connection[Any]", name: str) -> bool:
    return connection.execute(_VALID, [name]).fetchone() == (True,)


def _build(connection: "psycopg.Connection[Any]", space: Space) -> None:
    name, kind = index_name(space), index_type(space) or ""
    if _is_valid(connection, name):  # made while this one came for the lock
        return
    connection.execute(f"SET maintenance_work_mem = '{_MEMORY}'".encode())
    connection.execute(f"DROP INDEX IF EXISTS {name}".encode())  # what was left of one that was interrupted
    [rows] = connection.execute(_COUNT, [_FEW]).fetchone() or (0,)
    # CONCURRENTLY lets others write meanwhile, but waits for every older transaction of the database.
    how = "CONCURRENTLY" if rows == _FEW else ""
    column = f"CAST(embedding AS {kind})) {kind.split('(')[0]}_cosine_ops"
    connection.execute(
        f"CREATE INDEX {how} {name} ON memory_vectors USING hnsw (({column}) WHERE space_id = {space.id}".encode()
    )
    # The planner's statistics would keep samples of the vectors.
    connection.execute(f"ALTER INDEX {name} ALTER COLUMN 1 SET STATISTICS 0".encode())
