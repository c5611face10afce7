"""What a session is at now, gathered from everything that knows something of it, and packed into a budget of tokens."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from mnemon.access import Access
from mnemon.episodes.service import SUMMARIES, EpisodeService
from mnemon.errors import SessionNotFound
from mnemon.memories import MemoryService
from mnemon.model import Context, Episode, EpisodeStatus, Event, Hit, Section, Session, WorkingItem
from mnemon.pages import check_limit
from mnemon.ports import Runner
from mnemon.retrieval.context import pack
from mnemon.sessions import SessionService
from mnemon.texts import event_role, event_text, text_of
from mnemon.tokens import counter
from mnemon.working import WorkingMemory
from mnemon.working.service import CONVERSATION

SHARES: dict[Section, float] = {"state": 0.15, "memories": 0.25, "events": 0.6}
"""How much of the budget each section may take before it knows what the others leave."""

_BUFFERS = 10
_EPISODES = 10


class RecentContexts:
    """Tells what sessions are at, as one caller may see it."""

    def __init__(
        self,
        sessions: SessionService,
        working: WorkingMemory,
        episodes: EpisodeService,
        memories: MemoryService,
        access: Access,
        runner: Runner,
    ) -> None:
        self._sessions = sessions
        self._working = working
        self._episodes = episodes
        self._memories = memories
        self._access = access
        self._runner = runner

    async def fetch(self, session_id: str, limit: int, budget: int) -> Context:
        """State and scratchpads, what was said last, and summaries of what happened before."""
        session = await self._sessions.get_session(session_id, last=check_limit(limit))
        if session is None:
            raise SessionNotFound(f"no session {session_id!r}; create it with create_session")
        pads = await self._working.scratchpads(session_id, limit=limit)
        state = {**session.state, **{f"scratchpad:{pad.name}": pad.value for pad in pads}}
        episodes = await self._happened(session, min(limit, _EPISODES))
        heard = [*await self._items(session, limit), *_entries(session, episodes)]
        events = _in_order([*session.events, *_unheard(heard, session.events)])[-limit:]
        hits = await self._summaries(episodes)
        return await self._runner.aside(
            lambda: pack("", state=state, events=events, hits=hits, budget=budget, counter=counter(), shares=SHARES)
        )

    async def _items(self, session: Session, limit: int) -> list[Event]:
        """What stands in the buffers that were used last, as if it were events."""
        buffers = [each for each in await self._working.buffers(session.id) if each.items]
        buffers.sort(key=lambda each: each.updated_at, reverse=True)
        found: list[Event] = []
        for buffer in buffers[:_BUFFERS]:
            items = await self._working.recent(session.id, buffer=buffer.name, last=limit)
            found += [_item(buffer.name, item) for item in items]
        return found

    async def _happened(self, session: Session, limit: int) -> list[Episode]:
        """The session's newest episodes, and its user's, the newest first."""
        found = list(await self._episodes.list(session_id=session.id, limit=limit))
        theirs = f"user:{session.user_id}"
        if self._access.allows(theirs, "read"):
            found += await self._episodes.list(namespace=theirs, limit=limit)
        unique = {episode.id: episode for episode in found}
        return sorted(unique.values(), key=lambda episode: (episode.ended_at, episode.id), reverse=True)[:limit]

    async def _summaries(self, episodes: Sequence[Episode]) -> list[Hit]:
        """What was remembered of episodes, the newest with the highest score."""
        told: list[Hit] = []
        for number, episode in enumerate(episodes):
            if episode.status == EpisodeStatus.CONSOLIDATED:
                memory = await self._memories.get_memory(f"{episode.namespace}:{SUMMARIES}", f"episode-{episode.id}")
                told += [Hit(memory, 1.0 / (number + 1))] if memory else []
        return told


def _item(buffer: str, item: WorkingItem) -> Event:
    said = _body(item.value, None if buffer == CONVERSATION else buffer)
    return Event("", item.sequence, f"{buffer}/{item.sequence}", said, None, item.created_by, None, item.created_at)


def _entries(session: Session, episodes: Iterable[Episode]) -> list[Event]:
    """What the session's episodes hold that there is no summary of yet: until a moment ago it stood in a buffer."""
    return [
        Event(
            "", number, f"episode-{episode.id}/{number}", _body(entry.value, None), None, entry.author, None,
            entry.at or episode.started_at,
        )
        for episode in episodes
        if episode.session_id == session.id and episode.status != EpisodeStatus.CONSOLIDATED
        for number, entry in enumerate(episode.entries, start=1)
    ]  # fmt: skip


def _body(value: Any, topic: str | None) -> dict[str, Any]:
    """The value as an event has it: a message as it is, and anything else as a text."""
    message = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if event_text(message):
        return message
    text = text_of(cast("object", value))
    return {"text": f"{topic}: {text}" if topic and text else text}


def _unheard(heard: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """Those that are not among the events too: many programs write what is said to both."""
    known = Counter(_said(event) for event in events)
    unheard: list[Event] = []
    for event in heard:
        said = _said(event)
        if known[said]:
            known[said] -= 1
        else:
            unheard.append(event)
    return unheard


def _said(event: Event) -> tuple[str | None, str | None]:
    return event_role(event.body), event_text(event.body)


def _in_order(events: Iterable[Event]) -> list[Event]:
    """All by time, numbered anew, as if they were the events of one session."""
    ordered = sorted(events, key=lambda event: event.created_at)
    return [replace(event, session_id="", sequence=number) for number, event in enumerate(ordered, start=1)]
