"""The contract of the seals: whatever was done to a sealed journal behind its back is found."""

import asyncio
from typing import Any

from mnemon.hybrid import HybridMemoryService
from mnemon.model import Verification
from mnemon.ports import Store
from mnemon.testing.handles import with_settings
from mnemon.testing.suite import Suite, peek, plant

_COLUMNS = "at, actor, entity, entity_id, operation, version, namespace, user_id, session_id, task_id, payload"


async def write_and_seal(memory: HybridMemoryService, *keys: str) -> Verification:
    """Some changes under one new seal, which is intact."""
    for key in keys:
        await memory.memories.add_memory("user:alice", key, key, created_by="bot", task_id="t1")
    assert await memory.seal() == len(keys)
    found = await memory.verify()
    assert found.intact
    return found


async def positions(store: Store) -> list[int]:
    return [position for (position,) in await peek(store, "SELECT position FROM journal ORDER BY position")]


class SealSuite(Suite):
    """Part of `JournalSuite`."""

    async def test_sealing_covers_everything_once(self, memory: HybridMemoryService, store: Store) -> None:
        assert await memory.seal() == 0
        assert await memory.verify() == Verification(0, 0, None, ())

        first = await write_and_seal(memory, "a", "b", "c")
        assert (first.sealed, first.unsealed) == (3, 0)
        assert await memory.seal() == 0
        assert await memory.verify() == first
        await memory.memories.add_memory("user:alice", "d", 1)
        assert (await memory.verify()).unsealed == 1
        second = await write_and_seal(memory, "e") if await memory.seal() else first

        assert second.sealed == 5
        assert second.head != first.head
        assert (await memory.verify(first.head)).intact
        assert (await memory.verify(second.head)).intact

    async def test_a_long_journal_is_sealed_in_ranges(self, memory: HybridMemoryService, store: Store) -> None:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.sessions.append_events("s1", [{} for _ in range(2300)])

        assert await memory.seal() == 2301

        rows = await peek(store, "SELECT first_position, last_position, entries FROM seals ORDER BY first_position")
        assert [entries for _, _, entries in rows] == [1000, 1000, 301]
        assert [first for first, _, _ in rows] == [1, rows[0][1] + 1, rows[1][1] + 1]
        found = await memory.verify()
        assert (found.intact, found.sealed, found.unsealed) == (True, 2301, 0)

    async def test_an_edit_of_any_column_is_found(self, memory: HybridMemoryService, store: Store) -> None:
        await write_and_seal(memory, "a", "b")
        [first, second] = await positions(store)
        edits: dict[str, Any] = {
            "at": 1, "actor": "eve", "entity": "task", "entity_id": "z", "operation": "delete", "version": 9,
            "namespace": "user:bob", "user_id": "bob", "session_id": "s9", "task_id": "t9", "payload": '{"a":1}',
        }  # fmt: skip
        for column, value in edits.items():
            [(before,)] = await peek(store, f"SELECT {column} FROM journal WHERE position = :p", p=second)
            await plant(store, f"UPDATE journal SET {column} = :v WHERE position = :p", v=value, p=second)

            [flaw] = (await memory.verify()).flaws

            assert (flaw.first, flaw.last) == (1, second), column
            assert "edited or moved" in flaw.reason
            await plant(store, f"UPDATE journal SET {column} = :v WHERE position = :p", v=before, p=second)
            assert (await memory.verify()).intact
        assert first < second

    async def test_a_removed_row_is_found(self, memory: HybridMemoryService, store: Store) -> None:
        await write_and_seal(memory, "a", "b", "c")
        await write_and_seal(memory, "d")
        taken = await positions(store)

        for gone, (first, last) in {taken[1]: (1, taken[2]), taken[3]: (taken[2] + 1, taken[3])}.items():
            await plant(store, "DELETE FROM journal WHERE position = :p", p=gone)
            flaw = (await memory.verify()).flaws[-1]
            assert (flaw.first, flaw.last, flaw.reason) == (first, last, "1 entries were removed")

    async def test_an_inserted_row_is_found_wherever_it_stands(self, memory: HybridMemoryService, store: Store) -> None:
        for key in ("a", "gap", "b"):
            await memory.memories.add_memory("user:alice", key, 1)
        [_, gap, last] = await positions(store)
        await plant(store, "DELETE FROM journal WHERE position = :p", p=gap)
        assert await memory.seal() == 2
        insert = f"INSERT INTO journal (position, {_COLUMNS}) SELECT :p, {_COLUMNS} FROM journal WHERE position = :o"

        for place in (gap, 0, -7):
            await plant(store, insert, p=place, o=last)
            found = await memory.verify()
            assert [flaw.reason for flaw in found.flaws] == ["1 entries were inserted"], place
            assert found.flaws[0].first <= place <= found.flaws[0].last
            await plant(store, "DELETE FROM journal WHERE position = :p", p=place)
            assert (await memory.verify()).intact

    async def test_rows_that_changed_places_are_found(self, memory: HybridMemoryService, store: Store) -> None:
        await write_and_seal(memory, "a", "b", "c")
        [one, two, three] = await positions(store)
        move = "UPDATE journal SET position = :to WHERE position = :of"

        for of, to in ((one, 99_999), (two, one), (99_999, two)):
            await plant(store, move, of=of, to=to)

        [flaw] = (await memory.verify()).flaws
        assert (flaw.first, flaw.last) == (1, three)
        assert "edited or moved" in flaw.reason

    async def test_a_row_replaced_by_another_is_found(self, memory: HybridMemoryService, store: Store) -> None:
        await write_and_seal(memory, "a", "b")
        [one, two] = await positions(store)
        copy = f"INSERT INTO journal (position, {_COLUMNS}) SELECT :to, {_COLUMNS} FROM journal WHERE position = :of"

        await plant(store, "DELETE FROM journal WHERE position = :p", p=two)
        await plant(store, copy, of=one, to=two)

        assert not (await memory.verify()).intact

    async def test_a_missing_seal_is_found(self, memory: HybridMemoryService, store: Store) -> None:
        for key in "abc":
            await write_and_seal(memory, key)
        taken = await positions(store)

        await plant(store, "DELETE FROM seals WHERE first_position = :p", p=taken[0] + 1)

        [flaw] = (await memory.verify()).flaws
        assert (flaw.first, flaw.last, flaw.reason) == (taken[1] + 1, taken[2], "a seal before this one is missing")

    async def test_a_chain_whose_end_was_cut_off_is_found_with_an_anchor(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        await write_and_seal(memory, "a")
        anchor = (await write_and_seal(memory, "b")).head
        [_, last] = await positions(store)

        await plant(store, "DELETE FROM seals WHERE last_position = :p", p=last)
        await plant(store, "DELETE FROM journal WHERE position = :p", p=last)

        assert (await memory.verify()).intact
        [flaw] = (await memory.verify(anchor)).flaws
        assert "anchor is not in the chain" in flaw.reason

    async def test_a_chain_that_was_made_anew_is_found_with_an_anchor(
        self, memory: HybridMemoryService, store: Store
    ) -> None:
        anchor = (await write_and_seal(memory, "a", "b")).head
        await plant(store, "DELETE FROM seals")
        await plant(store, "UPDATE journal SET actor = 'eve'")
        await memory.seal()

        assert (await memory.verify()).intact
        assert not (await memory.verify(anchor)).intact

    async def test_an_edited_seal_is_found(self, memory: HybridMemoryService, store: Store) -> None:
        await write_and_seal(memory, "a", "b")
        await write_and_seal(memory, "c")
        [one, two, three] = await positions(store)
        edits = [
            f"digest = '{'f' * 64}' WHERE first_position = 1",
            "entries = 5 WHERE first_position = 1",
            f"last_position = {one} WHERE first_position = 1",
            f"last_position = {three} WHERE first_position = 1",
            "last_position = 0 WHERE first_position = 1",
            f"last_position = -1 WHERE first_position = {two + 1}",
            f"first_position = {three + 5} WHERE first_position = {two + 1}",
        ]
        whole = await peek(store, "SELECT * FROM seals ORDER BY first_position")
        for edit in edits:
            await plant(store, f"UPDATE seals SET {edit}")
            found = await asyncio.wait_for(memory.verify(), 10)
            assert not found.intact, edit
            await plant(store, "DELETE FROM seals")
            for row in whole:
                await plant(
                    store, "INSERT INTO seals VALUES (:a, :b, :c, :d, :e, :f)", **dict(zip("abcdef", row, strict=True))
                )
            assert (await memory.verify()).intact

    async def test_seals_made_with_a_key_need_it(self, memory: HybridMemoryService, store: Store) -> None:
        keyed = with_settings(memory, seal_key="secret")
        await write_and_seal(keyed, "a", "b")

        assert (await keyed.verify()).intact
        [flaw] = (await memory.verify()).flaws
        assert "another key" in flaw.reason
        assert not (await with_settings(memory, seal_key="guess").verify()).intact

    async def test_without_the_key_nobody_can_seal_a_forgery(self, memory: HybridMemoryService, store: Store) -> None:
        keyed = with_settings(memory, seal_key="secret")
        await write_and_seal(keyed, "a", "b")

        await plant(store, "UPDATE journal SET actor = 'eve'")
        await plant(store, "DELETE FROM seals")
        await memory.seal()
        await plant(store, "UPDATE seals SET keyed = TRUE")

        assert not (await keyed.verify()).intact

    async def test_reasons_do_not_hide_each_other(self, memory: HybridMemoryService, store: Store) -> None:
        for key in "abc":
            await write_and_seal(memory, key)
        [one, two, three] = await positions(store)

        await plant(store, "DELETE FROM journal WHERE position = :p", p=one)
        await plant(store, "UPDATE journal SET actor = 'eve' WHERE position = :p", p=three)

        assert [(flaw.first, flaw.last) for flaw in (await memory.verify()).flaws] == [(1, one), (two + 1, three)]

    async def test_two_that_seal_at_once_make_one_chain(self, memory: HybridMemoryService, store: Store) -> None:
        for key in "abc":
            await memory.memories.add_memory("user:alice", key, 1)

        sealed = await asyncio.gather(*(memory.seal() for _ in range(5)))

        assert sum(sealed) == 3
        assert await peek(store, "SELECT COUNT(*) FROM seals") == [(1,)]
        assert (await memory.verify()).intact
