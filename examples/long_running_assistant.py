"""An assistant that lives with its user for thirty days: it learns, is corrected, and does not grow without bound.

Each day is a session. What is said goes into the session's log and into its working memory. At night the conversation
becomes an episode, the episode a summary and facts, and where facts deny each other the later one holds: the older one
stays in the history. Then whatever the policies say is too old goes into archives. A day takes a fraction of a second,
because the clock jumps. No language model is needed: facts are what Ann says of herself in plain words.

    python examples/long_running_assistant.py                           thirty days, in a database that is thrown away
    python examples/long_running_assistant.py --url sqlite:///ann.db    keep it; with more --days it goes on from there
    python examples/long_running_assistant.py --plot days.png           and draw them
    python examples/long_running_assistant.py --language-model ollama:llama3.2    summaries and facts by a model
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import mnemon
from mnemon import RetentionPolicy, sync
from mnemon.clock import SystemClock, micros
from mnemon.sync import BlockingMemory

APP, USER = "assistant", "ann"
FACTS, EPISODES = f"user:{USER}:facts", f"user:{USER}:episodes"
FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)

TURN_DAYS, TURN_BYTES, EPISODE_DAYS, SESSION_DAYS = 3, 4_000, 14, 14
POLICIES = (
    RetentionPolicy(name="turns", namespace="session", max_age_days=TURN_DAYS, max_size=TURN_BYTES),
    RetentionPolicy(name="episodes", namespace="user", types=(mnemon.MemoryType.EPISODIC,), max_age_days=EPISODE_DAYS),
    RetentionPolicy(name="facts", namespace="user", types=(mnemon.MemoryType.SEMANTIC,), versions_kept=5),
)

# ----------------------------------------------------------------------------------------------------------- the story

STORY: dict[int, str] = {
    1: "Hi! I live in Bergen and I work for Acme.",
    2: "Just so you know, I'm vegetarian.",
    3: "I'm allergic to peanuts.",
    4: "My dog is called Rex.",
    5: "My phone number is 555 0199.",
    6: "Sorry, my phone number is 555 0142.",  # a slip of the tongue
    7: "My sister lives in Rome.",  # somebody else
    8: "My favourite food is ramen.",
    9: "If I moved to Paris, I would miss the fjords.",  # only supposed
    10: "My favourite drink is tea.",  # takes nothing back: it is no food
    12: "I moved to Oslo, the flat is lovely.",
    14: "I went to Bergen to see my old neighbours.",  # a visit
    16: "My friend Tom works for Globex.",  # somebody else
    17: "I'm allergic to shellfish too.",  # another one, not instead
    18: 'Please translate "I live in Madrid" for my neighbour.',  # quoted
    20: "By the way, I've become vegan.",
    23: "I work for Initech now.",
    26: "I live in Oslo, as you know.",  # said again
    28: "I used to live in Trondheim.",  # past
}
LEARNT = {  # what is to be known from which day on, for good
    3: "ann is allergic to peanuts.",
    4: "ann's dog is Rex.",
    8: "ann's favourite food is ramen.",
    10: "ann's favourite drink is tea.",
    17: "ann is allergic to shellfish.",
}
SMALL_TALK = (
    "What is the weather like?",
    "Can you put milk on the shopping list?",
    "I slept badly.",
    "Please remind me of the dentist tomorrow.",
    "How long does the bus to the harbour take?",
    "That was a long day.",
    "Could you find me a good podcast?",
    "Let's go through my mail.",
)
QUESTIONS = {
    11: "Where do I live?",
    13: "Where do I live?",
    19: "What is my diet?",
    21: "What is my diet?",
    24: "Who do I work for?",
}


@dataclass(frozen=True, slots=True)
class Correction:
    """Something that was true until a day, and what is true since."""

    said_on: int
    day: int
    question: str
    old: str
    new: str


CORRECTIONS = (
    Correction(5, 6, "What is my phone number?", "ann's phone is 555 0199.", "ann's phone is 555 0142."),
    Correction(1, 12, "Where do I live?", "ann lives in Bergen.", "ann lives in Oslo."),
    Correction(2, 20, "What is my diet?", "ann's diet is vegetarian.", "ann's diet is vegan."),
    Correction(1, 23, "Who do I work for?", "ann works for Acme.", "ann works for Initech."),
)


# -------------------------------------------------------------------------------------------------------- the assistant


class JumpingClock(SystemClock):
    """Shows the time of the story: it stands still, until it is told what time it is."""

    def __init__(self) -> None:
        self.shows = micros(FIRST_DAY)

    def now(self) -> int:
        return self.shows

    def jump(self, day: int, hour: float) -> None:
        self.shows = micros(FIRST_DAY + timedelta(days=day - 1, hours=hour))


@dataclass(frozen=True, slots=True)
class Day:
    """What there is at the end of a day."""

    day: int
    sessions: int
    turns: int
    episodes: int
    facts: int
    given_up: int
    archived: int
    kilobytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the days: what is known, what is known no longer and what took its place, and the last answers."""

    days: list[Day]
    facts: list[str]
    given_up: dict[str, str]
    answers: dict[str, str]


