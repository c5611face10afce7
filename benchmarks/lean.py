"""The floor: the same logical work, written by hand for `sqlite3`, on tables with primary keys and nothing else.

One JSON document holds an event with its delta. There are no checks, no status, no other indexes, no provenance.
"""

import sqlite3
import time
from pathlib import Path
from typing import Any

import orjson

_SCHEMA = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, user_id TEXT, version INTEGER) WITHOUT ROWID;
CREATE TABLE events (session_id TEXT, sequence INTEGER, at INTEGER, body TEXT, PRIMARY KEY (session_id, sequence))
    WITHOUT ROWID;
CREATE TABLE state (owner TEXT, key TEXT, value TEXT, version INTEGER, PRIMARY KEY (owner, key)) WITHOUT ROWID;
CREATE TABLE memories (
    namespace TEXT, key TEXT, version INTEGER, current INTEGER, kind TEXT, value TEXT, metadata TEXT, author TEXT,
    at INTEGER, PRIMARY KEY (namespace, key, version)
) WITHOUT ROWID;
CREATE TABLE journal (
    position INTEGER PRIMARY KEY, at INTEGER, entity TEXT, entity_id TEXT, operation TEXT, version INTEGER, owner TEXT
);
"""
_ADVANCE = "UPDATE sessions SET version = version + 1 WHERE id = ? RETURNING version, user_id"
_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?)"
_STATE = (
    "INSERT INTO state VALUES (?, ?, ?, 1) "
    "ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value, version = version + 1"
)
_JOURNAL = "INSERT INTO journal (at, entity, entity_id, operation, version, owner) VALUES (?, ?, ?, ?, ?, ?)"
_LAST = "SELECT sequence, at, body FROM events WHERE session_id = ? ORDER BY sequence DESC LIMIT ?"
_ALL = "SELECT sequence, at, body FROM events WHERE session_id = ? ORDER BY sequence"
_OWNED = "SELECT key, value FROM state WHERE owner IN (?, ?)"
_MEMORY = "namespace, key, version, kind, value, metadata, author, at"
_ADD = "INSERT INTO memories VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?)"
_GET = f"SELECT {_MEMORY} FROM memories WHERE namespace = ? AND key = ? AND current ORDER BY version DESC LIMIT 1"
_RETIRE = (
    "UPDATE memories SET current = 0 WHERE namespace = ? AND key = ? AND current RETURNING version, kind, metadata"
)
_SEARCH = f"SELECT {_MEMORY} FROM memories WHERE namespace = ? AND current ORDER BY key LIMIT ?"
_BELOW = (
    f"SELECT {_MEMORY} FROM memories WHERE namespace >= ? AND namespace < ? AND current ORDER BY namespace, key LIMIT ?"
)


class Lean:
    """One connection and the statements that are needed; write-ahead log, `synchronous=NORMAL`."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self._execute = self.connection.execute
        self._execute("PRAGMA journal_mode = WAL")
        self._execute("PRAGMA synchronous = NORMAL")
        self.connection.executescript(_SCHEMA)

    def close(self) -> None:
        self.connection.close()

    def create_session(self, session_id: str, user_id: str) -> None:
        self._execute("INSERT INTO sessions VALUES (?, ?, 0)", (session_id, user_id))

    def append(self, session_id: str, event: dict[str, Any], delta: dict[str, Any]) -> int:
        self._execute("BEGIN IMMEDIATE")
        version = self.write_event(session_id, event, delta)
        self._execute("COMMIT")
        return version

    def append_group(self, group: list[tuple[str, dict[str, Any], dict[str, Any]]]) -> None:
        self._execute("BEGIN IMMEDIATE")
        for session_id, event, delta in group:
            self.write_event(session_id, event, delta)
        self._execute("COMMIT")

    def write_event(self, session_id: str, event: dict[str, Any], delta: dict[str, Any]) -> int:
        execute, now = self._execute, time.time_ns() // 1000
        [(version, user_id)] = execute(_ADVANCE, (session_id,)).fetchall()
        body = orjson.dumps({"event": event, "delta": delta}).decode()
        execute(_EVENT, (session_id, version, now, body))
        for key, value in delta.items():
            owner = user_id if key.startswith("user:") else session_id
            execute(_STATE, (owner, key, orjson.dumps(value).decode()))
        execute(_JOURNAL, (now, "event", session_id, "append", version, user_id))
        return version

    def last_events(self, session_id: str, count: int) -> list[tuple[Any, ...]]:
        rows = self._execute(_LAST, (session_id, count)).fetchall()
        return [(sequence, at, orjson.loads(body)) for sequence, at, body in reversed(rows)]

    def session(self, session_id: str) -> tuple[Any, ...]:
        execute = self._execute
        execute("BEGIN")
        row = execute("SELECT id, user_id, version FROM sessions WHERE id = ?", (session_id,)).fetchone()
        state = {key: orjson.loads(value) for key, value in execute(_OWNED, row[:2])}
        events = [(sequence, at, orjson.loads(body)) for sequence, at, body in execute(_ALL, (session_id,)).fetchall()]
        execute("COMMIT")
        return (*row, state, events)

    def add(self, namespace: str, key: str, value: Any, metadata: Any) -> None:
        self._execute("BEGIN IMMEDIATE")
        self.write_memory(namespace, key, value, metadata)
        self._execute("COMMIT")

    def write_memory(self, namespace: str, key: str, value: Any, metadata: Any) -> None:
        now = time.time_ns() // 1000
        row = (
            namespace,
            key,
            1,
            "semantic",
            orjson.dumps(value).decode(),
            orjson.dumps(metadata).decode(),
            "bench",
            now,
        )
        self._execute(_ADD, row)
        self._execute(_JOURNAL, (now, "memory", key, "add", 1, namespace))

    def get(self, namespace: str, key: str) -> tuple[Any, ...]:
        return _memory(self._execute(_GET, (namespace, key)).fetchall()[0])

    def update(self, namespace: str, key: str, value: Any) -> int:
        execute, now = self._execute, time.time_ns() // 1000
        execute("BEGIN IMMEDIATE")
        [(version, kind, metadata)] = execute(_RETIRE, (namespace, key)).fetchall()
        row = (namespace, key, version + 1, kind, orjson.dumps(value).decode(), metadata, "bench", now)
        execute(_ADD, row)
        execute(_JOURNAL, (now, "memory", key, "update", version + 1, namespace))
        execute("COMMIT")
        return version + 1

    def search(self, namespace: str, limit: int) -> list[tuple[Any, ...]]:
        return [_memory(row) for row in self._execute(_SEARCH, (namespace, limit)).fetchall()]

    def search_below(self, prefix: str, limit: int) -> list[tuple[Any, ...]]:
        rows = self._execute(_BELOW, (f"{prefix}:", f"{prefix};", limit)).fetchall()
        return [_memory(row) for row in rows]


def _memory(row: tuple[Any, ...]) -> tuple[Any, ...]:
    namespace, key, version, kind, value, metadata, author, at = row
    return (namespace, key, version, kind, orjson.loads(value), orjson.loads(metadata), author, at)
