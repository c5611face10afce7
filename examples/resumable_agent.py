"""An agent that can be killed at any moment, and goes on where it was when it is run again.

It writes a report about prime numbers, a chapter in each cycle: files go into its workspace, and each is saved as an
artifact of its session. It needs no language model: what to do next follows from what it did last. Every action is
proposed before it is done, and done only if what it leaves behind is not there yet. So nothing is lost, and nothing is
done twice, wherever it is cut off.

    python examples/resumable_agent.py                          kill it in the middle, run it again, see the proof
    python examples/resumable_agent.py work sqlite:///my.db     only let it work, until it has finished
    KILL_AT=3:saved python examples/resumable_agent.py work …   the same, but kill it in its third cycle
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

import mnemon
from mnemon import Artifact, Cycle, Resumption, sync
from mnemon.sync import BlockingMemory

AGENT, SESSION, WORKSPACE = "reporter", "report-on-primes", "reporter-files"
CHAPTERS = 4
WIDTH = 1000  # numbers that a chapter is about
LEDGER = "ledger.csv"

# ------------------------------------------------------------------------------------------------------- the agent


def work(url: str) -> None:
    """Let the agent work until it has finished, from wherever it stands."""
    with sync.open(url) as memory:
        prepare(memory)
        stand = memory.agents.resume(AGENT)
        told = "with a proposal whose result is not known" if stand.pending else "with nothing pending"
        print(f"  begins at cycle {(stand.pending.number if stand.pending else stand.next_cycle)}, {told}", flush=True)
        while (step := next_step(stand)) is not None:
            take_turn(memory, stand, step)
            stand = memory.agents.resume(AGENT)
        print(f"  has finished, after cycle {stand.agent.cycle_count}", flush=True)


def prepare(memory: BlockingMemory) -> None:
    """Make what the agent needs, as far as an earlier run has not."""
    with suppress(mnemon.SessionExists):
        memory.sessions.create_session(SESSION, app_name="reports", user_id="alice")
    with suppress(mnemon.WorkspaceExists):
        memory.workspaces.create(WORKSPACE)
    with suppress(mnemon.AgentExists):
        directives = {"goals": ["Write a report about prime numbers"], "constraints": ["Do nothing twice"]}
        memory.agents.create(AGENT, name="Reporter", directives=directives, workspace_id=WORKSPACE)


def next_step(stand: Resumption) -> int | None:
    """The planner: a chapter after the other, then the report; None when all is done."""
    if stand.pending:
        return step_of(stand.pending)
    step = step_of(stand.last) + 1 if stand.last else 1
    return step if step <= CHAPTERS + 1 else None


def step_of(cycle: Cycle) -> int:
    return cycle.proposal["use_tool"]["arguments"]["step"]


def take_turn(memory: BlockingMemory, stand: Resumption, step: int) -> None:
    """One cycle: propose, act, record what came of it."""
    cycle = stand.pending or memory.agents.capture_proposal(
        AGENT, propose(step), session_id=SESSION, expected_cycle=stand.next_cycle
    )
    reached(cycle, "proposed")
    path, text = write(memory, cycle, step)
    reached(cycle, "written")
    artifact = save(memory, cycle, path, text)
    reached(cycle, "saved")
    memory.agents.record_memory(AGENT, text.splitlines()[-1], cycle=cycle.number, key=path)  # twice is once: the key
    reached(cycle, "remembered")
    memory.agents.succeed(AGENT, cycle.number, {"path": path}, artifacts=[artifact], summary=f"Wrote {path}.")
    reached(cycle, "finished")


def propose(step: int) -> dict[str, Any]:
    """What a language model would answer, in AutoGPT's shape."""
    tool = "write_chapter" if step <= CHAPTERS else "bind_report"
    return {
        "thoughts": {"text": f"Step {step} is next.", "reasoning": "The steps before it are done.", "plan": [tool]},
        "use_tool": {"name": tool, "arguments": {"step": step}},
    }


# --------------------------------------------------------------------------------------------------------- its tools


