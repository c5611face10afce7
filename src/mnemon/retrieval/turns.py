"""Events as the turns of a conversation: which belong together, and the chat messages that they are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mnemon.model import Event
from mnemon.texts import Piece, event_role, is_response_item, mappings_in, message_in, pieces_of
from mnemon.values import encode

ORPHAN_CALL = "orphan tool call"
ORPHAN_RESULT = "orphan tool result"
SUPERSEDED = "superseded tool result"

_OWN_TO_THE_SERVER = {"id", "status", "created_by"}  # of an item that is sent back


@dataclass(frozen=True, slots=True)
class Turn:
    """Events that are only ever kept or left out together: one alone, or a tool's calls with their results."""

    events: tuple[Event, ...]


def turns_of(events: Sequence[Event]) -> tuple[list[Turn], dict[int, str]]:
    """The turns, the newest first, and why each event that is in none was left out, by its place in `events`.

    A result belongs to the nearest call before it with the same id, so that ids may be used again. A call
    without a result, or a result without a call, would be refused by every provider, and so would what is
    left of a turn without it: the whole turn is an orphan.
    """
    pairs = _Pairs(len(events))
    left_out: dict[int, str] = {}
    wanted: dict[str, int] = {}
    for place in range(len(events) - 1, -1, -1):
        calls, results = _ids(pieces_of(events[place].body))
        if any(called in wanted for called in results):
            left_out[place] = SUPERSEDED
            continue
        for called in calls:
            if called in wanted:
                pairs.join(place, wanted.pop(called))
            else:
                pairs.break_(place)
        wanted.update(dict.fromkeys(results, place))
    for place in wanted.values():
        pairs.break_(place)
    turns: list[Turn] = []
    for group in pairs.groups(left_out):
        if pairs.is_broken(group):
            left_out |= {place: _orphan(events[place]) for place in group}
        else:
            turns.append(Turn(tuple(events[place] for place in group)))
    return turns, left_out


class _Pairs:
    """Which events belong together, found by joining two at a time."""

    def __init__(self, count: int) -> None:
        self._leader = list(range(count))
        self._broken: set[int] = set()

    def join(self, call: int, result: int) -> None:
        self._leader[self._find(result)] = self._find(call)

    def break_(self, place: int) -> None:
        self._broken.add(place)

    def is_broken(self, group: Iterable[int]) -> bool:
        return not self._broken.isdisjoint(group)

    def groups(self, without: Mapping[int, str]) -> list[list[int]]:
        """The groups with their events in order, that with the newest event first."""
        found: dict[int, list[int]] = {}
        for place in range(len(self._leader)):
            if place not in without:
                found.setdefault(self._find(place), []).append(place)
        return sorted(found.values(), key=lambda group: -group[-1])

    def _find(self, place: int) -> int:
        leader = self._leader
        while leader[place] != place:
            leader[place] = place = leader[leader[place]]
        return place


def _ids(pieces: Sequence[Piece]) -> tuple[list[str], list[str]]:
    """The ids of calls and of results; without those that the event both makes and answers itself."""
    calls = [piece.id or "" for piece in pieces if piece.kind == "call"]
    results = [piece.id or "" for piece in pieces if piece.kind == "result"]
    both = {called for called in calls if called in results}
    return [called for called in calls if called not in both], [called for called in results if called not in both]


def _orphan(event: Event) -> str:
    return ORPHAN_CALL if any(piece.kind == "call" for piece in pieces_of(event.body)) else ORPHAN_RESULT


def messages_of(event: Event) -> list[dict[str, Any]]:
    """The event as chat messages, or as whatever its provider takes in their place.

    What is only text becomes `{"role", "content"}`. Calls and results keep the shape of their provider;
    those of LangChain, which is none, get that of OpenAI.
    """
    message, pieces = message_in(event.body), pieces_of(event.body)
    text = "\n".join(piece.text for piece in pieces if piece.kind == "text")
    if all(piece.kind == "text" for piece in pieces):
        return [_said(message, event_role(event.body) or "user", text)] if text else []
    if calls := mappings_in(message.get("tool_calls")):
        return [{"role": "assistant", "content": text or None, "tool_calls": [_openai_call(call) for call in calls]}]
    if isinstance(answered := message.get("tool_call_id"), str) and answered:
        return [{"role": "tool", "tool_call_id": answered, "content": pieces[0].text}]
    if is_response_item(message):
        return [{name: value for name, value in message.items() if name not in _OWN_TO_THE_SERVER}]
    return [_in_own_shape(message, "assistant" if any(piece.kind == "call" for piece in pieces) else "user", text)]


def _said(message: Mapping[str, Any], role: str, text: str) -> dict[str, Any]:
    if role == "tool":  # without the id of a call there is no such message
        return {"role": "user", "content": f"tool: {text}"}
    name = message.get("name")
    named = {"name": name} if isinstance(name, str) and name and "role" in message else {}
    return {"role": role, "content": text, **named}


def _in_own_shape(message: Mapping[str, Any], role: str, text: str) -> dict[str, Any]:
    if isinstance(message.get("function_call"), Mapping):
        return {"role": "assistant", "content": text or None, "function_call": message["function_call"]}
    if message.get("role") == "function":
        return {"role": "function", "name": message.get("name"), "content": message.get("content")}
    content = message.get("content")
    inside = cast("Mapping[str, Any]", content) if isinstance(content, Mapping) else message
    if "parts" in inside:
        return {"role": "model" if role == "assistant" else "user", "parts": inside["parts"]}
    is_block = str(message.get("type")).endswith(("tool_use", "tool_result"))
    return {"role": role, "content": [dict(message)] if is_block else content}


def _openai_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The call as it is if OpenAI made it, else in the same shape."""
    if "function" in call or "custom" in call:
        return call
    arguments = encode("the arguments of a tool call", call.get("args") or {}, 2**31)
    return {"id": call.get("id"), "type": "function", "function": {"name": call.get("name"), "arguments": arguments}}
