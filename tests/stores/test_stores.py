"""Choosing a vector store by its URL, and what all drivers share."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mnemon import sync
from mnemon.backends.addresses import Address
from mnemon.backends.remote import Connection, Trouble, collection_name
from mnemon.backends.stores import check_url, load_store
from mnemon.errors import InvalidSettings, StoreClosed, StoreError, StoreUnavailable
from mnemon.model import EmbeddingModel
from mnemon.settings import Settings
from mnemon.testing.vector_samples import space_of

SPACE = space_of("first")

# -------------------------------------------------------------------------------------------------------------- URLs


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("qdrant://db", "qdrant://db:6333/"),
        ("qdrant://db:7000?grpc_port=7001", "qdrant://db:7000/"),
        ("qdrant+https://:key@db", "qdrant+https://db:443/"),
        ("weaviate://db", "weaviate://db:8080/"),
        ("weaviate+https://db:8443?grpc_host=grpc.db&grpc_port=443", "weaviate+https://db:8443/"),
        ("weaviate+https://db?grpc_host=grpc.db", "weaviate+https://db:443/"),
        ("chroma://db", "chroma://db:8000/"),
        ("chroma+https://db?tenant=t&database=d", "chroma+https://db:443/"),
        ("chroma:///folder", "chroma:///folder/"),
        ("chroma:////absolute/folder", "chroma:////absolute/folder/"),
    ],
)
def test_a_url_says_where_the_store_is(url: str, place: str) -> None:
    store = load_store(url, SPACE, Settings())
    assert vars(store)["_place"].lower().startswith(f"{place}mnemon_first_1_16_")
    store.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("milvus://db", "should begin with qdrant:, weaviate: or chroma:, not with 'milvus'"),
        ("", "should begin with"),
        ("db:6333", "not with 'db'"),
        ("qdrant+ssl://db", r"should begin with qdrant: or qdrant\+https:"),
        ("qdrant://", "should be qdrant://host:6333"),
        ("qdrant:///folder", "should be qdrant://host:6333"),
        ("qdrant://db/prefix", "should be qdrant://host:6333"),
        ("qdrant://db#part", "should begin with"),
        ("qdrant://db:hush", "special characters as %XX"),
        ("qdrant://db:99999", "special characters as %XX"),
        ("qdrant://hush@db", "the key for qdrant is the URL's password"),
        ("qdrant://user:hush@db", "the key for qdrant is the URL's password"),
        ("qdrant://db?colour=red", "has no option 'colour'; use any of api_key_env, grpc_port"),
        ("qdrant://db?grpc_port=many", "grpc_port .* should be a port"),
        ("qdrant://db?grpc_port=0", "grpc_port .* should be a port"),
        ("qdrant://db?api_key_env=NO_SUCH_VARIABLE", "names the variable 'NO_SUCH_VARIABLE', which is not set"),
        ("qdrant://db?grpc_port=6333", "needs a grpc_port that differs"),
        ("weaviate://db?tenant=x", "has no option 'tenant'"),
        ("weaviate://db:8080?grpc_port=8080", "needs a grpc_host or grpc_port that differs"),
        ("weaviate+https://db", "needs a grpc_host or grpc_port that differs"),
        ("chroma://", "should be chroma://host:8000, or chroma:///folder"),
        ("chroma+https:///folder", "should be chroma://host:8000, or chroma:///folder"),
        ("chroma://db/path", "should be chroma://host:8000"),
    ],
)
def test_a_url_that_cannot_be_used_is_explained(url: str, message: str) -> None:
    with pytest.raises(InvalidSettings, match=message) as refused:
        check_url(url)
    assert "hush" not in str(refused.value)
    with pytest.raises(InvalidSettings, match=message):
        load_store(url, SPACE, Settings())


def test_an_address_hides_its_key() -> None:
    address = Address.parse("qdrant://:hush@db:6333")
    assert address.api_key == "hush"
    assert "hush" not in f"{address} {address!r}"


@pytest.mark.parametrize(
    ("technology", "library"), [("qdrant", "qdrant_client"), ("weaviate", "weaviate"), ("chroma", "chromadb")]
)
def test_a_missing_library_is_named_with_its_remedy(
    technology: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name == library or name.startswith(f"{library}."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"mnemon.backends.{technology}", raising=False)
    with pytest.raises(InvalidSettings, match=rf"{library}.*pip install 'mnemon\[{technology}\]'"):
        load_store(f"{technology}://db", SPACE, Settings())


def test_no_client_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys; from mnemon.backends.stores import check_url; "
        "[check_url(url) for url in ('qdrant://a', 'weaviate://a', 'chroma://a')]; "
        "print([name for name in ('qdrant_client', 'weaviate', 'chromadb', 'grpc', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_another_package_can_offer_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given an installed package with an entry point, when a URL begins with its name, then its driver is opened."""
    with pytest.raises(InvalidSettings):
        check_url("elsewhere://db")
    package = tmp_path / "elsewhere-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[mnemon.vector_stores]\nelsewhere = elsewhere_driver:open_store\n")
    (tmp_path / "elsewhere_driver.py").write_text(
        "from mnemon.testing import FakeVectorMemory\n"
        "def open_store(url, space, settings):\n    return FakeVectorMemory(space)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    check_url("elsewhere://db")
    assert load_store("elsewhere+https://db", SPACE, Settings()).describe().name == "fake"


# ------------------------------------------------------------------------------------------------------- collections


def test_models_and_prefixes_have_collections_of_their_own() -> None:
    models = [
        EmbeddingModel("all-MiniLM-L6-v2", "1", 384), EmbeddingModel("all_MiniLM_L6_v2", "1", 384),
        EmbeddingModel("all-minilm-l6-v2", "1", 384), EmbeddingModel("all-MiniLM-L6-v2", "1", 383),
        EmbeddingModel("all-MiniLM-L6-v2", "", 384), EmbeddingModel("日本", "1", 384),
        EmbeddingModel("x" * 300, "1", 384),
    ]  # fmt: skip
    names = {
        collection_name(Settings(vector_collection_prefix=prefix), model) for prefix in ("a", "b") for model in models
    }
    assert len(names) == 2 * len(models)
    assert all(name.isascii() and name.replace("_", "").isalnum() and len(name) < 150 for name in names)
    assert collection_name(Settings(), models[0]).startswith("mnemon_all_minilm_l6_v2_1_384_")


# -------------------------------------------------------------------------------------------------------- connections


class Client:
    closed = False

    def close(self) -> None:
        self.closed = True


def connection(connect: Callable[[], Client], *, timeout: float = 5.0, lost: bool = False) -> Connection[Client]:
    return Connection("the store", timeout, connect, Client.close, lambda error: Trouble(str(error), "wait", lost=lost))


def test_a_client_is_made_once_when_it_is_needed_and_closed_at_the_end() -> None:
    made: list[Client] = []

    def connect() -> Client:
        time.sleep(0.05)
        made.append(Client())
        return made[-1]

    shared = connection(connect)
    assert made == []

    def use() -> Client:
        with shared.use() as client:
            return client

    with ThreadPoolExecutor(8) as threads:
        used = {done.result() for done in [threads.submit(use) for _ in range(8)]}
    assert used == {*made}
    assert len(made) == 1
    shared.close()
    shared.close()
    assert made[0].closed
    with pytest.raises(StoreClosed, match="the store was closed"):
        use()


def test_who_waits_for_another_thread_to_connect_does_not_wait_for_ever() -> None:
    """Given a thread that is stuck in connecting, when others come, then all give up after the timeout."""
    stuck = threading.Event()

    def connect() -> Client:
        stuck.wait(10)
        return Client()

    shared = connection(connect, timeout=0.2)

    def use() -> None:
        with shared.use():
            pass

    with ThreadPoolExecutor(5) as threads:
        first = threads.submit(use)
        time.sleep(0.05)
        begun = time.monotonic()
        for waiting in [threads.submit(use) for _ in range(4)]:
            with pytest.raises(StoreUnavailable, match="connecting"):
                waiting.result()
        assert time.monotonic() - begun < 2
        stuck.set()
        first.result()
    shared.close()


def test_a_failed_connection_is_tried_again() -> None:
    attempts = iter([OSError("refused"), None])

    def connect() -> Client:
        if failure := next(attempts):
            raise failure
        return Client()

    shared = connection(connect)
    with pytest.raises(StoreError, match="the store: refused: wait"), shared.use():
        pass
    with shared.use() as client:
        assert not client.closed
    shared.close()


@pytest.mark.parametrize("lost", [True, False])
def test_only_what_is_lost_is_connected_anew(lost: bool) -> None:
    shared = connection(Client, lost=lost)
    with pytest.raises(StoreError), shared.use() as first:
        raise OSError("gone")
    with shared.use() as second:
        assert (second is first) == (not lost)
        assert first.closed == lost
    shared.close()


def test_what_fails_because_the_store_was_closed_says_so() -> None:
    shared = connection(Client)

    def use() -> None:
        with shared.use():
            shared.close()
            raise OSError("cannot use a closed channel")

    with pytest.raises(StoreClosed):
        use()


@pytest.mark.parametrize(
    ("status", "kind", "advice"),
    [
        (401, StoreError, "check the key"),
        (403, StoreError, "check the key"),
        (404, StoreError, "the collection is gone"),
        (500, StoreError, "log may say more"),
        (503, StoreUnavailable, "check that the server runs"),
        (504, StoreUnavailable, "raise vector_timeout"),
    ],
)
def test_an_answer_says_what_to_do(status: int, kind: type[StoreError], advice: str) -> None:
    def connect() -> Client:
        raise OSError("no")

    shared = Connection("the store", 1.0, connect, Client.close, lambda error: Trouble.of_status(status, str(error)))
    with pytest.raises(StoreError, match=advice) as raised, shared.use():
        pass
    assert type(raised.value) is kind


# ----------------------------------------------------------------------------------------------------------- opening


def test_a_memory_with_a_store_that_cannot_be_used_is_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with pytest.raises(InvalidSettings, match="not with 'milvus'"):
        sync.open(f"sqlite:///{file}", vector_stores=["milvus://db"])
    assert not file.exists()
