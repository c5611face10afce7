"""What a value or an event says, as text: to be searched, embedded and read.

Agents log their events in the shapes of many providers and frameworks. What they carry is read here, once,
as pieces: text, a tool's call, or a tool's result. Understood are

- `{"role", "text"}`, `{"text"}`, and `{"message"}` around any of the others;
- OpenAI chat messages: `content` as text or parts, `tool_calls`, the older `function_call`, and role `tool`;
- items of OpenAI responses: messages, and every call and output with a `call_id`;
- Anthropic messages: `text`, `tool_use` and `tool_result` blocks;
- ADK events and Gemini contents: `parts` with `text`, `function_call` and `function_response`;
- LangChain messages: `{"type": "human", "content"}`, also with the content below `data`.

Thoughts, images, sounds and files are no text, and an event of any other shape says nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeGuard

from mnemon.values import decode

LONGEST = 100_000
"""How many characters of a value or an event are read as text."""

_ROLES = {
    "user": "user", "human": "user", "HumanMessageChunk": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "AIMessageChunk": "assistant",
    "system": "system", "developer": "developer", "tool": "tool", "function": "tool",
}  # fmt: skip
_TEXT_BLOCKS = {"", "text", "input_text", "output_text", "refusal"}
_TOOL_BLOCKS = ("tool_use", "tool_result")
_ALONE = {"text", "content", "result", "output"}


class Piece(NamedTuple):
    """A part of an event. A call and its result have the same `id`; the tool's name is there where it is told."""

    kind: Literal["text", "call", "result"]
    text: str
    id: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        if self.kind == "call":
            return f"{self.name or 'tool'}({self.text})"
        return f"{self.name}: {self.text}" if self.name else self.text


def text_of(value: object, limit: int = LONGEST) -> str:
    """A JSON value as text that can be read, cut after `limit` characters.

    A string is itself. A mapping is a line `name: value` for each value in it, with dotted names for what is
    nested; a list of plain values is joined with commas. Nothing is said of what is empty. A mapping with
    nothing but a `text`, `content`, `result` or `output` is that.
    """
    parts: list[str] = []
    length = -1
    for line in _lines("", value, limit):
        parts.append(line)
        length += len(line) + 1
        if length >= limit:
            break
    return "\n".join(parts)[:limit]


def event_text(body: Mapping[str, Any]) -> str | None:
    """What the event says, or None if it says nothing.

    A tool's call is `name(argument: value)`; its result is the text of the result, after the tool's name
    if the event has it.
    """
    said = [str(piece) for piece in pieces_of(body)]
    return "\n".join(said)[:LONGEST] if any(said) else None


def event_author(body: Mapping[str, Any], actor: str | None) -> str | None:
    """Who said it: the author, speaker or name in the event; else the one who appended it; else the role."""
    message = message_in(body)
    for told in (body, message):
        names = ("author", "speaker") if is_response_item(told) else ("author", "speaker", "name")
        for name in names:
            if isinstance(author := told.get(name), str) and author:
                return author
    return actor or event_role(body)


def event_role(body: Mapping[str, Any]) -> str | None:
    """`user`, `assistant`, `system`, `developer` or `tool`, whatever the event's shape calls it."""
    message = message_in(body)
    if is_response_item(message):
        return "tool" if _is_output(message) else "assistant"
    content = message.get("content")
    inner = content.get("role") if _is_mapping(content) else None
    for told in (inner, message.get("role"), message.get("type"), body.get("type")):
        if isinstance(told, str) and told in _ROLES:
            return _ROLES[told]
    author = body.get("author")
    return None if not isinstance(author, str) else "user" if author == "user" else "assistant"


def pieces_of(body: Mapping[str, Any]) -> list[Piece]:
    """The text, calls and results that the event carries, in order; what is told in two ways only once."""
    pieces: list[Piece] = []
    unnamed: Counter[tuple[str, str]] = Counter()
    for piece in _pieces(message_in(body)):
        if piece.kind == "text":
            pieces += [piece] if piece.text else []
        elif piece.id is not None:
            pieces.append(piece)
        else:
            # Without an id, a call and its result are known by the tool's name and by which of several they are.
            unnamed[piece.kind, piece.name or ""] += 1
            pieces.append(piece._replace(id=f"{piece.name or ''} #{unnamed[piece.kind, piece.name or '']}"))
    return pieces


