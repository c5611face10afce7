"""The queue of reviews over REST: what consolidation leaves to people, and their decisions.

app.include_router(reviews.router, prefix="/reviews")
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from mnemon.model import Page, Review
from mnemon.server.dependencies import Memory

try:
    from fastapi import APIRouter, Query
except ModuleNotFoundError:
    raise ImportError("mnemon.server needs FastAPI: pip install 'mnemon[server]'") from None

router = APIRouter(tags=["reviews"])
"""Lists and decides reviews, as the caller may: put it under a prefix of your own."""


class Reviews(BaseModel):
    """A page of reviews; `next_cursor` asks for the next one."""

    items: list[Review]
    next_cursor: str | None

    @classmethod
    def of(cls, page: Page[Review]) -> "Reviews":
        return cls(items=list(page.items), next_cursor=page.next_cursor)


class Decision(BaseModel):
    """What somebody decided: the `first` is right, the `second`, `both` stay, or `merge` them into `value`."""

    model_config = ConfigDict(extra="forbid")

    choice: str
    value: Any = None


@router.get("")
async def list_reviews(
    memory: Memory,
    status: Annotated[str, Query(description="open, applied, rejected, outdated, or all")] = "open",
    namespace: Annotated[str, Query(description="at or below this one; without it, everything")] = "",
    limit: int = 50,
    cursor: str | None = None,
) -> Reviews:
    """What people are to decide or have decided, a page at a time."""
    wanted = None if status == "all" else status
    found = await memory.consolidation.reviews(wanted, namespace_prefix=namespace, limit=limit, cursor=cursor)
    return Reviews.of(found)


@router.post("/{review_id}/decision")
async def decide_review(review_id: int, decision: Decision, memory: Memory) -> Review:
    """Decide a review; it is `outdated`, and nothing has happened, if one of the memories has changed since."""
    return await memory.consolidation.decide(review_id, decision.choice, decision.value)
