"""Every query of the public interface finds what it wants through an index."""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import mnemon
from mnemon.ports import Params, Row, Store, Transaction, Unit
from mnemon.sql import Query
from mnemon.testing.handles import over, parts_of
from tests.robustness.exercise import ENDLESS, Call, Recorder, exercise, public_methods, public_parameters, settings

pytestmark = pytest.mark.unmeasured

REQUIRED_INDEXES = {
    "idx_sessions_status_updated",
    "idx_sessions_user_created",
    "idx_sessions_project_id",
    "idx_sessions_app_user",
    "idx_memory_namespace_key_version",
    "idx_memory_type_updated",
    "idx_memory_namespace_prefix",
    "idx_memory_created_by",
    "idx_memory_updated_at",
    "idx_memory_type_namespace",
    "idx_memory_is_deleted",
    "idx_document_file_path",
    "idx_document_type",
    "idx_document_sync_status",
    "idx_document_hash",
    "idx_document_updated",
}

# Every row that may be sealed is looked at where keys are rotated, a page at a time.
SEALABLE = r"^(scan_rows|scan_contents|count_rows):"

# A plan that searches may still walk over everything, as where an index gives only the order. These do, knowingly:
WALKS = (
    r"json_type\(metadata",  # a filter on metadata looks at all that the rest of the search leaves
    r"^count_after:",  # counts what is not sealed, which is little while the housekeeper works
    r"operation = :operation|entity = :entity",  # of few values, each of which is frequent
    r"\(session_id = :session_id\)",
    r"namespace = :open0",  # what a principal may see of the journal
    r"^list_(active|sessions):.*user_owner0",  # what a principal may see of all sessions
    r"^search_recent:.*namespace = :within0",
    r"^(count_)?tail:",  # what a vector store has not been told yet, which is little while the indexer works
    r"^count_(changes|written):",  # how much there is for a new embedder to do
    r"^valid_then:.*AND \(1 = 1\)",  # all that there was
    r"^(footprints|count_memories|content_size|orphaned_vectors|orphaned_uses):",  # all that there is is weighed
    SEALABLE,
)

Plans = dict[str, list[str]]


class Statements(dict[str, tuple[Query, Params]]):
    """Each statement once, by its text, with the parameters that it first had."""

    def note(self, query: Query, params: Params) -> None:
        self.setdefault(query.text, (query, params))


class NotingTransaction:
    """A transaction that notes its statements."""

    def __init__(self, tx: Transaction, note: Callable[[Query, Params], None]) -> None:
        self._tx = tx
        self._note = note

    def __getattr__(self, name: str) -> Callable[[Query, Any], Any]:
        method = getattr(self._tx, name)

        def call(query: Query, params: Any) -> Any:
            for row in [params] if isinstance(params, dict) else params[:1]:
                self._note(query, row)
            return method(query, params)

        return call


class NotingStore:
    """A store that notes the statements which it is given."""

    def __init__(self, store: Store, statements: Statements) -> None:
        self._store = store
        self._note = statements.note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, unit: Unit[Any]) -> Any:
        return await self._store.write(lambda tx: unit(NotingTransaction(tx, self._note)))

    async def read(self, unit: Unit[Any], *, long: bool = False) -> Any:
        return await self._store.read(lambda tx: unit(NotingTransaction(tx, self._note)), long=long)

    async def fetch(self, query: Query, params: Params) -> list[Row]:
        self._note(query, params)
        return await self._store.fetch(query, params)


async def use_everything(memory: mnemon.HybridMemoryService) -> tuple[Statements, list[Call]]:
    """Call the whole public interface; the statements that this took, and the calls."""
    statements, calls = Statements(), list[Call]()
    noting = over(memory, NotingStore(parts_of(memory).store, statements))
    await exercise(Recorder(noting, calls))
    return statements, calls


async def explain(store: Store, statements: Statements, how: str, *preparing: str) -> Plans:
    """The lines of each statement's plan, by its name and text."""
    plans: Plans = {}
    for text, (query, params) in statements.items():

        async def unit(tx: Transaction, text: str = text, params: Params = params) -> list[Row]:
            for statement in preparing:
                await tx.execute(Query("prepare", statement), {})
            return await tx.fetch_all(Query("explain", f"{how} {text}"), params)

        plans[f"{query.name}: {text}"] = [str(row[-1]) for row in await store.read(unit)]
    return plans


def found_in(plans: Plans, pattern: str) -> dict[str, list[str]]:
    """The plans that have a line like `pattern`, with those lines."""
    lines = {name: [line for line in plan if re.search(pattern, line)] for name, plan in plans.items()}
    return {name: matching for name, matching in lines.items() if matching}


