"""What vector stores outside the database hold of spaces that are no longer in use: followed for a while, then removed.

The consumer of such a store and space stays until the store is rid of what it was fed with. So what is purged goes
from there too, and a store that was down when the space was retired, or dropped, removes it when it is back.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from mnemon.clock import Clock, moment
from mnemon.indexing.duties import Duty
from mnemon.indexing.stores import Outside, StoreIndex
from mnemon.model import EmbeddingModel, Space, SpaceStatus
from mnemon.ports import Runner, Store
from mnemon.spaces import Spaces
from mnemon.sql import load
from mnemon.values import decode

_SQL = load("indexing")
_GRACE = 10_000_000  # microseconds after which nobody asks a retired space any more, and no answer is under way


class _Retired(NamedTuple):
    space: Space
    at: int


class Leftovers:
    """Looks after what stores hold of retired spaces, and of those that were dropped since."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runner: Runner,
        spaces: Spaces,
        stores: Sequence[Outside],
        index: Callable[[Outside, Space], StoreIndex],
    ) -> None:
        self._store = store
        self._clock = clock
        self._runner = runner
        self._spaces = spaces
        self._stores = stores
        self._index = index

    async def duties(self) -> list[Duty]:
        """For each that is left: to feed it, or to remove it once it is time."""
        found = await self._found() if self._stores else []
        return [self._duty(self._index(outside, retired.space), retired.at) for outside, retired in found]

    def _duty(self, index: StoreIndex, retired_at: int) -> Duty:
        if self._clock.now() - retired_at < _GRACE:
            return index.duty
        return Duty(index.consumer, partial(self._remove, index), index.outside.name, is_due=True)

    async def _found(self) -> list[tuple[Outside, _Retired]]:
        """The stores that have been fed with a space which is not in use."""
        fed = {row[0] for row in await self._store.fetch(_SQL["fed_stores"], {})}
        used = await self._spaces.readable()
        fed -= {outside.consumer_name(space) for outside in self._stores for space in used}
        retired = await self._retired() if fed else []
        return [
            (outside, each) for each in retired for outside in self._stores if outside.consumer_name(each.space) in fed
        ]

    async def _retired(self) -> list[_Retired]:
        """Every space that was ever retired, and when it last was; the journal knows those too that were dropped."""
        found: dict[int, _Retired] = {}
        for space_id, at, payload in await self._store.fetch(_SQL["retirements"], {}):
            told = decode(payload)
            model = EmbeddingModel(told["model"], told["version"], told["dimension"])
            found[int(space_id)] = _Retired(Space(int(space_id), "", model, SpaceStatus.RETIRED, moment(at)), at)
        return list(found.values())

    async def _remove(self, index: StoreIndex) -> int:
        """Remove what a store holds, unless another process is at it or the space is in use again."""
        if any(space.id == index.space.id for space in await self._used()):
            return 0
        return await index.consumer.end(lambda: self._drop(index))

    async def _drop(self, index: StoreIndex) -> None:
        """A space that was begun since may be of the same model, and so be kept in the same place.

        Then that one is fed from the beginning, and is rid of whatever it should not hold. If it was begun in
        this very moment, it is fed once more.
        """
        if not await self._sharing(index):
            await self._runner.aside(lambda: index.outside.of(index.space).drop())
            for other in await self._sharing(index):
                await other.consumer.rewind()

    async def _sharing(self, index: StoreIndex) -> list[StoreIndex]:
        used = [space for space in await self._used() if space.model == index.space.model]
        return [self._index(index.outside, space) for space in used]

    async def _used(self) -> tuple[Space, ...]:
        self._spaces.forget()
        return await self._spaces.readable()
