"""The content stores that the suites run over, each empty."""

import http.client
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.servers import Server

KINDS = ["memory", "files", pytest.param("objects", marks=pytest.mark.servers)]


def content_url(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Where an empty store of a kind is."""
    if kind == "memory":
        return "memory://"
    if kind == "files":
        return f"file://{folder / 'kept'}"
    patch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    patch.setenv("AWS_ACCESS_KEY_ID", "tests")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
    return bucket_of(request.getfixturevalue("object_server"))


def bucket_of(server: Server) -> str:
    """The URL of a new bucket."""
    name = f"bucket-{uuid4().hex}"
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    try:
        connection.request("PUT", f"/{name}")
        assert connection.getresponse().status == 200
    finally:
        connection.close()
    return f"s3://{name}/some/prefix?endpoint={server.url}&region=us-east-1"
