"""Processes that keep indexes in step until they are killed: `python -m tests.indexing.child NAME URL …`."""

import asyncio
import os
import sys
from itertools import count

import mnemon
from mnemon.indexing import conversations, embeddings
from mnemon.testing.embedders import FakeEmbedder
from tests.indexing.rig import rigged


def say(*words: object) -> None:
    """Write a line at once, past every buffer: what was said survives a kill."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def converse(url: str, run: str) -> None:
    """Append to a shared session for ever, while a thread makes memories of it; say what was acknowledged."""
    async with mnemon.open(url, embedder=FakeEmbedder(), index_delay=0.0) as memory:
        for number in count():
            event = await memory.sessions.append_event("shared", {"text": f"{run} says {number}"})
            say(event.sequence, run, number)
            await asyncio.sleep(0.001)


async def reembed(url: str) -> None:
    """Change the model, from the fake one to another."""
    backend = "postgres" if url.startswith("postgres") else "sqlite-file"
    options = {"postgres_schema": os.environ["MNEMON_POSTGRES_SCHEMA"]} if backend == "postgres" else {}
    embedders = FakeEmbedder(), FakeEmbedder(48, name="other")
    async with rigged(backend, url, *embedders, clock=mnemon.SystemClock(), **options) as rig:
        await rig.upkeep.reembed("other", lambda progress: say(progress.done, progress.total))


if __name__ == "__main__":
    for module in (conversations, embeddings):
        module.LEASE = 1.0  # so that nobody has to wait long for one who was killed
    program = {"converse": converse, "reembed": reembed}[sys.argv[1]]
    asyncio.run(program(*sys.argv[2:]))
