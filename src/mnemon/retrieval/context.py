"""Packing what an agent needs to know into a budget of tokens: pure, and the same for the same things.

Each section is first filled within its share of the budget; what the sections leave is then offered to memories,
recent events, state and artifacts, in this order. Both renderings of the context stay within the budget.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mnemon import tokens
from mnemon.errors import InvalidInput
from mnemon.model import ArtifactReference, Citation, Context, ContextItem, Dropped, Event, Hit, Section
from mnemon.retrieval import rendering
from mnemon.retrieval.duplicates import Gist, KnownTexts, gist_of, words_of
from mnemon.retrieval.rendering import SECTIONS
from mnemon.retrieval.turns import messages_of, turns_of
from mnemon.texts import event_text, text_of
from mnemon.tokens import TokenCounter

SHARES: Mapping[Section, float] = {"state": 0.15, "memories": 0.45, "artifacts": 0.05, "events": 0.35}
"""How much of the budget each section may take before it knows what the others leave."""

BUDGET = "budget"
NO_TEXT = "no text"

_SCOPES = ("temp", "session", "user", "project", "app")
_NOTHING = gist_of("")
_SHORTEST_CUT = 12  # with fewer tokens of its text, a memory says nothing


def pack(
    question: str,
    *,
    state: Mapping[str, Any] | None = None,
    events: Sequence[Event] = (),
    hits: Sequence[Hit] = (),
    artifacts: Sequence[ArtifactReference] = (),
    budget: int = 2000,
    counter: TokenCounter | None = None,
    shares: Mapping[Section, float] = SHARES,
) -> Context:
    """The best of state, recent events, memories and artifacts that `budget` tokens can hold.

    Memories come best first, events newest first, and of state and artifacts first what shares words with the
    question. Everything given is in the answer, among its `items` or its `dropped`; the order in which it is
    given changes nothing. `events` are of one session.
    """
    if not isinstance(budget, int) or isinstance(budget, bool) or budget <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"budget must be a whole number of tokens from 1, not {budget!r}")
    parts = _checked(shares)
    counter = counter or tokens.counter()
    stock = _Stock.of(counter, set(words_of(question)), state or {}, events, hits, artifacts)
    room = budget
    while True:
        context = _finish(question, budget, counter, stock, _distribute(stock, room, parts))
        if context.tokens <= budget:
            return context
        room -= context.tokens - budget  # a counter may find more in the whole than in its parts


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Something that may be packed: what the text would say of it, and what that costs in either rendering.

    `order` is its place in the section. A memory's line still lacks its mark, for which `cost` has room, and it
    knows the events that it repeats; an event knows its session and sequence as `source`.
    """

    section: Section
    name: str
    order: tuple[int, ...]
    head: str
    text: str
    cost: int
    gist: Gist = _NOTHING
    messages: tuple[dict[str, Any], ...] = ()
    hit: Hit | None = None
    source: tuple[str, int] | None = None
    repeats: frozenset[str] = frozenset()

    def dropped(self, reason: str) -> Dropped:
        return Dropped(self.section, self.name, reason, self.cost)


@dataclass(slots=True)
class _Shelf:
    """A section being filled: how much room it has, what it took, and what it dropped."""

    room: int
    heading: int
    spent: int = 0
    taken: list[tuple[_Candidate, ContextItem]] = field(default_factory=list[tuple[_Candidate, ContextItem]])
    dropped: list[Dropped] = field(default_factory=list[Dropped])

    @property
    def left(self) -> int:
        return self.room - self.spent - (0 if self.taken else self.heading)

    def take(self, candidate: _Candidate, mark: str | None = None, is_cut: bool = False) -> None:
        line = f"{mark} {candidate.head}{candidate.text}" if mark else candidate.head + candidate.text
        item = ContextItem(candidate.section, candidate.name, line, candidate.cost, mark, is_cut, candidate.messages)
        self.spent += candidate.cost + (0 if self.taken else self.heading)
        self.taken.append((candidate, item))

    def drop(self, candidate: _Candidate, reason: str) -> None:
        self.dropped.append(candidate.dropped(reason))


