"""Removing what has expired from working memory, which nobody could read any more."""

from functools import partial
from typing import Any

from mnemon.ports import Store, Transaction
from mnemon.sql import load

_SQL = load("working")
_AT_ONCE = 500  # items that are looked for together

REMEMBERED = 7 * 24 * 3600 * 1_000_000
"""For how many microseconds the version of a deleted scratchpad is known."""


async def prune(store: Store, now: int) -> int:
    """Remove what has expired; how many items and scratchpads. Each buffer is a transaction of its own."""
    params = {"now": now, "later": now + REMEMBERED, "limit": _AT_ONCE}
    removed = 0
    while expired := await store.fetch(_SQL["expired_items"], params):
        for session_id, name in dict.fromkeys(expired):
            place = {"session_id": session_id, "name": name}
            removed += await store.write(partial(_prune_buffer, store, {**params, **place}))

    async def unit(tx: Transaction) -> int:
        await tx.execute(_SQL["forget_pads"], params)
        return await tx.execute(_SQL["prune_pads"], params)

    return removed + (await store.write(unit) if await store.fetch(_SQL["expired_pads"], params) else 0)


async def _prune_buffer(store: Store, params: dict[str, Any], tx: Transaction) -> int:
    held = await tx.fetch_one(_SQL["get_buffer"].where([], store.dialect.row_lock), params)
    removed = await tx.execute(_SQL["prune_items"], params)
    if held:
        await tx.execute(_SQL["move_buffer"], {**params, "position": held[1]})
    return removed
