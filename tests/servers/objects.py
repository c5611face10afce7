"""An S3 endpoint on this machine, with any credentials, and nothing kept: moto speaks the protocol."""

import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .processes import Account, Server, answers_http, directory_for, free_ports, running


@contextmanager
def objects() -> Iterator[Server]:
    """Run an object store that speaks S3's protocol."""
    with directory_for("objects") as directory:
        (port,) = free_ports(1)
        server = Server(
            name="The object store",
            url=f"http://127.0.0.1:{port}",
            directory=directory,
            command=[Path(sysconfig.get_path("scripts")) / "moto_server", "-H", "127.0.0.1", "-p", str(port)],
            answers=lambda: answers_http(port, "/moto-api/"),
            account=Account.current(),
        )
        with running(server):
            yield server
