"""A server as a process: started on ports of its own, ended and started again, never left running."""

import http.client
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START_SECONDS = 120
STOP_SECONDS = 30
SHOWN_LINES = 40

# Ends the server at a line of the standard input. A killed test run closes that pipe without one: then the
# directory goes too. INT is PostgreSQL's fast shutdown, TERM ends the others. `$0` is the directory, `$@` the command.
SUPERVISE = """
exec 3<&0
"$@" 3<&- & server=$!
{
    read -r order <&3; orphaned=$?
    trap '' TERM
    if [ "$order" = kill ]; then kill -KILL $server; else kill -INT $server; kill -TERM $server; fi
    [ $orphaned = 0 ] && exit
    while kill -0 $server; do sleep 0.05; done
    rm -rf "$0"
} 2>/dev/null & reader=$!
wait $server; status=$?
kill $reader 2>/dev/null
exit $status
"""


class ServerFailed(Exception):
    """A server the tests need cannot be had; the message says why."""


def last_lines(text: str) -> str:
    return "\n".join(text.splitlines()[-SHOWN_LINES:])


def run(what: str, command: Sequence[str | Path], **options: Any) -> str:
    """What a command printed; `ServerFailed` with the end of it if it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    except OSError as error:
        raise ServerFailed(f"{what} cannot be run: {error}") from error
    if done.returncode:
        raise ServerFailed(f"{what} failed:\n{last_lines(done.stdout + done.stderr)}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Account:
    """The system user that a server runs as."""

    uid: int
    gid: int

    @classmethod
    def current(cls) -> "Account":
        return cls(os.geteuid(), os.getegid())

    @classmethod
    def unprivileged(cls) -> "Account":
        """Anybody but root, whom PostgreSQL refuses, and whom a program from elsewhere need not be."""
        if os.geteuid() != 0:
            return cls.current()
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


@dataclass(slots=True)
class Server:
    """A server of the tests, which can be ended and started again with the same ports and data.

    A test that ends a server others use too starts it again: `outage` sees to that.
    """

    name: str
    url: str
    directory: Path
    command: Sequence[str | Path]
    answers: Callable[[], bool]
    account: Account
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    grpc_port: int | None = None
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def start(self) -> None:
        """Start it, unless it runs, and wait until it answers; else `ServerFailed` with the end of its log."""
        if self._process is not None and self._process.poll() is None:
            return
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", SUPERVISE, self.directory, *self.command],
                cwd=self.directory,
                env={**os.environ, **self.environment},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self.account.process_options(),
            )
        try:
            self._wait_until_it_answers(self._process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it in good order, and keep its data. Ending one that has ended does nothing."""
        self._end(b"stop\n")

    def kill(self) -> None:
        """End it as `kill -9` does, without any chance to save what it has in memory."""
        self._end(b"kill\n")

    @contextmanager
    def outage(self) -> Iterator[None]:
        """The server is killed inside, and there again afterwards."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    def _end(self, order: bytes) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(order, timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise ServerFailed(f"{self.name} did not stop:\n{self._end_of_log()}") from None

    def _wait_until_it_answers(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} did not start:\n{self._end_of_log()}")
            time.sleep(0.02)
        if process.poll() is not None:
            raise ServerFailed(f"another server answers at the port of {self.name}:\n{self._end_of_log()}")

    def _end_of_log(self) -> str:
        return last_lines(self.log.read_text(errors="replace"))


@contextmanager
def directory_for(name: str) -> Iterator[Path]:
    """A directory for the files of a server, removed afterwards."""
    directory = Path(tempfile.mkdtemp(prefix=f"mnemon-{name}-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


def free_ports(count: int) -> range:
    """Neighbouring ports that nobody listens at.

    They lie below those that the system gives to outgoing connections, one of which could take the port of a server
    that is down for a while.
    """
    choice = random.SystemRandom()
    while True:
        first = choice.randrange(15_000, 30_000)
        ports = range(first, first + count)
        if all(map(_is_free, ports)):
            return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def answers_http(port: int, path: str) -> bool:
    """Whether a request to this machine gets a good answer; no proxy is asked."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 300
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