class Assistant:
    """Talks with Ann by day, and sorts out what it heard by night."""

    def __init__(self, memory: BlockingMemory, clock: JumpingClock, seed: int, tell: Callable[[str], object]) -> None:
        self._memory = memory
        self._clock = clock
        self._seed = seed
        self._tell = tell

    def live(self, day: int) -> Day:
        """One day and one night. If it was cut off, it can be lived again: nothing is said or learnt twice."""
        before = facts(self._memory)
        times = self._begin(day)
        self._talk(day)
        self._clock.jump(day, 22 + times / 4)  # later than any claim of a run that was killed lasts
        self._sleep(day)
        self._report(day, before, facts(self._memory))
        lived = {"day": day, "until": self._clock.now(), "seed": self._seed}
        self._memory.state.set("app:lived", lived, app_name=APP)
        return look(self._memory, day)

    def answer(self, question: str) -> str:
        """The fact that answers best. A language model would be given `memory.context(question)`."""
        hits = self._memory.recall(question, namespaces=FACTS, k=1)
        return hits[0].memory.value if hits else "I don't know."

    def _begin(self, day: int) -> int:
        """How often the day was begun, with this time."""

        def count(was: dict[str, int]) -> dict[str, int]:
            return {"day": day, "times": was["times"] + 1 if was["day"] == day else 1}

        return self._memory.state.update("app:begun", count, default={"day": 0, "times": 0}, app_name=APP)["times"]

    def _talk(self, day: int) -> None:
        session = f"day-{day:03}"
        with suppress(mnemon.SessionExists):
            self._memory.sessions.create_session(session, app_name=APP, user_id=USER)
        for number, line in enumerate(self._lines(day)):
            self._clock.jump(day, 9 + number / 10)
            self._say(session, 2 * number + 1, {"role": "user", "text": line})
            reply = self.answer(line) if line in QUESTIONS.values() else "I see."
            self._say(session, 2 * number + 2, {"role": "assistant", "text": reply})
        with suppress(mnemon.InvalidTransition):  # it was terminated before the day was cut off
            self._memory.sessions.terminate_session(session)

    def _lines(self, day: int) -> list[str]:
        """What Ann says: small talk, a part of the story, a question. The same however often it is asked."""
        chance = random.Random(f"{self._seed}-{day}")
        lines = chance.sample(SMALL_TALK, 3)
        lines[1:1] = [STORY[day]] if day in STORY else []
        return [*lines, *([QUESTIONS[day]] if day in QUESTIONS else [])]

    def _say(self, session: str, number: int, event: dict[str, str]) -> None:
        """The session's log is what was said for good, working memory what is still to be digested."""
        log = self._memory.sessions.get_session(session, last=1)
        assert log is not None
        if number > log.event_count:
            self._memory.sessions.append_event(session, event)
        buffers = self._memory.working.buffers(session)
        if number > (buffers[0].last_sequence if buffers else 0):
            self._memory.working.append(session, [event])

    def _sleep(self, day: int) -> None:
        memory = self._memory
        memory.settled()  # the log's turns can be recalled
        memory.consolidation.flow()  # working memory → episodes → summaries and facts → facts that agree
        memory.retention.apply(actor="assistant")
        if day > SESSION_DAYS:
            with suppress(mnemon.SessionNotFound):
                memory.sessions.delete_session(f"day-{day - SESSION_DAYS:03}")

    def _report(self, day: int, before: set[str], after: set[str]) -> None:
        if day in STORY:
            self._tell(f"day {day:2}  Ann: {STORY[day]}")
            self._tell(f"        {self._news(before, after)}")
        if day in QUESTIONS:
            self._tell(f"day {day:2}  Ann: {QUESTIONS[day]}")
            self._tell(f"        → {self.answer(QUESTIONS[day])}")

    def _news(self, before: set[str], after: set[str]) -> str:
        learnt, gone = sorted(after - before), sorted(before - after)
        return f"learnt: {' '.join(learnt)}{f' No longer: {gone[0]}' if gone else ''}" if learnt else "nothing new"


