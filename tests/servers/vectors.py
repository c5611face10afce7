"""Qdrant, Weaviate and Chroma: vector databases on free ports of this machine, with no password and nothing kept."""

import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .binaries import QDRANT, WEAVIATE, Binary
from .processes import Account, Server, answers_http, directory_for, free_ports, running


@contextmanager
def qdrant() -> Iterator[Server]:
    """Run Qdrant; REST at `url`, gRPC at `grpc_port`."""
    account = Account.unprivileged()
    with directory_for("qdrant") as directory:
        port, grpc_port = free_ports(2)
        server = Server(
            name="Qdrant",
            url=f"http://127.0.0.1:{port}",
            directory=directory,
            command=[_install(QDRANT, directory, account), "--disable-telemetry"],
            answers=lambda: answers_http(port, "/readyz"),
            account=account,
            environment={
                "QDRANT__SERVICE__HOST": "127.0.0.1",
                "QDRANT__SERVICE__HTTP_PORT": str(port),
                "QDRANT__SERVICE__GRPC_PORT": str(grpc_port),
                "QDRANT__STORAGE__STORAGE_PATH": str(directory / "storage"),
                "QDRANT__STORAGE__SNAPSHOTS_PATH": str(directory / "snapshots"),
            },
            grpc_port=grpc_port,
        )
        with running(server):
            yield server


@contextmanager
def weaviate() -> Iterator[Server]:
    """Run Weaviate without any module; REST at `url`, gRPC at `grpc_port`."""
    account = Account.unprivileged()
    with directory_for("weaviate") as directory:
        port, grpc_port, *cluster_ports = free_ports(6)
        program = _install(WEAVIATE, directory, account)
        server = Server(
            name="Weaviate",
            url=f"http://127.0.0.1:{port}",
            directory=directory,
            command=[program, "--scheme=http", "--host=127.0.0.1", f"--port={port}"],
            answers=lambda: answers_http(port, "/v1/.well-known/ready"),
            account=account,
            environment=_weaviate_environment(directory, grpc_port, cluster_ports),
            grpc_port=grpc_port,
        )
        with running(server):
            yield server


def _weaviate_environment(directory: Path, grpc_port: int, cluster_ports: list[int]) -> dict[str, str]:
    """Weaviate is a cluster even when it is alone; one that need not wait for others starts sooner."""
    gossip, data, raft, rpc = map(str, cluster_ports)
    return {
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "true",
        "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
        "CLUSTER_BIND_ADDR": "127.0.0.1",
        "CLUSTER_DATA_BIND_PORT": data,
        "CLUSTER_GOSSIP_BIND_PORT": gossip,
        "CLUSTER_HOSTNAME": "mnemon",
        "CLUSTER_IN_LOCALHOST": "true",
        "DEFAULT_VECTORIZER_MODULE": "none",
        "DISABLE_TELEMETRY": "true",
        "ENABLE_API_BASED_MODULES": "false",
        "GO_PROFILING_DISABLE": "true",
        "GRPC_PORT": str(grpc_port),
        "PERSISTENCE_DATA_PATH": str(directory / "data"),
        "RAFT_BOOTSTRAP_EXPECT": "1",
        "RAFT_ELECTION_TIMEOUT": "1",
        "RAFT_HEARTBEAT_TIMEOUT": "1",
        "RAFT_INTERNAL_RPC_PORT": rpc,
        "RAFT_PORT": raft,
        "RAFT_TIMEOUTS_MULTIPLIER": "1",
    }


@contextmanager
def chroma() -> Iterator[Server]:
    """Run Chroma as the user of the tests: it is a program of the virtual environment."""
    with directory_for("chroma") as directory:
        (port,) = free_ports(1)
        program = Path(sysconfig.get_path("scripts")) / "chroma"
        server = Server(
            name="Chroma",
            url=f"http://127.0.0.1:{port}",
            directory=directory,
            command=[program, "run", "--path", directory / "data", "--host", "127.0.0.1", "--port", str(port)],
            answers=lambda: answers_http(port, "/api/v2/heartbeat"),
            account=Account.current(),
        )
        with running(server):
            yield server


def _install(binary: Binary, directory: Path, account: Account) -> Path:
    """The program where the server's user, who cannot enter the home of root, reaches it."""
    kept = binary.ensure()
    if not account.is_other:
        return kept
    program = Path(shutil.copy(kept, directory))
    account.own(directory)
    return program
