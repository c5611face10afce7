"""What an administrator does with keys."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import timedelta

from mnemon.access import Access
from mnemon.clock import Clock, moment, moment_or_none
from mnemon.contents import Contents
from mnemon.encryption.keys import DataKeys
from mnemon.encryption.tables import TABLES
from mnemon.errors import InvalidInput, InvalidSettings
from mnemon.journal import Origin, entry, origin_of, record
from mnemon.keys.contents import ContentResealing
from mnemon.keys.resealing import Done, Resealing
from mnemon.keys.rows import CONTENTS, PLAIN, SQL, Found, Scopes, contents_of, count, rows_of
from mnemon.memories.findable import Findable
from mnemon.model import DataKeyUse, KeyStatus, NamespaceKeys, Progress, Resealed
from mnemon.namespaces import EVERYTHING, check_prefix, covers
from mnemon.ports import Row, Runner, Store, Transaction
from mnemon.settings import Settings

GRACE = timedelta(hours=1)
"""How long somebody may be about to use a key that was retired, or a content that nothing refers to."""

_PAGE = 200


class KeyService:
    """Rotates keys, and seals what is there already, while everything goes on. All of it needs `admin`."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        access: Access,
        contents: Contents,
        runner: Runner,
        findable: Findable,
        rebuild: Callable[[str], Awaitable[int]],
    ) -> None:
        """`rebuild` makes what people see of a session's artifacts anew."""
        self._store = store
        self._clock = clock
        self._settings = settings
        self._access = access
        self._contents = contents
        self._runner = runner
        self._findable = findable
        self._sealing = findable.sealing
        self._rebuild = rebuild

    async def status(self, namespace: str = EVERYTHING) -> KeyStatus:
        """Which data keys there are at or below a namespace, how much they seal, and how much is not sealed yet.

        Every row that may be sealed is looked at.
        """
        prefix = self._within(namespace)
        keys = [key for key in await self._described() if covers(prefix, key.namespace)]
        uses = await self._uses(prefix)
        names = {key.namespace for key in keys} | set(uses.plain + uses.plain_contents)
        master = None if self._sealing.keys is None else self._sealing.keys.master_key
        told = [
            NamespaceKeys(
                name,
                tuple(
                    DataKeyUse(
                        key.id, key.namespace, key.master_key, key.created_at, key.retired_at,
                        uses.rows[key.id], uses.contents[key.id],
                    )
                    for key in keys
                    if key.namespace == name
                ),
                uses.plain[name],
                uses.plain_contents[name],
            )
            for name in sorted(names)
        ]  # fmt: skip
        return KeyStatus(master, tuple(told))

    async def rewrap(self, *, actor: str | None = None) -> int:
        """Wrap all data keys by the current master key; how many were not. No other master key is needed then."""
        self._within(EVERYTHING)
        return await self._keys().rewrap(self._origin(actor).actor)

    async def rotate(self, namespace: str = EVERYTHING, *, actor: str | None = None) -> tuple[DataKeyUse, ...]:
        """Give each namespace at or below this one that has a data key a new one; these.

        Everything is sealed by them from now on, in all processes. What is there stays under the old ones, which are
        kept for it: `reseal` seals it anew.
        """
        prefix = self._within(namespace)
        by = self._origin(actor).actor
        keys = self._keys()
        scopes = [key.namespace for key in await self._described() if key.retired_at is None]
        made = [await keys.rotate(scope, by) for scope in sorted(scopes) if covers(prefix, scope)]
        return tuple(key for key in await self._described() if key.id in made)

    async def reseal(
        self,
        namespace: str = EVERYTHING,
        *,
        grace: timedelta | None = None,
        progress: Callable[[Progress], object] | None = None,
        actor: str | None = None,
    ) -> Resealed:
        """Seal everything at or below the namespace by current keys, also what was written before it was encrypted.

        It is done in small steps, while everybody goes on: if it is interrupted, call it again. Old contents are
        removed, unless they are younger than `grace`, which is an hour.
        """
        prefix = self._within(namespace)
        age = _checked(grace).total_seconds()
        origin = self._origin(actor)
        keys = self._keys()
        described = await self._described()
        await keys.find(self._store.fetch, [key.id for key in described if covers(prefix, key.namespace)])
        current = {key.id: key.namespace for key in described if key.retired_at is None}
        scopes = Scopes(self._store, self._sealing, prefix)
        rows = Resealing(self._store, keys, self._findable)
        contents = ContentResealing(self._store, keys, self._contents, self._runner)
        done = Done()
        async with aclosing(_walk(self._store, scopes, progress)) as pages:
            async for found in pages:
                if found and found[0].content:
                    await contents.reseal(found, current)
                else:
                    done = done.plus(await rows.reseal(found, current, origin))
                    await rows.strip(found, origin)
        for session_id in sorted(contents.sessions):
            await self._rebuild(session_id)
        kept = await contents.remove_old(age)
        scrubbed = await self._scrubbed(origin)
        return Resealed(done.rows, contents.moved, kept, scrubbed, done.flaws + tuple(contents.flaws))

    async def drop(
        self, namespace: str = EVERYTHING, *, grace: timedelta | None = None, actor: str | None = None
    ) -> tuple[DataKeyUse, ...]:
        """Forget the retired keys at or below the namespace that seal nothing any more; these.

        Those that were retired within `grace`, an hour, stay: somebody may be about to write something that they seal.
        """
        prefix = self._within(namespace)
        origin = self._origin(actor)
        before = origin.now - _checked(grace) // timedelta(microseconds=1)
        uses = await self._uses(EVERYTHING)  # whoever moved something elsewhere took its key along
        used = uses.rows.keys() | uses.contents.keys() | await self._keys_in(uses.archives)
        unused = [
            key
            for key in await self._described()
            if key.retired_at is not None and key.id not in used and covers(prefix, key.namespace)
        ]
        return tuple([key for key in unused if await self._dropped(key, before, origin)])

    async def _scrubbed(self, origin: Origin) -> bool:
        """Leave nothing in the files of what rows said before they were encrypted, now or in a run that broke off."""
        found = await self._store.fetch(SQL["last_sealed"], {})
        if not found or found[0][0] == "scrub":
            return True
        if not await self._store.scrub(tuple(TABLES)):
            return False
        told = entry(origin, "data_key", "files", "scrub", namespace=None)
        await self._store.write(lambda tx: record(tx, [told]))
        return True

    # -- what there is

    async def _described(self) -> list[DataKeyUse]:
        found: list[Row] = []
        while rows := await self._store.fetch(
            SQL["describe_keys"], {"after": found[-1][0] if found else "", "limit": _PAGE}
        ):
            found += rows
        return [
            DataKeyUse(key_id, namespace, master_key, moment(created_at), moment_or_none(retired_at))
            for key_id, namespace, master_key, created_at, retired_at in found
        ]

    async def _uses(self, prefix: str) -> "_Uses":
        """How much each key seals, and how much is to be sealed and is not."""
        uses = _Uses()
        async with aclosing(_walk(self._store, Scopes(self._store, self._sealing, prefix), None)) as pages:
            async for found in pages:
                for each in found:
                    uses.note(each)
        return uses

    async def _keys_in(self, archives: Iterable[str]) -> set[str]:
        """The keys that restoring some archives would need."""
        contents = ContentResealing(self._store, self._keys(), self._contents, self._runner)
        used: set[str] = set()
        for name in archives:
            used |= await contents.keys_in(name)
        return used

    async def _dropped(self, key: DataKeyUse, before: int, origin: Origin) -> bool:
        async def unit(tx: Transaction) -> bool:
            if not await tx.execute(SQL["drop_key"], {"id": key.id, "before": before}):
                return False
            await record(tx, [entry(origin, "data_key", key.id, "drop", namespace=key.namespace)])
            return True

        return await self._store.write(unit)

    # -- checks

    def _within(self, namespace: str) -> str:
        prefix = check_prefix(namespace, self._settings.max_namespace_length)
        self._access.require(prefix, "admin")
        return prefix

    def _origin(self, actor: str | None) -> Origin:
        return origin_of(self._access, self._clock.now(), actor, None)

    def _keys(self) -> DataKeys:
        if self._sealing.keys is None:
            raise InvalidSettings("there is no master key: set encryption_keys, encryption_key_file or a key_provider")
        return self._sealing.keys


