"""Tamper evidence: seals that chain hashes over ranges of the journal, outside the write path.

Each seal's digest covers the seal before it and every column of its rows, so that an edited,
removed, inserted or reordered row breaks the chain. With a key the digests are HMACs, which
nobody without the key can make again. Whoever can rewrite the whole database can still cut the
chain's end off; keep `Verification.head` elsewhere and pass it as `anchor` to notice that too.
"""

import hashlib
import hmac
from collections.abc import Iterator, Sequence

import orjson

from mnemon.clock import Clock
from mnemon.model import Flaw, Verification
from mnemon.ports import Row, Store
from mnemon.sql import load

_SQL = load("journal")
_ROWS_PER_SEAL = 1000
_SEALS_AT_ONCE = 200
_GENESIS = "0" * 64


class Seals:
    """Makes and checks the seals."""

    def __init__(self, store: Store, clock: Clock, key: str | None) -> None:
        self._store = store
        self._clock = clock
        self._key = key.encode() if key else None

    async def seal(self) -> int:
        """Seal everything that is safe to tail; how many entries were sealed."""
        total = 0
        while (sealed := await self._seal_range()) is not None:
            total += sealed
        return total

    async def verify(self, anchor: str | None = None) -> Verification:
        """Compare the journal with its seals; `anchor` is the head of an earlier verification."""
        flaws = await self._before_the_first()
        sealed, last, digest, after = 0, 0, _GENESIS, 0
        anchored = anchor is None
        while seals := await self._store.fetch(_SQL["seals_after"], {"after": after, "limit": _SEALS_AT_ONCE}):
            for seal in seals:
                flaws.extend(await self._check(seal, last, digest))
                last, after, entries, digest, _ = seal
                sealed += entries
                anchored = anchored or digest == anchor
        if not anchored:
            flaws.append(Flaw(0, last, "the anchor is not in the chain: its end was cut off or it was made anew"))
        unsealed = (await self._store.fetch(_SQL["count_after"], {"after": last}))[0][0]
        return Verification(sealed, unsealed, digest if sealed else None, tuple(flaws))

    async def _seal_range(self) -> int | None:
        """Seal the next range; how many entries, 0 if another was quicker, None if there are no more."""
        previous = await self._store.fetch(_SQL["last_seal"], {})
        last, digest = (previous[0][0], previous[0][3]) if previous else (0, _GENESIS)
        horizon = (await self._store.fetch(self._store.dialect.horizon, {}))[0][0]
        params = {"after": last, "horizon": horizon, "limit": _ROWS_PER_SEAL}
        rows = await self._store.fetch(_SQL["read"].where([]), params)
        if not rows:
            return None
        seal = {
            "first": last + 1,
            "last": rows[-1][0],
            "entries": len(rows),
            "digest": self._digest(digest, rows),
            "keyed": self._key is not None,
            "now": self._clock.now(),
        }

        return await self._store.write(lambda tx: tx.execute(_SQL["insert_seal"], seal)) and len(rows)

    async def _before_the_first(self) -> list[Flaw]:
        """Positions count from 1, so that what stands before was never sealed nor written by us."""
        rows = await self._store.fetch(_SQL["entries_between"], {"first": -(2**63), "last": 0})
        return [Flaw(rows[0][0], 0, f"{len(rows)} entries were inserted")] if rows else []

    async def _check(self, seal: Row, previous: int, digest: str) -> Sequence[Flaw]:
        last, first, entries, sealed_digest, keyed = seal
        rows = await self._store.fetch(_SQL["entries_between"], {"first": first, "last": last})
        return [Flaw(first, last, reason) for reason in self._reasons(
            previous + 1 == first, len(rows) - entries, bool(keyed), self._digest(digest, rows) == sealed_digest
        )]  # fmt: skip

    def _reasons(self, continues: bool, surplus: int, keyed: bool, same: bool) -> Iterator[str]:
        if not continues:
            yield "a seal before this one is missing"
        elif keyed != (self._key is not None):
            yield "sealed with another key; set seal_key as it was then"
        elif surplus:
            yield f"{abs(surplus)} entries were {'inserted' if surplus > 0 else 'removed'}"
        elif not same:
            yield "an entry, or the seal itself, was edited or moved"

    def _digest(self, previous: str, rows: Sequence[Row]) -> str:
        hashed = hmac.new(self._key, digestmod=hashlib.sha256) if self._key else hashlib.sha256()
        hashed.update(previous.encode())
        hashed.update(orjson.dumps(rows))
        return hashed.hexdigest()
