"""A process that takes turns of an agent, as quickly as others let it, and says the number of each cycle it made."""

import sys

from mnemon import ConflictError, sync


def race(url: str, name: str, turns: int) -> None:
    with sync.open(url, background=False) as memory:
        while (stand := memory.agents.resume("racer", recent=1)).agent.cycle_count < turns:
            try:
                cycle = memory.agents.capture_proposal("racer", {"by": name}, expected_cycle=stand.next_cycle)
            except ConflictError:  # somebody was quicker, or is still at work
                continue
            memory.agents.succeed("racer", cycle.number, name)
            sys.stdout.write(f"{cycle.number}\n")


if __name__ == "__main__":
    race(sys.argv[1], sys.argv[2], int(sys.argv[3]))