class _Uses:
    """Counts."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.contents: Counter[str] = Counter()
        self.plain: Counter[str] = Counter()
        self.plain_contents: Counter[str] = Counter()
        self.archives: list[str] = []

    def note(self, found: Found) -> None:
        sealed, plain = (self.contents, self.plain_contents) if found.content else (self.rows, self.plain)
        sealed.update(found.keys - {PLAIN})
        if PLAIN in found.keys and found.scope is not None:
            plain[found.scope] += 1
        if found.table == "archives":
            self.archives.append(found.content)


async def _walk(
    store: Store, scopes: Scopes, progress: Callable[[Progress], object] | None
) -> AsyncGenerator[Sequence[Found]]:
    """Every row that may be sealed, and then every record of a content, a page at a time; tells how far it has come."""
    began, done = time.monotonic(), 0
    total = await count(store, [*TABLES, *CONTENTS]) if progress else 0
    for pages in (
        *(rows_of(store, scopes, table) for table in TABLES.values()),
        *(contents_of(store, scopes, table) for table in CONTENTS),
    ):
        async with aclosing(pages):
            async for page in pages:
                yield page.found
                done += page.seen
                if progress:
                    progress(Progress(done, max(total, done), time.monotonic() - began))


def _checked(grace: timedelta | None) -> timedelta:
    if grace is None:
        return GRACE
    if not isinstance(grace, timedelta) or grace < timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"how long something is left is a timedelta from 0, not {grace!r}")
    return grace
