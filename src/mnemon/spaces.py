"""Vector spaces: which embedding models the database has vectors of, and what each is for at present.

A database has at most one active space. Changing the model fills a second one beside it, and then the
two change places in one transaction. Every change is journaled as the entity `space`.
"""

from collections.abc import Sequence

from mnemon.clock import Clock, moment
from mnemon.errors import ConflictError, InvalidTransition, NotFound
from mnemon.journal import Origin, entry, record
from mnemon.model import EmbeddingModel, Space, SpaceStatus
from mnemon.ports import Row, Store, Transaction, Unit
from mnemon.sql import load

_SQL = load("embeddings")
_FRESH = 1_000_000  # microseconds for which the spaces are believed to be as they were read
_VECTORS_AT_ONCE = 1000


class Spaces:
    """The spaces of one database.

    They are read at most once a second, so that another process' change is known here a second later
    at the most; one's own at once. Meanwhile nothing is lost: what was written to the old spaces alone
    is in the journal, which the new one is filled from.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: tuple[Space, ...] = ()
        self._in_use: tuple[Space, ...] = ()
        self._read_at: int | None = None

    async def all(self) -> tuple[Space, ...]:
        """Every space, the retired ones too, the oldest first."""
        read_at = self._read_at
        now = self._clock.now()
        if read_at is None or not 0 <= now - read_at < _FRESH:
            rows = await self._store.fetch(_SQL["list_spaces"].where([]), {})
            self._remember([_space(row) for row in rows], now)
        return self._known

    async def readable(self) -> tuple[Space, ...]:
        """The spaces that questions are put to: the active one first, then what is being filled."""
        await self.all()
        return self._in_use

    async def writable(self) -> tuple[Space, ...]:
        """The spaces that a new memory needs a vector in: the same ones, so that a switch misses nothing."""
        return await self.readable()

    async def active(self) -> Space | None:
        """The space that answers; None while nothing was ever embedded."""
        return next(iter(_having(await self.all(), SpaceStatus.ACTIVE)), None)

    def forget(self) -> None:
        """Read the spaces again when they are next needed, as when the journal tells of a change."""
        self._read_at = None

    async def ensure(self, provider: str, model: EmbeddingModel) -> Space:
        """The active space; if there is none yet, one of this model. Those who race for it get the same."""

        async def unit(tx: Transaction) -> list[Space]:
            spaces = await self._locked(tx)
            if not _having(spaces, SpaceStatus.ACTIVE):
                known = next((space for space in spaces if space.model == model), None)
                if known is None:
                    await self._create(tx, provider, model, SpaceStatus.ACTIVE)
                else:
                    await self._set(tx, known, SpaceStatus.ACTIVE, "activate", provider)
                spaces = await self._locked(tx)
            return spaces

        return _having(await self._changed(unit), SpaceStatus.ACTIVE)[0]

    async def begin(self, provider: str, model: EmbeddingModel) -> Space:
        """A space of this model that is being filled; again is the same, to go on where it was left.

        A retired space of the model is taken up again with the vectors that it has. The active space
        is returned as it is. `ConflictError` while a space of another model is being filled.
        """

        async def unit(tx: Transaction) -> list[Space]:
            spaces = await self._locked(tx)
            known = next((space for space in spaces if space.model == model), None)
            if known is not None and known.status is not SpaceStatus.RETIRED:
                return spaces
            for other in _having(spaces, SpaceStatus.FILLING):
                raise ConflictError(f"{other.model} is being filled; activate or retire it before {model} is begun")
            if known is None:
                await self._create(tx, provider, model, SpaceStatus.FILLING)
            else:
                await self._set(tx, known, SpaceStatus.FILLING, "fill", provider)
            return await self._locked(tx)

        return next(space for space in await self._changed(unit) if space.model == model)

    async def activate(self, space: Space) -> Space:
        """Let a filled space take the active one's place, which is retired, in one transaction."""

        async def unit(tx: Transaction) -> list[Space]:
            spaces = await self._locked(tx)
            current = _same(spaces, space)
            if current.status is SpaceStatus.ACTIVE:
                return spaces
            if current.status is not SpaceStatus.FILLING:
                raise InvalidTransition(f"the space of {current.model} is {current.status}; begin to fill it first")
            for old in _having(spaces, SpaceStatus.ACTIVE):
                await self._set(tx, old, SpaceStatus.RETIRED, "retire")
            await self._set(tx, current, SpaceStatus.ACTIVE, "activate")
            return await self._locked(tx)

        return _same(await self._changed(unit), space)

    async def retire(self, space: Space) -> Space:
        """Give up filling a space; its vectors stay until it is dropped."""

        async def unit(tx: Transaction) -> list[Space]:
            spaces = await self._locked(tx)
            current = _same(spaces, space)
            if current.status is SpaceStatus.ACTIVE:
                raise InvalidTransition(f"the space of {current.model} is in use; activate another in its place")
            if current.status is SpaceStatus.FILLING:
                await self._set(tx, current, SpaceStatus.RETIRED, "retire")
            return await self._locked(tx)

        return _same(await self._changed(unit), space)

    async def drop(self, space: Space) -> None:
        """Delete a retired space with its vectors, some at a time; interrupted, it can be called again."""
        current = _same(await self._reread(), space)
        if current.status is not SpaceStatus.RETIRED:
            raise InvalidTransition(f"the space of {current.model} is {current.status}; retire it before it is dropped")
        params = {"space_id": space.id, "limit": _VECTORS_AT_ONCE}
        while await self._store.write(lambda tx: tx.execute(_SQL["delete_vectors"], params)):
            pass

        async def unit(tx: Transaction) -> list[Space]:
            still = _same(await self._locked(tx), space)
            if still.status is not SpaceStatus.RETIRED:
                raise InvalidTransition(f"the space of {still.model} is in use again")
            await tx.execute(_SQL["drop_cached"].where([]), {"space_id": space.id})
            await tx.execute(_SQL["delete_vectors"], params)  # what a process that did not know wrote meanwhile
            await tx.execute(_SQL["delete_space"], {"id": space.id})
            await self._journal(tx, space.id, space.model, "drop")
            return await self._locked(tx)

        await self._changed(unit)

    # -- inside a transaction

    async def _locked(self, tx: Transaction) -> list[Space]:
        """The spaces as they are, and as they stay until the transaction ends."""
        rows = await tx.fetch_all(_SQL["list_spaces"].where([], self._store.dialect.row_lock), {})
        return [_space(row) for row in rows]

    async def _create(self, tx: Transaction, provider: str, model: EmbeddingModel, status: SpaceStatus) -> None:
        params = {
            "provider": provider, "model": model.name, "version": model.version, "dimension": model.dimension,
            "status": status.value, "now": self._clock.now(),
        }  # fmt: skip
        row = await tx.fetch_one(_SQL["insert_space"], params)
        if row is not None:
            await self._journal(tx, row[0], model, "create" if status is SpaceStatus.ACTIVE else "fill")

    async def _set(
        self, tx: Transaction, space: Space, status: SpaceStatus, operation: str, provider: str | None = None
    ) -> None:
        params = {"id": space.id, "status": status.value, "provider": provider or space.provider}
        await tx.execute(_SQL["set_space"], params)
        await self._journal(tx, space.id, space.model, operation)

    async def _journal(self, tx: Transaction, space_id: int, model: EmbeddingModel, operation: str) -> None:
        payload = {"model": model.name, "version": model.version, "dimension": model.dimension}
        origin = Origin(self._clock.now())
        await record(tx, [entry(origin, "space", str(space_id), operation, namespace=None, payload=payload)])

    # -- what is known here

    async def _changed(self, unit: Unit[list[Space]]) -> Sequence[Space]:
        spaces = await self._store.write(unit)
        self._remember(spaces, self._clock.now())
        return spaces

    async def _reread(self) -> tuple[Space, ...]:
        self.forget()
        return await self.all()

    def _remember(self, spaces: Sequence[Space], now: int) -> None:
        self._in_use = (*_having(spaces, SpaceStatus.ACTIVE), *_having(spaces, SpaceStatus.FILLING))
        self._known, self._read_at = tuple(spaces), now


def _having(spaces: Sequence[Space], status: SpaceStatus) -> list[Space]:
    return [space for space in spaces if space.status is status]


def _same(spaces: Sequence[Space], wanted: Space) -> Space:
    """The space as it is now; `NotFound` if it was dropped."""
    for space in spaces:
        if space.id == wanted.id:
            return space
    raise NotFound(f"there is no space of {wanted.model} any more")


def _space(row: Row) -> Space:
    number, provider, model, version, dimension, status, created_at = row
    return Space(number, provider, EmbeddingModel(model, version, dimension), SpaceStatus(status), moment(created_at))
