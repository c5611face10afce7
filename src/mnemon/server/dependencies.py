"""One memory for a FastAPI application, and the parameters with which routes ask for it.

app = FastAPI(lifespan=lifespan())

@app.get("/recall")
async def recall(question: str, memory: Memory) -> list[Hit]:
    return await memory.recall(question, namespaces="user:alice")
"""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, fields
from typing import Annotated, Any, TypeAlias

from pydantic_settings import BaseSettings

from mnemon.assembly import open_memory
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Principal
from mnemon.server.errors import answer_error, handle_errors, status_of
from mnemon.server.settings import MnemonSettings
from mnemon.settings import Settings

try:
    from fastapi import Depends, FastAPI, HTTPException
    from fastapi.requests import HTTPConnection
except ModuleNotFoundError:
    raise ImportError("mnemon.server needs FastAPI: pip install 'mnemon[server]'") from None

__all__ = [
    "Identify",
    "Memory",
    "MnemonSettings",
    "WholeMemory",
    "answer_error",
    "handle_errors",
    "lifespan",
    "opened",
    "status_of",
]

Identify: TypeAlias = Callable[[HTTPConnection], Principal | Awaitable[Principal | None] | None]
"""Says who sends a request; None if nobody that is known."""


@dataclass(frozen=True, slots=True)
class _Open:
    """What an application holds while it runs."""

    memory: HybridMemoryService
    identify: Identify | None


def lifespan(
    settings: BaseSettings | None = None, *, identify: Identify | None = None, **given: Any
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """The lifespan of an application that has nothing else to open; see `opened`."""
    return lambda app: opened(app, settings, identify=identify, **given)


@asynccontextmanager
async def opened(
    app: FastAPI, settings: BaseSettings | None = None, *, identify: Identify | None = None, **given: Any
) -> AsyncGenerator[None]:
    """Open one memory for the application, and close it at the end; for a lifespan that does more than that.

    Settings are `MnemonSettings`, read now if there are none; `given` is for `mnemon.open` and comes before them. With
    `identify`, routes get the memory as the principal of their request may see and change it.
    """
    known = {field.name for field in fields(Settings)}
    chosen = {name: value for name, value in (settings or MnemonSettings()) if name in known}
    async with open_memory(**{**chosen, **given}) as memory:
        app.state.mnemon = _Open(memory, identify)
        try:
            yield
        finally:
            del app.state.mnemon


def _open(connection: HTTPConnection) -> _Open:
    found = getattr(connection.app.state, "mnemon", None)
    if not isinstance(found, _Open):
        raise RuntimeError("no memory is open: make the application with FastAPI(lifespan=lifespan(...))")
    return found


async def whole_memory(connection: HTTPConnection) -> HybridMemoryService:
    """The memory, all of it, whoever asks."""
    return _open(connection).memory


async def memory_of_caller(connection: HTTPConnection) -> HybridMemoryService:
    """The memory as the request's principal may use it; all of it, if nobody was told how to find that out."""
    found = _open(connection)
    if found.identify is None:
        return found.memory
    answer = found.identify(connection)
    principal = await answer if inspect.isawaitable(answer) else answer
    if principal is None:
        raise HTTPException(401, "who are you?", {"WWW-Authenticate": "Bearer"})
    return found.memory.as_principal(principal)


Memory = Annotated[HybridMemoryService, Depends(memory_of_caller)]
"""A parameter that is the memory as the caller may use it."""

WholeMemory = Annotated[HybridMemoryService, Depends(whole_memory)]
"""A parameter that is all of the memory: only for routes that are not open to everybody."""
