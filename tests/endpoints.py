"""HTTP endpoints on this machine that answer as they are told, and fail as real ones do: late, broken off, wrong."""

import json
import socket
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.servers.processes import free_ports

Response = tuple[int, dict[str, str], bytes]


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


class ScriptedEndpoint(ABC):
    """A server at a port of its own, which can be stopped and started again there.

    `requests` are the bodies that it got, `headers` those of the last one.
    """

    def __init__(self) -> None:
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.requests: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.answers: list[Response] = []
        """What it answers to the next requests, instead of what it would."""
        self.stall = 0.0
        self.stalls = -1  # how many requests it stalls; all if negative
        self.drip = 0.0  # seconds between any two bytes of an answer
        self.breaks = 0
        self._server: _Server | None = None

    @abstractmethod
    def respond(self, path: str, body: dict[str, Any]) -> Response:
        """What it answers when all is well."""

    def start(self) -> None:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                with suppress(OSError):  # whoever asked may have gone away
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
        """Answer so to the next requests; bytes as they are, anything else as JSON."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers += [(status, named, body if isinstance(body, bytes) else json.dumps(body).encode())] * times

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["content-length"])))
        self.requests.append(body)
        self.headers = {name.lower(): value for name, value in request.headers.items()}
        if self.stalls:
            self.stalls -= 1
            time.sleep(self.stall)
        if self.breaks:
            self.breaks -= 1
            request.close_connection = True
            return
        status, headers, answer = self.answers.pop(0) if self.answers else self.respond(request.path, body)
        request.send_response(status)
        for name, value in {"content-length": str(len(answer)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        self._write(request, answer)

    def _write(self, request: BaseHTTPRequestHandler, answer: bytes) -> None:
        if not self.drip:
            request.wfile.write(answer)
            return
        for byte in answer:
            request.wfile.write(bytes([byte]))
            request.wfile.flush()
            time.sleep(self.drip)
