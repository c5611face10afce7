"""Looking after the indexes from the command line, with a vector store that another package offers."""

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mnemon import sync
from tests.cli.conftest import Ask, Run
from tests.embedding.endpoints import running

PATIENCE = 120.0  # seconds; how long a child may take on a machine that is busy with other things
SHELF = ("--set", "vector_stores=shelf://here")

DRIVER = """
from mnemon.errors import StoreUnavailable
from mnemon.testing import FakeVectorMemory

KEPT, DOWN = {}, []

def open_store(url, space, settings):
    if DOWN:
        raise StoreUnavailable("the shelf fell down")
    return FakeVectorMemory(space, KEPT.setdefault(space.id, {}))
"""


@pytest.fixture
def shelf(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The module of a driver for `shelf:`, whose records stay from one command to the next."""
    folder = tmp_path_factory.mktemp("installed")
    about = folder / "shelf-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[mnemon.vector_stores]\nshelf = shelf_driver:open_store\n")
    (folder / "shelf_driver.py").write_text(DRIVER)
    monkeypatch.syspath_prepend(folder)
    yield __import__("shelf_driver")
    del sys.modules["shelf_driver"]


def remember(ask: Ask, count: int) -> None:
    lines = "\n".join(f"note number {number} about the harbour" for number in range(count))
    assert ask("remember", "--file", "-", "-n", "app:notes", input=lines)["remembered"] == count


def test_status_of_a_database_in_which_nothing_was_embedded(run: Run, ask: Ask) -> None:
    ask("remember", "x", "-n", "app:notes", "--set", "embedder=none")
    status = ask("index", "status")
    assert (status["spaces"], status["stores"]) == ([], [])
    assert run("index", "status").stdout.startswith("no memory has a vector yet\n")


def test_a_store_is_fed_shown_compared_mended_and_rebuilt(run: Run, ask: Ask, shelf: object) -> None:
    remember(ask, 3)
    before = ask("index", "status", *SHELF)
    assert [(each["name"], each["vectors"], each["lag"]) for each in before["stores"]] == [
        ("shelf", 0, 3),
        ("mirror", 3, 0),
    ]
    assert ask("index", "settle", "--timeout", "60", *SHELF) == {"settled": True}
    after = ask("index", "status", *SHELF)
    assert [(each["name"], each["vectors"], each["lag"]) for each in after["stores"]] == [
        ("shelf", 3, 0),
        ("mirror", 3, 0),
    ]
    lags = {each["name"]: after["position"] - each["position"] for each in after["consumers"]}
    assert lags.keys() >= {"embeddings", "store:shelf:1"}
    assert lags == {each["name"]: each["lag"] for each in after["consumers"]}
    table = run("index", "status", *SHELF).stdout
    assert [line.split()[:4] for line in table.splitlines() if line.startswith("shelf")] == [["shelf", "3", "0", "up"]]

    assert run("index", "verify", *SHELF).exit_code == 0
    kept = shelf.KEPT[1]  # type: ignore[attr-defined]
    kept.popitem()
    drifted = run("index", "verify", "shelf", *SHELF)
    assert drifted.exit_code == 1
    assert drifted.stdout.splitlines()[1].split() == ["shelf", "1", "0", "0", "0", "2"]
    mended = ask("index", "verify", "--mend", *SHELF)
    assert (mended["shelf"]["missing"], mended["shelf"]["is_none"], len(kept)) == (1, False, 3)
    assert ask("index", "verify", *SHELF)["shelf"]["is_none"]

    kept.clear()
    assert ask("index", "rebuild", *SHELF)["shelf"]["is_none"]
    assert len(kept) == 3


def test_a_store_that_is_down_is_shown_and_cannot_be_compared(run: Run, ask: Ask, shelf: object) -> None:
    remember(ask, 1)
    shelf.DOWN.append(True)  # type: ignore[attr-defined]
    stores = ask("index", "status", *SHELF)["stores"]
    assert [(each["name"], each["is_up"]) for each in stores] == [("shelf", False), ("mirror", True)]
    assert run("index", "verify", *SHELF).exit_code == 3


def test_a_store_that_is_not_set(run: Run, ask: Ask) -> None:
    remember(ask, 1)
    assert run("index", "verify", "qdrant").exit_code == 1
    nothing = run("index", "verify")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "no vector store beside the database" in nothing.stderr
    assert ask("index", "verify") == {}


def test_status_needs_no_embedder(run: Run, ask: Ask) -> None:
    remember(ask, 1)
    for embedder in ("given:mine:7", "none", "openai:nowhere"):
        [mirror] = ask("index", "status", "--set", f"embedder={embedder}")["stores"]
        assert (mirror["name"], mirror["vectors"], mirror["dimension"]) == ("mirror", 1, 256)
    assert run("recall", "x", "-n", "", "--set", "embedder=given:mine:7").exit_code == 2


def vectors_of(folder: Path, space: int) -> int:
    """How many vectors of a space are there for good."""
    with closing(sqlite3.connect(f"file:{folder / 'mnemon.db'}?mode=ro", uri=True)) as file:
        [(count,)] = file.execute("SELECT count(*) FROM memory_vectors WHERE space_id = ?", (space,))
    return count


def test_an_interrupted_change_of_the_model_goes_on(run: Run, ask: Ask, folder: Path) -> None:
    """Given a change of the model by a slow endpoint, when Ctrl-C ends it, then the same command finishes the rest."""
    remember(ask, 500)
    with running() as endpoint:
        to = f"openai:static-model?dimension=64&url={endpoint.url}/v1"
        command = [sys.executable, "-m", "mnemon", "index", "reembed", to]
        endpoint.stall = 0.5
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            try:
                deadline = time.monotonic() + PATIENCE
                while vectors_of(folder, 2) < 200 and time.monotonic() < deadline and child.poll() is None:
                    time.sleep(0.02)
                child.send_signal(signal.SIGINT)
                said, complaint = child.communicate(timeout=PATIENCE)
            finally:
                child.kill()
        assert (child.returncode, said) == (130, ""), complaint
        assert complaint.startswith("Error: interrupted; nothing is lost")
        status = ask("index", "status")
        assert [each["status"] for each in status["spaces"]] == ["active", "filling"]
        owners = {each["name"]: each["lease_owner"] for each in status["consumers"]}
        assert owners["space:2"] is None, "the next one would have to wait for its lease"

        endpoint.stall, first = 0.0, len(endpoint.requests)
        space = ask("index", "reembed", to)
    assert (space["status"], space["model"]["dimension"]) == ("active", 64)
    embedded = [text for request in endpoint.requests[first:] for text in request["input"]]
    assert len(embedded) <= 300
    with sync.open(embedder="none") as memory:
        assert [each.status for each in memory.index.spaces()] == ["retired", "active"]
