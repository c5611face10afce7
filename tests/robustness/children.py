"""Processes of their own for the tests: the programs that they run, and how they are started and ended.

A program is a coroutine function that takes an open memory and JSON arguments. Each runs over the
asynchronous face in an event loop, or over the blocking face with no loop at all.
"""

import asyncio
import inspect
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any

import mnemon
from mnemon import sync
from mnemon.coroutines import complete
from mnemon.sql import Query

ROOT = Path(__file__).parents[2]
PATIENCE = 300.0  # seconds; how long a child may take on a machine that is busy with other things
FACES = ("async", "blocking")

Program = Callable[..., Coroutine[Any, Any, None]]


# ------------------------------------------------------------------------------------------- in the test's process


def start(
    program: Program, url: str, *arguments: Any, face: str = "blocking", out: "IO[Any] | int" = subprocess.PIPE
) -> "subprocess.Popen[str]":
    """Begin `program` in a process of its own; what it says goes to `out`."""
    command = [sys.executable, "-m", __spec__.name, program.__name__, face, url, json.dumps(arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True)


@contextmanager
def started(program: Program, url: str, *arguments: Any, face: str = "blocking") -> "Iterator[subprocess.Popen[str]]":
    """A child that has said it is ready, and ends with the block."""
    with start(program, url, *arguments, face=face) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n", finish(child)
            yield child
        finally:
            child.kill()


def finish(child: "subprocess.Popen[str]") -> str:
    """Wait for a child that must end well; what it said."""
    said, complaint = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, complaint
    assert complaint == ""
    return said


def finish_all(children: "Sequence[subprocess.Popen[str]]") -> None:
    """Wait for several; if one fails or hangs, the others are ended too."""
    try:
        for child in children:
            finish(child)
    finally:
        end_all(children)


def end_all(children: "Sequence[subprocess.Popen[str]]") -> list[str]:
    """Kill those that still run; what each complained of."""
    for child in children:
        child.kill()
    return [child.communicate()[1] for child in children]


# ------------------------------------------------------------------------------------------ in the child's process


def say(*words: object) -> None:
    """Write a line at once, past every buffer: what was said survives a kill."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def settle(answer: Any) -> Any:
    """What a method of either face returned."""
    return await answer if inspect.isawaitable(answer) else answer


async def abreast(works: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """All at once in an event loop, one after the other without."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return [await work for work in works]
    return await asyncio.gather(*works)


async def pause(seconds: float) -> None:
    """Sleep, in whichever way the face allows."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        time.sleep(seconds)  # noqa: ASYNC251
    else:
        await asyncio.sleep(seconds)


async def append_and_count(memory: Any, name: str, times: int, increments: int) -> None:
    """Append to a session of its own and to a shared one, and increment a shared counter."""
    await settle(memory.sessions.create_session(f"own-{name}", "app", "alice"))

    async def append(lane: int) -> None:
        for number in range(lane, times, 5):
            session_id = ("shared", f"own-{name}")[number % 2]
            await settle(memory.sessions.append_event(session_id, {"by": name, "number": number}))

    async def increment() -> None:
        for _ in range(increments):
            await compare_and_increment(memory)

    await abreast([*(append(lane) for lane in range(5)), increment()])


async def compare_and_increment(memory: Any) -> None:
    """Try until nobody came in between, each time after a longer pause: then less is tried in vain."""
    longest = 0.01  # seconds
    while True:
        entry = await settle(memory.state.entry("app:counter", app_name="app"))
        value, version = (entry.value, entry.version) if entry else (0, 0)
        try:
            await settle(memory.state.compare_and_set("app:counter", value + 1, version, app_name="app"))
        except mnemon.ConflictError:
            await pause(random.uniform(0, longest))
            longest = min(2 * longest, 0.32)
        else:
            return


async def write_own_keys(memory: Any, session_ids: list[str], times: int) -> None:
    """In each session, again and again, write the `user:` key that has its name."""

    async def write(session_id: str) -> None:
        await settle(memory.sessions.create_session(session_id, "app", "alice"))
        for number in range(1, times + 1):
            delta = {f"user:{session_id}": f"{session_id} {number}"}
            await settle(memory.sessions.append_event(session_id, {"number": number}, delta))

    await abreast([write(session_id) for session_id in session_ids])


async def write_until_killed(memory: Any, run: str) -> None:
    """Append, add and update for ever, saying after each write that it was acknowledged."""
    await settle(memory.recall("what is there?", namespaces="app:kills"))  # now the embedder is loaded
    for number in count(1):
        delta = {"user:last": f"{run}-{number}", f"seen-{run}": number}
        body = {"run": run, "number": number, "text": f"event {number} of {run}"}
        event = await settle(memory.sessions.append_event("shared", body, delta))
        say("event", event.id, run, number)
        await settle(memory.memories.add_memory("app:kills", f"{run}-{number}", {"number": number}))
        say("memory", f"{run}-{number}", 1, number)
        version = await settle(memory.memories.update_memory("app:kills", f"{run}-{number}", {"number": -number}))
        say("memory", f"{run}-{number}", version, -number)


async def consume_until_killed(memory: Any, run: str) -> None:
    """Note every change in the table `handled`, in the transaction that moves the consumer on."""

    async def handle(tx: Any, changes: Sequence[mnemon.Change]) -> None:
        say("handling", changes[0].position)
        await note_handled(tx, changes)

    await settle(memory.consumer("killed", lease=0.3, batch=7).run(handle))


NOTE = Query("note", "INSERT INTO handled (position) VALUES (:position)")


async def note_handled(tx: Any, changes: Sequence[mnemon.Change]) -> None:
    for change in changes:
        await tx.execute(NOTE, {"position": change.position})


async def follow(memory: Any, after: int, last: int) -> None:
    """Say the sequence of each event and when it was seen, up to the event `last`."""
    say("ready")
    changes = memory.changes(after, True)
    while True:
        change = await anext(changes) if hasattr(changes, "__anext__") else next(changes)
        say(change.payload["sequence"], mnemon.SystemClock().now())
        if change.payload["sequence"] == last:
            return


async def save_one_name(memory: Any, name: str, times: int) -> None:
    """Save versions of one artifact, again and again, each with a content of its own and one that all share."""
    for number in range(times):
        await settle(memory.artifacts.save("shared", "report.txt", f"{name} {number}" * 1000))
        await settle(memory.artifacts.save("shared", "same.txt", "the same for all"))


async def create_one(memory: Any, session_id: str) -> None:
    await settle(memory.sessions.create_session(session_id, "app", "alice"))


async def open_again_and_again(memory: Any, url: str, number: int, times: int) -> None:
    """Close what is open; then open the same, write once and close it, many times."""
    await settle(memory.close())
    for turn in range(times):
        if isinstance(memory, sync.BlockingMemory):
            with sync.open(url) as opened:
                opened.sessions.append_event("s1", {"by": number, "turn": turn})
        else:
            async with mnemon.open(url) as opened:
                await opened.sessions.append_event("s1", {"by": number, "turn": turn})


# ------------------------------------------------------------------------------------------------------------------


async def run_async(program: Program, url: str, arguments: list[Any]) -> None:
    async with mnemon.open(url) as memory:
        await program(memory, *arguments)


def main(name: str, face: str, url: str, arguments: str) -> None:
    program: Program = globals()[name]
    if face == "async":
        asyncio.run(run_async(program, url, json.loads(arguments)))
    else:
        with sync.open(url) as memory:
            complete(program(memory, *json.loads(arguments)))


if __name__ == "__main__":
    main(*sys.argv[1:])
