"""The indexes as an operator sees them: how they are, whether they are in step, and changing the model."""

from collections.abc import Callable, Sequence

from mnemon.access import Access
from mnemon.indexing.upkeep import Bench, Upkeep
from mnemon.model import Drift, Progress, Space
from mnemon.namespaces import EVERYTHING
from mnemon.spaces import Spaces


class IndexService:
    """Looks after everything that finds memories. All but waiting needs an admin grant on everything."""

    def __init__(self, bench: Bench, access: Access) -> None:
        self._access = access
        self._stores = [outside.name for outside in bench.stores]
        self._spaces = Spaces(bench.store, bench.clock)
        self._upkeep = Upkeep(bench)

    async def settled(self, timeout: float | None = None) -> None:
        """Return when everything that was written before this call can be found."""
        await self._upkeep.settled(timeout)

    async def spaces(self) -> Sequence[Space]:
        """Every vector space of the database, the oldest first."""
        self._access.require(EVERYTHING, "admin")
        self._spaces.forget()  # who looks after them sees them as they are, not as they were a moment ago
        return await self._spaces.all()

    async def verify(self, store: str | None = None, *, mend: bool = False) -> dict[str, Drift]:
        """How each vector store outside the database, or one of them, differs from it; `mend` puts that right."""
        self._access.require(EVERYTHING, "admin")
        return {name: await self._upkeep.verify(name, mend=mend) for name in self._named(store)}

    async def rebuild(
        self, store: str | None = None, *, progress: Callable[[Progress], object] | None = None
    ) -> dict[str, Drift]:
        """Give each vector store, or one of them, everything again; how it differed from the database."""
        self._access.require(EVERYTHING, "admin")
        return {name: await self._upkeep.rebuild(name, progress) for name in self._named(store)}

    async def reembed(self, to: str, *, progress: Callable[[Progress], object] | None = None) -> Space:
        """Change to another embedder while everything goes on.

        A second vector space is filled, beside the one in use; both are read meanwhile. Then it takes that
        one's place. Interrupted, it goes on where it was when it is called again.
        """
        self._access.require(EVERYTHING, "admin")
        return await self._upkeep.reembed(to, progress)

    async def drop_space(self, space: Space) -> None:
        """Delete a retired space with its vectors."""
        self._access.require(EVERYTHING, "admin")
        await self._upkeep.drop_space(space)

    def _named(self, store: str | None) -> list[str]:
        return self._stores if store is None else [store]
