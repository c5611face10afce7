"""Documents while processes die, compete, and are told to stop."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import mnemon
import mnemon.sync
from mnemon.testing.document_folders import TOPICS, guide

HERE = "project:docs"
PATIENCE = 120.0  # seconds; how long a child may take on a machine that is busy with other things
INDEX = """
import sys
import mnemon.sync
url, folder = sys.argv[1:]
with mnemon.sync.open(url, background=False, embedder="none") as memory:
    print("ready", flush=True)
    memory.documents.add_folder(folder, namespace="project:docs", root=folder, chunk_tokens=80)
print("done", flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "files"
    folder.mkdir()
    for number in range(60):
        topics = random.Random(number).sample(TOPICS, 8)
        (folder / f"{number:02}.md").write_text(guide(topics, **{topics[0]: f"number {number}"}))
    (folder / "long.txt").write_text("\n\n".join(f"Paragraph {n} has its own words." * 8 for n in range(900)))
    return folder


def index(url: str, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", INDEX, url, str(folder)], stdout=subprocess.PIPE, text=True)


def assert_whole(url: str, folder: Path) -> None:
    """Every file is there once, and nothing else."""
    with mnemon.sync.open(url, background=False, embedder="none") as memory:
        documents = memory.documents.list(limit=1000)
        assert {each.path for each in documents} == {file.name for file in folder.iterdir()}
        assert {each.status for each in documents} == {"synced"}
        for each in documents:
            chunks = memory.documents.chunks(HERE, each.path)
            assert "".join(chunk.text for chunk in chunks) == (folder / each.path).read_text()
            assert [chunk.position for chunk in chunks] == list(range(each.chunk_count))
        count = sum(each.chunk_count for each in documents)
        assert sum(each.memories for each in memory.memories.list_namespaces()) == count
        assert memory.documents.check() == []


@pytest.mark.parametrize("seed", range(2))
def test_a_process_that_is_killed_on_the_way_loses_and_doubles_nothing(tmp_path: Path, folder: Path, seed: int) -> None:
    url = f"sqlite:///{tmp_path}/docs.db"
    chance = random.Random(seed)
    kills = 0
    for _ in range(4):
        with index(url, folder) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0.0, 0.6))
            kills += child.poll() is None
            child.kill()
    assert kills
    with index(url, folder) as last:
        assert last.wait(PATIENCE) == 0
    assert_whole(url, folder)


def test_two_processes_that_index_the_same_folder_share_the_work(tmp_path: Path, folder: Path) -> None:
    url = f"sqlite:///{tmp_path}/docs.db"
    with mnemon.sync.open(url, background=False):
        pass
    children = [index(url, folder) for _ in range(3)]
    for child in children:
        with child:
            assert child.wait(PATIENCE) == 0
    assert_whole(url, folder)


# --------------------------------------------------------------------------------------------------------- watching


async def test_a_watch_that_is_cancelled_ends_at_once_and_leaves_no_thread(folder: Path) -> None:
    async with mnemon.open("sqlite://", embedder="none", background=False) as memory:
        reports: list[mnemon.DocumentReport] = []
        seen = asyncio.Event()

        async def follow() -> None:
            async for report in memory.documents.watch(folder, namespace=HERE, root=folder):
                reports.append(report)
                seen.set()

        task = asyncio.create_task(follow())
        await seen.wait()
        assert len(reports[0].added) == 61
        await asyncio.sleep(0.3)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 1
        (folder / "new.md").write_text("Nobody looks any more.")
        await asyncio.sleep(0.5)
        assert await memory.documents.get(HERE, "new.md") is None
    assert not [each for each in threading.enumerate() if "notify" in each.name.lower()]


def test_a_database_in_the_folder_does_not_keep_the_watch_busy(tmp_path: Path) -> None:
    """Given a folder that holds the database too, when that changes and then a file does, only the file is told of."""
    with mnemon.sync.open(f"sqlite:///{tmp_path}/docs.db", embedder="none", background=False) as memory:
        (tmp_path / "a.md").write_text("one")
        reports = memory.documents.watch(tmp_path, namespace=HERE, root=tmp_path)
        assert next(reports).added == ("a.md",)
        for number in range(5):
            memory.remember(f"note {number}", namespace="app:notes")
        (tmp_path / "a.md").write_text("two")
        assert next(reports).changed == ("a.md",)


def test_a_watch_of_the_blocking_face_is_interrupted_by_a_signal(tmp_path: Path) -> None:
    program = (
        "import signal, sys, mnemon.sync\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background job ignores it
        "with mnemon.sync.open('sqlite://', embedder='none', background=False) as memory:\n"
        "    try:\n"
        f"        for report in memory.documents.watch(sys.argv[1], namespace={HERE!r}):\n"
        "            print('seen', flush=True)\n"
        "    except KeyboardInterrupt:\n"
        "        print('over', flush=True)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "seen\n"
        os.kill(child.pid, signal.SIGINT)
        assert child.stdout.readline() == "over\n"
        assert child.wait(PATIENCE) == 0


def test_documents_can_be_read_but_not_added_where_nothing_can_be_written(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/docs.db"
    with mnemon.sync.open(url, embedder="none", background=False) as memory:
        memory.documents.add("a.md", namespace=HERE, content="# One\n")
    with mnemon.sync.open(f"{url}?mode=ro", embedder="none", background=False) as memory:
        assert memory.documents.list()[0].title == "One"
        assert memory.documents.add("a.md", namespace=HERE, content="# One\n").status == "synced"
        with pytest.raises(mnemon.StoreReadOnly):
            memory.documents.add("a.md", namespace=HERE, content="# Two\n")
