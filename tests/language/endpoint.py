"""A real HTTP endpoint that speaks the chat protocols of OpenAI and Ollama, and says what it is told to say."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mnemon import Settings
from tests.endpoints import Response, ScriptedEndpoint

YES = {"answer": "yes"}


class ChatEndpoint(ScriptedEndpoint):
    """`replies` are its next messages, then it says yes. It does not know the parameters and formats in `unknown`."""

    def __init__(self) -> None:
        super().__init__()
        self.replies: list[str] = []
        self.unknown: set[str] = set()
        self.usage = True

    @property
    def settings(self) -> Settings:
        """Settings that lead to it."""
        return Settings(openai_url=f"{self.url}/v1", ollama_url=self.url, language_model_timeout=5.0)

    def say(self, *replies: Mapping[str, Any] | str) -> None:
        self.replies += [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]

    def respond(self, path: str, body: dict[str, Any]) -> Response:
        known = {"/v1/chat/completions": self._openai, "/api/chat": self._ollama}
        if path not in known:
            return 404, {}, b"404 page not found"
        if body["model"] == "missing":
            return 404, {}, b'{"error": "model \'missing\' not found"}'
        return known[path](body, self.replies.pop(0) if self.replies else json.dumps(YES))

    def _openai(self, body: dict[str, Any], reply: str) -> Response:
        asked = body.get("response_format", {})
        bounds = {word for word in ("maxLength", "maxItems") if word in json.dumps(asked)}
        for word in sorted(self.unknown & ({*body, asked.get("type")} | bounds)):
            self.replies.insert(0, reply)
            better = "; use max_completion_tokens" if word == "max_tokens" else ""
            parameter = "response_format" if word in {asked.get("type"), *bounds} else word
            return _json(400, {"error": {"message": f"unsupported: {word}{better}", "param": parameter}})
        usage = {"usage": {"prompt_tokens": 100, "completion_tokens": 7}} if self.usage else {}
        message = {"role": "assistant", "content": reply}
        return _json(200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **usage})

    def _ollama(self, body: dict[str, Any], reply: str) -> Response:
        if "format" in self.unknown and isinstance(body.get("format"), dict):
            self.replies.insert(0, reply)
            complaint = "json: cannot unmarshal object into Go struct field ChatRequest.format of type string"
            return _json(400, {"error": complaint})
        usage = {"prompt_eval_count": 100, "eval_count": 7} if self.usage else {}
        return _json(200, {"message": {"role": "assistant", "content": reply}, "done": True, **usage})


def _json(status: int, body: object) -> Response:
    return status, {}, json.dumps(body).encode()


@contextmanager
def running() -> Iterator[ChatEndpoint]:
    """An endpoint that is up."""
    endpoint = ChatEndpoint()
    endpoint.start()
    try:
        yield endpoint
    finally:
        endpoint.stop()
