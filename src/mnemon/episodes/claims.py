"""Working on episodes one by one: a worker claims one for a while, and what it makes counts only while that holds."""

from typing import NamedTuple

from mnemon import journal
from mnemon.clock import Clock
from mnemon.encryption.sealing import Sealing
from mnemon.episodes import covers
from mnemon.episodes.rows import SQL, EpisodeRow, entry_of
from mnemon.errors import LeaseLost
from mnemon.journal import Origin
from mnemon.model import EpisodeStatus
from mnemon.ports import Store, Transaction

MOST_ATTEMPTS = 5
"""How often an episode is begun before it is given up."""
PAUSES = (10.0, 60.0, 600.0, 3600.0)
"""For how many seconds it is left alone after it failed once, twice…"""

_CANDIDATES = 10  # of which another worker may take all but one before this one does
_LONGEST_ERROR = 500
_MICROS = 1_000_000


class Claim(NamedTuple):
    """An episode that is one worker's, until the lease runs out and another has claimed it."""

    row: EpisodeRow
    token: str

    @property
    def is_exhausted(self) -> bool:
        """It was begun often enough, and whoever did so has never come to an end."""
        return self.row.attempts > MOST_ATTEMPTS


class Claims:
    """Hands out episodes that are due, each to one worker at a time."""

    def __init__(self, store: Store, clock: Clock, sealing: Sealing | None = None) -> None:
        self._store = store
        self._clock = clock
        self._sealing = sealing or Sealing()
        self._due = SQL["due_episodes"].where(covers.readable(self._sealing))

    async def are_due(self) -> bool:
        """Whether there is an episode that nobody is at and that is to be tried now."""
        return bool(await self._store.fetch(self._due, {"now": self._clock.now(), "limit": 1}))

    async def told(self, claim: Claim) -> EpisodeRow:
        """The episode of a claim as it was told, decrypted if it is encrypted."""
        [row] = await covers.opened(self._store.fetch, [claim.row], self._sealing)
        return row

    async def take(self, lease: float) -> Claim | None:
        """The episode that has waited for longest, nobody else's for `lease` seconds; None if there is none."""
        if not await self.are_due():  # looking is no commit, which would wake everybody who follows the journal
            return None
        token = self._clock.new_id()

        async def unit(tx: Transaction) -> Claim | None:
            now = self._clock.now()
            for found in await tx.fetch_all(self._due, {"now": now, "limit": _CANDIDATES}):
                row = EpisodeRow(*found)
                until = now + int(lease * _MICROS)
                params = {"id": row.id, "claim": token, "until": until, "was": row.claimed_until}
                claimed = await tx.fetch_one(SQL["claim_episode"], params)
                if claimed is not None:
                    working = str(EpisodeStatus.WORKING)
                    return Claim(row._replace(status=working, attempts=claimed[0], claimed_until=until), token)
            return None

        return await self._store.write(unit)

    async def finish(self, tx: Transaction, claim: Claim, origin: Origin, **told: object) -> None:
        """The episode is consolidated by what the transaction writes; `LeaseLost` if it is not the worker's now."""
        params = {"id": claim.row.id, "claim": claim.token, "now": origin.now}
        if not await tx.execute(SQL["finish_episode"], params):
            raise LeaseLost(f"episode {claim.row.id} is another worker's now, or is gone; nothing was written")
        await journal.record(tx, [entry_of(origin, "consolidate", claim.row.namespace, claim.row.id, **told)])

    async def give_back(self, claim: Claim) -> None:
        """Let another worker have it at once, as if this one had not begun."""
        row = claim.row._replace(status=str(EpisodeStatus.PENDING), attempts=claim.row.attempts - 1)
        await self._put_back(claim, row._replace(claimed_until=self._clock.now()), None)

    async def fail(self, claim: Claim, error: str) -> bool | None:
        """Note why it could not be consolidated; whether it is given up rather than tried again later.

        None if it is another worker's now, or is gone: then nothing was noted.
        """
        now, attempts = self._clock.now(), min(claim.row.attempts, MOST_ATTEMPTS)
        is_over = attempts >= MOST_ATTEMPTS
        status = EpisodeStatus.FAILED if is_over else EpisodeStatus.PENDING
        pause = 0.0 if is_over else PAUSES[min(attempts, len(PAUSES)) - 1]
        row = claim.row._replace(
            status=str(status), attempts=attempts, error=error[:_LONGEST_ERROR].replace("\0", " "),
            claimed_until=now + int(pause * _MICROS),
        )  # fmt: skip
        is_ours = await self._put_back(claim, row, Origin(now, session_id=row.session_id, task_id=row.task_id))
        return is_over if is_ours else None

    async def _put_back(self, claim: Claim, row: EpisodeRow, origin: Origin | None) -> bool:
        """Write what has become of it, unless it is another worker's now, or is gone; whether it was written."""
        params = {
            "id": row.id, "claim": claim.token, "status": row.status, "until": row.claimed_until,
            "attempts": row.attempts,
        }  # fmt: skip

        async def unit(tx: Transaction) -> bool:
            error = await covers.sealed_error(tx, row, self._sealing)
            written = await tx.execute(SQL["put_back"], {**params, "error": error}) > 0
            if written and origin is not None:
                told = {"status": row.status, "attempts": row.attempts}
                await journal.record(tx, [entry_of(origin, "fail", row.namespace, row.id, **told)])
            return written

        return await self._store.write(unit)
