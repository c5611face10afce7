"""Leaving nothing of episodes: not in the database, not in archives, not in the bytes of the files."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from mnemon import journal
from mnemon.access import under
from mnemon.episodes.rows import SQL, entry_of
from mnemon.errors import StoreError, StoreUnavailable
from mnemon.journal import Origin
from mnemon.ports import Store, Transaction

_BATCH = 100

By = Callable[[], Origin]
"""Who acts, and when: now."""


class Archives(Protocol):
    """What was taken out of the database, and lies elsewhere."""

    async def give_up_episodes(self, tx: Transaction, prefix: str, origin: Origin) -> list[int]:
        """Let nobody bring back what some archives have of the episodes at or below a prefix; how many each had."""
        ...

    async def remove_given_up(self, prefix: str) -> None:
        """Remove the contents of archives that were given up, so that no byte is left."""
        ...


async def erase(store: Store, archives: Archives, prefix: str, by: By) -> int:
    """Erase every episode at or below a prefix; how many. Whatever comes between, calling it again goes on."""
    erased, is_done, left = 0, False, None
    try:
        while not is_done:
            found, is_done = await store.write(partial(_erase_some, archives, prefix, by()))
            erased += found
        try:
            await archives.remove_given_up(prefix)
        except StoreError as error:
            left = error
    finally:
        await _scrub(store, by, is_due=erased > 0)
    if left is not None:
        raise StoreUnavailable(
            f"{erased} episodes erased from the database, but episodes are left in an archive, from which nobody can "
            f"restore them; erase again, or the next retention run removes it: {left}"
        ) from left
    return erased


async def _erase_some(archives: Archives, prefix: str, origin: Origin, tx: Transaction) -> tuple[int, bool]:
    """Erase some episodes and give some archives up; how many episodes that were, and whether nothing was left.

    Only if both are empty at once, nothing has moved from one to the other meanwhile.
    """
    below = under("namespace", [prefix], "within")
    rows = await tx.fetch_all(SQL["erase_episodes"].where([below]), {**below.params, "limit": _BATCH})
    given_up = await archives.give_up_episodes(tx, prefix, origin)
    entries = [
        entry_of(origin._replace(session_id=session_id), "purge", namespace, number)
        for number, namespace, session_id in rows
    ]
    if entries:
        await journal.record(tx, entries)
    return len(rows) + sum(given_up), not rows and not given_up


async def _scrub(store: Store, by: By, *, is_due: bool) -> None:
    """Leave nothing in the files of episodes that were removed now, or earlier by whoever did not come this far."""
    last = await store.fetch(SQL["last_removal"], {})
    if not is_due and (not last or last[0][0] == "scrub"):
        return
    if await store.scrub(("episodes",)):
        told = journal.entry(by(), "episode", "files", "scrub", namespace=None)
        await store.write(lambda tx: journal.record(tx, [told]))
