"""The servers of the tests are real, separate for each test, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests import servers

ROOT = Path(__file__).parent.parent


def refuses_connections(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return True
    return False


def data_directory(url: str) -> Path:
    with psycopg.connect(url) as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        return Path(row[0])


def test_a_test_has_a_schema_of_its_own(postgres_url: str, postgres_schema: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"CREATE SCHEMA {postgres_schema}")
        connection.execute(f"CREATE TABLE {postgres_schema}.kept (id integer)")
    assert os.environ["MNEMON_POSTGRES_SCHEMA"] == postgres_schema


def test_schemas_of_earlier_tests_are_gone(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'test_%'").fetchall() == []


@pytest.mark.servers
def test_a_stopped_server_leaves_nothing() -> None:
    with servers.postgres() as url:
        directory = data_directory(url).parent
        assert directory.exists()
    assert not directory.exists()
    assert refuses_connections(url)


@pytest.mark.servers
def test_a_server_ends_with_the_process_that_started_it() -> None:
    script = "from tests import servers\nwith servers.postgres() as url: print(url, flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, **pipes) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        directory = data_directory(url).parent
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + servers.STOP_SECONDS
    while directory.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not directory.exists()
    assert refuses_connections(url)


def test_a_server_that_cannot_start_says_why(postgres_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = psycopg.conninfo.conninfo_to_dict(postgres_server)["port"]
    monkeypatch.setattr(servers, "_free_port", lambda: taken)
    with pytest.raises(servers.ServerFailed, match="Address already in use"), servers.postgres():
        pass
