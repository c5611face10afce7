"""Databases on which these suites run, and a pulse of the event loop."""

import asyncio
import time
from itertools import pairwise
from pathlib import Path

import pytest

from mnemon import sync
from tests.robustness.behind import Database, PostgresDatabase, SqliteDatabase

KINDS = ("sqlite", pytest.param("postgres", marks=pytest.mark.servers))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a file that does not exist yet."""
    return f"sqlite:///{tmp_path}/memory.db"


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, of each kind that processes can share."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def database(url: str, request: pytest.FixtureRequest) -> Database:
    """A database with the session "shared" of alice."""
    with sync.open(url) as memory:
        memory.sessions.create_session("shared", "app", "alice")
    if url.startswith("sqlite"):
        return SqliteDatabase(url)
    return PostgresDatabase(url, request.getfixturevalue("postgres_schema"))


@pytest.fixture
def file(sqlite_url: str) -> SqliteDatabase:
    """A file with the session "shared" of alice."""
    with sync.open(sqlite_url) as memory:
        memory.sessions.create_session("shared", "app", "alice")
    return SqliteDatabase(sqlite_url)


class Heartbeat:
    """A task that notes the time again and again while it is entered; the event loop must let it."""

    def __init__(self) -> None:
        self._times: list[float] = []

    @property
    def beats(self) -> int:
        return len(self._times)

    @property
    def longest_pause(self) -> float:
        """In seconds."""
        return max(later - earlier for earlier, later in pairwise(self._times))

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._beat())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _beat(self) -> None:
        while True:
            self._times.append(time.monotonic())
            await asyncio.sleep(0.01)


@pytest.fixture
def heartbeat() -> Heartbeat:
    return Heartbeat()
