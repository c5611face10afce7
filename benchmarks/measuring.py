"""Timing on a machine that is never quiet: everybody runs in small rounds, in turn, and medians are compared."""

import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_GLANCE = 0.002
_QUIET = 300_000  # nanoseconds of work in one glance
_FEW = 8


@dataclass(frozen=True, slots=True)
class Round:
    """What one contestant needed for one round, in nanoseconds."""

    each: list[int]
    """Every operation, from its call to its end."""
    total: int
    """The whole round."""
    processor: int = 0
    """What the whole process used meanwhile, its background threads too."""
    together: bool = False
    """The operations ran at the same time, so that only the total says what one of them costs."""

    @property
    def cost(self) -> float:
        """One operation: the mean of the middle half, which leaves out the pauses of the machine."""
        if self.together or len(self.each) < _FEW:
            return self.total / len(self.each)
        quarter = len(self.each) // 4
        return statistics.fmean(sorted(self.each)[quarter:-quarter])


Contestant: TypeAlias = Callable[[int], Round]
"""Runs the round of that number. Round 0 is a rehearsal and is not counted."""


@dataclass(slots=True)
class Figures:
    """All rounds of one contestant. Times are in seconds."""

    rounds: list[Round] = field(default_factory=list[Round])

    @property
    def cost(self) -> float:
        """One operation, in the median round."""
        return statistics.median(r.cost for r in self.rounds) / 1e9

    @property
    def rate(self) -> float:
        """Operations in a second of the median round, with all pauses."""
        return 1e9 / statistics.median(r.total / len(r.each) for r in self.rounds)

    @property
    def processor(self) -> float:
        """What one operation keeps the processor busy, in the median round."""
        return statistics.median(r.processor / len(r.each) for r in self.rounds) / 1e9

    def percentile(self, share: float) -> float:
        each = sorted(time for r in self.rounds for time in r.each)
        return each[min(int(len(each) * share), len(each) - 1)] / 1e9

    def as_json(self) -> dict[str, float]:
        times = {"cost": self.cost, "p50": self.percentile(0.5), "p99": self.percentile(0.99), "cpu": self.processor}
        rates = {"operations_per_second": round(self.rate, 1)}
        return {f"{name}_us": round(time * 1e6, 3) for name, time in times.items()} | rates


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be reached: a multiple of the floor, or a time, or a rate; any one that is met will do."""

    text: str
    ratios: Mapping[str, float] = field(default_factory=dict[str, float])
    seconds: float | None = None
    rate: float | None = None

    def met(self, name: str, figures: Figures, ratio: float) -> bool | None:
        """Whether the contestant of this name reached it; None if nothing was asked of it."""
        limits = [
            self.ratios[name] >= ratio if name in self.ratios else None,
            None if self.seconds is None else figures.cost <= self.seconds,
            None if self.rate is None else figures.rate >= self.rate,
        ]
        asked = [limit for limit in limits if limit is not None]
        return any(asked) if asked else None


def within(asynchronous: float, blocking: float | None = None) -> Target:
    """At most so many times the floor."""
    if blocking is None or blocking == asynchronous:
        return Target(f"≤ {asynchronous:g} ×", {"async": asynchronous, "blocking": asynchronous})
    return Target(f"≤ {asynchronous:g} × / {blocking:g} ×", {"async": asynchronous, "blocking": blocking})


def below(seconds: float) -> Target:
    """At most so long."""
    return Target(f"≤ {seconds * 1000:g} ms", seconds=seconds)


@dataclass(frozen=True, slots=True)
class Contest:
    """One thing to measure: `async` and `blocking` are ours, `floor` is what they are compared with.

    A contestant may have a floor of its own, such as `async floor`.
    """

    id: str
    title: str
    contestants: Mapping[str, Contestant]
    floor: str
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What came out of a contest."""

    id: str
    title: str
    floor: str
    figures: Mapping[str, Figures]
    ratios: Mapping[str, float]
    target: Target | None = None

    @property
    def met(self) -> bool | None:
        target = self.target or Target("")
        answers = [target.met(name, self.figures[name], ratio) for name, ratio in self.ratios.items()]
        return None if all(answer is None for answer in answers) else False not in answers

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "floor": self.floor,
            "target": self.target.text if self.target else None,
            "met": self.met,
            "figures": {name: figures.as_json() for name, figures in self.figures.items()},
            "ratios": {name: round(ratio, 3) for name, ratio in self.ratios.items()},
        }


def run(contests: Iterable[Contest], rounds: int, tick: Callable[[str], None]) -> list[Result]:
    """Let the contestants of all contests take turns, one round each, in an order that moves on every time."""
    contests = list(contests)
    figures = {contest.id: {name: Figures() for name in contest.contestants} for contest in contests}
    lanes = [(contest, name) for contest in contests for name in contest.contestants]
    for number in range(rounds + 1):
        start = number % len(lanes)
        for contest, name in lanes[start:] + lanes[:start]:
            settle()
            outcome = contest.contestants[name](number)
            if number:
                figures[contest.id][name].rounds.append(outcome)
            tick(contest.title)
    return [_result(contest, figures[contest.id]) for contest in contests]


def turns(contests: Iterable[Contest], rounds: int) -> int:
    """How often `run` will tick."""
    return (rounds + 1) * sum(len(contest.contestants) for contest in contests)


def _result(contest: Contest, figures: Mapping[str, Figures]) -> Result:
    ratios = {
        name: figures[name].cost / figures.get(f"{name} floor", figures["floor"]).cost
        for name in figures
        if not name.endswith("floor")
    }
    return Result(contest.id, contest.title, contest.floor, figures, ratios, contest.target)


def settle() -> None:
    """Wait until the background work of whoever ran last is over, so that it slows nobody else."""
    for _ in range(200):
        before = time.process_time_ns()
        time.sleep(_GLANCE)
        if time.process_time_ns() - before < _QUIET:
            return


def timed(call: Callable[..., object], inputs: Iterable[tuple[Any, ...]]) -> Round:
    """Time each call by itself."""
    clock, each = time.perf_counter_ns, list[int]()
    busy = time.process_time_ns()
    for arguments in inputs:
        start = clock()
        call(*arguments)
        each.append(clock() - start)
    return Round(each, sum(each), time.process_time_ns() - busy)


async def timed_async(call: Callable[..., Awaitable[object]], inputs: Iterable[tuple[Any, ...]]) -> Round:
    """Time each call by itself, one after the other."""
    clock, each = time.perf_counter_ns, list[int]()
    busy = time.process_time_ns()
    for arguments in inputs:
        start = clock()
        await call(*arguments)
        each.append(clock() - start)
    return Round(each, sum(each), time.process_time_ns() - busy)
