"""Contents of any size are saved and read in constant memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mnemon.testing import QUIET
from tests.artifacts.stores import content_url

LARGE = 256  # megabytes
ALLOWED = 40  # megabytes by which the program may grow meanwhile, over what it takes for a small one

PROGRAM = """
import asyncio, hashlib, resource, sys
import mnemon

url, content_url, size, kind = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
piece = bytes(range(256)) * 4096

def pieces(count):
    for number in range(count):
        yield number.to_bytes(8) + piece[8:]

async def coming(count):
    for each in pieces(count):
        yield each

async def pass_through(memory, count, name):
    stream = coming(count) if kind == "async" else pieces(count)
    saved = await memory.artifacts.save("s1", name, stream=stream)
    digest = hashlib.sha256()
    async for each in memory.artifacts.open("s1", name):
        digest.update(each)
    assert (saved.size, saved.sha256) == (count << 20, digest.hexdigest())

async def main():
    async with mnemon.open(url, content_url=content_url, QUIET) as memory:
        await memory.sessions.create_session("s1", "app", "alice")
        await pass_through(memory, 20, "small")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await pass_through(memory, size, "large")
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)

asyncio.run(main())
""".replace("QUIET", ", ".join(f"{name}={value!r}" for name, value in QUIET.items()))


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize("store", ["files", pytest.param("objects", marks=pytest.mark.servers)])
def test_the_larger_content_takes_no_more_memory(
    tmp_path: Path, request: pytest.FixtureRequest, store: str, kind: str
) -> None:
    kept = content_url(store, tmp_path, request)
    size = LARGE if store == "files" else LARGE // 2
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"sqlite:///{tmp_path}/memory.db", kept, str(size), kind],
        env={**os.environ}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < ALLOWED