@dataclass(frozen=True, slots=True)
class _Stock:
    """Everything that there is to pack, counted, each kind with the most wanted first."""

    counter: TokenCounter
    frame: int
    headings: Mapping[Section, int]
    state: Sequence[_Candidate]
    artifacts: Sequence[_Candidate]
    memories: Sequence[_Candidate]
    turns: Sequence[Sequence[_Candidate]]
    unusable: Sequence[Dropped]

    @classmethod
    def of(
        cls,
        counter: TokenCounter,
        asked: set[str],
        state: Mapping[str, Any],
        events: Sequence[Event],
        hits: Sequence[Hit],
        artifacts: Sequence[ArtifactReference],
    ) -> "_Stock":
        unusable: list[Dropped] = []
        turns = list(_turns(counter, events, unusable))
        said = [candidate for turn in turns for candidate in turn]
        return cls(
            counter,
            counter.count(f"{rendering.PREFACE}\n") + rendering.message_tokens([{"role": "system"}], counter),
            {section: counter.count("\n".join((*rendering.heading(section), ""))) for section in SECTIONS},
            _wanted(_with_text(_state(counter, state), unusable), asked),
            _wanted(_artifacts(counter, artifacts), asked),
            _with_text(_memories(counter, hits, said), unusable),
            turns,
            unusable,
        )

    def fill_state(self, room: int) -> _Shelf:
        return self._fill("state", self.state, room)

    def fill_artifacts(self, room: int) -> _Shelf:
        return self._fill("artifacts", self.artifacts, room)

    def fill_events(self, room: int) -> _Shelf:
        """The newest turns that fit without a gap, but for turns that are longer than all of the room."""
        shelf = self._shelf("events", room)
        most, is_open = shelf.left, True
        for turn in self.turns:
            cost = sum(candidate.cost for candidate in turn)
            is_open = is_open and (cost <= shelf.left or cost > most)
            for candidate in turn:
                if is_open and cost <= most:
                    shelf.take(candidate)
                else:
                    shelf.drop(candidate, BUDGET)
        return shelf

    def fill_memories(self, room: int, events: _Shelf) -> _Shelf:
        """The best memories that fit and say something new; the very best is cut rather than left out."""
        shelf = self._shelf("memories", room)
        said = {candidate.name for candidate, _ in events.taken}
        told = KnownTexts()
        for number, candidate in enumerate(self.memories):
            if repeated := _repeated(candidate, said, told):
                shelf.drop(candidate, f"duplicate of {repeated}")
                continue
            fitting = candidate if candidate.cost <= shelf.left else None
            if fitting is None and not shelf.taken:
                others = sum(other.cost for other in self.memories[number + 1 :])
                fitting = self._cut(candidate, max(shelf.left - others, shelf.left // 2))
            if fitting is None:
                shelf.drop(candidate, BUDGET)
                continue
            mark = f"[m{len(shelf.taken) + 1}]"
            shelf.take(fitting, mark, is_cut=fitting is not candidate)
            told.add(mark, fitting.gist)
        return shelf

    def _fill(self, section: Section, candidates: Iterable[_Candidate], room: int) -> _Shelf:
        shelf = self._shelf(section, room)
        for candidate in candidates:
            if candidate.cost <= shelf.left:
                shelf.take(candidate)
            else:
                shelf.drop(candidate, BUDGET)
        return shelf

    def _cut(self, candidate: _Candidate, room: int) -> _Candidate | None:
        """The memory with as much of its text as `room` holds, or None if that is too little."""
        limit = room - self.counter.count(_marked(candidate.head, 1))
        while limit >= _SHORTEST_CUT:
            text = self.counter.cut(candidate.text, limit)
            cost = self.counter.count(_marked(candidate.head + text, 1))
            if cost <= room:
                return replace(candidate, text=text, cost=cost, gist=gist_of(text))
            limit -= cost - room
        return None

    def _shelf(self, section: Section, room: int) -> _Shelf:
        return _Shelf(room, self.headings[section])


def _distribute(stock: _Stock, room: int, parts: Mapping[Section, float]) -> dict[Section, _Shelf]:
    """Fill every section within its share, then again with what the others left."""
    room = max(room - stock.frame, 0)
    share = {section: math.floor(room * part) for section, part in parts.items()}
    shelves = {
        "state": stock.fill_state(share["state"]),
        "artifacts": stock.fill_artifacts(share["artifacts"]),
        "events": stock.fill_events(share["events"]),
    }  # fmt: skip
    shelves["memories"] = stock.fill_memories(share["memories"], shelves["events"])
    refill: list[tuple[Section, Callable[[int], _Shelf]]] = [
        ("memories", lambda room: stock.fill_memories(room, shelves["events"])),
        ("events", stock.fill_events),
        ("state", stock.fill_state),
        ("artifacts", stock.fill_artifacts),
        ("memories", lambda room: stock.fill_memories(room, shelves["events"])),  # now other events are told
    ]
    for section, fill in refill:
        others = sum(shelf.spent for name, shelf in shelves.items() if name != section)
        shelves[section] = fill(room - others)
    return {section: shelves[section] for section in SECTIONS}


def _finish(
    question: str, budget: int, counter: TokenCounter, stock: _Stock, shelves: Mapping[Section, _Shelf]
) -> Context:
    taken = [pair for shelf in shelves.values() for pair in sorted(shelf.taken, key=lambda pair: pair[0].order)]
    items = tuple(item for _, item in taken)
    dropped = [*stock.unusable, *(lost for shelf in shelves.values() for lost in shelf.dropped)]
    context = Context(
        question=question,
        budget=budget,
        text=rendering.render(items, SECTIONS),
        system=rendering.render(items, [section for section in SECTIONS if section != "events"]),
        text_tokens=0,
        message_tokens=0,
        exact=counter.exact,
        items=items,
        dropped=tuple(sorted(dropped, key=lambda lost: SECTIONS.index(lost.section))),
        citations=tuple(_cite(item.mark, candidate.hit) for candidate, item in taken if item.mark and candidate.hit),
    )
    return replace(
        context,
        text_tokens=counter.count(context.text),
        message_tokens=rendering.message_tokens(context.messages(), counter),
    )


def _cite(mark: str, hit: Hit) -> Citation:
    memory, place = hit.memory, hit.memory.placement
    return Citation(
        mark=mark,
        namespace=memory.namespace,
        key=memory.key,
        version=memory.version,
        thread=place.thread,
        position=place.position,
        author=memory.provenance.author,
        occurred_at=place.occurred_at,
        source=memory.source,
    )


def _checked(shares: Mapping[Section, float]) -> dict[Section, float]:
    """The shares as parts of one."""
    for section, share in shares.items():
        if section not in SECTIONS:
            raise InvalidInput(f"there is no section {section!r}; shares are of {', '.join(SECTIONS)}")
        if not (isinstance(share, int | float) and math.isfinite(share) and share >= 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"the share of {section} must be a number from 0, not {share!r}")
    whole = sum(shares.values())
    if not whole:
        raise InvalidInput("at least one section must have a share above 0")
    return {section: shares.get(section, 0) / whole for section in SECTIONS}


def _state(counter: TokenCounter, state: Mapping[str, Any]) -> Iterable[_Candidate]:
    for number, key in enumerate(sorted(state, key=_by_scope)):
        text = text_of(state[key])
        line = rendering.state_line(key, text) if text.strip() else ""
        yield _Candidate("state", key, (number,), "", line, counter.count(f"{line}\n") if line else 0)


def _by_scope(key: str) -> tuple[int, str]:
    scope, colon, _ = key.partition(":")
    return _SCOPES.index(scope) if colon and scope in _SCOPES else _SCOPES.index("session"), key


def _artifacts(counter: TokenCounter, artifacts: Sequence[ArtifactReference]) -> list[_Candidate]:
    lines = sorted((artifact.name, artifact.version, rendering.artifact_line(artifact)) for artifact in artifacts)
    return [
        _Candidate("artifacts", name, (number,), "", line, counter.count(f"{line}\n"))
        for number, (name, _, line) in enumerate(lines)
    ]


def _memories(counter: TokenCounter, hits: Sequence[Hit], said: Sequence[_Candidate]) -> Iterable[_Candidate]:
    """The memories, the best first, each with the names of the events that say the same."""
    told = KnownTexts()
    made_of: dict[object, str] = {}
    for event in said:
        told.add(event.name, event.gist)
        session_id, sequence = event.source or ("", 0)
        made_of |= {(session_id, sequence): event.name, (session_id, event.name): event.name}
    for number, hit in enumerate(sorted(hits, key=_best_first), start=1):
        memory, place = hit.memory, hit.memory.placement
        plain = text_of(memory.value)
        head, text = rendering.memory_head(memory, plain), rendering.tamed(plain)
        gist = gist_of(plain)
        origins = (place.thread, place.position), (memory.provenance.session_id, memory.provenance.event_id)
        repeats = {*told.saying(gist), *(made_of[origin] for origin in origins if origin in made_of)}
        yield _Candidate(
            "memories",
            f"{memory.namespace}/{memory.key}",
            (number,),
            head,
            text,
            counter.count(_marked(head + text, number)) if text else 0,
            gist,
            hit=hit,
            repeats=frozenset(repeats),
        )


def _best_first(hit: Hit) -> tuple[float, str, str, int]:
    return -hit.score, hit.memory.namespace, hit.memory.key, -hit.memory.version


def _turns(counter: TokenCounter, events: Sequence[Event], unusable: list[Dropped]) -> Iterable[list[_Candidate]]:
    """The turns, the newest first; what is in none goes to `unusable`."""
    once: dict[tuple[str, int], Event] = {}
    for event in sorted(events, key=lambda event: (event.session_id, event.sequence)):
        if (event.session_id, event.sequence) in once:
            unusable.append(_event(counter, event, ()).dropped(f"duplicate of event {event.id}"))
        once.setdefault((event.session_id, event.sequence), event)
    in_order = list(once.values())
    turns, left_out = turns_of(in_order)
    for place, reason in sorted(left_out.items()):
        unusable.append(_event(counter, in_order[place], ()).dropped(reason))
    for turn in turns:
        first = turn.events[0].sequence
        candidates = [_event(counter, event, (first, event.sequence)) for event in turn.events]
        if candidates[0].messages:
            yield candidates
        else:
            unusable.append(Dropped("events", candidates[0].name, NO_TEXT, 0))


def _event(counter: TokenCounter, event: Event, order: tuple[int, ...]) -> _Candidate:
    text = event_text(event.body) or ""
    line = rendering.event_line(event, text)
    messages = tuple(messages_of(event))
    cost = max(counter.count(f"{line}\n"), sum(rendering.tokens_of_message(message, counter) for message in messages))
    source = (event.session_id, event.sequence)
    return _Candidate("events", event.id, order, "", line, cost, gist_of(text), messages, source=source)


def _with_text(candidates: Iterable[_Candidate], unusable: list[Dropped]) -> list[_Candidate]:
    usable: list[_Candidate] = []
    for candidate in candidates:
        if candidate.text:
            usable.append(candidate)
        else:
            unusable.append(candidate.dropped(NO_TEXT))
    return usable


def _wanted(candidates: Sequence[_Candidate], asked: set[str]) -> list[_Candidate]:
    """Those first that share most words with the question."""
    return sorted(
        candidates, key=lambda candidate: (-len(asked.intersection(words_of(candidate.text))), candidate.order)
    )


def _repeated(candidate: _Candidate, said: set[str], told: KnownTexts) -> str | None:
    """The event or memory that was packed already and says all that the candidate does."""
    if events := candidate.repeats & said:
        return f"event {min(events)}"
    return next(told.saying(candidate.gist), None)


def _marked(text: str, number: int) -> str:
    """A memory's line as it will be counted: with its mark, and with what separates it from the next."""
    return f"[m{number}] {text}\n"
