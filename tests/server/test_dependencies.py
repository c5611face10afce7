"""A FastAPI application with one memory: opened and closed with it, given to routes, bound to who asks."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, WebSocket
from fastapi.requests import HTTPConnection
from fastapi.testclient import TestClient
from pydantic import ValidationError

from mnemon import MnemonError, Principal, Settings, errors, sync
from mnemon.server.dependencies import (
    Identify,
    Memory,
    MnemonSettings,
    WholeMemory,
    handle_errors,
    lifespan,
    opened,
    status_of,
)
from tests.servers.processes import free_ports

PLAIN: dict[str, Any] = {"embedder": "none", "background": False}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def application(identify: Identify | None = None, **settings: Any) -> FastAPI:
    app = FastAPI(lifespan=lifespan(MnemonSettings(**{**PLAIN, **settings}), identify=identify))
    handle_errors(app)

    @app.post("/notes/{user}/{key}")
    async def note(user: str, key: str, text: str, memory: Memory) -> int:
        return (await memory.remember(text, namespace=f"user:{user}", key=key)).version

    @app.get("/notes/{user}")
    async def notes(user: str, memory: Memory) -> list[str]:
        return [each.value for each in await memory.memories.search_memories(f"user:{user}")]

    @app.get("/sessions/{session_id}/recent")
    async def recent(session_id: str, memory: Memory) -> str:
        return (await memory.fetch_recent_context(session_id)).text

    @app.get("/count")
    async def count(memory: WholeMemory) -> int:
        return len(await memory.memories.search_memories(""))

    @app.websocket("/position")
    async def position(socket: WebSocket, memory: Memory) -> None:
        await socket.accept()
        await socket.send_json(await memory.position())
        await socket.close()

    return app


@asynccontextmanager
async def client_of(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application while it runs, in this process."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        yield client


def by_header(connection: HTTPConnection) -> Principal | None:
    name = connection.headers.get("x-user")
    return Principal(name, {f"user:{name}": "write"}) if name else None


async def test_a_route_uses_the_one_memory(folder: Path) -> None:
    app = application(url="sqlite:///app.db")
    async with client_of(app) as client:
        for _ in range(2):
            assert (await client.post("/notes/alice/city?text=Oslo")).json() == 1
        assert (await client.get("/notes/alice")).json() == ["Oslo"]
        assert (await client.get("/count")).json() == 1
    assert not hasattr(app.state, "mnemon")
    with sync.open("sqlite:///app.db", create=False) as memory:
        assert memory.memories.get_memory("user:alice", "city") is not None


async def test_many_requests_at_once_lose_nothing() -> None:
    async with client_of(application(url="sqlite:///app.db")) as client:
        texts = [f"note {number}" for number in range(40)]
        answers = await asyncio.gather(*(client.post(f"/notes/alice/{text}?text={text}") for text in texts))
        assert [answer.status_code for answer in answers] == [200] * 40
        assert sorted((await client.get("/notes/alice")).json()) == sorted(texts)


async def by_token(connection: HTTPConnection) -> Principal | None:
    await asyncio.sleep(0)
    return by_header(connection)


@pytest.mark.parametrize("identify", [by_header, by_token])
async def test_everybody_sees_their_own(identify: Identify) -> None:
    async with client_of(application(identify, url="sqlite://")) as client:
        alice, bob = {"x-user": "alice"}, {"x-user": "bob"}
        assert (await client.post("/notes/alice/city?text=Oslo", headers=alice)).status_code == 200
        assert (await client.get("/notes/alice", headers=alice)).json() == ["Oslo"]
        denied = await client.get("/notes/alice", headers=bob)
        assert (denied.status_code, denied.json()["error"]) == (403, "AccessDenied")
        unknown = await client.get("/notes/alice")
        assert (unknown.status_code, unknown.headers["www-authenticate"]) == (401, "Bearer")
        assert (await client.get("/count")).json() == 1, "which is not asked for a principal"


async def test_errors_of_the_library_are_answered() -> None:
    async with client_of(application(url="sqlite://", max_value_bytes=100)) as client:
        missing = await client.get("/sessions/nobody/recent")
        assert (missing.status_code, missing.json()) == (
            404, {"error": "SessionNotFound", "detail": "no session 'nobody'; create it with create_session"},
        )  # fmt: skip
        assert (await client.post(f"/notes/alice/city?text={'x' * 200}")).status_code == 413
        assert (await client.post("/notes/a:%20b/city?text=x")).status_code == 400


async def test_what_is_wrong_here_is_not_told_to_everybody(caplog: pytest.LogCaptureFixture) -> None:
    app = application(url="sqlite://")

    @app.get("/broken")
    async def broken() -> None:
        raise errors.StoreUnavailable("postgresql://db.internal refused alice")

    async with client_of(app) as client:
        answer = await client.get("/broken")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json() == {"error": "StoreUnavailable", "detail": "the memory cannot be used now"}
    assert "db.internal" in caplog.text


def test_every_error_has_a_status() -> None:
    found = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, MnemonError)]
    assert len(found) > 30
    for each in found:
        assert 400 <= status_of(each("x")) < 600
    assert status_of(errors.ModelMismatch("x")) == 500
    assert status_of(errors.EmbedderUnavailable("x")) == 503
    assert status_of(errors.MemoryExists("x")) == 409


async def test_without_a_lifespan_it_says_what_to_do() -> None:
    app = application()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        with pytest.raises(RuntimeError, match="lifespan=lifespan"):
            await client.get("/count")


async def test_a_lifespan_may_open_more_than_the_memory() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def both(app: FastAPI) -> AsyncIterator[None]:
        async with opened(app, url="sqlite://", **PLAIN):
            log.append("opened")
            yield
        log.append("closed")

    app = FastAPI(lifespan=both)

    @app.get("/position")
    async def position(memory: Memory) -> int:
        return await memory.position()

    async with client_of(app) as client:
        assert (await client.get("/position")).json() == 0
    assert log == ["opened", "closed"]


def test_a_websocket_may_ask_for_it_too() -> None:
    with TestClient(application(url="sqlite://")) as client, client.websocket_connect("/position") as socket:
        assert socket.receive_json() == 0


@pytest.fixture
def served() -> Iterator[str]:
    """The application on a real server."""
    (port,) = free_ports(1)
    config = uvicorn.Config(application(url="sqlite:///app.db"), port=port, log_level="warning", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while thread.is_alive() and not server.started:
        time.sleep(0.01)
    assert server.started
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


def test_it_runs_on_a_real_server(served: str) -> None:
    with httpx.Client(base_url=served, trust_env=False) as client:
        assert client.post("/notes/alice/city?text=Oslo").json() == 1
        assert client.get("/count").json() == 1


# --------------------------------------------------------------------------------------------------------- settings


def test_there_is_no_second_list_of_settings() -> None:
    assert list(MnemonSettings.model_fields) == [field.name for field in fields(Settings)]
    assert dict(MnemonSettings()) == {field.name: getattr(Settings(), field.name) for field in fields(Settings)}


def test_where_settings_come_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "mnemon.toml").write_text(
        'pool_size = 1\nbusy_timeout = 1\nurl = "sqlite:///toml.db"\nchunk_tokens = 16\n'
    )
    (folder / ".env").write_text("MNEMON_POOL_SIZE=2\nMNEMON_BUSY_TIMEOUT=2\nMNEMON_URL=sqlite:///env.db\nOTHER=x\n")
    monkeypatch.setenv("MNEMON_POOL_SIZE", "3")
    monkeypatch.setenv("MNEMON_BUSY_TIMEOUT", "3")
    found = MnemonSettings(pool_size=4)
    assert (found.pool_size, found.busy_timeout, found.url, found.chunk_tokens) == (4, 3.0, "sqlite:///env.db", 16)


def test_what_cannot_be_used_is_refused_and_no_secret_is_told(folder: Path) -> None:
    with pytest.raises(ValidationError) as refused:
        MnemonSettings(redis_url="hunter2@host", pool_size=0)
    assert "pool_size" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(MnemonSettings(redis_url="redis://:hunter2@host/0"))
    (folder / ".env").write_text("MNEMON_POOL=2\n")
    with pytest.raises(ValidationError, match="mnemon_pool"):
        MnemonSettings()


def test_an_application_may_have_settings_of_its_own() -> None:
    class Mine(MnemonSettings):
        greeting: str = "hello"

    async def run() -> str:
        async with opened(FastAPI(), Mine(url="sqlite://", **PLAIN)):
            return Mine(greeting="hi").greeting

    assert asyncio.run(run()) == "hi"


def test_nothing_else_loads_the_framework() -> None:
    using = "import sys, mnemon.sync, mnemon.cli; mnemon.sync.open('sqlite://').close()"
    program = f"{using}; print('fastapi' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