def message_in(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message that the event wraps, with the type of its wrapping; the event itself if it wraps none."""
    for name in ("message", "data"):
        inner = body.get(name)
        if _is_mapping(inner) and ("content" in inner or "text" in inner):
            return {"type": body["type"], **inner} if "type" in body else inner
    return body


def is_response_item(message: Mapping[str, Any]) -> bool:
    """Whether it is a call or an output among the items of OpenAI's responses."""
    return "call_id" in message and isinstance(message.get("type"), str)


def mappings_in(value: object) -> list[Mapping[str, Any]]:
    """The mappings in a list; of anything else, none."""
    return [item for item in value if _is_mapping(item)] if _is_list(value) else []


def _lines(name: str, value: object, limit: int) -> Iterator[str]:
    if _is_mapping(value):
        if len(value) == 1 and (only := next(iter(value))) in _ALONE:
            yield from _lines(name, value[only], limit)
            return
        for key, child in value.items():
            yield from _lines(f"{name}.{key}" if name else str(key), child, limit)
    elif _is_list(value) and not all(_is_plain(child) for child in value):
        for number, child in enumerate(value):
            yield from _lines(f"{name}[{number}]", child, limit)
    else:
        text = ", ".join(map(_plain, islice(value, limit))) if _is_list(value) else _plain(value)
        if text:
            yield f"{name}: {text}" if name else text


def _plain(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pieces(message: Mapping[str, Any]) -> Iterator[Piece]:
    if is_response_item(message):
        yield _response_item(message)
        return
    called = _text_or_none(message.get("tool_call_id"))
    if called is not None or message.get("role") == "function":
        yield Piece("result", _said(message.get("content")), called, _name(message))
        return
    content = list(_content(message))
    yield from content
    told = {piece.id for piece in content if piece.kind == "call"}
    for call in mappings_in(message.get("tool_calls")):
        piece = _tool_call(call)
        if piece.id is None or piece.id not in told:
            yield piece
    if _is_mapping(legacy := message.get("function_call")):
        yield _call(legacy, "arguments", None)


def _content(message: Mapping[str, Any]) -> Iterator[Piece]:
    """The pieces of whatever holds the text: `content`, `parts`, `text` or `message`; or of a block on its own."""
    if _kind_of(message).endswith(_TOOL_BLOCKS):
        yield from _block(message)
        return
    for name in ("content", "parts", "text", "message"):
        found = message.get(name)
        if isinstance(found, str) and found:
            yield Piece("text", found)
            return
        if _is_mapping(found):
            found = found.get("parts")
        if _is_list(found) and found:
            for block in found:
                yield from _block(block)
            return


def _block(block: object) -> Iterator[Piece]:
    if isinstance(block, str):
        yield Piece("text", block)
    if not _is_mapping(block) or block.get("thought"):
        return
    kind = _kind_of(block)
    if kind.endswith(_TOOL_BLOCKS[0]):
        yield _call(block, "input", _text_or_none(block.get("id")))
    elif kind.endswith(_TOOL_BLOCKS[1]):
        yield Piece("result", _said(block.get("content")), _text_or_none(block.get("tool_use_id")), _name(block))
    elif kind in _TEXT_BLOCKS:
        yield from _part(block)


def _part(part: Mapping[str, Any]) -> Iterator[Piece]:
    """A part of an ADK event, or a block of text."""
    if text := _text_or_none(part.get("text")) or _text_or_none(part.get("refusal")):
        yield Piece("text", text)
    for name in ("function_call", "functionCall"):
        if _is_mapping(call := part.get(name)):
            yield _call(call, "args", _text_or_none(call.get("id")))
    for name in ("function_response", "functionResponse"):
        if _is_mapping(result := part.get(name)):
            yield Piece("result", _said(result.get("response")), _text_or_none(result.get("id")), _name(result))


def _response_item(item: Mapping[str, Any]) -> Piece:
    called = _text_or_none(item.get("call_id"))
    if _is_output(item):
        return Piece("result", _said(item.get("output")), called)
    given = next((name for name in ("arguments", "input", "action", "operation") if name in item), "arguments")
    return _call(item, given, called)


def _tool_call(call: Mapping[str, Any]) -> Piece:
    """A call of OpenAI, whose name is inside, or one of LangChain."""
    called = _text_or_none(call.get("id"))
    if _is_mapping(inner := call.get("function")):
        return _call(inner, "arguments", called)
    if _is_mapping(inner := call.get("custom")):
        return _call(inner, "input", called)
    return _call(call, "args", called)


def _call(call: Mapping[str, Any], given: str, called: str | None) -> Piece:
    return Piece("call", _arguments(call.get(given)), called, _name(call) or _kind_of(call) or None)


def _arguments(value: object) -> str:
    if isinstance(value, str):
        try:
            return _arguments_of(decode(value))
        except ValueError:  # the model wrote something that is no JSON
            return value
    return _arguments_of(value)


def _arguments_of(value: object) -> str:
    return "" if value is None else text_of(value).replace("\n", ", ")


def _said(value: object) -> str:
    """The text of a result: of the blocks of text in it, or of the value that it is."""
    if not _is_list(value) or not any(_is_mapping(block) and "type" in block for block in value):
        return "" if value is None else text_of(value)
    return "\n".join(piece.text for block in value for piece in _block(block) if piece.kind == "text")


def _is_output(item: Mapping[str, Any]) -> bool:
    return _kind_of(item).endswith("_output")


def _kind_of(block: Mapping[str, Any]) -> str:
    return _text_or_none(block.get("type")) or ""


def _name(block: Mapping[str, Any]) -> str | None:
    return _text_or_none(block.get("name"))


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _is_plain(value: object) -> bool:
    return not isinstance(value, Mapping | list | tuple)
