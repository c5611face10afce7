"""Real HTTP endpoints that embed with the static embedder, in the protocols of OpenAI and Ollama.

They fail as real ones do, when told to: refuse, stall, break off, answer with an error or with something else.
"""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from mnemon import Settings
from mnemon.providers.loading import load
from tests.servers import free_ports

MODELS = ("static-model", "nomic-embed-text")


class _Server(ThreadingHTTPServer):
    """A server that breaks its connections off when it is closed, as a process does that ends."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(*arguments)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Endpoint:
    """A server at a port of its own, which can be stopped and started again there.

    `requests` are the bodies that it got, `headers` those of the last one.
    """

    def __init__(self) -> None:
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.requests: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        """What it answers to the next requests, instead of vectors."""
        self.stall = 0.0
        self.breaks = 0
        self.dimension: int | None = None
        self.longest: int | None = None
        self.refusal = 400
        self._embedder = load("static", Settings())
        self._server: _Server | None = None

    @property
    def settings(self) -> Settings:
        """Settings that lead to it."""
        return Settings(openai_url=f"{self.url}/v1", ollama_url=self.url, embedder_timeout=5.0)

    def start(self) -> None:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                endpoint.handle(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Tests do not read the log."""

        self._server = _Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, status: int, body: object = "told to", *, times: int = 1, **headers: str) -> None:
        """Answer so to the next requests."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers += [(status, named, json.dumps(body).encode())] * times

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["content-length"])))
        self.requests.append(body)
        self.headers = {name.lower(): value for name, value in request.headers.items()}
        time.sleep(self.stall)
        if self.breaks:
            self.breaks -= 1
            request.close_connection = True
            return
        status, headers, answer = self.answers.pop(0) if self.answers else self._embed(request.path, body)
        request.send_response(status)
        for name, value in {"content-length": str(len(answer)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(answer)

    def _embed(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
        if body["model"] not in MODELS:
            return 404, {}, json.dumps({"error": f"model {body['model']!r} not found"}).encode()
        if any(not text for text in body["input"]):
            return 400, {}, b'{"error": "input cannot be an empty string"}'
        if self.longest and max(map(len, body["input"])) > self.longest:
            return self.refusal, {}, b'{"error": "the input is too long"}'
        if any("forbidden" in text for text in body["input"]):
            return 422, {}, b'{"error": "content policy"}'
        vectors = self._embedder.embed(body["input"])
        dimension = body.get("dimensions") or self.dimension
        vectors = np.resize(vectors, (len(vectors), dimension)) if dimension else vectors
        if path == "/v1/embeddings":
            data = [{"object": "embedding", "index": n, "embedding": v.tolist()} for n, v in enumerate(vectors)]
            return 200, {}, json.dumps({"object": "list", "data": data[::-1], "model": body["model"]}).encode()
        if path == "/api/embed":
            return 200, {}, json.dumps({"model": body["model"], "embeddings": vectors.tolist()}).encode()
        return 404, {}, b"404 page not found"


@contextmanager
def running() -> Iterator[Endpoint]:
    """An endpoint that is up."""
    endpoint = Endpoint()
    endpoint.start()
    try:
        yield endpoint
    finally:
        endpoint.stop()