def write(memory: BlockingMemory, cycle: Cycle, step: int) -> tuple[str, str]:
    """Write the step's file and a line of the ledger, unless that was done before the agent was cut off.

    Both are one revision of the workspace, so there is no half of it; the ledger says which cycle wrote it last.
    """
    path = f"chapters/{step:02}.md" if step <= CHAPTERS else "report.md"
    ledger = memory.workspaces.stat(WORKSPACE, LEDGER)
    if ledger is not None and ledger.metadata["cycle"] == cycle.number:
        return path, memory.workspaces.read(WORKSPACE, path).decode()
    text = chapter(step) if step <= CHAPTERS else bind(memory)
    lines = memory.workspaces.read(WORKSPACE, LEDGER).decode() if ledger else "step,characters\n"
    about = {"cycle": cycle.number}
    memory.workspaces.write_many(
        WORKSPACE,
        [
            mnemon.FileDraft(path, text.encode(), about),
            mnemon.FileDraft(LEDGER, f"{lines}{step},{len(text)}\n".encode(), about),
        ],
    )
    return path, text


def save(memory: BlockingMemory, cycle: Cycle, path: str, text: str) -> Artifact:
    """Save the file as an artifact of the session, unless the cycle has done so already."""
    present = memory.artifacts.get(SESSION, path)
    if present is not None and present.metadata["cycle"] == cycle.number:
        return present
    return memory.artifacts.save(SESSION, path, text, metadata={"cycle": cycle.number})


def chapter(step: int) -> str:
    first = (step - 1) * WIDTH
    primes = [n for n in range(max(first, 2), first + WIDTH) if all(n % d for d in range(2, int(n**0.5) + 1))]
    return f"# From {first} to {first + WIDTH - 1}\n\nThere are {len(primes)} primes, the last of them {primes[-1]}.\n"


def bind(memory: BlockingMemory) -> str:
    names = [f"chapters/{step:02}.md" for step in range(1, CHAPTERS + 1)]
    return "\n".join(memory.workspaces.read(WORKSPACE, name).decode() for name in names)


def reached(cycle: Cycle, point: str) -> None:
    """Where the agent may be cut off; a real one need not know."""
    if os.environ.get("KILL_AT") == f"{cycle.number}:{point}":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(float(os.environ.get("PACE", "0")))


# ---------------------------------------------------------------------------------------------------------- the proof


def prove(url: str) -> None:
    """Look into the logs: each step was taken exactly once. An assertion fails if not."""
    steps = CHAPTERS + 1
    with sync.open(url) as memory:
        cycles = memory.agents.cycles(AGENT, include_undone=True)
        assert [(cycle.number, step_of(cycle), str(cycle.status)) for cycle in cycles] == [
            (number, number, "success") for number in range(1, steps + 1)
        ]
        snapshots = [cycle.snapshot or 0 for cycle in cycles] + [None]
        for cycle, after in zip(cycles, snapshots[1:], strict=True):
            prove_cycle(memory, cycle, after)
        ledger = memory.workspaces.history(WORKSPACE, LEDGER)
        assert [version.metadata["cycle"] for version in reversed(ledger)] == list(range(1, steps + 1))
        changes = list(memory.changes())
    written = [change for change in changes if (change.entity, change.operation) == ("workspace", "write")]
    saved = [change for change in changes if (change.entity, change.operation) == ("artifact", "save")]
    assert (len(written), len(saved)) == (steps, steps)
    print(f"  {steps} steps, {len(written)} writes to the workspace, {len(saved)} artifacts: each happened once")


def prove_cycle(memory: BlockingMemory, cycle: Cycle, after: int | None) -> None:
    """Between the snapshot before a cycle and the next, the workspace changed by what the cycle did, and once."""
    assert cycle.result is not None
    path = cycle.result["outputs"]["path"]
    changed = memory.workspaces.diff(WORKSPACE, cycle.snapshot or 0, after)
    assert {each.path for each in changed} == {path, LEDGER}
    assert len(memory.workspaces.history(WORKSPACE, path)) == 1
    [artifact] = memory.artifacts.versions(SESSION, path)
    assert cycle.artifacts == (artifact.url,)
    assert artifact.metadata == {"cycle": cycle.number}
    assert memory.artifacts.read(SESSION, path) == memory.workspaces.read(WORKSPACE, path)
    print(f"  cycle {cycle.number}, snapshot {cycle.snapshot}: {cycle.summary} Artifact {artifact.url}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/agent.db"
        for point in ("2:written", "4:proposed", "4:remembered", ""):
            print(f"The agent runs, and is killed at {point}:" if point else "The agent runs again:", flush=True)
            command = [sys.executable, __file__, "work", url]
            subprocess.run(command, env={**os.environ, "KILL_AT": point}, check=not point)
        print("What the logs say:")
        prove(url)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(sys.argv[2])
    else:
        main()
