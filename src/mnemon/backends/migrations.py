"""Alembic migrations, imported only when a database has an older schema than the program.

To change the schema: add a revision to each backend's `migrations/versions`, make the same change in
its `schema.sql`, and raise `HEAD`. A test compares what the two ways lead to.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mnemon.backends.schema import HEAD, VERSION_TABLE
from mnemon.errors import SchemaMismatch

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection

BASE = "base"

_DIALECTS = {"sqlite": "sqlite://", "postgres": "postgresql+psycopg://"}


def migrate(
    backend: Literal["sqlite", "postgres"], connect: Callable[[], Any], alone: str, target: str | None = None
) -> None:
    """Take a database up or down to the revision `target`, wholly or not at all; by default to the newest.

    `connect` makes a connection of the backend's driver. `alone` is the statement that begins a
    transaction by keeping every other process from migrating until its end. Idempotent.
    """
    import sqlalchemy
    from alembic.util import CommandError
    from sqlalchemy import event
    from sqlalchemy.exc import DBAPIError

    engine = sqlalchemy.create_engine(_DIALECTS[backend], creator=connect, poolclass=sqlalchemy.NullPool)

    def begin(connection: "Connection") -> None:
        connection.exec_driver_sql(alone)

    event.listen(engine, "begin", begin)
    try:
        with engine.begin() as connection:
            _run(connection, Path(__file__).parent / backend / "migrations", target or HEAD)
    except CommandError as error:
        raise SchemaMismatch(f"the database cannot be migrated to {target or HEAD}: {error}") from error
    except DBAPIError as error:
        raise (error.orig or error) from error


def _run(connection: "Connection", folder: Path, target: str) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(folder)
    with EnvironmentContext(Config(), script, fn=_steps(script, target), destination_rev=target) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE, transactional_ddl=True)
        environment.run_migrations()
    if target == BASE:
        connection.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")


def _steps(script: "ScriptDirectory", target: str) -> Callable[..., Any]:
    def steps(present: Any, context: Any) -> Any:
        if target == BASE or target < "".join(present):
            return script._downgrade_revs(target, present)  # pyright: ignore[reportPrivateUsage]
        return script._upgrade_revs(target, present)  # pyright: ignore[reportPrivateUsage]

    return steps


def execute_script(connection: "Connection", text: str) -> None:
    """Run the statements of `text`; each ends with a `;` at the end of a line."""
    one_at_a_time = connection.dialect.name == "sqlite"
    for statement in text.strip().split(";\n") if one_at_a_time else [text]:
        connection.exec_driver_sql(statement)
