"""The command line over PostgreSQL."""

import psycopg
import pytest

from tests.cli.conftest import Ask, Run


@pytest.mark.parametrize(
    "arguments", [("recall", "x", "-n", ""), ("forget", "user:a", "--yes"), ("index", "status"), ("index", "settle")]
)
def test_only_remember_makes_a_database(
    run: Run, ask: Ask, postgres_url: str, postgres_schema: str, arguments: tuple[str, ...]
) -> None:
    result = run(*arguments, "--url", postgres_url)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("Error: there is no database at PostgreSQL 127.0.0.1")
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regnamespace(%s)", [postgres_schema]).fetchone() == (None,)
    ask("remember", "Alice lives in Oslo", "-n", "user:a", "--url", postgres_url)
    assert run(*arguments, "--url", postgres_url).exit_code == 0