@pytest.fixture
async def sqlite_plans(sqlite_url: str) -> Plans:
    async with mnemon.open(sqlite_url, **settings()) as memory:
        statements, _ = await use_everything(memory)
        return await explain(parts_of(memory).store, statements, "EXPLAIN QUERY PLAN")


def test_no_query_of_sqlite_scans_a_table(sqlite_plans: Plans) -> None:
    # A JSON value is scanned by what is in it; constant rows, and the few that a part of the query found, are no table;
    # a full-text index answers by itself.
    few = r"json_each|CONSTANT ROW|\d+ CONSTANT|places|changes|\w+ VIRTUAL TABLE INDEX \d+:"
    scans = found_in(sqlite_plans, rf"^SCAN (?!{few})")
    knowingly = rf"^valid_then:.*AND \(1 = 1\)|{SEALABLE}"
    assert [name for name in scans if not re.search(knowingly, name, re.DOTALL)] == []


def test_every_required_index_is_of_use(sqlite_plans: Plans) -> None:
    used = {name for plan in sqlite_plans.values() for line in plan for name in re.findall(r"INDEX (idx_\w+)", line)}
    assert used >= REQUIRED_INDEXES


async def test_no_index_is_there_for_nothing(sqlite_url: str, sqlite_plans: Plans) -> None:
    used = {name for plan in sqlite_plans.values() for line in plan for name in re.findall(r"INDEX (idx_\w+)", line)}
    async with mnemon.open(sqlite_url) as memory:
        query = Query("indexes", "SELECT name FROM sqlite_schema WHERE type = 'index' AND name LIKE 'idx%'")
        present = {name for (name,) in await parts_of(memory).store.fetch(query, {})}
    assert present - used == set()


async def fill(memory: mnemon.HybridMemoryService, mark: str, size: int) -> None:
    """Put down sessions, events, state, tasks and memories of other people."""
    for number in range(size):
        name = f"{mark}{number}"
        await memory.sessions.create_session(name, "app", f"user{number % 50}", "p2")
        await memory.sessions.append_event(name, {"n": 1}, {"user:a": 1, "b": 1}, actor="zoe", task_id=name)
        await memory.memories.add_memory(f"user:user{number % 50}:{name}", "k", {"n": 1}, "episodic", "zoe")
        await memory.tasks.create("job", session_id=name)
        await memory.agents.create(name, name="other", namespace=f"user:user{number % 50}:{name}")
        await memory.agents.capture_proposal(name, {"n": 1}, session_id=name)


async def count_steps(path: Path, size: int) -> dict[str, int]:
    """How many steps of SQLite's machine each reading statement takes in the midst of other people's data."""
    async with mnemon.open(f"sqlite:///{path}", **settings()) as memory:
        await fill(memory, "before", size)
        statements, _ = await use_everything(memory)
        await fill(memory, "after", size)
    with closing(sqlite3.connect(path)) as connection:
        return {
            f"{query.name}: {text}": _steps(connection, text, params)
            for text, (query, params) in statements.items()
            if text.startswith(("SELECT", "WITH"))
        }


def _steps(connection: sqlite3.Connection, text: str, params: Params) -> int:
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 20

    connection.set_progress_handler(count, 20)
    connection.execute(text, params).fetchall()
    connection.set_progress_handler(None, 0)
    return steps


async def test_no_query_walks_over_what_it_is_not_about(tmp_path: Path) -> None:
    few, many = await count_steps(tmp_path / "few.db", 60), await count_steps(tmp_path / "many.db", 600)
    walks = {name: (steps, many[name]) for name, steps in few.items() if many.get(name, 0) > 3 * steps + 400}
    excused = {name for name in walks for reason in WALKS if re.search(reason, name, re.DOTALL)}
    assert {name: steps for name, steps in walks.items() if name not in excused} == {}


async def test_no_query_of_postgres_needs_to_scan_a_table(postgres_url: str) -> None:
    async with mnemon.open(postgres_url, **settings()) as memory:
        statements, _ = await use_everything(memory)
        # An empty table is read whole whatever the indexes: this asks what is possible, not what is quick.
        store = parts_of(memory).store
        plans = await explain(store, statements, "EXPLAIN", "SET LOCAL enable_seqscan = off")
    assert found_in(plans, "Seq Scan") == {}


async def test_everything_public_is_tried_with_every_parameter(sqlite_url: str) -> None:
    async with mnemon.open(sqlite_url, **settings()) as memory:
        _, calls = await use_everything(memory)
    called = {(call.service, call.method) for call in calls}
    passed = {(call.service, call.method, name) for call in calls for name in call.parameters()}
    assert public_methods() - called == ENDLESS | {("", "close")}
    assert {(service, method) for service, method, _ in public_parameters() - passed} == ENDLESS
