"""Contents sealed anew: written once more under the current key, and then referred to in place of the old ones."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import orjson

from mnemon.contents import Contents
from mnemon.encryption.contents import ContentKey
from mnemon.encryption.envelope import DataKey, is_sealed, key_id_of
from mnemon.encryption.keys import DataKeys
from mnemon.encryption.tables import TABLES, Table
from mnemon.errors import ContentCorrupt, ContentMissing, KeyUnavailable, TamperedValue
from mnemon.keys.resealing import Sealer
from mnemon.keys.rows import CONTENTS, PLAIN, SQL, Found, this
from mnemon.model import Content, SealFlaw
from mnemon.ports import Runner, Store, Transaction
from mnemon.sql import among, chunks, load, params_of

_REFERENCES = load("artifacts")
_ARCHIVES = "archives"


class ContentResealing:
    """Seals contents anew, for one run."""

    def __init__(self, store: Store, keys: DataKeys, contents: Contents, runner: Runner) -> None:
        self._store = store
        self._keys = keys
        self._contents = contents
        self._runner = runner
        self._anew: dict[tuple[str, str], Content] = {}
        self.moved = 0
        """How many records refer to new contents."""
        self.sessions: set[str] = set()
        """Those whose artifacts are encrypted, so that people must not see them."""
        self.flaws: list[SealFlaw] = []
        self._old: set[str] = set()

    async def reseal(self, found: Iterable[Found], current: Mapping[str, str]) -> None:
        """Seal the contents anew that some records refer to, unless a current key seals them."""
        for each in found:
            [key] = each.keys
            scope = each.scope or (None if key == PLAIN else await self._keys.scope_of(key))
            if scope is not None and each.table == "artifacts":
                self.sessions.add(each.owner.removeprefix("session:"))
            if scope is not None and (each.table == _ARCHIVES or current.get(key) != scope):
                try:
                    await self._move(each, scope)
                except (ContentMissing, ContentCorrupt, TamperedValue, KeyUnavailable) as error:
                    self.flaws.append(SealFlaw(each.table, each.told, str(error)))

    async def remove_old(self, age: float) -> int:
        """Remove those of the old contents that nothing refers to, if they are old enough; how many are left."""
        left = 0
        for some in chunks(sorted(self._old)):
            wanted = [among("sha256", some, "sha")]
            rows = await self._store.fetch(_REFERENCES["referenced_among"].where(wanted), params_of(wanted))
            for name in set(some) - {name for (name,) in rows}:
                left += not await self._runner.aside(partial(self._contents.store.delete, name, age))
        return left

    async def _move(self, found: Found, scope: str) -> None:
        key = await self._keys.at_hand(scope)
        await self._contents.ready([found.content])
        put = self._put_archive if found.table == _ARCHIVES else self._put
        content = await put(found, key)
        if content.sha256 == found.content:
            return
        update = SQL["move_content"].fill(table=found.table, this=this(CONTENTS[found.table][0]))
        params = {**found.place, "name": content.sha256, "size": content.size, "before": found.content}
        if await self._store.write(lambda tx: tx.execute(update, params)):
            self.moved += 1
            self._old.add(found.content)
        elif found.table == _ARCHIVES:  # something was erased from it meanwhile, and must not be left here
            await self._contents.remove(content.sha256)

    async def _put(self, found: Found, key: DataKey) -> Content:
        """The content under another key; one that several records refer to is written once."""
        name = found.content
        if (name, key.id) not in self._anew:
            anew = await self._runner.aside(lambda: self._contents.keep(self._contents.verified(name), ContentKey(key)))
            self._anew[name, key.id] = anew
        return self._anew[name, key.id]

    # -- archives

    async def keys_in(self, name: str) -> set[str]:
        """The keys of what is in an archive; none if it cannot be read, and so not be restored either."""
        try:
            table, rows = _rows_in(await self._contents.whole(name))
        except (ContentMissing, ContentCorrupt):
            return set()
        texts = [row[column] for row in rows for column in table.sealed if row[column] is not None]
        return {key_id_of(text) for text in texts if is_sealed(text)}

    async def _put_archive(self, found: Found, key: DataKey) -> Content:
        """An archive under another key, and what is in it too."""
        whole = await self._contents.whole(found.content)
        table, rows = _rows_in(whole)

        async def unit(tx: Transaction) -> list[dict[str, str]]:
            sealer = Sealer(tx, self._keys)
            return [await sealer.resealed(table, found.scope, row) for row in rows]

        changed = await self._store.write(unit)
        if not any(changed) and key.id in found.keys:
            return Content(found.content, len(whole))
        lines = [
            orjson.dumps({**row, **texts}, option=orjson.OPT_APPEND_NEWLINE)
            for row, texts in zip(rows, changed, strict=True)
        ]
        heading = whole.splitlines(keepends=True)[:1]
        return await self._runner.aside(lambda: self._contents.keep([*heading, *lines], ContentKey(key)))


def _rows_in(archive: bytes) -> tuple[Table, list[dict[str, Any]]]:
    """What an archive holds: rows, and the table that they were in."""
    try:
        heading, *rows = [orjson.loads(line) for line in archive.splitlines()]
        return TABLES["episodes" if heading.get("kind") == "episodes" else "memory_entries"], rows
    except (ValueError, AttributeError) as error:
        raise ContentCorrupt(f"this is not an archive: {error}") from None
