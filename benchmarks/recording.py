"""The statements that Mnemon runs, with their parameters, to be run again by the bare driver."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias
from unittest.mock import patch

Statement: TypeAlias = tuple[str, str, Any]
"""The driver's method, the SQL, its parameters."""


class Tape:
    """Takes down what is run through the connections that are made while it is on."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self._connection = _noting(self.statements)

    @contextmanager
    def on(self) -> Iterator[None]:
        connect = partial(sqlite3.connect, factory=self._connection)
        with patch.object(sqlite3, "connect", connect):
            yield

    def take(self) -> list[Statement]:
        """What came since the last time, without settings and upkeep."""
        taken = self.statements.copy()
        del self.statements[: len(taken)]
        return [statement for statement in taken if not statement[1].startswith("PRAGMA")]


def _noting(statements: list[Statement]) -> type[sqlite3.Connection]:
    """Connections that note all they run, for as long as they live."""

    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, params: Any = ()) -> sqlite3.Cursor:
            statements.append(("execute", sql, params))
            return super().execute(sql, params)

        def executemany(self, sql: str, params: Any) -> sqlite3.Cursor:
            statements.append(("executemany", sql, params))
            return super().executemany(sql, params)

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, params: Any = ()) -> sqlite3.Cursor:
            return self.cursor().execute(sql, params)

        def executemany(self, sql: str, params: Any) -> sqlite3.Cursor:
            return self.cursor().executemany(sql, params)

    return Connection


def replay(connection: sqlite3.Connection) -> Callable[..., None]:
    """Runs statements of a tape and fetches their rows."""
    execute, execute_many = connection.execute, connection.executemany

    def run(*statements: Statement) -> None:
        for method, sql, params in statements:
            if method == "execute":
                execute(sql, params).fetchall()
            else:
                execute_many(sql, params)

    return run