def facts(memory: BlockingMemory) -> set[str]:
    """What is known of Ann."""
    return {each.value for each in memory.memories.search_memories(FACTS, limit=200)}


def every(listing: Callable[..., mnemon.Page[Any]]) -> Iterator[Any]:
    """What a listing has, page after page."""
    page = listing()
    yield from page
    while page.next_cursor:
        page = listing(cursor=page.next_cursor)
        yield from page


def look(memory: BlockingMemory, day: int) -> Day:
    """Count what there is."""
    uses = {use.policy: use for use in memory.retention.plan().policies}
    return Day(
        day=day,
        sessions=len(memory.sessions.list_sessions(user_id=USER, limit=200)),
        turns=uses["turns"].memories if "turns" in uses else 0,
        episodes=sum(memory.episodes.counts(f"user:{USER}").values()),
        facts=len(facts(memory)),
        given_up=len(given_up(memory)),
        archived=sum(archive.memories for archive in every(memory.retention.archives)),
        kilobytes=memory.retention.growth(record=False).now.size // 1000,
    )


# ------------------------------------------------------------------------------------------------------------ the proof


class Disproved(Exception):
    """The memory is not as it should be."""


def check(holds: object, complaint: str) -> None:
    if not holds:
        raise Disproved(complaint)


def prove(memory: BlockingMemory, assistant: Assistant, days: int) -> dict[str, str]:
    """The answers to what was corrected; `Disproved` if one rests on what no longer holds, or a policy is broken."""
    answers: dict[str, str] = {}
    known, history = facts(memory), given_up(memory)
    for each in CORRECTIONS:
        if days < each.said_on:
            continue
        holds, gone = (each.new, each.old) if days >= each.day else (each.old, each.new)
        answers[each.question] = answer = assistant.answer(each.question)
        check(holds in known and gone not in known, f"known should be {holds!r} and not {gone!r}: {sorted(known)}")
        check(answer == holds, f"{each.question} The answer should be {holds!r}, and is {answer!r}")
        context = memory.context(each.question, namespaces=FACTS, budget=300).text
        check(holds in context and gone not in context, f"{each.question} A model would be given: {context}")
        check(days < each.day or each.old in history, f"{each.old!r} should be in the history: {history}")
    for day, lasting in LEARNT.items():
        check(days < day or lasting in known, f"{lasting!r} should still be known")
    prove_policy(memory)
    return answers


def given_up(memory: BlockingMemory) -> dict[str, str]:
    """What was known once, and what took its place: deleted softly, it can be restored."""
    found: dict[str, str] = {}
    for key in dict.fromkeys(change.entity_id for change in memory.changes(entity="memory", namespace=FACTS)):
        *_, said, last = [None, *memory.memories.get_memory_history(FACTS, key)]
        if said and last and last.is_deleted:
            heir = memory.memories.get_memory(FACTS, last.metadata["superseded_by"]["key"])
            found[said.value] = heir.value if heir else ""
    return found


def prove_policy(memory: BlockingMemory) -> None:
    """Nothing is left for the policies to do."""
    plan = memory.retention.plan()
    check(not plan.actions, f"{len(plan.actions)} memories are beyond the policies")
    turns = next((use.size for use in plan.policies if use.policy == "turns"), 0)
    check(turns <= TURN_BYTES, f"the turns take {turns} bytes, of {TURN_BYTES}")
    states = memory.episodes.counts(f"user:{USER}")
    check(sum(states.values()) == states[mnemon.EpisodeStatus.CONSOLIDATED], f"not all is consolidated: {states}")


