"""Data keys: one for each scope of namespaces at a time, kept in the database wrapped by a master key.

Rotating a data key changes what new values are sealed by; those before stay readable, as their key stays, retired.
Rotating a master key wraps the data keys anew and touches no value. Both while everything goes on. Every change is
journaled as the entity `data_key`.
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import orjson

from mnemon.clock import Clock
from mnemon.encryption.envelope import KEY_BYTES, DataKey
from mnemon.errors import KeyUnavailable
from mnemon.journal import Origin, entry, record
from mnemon.ports import KeyProvider, Params, Raced, Row, Runner, Store, Transaction, Wrapped
from mnemon.sql import Query, among, chunks, load

_SQL = load("encryption")
_AT_ONCE = 100
_LOWEST = ""

Fetch: TypeAlias = Callable[[Query, Params], Awaitable[list[Row]]]
"""How rows are read: `Store.fetch`, or `Transaction.fetch_all` inside a transaction."""


class DataKeys:
    """The data keys of one database, as far as they were needed here; unwrapped, they are only in memory."""

    def __init__(self, store: Store, clock: Clock, provider: KeyProvider, runner: Runner) -> None:
        self.fetch: Fetch = store.fetch
        self._store = store
        self._clock = clock
        self._provider = provider
        self._runner = runner
        self._known: dict[str, DataKey] = {}
        self._prepared: set[str] = set()

    @property
    def master_key(self) -> str:
        """The name of the master key that wraps now."""
        return self._provider.current

    async def scope_of(self, key_id: str) -> str | None:
        """Where a key seals; None if there is no such key."""
        rows = await self._store.fetch(_SQL["scope_of_key"], {"id": key_id})
        return rows[0][0] if rows else None

    async def prepare(self, scope: str) -> None:
        """Have the scope's key at hand, made if there is none, so that no transaction waits for the provider."""
        if scope in self._prepared:
            return
        rows = await self._store.fetch(_SQL["current_key"], {"namespace": scope})
        if rows:
            await self._runner.aside(lambda: self._unwrap(rows[0]))
        else:
            made = await self._runner.aside(lambda: self._make(scope))
            await self._store.write(lambda tx: self._insert(tx, made))
        self._prepared.add(scope)

    async def at_hand(self, scope: str) -> DataKey:
        """The key that seals what is written in the scope now, for what lies outside the database."""
        await self.prepare(scope)
        rows = await self._store.fetch(_SQL["current_key"], {"namespace": scope})
        return await self._runner.aside(lambda: self._unwrap(rows[0]))

    async def current(self, tx: Transaction, scope: str) -> DataKey:
        """The key that seals what this transaction writes in the scope; made in it if there is none."""
        row = await tx.fetch_one(_SQL["current_key"], {"namespace": scope})
        if row is not None:
            return self._unwrap(row)
        made = self._make(scope)
        if not await self._insert(tx, made):
            raise Raced  # another was quicker
        return self._unwrap(made)

    async def find(self, fetch: Fetch, ids: Iterable[str]) -> dict[str, DataKey]:
        """The keys of these ids, retired or not; `KeyUnavailable` if there is none of an id."""
        wanted = set(ids)
        for some in chunks(sorted(wanted - self._known.keys())):
            there = among("id", some, "id")
            rows = await fetch(_SQL["get_keys"].where([there]), there.params)
            await (self._unwrap_aside(rows) if fetch == self.fetch else self._unwrap_all(rows))
        missing = wanted - self._known.keys()
        if missing:
            raise KeyUnavailable(f"the database has no data key {min(missing)!r}: what it sealed cannot be read")
        return {key_id: self._known[key_id] for key_id in wanted}

    async def rotate(self, scope: str, actor: str | None = None) -> str:
        """Give the scope a new key, by which everything is sealed from now on, in all processes; its id."""
        made = await self._runner.aside(lambda: self._make(scope))

        async def unit(tx: Transaction) -> None:
            before = await tx.fetch_one(_SQL["current_key"], {"namespace": scope})
            if before is not None:
                await tx.execute(_SQL["retire_key"], {"namespace": scope, "now": self._clock.now()})
                await self._journal(tx, before, "retire", actor)
            if not await self._insert(tx, made, actor):
                raise Raced

        await self._store.write(unit)
        return made[0]

    async def rewrap(self, actor: str | None = None) -> int:
        """Wrap every data key by the current master key that is not; how many. Interrupted, it can be called again."""
        changed, after = 0, _LOWEST
        while rows := await self._store.fetch(_SQL["list_keys"], {"after": after, "limit": _AT_ONCE}):
            after = rows[-1][0]
            for row in rows:
                if row[3] != self._provider.current:
                    changed += await self._rewrap(row, actor)
        return changed

    async def _rewrap(self, row: Row, actor: str | None) -> int:
        key_id, scope, _, before = row
        about = _about(key_id, scope)
        wrapped = await self._runner.aside(lambda: self._provider.wrap(self._unwrap(row).secret, about))
        anew = (key_id, scope, wrapped.body, wrapped.master_key)

        async def unit(tx: Transaction) -> int:
            done = await tx.execute(_SQL["rewrap_key"], {**_params(anew), "before": before})
            if done:
                await self._journal(tx, anew, "rewrap", actor)
            return done

        return await self._store.write(unit)

    def _make(self, scope: str) -> Row:
        """A new key as a row."""
        key = DataKey(self._clock.new_id(), os.urandom(KEY_BYTES))
        wrapped = self._provider.wrap(key.secret, _about(key.id, scope))
        self._known[key.id] = key
        return (key.id, scope, wrapped.body, wrapped.master_key)

    async def _insert(self, tx: Transaction, row: Row, actor: str | None = None) -> int:
        inserted = await tx.execute(_SQL["insert_key"], {**_params(row), "now": self._clock.now()})
        if inserted:
            await self._journal(tx, row, "create", actor)
        return inserted

    async def _journal(self, tx: Transaction, row: Row, operation: str, actor: str | None) -> None:
        key_id, scope, _, master_key = row
        origin = Origin(self._clock.now(), actor)
        payload = {"master_key": master_key}
        await record(tx, [entry(origin, "data_key", key_id, operation, namespace=scope, payload=payload)])

    async def _unwrap_aside(self, rows: list[Row]) -> None:
        """Outside of a transaction there is time to ask a provider that is slow."""
        if any(row[0] not in self._known for row in rows):
            await self._runner.aside(lambda: [self._unwrap(row) for row in rows])

    async def _unwrap_all(self, rows: list[Row]) -> None:
        for row in rows:
            self._unwrap(row)

    def _unwrap(self, row: Row) -> DataKey:
        key_id, scope, wrapped, master_key = row
        known = self._known.get(key_id)
        if known is None:
            secret = self._provider.unwrap(Wrapped(master_key, bytes(wrapped)), _about(key_id, scope))
            known = self._known.setdefault(key_id, DataKey(key_id, secret))
        return known


def _about(key_id: str, scope: str) -> bytes:
    """What a wrapped key is bound to: it cannot be passed off as another's."""
    return orjson.dumps(["mnemon data key", 1, key_id, scope])


def _params(row: Row) -> dict[str, object]:
    return dict(zip(("id", "namespace", "wrapped", "master_key"), row, strict=True))
