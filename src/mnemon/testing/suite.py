"""What every conformance suite stands on."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest

from mnemon.clock import micros
from mnemon.hybrid import HybridMemoryService
from mnemon.ports import Row, Store
from mnemon.sql import Query
from mnemon.testing.clock import ManualClock
from mnemon.testing.crowds import Crowd, TaskCrowd
from mnemon.testing.handles import parts_of

QUIET: dict[str, Any] = {"seal_interval": None, "background": False, "remember_events": (), "embedder": "none"}
"""The settings with which nothing happens but what a test does."""

_TABLES = {
    "sessions": "id",
    "events": "session_id, sequence",
    "archived_events": "session_id, sequence",
    "state": "namespace, key",
    "tasks": "id",
    "working_buffers": "session_id, name",
    "working_items": "id",
    "scratchpads": "session_id, name",
    "episodes": "id",
    "workspaces": "id",
    "workspace_files": "workspace_id, path, since",
    "workspace_snapshots": "workspace_id, number",
    "agents": "id",
    "agent_cycles": "agent_id, cycle",
    "document_index": "id",
    "reviews": "id",
    "memory_uses": "namespace, key",
    "archives": "id",
    "archived_memories": "namespace, key, archive_id",
    "growth": "at",
    "data_keys": "id",
    "memory_entries": "id",
    "artifacts": "id",
    "memory_texts": "memory_id",
    "vector_spaces": "id",
    "memory_vectors": "space_id, memory_id",
    "embedding_cache": "space_id, digest",
    "journal": "position",
    "consumers": "name",
    "seals": "first_position",
}


class Suite:
    """Derive from a suite and override the fixture `memory` to test a backend of your own.

    Each test gets an empty database. The suites look and reach behind the service's back, through
    the store's own transactions, so that reading is not only tested with what was written by the
    same code. Nothing else may happen there meanwhile: unless the suite says otherwise, `memory` has to be opened
    with the settings `QUIET`.
    """

    pytestmark = pytest.mark.asyncio

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The time that the tests move; `memory` must be opened with it."""
        return ManualClock()

    @pytest.fixture
    def memory(self, clock: ManualClock) -> HybridMemoryService:
        """An open memory over an empty database of the backend under test, to be closed afterwards."""
        raise NotImplementedError("override `memory`: open your backend with clock=clock and the settings QUIET")

    @pytest.fixture
    def crowd(self) -> Crowd:
        """How to do several things at once; a `ThreadCrowd` if the store's coroutines never suspend."""
        return TaskCrowd()

    @pytest.fixture
    def store(self, memory: HybridMemoryService) -> Store:
        """The store below `memory`."""
        return parts_of(memory).store


def long_name(length: int, seed: str = "") -> str:
    """A name that no index can compress."""
    digests = (hashlib.sha256(f"{seed}{number}".encode()).hexdigest() for number in range(length // 64 + 1))
    return "".join(digests)[:length]


async def peek(store: Store, sql: str, **params: Any) -> list[Row]:
    """Rows as they stand in the database."""
    return await store.fetch(Query("peek", sql), params)


async def plant(store: Store, sql: str, **params: Any) -> int:
    """Change rows behind the service's back; how many."""
    return await store.write(lambda tx: tx.execute(Query("plant", sql), params))


async def plant_session(
    store: Store, session_id: str, *, user: str = "alice", app: str = "helpdesk", at: datetime, **columns: Any
) -> None:
    """A session that no service made."""
    values: dict[str, Any] = {
        "id": session_id, "app_name": app, "user_id": user, "project_id": None, "status": "created",
        "created_at": micros(at), "last_update_time": micros(at), **columns,
    }  # fmt: skip
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    assert await plant(store, f"INSERT INTO sessions ({names}) VALUES ({marks})", **values) == 1


async def journal_after(store: Store, position: int = 0) -> list[Row]:
    """Entity, id, operation, version and namespace of each journal row after a position."""
    return await peek(
        store,
        "SELECT entity, entity_id, operation, version, namespace FROM journal "
        "WHERE position > :after ORDER BY position",
        after=position,
    )


async def last_position(store: Store) -> int:
    """The position of the newest journal row, or 0."""
    return (await peek(store, "SELECT COALESCE(MAX(position), 0) FROM journal"))[0][0]


async def contents(store: Store) -> dict[str, list[Row]]:
    """Every row of every table."""
    return {table: await peek(store, f"SELECT * FROM {table} ORDER BY {order}") for table, order in _TABLES.items()}


@asynccontextmanager
async def unchanged(store: Store) -> AsyncGenerator[None]:
    """The body leaves the database exactly as it was."""
    before = await contents(store)
    yield
    after = await contents(store)
    assert after == before


@asynccontextmanager
async def refused(store: Store, error: type[Exception], match: str | None = None) -> AsyncGenerator[None]:
    """The body raises `error` and leaves the database exactly as it was."""
    async with unchanged(store):
        with pytest.raises(error, match=match):
            yield
