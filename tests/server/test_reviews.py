"""The queue of reviews over REST, as the caller may see and decide it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.requests import HTTPConnection

import mnemon
from mnemon import Principal
from mnemon.server import reviews
from mnemon.server.dependencies import MnemonSettings, handle_errors, lifespan


def identify(connection: HTTPConnection) -> Principal | None:
    """The caller is who they say they are, and may change what is their user's."""
    name = connection.headers.get("x-user")
    return Principal(name, {f"user:{name}": "write"}) if name else None


@asynccontextmanager
async def client_of(url: str, user: str) -> AsyncIterator[httpx.AsyncClient]:
    settings = MnemonSettings(url=url, embedder="none", background=False)
    app = FastAPI(lifespan=lifespan(settings, identify=identify))
    handle_errors(app)
    app.include_router(reviews.router, prefix="/reviews")
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {"x-user": user}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://x", headers=headers) as client,
    ):
        yield client


@pytest.fixture
async def url(tmp_path: Path) -> str:
    """A database with a review of Ann's, another of hers, and one of Bob's."""
    url = f"sqlite:///{tmp_path}/reviews.db"
    async with mnemon.open(url, embedder="none", background=False) as memory:
        for user, places in (("ann", ("Bergen", "Oslo")), ("bob", ("Rome", "Paris"))):
            for number, city in enumerate(places):
                text = f"{user.title()} {'now ' * number}lives in {city}."
                await memory.remember(text, namespace=f"user:{user}", key=f"home-{number}")
        await memory.remember("The build takes 9 minutes.", namespace="user:ann", key="build-0")
        await memory.remember("The build takes 7 minutes.", namespace="user:ann", key="build-1")
        await memory.consolidate("user", "review")
    return url


def said(review: dict[str, Any]) -> set[str]:
    return {review["first"]["value"], review["second"]["value"]}


async def test_reviews_are_listed_and_decided(url: str) -> None:
    async with client_of(url, "ann") as client:
        page = (await client.get("/reviews", params={"limit": 1})).json()
        rest = (await client.get("/reviews", params={"limit": 1, "cursor": page["next_cursor"]})).json()
        by_subject = {"Ann" if any("Ann" in each for each in said(one)) else "build": one
                      for one in [*page["items"], *rest["items"]]}  # fmt: skip
        home, build = by_subject["Ann"], by_subject["build"]
        assert said(home) == {"Ann lives in Bergen.", "Ann now lives in Oslo."}
        answer = await client.post(f"/reviews/{home['id']}/decision", json={"choice": "second"})
        merged = {"choice": "merge", "value": "The build takes 7 to 9 minutes."}
        await client.post(f"/reviews/{build['id']}/decision", json=merged)
        assert (answer.status_code, answer.json()["status"], answer.json()["decided_by"]) == (200, "applied", "ann")
        assert (await client.get("/reviews")).json() == {"items": [], "next_cursor": None}
        done = (await client.get("/reviews", params={"status": "all", "namespace": "user:ann"})).json()["items"]
        assert {one["choice"] for one in done} == {"second", "merge"}
    async with mnemon.open(url, embedder="none", background=False) as memory:
        values = {each.value for each in await memory.memories.search_memories("user:ann")}
        assert values == {"Ann now lives in Oslo.", "The build takes 7 to 9 minutes."}


async def test_another_s_reviews_are_not_to_be_seen_or_decided(url: str) -> None:
    async with client_of(url, "bob") as client:
        [mine] = (await client.get("/reviews", params={"status": "all"})).json()["items"]
        assert said(mine) == {"Bob lives in Rome.", "Bob now lives in Paris."}
        for number in {1, 2, 3} - {mine["id"]}:
            answer = await client.post(f"/reviews/{number}/decision", json={"choice": "first"})
            assert (answer.status_code, answer.json()["error"]) == (404, "ReviewNotFound")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"choice": "neither"}, 400),
        ({"choice": "merge"}, 400),
        ({"choice": "first", "value": "x"}, 400),
        ({}, 422),
        ({"choice": "first", "because": "x"}, 422),
    ],
)
async def test_a_bad_decision_changes_nothing(url: str, body: dict[str, Any], status: int) -> None:
    async with client_of(url, "bob") as client:
        [mine] = (await client.get("/reviews")).json()["items"]
        assert (await client.post(f"/reviews/{mine['id']}/decision", json=body)).status_code == status
        assert (await client.get("/reviews")).json()["items"] == [mine]
        assert (await client.get("/reviews", params={"status": "closed"})).status_code == 400
