"""Vector stores on the tests' servers, and how to leave nothing of a test there."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import httpx

from mnemon.settings import Settings
from tests.servers import Server
from tests.servers.processes import free_ports

TIMEOUT = 5.0
NOBODY = ["refused", "silent"]


def port_of(server: Server) -> int:
    return int(server.url.rpartition(":")[2])


def url_of(server: Server, *, grpc: bool = True) -> str:
    """How the setting `vector_stores` names the server."""
    options = f"?grpc_port={server.grpc_port}" if server.grpc_port and grpc else ""
    return f"{server.name.lower()}://127.0.0.1:{port_of(server)}{options}"


@contextmanager
def nobody(kind: str) -> Iterator[int]:
    """A port where connections are refused, or accepted and never answered."""
    if kind == "refused":
        yield free_ports(1)[0]
        return
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        yield silent.getsockname()[1]


@contextmanager
def own_collections(server: Server) -> Iterator[Settings]:
    """Settings whose collections no other test sees; they are removed afterwards, past the drivers."""
    settings = Settings(vector_collection_prefix=f"t{uuid4().hex}", vector_timeout=TIMEOUT)
    yield settings
    remove_collections(server, settings)


def remove_collections(server: Server, settings: Settings) -> None:
    with httpx.Client(base_url=server.url, timeout=30) as client:
        for path in _own(server, settings, client):
            client.delete(path).raise_for_status()


def collections_of(server: Server, settings: Settings) -> dict[str, int]:
    """The collections that belong to settings, and how many records each holds, past the drivers."""
    with httpx.Client(base_url=server.url, timeout=30) as client:
        return {path: _count(server, path, client) for path in _own(server, settings, client)}


def _own(server: Server, settings: Settings, client: httpx.Client) -> list[str]:
    return [path for path in _collections(server, client) if settings.vector_collection_prefix in path.lower()]


def _count(server: Server, path: str, client: httpx.Client) -> int:
    base, _, name = path.rpartition("/")
    match server.name:
        case "Qdrant":
            return client.post(f"{path}/points/count", json={"exact": True}).json()["result"]["count"]
        case "Weaviate":
            asked = {"query": f"{{Aggregate{{{name}{{meta{{count}}}}}}}}"}
            return client.post("/v1/graphql", json=asked).json()["data"]["Aggregate"][name][0]["meta"]["count"]
        case _:
            return client.get(f"{base}/{client.get(path).json()['id']}/count").json()


def _collections(server: Server, client: httpx.Client) -> list[str]:
    match server.name:
        case "Qdrant":
            found = client.get("/collections").raise_for_status().json()["result"]["collections"]
            return [f"/collections/{each['name']}" for each in found]
        case "Weaviate":
            found = client.get("/v1/schema").raise_for_status().json()["classes"]
            return [f"/v1/schema/{each['class']}" for each in found]
        case _:
            path = "/api/v2/tenants/default_tenant/databases/default_database/collections"
            return [f"{path}/{each['name']}" for each in client.get(path).raise_for_status().json()]
