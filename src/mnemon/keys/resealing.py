"""Sealing rows anew where they are, under the same versions, while everybody goes on reading and writing them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from mnemon import journal
from mnemon.encryption.envelope import DataKey, is_sealed, key_id_of
from mnemon.encryption.keys import DataKeys
from mnemon.encryption.tables import TABLES, Table
from mnemon.errors import KeyUnavailable, TamperedValue
from mnemon.journal import Origin
from mnemon.keys.rows import PLAIN, SQL, Found, stays_plain, this
from mnemon.memories.findable import Findable
from mnemon.memories.writing import entry_of
from mnemon.model import SealFlaw
from mnemon.ports import Store, Transaction
from mnemon.sql import among, chunks, load
from mnemon.values import decode

_KEYS = load("encryption")
_VECTORS = load("indexing")
_SPACES = load("embeddings")
_AT_ONCE = 50  # rows that are held together
_MEMORIES = "memory_entries"
_ABOUT_MEMORIES = ("is_current", "is_deleted")
_COPIED = {"working_items": "move_buffer_on", "scratchpads": "move_pad_on"}


class Done(NamedTuple):
    """How many rows are sealed anew, how many of these had not been sealed at all, and what could not be."""

    rows: int = 0
    hidden: int = 0
    flaws: tuple[SealFlaw, ...] = ()

    def plus(self, other: "Done") -> "Done":
        return Done(self.rows + other.rows, self.hidden + other.hidden, self.flaws + other.flaws)


class Sealer:
    """Opens texts by whatever key they have, and seals them by the current one, inside one transaction."""

    def __init__(self, tx: Transaction, keys: DataKeys) -> None:
        self._tx = tx
        self._keys = keys
        self._current: dict[str, DataKey] = {}

    async def resealed(self, table: Table, scope: str | None, row: Mapping[str, Any]) -> dict[str, str]:
        """The texts of a row that are to be others, by their columns."""
        changed: dict[str, str] = {}
        for column in table.sealed:
            text: str | None = row[column]
            if text is None or stays_plain(text):
                continue
            place = table.place(row, column)
            if not is_sealed(text):
                if scope is not None:
                    changed[column] = (await self.current(scope)).seal(text, place)
                continue
            key_id = key_id_of(text)
            current = await self.current(scope or await self._scope_of(key_id))
            if current.id != key_id:
                before = (await self._keys.find(self._tx.fetch_all, [key_id]))[key_id]
                changed[column] = current.seal(before.open(text, place), place)
        return changed

    async def current(self, scope: str) -> DataKey:
        if scope not in self._current:
            self._current[scope] = await self._keys.current(self._tx, scope)
        return self._current[scope]

    async def _scope_of(self, key_id: str) -> str:
        row = await self._tx.fetch_one(_KEYS["scope_of_key"], {"id": key_id})
        if row is None:
            raise KeyUnavailable(f"the database has no data key {key_id!r}: what it sealed cannot be read")
        return row[0]


class Resealing:
    """Seals rows anew."""

    def __init__(self, store: Store, keys: DataKeys, findable: Findable) -> None:
        self._store = store
        self._keys = keys
        self._findable = findable

    async def reseal(self, found: Sequence[Found], current: Mapping[str, str], origin: Origin) -> Done:
        """Seal those rows anew that are not sealed by a current key; `current` has the scopes of those."""
        due = [each for each in found if _is_due(each, current)]
        done = Done()
        for some in chunks(due, _AT_ONCE):
            await self._forget(some)
            done = done.plus(await self._store.write(partial(self._reseal, some, origin)))
        return done

    async def strip(self, found: Sequence[Found], origin: Origin) -> None:
        """Take the vectors away of memories that were encrypted when vectors were kept."""
        sealed = [each.place["id"] for each in found if each.table == _MEMORIES and each.scope and each.keys - {PLAIN}]
        if not self._findable.sealing.keeps_vectors:
            for some in chunks(sealed, _AT_ONCE):
                await self._store.write(partial(self._strip, some, origin))

    async def _forget(self, found: Sequence[Found]) -> None:
        """Leave nothing in the embedder's cache of memories that will be encrypted."""
        values: list[Any] = []
        for each in found:
            if each.table == _MEMORIES and PLAIN in each.keys:
                rows = await self._store.fetch(_held(TABLES[_MEMORIES], ("value",), ""), each.place)
                values += [decode(text) for (text,) in rows if not is_sealed(text)]
        if values:
            await self._findable.forget(values)

    # -- inside the transaction

    async def _reseal(self, found: Sequence[Found], origin: Origin, tx: Transaction) -> Done:
        sealer = Sealer(tx, self._keys)
        done = Done()
        hidden: list[Mapping[str, Any]] = []
        for each in found:
            try:
                done = done.plus(await self._reseal_one(tx, sealer, each, hidden))
            except (TamperedValue, KeyUnavailable) as error:
                done = done.plus(Done(flaws=(SealFlaw(each.table, each.told, str(error)),)))
        if done.rows:  # the journal comes last, as others wait for it who hold rows
            table = TABLES[found[0].table]
            if hidden:
                await self._hide(tx, origin, hidden)
            position = await _note(tx, origin, table.name, "seal" if done.hidden else "reseal", done.rows)
            await self._outdate_copies(tx, table, found, position)
        return done

    async def _reseal_one(self, tx: Transaction, sealer: Sealer, found: Found, hidden: list[Mapping[str, Any]]) -> Done:
        """Seal one row anew; a memory that had not been encrypted is `hidden` from now on."""
        table = TABLES[found.table]
        columns = _columns(table)
        held = await tx.fetch_one(_held(table, columns, self._store.dialect.row_lock), found.place)
        if held is None:
            return Done()
        row = dict(zip(columns, held, strict=True))
        changed = await sealer.resealed(table, found.scope, row)
        if not changed:
            return Done()
        changes = ", ".join(f"{column} = :{column}" for column in changed)
        update = SQL["reseal_row"].fill(table=table.name, changes=changes, this=this(table.finds))
        await tx.execute(update, {**found.place, **changed})
        was_plain = any(not is_sealed(row[column]) for column in changed)
        if was_plain and table.name == _MEMORIES:
            hidden.append({**row, **changed})
        return Done(1, int(was_plain))

    async def _strip(self, ids: Sequence[int], origin: Origin, tx: Transaction) -> None:
        these = among("memory_id", ids, "memory")
        spaces = await tx.fetch_all(_SPACES["list_spaces"].where([]), {})
        known = among("space_id", [row[0] for row in spaces], "space")
        rows = await tx.fetch_all(_VECTORS["vectors_present"].where([these, known]), {**these.params, **known.params})
        columns = _columns(TABLES[_MEMORIES])
        query = _held(TABLES[_MEMORIES], columns, self._store.dialect.row_lock)
        held = [await tx.fetch_one(query, {"id": each}) for each in sorted({memory_id for memory_id, _ in rows})]
        if held:
            await self._hide(tx, origin, [dict(zip(columns, row, strict=True)) for row in held if row is not None])
            await _note(tx, origin, _MEMORIES, "seal", len(held))

    async def _hide(self, tx: Transaction, origin: Origin, rows: Sequence[Mapping[str, Any]]) -> None:
        """Leave nothing of memories that are encrypted now in the indexes, here and outside."""
        await self._findable.hide(tx, rows)
        operation = "encrypt"
        if not self._findable.sealing.keeps_vectors:
            operation = "seal"
            these = among("memory_id", [row["id"] for row in rows], "memory")
            await tx.execute(SQL["drop_vectors"].where([these]), these.params)
        await journal.record(
            tx, [entry_of(origin, operation, row["namespace"], row["key"], row["version"]) for row in rows]
        )

    async def _outdate_copies(self, tx: Transaction, table: Table, found: Sequence[Found], position: int) -> None:
        """Copies of working memory outside the database have the old texts."""
        if table.name in _COPIED:
            rows = [await tx.fetch_one(_held(table, _columns(table), ""), each.place) for each in found]
            moved = [dict(zip(_columns(table), row, strict=True)) for row in rows if row is not None]
            await tx.execute_many(SQL[_COPIED[table.name]], [{**row, "position": position} for row in moved])


async def _note(tx: Transaction, origin: Origin, table: str, operation: str, rows: int) -> int:
    """Write down what was done to a table; the position in the journal."""
    entry = journal.entry(origin, "data_key", table, operation, namespace=None, payload={"rows": rows})
    return await journal.record_one(tx, entry)


def _is_due(found: Found, current: Mapping[str, str]) -> bool:
    """Whether a row has something to seal: a text that should be sealed, or one under a key that is not current."""
    for key in found.keys:
        if key == PLAIN:
            if found.scope is not None:
                return True
        elif current.get(key) is None or found.scope not in (None, current[key]):
            return True
    return False


def _columns(table: Table) -> tuple[str, ...]:
    """All that a row is opened, sealed and found by."""
    more = _ABOUT_MEMORIES if table.name == _MEMORIES else ()
    return tuple(dict.fromkeys([*table.finds, *filter(None, table.bound), *table.sealed, *more]))


def _held(table: Table, columns: Sequence[str], lock: str) -> Any:
    return SQL["hold_row"].fill(columns=", ".join(columns), table=table.name, this=this(table.finds), lock=lock)