# ---------------------------------------------------------------------------------------------------------- the program


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.days < 1:
        parser.error("--days is a number from 1")
    tell: Callable[[str], object] = (lambda text: None) if options.json else print
    clock = JumpingClock()
    settings = {"language_model": options.language_model} if options.language_model else {}
    opened = {"clock": clock, "background": False, "retention": POLICIES, **settings}
    try:
        with _url(options.url) as url, sync.open(url, **opened) as memory:
            outcome = _live(memory, clock, options, tell)
    except (mnemon.MnemonError, Disproved) as complaint:
        print(complaint, file=sys.stderr)
        return 1
    _show(outcome, tell)
    if options.json:
        print(json.dumps(asdict(outcome), indent=1))
    if options.plot:
        plot(outcome.days, options.plot)
        tell(f"drawn in {options.plot}")
    return 0


def _live(
    memory: BlockingMemory, clock: JumpingClock, options: argparse.Namespace, tell: Callable[[str], object]
) -> Outcome:
    """Go on from the last day that was lived to its end."""
    nothing = {"day": 0, "until": clock.now(), "seed": options.seed}
    lived = memory.state.get("app:lived", default=nothing, app_name=APP)
    if lived["seed"] != options.seed:
        raise Disproved(f"this database was begun with --seed {lived['seed']}: go on with that, or take another one")
    if lived["day"]:
        tell(f"Ann and the assistant have known each other for {lived['day']} days.")
    last = max(lived["day"], options.days)
    clock.shows = lived["until"]
    assistant = Assistant(memory, clock, options.seed, tell)
    days = [assistant.live(day) for day in range(lived["day"] + 1, last + 1)] or [look(memory, last)]
    return Outcome(days, sorted(facts(memory)), given_up(memory), prove(memory, assistant, last))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--url", help="the database to keep it in (one that is thrown away); for PostgreSQL, set "
                        "MNEMON_CONTENT_URL to where archives are to be kept")  # fmt: skip
    parser.add_argument("--days", type=int, default=30, help="until which day they live (30)")
    parser.add_argument("--seed", type=int, default=1, help="which small talk they have (1)")
    parser.add_argument("--language-model", metavar="NAME", help="a model for summaries and facts, as ollama:llama3.2")
    parser.add_argument("--json", action="store_true", help="print what came of it as JSON, and nothing else")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the days (needs matplotlib)")
    return parser


@contextmanager
def _url(given: str | None) -> Iterator[str]:
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/assistant.db"


def _show(outcome: Outcome, tell: Callable[[str], object]) -> None:
    tell("\n" + "".join(f"{name.replace('_', ' '):>10}" for name in Day.__dataclass_fields__))
    for day in outcome.days:
        if day.day % 5 == 0 or day is outcome.days[-1]:
            tell("".join(f"{value:>10}" for value in asdict(day).values()))
    tell("\nWhat is known:")
    for fact in outcome.facts:
        tell(f"  {fact}")
    tell("What was known once, and is in the history:")
    for old, new in outcome.given_up.items():
        tell(f"  {old} → {new}")
    tell("Ann asks again:")
    for question, answer in outcome.answers.items():
        tell(f"  {question} → {answer}")


def plot(days: Sequence[Day], path: Path) -> None:
    """What there is day by day, and when something was corrected."""
    import matplotlib as mpl  # noqa: PLC0415 - not needed by everybody

    mpl.use("agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(9, 6))
    numbers = [day.day for day in days]
    for name in ("sessions", "turns", "episodes", "facts"):
        upper.plot(numbers, [getattr(day, name) for day in days], label=name)
    for name in ("archived", "kilobytes"):
        lower.plot(numbers, [getattr(day, name) for day in days], label=name)
    for correction in CORRECTIONS:
        upper.axvline(correction.day, color="lightgrey", zorder=0)
        upper.text(correction.day, upper.get_ylim()[1], correction.new, rotation=30, fontsize=7)
    upper.legend()
    lower.legend()
    lower.set_xlabel("day")
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__" and (failure := main()):
    sys.exit(failure)
